"""Intervals of residues' fractions, and their arithmetic."""

import numpy as np

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import INTERVAL_OPERATIONS, Array, Bounds, IntervalGoal
from rnsdask.constants import IntervalConstants, ProductBounds


def interval(
    residues: Array, constants: IntervalConstants, goal: IntervalGoal
) -> tuple[Array, Array, Array, Array]:
    count = residues.shape[1]
    low, upp = np.empty(count, dtype=np.float64), np.empty(count, dtype=np.float64)
    exponent, steps = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.uint32)
    tables = (constants.last, constants.inverses, constants.powers, constants.reciprocals)
    scale = (goal.scale_low, goal.scale_upp, goal.scale_exponent)
    _cpu.interval(residues, *tables, goal.accuracy, *scale, goal.signed, low, upp, exponent, steps)
    return low, upp, exponent, steps


def interval_arithmetic(operation: str, x: Bounds, y: Bounds, product: ProductBounds) -> Bounds:
    z = tuple(np.empty_like(array) for array in x)
    bounds = (product.low, product.upp, product.exponent)
    _cpu.interval_arithmetic(INTERVAL_OPERATIONS.index(operation), *x, *y, *bounds, *z)
    return z
