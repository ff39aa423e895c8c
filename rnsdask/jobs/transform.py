"""The job that transforms elements of fields in a store, in several passes where an axis is long.

A long transform has three exchanges (:mod:`rnsdask.lazy.ntt`), in each of which every chunk sends a part to
every other chunk. Here the parts go through stores next to the output, as their chunks: a pass writes the
parts that chunks send, the next reads the parts that chunks receive. So memory holds a few chunks a thread,
and each pass is an ordinary job, which survives the death of workers and can be resumed.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da

from rnsdask import store
from rnsdask.arrays.field_array import FieldArray
from rnsdask.core import rows
from rnsdask.core.layout import RESIDUE_DTYPE, ChunkPlan, default_chunk
from rnsdask.fields.ntt import FourStep
from rnsdask.jobs.between import path_between, remove_between
from rnsdask.jobs.hashes import job_hash
from rnsdask.jobs.memory_plan import Work, describe
from rnsdask.jobs.sources import Source, check_target
from rnsdask.jobs.writing import Transfer, write_array
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.ntt import (
    Order,
    Root,
    check_transform,
    convention_of,
    divide_axis,
    intt,
    join_steps,
    ntt,
    transform_step,
)
from rnsdask.lazy.read import read_words

if TYPE_CHECKING:
    from distributed import Client

_STORES = 3
"""Number of intermediate stores, which exist one after the other."""


@dataclass(frozen=True)
class Transform:
    """A transform of a store's numbers, checked; only its metadata have been read.

    `result` is the lazy array that is to be written; with several passes, which `steps` describes, an array
    like it. `job` is a hash of all that determines its numbers.
    """

    source: Source
    result: FieldArray
    axis: int
    steps: FourStep | None
    backend: str
    work: Work
    job: store.Identity

    @property
    def passes(self) -> int:
        """Number of passes, each of which reads and writes all numbers."""
        return 1 if self.steps is None else _STORES + 1

    @property
    def bytes_read(self) -> int:
        """Bytes of residues that are read, in all passes."""
        return self.passes * int(self.result.nbytes)

    def line_of(self, index: tuple[int, ...]) -> tuple[Any, ...]:
        """Key by which a line's chunks, which are computed together, come one after another."""
        return (*index[: self.axis], *index[self.axis + 1 :], index)

    def places(self, path: str) -> list[str]:
        """Paths of the stores between the passes, for an output at a path.

        Their names include the job's hash, so that no other job takes them for its own.
        """
        if self.steps is None:
            return []
        return [path_between(path, self.job, k) for k in range(1, _STORES + 1)]


def prepare(
    source: Source,
    axis: int,
    inverse: bool,
    negacyclic: bool,
    backend: str = "cpu",
    *,
    root: Root | None = None,
    order: Order = "natural",
) -> Transform:
    """Check a transform, as :func:`rnsdask.ntt` does, and choose its number of passes.

    Lines of another root or order than the usual ones are whole in one pass.
    """
    function = intt if inverse else ntt
    array = source.array()
    k = check_transform(function.__name__, array, axis, negacyclic)
    length, chunks = array.shape[k], array.words.chunksize[1:]
    plan, words = ChunkPlan.longest(array.chunks), array.system.words32
    convention = convention_of(array.system, length, negacyclic, root, order)
    block = block_length(plan, words, k) if convention is None else length
    steps, result = None, array
    if block < length:
        steps = FourStep(array.system, length, block, inverse, negacyclic)
    else:
        lines = source.array(backend=backend, chunks={k: -1})
        result = function(lines, k, negacyclic, root=root, order=order).rechunk(chunks)
    work = _work(source, plan, k, block)
    how: dict[str, Any] = {"axis": k, "inverse": inverse, "negacyclic": negacyclic}
    how |= {} if convention is None else {"exponents": convention.exponents, "order": order}
    job = job_hash("ntt", {"source": source.info}, block=block, **how)
    return Transform(source, result, k, steps, backend, work, job)


