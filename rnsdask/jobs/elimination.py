"""The job that eliminates one great matrix over prime fields panel by panel, with a working store.

Block columns come in groups, as many as memory holds. A group is read, reduced by all panels before it, which
are read one by one, each while the one before is applied, and eliminated; then its panels are written, once
and for all (a left-looking plan). So the matrix is read once, the panels once for each later group, and
nothing is written twice. Reduced forms, solutions and null vectors are lazy arrays afterwards: a task for
each of their block columns reads panels from the last to the first. A job that is killed goes on after the
last panel in the store.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.field_array import FieldArray
from rnsdask.backend import Array, has_gpu, to_backend
from rnsdask.core.errors import JobError, StoreError
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.messages import note
from rnsdask.core.place import ALONE, Place
from rnsdask.core.places import local_path
from rnsdask.core.ways import REPLACE, Message
from rnsdask.fields import block_elimination as blocks
from rnsdask.fields.block_elimination import Found, Panel
from rnsdask.fields.echelon import free_columns
from rnsdask.fields.stored_panels import null_vectors, pivot_columns, take_columns
from rnsdask.jobs.between import path_between, remove_between
from rnsdask.jobs.compute import map_ahead, mapping, naming
from rnsdask.jobs.exact_results import Problem, as_ints, work_in_blocks, write_integers
from rnsdask.jobs.hashes import job_hash, result_hash
from rnsdask.jobs.memory_plan import Place as Process
from rnsdask.jobs.memory_plan import Work, places_of
from rnsdask.jobs.panels import TILES, Layout, WorkingStore, read_columns
from rnsdask.jobs.progress import metered
from rnsdask.jobs.sources import Source, check_target
from rnsdask.jobs.writing import Transfer, write_array
from rnsdask.lazy.block_elimination import has_block_elimination, is_small, least_width, width_of_blocks
from rnsdask.lazy.call import Call
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.matrices import common_rank
from rnsdask.lazy.write import removing_failed
from rnsdask.store.identity import Identity

Map: TypeAlias = Callable[..., Any]
"""A parallel ``map`` that returns results in order."""

OPERATIONS = ("det", "rank", "solve", "rref", "nullspace")

_NAMES = "words", "records"
"""Names of the arrays of a working store in a folder of its own."""

_TASK_BLOCKS, _TASK_BLOCKS_UP = 4 + 1 / TILES, 6
"""Block columns that a task takes beside its own: downwards, where a thread beside it reads or writes a tile,
and upwards with its own and a panel."""

_OWN_BLOCKS = 7
"""Block columns beside the group: a panel, and those with which the next one is found and written. Two panels
that are read take fewer."""


@dataclass(frozen=True)
class Elimination:
    """An elimination of one matrix in a store, checked; only metadata have been read.

    `unique` is as in :func:`rnsdask.linalg.solve`, and `job` a hash of all that determines the results.
    """

    operation: str
    sources: tuple[Source, ...]
    layout: Layout
    backend: str
    unique: bool
    job: Identity

    def work(self, group: int) -> Work:
        """Describe the job with groups of that many block columns."""
        layout, block = self.layout, self.layout.block_bytes
        infos = [info for info in (layout.info, layout.right) if info is not None]
        # A task reads a chunk, and copies parts of it.
        chunk = 2 * max(info.chunk_bytes for info in infos)
        threads_up = max(0, _TASK_BLOCKS_UP - _TASK_BLOCKS) if layout.keeps else 0
        return Work(
            self.operation,
            layout.info.system.words32,
            layout.shape[0] * layout.width,
            layout.panels,
            max(_TASK_BLOCKS + threads_up * (group < _OWN_BLOCKS), chunk / block),
            constants=(min(group, layout.panels) + _OWN_BLOCKS) * block,
            batches=False,
            whole=f"a matrix of shape {layout.shape} by block columns of {layout.width}",
        )

    def group_for(self, place: Process) -> int:
        """Return the most block columns of a group with which the job fits into the memory of a process."""
        counts = range(self.layout.panels, 0, -1)
        for threads in range(_threads_of(place), 0, -1):
            found = next((g for g in counts if place.fits(self.work(g), threads)), 0)
            if found >= min(threads, self.layout.panels):
                # Groups that are whole stored chunks read these once.
                chunk = max(1, self.layout.info.chunks[1] // self.layout.width)
                return found if found in (counts[0], found % chunk) else found - found % chunk
        return 1

    def choose(self, output: store.Output | None, checkpoint: str | None) -> int:
        """Block columns of a group if the job is to go by panels, 0 if this process holds all it takes.

        It goes by panels too with a `checkpoint`, and where a working store is there to go on with.
        """
        (place,) = places_of(self.work(1), None, self.backend)
        begun = output is not None and output.resume and self._has_begun(output)
        if begun or checkpoint or self.operation == "nullspace":
            return self.group_for(place)
        work = self.work_in_memory
        on_device = 2 * work.held  # the plan counts it twice on a host
        fits = place.fits(work, _threads_of(place), on_device=on_device)
        return 0 if fits else self.group_for(place)

    @property
    def work_in_memory(self) -> Work:
        """The job without a working store."""
        infos = [info for info in (self.layout.info, self.layout.right) if info is not None]
        return work_in_blocks(self.operation, infos, self.layout.width)

    def places(self, output: store.Output) -> list[str]:
        """Paths of the working store of an output."""
        return [path_between(str(output.path), self.job, k) for k in (1, 2)]

    def _has_begun(self, output: store.Output) -> bool:
        return any(store.state(store.locate(path)) == "incomplete" for path in self.places(output))


def _threads_of(place: Process) -> int:
    """Threads for which a process is to have memory: one for a GPU, which leaves room for larger groups."""
    return place.threads if place.device is None else 1


def prepare(
    operation: str, sources: Sequence[Source], backend: str, parameters: Mapping[str, Any]
) -> Elimination | None:
    """Check a job; None if the operation is not of one matrix over prime fields in block columns.

    Without a GPU in this process, the processor ``"auto"`` is the CPU.
    """
    backend = "cpu" if backend == "auto" and not has_gpu() else backend
    infos = [source.info for source in sources]
    shape, unique = infos[0].shape, bool(parameters.get("unique", True))
    if operation not in OPERATIONS or not has_block_elimination(infos[0].system) or len(shape) != 2:
        return None
    if 0 in shape or parameters.get("variables") or max(infos[0].grid) == 1:
        return None
    is_square = operation == "det" or (operation == "solve" and unique)
    if is_square and shape[0] != shape[1]:
        return None
    words = infos[0].system.words32, *shape
    if is_small(words, on_gpu=backend != "cpu"):
        return None
    right = infos[1] if len(infos) > 1 else None
    if right is not None:
        sides = right.shape
        if right.system != infos[0].system or len(sides) > 2 or sides[0] != shape[0] or 0 in sides:
            return None
    longest = min(infos[0].chunks[1], shape[1])
    width = least_width(longest) if backend == "cpu" else width_of_blocks(words, longest, on_gpu=True)
    layout = Layout(infos[0], width, operation not in ("det", "rank"), right)
    inputs = {str(position): info for position, info in enumerate(infos)}
    job = job_hash(operation, inputs, **parameters)
    return Elimination(operation, tuple(sources), layout, backend, unique, job)


def output_of(elimination: Elimination, path: str | None, **mode: bool) -> store.Output | None:
    """Output at a path, with options of :class:`.Output`."""
    if path is None:
        return None
    job = elimination.job
    if elimination.operation == "rank":
        job = result_hash(job, result=0, moduli=None)
    output = store.Output(path, job, **mode)
    check_target(output, elimination.sources)
    return output


def remove_working(output: store.Output) -> None:
    """Remove the working stores of killed jobs with this output, which is written."""
    remove_between(str(output.path), ())


@dataclass(frozen=True)
class Done:
    """Results of a job, and the working store, which may be removed by now.

    Results are `values`, as :func:`.exact_results.integers` returns them, or what was written to the output,
    an array of a `shape`.
    """

    problem: Problem
    values: list[NDArray[np.object_]]
    transfer: Transfer | None
    shape: tuple[int, ...]
    working: WorkingStore


def run(
    elimination: Elimination,
    output: store.Output | None,
    group: int,
    *,
    checkpoint: str | None = None,
    progress: bool = False,
) -> Done:
    """Compute the results, with groups of that many block columns, and write them if there is an output.

    JobError if there are none, and as :func:`working_store` raises it.
    """
    named = f"{elimination.operation} of {' '.join(source.path for source in elimination.sources)}"
    values, transfer = [], None
    try:
        with naming(named), working_store(elimination, output, checkpoint) as working:
            found = eliminate(elimination, working, group, progress=progress)
            result = result_of(elimination, working, found)
            if output is not None and elimination.operation != "rank":
                transfer = write_array(result, output, label=elimination.operation, progress=progress)
            else:
                values = [as_ints(result[0] if elimination.operation == "det" else result)]
                if output is not None:
                    (transfer,) = write_integers(values, None, [output], progress=progress)
    except ValueError as error:
        raise JobError(Message(f"{named}: ", error)) from error
    infos = [source.info for source in elimination.sources]
    size = sum(info.count for info in infos)
    nbytes = sum(info.count * info.system.words32 for info in infos) * RESIDUE_DTYPE.itemsize
    if transfer is not None:
        transfer = replace(transfer, bytes_read=nbytes)
    about = elimination.work(group), size, nbytes, elimination.job
    problem = Problem(elimination.operation, elimination.sources, tuple, (), *about)
    return Done(problem, values, transfer, tuple(result.shape), working)


# ---- where panels are kept --------------------------------------------------------------------------------


@contextmanager
def working_store(
    elimination: Elimination, output: store.Output | None, checkpoint: str | None
) -> Iterator[WorkingStore]:
    """Open the working store: in the folder of a checkpoint, where it stays, beside an output, or elsewhere.

    That is in Dask's ``temporary-directory``, or where the system has temporary files. JobError if
    the checkpoint has other files.
    """
    at = partial(WorkingStore.at, layout=elimination.layout, job=elimination.job, backend=elimination.backend)
    if checkpoint is not None:
        paths = _in_checkpoint(checkpoint)
        try:
            working = at(paths)
        except StoreError as error:  # whose way out is for an output
            why = str(error).partition(f"; {REPLACE}")[0]
            raise JobError(
                f"{checkpoint}: the checkpoint cannot be continued: {why}; remove it, or give another folder"
            ) from None
        yield working
    elif output is not None:
        path, places = str(output.path), elimination.places(output)
        clear = partial(remove_between, path, places)
        if not output.resume:
            clear()
        with removing_failed(clear):
            yield at(places)
        clear()
    else:
        given = dask.config.get("temporary-directory", None)
        with TemporaryDirectory(prefix="rnsdask-", dir=given) as folder:
            note(f"rnsdask: the matrix does not fit into memory: finished parts are in {folder} meanwhile")
            yield at([f"{folder}/{name}" for name in _NAMES])


def _in_checkpoint(checkpoint: str) -> list[str]:
    """Paths of the working store in a folder, which is made; JobError if it has other files."""
    folder = local_path(checkpoint, "a checkpoint")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise JobError(f"{folder}: the checkpoint cannot be used: {error.strerror or error}") from error
    if any(name.lstrip(".").partition(".")[0] not in _NAMES for name in names):
        raise JobError(f"{folder}: it is not a checkpoint, but a folder with other files")
    return [str(folder / name) for name in _NAMES]


# ---- downwards --------------------------------------------------------------------------------------------


def eliminate(
    elimination: Elimination, working: WorkingStore, group: int, *, progress: bool = False
) -> Found:
    """Find all panels that the working store lacks, and reduce the right-hand sides; return what was found.

    Raises
    ------
    numpy.linalg.LinAlgError
        If equations have no solution, or a matrix is singular whose solution is to be unique.
    """
    layout, start = elimination.layout, working.count_finished()
    last, total = layout.panels, layout.panels + layout.sides
    steps = sum(min(k, last) for k in range(start, total))
    size, nbytes = math.prod(layout.shape), layout.panels * layout.block_bytes
    how: dict[str, Any] = {"numbers": size, "nbytes": nbytes, "shown": progress}
    with (
        metered(elimination.operation, steps, **how) as meter,
        mapping(None, meter.advance) as map_columns,
        working.in_threads(),
    ):
        for first in range(start, last, group):
            _eliminate_group(working, range(first, min(first + group, last)), map_columns)
        found = working.found(last)
        if elimination.operation == "solve" and elimination.unique:
            blocks.check_regular(found, moduli=layout.moduli, place=ALONE)
        for first in range(max(start, last), total, group):
            _reduce_sides(working, range(first, min(first + group, total)), found, map_columns)
    if elimination.operation == "solve" and not elimination.unique:
        blocks.check_solvable(found, working.fails(), moduli=layout.moduli, place=ALONE)
    return found


def _eliminate_group(working: WorkingStore, group: range, map_columns: Map) -> None:
    """Find the panels of a group of block columns, and write them."""
    layout, found = working.layout, working.found(group[0])
    columns = _reduced(working, group, range(group[0]), map_columns)
    factor = Call(blocks.factor_panel, {"moduli": layout.moduli, "keeps": layout.keeps})
    panel = factor(columns.pop(0), found)
    for k in group:
        first_column = layout.place(k)[1]
        found = blocks.found_after(panel, found, first_column=first_column, moduli=layout.moduli)
        rest = _apply(panel, columns, layout, map_columns)
        # While threads reduce the rest, this one finds the next panel.
        following = factor(next(rest), found) if k < group[-1] else panel
        working.write_panel(k, panel, found)
        columns, panel = list(rest), following


def _reduce_sides(working: WorkingStore, group: range, found: Found, map_columns: Map) -> None:
    """Reduce block columns of right-hand sides by all panels, and write them."""
    columns = _reduced(working, group, range(working.layout.panels), map_columns)
    for k, block in zip(group, columns, strict=True):
        working.write_side(k, block, blocks.left_over(block, found))


def _reduced(working: WorkingStore, group: range, panels: range, map_columns: Map) -> list[Array]:
    """Read block columns, and reduce them by the panels before them, each of which is read once."""
    columns, nbytes = read_columns(working.layout, group, working.backend, working.map_parts)
    working.source_bytes += nbytes
    for panel in map_ahead(working.read_panel, panels, threads=1):
        columns = list(_apply(panel, columns, working.layout, map_columns))
        del panel  # or three were in memory at once
    return columns


def _apply(panel: Panel, columns: list[Array], layout: Layout, map_columns: Map) -> Iterator[Array]:
    """Reduce block columns on all threads, and empty the list: each is in memory once.

    They stay where they are. As new arrays of many threads they would be scattered over the allocator's
    arenas, and take twice the memory.
    """
    apply = Call(blocks.apply_panel, {"moduli": layout.moduli})
    reduction = blocks.reduction_of(panel)

    def reduce(block: Array) -> Array:
        rest = block[:, panel.drops :]
        rest[...] = apply(block, reduction)
        return rest

    taken = (columns.pop(0) for _ in range(len(columns)))
    return iter(map_columns(reduce, taken))


# ---- results ----------------------------------------------------------------------------------------------


def result_of(elimination: Elimination, working: WorkingStore, found: Found) -> Any:
    """Return the result of :mod:`rnsdask.linalg`: an array, lazy on the working store if it is a matrix.

    A determinant is an array of one number. ValueError if a nullspace has other dimensions modulo other
    primes.
    """
    layout, operation = elimination.layout, elimination.operation
    rows, columns = layout.shape
    if operation == "rank":
        return found.ranks
    if operation == "det":
        return _array(layout, np.where(found.ranks == rows, found.products, np.uint32(0))[:, None])
    if operation == "rref":
        widths = [stop - start for _, start, stop in map(layout.place, range(layout.panels))]
        return _array(layout, _map(_form_block, working, rows, widths))
    if operation == "solve":
        places = map(layout.place, range(layout.panels, layout.panels + layout.sides))
        words = _map(_solution_block, working, columns, [stop - start for _, start, stop in places])
        assert layout.right is not None
        return _array(layout, words if len(layout.right.shape) > 1 else words[..., 0])
    count = columns - common_rank(found.ranks, [f" modulo {p}" for p in layout.moduli])
    widths = [min(layout.width, count - start) for start in range(0, count, layout.width)]
    if not widths:
        return _array(layout, np.zeros((len(layout.moduli), columns, 0), dtype=layout.info.system.word_dtype))
    return _array(layout, _map(_null_block, working, columns, widths))


def _array(layout: Layout, words: Any) -> FieldArray:
    array: FieldArray = FieldArray(words, layout.info.system)
    return array


def _map(function: Callable[..., Any], working: WorkingStore, rows: int, widths: Sequence[int]) -> da.Array:
    """Make a lazy matrix of a task for each of its block columns."""
    system = working.layout.info.system
    name = f"panels-{function.__name__.strip('_')}-{working.token}"
    how: dict[str, Any] = {"rows": system.rows, "dtype": system.word_dtype, "like": np.empty(0), "name": name}
    chunks = (rows,), tuple(widths)
    words: da.Array = map_chunks(function, chunks=chunks, located=True, working=working, **how)
    return words


def _form_block(*, working: WorkingStore, place: Place) -> NDArray[Any]:
    """Columns of the reduced row echelon form."""
    layout, k = working.layout, place.index[-1]
    _, start, stop = layout.place(k)
    before, after = working.found(k), working.found(k + 1)
    if (after.ranks - before.ranks == stop - start).all():  # those of an identity matrix
        shape = len(layout.moduli), layout.shape[0], stop - start
        return pivot_columns(before, after, shape, first_column=start)
    panel = working.read_panel(k, of_form=True)
    upper = blocks.upper_of(panel, moduli=layout.moduli)
    rows = min(layout.shape)
    block = blocks.reduced_block(panel, upper, moduli=layout.moduli, rows=rows)
    block = blocks.extended(_reduced_up(working, block, k), rows=layout.shape[0])
    return np.asarray(to_backend(block, "cpu"))


def _solution_block(*, working: WorkingStore, place: Place) -> NDArray[Any]:
    """Columns of solutions."""
    layout, k = working.layout, working.layout.panels + place.index[-1]
    block = to_backend(working.read(k)[0][:, : min(layout.shape)], working.backend)
    block = _reduced_up(working, block, layout.panels)
    found = working.found(layout.panels)
    return np.asarray(to_backend(blocks.placed(block, found, rows=layout.shape[1]), "cpu"))


def _null_block(*, working: WorkingStore, place: Place) -> NDArray[Any]:
    """Columns of a basis of the nullspace: free columns of the echelon form are reduced together."""
    layout, part = working.layout, slice(*place.location[-1])
    found = working.found(layout.panels)
    rank = int(found.ranks[0])
    free = free_columns(found.pivots[:, :rank], layout.shape[1])[:, part]
    shape = len(free), min(layout.shape), free.shape[1]
    like = to_backend(np.empty(0, dtype=layout.info.system.word_dtype), working.backend)
    block = np.zeros_like(like, shape=shape, order="C")
    for k in range(int(free.max()) // layout.width, -1, -1):
        panel = working.read_panel(k, of_form=True)
        block = take_columns(block, panel, free, first_column=layout.place(k)[1])
        block = blocks.reduce_by(block, blocks.upper_of(panel, moduli=layout.moduli), moduli=layout.moduli)
    return np.asarray(to_backend(null_vectors(block, found, free, layout.shape[1], layout.moduli), "cpu"))


def _reduced_up(working: WorkingStore, block: Array, panels: int) -> Array:
    """Reduce a block column by the first panels, the last of them first."""
    moduli = working.layout.moduli
    for k in range(panels - 1, -1, -1):
        if (working.found(k + 1).ranks > working.found(k).ranks).any():
            upper = blocks.upper_of(working.read_panel(k, of_form=True), moduli=moduli)
            block = blocks.reduce_by(block, upper, moduli=moduli)
    return block
