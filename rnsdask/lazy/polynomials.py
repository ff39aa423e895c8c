"""Polynomials over fields, lazy on Dask (:mod:`.fields.polynomials`, :mod:`.fields.polynomial_values`).

Coefficients lie along the last axis, which becomes one chunk; all others, the batch, are in any chunks and
broadcast. Chunks of two operands go together with their last axes side by side.
"""

from collections.abc import Callable
from typing import Any

import dask.array as da

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.place import Place
from rnsdask.core.ways import must
from rnsdask.fields import polynomial_values, rational_functions
from rnsdask.fields.system import FiniteFields
from rnsdask.lazy.chunks import as_lazy, rechunked
from rnsdask.lazy.elementwise import check_one_kind
from rnsdask.lazy.elimination import number_or_array
from rnsdask.lazy.map import map_chunks, unified
from rnsdask.lazy.operands import (
    broadcast_shape,
    find_lengths,
    is_number_array,
    made_alike,
    made_like,
)


def checked_operands(name: str, *arrays: Any, axes: int = 1) -> tuple[Any, ...]:
    """Arrays in one system, TypeError or ValueError unless they have one, and polynomials."""
    for x in arrays:
        if not is_number_array(x):
            kind = type(x).__name__
            raise TypeError(f"{name} takes arrays of numbers, got {kind}; rd.from_ints makes them")
    check_one_kind(*arrays, row=rows.matmul)
    arrays = made_alike(*arrays)
    find_lengths(*arrays)
    for x in arrays:
        shape = tuple(x.words.shape[1:])
        if len(shape) < axes or 0 in shape[-axes:]:
            what = "two axes of coefficients" if axes == 2 else "an axis of coefficients"
            raise ValueError(f"{name} takes arrays with {what}, none of them empty, got shape {shape}")
    broadcast_shape([tuple(x.words.shape[1:-axes]) for x in arrays])
    return arrays


def side_by_side(f: Any, g: Any, axes: int = 1) -> tuple[Any, Any, Any]:
    """Words (rows, *batch, A, 1) and (rows, *batch, 1, C) of two arrays; if lazy, the chunks of the batch.

    With two axes of coefficients there are four in the place of A and C. They are one chunk each.
    """
    ndim = max(f.words.ndim, g.words.ndim) - axes
    one, every = (None,) * axes, (slice(None),) * axes
    parts = []
    for words, last in ((f.words, every + one), (g.words, one + every)):
        if isinstance(words, da.Array):
            words = rechunked(words, dict.fromkeys(range(words.ndim - axes, words.ndim), -1))
        own = words.ndim - axes
        parts.append(words[(slice(None), *(None,) * (ndim - own), *(slice(None),) * (own - 1), *last)])
    if not any(isinstance(part, da.Array) for part in parts):
        return parts[0], parts[1], None
    along = tuple(range(ndim + 2 * axes))
    (x, y), found = unified(list(map(as_lazy, parts)), (along, along))
    return x, y, tuple(found[axis] for axis in along[1:ndim])


def map_pairs(
    function: Callable[..., Any],
    f: Any,
    g: Any,
    length: int,
    rows: int | None,
    located: bool = True,
    /,
    **options: Any,
) -> Any:
    """Words (rows, *batch, length) that a function gives of the chunks of two arrays.

    If it is `located`, it is also called with ``place=``, the :class:`.Place` of its chunk.
    """
    x, y, batch = side_by_side(f, g)
    chunks = None if batch is None else (*batch, (1,), (length,))
    token = f"poly-{function.__name__}"
    how: dict[str, Any] = {"rows": rows, "chunks": chunks, "token": token, "located": located}
    return map_chunks(_pair_block, x, y, of_pair=function, **how, **options)[..., 0, :]


def _pair_block(x: Array, y: Array, *, of_pair: Callable[..., Array], **options: Any) -> Array:
    return of_pair(x[..., 0], y[..., 0, :], **options)[..., None, :]


# ---- pairs ------------------------------------------------------------------------------------------------


def resultant(f: Any, g: Any) -> Any:
    """Resultants of polynomials over fields: a FieldArray, of one pair an integer."""
    return number_or_array(f, map_pairs(_resultants, f, g, 1, f.system.rows, False, system=f.system)[..., 0])


def discriminant(f: Any) -> Any:
    """Discriminants of polynomials over fields: a FieldArray, of one an integer."""
    words = one_chunk(f)
    chunks = (*words.chunks[1:-1], (1,)) if isinstance(words, da.Array) else None
    options = {"rows": f.system.rows, "chunks": chunks, "system": f.system}
    return number_or_array(f, map_chunks(_discriminants, words, **options)[..., 0])


