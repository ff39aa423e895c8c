"""Interval arithmetic of fractions X/M, rounded outwards, with exponents of its own: equation 3 of the paper.

K. Isupov and V. Knyazkov, "Efficient GPU Implementation of Multiple-Precision Addition based on Residue
Arithmetic" (2020). The results are the same bits on every processor.
"""

import numpy as np

from rnsdask.backend import INTERVAL_OPERATIONS, Array, kernels_of
from rnsdask.constants import MAX_EXPONENT, product_bounds
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.interval import IntervalEvaluation

# Bounds are at most this in magnitude, and at least its reciprocal: what is beyond belongs in the exponent.
_GREATEST = 2.0**500

# Lower bounds that are smaller, relative to the upper ones, count as 0 (kTiny in the kernels).
_NARROWEST_DIVISOR = 2.0**-200


def interval_arithmetic(
    operation: str, x: IntervalEvaluation, y: IntervalEvaluation, moduli: ModuliSet
) -> IntervalEvaluation:
    """Bounds of (X + Y)/M, (X - Y)/M, X Y/M or (X/Y)/M from bounds of X/M and Y/M.

    They contain the exact value for any two exponents, and are not limited to 0 to 1.

    Parameters
    ----------
    operation : {"add", "subtract", "multiply", "divide"}
        The operation.
    x, y : IntervalEvaluation
        Of arrays of one shape on one processor: bounds that are 0 or from 2**-500 to 2**500 in magnitude,
        exponents of magnitude up to 2**29. To multiply, X and Y are not negative; to divide, besides, the
        lower bound of Y is more than 2**-200 of its upper one.
    moduli : ModuliSet
        The set whose product is M.

    Returns
    -------
    IntervalEvaluation
        With the greater magnitude of the two bounds from 1/2 to less than 1.

    Raises
    ------
    TypeError
        If an operand is no IntervalEvaluation.
    ValueError
        If the operation is another one, shapes differ, or bounds or exponents are out of these limits.
    """
    if operation not in INTERVAL_OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(INTERVAL_OPERATIONS)}, got {operation!r}")
    for interval in (x, y):
        if not isinstance(interval, IntervalEvaluation):
            raise TypeError(f"{operation} takes IntervalEvaluations, got {type(interval).__name__}")
        _check(interval, x.low.shape)
    if operation in ("multiply", "divide") and bool((x.low < 0).any() or (y.low < 0).any()):
        raise ValueError(f"{operation} takes intervals of numbers that are not negative")
    if operation == "divide" and bool((y.low <= y.upp * _NARROWEST_DIVISOR).any()):
        raise ValueError(
            "divide takes a divisor whose lower bound is more than 2**-200 of its upper bound, so not 0"
        )
    kernels = kernels_of(x.low)
    z = kernels.interval_arithmetic(operation, _flat(x), _flat(y), product_bounds(moduli))
    low, upp, exponent = (field.reshape(x.low.shape) for field in z)
    return IntervalEvaluation(low, upp, exponent)


def _flat(x: IntervalEvaluation) -> tuple[Array, Array, Array]:
    """Fields as contiguous vectors of the kernels' types."""
    fields = zip((x.low, x.upp, x.exponent), (np.float64, np.float64, np.int32), strict=True)
    low, upp, exponent = (field.reshape(-1).astype(dtype, order="C") for field, dtype in fields)
    return low, upp, exponent


def _check(x: IntervalEvaluation, shape: tuple[int, ...]) -> None:
    if not x.low.shape == x.upp.shape == x.exponent.shape == shape:
        raise ValueError(f"intervals must have one shape, got {x.low.shape} beside {shape}")
    if not bool((x.low <= x.upp).all()):
        raise ValueError("the lower bound of an interval must not be above its upper bound")
    for bound in (x.low, x.upp):
        size = abs(bound)
        if not bool(((size == 0) | ((size >= 1 / _GREATEST) & (size <= _GREATEST))).all()):
            raise ValueError("bounds of intervals must be 0 or from 2**-500 to 2**500 in magnitude")
    if bool(((x.exponent < -MAX_EXPONENT) | (x.exponent > MAX_EXPONENT)).any()):
        raise ValueError(f"exponents of intervals must be from {-MAX_EXPONENT} to {MAX_EXPONENT}")
