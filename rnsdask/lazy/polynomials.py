"""Polynomials over fields, lazy on Dask, by :mod:`.fields.polynomials` and related modules.

Coefficients are along the last axis, which becomes one chunk; the other axes, the batch, may have any chunks
and broadcast. Chunks of two operands are matched with an axis of coefficients for each.
"""

from collections.abc import Callable
from typing import Any

import dask.array as da

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.fields import polynomial_values, power_series, rational_functions
from rnsdask.fields.system import FiniteFields
from rnsdask.lazy.chunks import as_lazy, rechunk
from rnsdask.lazy.map import map_chunks, unify_chunks
from rnsdask.lazy.matrices import numbers_like
from rnsdask.lazy.operands import Operand, broadcast_shape
from rnsdask.lazy.widening import arrays_alike


def polynomials_alike(name: str, *operands: Operand, axes: int = 1) -> tuple[Any, ...]:
    """Convert polynomials, with `axes` axes of coefficients, to a common system.

    Raises
    ------
    TypeError, ValueError
        As :func:`.arrays_alike`, or if there are no coefficients, or other axes do not broadcast.
    """
    arrays = arrays_alike(name, *operands, row=rows.poly_divmod)
    for x in arrays:
        shape = tuple(x.words.shape[1:])
        if len(shape) < axes or 0 in shape[-axes:]:
            what = "two axes of coefficients" if axes == 2 else "an axis of coefficients"
            raise ValueError(f"{name} takes arrays with {what}, none of them empty, got shape {shape}")
    broadcast_shape([tuple(x.words.shape[1:-axes]) for x in arrays])
    return arrays


def pair_words(f: Any, g: Any, axes: int = 1) -> tuple[Any, Any, Any]:
    """Return words (rows, *batch, A, 1) and (rows, *batch, 1, C) of two arrays, with matching chunks.

    Two axes of coefficients become four instead of A and C. Each has one chunk.
    """
    ndim = max(f.words.ndim, g.words.ndim) - axes
    one, every = (None,) * axes, (slice(None),) * axes
    parts = []
    for words, last in ((f.words, every + one), (g.words, one + every)):
        if isinstance(words, da.Array):
            words = rechunk(words, dict.fromkeys(range(words.ndim - axes, words.ndim), -1))
        own = words.ndim - axes
        parts.append(words[(slice(None), *(None,) * (ndim - own), *(slice(None),) * (own - 1), *last)])
    if not any(isinstance(part, da.Array) for part in parts):
        return parts[0], parts[1], None
    along = tuple(range(ndim + 2 * axes))
    (x, y), found = unify_chunks(list(map(as_lazy, parts)), (along, along))
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
    """Apply a function to the chunks of two arrays: words (rows, *batch, length).

    With `located` it is also called with ``place=``, the :class:`.Place` of its chunk.
    """
    x, y, batch = pair_words(f, g)
    chunks = None if batch is None else (*batch, (1,), (length,))
    token = f"poly-{options.get('operation', function.__name__)}"
    how: dict[str, Any] = {"rows": rows, "chunks": chunks, "token": token, "located": located}
    return map_chunks(_pair_block, x, y, of_pair=function, **how, **options)[..., 0, :]


def _pair_block(x: Array, y: Array, *, of_pair: Callable[..., Array], **options: Any) -> Array:
    return of_pair(x[..., 0], y[..., 0, :], **options)[..., None, :]


def one_chunk(f: Any) -> Any:
    """Return words with the axis of coefficients in one chunk."""
    return rechunk(f.words, {f.words.ndim - 1: -1}) if isinstance(f.words, da.Array) else f.words


def map_each(function: Callable[..., Any], f: Any, length: int, rows: int | None, /, **options: Any) -> Any:
    """Apply a function to the chunks of an array: words (rows, *batch, length)."""
    words = one_chunk(f)
    chunks = (*words.chunks[1:-1], (length,)) if isinstance(words, da.Array) else None
    return map_chunks(function, words, rows=rows, chunks=chunks, **options)


def point_count(name: str, points: Any, values: Any) -> int:
    """Return the number of points; ValueError unless there are as many values."""
    if points.words.shape[-1] != values.words.shape[-1]:
        shapes = " and ".join(str(tuple(x.words.shape[1:])) for x in (points, values))
        raise ValueError(f"{name} takes as many values as points along the last axis, got shapes {shapes}")
    return int(points.words.shape[-1])


# ---- over fields ------------------------------------------------------------------------------------------


def resultant(f: Any, g: Any, *, variables: int = 1) -> Any:
    """Resultants of polynomials in one variable: a FieldArray, or an integer for one pair."""
    if variables != 1:
        raise TypeError("resultant takes integers in two variables, got elements of fields")
    how: dict[str, Any] = {"operation": rows.resultants.name, "system": f.system}
    return numbers_like(f, map_pairs(_values, f, g, 1, f.system.rows, False, **how)[..., 0])


