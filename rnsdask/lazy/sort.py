"""Sorting arrays of numbers: `sort`, `argsort` and `median`, exact and stable."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, SupportsIndex, overload

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.axes import axis_index, axis_indices
from rnsdask.core.errors import brief
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy import ranks, shape
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.convert import to_ints
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.lazy.operands import N, Numbers, find_lengths, make_like
from rnsdask.lazy.ranks import sorted_indices
from rnsdask.rns.sort import positions, taken
from rnsdask.typing import Axis, PlainArray, Rational


def sort(x: N, axis: SupportsIndex | None = -1) -> N:
    """Sort along an axis, the least number first, as ``numpy.sort``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The numbers.
    axis : int, optional
        The axis; with None the array is flattened first.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if `x` is. An array of one axis keeps its chunks, and if memory does not hold them is computed or
        read several times (docs/operations.md, "Order"). With several axes, a chunk of the result has whole
        lines.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        AxisError, a ValueError, if the axis is out of range.
    """
    words, axis = _words_and_axis("sort", x, axis)
    found: N = make_like((x,), sort_along(words, x._measured_system(), axis), x.system, "raise")
    return found


def argsort(
    x: Numbers,
    axis: SupportsIndex | None = -1,
    *,
    stable: bool | None = None,  # noqa: ARG001
) -> PlainArray[np.int64]:
    """Indices that sort an array along an axis, as ``numpy.argsort``; equal numbers keep their order.

    Parameters
    ----------
    x, axis
        As in :func:`sort`.
    stable : bool, optional
        Ignored: each sort is stable. NumPy passes it.

    Returns
    -------
    array of int64
        NumPy or CuPy; lazy if `x` is.

    Raises
    ------
    TypeError, ValueError
        As :func:`sort`.
    """
    words, axis = _words_and_axis("argsort", x, axis)
    found: PlainArray[np.int64] = sort_along(words, x._measured_system(), axis, indices=True)
    return found


def passes_and_waiting(x: Any, axis: int) -> tuple[int, int]:
    """Return how often sorting reads a lazy array's chunks, and how many numbers wait for others.

    These are half of those in memory, since plans count arrays that wait twice: others may be views.
    """
    count, length = x.words.numblocks[1 + axis_index(axis, x.ndim)], x.words.chunksize[-1]
    if x.ndim > 1 or count < 2:
        return 1, 0
    together = ranks.chunks_together(x.words, x.system.rows)
    if together >= count:
        return 1, -(-x.size // 2)
    parts = (together + 1) * length * ranks.MOST_CANDIDATES * (1 + ranks.INDEX_ROWS / x.system.rows)
    return 1 + math.ceil(count / together), math.ceil(parts / 2)


def _words_and_axis(function: str, x: Any, axis: SupportsIndex | None) -> tuple[Any, int]:
    """Return the words to sort, and the axis of the numbers to sort along, from 0."""
    entry_of(rows.ordering, x, name=function)
    find_lengths(x)
    words = x.words
    if axis is None:
        return shape.reshape(words, -1), 0
    return words, axis_index(axis, words.ndim - 1)


def sort_along(words: Any, system: NumberSystem, axis: int, *, indices: bool = False) -> Any:
    """Sort words along an axis of the numbers, or return the indices that sort them."""
    if isinstance(words, da.Array) and words.numblocks[1 + axis] > 1:
        if words.ndim == 2:
            ordered = ranks.sorted_words(words, system, indices=indices)
            return map_chunks(_index_block, ordered, dtype=np.int64) if indices else ordered
        words = rechunk(words, {k: -1 if k in (0, 1 + axis) else "auto" for k in range(words.ndim)})
    options: dict[str, Any] = {"system": system, "axis": axis}
    if indices:
        return map_chunks(_argsort_block, words, dtype=np.int64, **options)
    return map_chunks(_sort_block, words, rows=system.rows, **options)


def _index_block(packed: Array) -> Array:
    return ranks.indices_of(packed)[None]


def _sort_block(block: Array, *, system: NumberSystem, axis: int) -> Array:
    return taken(block, sorted_indices(block, system, axis))


def _argsort_block(block: Array, *, system: NumberSystem, axis: int) -> Array:
    return positions(sorted_indices(block, system, axis), block.shape[1:], axis)[None]


# ---- median ------------------------------------------------------------------------------------------------


@overload
def median(x: Numbers, axis: None = None, *, keepdims: Literal[False] = False) -> Rational: ...
@overload
def median(x: Numbers, axis: Axis | None = None, *, keepdims: bool = False) -> PlainArray[np.object_]: ...
def median(
    x: Numbers, axis: Axis | None = None, *, keepdims: bool = False
) -> Rational | PlainArray[np.object_]:
    """Exact median of all numbers or along axes, as ``numpy.median``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The numbers.
    axis : int or tuple of int, optional
        The axes; all by default.
    keepdims : bool
        Keep these axes, with length 1.

    Returns
    -------
    int or fractions.Fraction, or object array of them
        For an even count it is the mean of the middle two: an int, or a Fraction if their sum is odd. For all
        numbers a single value; on Dask a lazy array that computes to it.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    ValueError
        If there are no numbers along the axes; AxisError, a ValueError, if the axis is out of range.
    """
    entry_of(rows.ordering, x, name="median")
    find_lengths(x)
    words = x.words
    lengths = words.shape[1:]
    axes = tuple(range(len(lengths))) if axis is None else axis_indices(axis, len(lengths))
    kept = tuple(k for k in range(len(lengths)) if k not in axes)
    count = math.prod(lengths[k] for k in axes)
    if not count:
        raise ValueError(
            f"median takes at least one number along axes, got axis {brief(axis)} of shape {lengths}"
        )
    lines = shape.transpose(words, (*kept, *sorted(axes)))
    lines = shape.reshape(lines, (*(lengths[k] for k in kept), count))
    ordered = sort_along(lines, x._measured_system(), len(kept))
    middle = make_like((x,), ordered[..., (count - 1) // 2 : count // 2 + 1], x.system, "raise")
    means: Any = _means_of_ends(to_ints(middle))
    if keepdims:
        means = means.reshape(tuple(1 if k in axes else length for k, length in enumerate(lengths)))
    elif not kept:
        is_lazy = isinstance(means, da.Array)
        means = map_values(_only_item, means, dtype=object) if is_lazy else means.item()
    found: Rational | PlainArray[np.object_] = means
    return found


def _means_of_ends(ints: Any) -> Any:
    """Half the sum of the first and the last of numbers along the last axis."""
    totals = ints[..., 0] + ints[..., -1]
    if isinstance(totals, da.Array):
        return map_values(_halves, totals, dtype=object)
    return _halves(totals)


def _halves(totals: Any) -> Any:
    totals = np.asarray(totals, dtype=object)  # a single one may be a Python int
    halves = np.empty_like(totals)
    for place, total in np.ndenumerate(totals):
        halves[place] = Fraction(total, 2) if total % 2 else int(total // 2)
    return halves


def _only_item(values: Any) -> Any:
    value = values.item()
    return ScalarInt(value) if isinstance(value, int) else value
