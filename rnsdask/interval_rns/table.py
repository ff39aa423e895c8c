"""The table of signed integers with stored intervals."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.core.table import Entry, Table, ThroughRNS
from rnsdask.interval_rns import (
    arithmetic,
    convert,
    divide,
    layout,
    products,
    widening,
)
from rnsdask.interval_rns.products import IntervalProducts
from rnsdask.interval_rns.reduce import bit_length, ordering, reduce_columns
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.rns.decimal import residues_to_decimal
from rnsdask.rns.divide import is_even
from rnsdask.rns.number_theory import isqrt, of_pairs
from rnsdask.rns.powers import check_inverses, check_power
from rnsdask.rns.products import Factors, combine, factors_along
from rnsdask.rns.reduce import ReductionResult
from rnsdask.rns.system import RNS


def _of_moduli(function: Callable[..., Array]) -> Callable[..., Array]:
    """Adapt a function that takes moduli to one that takes the system, whose errors name its ways out."""

    def of_system(*blocks: Array, system: IntervalRNS, **how: Any) -> Array:
        result: Array = system.naming_ways_out(function, *blocks, moduli=system.moduli, **how)
        return result

    return of_system


def _sum(name: str) -> Entry:
    function = _of_moduli(lambda x, y, **how: arithmetic.apply(name, x, y, **how))
    return Entry(function, overflows=True, located=True, check=_check_sum)


def _check_sum(_: IntervalRNS, algorithm: int | str | None = None, **__: Any) -> None:
    arithmetic.check_algorithm(algorithm)


def _fused(name: str) -> Entry:
    function = _of_moduli(lambda *blocks, **how: widening.apply(name, blocks, **how))
    return Entry(function, overflows=True, located=True)


def _sign(x: Array, moduli: ModuliSet) -> Array:
    nonzero = layout.nonzero(x, moduli).astype(np.int8)
    return np.where(layout.is_negative(x, moduli), -nonzero, nonzero)


def _to_rns(x: Array, *, system: IntervalRNS, target: RNS, locate: Locate) -> Array:  # noqa: ARG001
    return convert.residues_of_columns(x, target, locate)


def _to_decimal(x: Array, moduli: ModuliSet) -> tuple[Array, Array]:
    limbs, _ = residues_to_decimal(layout.residues_of(x, moduli), moduli)
    return limbs, layout.is_negative(x, moduli)


def _residues_modulo(x: Array, moduli: ModuliSet) -> Array:
    residues = layout.residues_of(x, moduli)
    return np.where(layout.is_negative(x, moduli), layout.complement(residues, moduli), residues)


def _part(name: str) -> Callable[..., Array]:
    return lambda x, system: layout.part_of(x, system.moduli, name)


def _reduce(words: Array, *, system: IntervalRNS, operation: str) -> ReductionResult:
    return reduce_columns(operation, words, system.moduli)


def _is_even(x: Array, *, system: IntervalRNS) -> Array:
    return is_even(layout.residues_of(x, system.moduli), RNS(system.moduli))


def _bits_of_sum(x: Any, *_: Any, **__: Any) -> int:
    """Bits of a sum of all numbers of an array."""
    return int(x.system.moduli.bits + math.prod(x.words.shape[1:]).bit_length())


def _axis_factors(block: Array, *, system: IntervalRNS, mode: str, axes: tuple[int, ...]) -> Array:  # noqa: ARG001
    return factors_along(products.factors_of(block, system.moduli), system.moduli, axes)


def _product(factors: Factors, *, system: IntervalRNS, mode: str) -> Any:
    return system.naming_ways_out(products.result_of, factors, system, mode)


def _wide_system(system: IntervalRNS, bits: int | None) -> RNS:
    return widening.wide_system(system.moduli, system.moduli.bits if bits is None else bits)


def _bits_of_matmul(a: Any, b: Any) -> int:  # noqa: ARG001
    """Bits of a sum of as many products as a product of matrices adds."""
    return int(2 * a.system.moduli.bits + a.words.shape[-1].bit_length())


def _bits_of_convolution(a: Any, *_: Any) -> int:
    """Bits of a sum of as many products as a convolution adds, at most."""
    return int(2 * a.system.moduli.bits + max(a.words.shape).bit_length())


def _running_products(system: IntervalRNS, axis: int, mode: str) -> IntervalProducts:
    return IntervalProducts(RNS(system.moduli), axis, mode)


def _of_pairs(name: str) -> Entry:
    return Entry(lambda x, y, **how: of_pairs(name, x, y, **how), overflows=True, located=True)


def _check_power_modulo(x: Any, _: Any, modulus: int) -> None:
    highest = x.system.value_range[1]
    if abs(modulus) - 1 > highest:
        raise ValueError(
            f"powers modulo {abbreviate(modulus)} do not fit the moduli set, whose range ends at "
            f"{abbreviate(highest)}; x.extend(moduli) takes more moduli"
        )


def _check_divisor(_: IntervalRNS, divisor: int, **__: Any) -> None:
    if divisor == 0:
        raise ZeroDivisionError("division of an array by the integer 0")


TABLE: Table = {
    **{name: _sum(name) for name in ("add", "subtract", "multiply")},
    **{name: _fused(name) for name in ("fma", "mulsub", "muladd")},
    "negative": Entry(_of_moduli(arithmetic.negative)),
    "absolute": Entry(_of_moduli(arithmetic.absolute)),
    "compare": Entry(_of_moduli(arithmetic.compare), np.int8),
    "sign": Entry(_of_moduli(_sign), np.int8),
    "floor_divide": Entry(_of_moduli(divide.floor_divide), located=True),
    "floor_divide_by": Entry(_of_moduli(divide.divide_by_integer), located=True, check=_check_divisor),
    "reduce": Entry(_reduce, moves=False),  # nearly no residues are read, for intervals decide
    "extrema": ThroughRNS(),
    "sums": ThroughRNS(),
    "is_even": Entry(_is_even, np.bool_),
    "cumsum": ThroughRNS(_bits_of_sum),
    "cumprod": Entry(_running_products),
    "moments": ThroughRNS(),
    "matmul": ThroughRNS(_bits_of_matmul, overflows=True),
    "convolve": ThroughRNS(_bits_of_convolution, overflows=True),
    "cummax": ThroughRNS(),
    "cummin": ThroughRNS(),
    "axis_factors": Entry(_axis_factors),
    "join_axis_factors": Entry(lambda factors, system, axes: factors_along(factors, system.moduli, axes)),
    "axis_products": Entry(_of_moduli(products.finish)),
    "factor_rows": Entry(lambda system, mode: len(system.moduli) + 1),  # noqa: ARG005
    "factors": Entry(products.factors_of_chunk),
    "join_factors": Entry(lambda a, b, system: combine(a, b, system.moduli)),
    "product": Entry(_product),
    "ordering": Entry(_of_moduli(ordering)),
    "telling_rows": Entry(_of_moduli(layout.signed_residues_of)),
    "gcd": _of_pairs("gcd"),
    "lcm": _of_pairs("lcm"),
    "isqrt": Entry(isqrt, located=True),
    "bit_length": Entry(bit_length, np.int64),
    "from_rns": Entry(lambda x, system, given: convert.columns_of_residues(x, given)),  # noqa: ARG005
    "to_rns": Entry(_to_rns, located=True),
    "wide_system": Entry(_wide_system),
    "widened": Entry(_of_moduli(widening.widened)),
    "narrowed": Entry(_of_moduli(widening.narrowed), overflows=True, located=True),
    "residues_modulo": Entry(_of_moduli(_residues_modulo)),
    "change_moduli": Entry(_of_moduli(widening.change_moduli), located=True),
    **{f"part_{name}": Entry(_part(name), dtype) for name, dtype in layout.PART_DTYPES.items()},
    "power": Entry(_of_moduli(products.power), overflows=True, located=True, check=check_power),
    "power_by_array": Entry(_of_moduli(products.power_by_array), overflows=True, located=True),
    "power_modulo": ThroughRNS(check=_check_power_modulo),
    "inverse": Entry(_of_moduli(products.inverse), located=True, check=check_inverses),
    "to_decimal": Entry(_of_moduli(_to_decimal)),
}
"""Operations of numbers with intervals, by name."""
