"""Writing the chunks of an array: all of them, or those that an interrupted job has left."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.number_array import NumberArray
from rnsdask.backend import to_backend
from rnsdask.core.errors import JobError, abbreviate
from rnsdask.core.ways import REPLACE, with_ways
from rnsdask.jobs.compute import compute, mapping
from rnsdask.jobs.run import groups_of
from rnsdask.lazy.tree import combine_each, pieces_of
from rnsdask.lazy.write import ChunkWriter, count_chunks, removing_failed, total_count, write_chunks

if TYPE_CHECKING:
    import dask.array as da
    from distributed import Client

Index = tuple[int, ...]


@dataclass(frozen=True)
class Transfer:
    """Totals of a job: integers, and bytes read and written.

    In a resumed store, chunks that it held whole are kept, and damaged ones are rewritten.
    """

    count: int
    bytes_read: int
    bytes_written: int
    chunks_kept: int = 0
    chunks_rewritten: int = 0

    @property
    def resumed_text(self) -> str:
        """Text about a resumed job; empty if the job was not resumed."""
        kept, rewritten = self.chunks_kept, self.chunks_rewritten
        if not kept + rewritten:
            return ""
        chunks, ones = ("chunk" if kept == 1 else "chunks"), ("one" if rewritten == 1 else "ones")
        return f"; {kept} {chunks} kept, {rewritten} damaged {ones} written again"

    def as_dict(self) -> dict[str, int]:
        """Return the attributes by their names."""
        return asdict(self)


def write_array(
    array: NumberArray,
    output: store.Output,
    client: "Client | None" = None,
    *,
    progress: bool = False,
    label: str = "write",
    compare_all: bool = False,
    make: "Callable[[], da.Array] | None" = None,
    order: Callable[[Index], Any] | None = None,
    begun: Callable[[], object] = lambda: None,
    failed: Callable[[], object] = lambda: None,
) -> Transfer:
    """Compute a lazy array into a store with the same chunks.

    In an incomplete store that the job resumes (:meth:`.Output.decide`), only missing and damaged chunks are
    written. With `compare_all` all kept chunks are compared with the array's, not only the first: for jobs
    whose hash does not show whether operands are unchanged. Progress is shown as `label`. Once the store
    exists, `make` gives the words, if they are not the array's; chunks are written in the `order` of a key of
    their indices, by default in C order.

    An error of the data removes a store that was begun, unless it was resumed. Only in a store that this call
    begins, `begun` is called before its first chunk is computed, and `failed` after such an error. JobError
    or StoreError if the store to resume does not match the array, or was begun by another job.
    """
    decision = output.decide()
    source = array.with_storable_chunks()
    if decision is store.Decision.DONE:
        return Transfer(array.size, 0, array.nbytes, math.prod(source.numblocks))
    resumed = decision is store.Decision.GO_ON
    kept: set[Index] = set()
    damaged: set[Index] = set()
    writer = open_store(source, output, decision, any_job=compare_all)
    with nullcontext() if resumed else removing_failed(writer.discard, failed):
        if not resumed:
            begun()
        words: Any = make() if make else source.words
        if resumed:
            kept, damaged = check_written([(writer, words)], client)
            if compare_all:
                compute(counts(words, _Comparison(writer), sorted(kept)), client)
        missing = sorted((index for index in writer.indices() if index not in kept), key=order)
        amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
        write(words, writer, missing, client, progress=progress, label=label, **amount)
    return Transfer(array.size, 0, array.nbytes, len(kept), len(damaged))


def open_store(
    source: NumberArray, output: store.Output, decision: store.Decision, *, any_job: bool = False
) -> store.ArrayWriter:
    """Create the store of an array with storable chunks, or open an incomplete one that matches it."""
    if decision is store.Decision.BEGIN:
        begun: store.ArrayWriter = source.create_store(
            output.path, overwrite=output.overwrite, job=output.job
        )
        return begun
    facts: dict[str, Any] = {
        "shape": source.shape,
        "chunks": source.storable_lengths(),
        "system": source.system,
    }
    return resume_store(output, any_job, **facts)


def check_written(
    writers: "Sequence[tuple[store.ArrayWriter, da.Array]]", client: "Client | None"
) -> tuple[set[Index], set[Index]]:
    """Indices of the chunks that are whole in all writers' arrays, and of those damaged in one of them.

    The first whole chunk is compared with the job's result, the lazy array that is paired with each writer.
    """
    with mapping(client) as map_chunks:
        found = [written_chunks(writer, map_chunks) for writer, _ in writers]
    kept = set.intersection(*(whole for whole, _ in found))
    if kept:
        first = min(kept)
        blocks = compute([array.blocks[(0, *first)] for _, array in writers], client)
        for (writer, _), block in zip(writers, blocks, strict=True):
            check_same(writer, first, to_backend(block, "cpu"))
    return kept, set.union(*(damaged for _, damaged in found))


def write(
    blocks: "da.Array",
    writer: ChunkWriter,
    indices: Sequence[Index],
    client: "Client | None" = None,
    **how: Any,
) -> None:
    """Compute and write the chunks at some indices, and finish; `how` has options of `compute`."""
    written = counts(blocks, writer, indices)
    compute(pieces_of(*written), client, **how)
    writer.finish()


def counts(
    blocks: "da.Array",
    writer: ChunkWriter,
    indices: Sequence[Index],
    *,
    mask: "da.Array | None" = None,
    mask_writer: ChunkWriter | None = None,
    counted: Sequence[Index] = (),
) -> list["da.Array"]:
    """Lazy arrays that write the chunks at some indices when they are computed.

    Parameters are as in :func:`.write_chunks`; `counted` are indices of chunks that are already written, but
    whose mask is still counted. Each block is the count of True values of the mask in a group of chunks;
    :func:`.pieces_of` makes a job of them.
    """
    written = _counting_groups(write_chunks(blocks, writer, mask, mask_writer), indices)
    return written if mask is None else written + _counting_groups(count_chunks(mask), counted)


def _counting_groups(counts: "da.Array", indices: Sequence[Index]) -> list["da.Array"]:
    """Counts summed over groups of chunks: one array, or no array without chunks."""
    numbers = [int(np.ravel_multi_index(index, counts.numblocks[1:])) for index in indices]
    groups = [numbers[group.start : group.stop] for group in groups_of(len(numbers))]
    return [combine_each(counts, groups, total_count)] if groups else []


# ---- what is there already --------------------------------------------------------------------------------


def resume_store(
    output: store.Output, any_job: bool, any_bound: bool = False, **wanted: Any
) -> store.StoreWriter:
    """Open an incomplete store to write the rest, and check that it is as the job would create it.

    `any_job` is as in `store.resume`, and `wanted` maps attributes of `store.StoreInfo` to the job's values.
    With `any_bound`, the bounds may differ.
    """
    check = partial(_check_facts, wanted=wanted, any_bound=any_bound)
    return store.resume(output.path, check, job=output.job, any_job=any_job)


def _check_facts(info: store.StoreInfo, wanted: dict[str, Any], any_bound: bool) -> None:
    for name, value in wanted.items():
        found = getattr(info, name)
        if any_bound and name == "system" and found.same_numbers(value):
            continue
        if found != value:
            if name == "system" and type(found) is type(value):
                name, found, value = _difference(found, value)
            if name == "bound":
                found, value = (None if bound is None else abbreviate(bound) for bound in (found, value))
            raise JobError(
                with_ways(
                    f"{info.path}: it cannot be resumed: its {name}: {found}; of the job: {value}", REPLACE
                )
            )


def _difference(found: Any, value: Any) -> tuple[str, Any, Any]:
    """Name and values of the first field in which two systems of one kind differ."""
    names = [field.name for field in fields(found)]
    name = next(name for name in names if getattr(found, name) != getattr(value, name))
    return name, getattr(found, name), getattr(value, name)


def written_chunks(
    writer: store.ArrayWriter, map_chunks: Callable[..., Iterable[list[str]]]
) -> tuple[set[Index], set[Index]]:
    """Indices of the whole chunks that an array holds, and of the damaged ones.

    All written chunks are read. `map_chunks` is as in `rnsdask.store.verify`.
    """
    damaged = set(writer.damaged_chunks(map_chunks))
    whole = set(writer.indices()).difference(writer.missing_chunks(), damaged)
    return whole, damaged


@dataclass(frozen=True)
class _Comparison:
    """Writer that compares chunks with stored ones instead of writing them."""

    writer: store.ArrayWriter

    def write_chunk(self, index: Sequence[int], block: Any, /) -> None:
        """Raise JobError unless a chunk holds the numbers of a block."""
        check_same(self.writer, tuple(index), to_backend(block, "cpu"))

    def finish(self) -> None:
        """Do nothing: all chunks are already written."""


def check_same(writer: store.ArrayWriter, index: Index, block: NDArray[Any]) -> None:
    """Check that a chunk written earlier holds the given words or values."""
    if not np.array_equal(writer.read_chunk(index), block):
        raise JobError(
            with_ways(
                f"{writer.chunk_name(index)} holds other numbers than this job's; it cannot be resumed",
                REPLACE,
            )
        )
