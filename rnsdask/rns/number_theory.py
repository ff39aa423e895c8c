"""Bit lengths of a chunk's numbers: from X/M, except near powers of two, where integers decide."""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.rns.blocks import batches
from rnsdask.rns.bounds import narrowed
from rnsdask.rns.evaluation import MAGNITUDE_ERROR, magnitudes, size_of
from rnsdask.rns.system import RNS


def bit_length(residues: Array, system: RNS) -> Array:
    """Bits of the magnitude of each number of a chunk (n, *shape), 0 for 0: int64 (*shape)."""
    matrix = as_matrix(residues)
    if not matrix.shape[1]:
        return np.empty_like(matrix, shape=residues.shape[1:], dtype=np.int64, order="C")
    system = narrowed(system, matrix) or system
    fractions, exponents = magnitudes(matrix, system)
    lengths, decided = lengths_of(abs(fractions), exponents, MAGNITUDE_ERROR, system.moduli)
    decide_lengths(lengths, decided, matrix, system)
    return lengths.reshape(residues.shape[1:])


def lengths_of(fractions: Array, exponents: Array, error: float, moduli: ModuliSet) -> tuple[Array, Array]:
    """Bit lengths of magnitudes X (int64), and a mask of the certain ones.

    X/M is about ``fractions * 2**exponents``, and 0 just where a fraction is 0; the relative error is at most
    `error`, which is at most 1/4.
    """
    # The rounding errors here are far below `error`, which is doubled to cover them.
    mantissas, shifts = np.frexp(fractions * size_of(moduli))
    lengths = np.add(shifts, exponents + moduli.bits, dtype=np.int64)
    decided = (mantissas >= 0.5 + 2 * error) & (mantissas <= 1 - 2 * error)
    is_zero = fractions == 0
    return np.where(is_zero, np.zeros_like(lengths), lengths), decided | is_zero


def decide_lengths(lengths: Array, decided: Array, words: Array, system: NumberSystem) -> None:
    """Write the lengths of the undecided numbers of words (rows, N), by their integers."""
    (open_,) = (~decided).nonzero()
    for part in batches(open_, len(words)):
        integers = system.decode(kernels_of(words).gather(words, part)).tolist()
        exact = np.array([value.bit_length() for value in integers], dtype=np.int64)
        lengths[part] = np.asarray(exact, like=lengths)
