"""Sums, differences and products of chunks of signed integers with stored intervals. No Dask in here.

A kernel gives the residues, the sign and the interval of each result from the operands' intervals, and flags
the few whose intervals say too little:

- the interval holds 0, after cancellation, so that the sign is open: exact conversion of the
  difference decides it;
- the interval reaches 1, so that the magnitude may be M or more: exact conversion decides it too;
- the interval is wider than :data:`.layout.ACCURACY`.

The interval of each of these is evaluated anew from the residues. docs/exact-intervals.md derives the rules.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import INTERVAL_RNS_ALGORITHMS, Array, backend_name, kernels_of, to_backend
from rnsdask.constants import product_bounds
from rnsdask.core.errors import IntervalOverflowError, brief
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.interval_rns import layout
from rnsdask.rns.blocks import batches, matrices
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.exact_order import are_near_top

# The kernels' flags (kernels/include/rns/interval_rns.cuh).
_OPEN_SIGN, _OPEN_RANGE, _OUTSIDE = 1, 4, 8

# A GPU takes as long for one number as for thousands in what follows the flags: so few go to the host.
_FEW = 64

# On a GPU, below so many numbers a thread for four of them leaves most of it idle.
_FEW_NUMBERS = 2**17
_MANY_MODULI = 32

_EVALUATE = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y}


def check_algorithm(algorithm: int | str | None) -> None:
    """Raise ValueError unless `algorithm` names one, or is None for the product's choice."""
    known = algorithm is None or (type(algorithm) in (int, str) and algorithm in INTERVAL_RNS_ALGORITHMS)
    if not known:
        raise ValueError(f"algorithm must be 1, 2 or 'digits', got {brief(algorithm)}")


def chosen_algorithm(count: int, n_moduli: int, backend: str) -> int | str:
    """The algorithm for `count` sums: Algorithm 2, or digits where numbers are few and long on a GPU."""
    few = count < _FEW_NUMBERS and n_moduli >= _MANY_MODULI
    return "digits" if backend == "cuda" and few else 2


def apply(
    name: str,
    x: Array,
    y: Array,
    moduli: ModuliSet,
    mode: str,
    algorithm: int | str | None = None,
    locate: Locate = int,
) -> Array:
    """Apply an operation to a chunk of each operand.

    Parameters
    ----------
    name : {"add", "subtract", "multiply"}
        The operation.
    x, y : arrays of uint32, shape (n + 6, *shape) each
        Columns, NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.
    mode : {"raise", "wrap", "flag"}
        What happens where the magnitude of an exact result is M or more.
    algorithm : {1, 2, "digits"}, optional
        How sums are computed; without it, what is fastest. The result is the same.
    locate : callable
        Turns a flat index in the chunk into the one that an error names.

    Returns
    -------
    array of uint32, shape (n + 6, *shape)
        With ``"flag"`` one row more, which holds 1 where the exact result is out of range, else 0; the
        number is then the exact result's sign with its magnitude modulo M, as with ``"wrap"``.

    Raises
    ------
    IntervalOverflowError
        With ``"raise"``, if an exact result is out of range.
    """
    operands, shape = matrices(x, y)
    prototype = next((block for block in operands if backend_name(block) == "cuda"), operands[0])
    rows = layout.rows_of(moduli)
    out = np.empty_like(prototype, shape=(rows + (mode == "flag"), math.prod(shape)), order="C")
    flags = _compute(name, operands[0], operands[1], moduli, algorithm, out[:rows])
    outside = _settle(out[:rows], flags, moduli)
    if mode == "flag":
        out[rows] = 0
        out[rows, outside] = 1
    elif mode == "raise" and outside.size:
        raise _error(name, operands, moduli, int(outside[0]), locate)
    return out.reshape(len(out), *shape)


