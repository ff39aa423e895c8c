"""The sorted numbers of a lazy 1-D array in chunks of known lengths: an exact sample sort.

Each chunk is sorted to a run, and samples of all runs go to one task. From these follow, for each chunk of
the result, the parts of all runs that may have its numbers, and how many numbers come before these parts
(:class:`rnsdask.rns.sort.RunCuts`). The parts are merged, and the chunk's ranks are cut out exactly. Equal
numbers are ordered by index, so that no value is too frequent for one chunk.

If the runs do not fit in memory, only some chunks of the result are made together, and the array is computed
or read again for the next ones. An array in chunks of CuPy's that one GPU has room for is sorted in one task
(:mod:`rnsdask.lazy.one_task`).
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask.backend import Array, free_device_bytes
from rnsdask.cluster.connecting import active_client
from rnsdask.cluster.limits import process_limit
from rnsdask.core import rows
from rnsdask.core.errors import RNSError
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.chunks import may_be_on_gpus
from rnsdask.lazy.map import array_of_tasks, keys_of, map_chunks, reduce_chunks
from rnsdask.lazy.one_task import fits_one_task, in_one_task
from rnsdask.lazy.recompute import recompute
from rnsdask.lazy.tree import put_in_box
from rnsdask.rns import sort
from rnsdask.rns.sort import RunCuts, RunSample, Sorter, sample_places, sample_run, taken


def sorted_indices(words: Array, system: NumberSystem, axis: int, descending: bool = False) -> Array:
    """Sort words (rows, *shape) along an axis; return flat indices (*shape), equal numbers by index."""
    return sort.sorted_indices(system.apply(rows.ordering, words), words.shape[1:], axis, descending)


def sorter_of(system: NumberSystem) -> Sorter:
    """Return the function that sorts words (rows, k) of a system."""
    return partial(sorted_indices, system=system, axis=0)


def places(a: Array, v: Array, system: NumberSystem, side: str) -> Array:
    """Find positions at which words (rows, m) keep sorted words (rows, N) sorted: int64 (m,)."""
    return sort.search(a, v, lambda x, y: system.apply(rows.compare, x, y), sorter_of(system), side)


# Rows after a number's words: the lower and the upper word of its index.
INDEX_ROWS = 2

# Chunks of the result that are made together: at least this number, or the square root of their count.
_TOGETHER = 16

# Samples of a run for each run, and the most samples of all runs.
_SAMPLES_A_RUN = 16
_MOST_SAMPLES = 2**20

MOST_CANDIDATES = 1.25
"""Most numbers that a chunk of the result is merged from, relative to its length, with these samples."""

SHARE = 0.5
"""Part of the process's memory, or of the free memory of its GPU, that runs may take."""


def chunks_together(words: da.Array, rows: int) -> int:
    """Return how many chunks of the result, of `rows` rows, are made together, which are then in memory.

    Threads of one process use half of its memory; workers hold parts of few chunks, for each needs them all.
    """
    count: int = words.numblocks[1]
    longest = max(words.chunks[1], default=0)
    few = min(count, max(_TOGETHER, math.isqrt(max(count - 1, 0)) + 1))
    if count == few or active_client() is not None:
        return few
    room = process_limit()
    if may_be_on_gpus(words) and (on_gpu := free_device_bytes()) is not None:
        room = min(room, on_gpu)
    if rows * words.shape[1] * words.dtype.itemsize <= SHARE * room:
        return count
    each = (len(words) + INDEX_ROWS) * max(1, longest) * words.dtype.itemsize * MOST_CANDIDATES
    most: int = max(few, int(SHARE * room / each))
    return min(count, most)


def is_sorted_whole(words: da.Array) -> bool:
    """Whether one task sorts all words; sorts in chunks exchange them once."""
    return fits_one_task(rows.ordering.footprint, 1, words)


