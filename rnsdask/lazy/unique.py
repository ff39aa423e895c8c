"""Distinct numbers of an array: `unique`, exact."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, Literal, overload

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy import ranks, shape
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.map import array_of_tasks, keys_of, map_chunks
from rnsdask.lazy.operands import N, find_lengths, make_like
from rnsdask.lazy.ranks import sorted_indices
from rnsdask.lazy.search import reshape_values
from rnsdask.rns.keys import groups_of
from rnsdask.rns.sort import begin_groups, taken
from rnsdask.typing import PlainArray


@overload
def unique(
    x: N,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
) -> N: ...
@overload
def unique(
    x: N, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> tuple[N, *tuple[PlainArray[np.int64], ...]]: ...
def unique(
    x: N, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> N | tuple[N, *tuple[PlainArray[np.int64], ...]]:
    """Find the distinct numbers of an array, sorted, as ``numpy.unique``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The numbers; the array is flattened first.
    return_index : bool
        Also return the flat index of each one's first occurrence.
    return_inverse : bool
        Also return, for each number of `x`, its index among the distinct ones.
    return_counts : bool
        Also return the count of each one.

    Returns
    -------
    RNSArray or IntervalRNSArray, or a tuple of it and the additional arrays
        Additional arrays are of int64, the inverse in the shape of `x`. All are lazy if `x` is; all but the
        inverse then have an unknown length, until ``compute_chunk_sizes()``.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    """
    entry_of(rows.ordering, x, name="unique")
    find_lengths(x)
    words = x.words
    flat = shape.reshape(words, -1)
    find = _find_lazily if isinstance(flat, da.Array) else _find
    numbers, index, inverse, counts = find(flat, x.system, return_inverse)
    results = [make_like((x,), numbers, x.system, "raise")]
    results += [index] if return_index else []
    results += [reshape_values(inverse, words.shape[1:])] if return_inverse else []
    results += [counts] if return_counts else []
    found: N | tuple[N, *tuple[PlainArray[np.int64], ...]] = (
        tuple(results) if len(results) > 1 else results[0]
    )
    return found


def _find(words: Array, system: NumberSystem, _: bool) -> tuple[Array, Array, Array, Array]:
    """Find the distinct numbers' words (rows, N), first indices, inverse, and counts."""
    order = sorted_indices(words, system, 0)
    begins = begin_groups(system.identifying_words(words), order)
    (starts,) = begins.nonzero()
    inverse = np.empty_like(order)
    inverse[order] = groups_of(begins)
    first = order[starts]
    return taken(words, first), first, inverse, np.diff(starts, append=len(order))


def _find_lazily(words: da.Array, system: NumberSystem, with_inverse: bool) -> tuple[Any, Any, Any, Any]:
    """Find the distinct numbers of a Dask array. The inverse has a graph of its own, made on demand."""
    if not words.size:
        nothing = words[0].astype(np.int64)
        return words, nothing, nothing, nothing
    if ranks.is_sorted_whole(words):  # then what follows is no work for several tasks either
        words = rechunk(words, {1: -1})
    packed = ranks.sorted_words(words, system, indices=True)
    chunks = words.chunks[1]
    ones = ((1,) * len(chunks),)
    last = map_chunks(_last_number, packed, rows=len(packed), chunks=ones, dtype=packed.dtype)
    previous = rechunk(da.concatenate([last[:, :1], last[:, :-1]], axis=1), {1: 1})
    begins = map_chunks(
        _begins_block, packed, previous, dtype=np.bool_, matched=True, located=True, system=system
    )
    # For each chunk, the number of runs that begin in it, and the rank of the first; all go to one task.
    on_host: dict[str, Any] = {"dtype": np.int64, "like": np.empty(0)}
    totals = map_chunks(_totals_block, begins[None], rows=2, chunks=ones, located=True, **on_host)
    totals = rechunk(totals, {1: -1})
    size = int(words.shape[1])
    before = rechunk(map_chunks(_count_before, totals, dtype=np.int64), 1)
    after = rechunk(map_chunks(_rank_after, totals, dtype=np.int64, size=size), 1)
    unknown: Any = ((np.nan,) * len(chunks),)
    pair = begins[None], after[None]
    counts = map_chunks(_counts_block, *pair, chunks=unknown, dtype=np.int64, matched=True, located=True)
    index = map_chunks(_indices_block, packed, dtype=np.int64)[begins]
    inverse = _inverse(packed, begins, before) if with_inverse else None
    return packed[: system.rows][:, begins], index, inverse, counts


def _last_number(packed: Any) -> Any:
    return packed[:, -1:]


def _indices_block(packed: Any) -> Any:
    return ranks.indices_of(packed)[None]


def _begins_block(packed: Any, previous: Any, *, system: NumberSystem, place: Place) -> Any:
    """Mark the starts of runs of equal numbers; the number before the first one is in another chunk."""
    differing = system.identifying_words(np.concatenate([previous, packed], axis=1))
    indices = np.arange(differing.shape[1], dtype=np.int64, like=differing)
    begins = begin_groups(differing, indices)[1:]
    if place.location[0][0] == 0:
        begins[:1] = True
    return begins[None]


def _totals_block(begins: Any, *, place: Place) -> Any:
    """Count the runs that begin in a chunk, and the rank of the first, or -1: int64 (2, 1)."""
    count = int(begins.sum())
    first = place.location[0][0] + int(begins[0].argmax()) if count else -1
    return np.array([[count], [first]], dtype=np.int64)


def _count_before(totals: Any) -> Any:
    """Count the runs that begin before each chunk."""
    return np.concatenate([[0], np.cumsum(totals[0])[:-1]])[None]


def _rank_after(totals: Any, *, size: int) -> Any:
    """Return the rank of the first run that begins after each chunk, or the count of all numbers."""
    firsts = np.where(totals[1] < 0, size, totals[1])
    return np.append(np.minimum.accumulate(firsts[::-1])[::-1][1:], size)[None]


def _counts_block(begins: Any, after: Any, *, place: Place) -> Any:
    (starts,) = begins[0].nonzero()
    return np.diff(starts, append=int(after.item()) - place.location[0][0])[None]


def _inverse(packed: da.Array, begins: da.Array, before: da.Array) -> da.Array:
    """Count the distinct numbers below each number: each chunk is assembled from all chunks."""
    pairs = map_chunks(_pairs_block, packed, begins[None], before[None], rows=2, dtype=np.int64, matched=True)
    keys = keys_of(pairs)
    ends = pairwise((0, *accumulate(packed.chunks[1])))
    tasks = {(i,): (_put_back, keys, *part) for i, part in enumerate(ends)}
    meta = np.empty_like(meta_from_array(begins), dtype=np.int64)
    return array_of_tasks(f"rns-inverse-{tokenize(pairs)}", tasks, packed.chunks[1:], meta, pairs)


def _pairs_block(packed: Any, begins: Any, before: Any) -> Any:
    """Pair the indices of sorted numbers with the indices of their distinct values: int64 (2, k)."""
    (starts,) = begins[0].nonzero()
    places = np.arange(begins.shape[1], dtype=np.int64, like=starts)
    numbers = np.searchsorted(starts, places, side="right") - 1 + int(before.item())
    return np.stack([ranks.indices_of(packed), numbers])


def _put_back(pairs: list[Any], start: int, stop: int) -> Any:
    """Return the distinct values' indices for the numbers at indices `start` to `stop` - 1."""
    result = np.empty_like(pairs[0], shape=(stop - start,), order="C")
    for indices, numbers in pairs:
        inside = (indices >= start) & (indices < stop)
        result[indices[inside] - start] = numbers[inside]
    return result