def block_length(plan: ChunkPlan, words: int, axis: int) -> int:
    """Length along the axis that a task transforms: the whole axis if that is a chunk, else 64 to 128 MiB.

    It is at least the square root of the axis' length, so that rows and columns of a matrix both fit.
    """
    length = plan.shape[axis]
    if plan.grid[axis] == 1:
        return length
    least = 1 << -(-(length.bit_length() - 1) // 2)
    return min(length, max(least, default_chunk(words * _count_lines(plan, axis))))


def _count_lines(plan: ChunkPlan, axis: int) -> int:
    """Number of lines along the axis that cross a chunk."""
    return plan.chunk_count // plan.chunks[axis]


def _work(source: Source, plan: ChunkPlan, axis: int, block: int) -> Work:
    """Describe the job by its longest chunk, and the most tasks of a pass."""
    system, length, chunk = source.info.system, plan.shape[axis], plan.chunks[axis]
    number, lines, tasks = system.words32 * RESIDUE_DTYPE.itemsize, _count_lines(plan, axis), plan.n_chunks
    if block < length:
        tasks = max(tasks, tasks // plan.grid[axis] * (length // block) ** 2)
    # Part of the axis that waits to be joined to a block, and then to chunks.
    held = 0 if chunk == length else (block + 2 * chunk) * lines * number
    # Where roots of unity move digits: factors of the passes and of their twist, and their sources.
    constants = 4 * block * number if rows.multiply_by_root.name in system.table else 0
    work = describe("ntt", [system], plan, [source.info], held=held, constants=constants)
    return replace(work, numbers=max(work.numbers, lines * max(block, chunk)), chunks=max(1, tasks))


def write_transform(
    transform: Transform, output: store.Output, client: "Client | None" = None, *, progress: bool = False
) -> Transfer:
    """Write the transform to a store, as :func:`.write_array` does.

    Stores between passes stay after an error, unless the disk is full.
    """
    check_target(output, [transform.source])
    path = str(output.path)
    for place in transform.places(path):  # detects a name that is too long before anything is written
        store.state(store.locate(place))
    if transform.steps and output.decide() is not store.Decision.GO_ON:  # two stores at a time
        store.check_room({store.locate(path): 2 * int(transform.result.nbytes)})
    clear = partial(remove_between, path, transform.places(path))
    passes = partial(_run_passes, transform, path, client, progress) if transform.steps else None
    label = f"ntt, pass {transform.passes}" if transform.steps else "ntt"
    how: dict[str, Any] = {"label": label, "progress": progress, "order": transform.line_of}
    # Once the output belongs to this job, other jobs' stores are obsolete.
    done = write_array(transform.result, output, client, make=passes, begun=clear, failed=clear, **how)
    clear()
    return replace(done, bytes_read=transform.bytes_read)


def _run_passes(transform: Transform, path: str, client: "Client | None", progress: bool) -> da.Array:
    """Run all passes but the last one, and return its input: the words that the previous pass has written.

    Passes that an interrupted job has finished are skipped.
    """
    steps = transform.steps
    assert steps is not None
    places = [store.locate(place) for place in transform.places(path)]
    states = [store.state(place) for place in places]
    done = max((k for k, state in enumerate(states, 1) if state == "whole"), default=0)
    words = transform.source.array().words if not done else _words_at(places[done - 1])
    for k in range(done, _STORES):
        if k == 0:
            parts = divide_axis(words, transform.axis, steps)
        else:
            parts = transform_step(words, steps, ("columns", "rows")[k - 1], transform.backend)
        given = FieldArray(rechunk(parts, {-1: steps.part}), transform.result.system)
        begun = states[k] == "incomplete"
        if not begun:  # remains of a removed store
            store.remove(places[k])
        part = store.Output(places[k], transform.job, resume=begun)
        write_array(given, part, client, label=f"ntt, pass {k + 1}", progress=progress)
        if k:
            store.remove(places[k - 1])
        words = _words_at(places[k])
    return rechunk(join_steps(words, transform.axis, steps), transform.result.words.chunks)


def _words_at(place: store.Location) -> da.Array:
    return read_words(store.open_info(place, store.all_systems))