def one_chunk(f: Any) -> Any:
    """Words with the axis of coefficients in one chunk."""
    return rechunked(f.words, {f.words.ndim - 1: -1}) if isinstance(f.words, da.Array) else f.words


def common_divisor(f: Any, g: Any) -> Any:
    """Greatest common divisors, monic."""
    length = max(f.words.shape[-1], g.words.shape[-1])
    words = map_pairs(_common_divisors, f, g, length, f.system.rows, False, system=f.system)
    return made_like((f,), words, f.system, "raise")


def divided(f: Any, g: Any) -> tuple[Any, Any]:
    """Quotients and remainders."""
    first, second = f.words.shape[-1], max(g.words.shape[-1] - 1, 1)
    packed = map_pairs(_divided, f, g, first + second, f.system.rows, system=f.system)
    quotients, remainders = (
        made_like((f,), part, f.system, "raise") for part in (packed[..., :first], packed[..., first:])
    )
    return quotients, remainders


def evaluate(f: Any, points: Any) -> Any:
    """Values of polynomials at points of any fields."""
    words = map_pairs(
        polynomial_values.values_at, f, points, points.words.shape[-1], f.system.rows, False, fields=f.system
    )
    return made_like((f,), words, f.system, "raise")


def interpolate(points: Any, values: Any) -> Any:
    """Polynomials of the least degree with values at points of any fields."""
    length, system = point_count("interpolate", points, values), points.system
    words = map_pairs(polynomial_values.interpolated, points, values, length, system.rows, fields=system)
    return made_like((points,), words, system, "raise")


def point_count(name: str, points: Any, values: Any) -> int:
    """Count points; ValueError unless there are as many values."""
    if points.words.shape[-1] != values.words.shape[-1]:
        shapes = " and ".join(str(tuple(x.words.shape[1:])) for x in (points, values))
        raise ValueError(f"{name} takes as many values as points along the last axis, got shapes {shapes}")
    return int(points.words.shape[-1])


def rational_interpolate(
    points: Any, values: Any, numerator: int | None, denominator: int | None, confirm: int | None
) -> tuple[Any, Any]:
    """Numerators and denominators of rational functions with values at points of any fields."""
    count, system = point_count("rational_interpolate", points, values), points.system
    degrees = _degrees(count, numerator, denominator, confirm)
    length = sum(degrees) + 2
    words = map_pairs(
        rational_functions.rational_interpolated,
        points,
        values,
        length,
        system.rows,
        fields=system,
        degrees=degrees,
    )
    first = degrees.numerator + 1
    numerators, denominators = (
        made_like((points,), part, system, "raise") for part in (words[..., :first], words[..., first:])
    )
    return numerators, denominators


def _degrees(
    count: int, numerator: int | None, denominator: int | None, confirm: int | None
) -> rational_functions.Degrees:
    """Degrees that points allow, where some of them confirm the function."""
    for name, value in (("numerator_degree", numerator), ("denominator_degree", denominator)):
        if value is not None and value < 0:
            raise ValueError(must(name, f"be at least 0, got {value}"))
    given = [degree for degree in (numerator, denominator) if degree is not None]
    extra = int(len(given) < 2) if confirm is None else confirm
    if extra < 0:
        raise ValueError(f"confirm must be at least 0, got {extra}")
    left = count - 1 - extra - sum(given)
    if left < 0:
        known = " and ".join(map(str, given)) or 0
        raise ValueError(
            f"degrees of {known} take {sum(given) + 1} points, and {extra} more to confirm, got {count}"
        )
    if numerator is None:
        numerator = (left + 1) // 2 if denominator is None else left
        left -= numerator
    return rational_functions.Degrees(numerator, left if denominator is None else denominator)


# ---- chunks -----------------------------------------------------------------------------------------------


def _resultants(f: Array, g: Array, *, system: FiniteFields) -> Array:
    found: Array = system.apply(rows.resultants, f, g)
    return found[..., None]


def _discriminants(f: Array, *, system: FiniteFields) -> Array:
    found: Array = system.apply(rows.discriminants, f)
    return found[..., None]


def _common_divisors(f: Array, g: Array, *, system: FiniteFields) -> Array:
    found: Array = system.apply(rows.common_divisors, f, g)
    return found


def _divided(f: Array, g: Array, *, system: FiniteFields, place: Place) -> Array:
    found: Array = system.apply(rows.divided, f, g, place=place)
    return found
