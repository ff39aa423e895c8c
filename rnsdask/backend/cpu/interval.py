"""Intervals of residues' fractions, and signed integers that carry one."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.arithmetic import apply
from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import INTERVAL_OPERATIONS, INTERVAL_RNS_ALGORITHMS, Array, Bounds, IntervalGoal
from rnsdask.constants import IntervalConstants, ProductBounds, modulus_table
from rnsdask.core.moduli import ModuliSet


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


def interval_rns_add(
    x: Array, y: Array, moduli: ModuliSet, subtract: bool, algorithm: int | str, accuracy: float, out: Array
) -> NDArray[np.uint8]:
    flags = np.empty(out.shape[1], dtype=np.uint8)
    selectors = np.empty(out.shape[1] if algorithm == "digits" else 0, dtype=np.uint32)
    how = (subtract, INTERVAL_RNS_ALGORITHMS[algorithm], accuracy)
    _cpu.interval_rns_add(x, y, modulus_table(moduli), *how, out, selectors, flags)
    return flags


def interval_rns_multiply(
    x: Array, y: Array, product: ProductBounds, accuracy: float, out: Array
) -> NDArray[np.uint8]:
    flags = np.empty(out.shape[1], dtype=np.uint8)
    n = len(product.moduli)
    apply("multiply", (x[:n], y[:n]), product.moduli, out[:n])
    bounds = (product.low, product.upp, product.exponent)
    _cpu.interval_rns_multiply_headers(x, y, *bounds, accuracy, out, flags)
    return flags


def interval_rns_first_invalid(x: Array, least_exponent: int, width: float) -> int | None:
    index: int = _cpu.interval_rns_first_invalid(x, least_exponent, width)
    return None if index < 0 else index


def interval_rns_lengths(x: Array, product: ProductBounds) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    lengths, decided = np.empty(x.shape[1], dtype=np.int64), np.empty(x.shape[1], dtype=np.uint8)
    _cpu.interval_rns_lengths(x, product.low, product.upp, product.exponent, lengths, decided)
    return lengths, decided.view(np.bool_)


def interval_rns_candidates(x: Array, bits: int, slack: int, minimum: bool) -> tuple[int, NDArray[np.int64]]:
    keys = np.empty(x.shape[1], dtype=np.int64)
    _cpu.interval_rns_order_keys(x, bits, keys)
    best = int(keys.min() if minimum else keys.max())
    return best, np.flatnonzero(keys <= best + slack if minimum else keys >= best - slack)


def interval_rns_compare(x: Array, y: Array, moduli: ModuliSet) -> NDArray[np.int8]:
    order = np.empty(max(x.shape[1], y.shape[1]), dtype=np.int8)
    _cpu.interval_rns_compare(x, y, len(moduli), order)
    return order
