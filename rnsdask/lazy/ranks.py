"""The sorted numbers of a lazy 1-D array in chunks of known lengths: an exact sample sort.

Each chunk is sorted, and samples with bounds of their ranks are combined in a tree (:mod:`rnsdask.rns.sort`).
From the samples follow, for each chunk of the result, two numbers of the array that enclose it. The numbers
between them are collected from all chunks and sorted. As it is known how many numbers come before, the
chunk's ranks are cut out exactly. Equal numbers are ordered by index, so that no value is too frequent for
one chunk.

If there are many chunks, only some chunks of the result are made together, and the array is computed or read
again for the next ones.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core import rows
from rnsdask.core.errors import RNSError
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.map import array_of_tasks, keys_of, map_chunks, map_values, reduce_chunks
from rnsdask.lazy.recompute import recompute
from rnsdask.lazy.tree import combine_tree, put_in_box
from rnsdask.rns import sort
from rnsdask.rns.sort import RankSummary, combine_summaries, taken


def sorted_indices(words: Array, system: NumberSystem, axis: int, descending: bool = False) -> Array:
    """Sort words (rows, *shape) along an axis; return flat indices (*shape), equal numbers by index."""
    return sort.sorted_indices(system.apply(rows.ordering, words), words.shape[1:], axis, descending)


def places(a: Array, v: Array, system: NumberSystem, side: str) -> Array:
    """Find positions at which words (rows, m) keep sorted words (rows, N) sorted: int64 (m,)."""
    sorter = partial(sorted_indices, system=system, axis=0)
    return sort.search(a, v, lambda x, y: system.apply(rows.compare, x, y), sorter, side)


# Rows after a number's words: the lower and the upper word of its index.
INDEX_ROWS = 2

# Chunks of the result that are made together: at least this number, or the square root of their count.
TOGETHER = 16

# Samples of a chunk, for each chunk of the array, and the most samples of a chunk.
_SAMPLES_A_CHUNK = 8
_MOST_SAMPLES = 2**14

MOST_CANDIDATES = 1.5
"""Most numbers from which a chunk of the result is cut out, relative to its length, with these samples."""


def chunks_together(count: int) -> int:
    """Return how many of `count` chunks are made together."""
    return min(count, max(TOGETHER, math.isqrt(max(count - 1, 0)) + 1))


def sorted_words(words: da.Array, system: NumberSystem) -> da.Array:
    """Return the words of sorted numbers with their indices, (rows + 2, N), in chunks like `words`."""
    ends = (0, *accumulate(words.chunks[1]))
    count = words.numblocks[1]
    together = chunks_together(count)
    options: dict[str, Any] = {"system": system, "rows": system.rows + INDEX_ROWS, "located": True}
    # Each part begins with a column that counts the numbers of its chunk that come before it.
    chunks = (tuple(length + 1 for length in words.chunks[1]),)
    parts = map_chunks(_sorted_block, words, chunks=chunks, **options)
    cuts = _cuts(parts, system, ends)
    groups = [range(first, min(first + together, count)) for first in range(0, count, together)]
    sources: list[Any] = []
    tasks: dict[Any, Any] = {}
    for k, group in enumerate(groups):
        if len(groups) > 1:
            unknown = ((math.nan,) * count,)
            parts = map_chunks(_part_block, recompute(words, k), cuts, chunks=unknown, group=group, **options)
        edges = _edges(parts, cuts, system, group)
        sources += [parts, edges]
        keys = [keys_of(array) for array in (parts, edges)]
        for j in group:
            merge = partial(_merge, system=system, chunk=j - group[0], start=ends[j], stop=ends[j + 1])
            tasks[0, j] = (merge, *keys)
    name, lengths = f"rns-sorted-{tokenize(words, system)}", ((options["rows"],), words.chunks[1])
    return array_of_tasks(name, tasks, lengths, meta_from_array(words), *sources)


def indices_of(packed: Any) -> Any:
    """Read the indices (k,), int64, from the last two rows of words (rows + 2, k)."""
    return packed[-2].astype(np.int64) | packed[-1].astype(np.int64) << 32


def with_indices(words: Array, indices: Array) -> Array:
    """Append indices (k,) as two rows to words: (rows + 2, k)."""
    halves = np.stack([indices & 0xFFFFFFFF, indices >> 32]).astype(words.dtype)
    return np.concatenate([words, halves])


# ---- samples -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Sorted numbers (rows + 2, m), in NumPy, that enclose the chunks of the result.

    A chunk's numbers are from cut number `first`, or -1 for the start of the array, to before cut number
    `last`, or m for its end.
    """

    words: NDArray[np.uint32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def cut(self, number: int) -> NDArray[np.uint32] | None:
        """Return one of the numbers, (rows + 2, 1), or None at either end."""
        return self.words[:, number : number + 1] if 0 <= number < self.words.shape[1] else None


def _cuts(parts: da.Array, system: NumberSystem, ends: tuple[int, ...]) -> da.Array:
    """Compute the `_Cuts` for chunks that end at given ranks, as a lazy array without axes."""
    size = min(_SAMPLES_A_CHUNK * (len(ends) - 1), _MOST_SAMPLES)
    samples = reduce_chunks(_sample_block, parts, size=size)
    joined = combine_tree(
        samples, partial(_combine_samples, system=system, size=size), (0, 1), "rns-ranks", keepdims=False
    )
    return map_values(_cuts_of, joined, ends=ends, dtype=object)


def _sample_block(part: Any, *, size: int) -> NDArray[np.object_]:
    count = part.shape[1] - 1
    places = np.unique(np.linspace(0, count - 1, min(size, count)).round().astype(np.int64))
    words = to_backend(taken(part, np.asarray(places + 1, like=part)), "cpu")
    return put_in_box(RankSummary(words, places, places, count), 2)


def _combine_samples(blocks: Any, axis: Any, keepdims: bool, system: NumberSystem, size: int) -> Any:  # noqa: ARG001
    sorter = partial(sorted_indices, system=system, axis=0)
    return put_in_box(combine_summaries(blocks.ravel().tolist(), size, sorter), 2 if keepdims else 0)


def _cuts_of(box: Any, ends: tuple[int, ...]) -> NDArray[np.object_]:
    summary = box.item()
    first, last = np.array([summary.bracket(start, stop) for start, stop in pairwise(ends)]).T
    used = np.unique([*first[first >= 0], *last[last < len(summary.least)]]).astype(np.int64)
    places = np.searchsorted(used, first, side="right") - 1, np.searchsorted(used, last)
    return put_in_box(_Cuts(summary.words[:, used], *places), 0)


# ---- parts of chunks ---------------------------------------------------------------------------------------


def _sorted_block(block: Any, *, system: NumberSystem, place: Place) -> Any:
    return _part(block, slice(None), 0, system, place)


def _part_block(block: Any, box: Any, *, system: NumberSystem, group: range, place: Place) -> Any:
    """Return the numbers of a chunk that may be in a group of the result's chunks, sorted."""
    cuts: _Cuts = box.item()
    low, high = cuts.cut(cuts.first[group[0]]), cuts.cut(cuts.last[group[-1]])
    start = place.location[0][0]
    before = _come_before(block, low, system, start)
    chosen = ~before if high is None else ~before & _come_before(block, high, system, start)
    return _part(block, chosen.nonzero()[0], int(before.sum()), system, place)


def _come_before(block: Any, number: Any, system: NumberSystem, start: int) -> Any:
    """Mark the numbers (N,) of a chunk that come before a number (rows + 2, 1); None is the very first."""
    if number is None:
        return np.zeros_like(block[0], dtype=np.bool_)
    order = system.apply(rows.compare, block, number[:-INDEX_ROWS])
    come_before = order < 0
    earlier = max(int(indices_of(number)[0]) - start, 0)  # for equal numbers
    come_before[:earlier] |= order[:earlier] == 0
    return come_before


def _part(block: Any, chosen: Any, before: int, system: NumberSystem, place: Place) -> Any:
    """Sort selected numbers of a chunk, with indices; the first column counts the numbers before them."""
    if not isinstance(chosen, slice):
        block = taken(block, chosen)
    order = sorted_indices(block, system, 0)
    indices = order if isinstance(chosen, slice) else chosen[order]
    packed = with_indices(taken(block, order), indices + place.location[0][0])
    head = with_indices(
        np.zeros_like(block, shape=(len(block), 1), order="C"),
        np.full_like(indices, before, shape=(1,), order="C"),
    )
    return np.concatenate([head, packed], axis=1)


# ---- chunks of the result ----------------------------------------------------------------------------------


def _edges(parts: da.Array, cuts: da.Array, system: NumberSystem, group: range) -> da.Array:
    """Cut each part for the chunks of a group: int64 (2, chunks) for each chunk that has a part."""
    chunks = ((len(group),) * parts.numblocks[1],)
    like = np.empty(0)
    edges: da.Array = map_chunks(
        _edges_block,
        parts,
        cuts,
        rows=2,
        chunks=chunks,
        dtype=np.int64,
        like=like,
        system=system,
        group=group,
    )
    return edges


def _edges_block(part: Any, box: Any, *, system: NumberSystem, group: range) -> NDArray[np.int64]:
    """Count the numbers of a chunk before the first and the last cut of each chunk of the result."""
    cuts: _Cuts = box.item()
    first, last = cuts.first[group[0] : group[-1] + 1], cuts.last[group[0] : group[-1] + 1]
    start, stop = max(first[0], 0), last[-1] + 1
    before, count = int(indices_of(part[:, :1])[0]), part.shape[1] - 1
    inside = _before_cuts(cuts.words[:, start:stop], part[:, 1:], system)
    # Without a first cut, count from the chunk's start; without a last cut, to its end.
    ends = before + np.array([0, *inside, count], dtype=np.int64)
    found: NDArray[np.int64] = ends[np.stack([first - start + 1, last - start + 1])]
    return found


def _before_cuts(cuts: Any, numbers: Any, system: NumberSystem) -> list[int]:
    """Count the sorted numbers before each cut, by value and index."""
    words, columns = numbers[:-INDEX_ROWS], np.asarray(cuts[:-INDEX_ROWS], like=numbers)
    first, last = (places(words, columns, system, side).tolist() for side in ("left", "right"))
    equal = zip(first, last, indices_of(cuts).tolist(), strict=True)
    return [low + int((indices_of(numbers[:, low:high]) < index).sum()) for low, high, index in equal]


def _merge(
    parts: list[Any], edges: list[Any], system: NumberSystem, chunk: int, start: int, stop: int
) -> Any:
    """Merge parts of all chunks to the numbers of ranks `start` to `stop` - 1, with their indices."""
    before, pieces = 0, []
    for part, (firsts, lasts) in zip(parts, edges, strict=True):
        first, last = int(firsts[chunk]), int(lasts[chunk])
        offset = 1 - int(indices_of(part[:, :1])[0])
        pieces.append(part[:, first + offset : last + offset])
        before += first
    joined = np.concatenate(pieces, axis=1)
    if not 0 <= start - before <= stop - before <= joined.shape[1]:
        raise RNSError(
            f"ranks {start} to {stop} are not where they were: the array is computed or read several times "
            "to be sorted, and changed meanwhile; sort an array that is in a store or in memory"
        )
    order = sorted_indices(joined[:-INDEX_ROWS], system, 0)
    return taken(joined, order[start - before : stop - before])
