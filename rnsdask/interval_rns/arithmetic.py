"""Sums, differences, products and comparison of signed integers with stored intervals.

A kernel computes the residues, the sign and the interval of each result from the operands' intervals, and
flags the few whose intervals do not suffice:

- the interval holds 0, after cancellation, so that the sign is open: exact conversion of the
  difference decides it;
- the interval reaches 1, so that the magnitude may be M or more: exact conversion decides it too;
- the interval is wider than :data:`.layout.ACCURACY`.

The interval of each of these is evaluated anew from the residues. docs/exact-intervals.md derives the rules.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import (
    INTERVAL_OPERATIONS,
    INTERVAL_RNS_ALGORITHMS,
    UNDECIDED,
    Array,
    backend_name,
    is_all,
    is_any,
    kernels_of,
    to_backend,
)
from rnsdask.constants import MAX_EXPONENT, product_bounds
from rnsdask.core.errors import IntervalOverflowError, ReplacedIntervalOverflowError, brief
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.interval_rns import layout
from rnsdask.rns.blocks import batches, matrices
from rnsdask.rns.compare import compare as compare_residues
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.divide import is_even as is_even_residue
from rnsdask.rns.evaluation import IntervalEvaluation
from rnsdask.rns.order import are_near_top
from rnsdask.rns.system import RNS

# The kernels' flags (kernels/include/rns/interval_rns.cuh).
_OPEN_SIGN, _OPEN_RANGE, _OUTSIDE = 1, 4, 8

# Flagged numbers that a GPU leaves to the host, because it takes as long for one number as for thousands.
_FEW = 64

# Numbers below which one thread for each four of them leaves most of a GPU idle.
_FEW_NUMBERS = 2**17
_MANY_MODULI = 32

_EVALUATE = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y}


def check_algorithm(_: Any, algorithm: int | str | None = None, **__: Any) -> None:
    """Raise ValueError unless `algorithm` names one, or is None for the default."""
    known = algorithm is None or (type(algorithm) in (int, str) and algorithm in INTERVAL_RNS_ALGORITHMS)
    if not known:
        raise ValueError(f"algorithm must be 1, 2 or 'digits', got {brief(algorithm)}")


def chosen_algorithm(count: int, n_moduli: int, backend: str) -> int | str:
    """Choose the algorithm for `count` sums: Algorithm 2, or digits for few long numbers on a GPU."""
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
    source: WideModuli | None = None,
) -> Array:
    """Apply "add", "subtract" or "multiply" to a chunk of each operand.

    `algorithm` says how sums are computed, by default the fastest way; the result is the same. With
    ``"raise"``, a number out of range is an IntervalOverflowError; otherwise it is the exact result's sign
    with its magnitude modulo M.
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
        raise _error(name, operands, moduli, int(outside[0]), locate, source)
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


def _error(
    name: str, operands: Any, moduli: ModuliSet, index: int, locate: Locate, source: WideModuli | None
) -> IntervalOverflowError:
    columns = (x[:, [index if x.shape[1] > 1 else 0]] for x in operands)
    value = _EVALUATE[name](*(to_ints(column, moduli)[0] for column in columns))
    return overflow_error(value, locate(index), moduli, source)


def overflow_error(
    value: int, index: int, moduli: ModuliSet, source: WideModuli | None = None
) -> IntervalOverflowError:
    """Error of an exact result out of range: numbers have the bits of a magnitude below M, and a sign bit."""
    return error_type(source).of_value(value, index, moduli.bits + 1, signed=True)


def error_type(source: WideModuli | None) -> type[IntervalOverflowError]:
    """Class of overflow errors: wrapping is no way out where the moduli replaced a source."""
    return IntervalOverflowError if source is None else ReplacedIntervalOverflowError


def _settle(columns: Array, flags: Array, moduli: ModuliSet) -> Array:
    """Decide in place what the flags leave open; return ascending indices of the numbers that overflowed."""
    overflowed = [np.empty_like(flags, shape=(0,), dtype=np.int64, order="C")]
    if not is_any(flags):  # nearly always, and quicker than a search for flags
        return overflowed[0]
    (indices,) = flags.nonzero()
    for part in batches(indices, len(columns)):
        outside = _settle_part(columns, part, flags[part], moduli)
        overflowed.append(part[outside])
    return np.concatenate(overflowed)


