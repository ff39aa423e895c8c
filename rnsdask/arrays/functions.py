"""Functions with NumPy's names that join and shape arrays of numbers, and elementary ones made of others."""

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
    common_system,
    find_lengths,
    in_common_system,
    is_number_array,
    made_alike,
)
from rnsdask.lazy.shape import along
from rnsdask.typing import Axis, Flag, Flagged, Integer, Integers, Overflow, PlainArray, Shape

N = TypeVar("N", bound=NumberArray)
"""The class of arrays that are operands and result."""

Nested: TypeAlias = N | list[N] | list[list[N]] | list[list[list[N]]]
"""An array, or lists of arrays nested in one another."""


def concatenate(arrays: Iterable[N | Integers], axis: SupportsIndex | None = 0) -> N:
    """Join arrays along an axis that they have, as ``numpy.concatenate``.

    Parameters
    ----------
    arrays : iterable of RNSArray, or of IntervalRNSArray
        At least one; of the same moduli set and range, on the same processor, and of the same shape but for
        the axis. Lists and plain arrays of integers among them stand for arrays like the first one.
    axis : int, optional
        The axis; with None the arrays are joined as their ``ravel()``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an array is. Its bound is the greatest of the arrays' bounds, or None if one of them has none.

    Raises
    ------
    TypeError
        If an operand is not an array of numbers (integers are not), or arrays are of several kinds or on
        several processors.
    ValueError
        If there is no array, or moduli sets, ranges or shapes differ; AxisError, a ValueError, if the axis is
        out of range.
    """
    numbers = _checked("concatenate", arrays)
    if axis is None:
        numbers, axis = [x.ravel() for x in numbers], 0
    axis = axis_index(axis, numbers[0].ndim)
    # Without numbers along the axis, whose lengths may differ, nothing is allocated to check the others.
    if len(numbers) > 1 and any(np.isnan(x.shape[k]) for x in numbers for k in range(x.ndim) if k != axis):
        find_lengths(*numbers)
    rests = [tuple(0 if k == axis else length for k, length in enumerate(x.shape)) for x in numbers]
    np.concatenate([shapes.model(rest) for rest in rests], axis)
    found: N = _like(numbers, shapes.joined([x.words for x in numbers], axis))
    return found


def stack(arrays: Iterable[N | Integers], axis: SupportsIndex = 0) -> N:
    """Join arrays of one shape along a new axis, as ``numpy.stack``; otherwise as :func:`concatenate`."""
    numbers = _checked("stack", arrays, with_lengths=True)
    if len({x.shape for x in numbers}) > 1:
        raise ValueError(
            f"all arrays of a stack must have the same shape, got {brief([x.shape for x in numbers])}"
        )
    axis = axis_index(axis, numbers[0].ndim + 1)
    found: N = concatenate([expand_dims(x, axis) for x in numbers], axis)
    return found


def hstack(arrays: Iterable[N | Integers]) -> N:
    """Join arrays along their second axis, or vectors along their only one, as ``numpy.hstack``."""
    numbers = _checked("hstack", arrays)
    found: N = concatenate(numbers, 0 if numbers[0].ndim == 1 else 1)
    return found