def discriminant(f: Any) -> Any:
    """Discriminants: a FieldArray, or an integer for one polynomial."""
    how: dict[str, Any] = {"operation": rows.discriminants.name, "system": f.system}
    return numbers_like(f, map_each(_values, f, 1, f.system.rows, **how)[..., 0])


def common_divisor(f: Any, g: Any) -> Any:
    """Greatest common divisors, monic."""
    length, how = max(f.words.shape[-1], g.words.shape[-1]), {"operation": rows.common_divisors.name}
    return numbers_like(
        f, map_pairs(_polynomials, f, g, length, f.system.rows, False, system=f.system, **how)
    )


def divide(f: Any, g: Any) -> tuple[Any, Any]:
    """Quotients and remainders of polynomials."""
    first, second = f.words.shape[-1], max(g.words.shape[-1] - 1, 1)
    how: dict[str, Any] = {"operation": rows.divided.name, "system": f.system}
    packed = map_pairs(_polynomials, f, g, first + second, f.system.rows, **how)
    return numbers_like(f, packed[..., :first]), numbers_like(f, packed[..., first:])


def evaluate(f: Any, points: Any) -> Any:
    """Values of polynomials at points."""
    return _of_pairs(polynomial_values.values_at, f, points, points.words.shape[-1], False)


def interpolate(points: Any, values: Any) -> Any:
    """Polynomials of the least degree with values at points."""
    return _of_pairs(
        polynomial_values.interpolated, points, values, point_count("interpolate", points, values)
    )


def rational_interpolate(points: Any, values: Any, *, degrees: tuple[int, int]) -> tuple[Any, Any]:
    """Numerators and denominators of rational functions with values at points."""
    most = rational_functions.Degrees(*degrees)
    length, function = sum(most) + 2, rational_functions.rational_interpolated
    words = map_pairs(
        function, points, values, length, points.system.rows, fields=points.system, degrees=most
    )
    first = most.numerator + 1
    return numbers_like(points, words[..., :first]), numbers_like(points, words[..., first:])


def compose(f: Any, g: Any, *, length: int) -> Any:
    """Compositions f(g(x))."""
    return _of_pairs(power_series.compositions, f, g, length, False, length=length)


def power_mod(f: Any, g: Any, *, exponent: int) -> Any:
    """Powers modulo polynomials."""
    length = max(g.words.shape[-1] - 1, 1)
    return _of_pairs(power_series.powers_modulo, f, g, length, exponent=exponent)


def powers(f: Any, *, exponent: int, length: int) -> Any:
    """Powers of series."""
    return _of_series("power_mod", power_series.powers, f, length, located=False, exponent=exponent)


def inverse_series(f: Any, *, length: int) -> Any:
    """Inverses of series."""
    return _of_series("inverse_series", power_series.inverses, f, length)


def log_series(f: Any, *, length: int) -> Any:
    """Logarithms of series."""
    _check_characteristic("log_series", f.system, length)
    return _of_series("log_series", power_series.logarithms, f, length)


def exp_series(f: Any, *, length: int) -> Any:
    """Exponentials of series."""
    _check_characteristic("exp_series", f.system, length)
    return _of_series("exp_series", power_series.exponentials, f, length)


def _of_pairs(
    function: Callable[..., Any], f: Any, g: Any, length: int, located: bool = True, /, **options: Any
) -> Any:
    """Apply a function of chunks over any fields to two arrays: elements (*batch, length)."""
    words = map_pairs(function, f, g, length, f.system.rows, located, fields=f.system, **options)
    return numbers_like(f, words)


def _of_series(
    name: str, function: Callable[..., Any], f: Any, length: int, located: bool = True, **options: Any
) -> Any:
    """Apply a function of chunks over any fields to series; returns `length` coefficients."""
    how: dict[str, Any] = {"fields": f.system, "token": f"poly-{name}", "located": located, **options}
    return numbers_like(f, map_each(function, f, length, f.system.rows, length=length, **how))


def _check_characteristic(name: str, fields: FiniteFields, length: int) -> None:
    """Raise ValueError if a function would divide by 0: by an integer below `length` in a field."""
    least = min(fields.primes)
    if least < length:
        raise ValueError(
            f"{name} of {length} coefficients divides by 1 to {length - 1}, but {least} is 0 modulo {least}; "
            f"take primes of at least {length}"
        )


# ---- chunks -----------------------------------------------------------------------------------------------


def _polynomials(*blocks: Array, operation: str, system: FiniteFields, **options: Any) -> Array:
    found: Array = system.apply(rows.ROWS[operation], *blocks, **options)
    return found


def _values(*blocks: Array, **options: Any) -> Array:
    return _polynomials(*blocks, **options)[..., None]
