"""The job that sorts a store of one axis: in memory, or in two passes with sorted runs in a store between.

If memory does not hold all numbers, the first pass sorts runs of several chunks, and writes them next to the
output, in short pieces, each run after samples of it. From the samples follow the parts of all runs that may
have the numbers of a block of the result, as long as a run. The second pass reads and merges these parts. So
numbers are read and written twice, tasks need nothing of one another, and both passes can be resumed.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.backend import Array, to_backend
from rnsdask.core.layout import CHUNK_MULTIPLE, RESIDUE_DTYPE, ChunkPlan, round_up
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place as ChunkPlace
from rnsdask.jobs import derivation
from rnsdask.jobs.between import path_between, remove_between
from rnsdask.jobs.compute import mapping
from rnsdask.jobs.derivation import Derivation
from rnsdask.jobs.hashes import result_hash
from rnsdask.jobs.memory_plan import Place, Work, describe, places_of
from rnsdask.jobs.sources import Source, check_target
from rnsdask.jobs.writing import Transfer, check_written, open_store, write, write_array
from rnsdask.lazy import ranks
from rnsdask.lazy import sort as lazy_sort
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.write import removing_failed
from rnsdask.rns.sort import RunCuts, RunSample, sample_places, taken

if TYPE_CHECKING:
    from distributed import Client

_FEWEST_RUNS = 16
"""Runs that threads and workers have to share at least, if chunks are short enough."""

_PIECES = 4
"""Pieces of the part that a block of the result takes of a run, so that few numbers are read in vain."""

_PIECE_BYTES = 2**19
"""Least bytes of a piece of a run, which is a file."""


@dataclass(frozen=True)
class Runs:
    """Layout of the store between the passes, in chunks of `piece` numbers.

    For each run of `length` numbers, of all `total` numbers, it has `samples` numbers of the run, and then
    all in order. Both fill whole pieces with repetitions of the last number.
    """

    total: int
    length: int
    piece: int

    @property
    def ends(self) -> list[int]:
        """Starts of all runs in the array, and the end of the last one."""
        return [*range(0, self.total, self.length), self.total]

    @property
    def count(self) -> int:
        """Number of runs."""
        return -(-self.total // self.length)

    @property
    def samples(self) -> int:
        """Number of samples of a run."""
        return ranks.samples_a_run(self.count)

    @property
    def columns(self) -> tuple[int, int]:
        """Numbers in the pieces of samples, and in those of the whole run."""
        return round_up(self.samples, self.piece), round_up(self.length, self.piece)

    def arrange(self, order: Array) -> Array:
        """Return the indices of a run's numbers in the store, given the indices in order."""
        sampled, whole = self.columns
        places = np.minimum(np.arange(whole), len(order) - 1)
        chosen = sample_places(len(order), self.samples)
        chosen = np.pad(chosen, (0, sampled - len(chosen)), mode="edge")
        return order[np.asarray(np.concatenate([chosen, places]), like=order)]

    def sample(self, info: store.StoreInfo, run: int) -> RunSample:
        """Read the samples of a run."""
        count = min(self.length, self.total - run * self.length)
        places = sample_places(count, self.samples)
        start = run * sum(self.columns)
        return RunSample(_read(info, start, start + len(places)), places, count)

    def read(self, info: store.StoreInfo, run: int, start: int, stop: int) -> NDArray[Any]:
        """Read some numbers of a run, of which there is at least one."""
        first = run * sum(self.columns) + self.columns[0]
        return _read(info, first + start, first + stop)


