"""The job that derives a lazy array from stores, and writes it chunk by chunk."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

from rnsdask.arrays.number_array import NumberArray
from rnsdask.core.layout import RESIDUE_DTYPE, ChunkPlan, Lengths
from rnsdask.jobs import memory_plan
from rnsdask.jobs.compute import naming
from rnsdask.jobs.hashes import job_hash
from rnsdask.jobs.memory_plan import Work
from rnsdask.jobs.sources import Source, check_target
from rnsdask.jobs.writing import Transfer, write_array
from rnsdask.store import Identity, Output

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Derivation:
    """A lazy array derived from stores, checked; only the stores' metadata have been read.

    `operation` is the name of the command. The array has storable chunks, and each of its sources is listed
    once. `bytes_read` counts bytes of words, and `job` is a hash of all that determines its numbers.
    """

    operation: str
    array: Any
    sources: tuple[Source, ...]
    bytes_read: int
    work: Work
    job: Identity


def prepare(
    operation: str,
    sources: Sequence[Source],
    make: Callable[..., Any],
    *,
    backend: str = "cpu",
    method: str = "words",
    read_in: Callable[[Source], Any] = lambda _: None,
    waiting: Callable[..., int] = lambda *_: 0,
    passes: Callable[..., int] = lambda *_: 1,
    memory: Callable[..., Mapping[str, Any]] = lambda *_: {},
    plan: Callable[..., Work | None] = lambda *_: None,
    **parameters: Any,
) -> Derivation:
    """Check a job that derives an array from stores; nothing is computed.

    `make` takes the lazy arrays of the sources, whose chunks go to the processor `backend` as they are read,
    and returns the lazy array, or raises. The arrays must have the method `method`
    (:meth:`.Source.array_with`). `read_in` returns the chunks that a source is opened in. These take the
    arrays, too: `waiting` returns how many numbers wait for others in memory, in addition to chunks that are
    cut and joined; `passes` how often each chunk is read; `memory` the arguments of :func:`.describe` that do
    not follow from the stores; `plan` may return the whole of it. `parameters` are all else that the result
    depends on, and can be written as JSON.
    """
    opened = {
        source.path: source.array_with(method, backend=backend, chunks=read_in(source)) for source in sources
    }
    arrays = [opened[source.path] for source in sources]
    made = make(*arrays)
    if not isinstance(made, NumberArray):
        raise ValueError("it is one number, and a store has at least one axis; 5:6 selects an array of one")
    array = made.with_storable_chunks()
    fields = memory(*arrays)
    work = plan(*arrays) or _work(
        operation, list(opened.values()), made, array, sources, waiting(*arrays), fields
    )
    inputs = {str(position): source.info for position, source in enumerate(sources)}
    job = job_hash(operation, inputs, **parameters)
    once = tuple({source.path: source for source in sources}.values())
    made_of: list[Any] = [one.words for one in opened.values()]
    words: Any = array.words
    nbytes = bytes_read([words], made_of) if array.size else 0
    nbytes *= passes(*arrays)
    return Derivation(operation, array, once, nbytes, work, job)


def _work(
    operation: str,
    arrays: Sequence[Any],
    made: Any,
    array: Any,
    sources: Sequence[Source],
    waiting: int,
    fields: Mapping[str, Any],
) -> Work:
    """Describe the job by its largest chunks, the most words of a number, and other `fields` of Work."""
    everything = [*arrays, made, array]
    infos = {source.path: source.info for source in sources}.values()
    plans = map(ChunkPlan.longest, [*(info.lengths for info in infos), *(one.chunks for one in everything)])
    largest = max(plans, key=lambda plan: (plan.chunk_count, plan.count))
    systems = [one.system for one in everything]
    alive = most_alive(made.chunks, array.chunks, array.shape)
    alive += sum(_alive(info, array) for info in infos)
    held = (alive + waiting) * max(system.words32 for system in systems) * RESIDUE_DTYPE.itemsize
    how = {"stores": 1, "held": held, **fields}  # one store after the other
    return memory_plan.describe(operation, systems, largest, [*infos], **how)


def _alive(stored: ChunkPlan, array: Any) -> int:
    """Most numbers of stored chunks in memory at a time while they are reshaped or rechunked."""
    chunks, shape = stored.lengths, stored.shape
    if shape == array.shape:
        return most_alive(chunks, array.chunks, shape)
    if stored.count != array.size:
        return 0
    # Dask reshapes chunks that span all axes but the first.
    return most_alive(chunks, (chunks[0], *((length,) for length in shape[1:])), shape)


def most_alive(before: Lengths, after: Lengths, shape: Sequence[int]) -> int:
    """Most numbers in memory at a time while chunks are cut and joined to others, in C order.

    Old chunks that each lie within one new chunk wait for no other. Otherwise, along the first axis where
    they do not, all that a new chunk and the old ones at its two ends cover waits until it is made.
    """
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if not _ends(new) <= _ends(old):
            outer = math.prod(max(lengths) for lengths in after[:axis])
            rows = outer * (max(new) + 2 * max(old))
            return min(rows * math.prod(shape[axis + 1 :]), math.prod(shape))
    return 0


def _ends(lengths: Sequence[int]) -> set[int]:
    total, ends = 0, set()
    for length in lengths:
        total += length
        ends.add(total)
    return ends


def bytes_read(results: Sequence[da.Array], sources: Iterable[da.Array]) -> int:
    """Bytes of the sources' chunks that computing the results reads."""
    wanted = {key for result in results for key in flatten(result.__dask_keys__())}
    needed = HighLevelGraph.merge(*(result.dask for result in results)).cull(wanted).get_all_external_keys()
    return sum(
        math.prod(lengths[i] for lengths, i in zip(source.chunks, key[1:], strict=True)) * source.itemsize
        for source in {source.name: source for source in sources}.values()
        for key in flatten(source.__dask_keys__())
        if key in needed
    )


def write(
    derivation: Derivation, output: Output, client: "Client | None" = None, *, progress: bool = False
) -> Transfer:
    """Write the array to a store as :func:`.write_array` does; JobError if a number is out of range."""
    check_target(output, derivation.sources)
    named = " ".join(source.path for source in derivation.sources)
    how: dict[str, Any] = {"progress": progress, "label": derivation.operation}
    with naming(f"{derivation.operation} of {named}"):
        done = write_array(derivation.array, output, client, **how)
    return Transfer(
        done.count, derivation.bytes_read, done.bytes_written, done.chunks_kept, done.chunks_rewritten
    )