def vstack(arrays: Iterable[N | Integers]) -> N:
    """Join arrays along their first axis, vectors as rows, as ``numpy.vstack``."""
    numbers = _checked("vstack", arrays)
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
        As :func:`concatenate` gives it; one array alone as it is, with as many axes.

    Raises
    ------
    TypeError
        If lists are tuples, or something else than an array of numbers is in them, also an integer.
    ValueError
        If lists are not nested alike, or one is empty, or arrays do not go together.
    """
    depth, leaves = _nested(arrays, "arrays")
    numbers = _checked("block", leaves)
    ndim = max(depth, *(x.ndim for x in numbers))
    found: N = _block(arrays, iter(numbers), ndim, ndim - depth)
    return found


def _nested(arrays: Any, name: str) -> tuple[int, list[Any]]:
    """Return the depth of nested lists and their items; errors call the lists `name`."""
    if isinstance(arrays, tuple):
        raise TypeError(f"block takes nested lists, got a tuple as {name}")
    if not isinstance(arrays, list):
        return 0, [arrays]
    if not arrays:
        raise ValueError(f"block joins no empty list, got one as {name}")
    parts = [_nested(item, f"{name}[{i}]") for i, item in enumerate(arrays)]
    depths = [depth for depth, _ in parts]
    if len(set(depths)) > 1:
        other = next(i for i, depth in enumerate(depths) if depth != depths[0])
        raise ValueError(
            f"block takes lists that are nested alike: {name}[0] is {depths[0]} deep, {name}[{other}] "
            f"{depths[other]}"
        )
    return 1 + depths[0], [leaf for _, leaves in parts for leaf in leaves]


def _block(arrays: Any, leaves: Iterator[Any], ndim: int, axis: int) -> Any:
    """Join nested lists of these leaves, the outermost along `axis` of `ndim` ones."""
    if isinstance(arrays, list):
        return concatenate([_block(item, leaves, ndim, axis + 1) for item in arrays], axis)
    leaf = next(leaves)
    return expand_dims(leaf, tuple(range(ndim - leaf.ndim)))


def expand_dims(x: N, axis: Axis) -> N:
    """The array with new axes of length 1, which are at `axis` of the result, as ``numpy.expand_dims``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    axis : int or tuple of int
        Counted in the result.

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
    (x,) = _checked("expand_dims", [x])
    found: N = x._with_words(shapes.expand_dims(x.words, axis))
    return found


def broadcast_to(x: N, shape: Shape) -> N:
    """The array with its axes of length 1, and new ones before all, repeated, as ``numpy.broadcast_to``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    shape : int or tuple of int
        The shape of the result.

    Returns
    -------
    array like `x`
        With its bound; an eager one is a view, which takes no memory.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If the array does not broadcast to the shape.
    JobError
        If a lazy result would have more chunks than this process has memory for.
    """
    (x,) = _checked("broadcast_to", [x], with_lengths=True)
    found: N = x._with_words(shapes.broadcast_to(x.words, shape))
    return found


def tile(x: N, reps: Shape) -> N:
    """The array repeated as a whole along each axis, as ``numpy.tile``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    reps : int or sequence of int
        How often, along the last axes; more of them than axes make new ones in front.

    Returns
    -------
    array like `x`
        With its bound; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers, or `reps` are no integers.
    ValueError
        If one of them is negative.
    JobError
        If a lazy result would have more chunks than this process has memory for.
    """
    (x,) = _checked("tile", [x], with_lengths=True)
    found: N = x._with_words(shapes.tile(x.words, reps))
    return found


def pad(
    x: N,
    pad_width: SupportsIndex | Sequence[Any],
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    *,
    constant_values: SupportsIndex = 0,
) -> N:
    """The array with one number around it, or with numbers of its own, as ``numpy.pad``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array. If it has a bound, that of the result holds for the number around it too.
    pad_width : int, (before, after), or a pair for each axis
        How many numbers.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        With ``"constant"`` one number; with the others those at the edge, those beyond it as in a mirror that
        lies on the edge or behind it, or those of the other end, as NumPy's modes of these names.
    constant_values : int
        The number of ``"constant"``, the same on all sides.

    Returns
    -------
    array like `x`
        Each axis longer by its two widths; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers, or a width or the number is no integer.
    ValueError
        If a width is negative, widths do not suit the axes, the number is out of range, the mode is another,
        or an axis has no numbers to repeat.
    JobError
        If a lazy result would have more chunks than this process has memory for.
    """
    (x,) = _checked("pad", [x], with_lengths=True)
    widths, value = shapes.pad_widths(pad_width, x.words), as_integer(constant_values, "constant_values")
    if mode != "constant":
        for axis, sides in enumerate(widths):
            places = shapes.repeated_places(mode, x.shape[axis], sides)
            before, after = (x.take(some, axis=axis) for some in places)
            x = concatenate([before, x, after], axis) if any(sides) else x
        return x
    (x,) = in_common_system(x, value)[:1]
    words = shapes.pad(x.words, widths, x.system.column(value, x.ndim))
    bound = x.system.bound
    found: N = type(x)(words, x.system.with_bound(None if bound is None else max(bound, abs(value))))
    return found


