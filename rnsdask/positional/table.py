"""The table of integers of a fixed number of bits."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnsdask.backend import Array, to_backend
from rnsdask.core.layout import as_matrix
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.place import Locate
from rnsdask.core.table import Entry, Table
from rnsdask.positional import arithmetic, bits, divide, modular, reduce, trees
from rnsdask.positional.reduce import ordering
from rnsdask.positional.system import Positional
from rnsdask.rns.compare import choose
from rnsdask.rns.number_theory import of_pairs
from rnsdask.rns.powers import check_power
from rnsdask.rns.reduce import ReductionResult


def _sum_of_products(name: str) -> Entry:
    def function(
        *blocks: Array, system: Positional, given: Sequence[Positional] | None = None, **how: Any
    ) -> Array:
        return arithmetic.apply(name, blocks, given or (system,) * len(blocks), system, **how)

    return Entry(function, overflows=True, located=True)


def _absolute(x: Array, *, system: Positional, mode: str, locate: Locate) -> Array:
    zero = np.zeros((len(x), *(1,) * (x.ndim - 1)), np.uint32)
    is_negative = x[-1:] >> np.uint32(31) != 0
    # Only numbers below 0 can have no opposite.
    opposite = arithmetic.apply("subtract", (zero, x), (system, system), system, mode, locate)
    chosen = choose(is_negative, opposite[: len(x)], x)
    return np.concatenate([chosen, opposite[len(x) :]]) if mode == "flag" else chosen


def _floor_divide(x: Array, y: Array, *, system: Positional, **how: Any) -> Array:
    return arithmetic.divided(x, y, (system, system), system, **how)


def _divide_by(x: Array, *, divisor: int, system: Positional, **how: Any) -> Array:
    given = Positional(max(1, divisor.bit_length() + (divisor < 0)), divisor < 0)
    return arithmetic.divided(x, given.column(divisor, x.ndim - 1), (system, given), system, **how)


def _check_divisor(_: Positional, divisor: int, **__: Any) -> None:
    if divisor == 0:
        raise ZeroDivisionError("division of an array by the integer 0")


def _logic(name: str) -> Entry:
    return Entry(lambda x, y, system: bits.logic(name, x, y))  # noqa: ARG005


def _modular(function: Callable[..., Array]) -> Entry:
    """An operation modulo the last operand."""

    def of_blocks(*blocks: Array, system: Positional, locate: Locate, **options: Any) -> Array:
        axes = np.broadcast_shapes(*(block.shape[1:] for block in blocks))
        like = next((block for block in blocks if not isinstance(block, np.ndarray)), blocks[0])
        on_one = [np.asarray(block, like=like) for block in blocks]
        found = function(*on_one, signed=system.signed, locate=locate, **options)
        return found.reshape(system.rows, *axes)

    return Entry(of_blocks, located=True)


def _mod_power_by_integer(x: Array, m: Array, *, exponent: int, **how: Any) -> Array:
    return modular.mod_power(x, exponent, m, **how)


def _reduce(words: Array, *, system: Positional, operation: str) -> ReductionResult:
    return reduce.reduce_words(operation, words, system)


def _running_extrema(minimum: bool) -> Callable[..., reduce.PositionalExtrema]:
    return lambda system, axis, line: reduce.PositionalExtrema(system, axis, minimum=minimum)  # noqa: ARG005


def _axis_factors(block: Array, *, system: Positional, mode: str, axes: tuple[int, ...]) -> Array:
    return arithmetic.factors_along(arithmetic.factors_of(block, system, mode), system, axes)


def _factors(words: Array, *, system: Positional, mode: str) -> Array:
    return to_backend(_axis_factors(as_matrix(words), system=system, mode=mode, axes=(0,)), "cpu")


def _product(factors: Array, *, system: Positional, mode: str) -> Any:
    words = arithmetic.finish(factors, system, mode)
    value = system.decode_at(words[: system.rows], 0)
    return (value, bool(words[-1, 0])) if mode == "flag" else value


def _count(what: str) -> Entry:
    return Entry(lambda x, system: bits.count(x, system, what), np.int64)


def _isqrt(x: Array, *, system: Positional, locate: Locate) -> Array:
    return divide.isqrt(x, system.signed, locate)


def _power(x: Array, *, exponent: int, **how: Any) -> Array:
    return arithmetic.power(x, exponent, **how)


TABLE: Table = {
    **{name: _sum_of_products(name) for name in OPERATIONS},
    **{name: _logic(name) for name in bits.LOGIC},
    "exact": Entry(arithmetic.result_system),
    "absolute": Entry(_absolute, overflows=True, located=True),
    "compare": Entry(reduce.compare, np.int8),
    "sign": Entry(reduce.sign, np.int8),
    "floor_divide": Entry(_floor_divide, located=True),
    "floor_divide_by": Entry(_divide_by, located=True, check=_check_divisor),
    "invert": Entry(bits.invert),
    "bitwise_count": _count("ones"),
    "bit_length": _count("length"),
    "left_shift": Entry(bits.left_shift, overflows=True, located=True),
    "right_shift": Entry(bits.right_shift, located=True),
    "is_even": Entry(lambda x, system: x[0] % 2 == 0, np.bool_),  # noqa: ARG005
    "random": Entry(arithmetic.random_limbs),
    "reduce": Entry(_reduce),
    "extrema": Entry(reduce.extrema),
    "sums": Entry(reduce.sums),
    "moments": Entry(reduce.moments),
    "cumsum": Entry(lambda system, axis, line: reduce.PositionalSums(system, axis)),  # noqa: ARG005
    "cumprod": Entry(reduce.PositionalProducts),
    "cummax": Entry(_running_extrema(minimum=False)),
    "cummin": Entry(_running_extrema(minimum=True)),
    "axis_factors": Entry(_axis_factors),
    "join_axis_factors": Entry(arithmetic.factors_along),
    "axis_products": Entry(arithmetic.finish),
    "factor_rows": Entry(lambda system, mode: system.rows + (mode != "wrap")),
    "factors": Entry(_factors),
    "join_factors": Entry(arithmetic.join),
    "product": Entry(_product),
    "ordering": Entry(ordering),
    "gcd": Entry(arithmetic.gcd, overflows=True, located=True),
    "lcm": Entry(lambda x, y, **how: of_pairs("lcm", x, y, **how), overflows=True, located=True),
    "isqrt": Entry(_isqrt, located=True),
    "product_tree": Entry(trees.Tree, located=True),
    **{
        function.__name__: _modular(function)
        for function in (
            *(modular.mod_add, modular.mod_subtract, modular.mod_multiply, modular.mod_inverse),
            *(modular.mod_power, modular.mod_power_by_array),
        )
    },
    "mod_power_by_integer": _modular(_mod_power_by_integer),
    "power": Entry(_power, overflows=True, located=True, check=check_power),
    "power_by_array": Entry(arithmetic.power, overflows=True, located=True),
}
"""Operations of limbs, by name; `exact` gives the system of exact sums and products of two others."""