def samples_a_run(runs: int) -> int:
    """Return how many numbers of each run are its samples."""
    return max(2, min(_SAMPLES_A_RUN * runs, _MOST_SAMPLES // runs))


def sorted_words(words: da.Array, system: NumberSystem, *, indices: bool = False) -> da.Array:
    """Return the words of sorted numbers, (rows, N), in chunks like `words`.

    With `indices` there are two more rows, of their indices (:func:`indices_of`).
    """
    count, lengths = words.numblocks[1], words.chunks[1]
    ends = (0, *accumulate(lengths))
    options: dict[str, Any] = {"system": system, "rows": system.rows + INDEX_ROWS * indices}
    if count == 1 or is_sorted_whole(words):
        options |= {"indices": indices, "place": None, "chunks": words.chunks[1:]}
        return in_one_task(_run_block, words, token="rns-sorted", **options)
    together = chunks_together(words, options["rows"])
    groups = [range(first, min(first + together, count)) for first in range(0, count, together)]
    size = samples_a_run(count)
    if len(groups) == 1:
        runs = map_chunks(_run_block, words, located=True, indices=indices, **options)
        samples = reduce_chunks(_sample_of_run, runs, size=size, numbers=system.rows)
    else:
        samples = reduce_chunks(_sample_of_chunk, words, size=size, system=system)
    cuts = _cuts(samples, system, ends, groups)
    sources: list[Any] = [cuts]
    tasks: dict[Any, Any] = {}
    for k, group in enumerate(groups):
        if len(groups) > 1:
            runs = _parts(recompute(words, k), cuts, system, k)
        sources.append(runs)
        how: dict[str, Any] = {"system": system, "rows": options["rows"], "in_parts": len(groups) > 1}
        for j in group:
            merge = partial(_merge, chunk=j, start=ends[j], stop=ends[j + 1], **how)
            tasks[0, j] = (merge, keys_of(runs), keys_of(cuts)[0])
    name = f"rns-sorted-{tokenize(words, system, indices, together)}"
    return array_of_tasks(name, tasks, ((options["rows"],), lengths), meta_from_array(words), *sources)


def indices_of(packed: Any) -> Any:
    """Read the indices (k,), int64, from the last two rows of words (rows + 2, k)."""
    return packed[-2].astype(np.int64) | packed[-1].astype(np.int64) << 32


def with_indices(words: Array, indices: Array) -> Array:
    """Append indices (k,) as two rows to words: (rows + 2, k)."""
    halves = np.stack([indices & 0xFFFFFFFF, indices >> 32]).astype(words.dtype)
    return np.concatenate([words, halves])


# ---- runs and their samples --------------------------------------------------------------------------------


def _run_block(block: Any, *, system: NumberSystem, indices: bool, place: Place | None) -> Any:
    order = sorted_indices(block, system, 0)
    words = taken(block, order)
    start = place.location[0][0] if place else 0
    return with_indices(words, order + start) if indices else words


def _sample_of_run(run: Any, *, size: int, numbers: int) -> NDArray[np.object_]:
    return put_in_box(sample_run(run, numbers, sample_places(run.shape[1], size)), 2)


def _sample_of_chunk(block: Any, *, size: int, system: NumberSystem) -> NDArray[np.object_]:
    """Sample the run of a chunk, which is not kept; rows after the words have indices in the chunk."""
    places = sample_places(block.shape[1], size)
    order = sorted_indices(block, system, 0)[np.asarray(places, like=block)]
    chosen = with_indices(taken(block, order), order)
    sample = sample_run(chosen, len(chosen), np.arange(len(places)))
    return put_in_box(RunSample(sample.words, places, block.shape[1]), 2)


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Parts of runs for the chunks of the result, `starts` and `stops` (chunks, runs), and ends of groups.

    For each group of chunks, `ends` are two numbers that enclose its numbers: the run of each and its words
    (rows + 2, 1), the last two of which are its index in its chunk; or None for the end of the array.
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    ends: tuple[tuple[Any, Any], ...]


def _cuts(samples: da.Array, system: NumberSystem, ends: tuple[int, ...], groups: list[range]) -> da.Array:
    """Compute the `_Cuts` for chunks that end at given ranks, as a lazy array without axes."""
    find = partial(_find_cuts, system=system, ends=ends, groups=groups)
    name = f"rns-cuts-{tokenize(samples, system, ends, groups)}"
    return array_of_tasks(name, {(): (find, keys_of(samples))}, (), np.empty((), dtype=object), samples)


def _find_cuts(
    boxes: list[Any], system: NumberSystem, ends: tuple[int, ...], groups: list[range]
) -> NDArray[np.object_]:
    samples: list[RunSample] = [box.item() for box in boxes]
    found = RunCuts(samples, lambda words: sorted_indices(words[: system.rows], system, 0))
    first, last = found.enclose(ends[:-1], ends[1:])
    cuts = [(found.number(first[group[0]]), found.number(last[group[-1]])) for group in groups]
    return put_in_box(_Cuts(*found.slices(first, last), tuple(cuts) if len(groups) > 1 else ()), 0)


# ---- parts of runs, for some chunks of the result ----------------------------------------------------------


def _parts(words: da.Array, cuts: da.Array, system: NumberSystem, group: int) -> da.Array:
    """Sort what a group of the result's chunks needs of each chunk: words with indices.

    The index of the first column, which has no number, is the count of the chunk's numbers before these.
    """
    chunks = ((math.nan,) * words.numblocks[1],)
    options: dict[str, Any] = {"system": system, "rows": system.rows + INDEX_ROWS, "chunks": chunks}
    parts: da.Array = map_chunks(_part_block, words, cuts, group=group, located=True, **options)
    return parts


def _part_block(block: Any, box: Any, *, system: NumberSystem, group: int, place: Place) -> Any:
    (run,), cuts = place.index, box.item()
    low, high = cuts.ends[group]
    before = _come_before(block, low, system, run) if low else np.zeros_like(block[0], dtype=np.bool_)
    chosen = ~before & _come_before(block, high, system, run) if high else ~before
    (indices,) = chosen.nonzero()
    some = taken(block, indices)
    order = sorted_indices(some, system, 0)
    head = with_indices(
        np.zeros_like(block, shape=(len(block), 1), order="C"),
        np.full_like(indices, int(before.sum()), shape=(1,), order="C"),
    )
    located = with_indices(taken(some, order), indices[order] + place.location[0][0])
    return np.concatenate([head, located], axis=1)


def _come_before(block: Any, cut: tuple[int, Any], system: NumberSystem, run: int) -> Any:
    """Mark the numbers (N,) of a chunk, the one of a run, that come before a cut."""
    cut_run, number = cut
    order = system.apply(rows.compare, block, number[:-INDEX_ROWS])
    come_before = order < 0
    # Of equal numbers, those of earlier chunks, and those at lower indices of the cut's own.
    earlier = block.shape[1] if run < cut_run else int(indices_of(number)[0]) if run == cut_run else 0
    come_before[:earlier] |= order[:earlier] == 0
    return come_before


# ---- chunks of the result ----------------------------------------------------------------------------------


def _merge(
    runs: list[Any],
    box: Any,
    *,
    system: NumberSystem,
    rows: int,
    chunk: int,
    start: int,
    stop: int,
    in_parts: bool,
) -> Any:
    """Merge parts of all runs to the numbers of ranks `start` to `stop` - 1: `rows` rows."""
    cuts: _Cuts = box.item()
    before, pieces = 0, []
    for run, low, high in zip(runs, cuts.starts[chunk].tolist(), cuts.stops[chunk].tolist(), strict=True):
        skipped = int(indices_of(run[:, :1])[0]) if in_parts else 0
        words = run[:rows, 1:] if in_parts else run
        first = max(low - skipped, 0)
        pieces.append(words[:, first : max(high - skipped, first)])
        before += skipped + first
    if not before <= start <= stop <= before + sum(piece.shape[1] for piece in pieces):
        raise RNSError(
            f"ranks {start} to {stop} are not where they were: the array is computed or read several times "
            "to be sorted, and changed meanwhile; sort an array that is in a store or in memory"
        )
    sorter = sorter_of(system)
    return sort.merge_runs(pieces, system.rows, start - before, stop - before, sorter)