def _settle_part(columns: Array, indices: Array, flags: Array, moduli: ModuliSet) -> Array:
    """Decide the numbers at `indices`; return a mask (k,) of those that overflowed.

    The question is which end of the range the residues' number R is near (docs/exact-intervals.md): if the
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
    """Negate numbers by changing their signs."""
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


def sign(x: Array, moduli: ModuliSet) -> Array:
    """Sign of each number (n + 6, *shape): int8 (*shape)."""
    nonzero = layout.nonzero(x, moduli).astype(np.int8)
    return np.where(layout.is_negative(x, moduli), -nonzero, nonzero)


def is_even(x: Array, moduli: ModuliSet) -> Array:
    """Whether each number (n + 6, *shape) is even: Boolean (*shape)."""
    return is_even_residue(layout.residues_of(x, moduli), RNS(moduli))


def compare(x: Array, y: Array, moduli: ModuliSet) -> Array:
    """Order of the numbers of two blocks: int8 of -1, 0 or +1 as x < y, x == y or x > y."""
    (first, second), shape = matrices(x, y)
    if 0 in shape:
        return np.empty_like(first, shape=shape, dtype=np.int8, order="C")
    prototype = second if backend_name(second) == "cuda" else first
    if 0 in shape:  # a single column and no columns would compare that column with itself
        return np.empty_like(prototype, shape=shape, dtype=np.int8, order="C")
    order = kernels_of(prototype).interval_rns_compare(first, second, moduli)
    (undecided,) = (order == UNDECIDED).nonzero()
    for part in batches(undecided, len(first)):
        # The interval of the difference holds 0, so both numbers have the same sign.
        a, b = (_choose(columns, part) for columns in (first, second))
        x_residues, y_residues = (layout.residues_of(columns, moduli) for columns in (a, b))
        signs = layout.is_negative(a if a.shape[1] >= b.shape[1] else b, moduli)
        signs = np.asarray(signs, like=order).astype(np.int8)
        order[part] = np.asarray(compare_residues(x_residues, y_residues, RNS(moduli)), like=order)
        order[part] *= 1 - 2 * signs
    return order.reshape(shape)


def _choose(columns: Array, indices: Array) -> Array:
    return columns if columns.shape[1] == 1 else columns[:, indices]


# Greatest magnitude of bounds, whose reciprocal is the least; the exponent holds the rest.
_GREATEST = 2.0**500

# Least ratio of lower to upper bounds; smaller lower bounds count as 0 (kTiny in the kernels).
_NARROWEST_DIVISOR = 2.0**-200


def interval_arithmetic(
    operation: str, x: IntervalEvaluation, y: IntervalEvaluation, moduli: ModuliSet
) -> IntervalEvaluation:
    """Bounds of (X + Y)/M, (X - Y)/M, X Y/M or (X/Y)/M from bounds of X/M and Y/M.

    They contain the exact value for any two exponents, and may lie outside of 0 to 1.

    Parameters
    ----------
    operation : {"add", "subtract", "multiply", "divide"}
        The operation.
    x, y : IntervalEvaluation
        Arrays of one shape on one processor: bounds that are 0 or from 2**-500 to 2**500 in magnitude,
        exponents of magnitude up to 2**29. To multiply, X and Y are not negative; to divide, the lower bound
        of Y must also be more than 2**-200 times its upper bound.
    moduli : ModuliSet
        The set whose product is M.

    Returns
    -------
    IntervalEvaluation
        The greater magnitude of the two bounds is from 1/2 to less than 1.

    Raises
    ------
    TypeError
        If an operand is no IntervalEvaluation.
    ValueError
        If the operation is unknown, shapes differ, or bounds or exponents exceed these limits.
    """
    if operation not in INTERVAL_OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(INTERVAL_OPERATIONS)}, got {operation!r}")
    for interval in (x, y):
        if not isinstance(interval, IntervalEvaluation):
            raise TypeError(f"{operation} takes IntervalEvaluations, got {type(interval).__name__}")
        _check(interval, x.low.shape)
    if operation in ("multiply", "divide") and (is_any(x.low < 0) or is_any(y.low < 0)):
        raise ValueError(f"{operation} takes intervals of numbers that are not negative")
    if operation == "divide" and is_any(y.low <= y.upp * _NARROWEST_DIVISOR):
        raise ValueError(
            "divide takes a divisor whose lower bound is more than 2**-200 of its upper bound, so not 0"
        )
    kernels = kernels_of(x.low)
    z = kernels.interval_arithmetic(operation, _flat(x), _flat(y), product_bounds(moduli))
    low, upp, exponent = (field.reshape(x.low.shape) for field in z)
    return IntervalEvaluation(low, upp, exponent)


def _flat(x: IntervalEvaluation) -> tuple[Array, Array, Array]:
    """Convert fields to contiguous vectors of the kernels' types."""
    fields = zip((x.low, x.upp, x.exponent), (np.float64, np.float64, np.int32), strict=True)
    low, upp, exponent = (field.reshape(-1).astype(dtype, order="C") for field, dtype in fields)
    return low, upp, exponent


def _check(x: IntervalEvaluation, shape: tuple[int, ...]) -> None:
    if not x.low.shape == x.upp.shape == x.exponent.shape == shape:
        raise ValueError(f"intervals must have one shape, got {x.low.shape} beside {shape}")
    if not is_all(x.low <= x.upp):
        raise ValueError("the lower bound of an interval must not be above its upper bound")
    for bound in (x.low, x.upp):
        size = abs(bound)
        if not is_all((size == 0) | ((size >= 1 / _GREATEST) & (size <= _GREATEST))):
            raise ValueError("bounds of intervals must be 0 or from 2**-500 to 2**500 in magnitude")
    if is_any((x.exponent < -MAX_EXPONENT) | (x.exponent > MAX_EXPONENT)):
        raise ValueError(f"exponents of intervals must be from {-MAX_EXPONENT} to {MAX_EXPONENT}")