def split(x: N, indices_or_sections: Shape, axis: SupportsIndex = 0) -> list[N]:
    """Arrays that make up this one along an axis, as ``numpy.split``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    indices_or_sections : int, or sequence of int
        The number of parts of equal length, or where along the axis each part but the first begins.
    axis : int
        The axis that is cut.

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
    (x,) = _checked("split", [x], with_lengths=True)
    return [x._with_words(words) for words in shapes.split(x.words, indices_or_sections, axis)]


def _checked(function: str, arrays: Iterable[Any], *, with_lengths: bool = False) -> list[Any]:
    """Check that arrays are of one system on one processor, and find their lengths if asked."""
    if isinstance(arrays, NumberArray) and arrays.ndim == 1:  # its items are integers, which may be many
        raise TypeError(f"{function} takes a sequence of arrays, got one {type(arrays).__name__}")
    numbers = list(with_arrays(*arrays))
    for position, x in enumerate(numbers):
        if not isinstance(x, NumberArray):
            place = f" at position {position}" if len(numbers) > 1 else ""
            raise TypeError(f"{function} takes arrays of numbers, got {type(x).__name__}{place}")
    if not numbers:
        raise ValueError(f"{function} needs at least one array")
    check_one_kind(*numbers)
    numbers = list(made_alike(*numbers))
    if with_lengths:
        find_lengths(*numbers)
    return numbers


def _like(numbers: Sequence[Any], words: Any) -> Any:
    """Make an array of the joined words of arrays, with the greatest of their bounds if all have one."""
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
    """How many numbers are not 0, of all or along axes, as ``numpy.count_nonzero``.

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
        Of all numbers an int; along axes, or with `keepdims`, a NumPy or CuPy array; lazy on Dask.

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
    """Differences of neighbours along an axis, each number minus the one before it, as ``numpy.diff``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    n : int
        How often differences are taken; with 0 the result is `x`. Those in between must be in range too.
    axis : int
        The axis, which is shorter by `n` in the result.
    prepend, append : array like `x`, or int, optional
        Numbers before and after `x` along the axis, of which differences are taken too; an integer stands for
        one number at each place.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to differences out of range, as in :func:`.subtract`; ``"flag"`` goes with ``n=1``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if `x` is. With ``"flag"`` a pair, as of :func:`.subtract`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a difference is out of range, as it is for a number of an unsigned array that is
        less than the one before it; on Dask when it is computed.
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
    numbers = _joined(x, axis, prepend, append)
    numbers._find_lengths()
    for _ in range(min(times, max(numbers.shape[axis], 1))):
        later, earlier = (numbers[along(axis, part)[1:]] for part in (slice(1, None), slice(-1)))
        numbers = functions.subtract(later, earlier, overflow=overflow)
    found: N | Flagged[N] = numbers
    return found


def _joined(x: NumberArray, axis: int, prepend: Any, append: Any) -> Any:
    """Join an array, or one integer at each place, before and after the array along an axis."""
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
        Of all numbers an int of any size; on Dask a lazy 0-d array that computes to one. Along axes a
        difference as :func:`.subtract` gives it, lazy if `x` is.

    Raises
    ------
    RNSOverflowError
        If a difference along axes is out of range, as can be if `x` is signed.
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
    """Product of each number of `a` with each one of `b`, as ``numpy.outer``.

    Parameters
    ----------
    a, b : RNSArray or IntervalRNSArray
        Both of one kind, of any shapes; otherwise as :func:`.multiply` takes them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As in :func:`.multiply`.

    Returns
    -------
    array like `a`, shape (a.size, b.size)
        Lazy if an operand is. With ``"flag"`` a pair, as of :func:`.multiply`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an operand is no array, they do not fit one another, or a length is unknown.
    """
    x, y = (_checked_array("outer", operand, NumberArray).ravel() for operand in with_arrays(a, b))
    mode: Any = overflow
    found: N | Flagged[N] = functions.multiply(x[:, None], y[None], overflow=mode)
    return found


def _checked_array(function: str, x: Any, kind: type[NumberArray] = IntegerArray) -> Any:
    if not isinstance(x, kind):
        raise TypeError(f"{function} takes an array of numbers, got {type(x).__name__}")
    return x
