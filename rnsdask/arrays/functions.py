"""Functions with NumPy's names that join and shape arrays of numbers, and others composed of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np

from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.moduli import as_integer
from rnsdask.core.overflow import chosen_mode, overflow_mode
from rnsdask.lazy import functions
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.elementwise import check_one_kind
from rnsdask.lazy.integer_operands import are_integers, with_arrays
from rnsdask.lazy.operands import (
    bring_to_common_system,
    common_system,
    find_lengths,
    is_number_array,
    make_alike,
)
from rnsdask.lazy.shape import index_along
from rnsdask.typing import Axis, Flag, Flagged, Integer, Integers, Overflow, PlainArray, Shape

N = TypeVar("N", bound=NumberArray)
"""Array class of the operands and the result."""

Nested: TypeAlias = N | list[N] | list[list[N]] | list[list[list[N]]]
"""An array, or lists of arrays nested in one another."""


def concatenate(arrays: Iterable[N | Integers], axis: SupportsIndex | None = 0) -> N:
    """Join arrays along an existing axis, as ``numpy.concatenate``.

    Parameters
    ----------
    arrays : iterable of RNSArray, or of IntervalRNSArray
        At least one; with the same moduli set and range, on the same processor, and of the same shape except
        along the axis. Lists and plain arrays of integers among them are converted to arrays like the first
        one.
    axis : int, optional
        The axis; with None the arrays are joined as their ``ravel()``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an array is. Its bound is the greatest of the arrays' bounds, or None if an array has no
        bound.

    Raises
    ------
    TypeError
        If an operand is not an array of numbers (integers are not), or arrays are of several kinds or on
        several processors.
    ValueError
        If there is no array, or moduli sets, ranges or shapes differ; AxisError, a ValueError, if the axis is
        out of range.
    """
    numbers = _check_alike("concatenate", arrays)
    if axis is None:
        numbers, axis = [x.ravel() for x in numbers], 0
    axis = axis_index(axis, numbers[0].ndim)
    # The other axes are compared without allocating numbers along the axis, whose lengths may differ.
    if len(numbers) > 1 and any(np.isnan(x.shape[k]) for x in numbers for k in range(x.ndim) if k != axis):
        find_lengths(*numbers)
    rests = [tuple(0 if k == axis else length for k, length in enumerate(x.shape)) for x in numbers]
    np.concatenate([shapes.model(rest) for rest in rests], axis)
    found: N = _make_like(numbers, shapes.join([x.words for x in numbers], axis))
    return found


def stack(arrays: Iterable[N | Integers], axis: SupportsIndex = 0) -> N:
    """Join arrays of one shape along a new axis, as ``numpy.stack``; otherwise as :func:`concatenate`."""
    numbers = _check_alike("stack", arrays, with_lengths=True)
    if len({x.shape for x in numbers}) > 1:
        raise ValueError(
            f"all arrays of a stack must have the same shape, got {brief([x.shape for x in numbers])}"
        )
    axis = axis_index(axis, numbers[0].ndim + 1)
    found: N = concatenate([expand_dims(x, axis) for x in numbers], axis)
    return found


def hstack(arrays: Iterable[N | Integers]) -> N:
    """Join arrays along their second axis, or vectors along their only one, as ``numpy.hstack``."""
    numbers = _check_alike("hstack", arrays)
    found: N = concatenate(numbers, 0 if numbers[0].ndim == 1 else 1)
    return found


def vstack(arrays: Iterable[N | Integers]) -> N:
    """Join arrays along their first axis, vectors as rows, as ``numpy.vstack``."""
    numbers = _check_alike("vstack", arrays)
    found: N = concatenate([expand_dims(x, 0) if x.ndim == 1 else x for x in numbers])
    return found


def block(arrays: Nested[N]) -> N:
    """Join nested lists of arrays side by side and one below another, as ``numpy.block``.

    Parameters
    ----------
    arrays : array, or nested lists of arrays
        The innermost lists are joined along the last axis, those around them along the one before, and so on.
        Arrays of fewer axes get new ones of length 1 in front.

    Returns
    -------
    RNSArray or IntervalRNSArray
        As :func:`concatenate` returns it; a single array is returned unchanged.

    Raises
    ------
    TypeError
        If tuples take the place of lists, or an item is not an array of numbers but, for example, an integer.
    ValueError
        If lists are not nested alike, or one is empty, or arrays do not go together.
    """
    depth, leaves = _flatten(arrays, "arrays")
    numbers = _check_alike("block", leaves)
    ndim = max(depth, *(x.ndim for x in numbers))
    found: N = _block(arrays, iter(numbers), ndim, ndim - depth)
    return found


def _flatten(arrays: Any, name: str) -> tuple[int, list[Any]]:
    """Return the depth of nested lists and their items; errors call the lists `name`."""
    if isinstance(arrays, tuple):
        raise TypeError(f"block takes nested lists, got a tuple as {name}")
    if not isinstance(arrays, list):
        return 0, [arrays]
    if not arrays:
        raise ValueError(f"block joins no empty list, got one as {name}")
    parts = [_flatten(item, f"{name}[{i}]") for i, item in enumerate(arrays)]
    depths = [depth for depth, _ in parts]
    if len(set(depths)) > 1:
        other = next(i for i, depth in enumerate(depths) if depth != depths[0])
        raise ValueError(
            f"block takes lists that are nested alike: {name}[0] is {depths[0]} deep, {name}[{other}] "
            f"{depths[other]}"
        )
    return 1 + depths[0], [leaf for _, leaves in parts for leaf in leaves]


def _block(arrays: Any, leaves: Iterator[Any], ndim: int, axis: int) -> Any:
    """Join nested lists of arrays, the outermost lists along `axis` of `ndim` axes."""
    if isinstance(arrays, list):
        return concatenate([_block(item, leaves, ndim, axis + 1) for item in arrays], axis)
    leaf = next(leaves)
    return expand_dims(leaf, tuple(range(ndim - leaf.ndim)))


def expand_dims(x: N, axis: Axis) -> N:
    """Insert axes of length 1, which are at `axis` of the result, as ``numpy.expand_dims``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    axis : int or tuple of int
        Position in the result.

    Returns
    -------
    array like `x`
        With its bound; a view of an eager array.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If an axis is named twice; AxisError, a ValueError, if the axis is out of range.
    """
    (x,) = _check_alike("expand_dims", [x])
    found: N = x._with_words(shapes.expand_dims(x.words, axis))
    return found


def broadcast_to(x: N, shape: Shape) -> N:
    """Repeat an array along its axes of length 1 and new leading axes, as ``numpy.broadcast_to``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    shape : int or tuple of int
        The shape of the result.

    Returns
    -------
    array like `x`
        With its bound; in memory it is a view, which takes no memory.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If the array does not broadcast to the shape.
    JobError
        If a lazy result would have more chunks than this process has memory for.
    """
    (x,) = _check_alike("broadcast_to", [x], with_lengths=True)
    found: N = x._with_words(shapes.broadcast_to(x.words, shape))
    return found


def tile(x: N, reps: Shape) -> N:
    """Repeat an array as a whole along each axis, as ``numpy.tile``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    reps : int or sequence of int
        Number of repetitions along the last axes; if there are more than axes, new axes come first.

    Returns
    -------
    array like `x`
        With its bound; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers, or `reps` are not integers.
    ValueError
        If one of them is negative.
    JobError
        If a lazy result would have more chunks than this process has memory for.
    """
    (x,) = _check_alike("tile", [x], with_lengths=True)
    found: N = x._with_words(shapes.tile(x.words, reps))
    return found


def pad(
    x: N,
    pad_width: SupportsIndex | Sequence[Any],
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    *,
    constant_values: SupportsIndex = 0,
) -> N:
    """Pad an array with one number, or with numbers of its own, as ``numpy.pad``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array. If it has a bound, the result's bound covers the padding too.
    pad_width : int, (before, after), or a pair for each axis
        Length of the padding.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        What the padding repeats, as in NumPy: one number; the number at the edge; the array mirrored at its
        last number, or behind it; or the opposite end.
    constant_values : int
        The number for ``"constant"``, the same on all sides.

    Returns
    -------
    array like `x`
        Each axis longer by its two widths; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers, or a width or the number is not an integer.
    ValueError
        If a width is negative, widths do not fit the axes, the number is out of range, the mode is unknown,
        or an axis has no numbers to repeat.
    JobError
        If a lazy result would have more chunks than this process has memory for.
    """
    (x,) = _check_alike("pad", [x], with_lengths=True)
    widths, value = shapes.pad_widths(pad_width, x.words), as_integer(constant_values, "constant_values")
    if mode != "constant":
        for axis, sides in enumerate(widths):
            places = shapes.repeated_places(mode, x.shape[axis], sides)
            before, after = (x.take(some, axis=axis) for some in places)
            x = concatenate([before, x, after], axis) if any(sides) else x
        return x
    (x,) = bring_to_common_system(x, value)[:1]
    words = shapes.pad(x.words, widths, x.system.column(value, x.ndim))
    bound = x.system.bound
    found: N = type(x)(words, x.system.with_bound(None if bound is None else max(bound, abs(value))))
    return found


def split(x: N, indices_or_sections: Shape, axis: SupportsIndex = 0) -> list[N]:
    """Split an array along an axis into several, as ``numpy.split``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    indices_or_sections : int, or sequence of int
        The number of parts of equal length, or the index at which each part but the first begins.
    axis : int
        The axis to split.

    Returns
    -------
    list of arrays like `x`
        With its bound; views of an eager array.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If the parts are not equal; AxisError, a ValueError, if the axis is out of range.
    """
    (x,) = _check_alike("split", [x], with_lengths=True)
    return [x._with_words(words) for words in shapes.split(x.words, indices_or_sections, axis)]


def _check_alike(function: str, arrays: Iterable[Any], *, with_lengths: bool = False) -> list[Any]:
    """Check that arrays share one system and one processor, and compute their lengths if asked."""
    if isinstance(arrays, NumberArray) and arrays.ndim == 1:  # its items are integers, maybe many
        raise TypeError(f"{function} takes a sequence of arrays, got one {type(arrays).__name__}")
    numbers = list(with_arrays(*arrays))
    for position, x in enumerate(numbers):
        if not isinstance(x, NumberArray):
            place = f" at position {position}" if len(numbers) > 1 else ""
            raise TypeError(f"{function} takes arrays of numbers, got {type(x).__name__}{place}")
    if not numbers:
        raise ValueError(f"{function} needs at least one array")
    check_one_kind(*numbers)
    numbers = list(make_alike(*numbers))
    if with_lengths:
        find_lengths(*numbers)
    return numbers


def _make_like(numbers: Sequence[Any], words: Any) -> Any:
    """Make an array of the joined words of arrays, with the greatest of their bounds if all have bounds."""
    bounds = [x.system.bound for x in numbers]
    system = common_system(*numbers).with_bound(None if None in bounds else max(bounds))
    return type(numbers[0])(words, system)


@overload
def count_nonzero(x: N, axis: None = None, *, keepdims: Literal[False] = False) -> Integer: ...
@overload
def count_nonzero(x: N, axis: Axis | None = None, *, keepdims: bool = False) -> PlainArray[np.int64]: ...
def count_nonzero(
    x: N, axis: Axis | None = None, *, keepdims: bool = False
) -> Integer | PlainArray[np.int64]:
    """Count the numbers other than 0, in all or along axes, as ``numpy.count_nonzero``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    axis : int or tuple of int, optional
        The axes to reduce; all without it.
    keepdims : bool
        Keep the axes reduced, with length 1.

    Returns
    -------
    int, or array of int64
        An int for all numbers; along axes, or with `keepdims`, a NumPy or CuPy array; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If an axis is wrong.
    """
    numbers = _checked_array("count_nonzero", x, NumberArray)
    axes, is_nonzero = numbers._axes(axis), numbers != 0
    if axes:
        counts = is_nonzero.sum(axis=axes, dtype=np.int64, keepdims=keepdims)
    else:
        counts = is_nonzero.astype(np.int64)
    if not counts.ndim and not numbers._is_lazy:
        counts = int(counts)
    found: Integer | PlainArray[np.int64] = counts
    return found


@overload
def diff(
    x: N,
    n: SupportsIndex = 1,
    axis: SupportsIndex = -1,
    prepend: N | Integers | None = None,
    append: N | Integers | None = None,
    *,
    overflow: Overflow | None = None,
) -> N: ...
@overload
def diff(
    x: N,
    n: SupportsIndex = 1,
    axis: SupportsIndex = -1,
    prepend: N | Integers | None = None,
    append: N | Integers | None = None,
    *,
    overflow: Flag,
) -> Flagged[N]: ...
def diff(
    x: N,
    n: SupportsIndex = 1,
    axis: SupportsIndex = -1,
    prepend: N | Integers | None = None,
    append: N | Integers | None = None,
    *,
    overflow: Overflow | Flag | None = None,
) -> N | Flagged[N]:
    """Subtract from each number its predecessor along an axis, as ``numpy.diff``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    n : int
        Number of repetitions; 0 returns `x`. Intermediate differences must be in range too.
    axis : int
        The axis; the result is shorter by `n` along it.
    prepend, append : array like `x`, or int, optional
        Numbers to join before and after `x` along the axis first; an integer adds one number at each place.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to differences out of range, as in :func:`.subtract`; ``"flag"`` goes with ``n=1``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if `x` is. With ``"flag"`` a pair, as from :func:`.subtract`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a difference is out of range, as when numbers of an unsigned array decrease; on
        Dask when it is computed.
    TypeError, ValueError
        If the arguments are not of these types, or do not fit one another, or a length is unknown; AxisError,
        a ValueError, if the axis is out of range.
    """
    x = _checked_array("diff", x, NumberArray)
    times, mode = as_integer(n, "n"), chosen_mode(overflow, x.system)
    if times < 0:
        raise ValueError(f"n must not be negative, got {abbreviate(times)}")
    if times != 1 and mode == "flag" == overflow_mode(overflow, x.system):
        raise ValueError(f'diff with overflow="flag" takes n=1, got {abbreviate(times)}: apply it n times')
    axis = axis_index(axis, x.ndim)
    if times == 0:
        return x
    numbers = _join(x, axis, prepend, append)
    numbers._find_lengths()
    for _ in range(min(times, max(numbers.shape[axis], 1))):
        later, earlier = (numbers[index_along(axis, part)[1:]] for part in (slice(1, None), slice(-1)))
        numbers = functions.subtract(later, earlier, overflow=overflow)
    found: N | Flagged[N] = numbers
    return found


def _join(x: NumberArray, axis: int, prepend: Any, append: Any) -> Any:
    """Join an array, or one integer at each place, before and after an array along an axis."""
    for value, side in ((prepend, 0), (append, 1)):
        if is_number_array(value) or are_integers(value):
            x = concatenate((value, x) if side == 0 else (x, value), axis)
        elif value is not None:
            width = (1 - side, side)
            x = pad(x, [width if k == axis else (0, 0) for k in range(x.ndim)], constant_values=value)
    return x


@overload
def ptp(x: N, axis: None = None, *, keepdims: Literal[False] = False) -> Integer: ...
@overload
def ptp(x: N, axis: Axis | None = None, *, keepdims: bool = False) -> N: ...
def ptp(x: N, axis: Axis | None = None, *, keepdims: bool = False) -> Integer | N:
    """Maximum minus minimum of all numbers or along axes, as ``numpy.ptp``.

    Parameters
    ----------
    x : array of numbers
        Of any number system that has an order.
    axis : int or tuple of int, optional
        The axes to reduce; all without it.
    keepdims : bool
        Keep the axes reduced, with length 1.

    Returns
    -------
    int, or array like `x`
        For all numbers an int of any size; on Dask a lazy 0-d array that computes to one. Along axes a
        difference as from :func:`.subtract`, lazy if `x` is.

    Raises
    ------
    RNSOverflowError
        If a difference along axes is out of range, which is possible if `x` is signed.
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If an axis is wrong, or there are no numbers to choose from.
    """
    numbers = _checked_array("ptp", x)
    options = {"keepdims": True} if keepdims else {}
    found: Integer | N = numbers.max(axis, **options) - numbers.min(axis, **options)
    return found


@overload
def outer(a: N | Integers, b: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def outer(a: N | Integers, b: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def outer(a: N | Integers, b: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Multiply each number of `a` by each number of `b`, as ``numpy.outer``.

    Parameters
    ----------
    a, b : RNSArray or IntervalRNSArray
        Both of one kind, of any shapes; otherwise as :func:`.multiply` takes them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As in :func:`.multiply`.

    Returns
    -------
    array like `a`, shape (a.size, b.size)
        Lazy if an operand is. With ``"flag"`` a pair, as from :func:`.multiply`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an operand is not an array, operands do not fit one another, or a length is unknown.
    """
    x, y = (_checked_array("outer", operand, NumberArray).ravel() for operand in with_arrays(a, b))
    mode: Any = overflow
    found: N | Flagged[N] = functions.multiply(x[:, None], y[None], overflow=mode)
    return found


def _checked_array(function: str, x: Any, kind: type[NumberArray] = IntegerArray) -> Any:
    if not isinstance(x, kind):
        raise TypeError(f"{function} takes an array of numbers, got {type(x).__name__}")
    return x
