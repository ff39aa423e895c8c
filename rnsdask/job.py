"""What a batch job computes with Dask, with progress on stderr: reductions, stores, verification."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from dask.system import CPU_COUNT

from rnsdask import store
from rnsdask.backend import to_backend
from rnsdask.chunk_sums import sum_chunks
from rnsdask.chunk_writing import ChunkWriter, write_chunks
from rnsdask.errors import JobError, RNSOverflowError
from rnsdask.joblog import record
from rnsdask.progress import TaskCounter, following, metered
from rnsdask.transfer import Advance, Transfer, check_same, resume_store

if TYPE_CHECKING:
    import dask.array as da
    from distributed import Client

    from rnsdask.array import RNSArray
    from rnsdask.reductions import ReductionResult


def compute(
    collection: Any,
    client: "Client | None" = None,
    *,
    progress: bool = False,
    label: str = "compute",
    numbers: int = 0,
    nbytes: int = 0,
) -> Any:
    """Compute a Dask collection, or a list of them together, so that what they share is computed once.

    On a cluster if there is a client; optionally with progress on stderr, where `label`, `numbers` and
    `nbytes` are what the job is called, and how much it goes through.
    """
    with metered(label, numbers=numbers, nbytes=nbytes, shown=progress) as meter:
        if client is None:
            with TaskCounter(meter):
                return dask.base.compute(collection)[0]
        futures = client.compute(collection)
        try:
            with following(futures, client, meter):
                return client.gather(futures)
        finally:
            client.cancel(futures)  # what is left to do after an interruption


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


def on_backend(array: "RNSArray", backend: str) -> "RNSArray":
    """The same lazy array, with each chunk on the processor that `to_backend` chooses where it is made."""
    # Dask knows such chunks as NumPy's, for where they will be made is not known here.
    residues = array.residues.map_blocks(to_backend, backend, dtype=np.uint32, meta=array.residues._meta)
    return type(array)(residues, array.moduli, array.signed, array.bound)


def reduce(
    array: "RNSArray",
    operation: str,
    client: "Client | None" = None,
    *,
    backend: str = "auto",
    progress: bool = False,
) -> tuple["ReductionResult", float]:
    """Reduce a lazy array, and tell how many seconds it took."""
    started = time.perf_counter()
    lazy = array.reduce(operation, backend=backend)
    amount = {"numbers": array.size, "nbytes": array.nbytes}
    result = compute(lazy, client, progress=progress, label=operation, **amount)
    seconds = time.perf_counter() - started
    summary: dict[str, Any] = {"exact_fallbacks": result.exact_fallbacks, "backend": result.backend}
    record_summary(operation, array.size, array.nbytes, seconds, **summary)
    return result, seconds


def record_summary(op: str, count: int, nbytes: int, seconds: float, **fields: Any) -> None:
    """Record what a job did, and how fast."""
    rate = nbytes / max(seconds, 1e-9)
    record("summary", op=op, count=count, bytes=nbytes, seconds=seconds, bytes_per_second=rate, **fields)


def verify(
    info: store.StoreInfo, client: "Client | None" = None, *, advance: Advance = lambda _: None
) -> list[str]:
    """Verify a store in parallel, and list its problems; `advance` is told of each chunk."""
    started = time.perf_counter()
    problems = _problems(info, client, advance)
    seconds = time.perf_counter() - started
    record_summary("verify", info.count, info.nbytes, seconds, problems=len(problems))
    return problems


def _problems(info: store.StoreInfo, client: "Client | None", advance: Advance) -> list[str]:
    def on_chunk(_index: tuple[int, ...]) -> None:
        advance(1)

    if client is not None:
        return list(store.verify(info, on_chunk=on_chunk, map_chunks=partial(_map_on_cluster, client)))
    with ThreadPoolExecutor(dask.config.get("num_workers", None) or CPU_COUNT) as pool:
        try:
            return list(store.verify(info, on_chunk=on_chunk, map_chunks=pool.map))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _map_on_cluster(client: "Client", function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
    for future in client.map(function, list(items), pure=False):
        yield future.result()


def write_array(
    array: "RNSArray",
    path: str,
    client: "Client | None" = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = False,
) -> Transfer:
    """Compute a lazy array into a store with the same chunks where the format allows them.

    Parameters
    ----------
    resume : bool
        Write only the chunks that an incomplete store at `path` still lacks.

    Raises
    ------
    JobError
        If the store to resume is not one of this array.
    """
    started = time.perf_counter()
    source = array.with_storable_chunks()
    if resume:
        writer = resume_store(path, array.moduli, array.signed, array.shape, source.residues.chunksize[1:])
        check_written(source.residues, writer)
    else:
        writer = source.create_store(path, overwrite=overwrite)
    amount: dict[str, Any] = {"numbers": array.size, "nbytes": array.nbytes}
    write_missing(source.residues, writer, client, progress=progress, label="write", **amount)
    seconds = time.perf_counter() - started
    record_summary("write", array.size, array.nbytes, seconds)
    return Transfer(array.size, 0, array.nbytes, seconds)


def check_written(residues: "da.Array", writer: store.StoreWriter) -> None:
    """Check that the first chunk that a store holds already is that of an array."""
    written = sorted(set(writer.info.indices()).difference(writer.missing_chunks()))
    if written:
        first = residues.blocks[(0, *written[0])].compute()
        check_same(writer.info, written[0], to_backend(first, "cpu"))


def write_missing(
    blocks: "da.Array",
    writer: ChunkWriter,
    client: "Client | None" = None,
    *,
    mask: "da.Array | None" = None,
    mask_writer: ChunkWriter | None = None,
    **how: Any,
) -> int:
    """Compute the chunks that a writer lacks, have them written, and finish.

    Parameters are those of :func:`.chunk_writing.write_chunks`, and those of `compute`. A chunk is missing
    if either writer lacks it.

    Returns
    -------
    int
        How many values of the mask hold in the chunks that were computed.
    """
    writers = [writer] if mask_writer is None else [writer, mask_writer]
    missing = sorted({index for w in writers for index in w.missing_chunks()})
    counts = write_chunks(blocks, writer, mask, mask_writer)
    total = compute(sum_chunks(counts, [(0, *index) for index in missing]), client, **how)
    for w in writers:
        w.finish()
    return int(total)