def _compute(
    name: str, x: Array, y: Array, moduli: ModuliSet, algorithm: int | str | None, out: Array
) -> Array:
    kernels = kernels_of(out)
    product = product_bounds(moduli)
    if name == "multiply":
        return kernels.interval_rns_multiply(x, y, product, layout.ACCURACY, out)
    if algorithm is None:
        algorithm = chosen_algorithm(out.shape[1], len(moduli), backend_name(out))
    return kernels.interval_rns_add(x, y, moduli, name == "subtract", algorithm, layout.ACCURACY, out)


def _error(name: str, operands: Any, moduli: ModuliSet, index: int, locate: Locate) -> IntervalOverflowError:
    columns = (x[:, [index if x.shape[1] > 1 else 0]] for x in operands)
    value = _EVALUATE[name](*(to_ints(column, moduli)[0] for column in columns))
    return overflow_error(value, locate(index), moduli)


def overflow_error(value: int, index: int, moduli: ModuliSet) -> IntervalOverflowError:
    """The error of an exact result: a number has the bits of a magnitude below M, and one of its sign."""
    return IntervalOverflowError.of_value(value, index, moduli.bits + 1, signed=True)


def _settle(columns: Array, flags: Array, moduli: ModuliSet) -> Array:
    """Decide in place what the flags leave open; ascending indices of the numbers that overflowed."""
    overflowed = [np.empty_like(flags, shape=(0,), dtype=np.int64, order="C")]
    if not flags.any():  # as nearly always; searching the flags would take longer
        return overflowed[0]
    (indices,) = flags.nonzero()
    for part in batches(indices, len(columns)):
        outside = _settle_part(columns, part, flags[part], moduli)
        overflowed.append(part[outside])
    return np.concatenate(overflowed)


def _settle_part(columns: Array, indices: Array, flags: Array, moduli: ModuliSet) -> Array:
    """Decide the numbers at `indices`; Boolean (k,): those that overflowed.

    What is open is which end of the range the residues' number R is near (docs/exact-intervals.md): if the
    sign is open, X - Y is R or R - M; if the range is, the magnitude is R or R + M.
    """
    n = len(moduli)
    residues = kernels_of(columns).gather(columns[:n], indices)
    signs = columns[n][indices]
    if len(indices) <= _FEW:
        residues, signs, flags = (to_backend(array, "cpu") for array in (residues, signs, flags))
    open_sign, outside = (flags & _OPEN_SIGN) != 0, (flags & _OUTSIDE) != 0
    is_top = np.zeros_like(outside)
    (near,) = (open_sign | ((flags & _OPEN_RANGE) != 0) & ~outside).nonzero()
    if near.size:
        chosen = kernels_of(residues).gather(residues, near)
        is_top[near] = are_near_top(chosen, moduli, signed=False)
    negative = open_sign & is_top
    residues = np.where(negative, layout.complement(residues, moduli), residues)
    outside |= ((flags & _OPEN_RANGE) != 0) & ~is_top & ~open_sign
    settled = layout.evaluated(residues, moduli, signs ^ negative)
    columns[:, indices] = np.asarray(settled, like=columns)
    return np.asarray(outside, like=columns)


def negative(columns: Array, moduli: ModuliSet) -> Array:
    """Opposite numbers: the other signs."""
    result = columns.copy()
    layout.set_signs(result, moduli, ~layout.is_negative(columns, moduli))
    return result


def absolute(columns: Array, moduli: ModuliSet) -> Array:
    """Absolute values."""
    result = columns.copy()
    layout.set_signs(result, moduli, np.zeros_like(columns[0], dtype=np.bool_))
    return result


def to_ints(columns: Array, moduli: ModuliSet) -> Any:
    """The numbers as a NumPy object array of Python ints."""
    magnitudes = residues_to_ints(layout.residues_of(columns, moduli), moduli)
    signs = to_backend(layout.is_negative(columns, moduli), "cpu")
    return np.where(signs, -magnitudes, magnitudes)
