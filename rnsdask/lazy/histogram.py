"""Histograms of exact numbers between exact edges."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, Literal, SupportsIndex

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask.backend import Array, count_each
from rnsdask.cluster.limits import check_bytes
from rnsdask.core import rows
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import must
from rnsdask.lazy.chunk_reductions import reduce_words
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.lazy_ints import as_exact
from rnsdask.lazy.map import array_of_tasks, keys_of, map_chunks, map_values
from rnsdask.lazy.operands import Numbers, integer_of
from rnsdask.lazy.ranks import places
from rnsdask.lazy.tree import tree_reduce
from rnsdask.rns.convert import flat_values
from rnsdask.typing import PlainArray

_BIN_BYTES = 64
"""Least bytes of each bin: an edge as a Python int, and a count."""


def histogram(
    a: Numbers,
    bins: SupportsIndex | Sequence[SupportsIndex] | NDArray[Any] = 10,
    range: Sequence[SupportsIndex] | None = None,  # noqa: A002  (NumPy's name)
    density: Literal[False] | None = None,
    weights: None = None,
) -> tuple[PlainArray[np.int64], PlainArray[np.object_]]:
    """Count the numbers in each bin, as ``numpy.histogram``, with edges that are integers of any size.

    A bin includes its left edge but not its right one; the last bin includes both.

    Parameters
    ----------
    a : RNSArray, IntervalRNSArray or PositionalArray
        The numbers, of any shape.
    bins : int or sequence of int
        The edges, in non-decreasing order, or a number of bins of equal width. Their edges are rounded up to
        integers, which does not change the counts.
    range : (int, int), optional
        With a number of bins: the first and the last edge, by default the exact minimum and maximum. Numbers
        outside are not counted. As in NumPy, a range of one number is extended by a half on both sides. With
        one or two bins, that number is the last edge. With more, the last edge is the next integer, which is
        not in any bin.
    density, weights
        Must be None; NumPy has them.

    Returns
    -------
    counts, edges : int64 array (n,), array (n + 1,) of Python ints
        For a lazy array the counts are lazy, and so are edges that depend on its minimum and maximum: compute
        both together by ``dask.compute(counts, edges)``.

    Raises
    ------
    TypeError
        If the numbers of `a` have no order, an edge is not an integer, or `density` or `weights` are given.
    ValueError
        If there are no bins, or edges decrease.
    """
    entry_of(rows.ordering, a, name="histogram")
    for name, value in (("density", density), ("weights", weights)):
        if value is not None and value is not False:
            raise TypeError(f"histogram gives exact counts and takes no {name}; divide the counts by hand")
    words, system = a.words, a.system
    given: Any = bins
    if not hasattr(given, "__index__") or np.ndim(given):
        if range is not None:
            raise TypeError("histogram takes a range with a number of bins only, and bins are edges here")
        edges = _given_edges(given)
        return _counts(words, system, edges), _as_array(edges)
    count = as_integer(bins, "bins")
    if count < 1:
        raise ValueError(must("bins", f"be at least 1, got {abbreviate(count)}"))
    check_bytes(_BIN_BYTES * count, f"a histogram of {abbreviate(count)} bins")
    if range is not None:
        low, high = _ends(range)
        edges = even_edges(low, high, count)
        if low == high and count <= 2:  # the last bin includes its right edge, the number
            edges[-1] = high
        return _counts(words, system, edges, closed=edges[-1] == high), _as_array(edges)
    if isinstance(words, da.Array) and 0 not in words.shape:
        return _lazy_histogram(words, system, count)
    if 0 in words.shape:
        edges = even_edges(0, 1, count)
    else:
        lowest, highest = (reduce_words(name, words, system).value for name in ("min", "max"))
        edges = even_edges(lowest, highest, count)
    return _counts(words, system, edges), _as_array(edges)


def even_edges(lowest: int, highest: int, count: int) -> list[int]:
    """Edges of bins of equal width, rounded up, which does not change the integers between them.

    As in NumPy, a range of one number is widened by a half on both sides.
    """
    first, last = Fraction(lowest), Fraction(highest)
    if lowest == highest:
        first, last = first - Fraction(1, 2), last + Fraction(1, 2)
    return [ceil(first + (last - first) * k / count) for k in range(count + 1)]


def _given_edges(bins: Any) -> list[int]:
    flat, shape = flat_values(bins)
    edges = [as_integer(value, f"the edge at index {i}") for i, value in enumerate(flat)]
    if len(shape) != 1 or len(edges) < 2:
        raise ValueError(must("bins", f"be a number, or at least 2 edges along one axis, got shape {shape}"))
    if (wrong := next((i for i, edge in enumerate(edges[1:]) if edge < edges[i]), None)) is not None:
        raise ValueError(
            must("edges", f"not decrease, and the one at index {wrong + 1} is below that before it")
        )
    return edges


def _ends(given: Any) -> tuple[int, int]:
    try:
        low, high = given
    except (TypeError, ValueError):
        raise TypeError(f"range must be a pair of integers, got {given!r:.40}") from None
    low, high = as_integer(low, "the range's first"), as_integer(high, "the range's last")
    if low > high:
        raise ValueError("the range's first must not be greater than its last")
    return low, high


def _as_array(edges: list[int]) -> Any:
    array = np.empty(len(edges), dtype=object)
    array[:] = edges
    return array


# ---- counting ----------------------------------------------------------------------------------------------


def _counts(words: Any, system: NumberSystem, edges: list[int], closed: bool = True) -> Any:
    """Count the numbers in each bin between known edges; the last bin includes its right edge if `closed`."""
    options: dict[str, Any] = {"system": system, "starts": (*edges[:-1], edges[-1] + closed)}
    return _sum_counts(words, len(edges) - 1, **options)


def _lazy_histogram(words: da.Array, system: NumberSystem, count: int) -> tuple[Any, Any]:
    """Counts and edges of `count` bins from the minimum to the maximum."""
    ends = [tree_reduce(words, system, name, field="value") for name in ("min", "max")]
    # A Delayed of lazy arrays would make Dask import distributed.
    keys = [key for end in ends for key in keys_of(end)]
    task = (partial(_edges_between, count=count), *keys)
    name = f"rns-edges-{tokenize(keys, count)}"
    found = array_of_tasks(name, {(): task}, (), np.empty((), dtype=object), *ends)
    edges = map_values(_edges_block, found[None], dtype=object, chunks=((count + 1,),))
    return _sum_counts(words, count, found, system=system), as_exact(edges)


def _edges_between(lowest: Any, highest: Any, count: int) -> Any:
    box = np.empty((), dtype=object)
    box[()] = tuple(even_edges(integer_of(lowest), integer_of(highest), count))
    return box


def _edges_block(box: Any) -> Any:
    return _as_array(list(box.item()))


def _sum_counts(words: Any, bins: int, *edges: Any, **options: Any) -> Any:
    """Add up the counts of all chunks."""
    if not isinstance(words, da.Array):
        return _counts_block(words, **options).reshape(bins)
    chunks = [(1,) * count for count in words.numblocks[1:]]
    how: dict[str, Any] = {"rows": bins, "chunks": chunks, "dtype": np.int64, "like": np.empty(0)}
    counts: da.Array = map_chunks(_counts_block, words, *edges, **how, **options)
    return counts.reshape(bins, -1).sum(axis=1)


def _counts_block(
    block: Array, lazy_edges: Any = None, *, system: NumberSystem, starts: tuple[int, ...] = ()
) -> NDArray[np.int64]:
    """Count the numbers of a chunk in each bin: int64 (bins, 1, ..., 1) on the host."""
    if not starts:
        edges = lazy_edges.item()
        # The last bin includes its right edge: for integers, it excludes the next one.
        starts = (*edges[:-1], edges[-1] + 1)
    lowest, highest = system.known_range
    below = sum(edge < lowest for edge in starts)
    inside = [edge for edge in starts if lowest <= edge <= highest]
    matrix = as_matrix(block)
    counts = np.zeros(len(starts) + 1, dtype=np.int64)
    if inside and matrix.shape[1]:
        sorted_edges = np.asarray(system.encode(inside).reshape(system.rows, -1), like=matrix)
        found = places(sorted_edges, matrix, system, "right")
        counts[below : below + len(inside) + 1] = count_each(found, len(inside) + 1)
    else:
        counts[below] = matrix.shape[1]
    return counts[1:-1].reshape(-1, *(1,) * (block.ndim - 1))
