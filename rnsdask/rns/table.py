"""The table of residue number systems."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.place import Locate
from rnsdask.core.ranges import Range
from rnsdask.core.table import Entry, Table
from rnsdask.rns import (
    arithmetic,
    axis,
    compare,
    divide,
    matmul,
    number_theory,
    powers,
    products,
    sort,
)
from rnsdask.rns import scan as scans
from rnsdask.rns.compare import absolute
from rnsdask.rns.decimal import decimal_to_words, words_to_decimal
from rnsdask.rns.divide import Part
from rnsdask.rns.random import random_residues
from rnsdask.rns.reduce import REDUCTIONS, ReductionResult, reduce_chunk
from rnsdask.rns.scan import LineScan, Scan
from rnsdask.rns.system import RNS


def _sum_of_products(name: str) -> Callable[..., Array]:
    return lambda *blocks, **how: arithmetic.apply(name, blocks, **how)


def _floor_divide(
    x: Array, y: Array, *, system: RNS, parts: Sequence[Part], locate: Locate, ranges: Sequence[Range]
) -> Array:
    like = y if isinstance(x, np.ndarray) else x  # one number is a NumPy array on any processor
    shape = (system.rows, *np.broadcast_shapes(x.shape[1:], y.shape[1:]))
    x, y = (np.broadcast_to(np.asarray(block, like=like), shape) for block in (x, y))
    dividends, divisors = (system.holding(known) for known in ranges)
    return divide.floor_divide(x, y, dividends, parts, locate, divisors.bound)


def _divide_by(x: Array, *, divisor: int, **how: Any) -> Array:
    divide.check_divisor(divisor, how["system"].signed)
    return divide.divide_by_integer(x, divisor, **how)


def _inverse(x: Array, *, system: RNS, locate: Locate) -> Array:
    return powers.inverse(x, system.moduli, locate)


def _reduce(words: Array, *, system: RNS, operation: str) -> ReductionResult:
    return reduce_chunk(REDUCTIONS[operation], words, system)


def _running_sums(system: RNS, axis: int, line: bool) -> Scan[RNS]:
    return LineScan(system, axis, operation="cumsum") if line else scans.AxisSums(system, axis)


def _running_extrema(minimum: bool) -> Callable[..., Scan[RNS]]:
    def scan(system: RNS, axis: int, line: bool) -> Scan[RNS]:
        if line:
            return LineScan(system, axis, operation="cummin" if minimum else "cummax")
        return scans.AxisExtrema(system, axis, minimum=minimum)

    return scan


def _axis_factors(block: Array, *, system: RNS, mode: str, axes: tuple[int, ...]) -> Array:
    factors = products.factors_of(block, system, mode)
    return products.factors_along(factors, system.moduli, axes)


def _join_axis_factors(factors: Array, *, system: RNS, axes: tuple[int, ...]) -> Array:
    return products.factors_along(factors, system.moduli, axes)


def _of_pairs(name: str) -> Entry:
    function = number_theory.of_pairs
    return Entry(lambda x, y, **how: function(name, x, y, **how), overflows=True, located=True)


TABLE: Table = {
    **{name: Entry(_sum_of_products(name), overflows=True, located=True, ranged=True) for name in OPERATIONS},
    "absolute": Entry(absolute, overflows=True, located=True),
    "compare": Entry(compare.compare, np.int8),
    "differ": Entry(compare.differ, np.bool_),
    "sign": Entry(compare.sign, np.int8),
    "floor_divide": Entry(_floor_divide, located=True, ranged=True),
    "floor_divide_by": Entry(
        _divide_by,
        located=True,
        check=lambda system, divisor, **_: divide.check_divisor(divisor, system.signed),
    ),
    "is_even": Entry(divide.is_even, np.bool_),
    "random": Entry(random_residues),
    "reduce": Entry(_reduce),
    "extrema": Entry(axis.extrema),
    "sums": Entry(axis.sums),
    "moments": Entry(axis.moments),
    "cumsum": Entry(_running_sums),
    "cumprod": Entry(scans.AxisProducts),
    "cummax": Entry(_running_extrema(minimum=False)),
    "cummin": Entry(_running_extrema(minimum=True)),
    "axis_factors": Entry(_axis_factors),
    "join_axis_factors": Entry(_join_axis_factors),
    "axis_products": Entry(products.finish),
    "factor_rows": Entry(lambda system, mode: system.rows + (mode != "wrap")),
    "factors": Entry(products.factors_of_chunk),
    "join_factors": Entry(lambda a, b, system: products.combine(a, b, system.moduli)),
    "product": Entry(products.result_of),
    "matmul": Entry(lambda x, y, system: matmul.multiply(x, y, system.moduli)),
    "ordering": Entry(sort.ordering),
    "select": Entry(sort.select),
    "telling_rows": Entry(lambda words, system: system.sufficient(words)[1]),
    "gcd": _of_pairs("gcd"),
    "lcm": _of_pairs("lcm"),
    "isqrt": Entry(number_theory.isqrt, located=True),
    "bit_length": Entry(number_theory.bit_length, np.int64),
    "residues_modulo": Entry(lambda x, system: x),  # noqa: ARG005
    "power": Entry(powers.power, overflows=True, located=True, plan=powers.plan),
    "power_by_array": Entry(powers.power_by_array, overflows=True, located=True),
    "power_modulo": Entry(powers.power_modulo, located=True),
    "power_modulo_by_array": Entry(powers.power_modulo_by_array, located=True),
    "inverse": Entry(_inverse, located=True, check=powers.check_inverses),
    "from_decimal": Entry(decimal_to_words),
    "to_decimal": Entry(words_to_decimal),
}
"""Operations of residues, by name."""
