"""What a batch job computes with Dask, with progress on stderr: reductions, stores, verification."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from dask.delayed import delayed
from dask.system import CPU_COUNT

from rnsdask import store
from rnsdask.arrays import interval_rns_storage
from rnsdask.backend import to_backend
from rnsdask.core.errors import JobError, RNSOverflowError
from rnsdask.jobs.checkpoint import Checkpoint
from rnsdask.jobs.log import record
from rnsdask.jobs.progress import Meter, metered
from rnsdask.jobs.run import Done, groups_of, run
from rnsdask.jobs.summary import count_retries
from rnsdask.jobs.transfer import (
    Advance,
    Transfer,
    check_same,
    mapping_on_threads,
    resume_store,
    written_chunks,
)
from rnsdask.lazy.tree import combine_groups, combine_results, reduce_groups
from rnsdask.lazy.write import ChunkWriter, count_chunks, total_count, write_chunks

if TYPE_CHECKING:
    import dask.array as da
    from distributed import Client

    from rnsdask.arrays.rns_array import RNSArray
    from rnsdask.rns.reduce import ReductionResult

Index = tuple[int, ...]


def compute(
    collection: Any,
    client: "Client | None" = None,
    *,
    progress: bool = False,
    label: str = "compute",
    numbers: int = 0,
    nbytes: int = 0,
    done: Done = lambda _i, _result: None,
) -> Any:
    """Compute a Dask collection, or a list of them together, so that what they share is computed once.

    On a cluster if there is a client; optionally with progress on stderr, where `label`, `numbers` and
    `nbytes` are what the job is called, and how much it goes through. Each collection of a list is a piece of
    the job (:func:`.run.run`); `done` is told of each that is finished.
    """
    pieces = collection if isinstance(collection, list) else [collection]
    with metered(label, numbers=numbers, nbytes=nbytes, shown=progress) as meter:
        results = _results(pieces, client, label, done, meter)
    return results if isinstance(collection, list) else results[0]


def _results(
    pieces: list[Any], client: "Client | None", label: str, done: Done, meter: Meter | None = None
) -> list[Any]:
    results: dict[int, Any] = {}

    def finish(i: int, result: Any) -> None:
        results[i] = result
        done(i, result)

    retried = run(pieces, client, finish, meter)
    if retried:
        record("retries", job=label, pieces=retried)
        count_retries(retried)
    return [results[i] for i in range(len(pieces))]


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Say in the error of a number, which itself tells only its index, what was computed.

    Raises
    ------
    JobError
        For a result out of range, or a divisor of 0.
    """
    try:
        yield
    except (RNSOverflowError, ZeroDivisionError) as error:
        raise JobError(f"{what}: {error}") from error


# ---- reductions -------------------------------------------------------------------------------------------


def reduce(
    array: "RNSArray",
    operation: str,
    client: "Client | None" = None,
    *,
    backend: str = "auto",
    progress: bool = False,
    checkpoint: Path | None = None,
    info: store.StoreInfo | None = None,
) -> "ReductionResult":
    """Reduce a lazy array.

    Parameters
    ----------
    checkpoint : Path, optional
        A folder that keeps finished partial results; those that it holds already are not computed again.
    info : StoreInfo, optional
        With `checkpoint`: the store that the array is read from.

    Raises
    ------
    JobError
        If the checkpoint is of another job, or the input has changed; or the cluster has gone.
    """
    groups = groups_of(array.residues.npartitions)
    kept = None if checkpoint is None or info is None else Checkpoint(checkpoint, info, operation, groups)
    results = {} if kept is None else kept.load()
    missing = [i for i in range(len(groups)) if i not in results]
    options: dict[str, Any] = {"signed": array.signed, "bound": array.bound, "backend": backend}
    left = [groups[i] for i in missing]
    pieces = reduce_groups(array.residues, array.moduli, operation, left, **options) if left else []

    def keep(i: int, result: "ReductionResult") -> None:
        if kept is not None:
            kept.save(missing[i], result)

    amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
    found = compute(pieces, client, progress=progress, label=operation, done=keep, **amount)
    results.update(zip(missing, found, strict=True))
    return combine_results([results[i] for i in range(len(groups))], operation)


# ---- verification -----------------------------------------------------------------------------------------


def verify(
    info: store.StoreInfo | store.GroupInfo,
    client: "Client | None" = None,
    *,
    advance: Advance = lambda _: None,
) -> list[str]:
    """Verify a store or group in parallel, and list its problems; `advance` is told of chunks done."""
    with _mapping(client, advance) as map_chunks:
        if isinstance(info, store.GroupInfo):
            return list(interval_rns_storage.verify(info, map_chunks=map_chunks))
        return list(store.verify(info, map_chunks=map_chunks))


