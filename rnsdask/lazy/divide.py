"""Division of whole arrays, NumPy, CuPy or Dask, chunk by chunk (:mod:`rnsdask.rns.divide`)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core import ranges
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.core.ranges import Range
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.growing import grown, grows, known_ranges
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    integer_of,
    is_lazy_integer,
    is_number_array,
    made_like,
    prepare,
    scalar,
)
from rnsdask.lazy.promotion import fitted
from rnsdask.rns import divide
from rnsdask.rns.divide import Part
from rnsdask.rns.system import RNS


def divided(dividend: Operand, divisor: Operand, parts: tuple[Part, ...]) -> list[Any]:
    """Divide an array by an integer or an array, or an integer by an array.

    Returns
    -------
    list of arrays
        For each of `parts`; lazy if an array is.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit one another, or the divisor of unsigned numbers is negative.
    ZeroDivisionError
        If the divisor is the integer 0. One among an array's, and a lazy one, is found when the result is
        computed; its index is the first in its chunk.
    """
    options: dict[str, Any] = {}
    function: Callable[..., Any]
    if grows(*filter(is_number_array, (dividend, divisor))):
        dividend, divisor = _extended(dividend, divisor, parts)
    if is_number_array(divisor):
        both = prepare(dividend, divisor)
        system, function, blocks = both.system.with_bound(both.bounds[0]), _block_by_block, both.blocks
        options["divisor_bound"] = both.bounds[1]
        bounds = divide.bounds_by_array(both.bounds[0], both.bounds[1], system.signed)
    else:
        system, blocks = dividend.system, (dividend.words,)
        if is_lazy_integer(divisor):
            function, blocks = _block_by_lazy_integer, (as_lazy(*blocks), divisor)
            bounds = divide.bounds_by_array(system.bound, None, system.signed)
        else:
            function, options["divisor"] = _block_by_integer, scalar(divisor)
            divide.check_divisor(options["divisor"], system.signed)
            bounds = divide.bounds_by_integer(options["divisor"], system)
    n = system.rows
    options.update(system=system, parts=parts, rows=len(parts) * n, located=True)
    stacked = map_chunks(function, *blocks, **options)
    return [
        fitted(
            made_like(
                (dividend, divisor), stacked[i * n : (i + 1) * n], system.with_bound(bounds[part]), "raise"
            )
        )
        for i, part in enumerate(parts)
    ]


def _extended(dividend: Operand, divisor: Operand, parts: tuple[Part, ...]) -> tuple[Operand, Operand]:
    """Operands that have moduli, and a sign, for the quotients and remainders; a known divisor needs none."""

    def results(x: Range, y: Range) -> Range:
        low, high = ranges.floor_divide(x, y) if "quotient" in parts else (0, 0)
        if "remainder" in parts:
            ends = ranges.remainder(x, y)
            low, high = min(low, ends[0]), max(high, ends[1])
        return low, high

    if is_number_array(divisor):
        (dividend, divisor), _ = grown(results, None, dividend, divisor)
    elif is_lazy_integer(divisor):
        (known,) = known_ranges([dividend.system], [divisor])
        (dividend,), _ = grown(lambda x: results(x, known), None, dividend)
    else:
        y = scalar(divisor)
        (dividend,), _ = grown(lambda x: results(x, (y, y)), None, dividend)
        if y < 0 and not dividend.system.signed:
            (dividend,), _ = grown(lambda x: (-1, x[1]), None, dividend)
    return dividend, divisor


def _block_by_integer(
    block: Array, *, divisor: int, system: RNS, parts: tuple[Part, ...], place: Place
) -> Array:
    return divide.divide_by_integer(block, divisor, system, parts, place.flat_index)


def _block_by_lazy_integer(
    block: Array, divisor: Any, *, system: RNS, parts: tuple[Part, ...], place: Place
) -> Array:
    integer = integer_of(divisor)
    divide.check_divisor(integer, system.signed)
    return divide.divide_by_integer(block, integer, system, parts, place.flat_index)


def _block_by_block(
    x: Array, y: Array, *, system: RNS, divisor_bound: int | None, parts: tuple[Part, ...], place: Place
) -> Array:
    like = y if isinstance(x, np.ndarray) else x  # an integer comes as a NumPy array on any processor
    shape = (system.rows, *np.broadcast_shapes(x.shape[1:], y.shape[1:]))
    x, y = (np.broadcast_to(np.asarray(block, like=like), shape) for block in (x, y))
    return divide.floor_divide(x, y, system, parts, place.flat_index, divisor_bound)


def is_even(x: Numbers) -> Any:
    """Whether each number is even: a Boolean array, lazy on Dask."""
    return map_chunks(_is_even_block, x.words, dtype=np.bool_, system=x.system)


def _is_even_block(block: Array, *, system: RNS) -> Array:
    return divide.is_even(block, system)[None]


def shift(bits: Any) -> int:
    """Return the integer by which residues are shifted."""
    if getattr(bits, "ndim", 0) or isinstance(bits, list | tuple):
        raise TypeError(
            "residues are shifted by one integer, got an array; x.to_positional(bits) makes numbers that are "
            "shifted by one each"
        )
    return as_integer(bits, "shift")


def power_of_two(bits: Any, most: int) -> Any:
    """``2**bits``, or ``2**most`` for more bits than that; lazy if `bits` are."""
    if is_lazy_integer(bits):
        return map_values(_lazy_power_of_two, bits, most=most, dtype=object)
    count = shift(bits)
    if count < 0:
        raise ValueError(f"shift must not be negative, got {abbreviate(count)}")
    return 1 << min(count, most)


def _lazy_power_of_two(bits: Any, most: int) -> ScalarInt:
    return ScalarInt(power_of_two(integer_of(bits), most))
