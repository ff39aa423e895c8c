"""Greatest common divisors, least common multiples, square roots and lengths in bits of a chunk's numbers.

GNU MP computes divisors, multiples and roots from the integers of some numbers at a time, of any system.
A length follows from X/M, except near powers of two, where the integers decide.
"""

import math
from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.errors import NumberError
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.rns.blocks import EXACT_RESIDUES, batches, matrices
from rnsdask.rns.bounds import narrowed
from rnsdask.rns.evaluation import MAGNITUDE_ERROR, magnitudes, size_of
from rnsdask.rns.system import RNS

FUNCTIONS: dict[str, Callable[..., Any]] = {"gcd": gmpy2.gcd, "lcm": gmpy2.lcm}
"""The functions of two integers by name; none of their results is negative."""


def of_pairs(name: str, x: Array, y: Array, system: NumberSystem, mode: str, locate: Locate = int) -> Array:
    """Apply one of `FUNCTIONS` to the pairs of numbers of two chunks of any system, words (rows, *shape)."""
    operands, shape = matrices(x, y)
    prototype = next((block for block in operands if backend_name(block) == "cuda"), operands[0])
    count, rows = math.prod(shape), system.rows
    out = np.zeros_like(prototype, shape=(rows + (mode == "flag"), count), order="C")
    step = max(1, EXACT_RESIDUES // rows)
    for start in range(0, count, step):
        parts = (block if block.shape[1] == 1 else block[:, start : start + step] for block in operands)
        pairs = np.broadcast_arrays(*(system.decode(part) for part in parts))
        values = list(map(int, map(FUNCTIONS[name], *pairs)))
        outside = [i for i, value in enumerate(values) if value > system.value_range[1]]
        if outside and mode == "raise":
            raise system.overflow_error(values[outside[0]], locate(start + outside[0]))
        for i in outside:
            values[i] = _wrapped(values[i], system)
        out[:rows, start : start + step] = np.asarray(system.encode(values), like=out)
        if mode == "flag":
            out[rows, start + np.asarray(outside, dtype=np.int64, like=out)] = 1
    return out.reshape(len(out), *shape)


def _wrapped(value: int, system: Any) -> int:
    """The number of the range that is a positive value modulo M; of two, the one that is not negative."""
    modulus = system.moduli.product if hasattr(system, "moduli") else 1 << system.bits
    value %= modulus
    return value if value <= system.value_range[1] else value - modulus


def isqrt(x: Array, system: NumberSystem, locate: Locate = int) -> Array:
    """Floors of the square roots of a chunk of any system, words (rows, *shape).

    Raises
    ------
    NumberError
        If a number is negative, naming the flat index of the first one.
    """
    matrix, rows = as_matrix(x), system.rows
    out = np.empty_like(matrix, shape=(rows, matrix.shape[1]), order="C")
    step = max(1, EXACT_RESIDUES // rows)
    for start in range(0, matrix.shape[1], step):
        values = system.decode(matrix[:, start : start + step]).tolist()
        negative = next((i for i, value in enumerate(values) if value < 0), None)
        if negative is not None:
            index = locate(start + negative)
            raise NumberError(f"the number at flat index {index} is negative: it has no square root")
        roots = list(map(int, map(gmpy2.isqrt, values)))
        out[:, start : start + step] = np.asarray(system.encode(roots), like=out)
    return out.reshape(rows, *x.shape[1:])


def bit_length(residues: Array, system: RNS) -> Array:
    """Bits of the magnitude of each number of a chunk (n, *shape), 0 of 0: int64 (*shape)."""
    matrix = as_matrix(residues)
    if not matrix.shape[1]:
        return np.empty_like(matrix, shape=residues.shape[1:], dtype=np.int64, order="C")
    system = narrowed(system, matrix) or system
    fractions, exponents = magnitudes(matrix, system)
    lengths, decided = lengths_of(abs(fractions), exponents, MAGNITUDE_ERROR, system.moduli)
    decide_lengths(lengths, decided, matrix, system)
    return lengths.reshape(residues.shape[1:])


def lengths_of(fractions: Array, exponents: Array, error: float, moduli: ModuliSet) -> tuple[Array, Array]:
    """Lengths in bits of magnitudes X (int64), and which of them are certain.

    X/M is about ``fractions * 2**exponents``, and 0 just where a fraction is; the relative error is at most
    `error`, which is at most 1/4.
    """
    # The roundings here are far less than `error`, which is doubled for them.
    mantissas, shifts = np.frexp(fractions * size_of(moduli))
    lengths = shifts.astype(np.int64) + exponents + moduli.bits
    decided = (mantissas >= 0.5 + 2 * error) & (mantissas <= 1 - 2 * error)
    is_zero = fractions == 0
    return np.where(is_zero, np.zeros_like(lengths), lengths), decided | is_zero


def decide_lengths(lengths: Array, decided: Array, words: Array, system: NumberSystem) -> None:
    """Write the lengths of the numbers of words (rows, N) that are not decided, by their integers."""
    (open_,) = (~decided).nonzero()
    for part in batches(open_, len(words)):
        integers = system.decode(kernels_of(words).gather(words, part)).tolist()
        exact = np.array([value.bit_length() for value in integers], dtype=np.int64)
        lengths[part] = np.asarray(exact, like=lengths)
