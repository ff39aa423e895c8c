"""What a batch job computes with Dask, with progress on stderr: reductions, stores, verification."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
from dask.delayed import delayed
from dask.diagnostics.progress import ProgressBar
from dask.system import CPU_COUNT

from rnsdask import store
from rnsdask.transfer import Advance, Transfer, check_same, resume_store

if TYPE_CHECKING:
    from distributed import Client

    from rnsdask.array import RNSArray
    from rnsdask.reductions import ReductionResult


def compute(collection: Any, client: "Client | None" = None, *, progress: bool = False) -> Any:
    """Compute a Dask collection, on a cluster if there is a client; optionally with a bar on stderr."""
    if client is None:
        with ProgressBar(out=sys.stderr) if progress else nullcontext():
            return collection.compute()
    future = client.compute(collection)
    try:
        if progress:
            from distributed import progress as show_progress

            with redirect_stdout(sys.stderr):  # where distributed would write its bar
                show_progress(future, notebook=False, scheduler=client.scheduler_info()["address"])
        return future.result()
    finally:
        future.cancel()  # what is left to do after an interruption


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
    result = compute(array.reduce(operation, backend=backend), client, progress=progress)
    return result, time.perf_counter() - started


def verify(
    info: store.StoreInfo, client: "Client | None" = None, *, advance: Advance = lambda _: None
) -> list[str]:
    """Verify a store in parallel, and list its problems; `advance` is told of each chunk."""

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
    """Compute a lazy array into a store with the same chunks.

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
    chunks = tuple(axis[0] for axis in array.residues.chunks[1:])
    if resume:
        writer = resume_store(path, array.moduli, array.signed, array.shape, chunks)
    else:
        options: dict[str, Any] = {"chunks": chunks, "signed": array.signed, "bound": array.bound}
        writer = store.create(path, array.moduli, array.shape, overwrite=overwrite, **options)
    blocks = array.residues.to_delayed()
    missing = writer.missing_chunks()
    written = sorted(set(writer.info.indices()).difference(missing))
    if written:
        check_same(writer.info, written[0], blocks[(0, *written[0])].compute())
    write = delayed(writer.write_chunk, pure=False)
    tasks = [write(index, blocks[(0, *index)]) for index in missing]
    compute(delayed(len)(tasks), client, progress=progress)
    writer.finish()
    return Transfer(array.size, 0, array.nbytes, time.perf_counter() - started)