def _read(info: store.StoreInfo, start: int, stop: int) -> NDArray[Any]:
    """Read some numbers of a store, words (rows, k), chunk by chunk."""
    words = np.empty((info.system.rows, stop - start), dtype=info.system.word_dtype)
    (length,) = info.chunks
    for index in range(start // length, -(-stop // length)):
        low, high = max(start, index * length), min(stop, (index + 1) * length)
        chunk = store.read_chunk(info, (index,))
        words[:, low - start : high - start] = chunk[:, low - index * length : high - index * length]
    return words


# ---- plan --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sorting:
    """A sort of a store's numbers, checked: in memory without `runs`, which describe the store between."""

    source: Source
    derived: Derivation
    backend: str
    work: Work
    runs: Runs | None = None

    @property
    def bytes_read(self) -> int:
        """Bytes of words that are read, in all passes."""
        return self.derived.bytes_read if self.runs is None else 2 * int(self.derived.array.nbytes)

    def places(self, path: str) -> list[str]:
        """Path of the store between the passes, for an output at a path."""
        if self.runs is None:
            return []
        return [path_between(path, result_hash(self.derived.job, runs=asdict(self.runs)), 1)]


def prepare(source: Source, axis: int, backend: str = "cpu") -> Sorting:
    """Check a sort, as :func:`rnsdask.sort` does."""
    derived = derivation.prepare(
        "sort",
        [source],
        partial(lazy_sort.sort, axis=axis),
        backend=backend,
        passes=lambda x: lazy_sort.passes_and_waiting(x, axis)[0],
        waiting=lambda x: lazy_sort.passes_and_waiting(x, axis)[1],
        axis=axis,
    )
    return Sorting(source, derived, backend, derived.work)


def in_runs(sorting: Sorting, client: "Client | None" = None) -> Sorting:
    """Choose runs for a sort whose numbers half of this process's memory does not hold.

    On workers, which exchange no numbers then, runs are chosen for each sort of many chunks.
    """
    info = sorting.source.info
    if len(info.shape) > 1 or info.n_chunks < 2:
        return sorting
    places = places_of(sorting.work, client, sorting.backend)
    is_one_pass = sorting.derived.bytes_read <= sorting.derived.array.nbytes
    if info.n_chunks <= _FEWEST_RUNS if client else is_one_pass and _hold(places, sorting.work):
        return sorting
    runs = choose_runs(info, lambda length: _hold(places, _work_of_runs(info, length)))
    return replace(sorting, work=_work_of_runs(info, runs.length), runs=runs)


def _hold(places: list[Place], work: Work) -> bool:
    """Whether the part of memory that sorting may use is enough for a job, with what waits on a GPU too."""
    return all(place.part(ranks.SHARE).fits(work, place.threads, on_device=work.held) for place in places)


def choose_runs(info: store.StoreInfo, fits: Callable[[int], bool]) -> Runs:
    """Choose runs of whole chunks that fit, just long enough for pieces of at least the least size.

    Longer runs would cost more time: a processor's cache holds less of them.
    """
    (chunk,), (total,) = info.chunks, info.shape
    number = info.system.words32 * RESIDUE_DTYPE.itemsize
    wanted = math.isqrt(_PIECES * _PIECE_BYTES * total * number) // number
    most = max(1, min(info.n_chunks // _FEWEST_RUNS, -(-wanted // chunk)))
    chunks = next((k for k in range(most, 1, -1) if fits(k * chunk)), 1)
    count = -(-total // (chunks * chunk))
    length = round_up(-(-total // count), chunk)
    count = -(-total // length)
    piece = round_up(max(-(-_PIECE_BYTES // number), length // (_PIECES * count)), CHUNK_MULTIPLE)
    return Runs(total, length, min(piece, round_up(length, CHUNK_MULTIPLE)))


def _work_of_runs(info: store.StoreInfo, length: int) -> Work:
    """Describe both passes by a run, or a block of the result, one of which waits to be written."""
    held = length * info.system.words32 * RESIDUE_DTYPE.itemsize
    return describe("sort", [info.system], ChunkPlan(info.shape, (length,)), [info], held=held)


# ---- passes ------------------------------------------------------------------------------------------------


def write_sorted(
    sorting: Sorting, output: store.Output, client: "Client | None" = None, *, progress: bool = False
) -> Transfer:
    """Write the sorted numbers to a store, as :func:`.write_array` does.

    The store between the passes stays after an error, unless the disk is full.
    """
    runs = sorting.runs
    path, result = str(output.path), sorting.derived.array
    if runs is None:
        done = derivation.write(sorting.derived, output, client, progress=progress)
        remove_between(path, ())
        return done
    check_target(output, [sorting.source])
    (between,), decision = sorting.places(path), output.decide()
    resumed = decision is store.Decision.GO_ON
    place = store.locate(between)
    store.state(place)  # detects a name that is too long before anything is written
    if not resumed:
        store.check_room({store.locate(path): 2 * int(result.nbytes)})
    writer = open_store(result, output, decision)
    clear = partial(remove_between, path, [between])
    with nullcontext() if resumed else removing_failed(writer.discard, clear):
        if not resumed:  # the output belongs to this job now, so other jobs' stores are obsolete
            clear()
        words = _merged(sorting, _write_runs(sorting, place, client, progress=progress))
        kept, damaged = check_written([(writer, words)], client) if resumed else (set(), set())
        missing = [index for index in writer.indices() if index not in kept]
        amount: dict[str, Any] = {"numbers": result.size, "nbytes": result.nbytes}
        write(words, writer, missing, client, progress=progress, label="sort, pass 2", **amount)
        clear()
    return Transfer(result.size, sorting.bytes_read, result.nbytes, len(kept), len(damaged))


def _write_runs(
    sorting: Sorting, place: store.Location, client: "Client | None", *, progress: bool
) -> store.StoreInfo:
    """Write the sorted runs, those that an interrupted job has left, and return the store's metadata."""
    state, runs = store.state(place), sorting.runs
    assert runs is not None
    if state != "whole":
        info = sorting.source.info
        x = sorting.source.array(backend=sorting.backend, chunks=runs.length)
        chunks = ((sum(runs.columns),) * runs.count,)
        how: dict[str, Any] = {"system": x._measured_system(), "runs": runs, "like": np.empty(0)}
        words = map_chunks(
            _run_block, x.words, rows=info.system.rows, dtype=info.system.word_dtype, chunks=chunks, **how
        )
        array = info.system.array_type(rechunk(words, {1: runs.piece}), info.system)
        begun = state == "incomplete"
        if not begun:  # remains of a removed store
            store.remove(place)
        part = store.Output(place, result_hash(sorting.derived.job, runs=asdict(runs)), resume=begun)
        write_array(array, part, client, label="sort, pass 1", progress=progress)
    return store.open_info(place, store.all_systems)


def _run_block(block: Any, *, system: NumberSystem, runs: Runs) -> Any:
    order = ranks.sorted_indices(block, system, 0)
    return to_backend(taken(block, runs.arrange(order)), "cpu")


def _merged(sorting: Sorting, info: store.StoreInfo) -> da.Array:
    """Merge the runs to the words of the result, in its chunks."""
    runs, source = sorting.runs, sorting.source.info
    assert runs is not None
    system: NumberSystem = sorting.source.array()._measured_system()
    with mapping(None) as map_runs:
        samples = list(map_runs(partial(runs.sample, info), range(runs.count)))
    cuts = RunCuts(samples, ranks.sorter_of(system))
    starts, stops = cuts.slices(*cuts.enclose(runs.ends[:-1], runs.ends[1:]))
    how: dict[str, Any] = {"system": system, "runs": runs, "backend": sorting.backend, "like": np.empty(0)}
    how.update(rows=source.system.rows, dtype=source.system.word_dtype, info=info, starts=starts, stops=stops)
    merged = map_chunks(_merge_block, chunks=(tuple(np.diff(runs.ends).tolist()),), located=True, **how)
    return rechunk(merged, sorting.derived.array.words.chunks)


def _merge_block(
    *,
    info: store.StoreInfo,
    system: NumberSystem,
    runs: Runs,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    backend: str,
    place: ChunkPlace,
) -> Any:
    """Merge the parts of all runs that may have the numbers of a block of the result."""
    (block,), ((first, last),) = place.index[-1:], place.location
    parts = list(zip(starts[block].tolist(), stops[block].tolist(), strict=True))
    ends = np.cumsum([0, *(stop - start for start, stop in parts)])
    words = np.empty((info.system.rows, int(ends[-1])), dtype=info.system.word_dtype)
    for run, (start, stop) in enumerate(parts):
        if start < stop:
            words[:, ends[run] : ends[run + 1]] = runs.read(info, run, start, stop)
    words = to_backend(words, backend)
    before = sum(start for start, _ in parts)
    order = ranks.sorted_indices(words, system, 0)[first - before : last - before]
    return to_backend(taken(words, order), "cpu")