@contextmanager
def _mapping(
    client: "Client | None", advance: Advance = lambda _: None
) -> Iterator[Callable[..., Iterable[Any]]]:
    """What applies a function to many items, in parallel, and gives the results in their order."""
    if client is not None:
        yield partial(_map_on_cluster, client, advance)
        return
    with mapping_on_threads(dask.config.get("num_workers", None) or CPU_COUNT) as map_chunks:

        def mapped(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            for result in map_chunks(function, items):
                advance(1)
                yield result

        yield mapped


def _map_on_cluster(
    client: "Client", advance: Advance, function: Callable[..., Any], items: Iterable[Any]
) -> Iterator[Any]:
    listed = list(items)
    call = delayed(_map_list, pure=False, traverse=False)
    pieces = [call(function, listed[group.start : group.stop]) for group in groups_of(len(listed))]
    for results in _results(pieces, client, "verify", lambda _i, results: advance(len(results))):
        yield from results


def _map_list(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [function(item) for item in items]


# ---- stores -----------------------------------------------------------------------------------------------


def write_array(
    array: "RNSArray",
    path: str,
    client: "Client | None" = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = False,
    recipe: str | None = None,
    begun: Callable[[], object] = lambda: None,
) -> Transfer:
    """Compute a lazy array into a store with the same chunks.

    Parameters
    ----------
    resume : bool
        Write only the chunks that an incomplete store at `path` still lacks, or holds damaged.
    recipe : str, optional
        What makes the array, as :func:`.recipe.recipe` tells.
    begun : callable
        Called when the store is there, before its first chunk is computed.

    Raises
    ------
    JobError, StoreError
        If the store to resume is not one of this array, or of another recipe.
    """
    source = array.with_storable_chunks()
    kept: set[Index] = set()
    damaged: set[Index] = set()
    writer = open_store(source, path, overwrite=overwrite, resume=resume, recipe=recipe)
    begun()
    if resume:
        kept, damaged = check_written([(writer, source.residues)], client)
    missing = [index for index in writer.indices() if index not in kept]
    amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
    write(source.residues, writer, missing, client, progress=progress, label="write", **amount)
    return Transfer(array.size, 0, array.nbytes, len(kept), len(damaged))


def open_store(
    source: "RNSArray",
    path: str,
    *,
    overwrite: bool = False,
    resume: bool = False,
    recipe: str | None = None,
) -> store.StoreWriter:
    """Create the store of an array with storable chunks, or open an incomplete one that is like it."""
    if not resume:
        return source.create_store(path, overwrite=overwrite, recipe=recipe)
    return resume_store(path, recipe, moduli=source.moduli, shape=source.shape, **source.store_options())


def check_written(
    writers: "Sequence[tuple[store.StoreWriter | store.PlainWriter, da.Array]]", client: "Client | None"
) -> tuple[set[Index], set[Index]]:
    """Indices of the chunks that all writers hold whole, and of those that are damaged in one of them.

    The first chunk that is whole is compared with what the job computes, the array beside each writer.
    """
    with _mapping(client) as map_chunks:
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
    *,
    mask: "da.Array | None" = None,
    mask_writer: ChunkWriter | None = None,
    counted: Sequence[Index] = (),
    **how: Any,
) -> int:
    """Compute the chunks at some indices, have them written, and finish.

    Parameters are those of :func:`.chunk_writing.write_chunks`, those of `compute`, and

    counted
        Indices of chunks that are written already, but of which the mask is to be counted.

    Returns
    -------
    int
        How many values of the mask hold in all these chunks.
    """
    pieces = _counting_pieces(write_chunks(blocks, writer, mask, mask_writer), indices)
    if mask is not None:
        pieces += _counting_pieces(count_chunks(mask), counted)
    totals = compute(pieces, client, **how)
    for one in (mask_writer, writer):  # the values last: as long as they are incomplete, both can be resumed
        if one is not None:
            one.finish()
    return sum(totals)


def _counting_pieces(counts: "da.Array", indices: Sequence[Index]) -> list[Any]:
    """Pieces of a job that each add up the counts of a group of chunks."""
    numbers = [int(np.ravel_multi_index(index, counts.numblocks[1:])) for index in indices]
    groups = [numbers[group.start : group.stop] for group in groups_of(len(numbers))]
    return [*combine_groups(counts, groups, total_count)] if groups else []
