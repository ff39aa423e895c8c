"""Dask graphs that write each chunk of an array to a store once it is computed, and read other stores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import add
from typing import Any, Protocol

import dask
import dask.array as da
import numpy as np
from dask import threaded
from dask.base import get_scheduler, optimize
from dask.delayed import delayed
from dask.system import CPU_COUNT
from numpy.typing import NDArray

from rnsdask.backend import backend_name, contiguous, first_alone, never_alone
from rnsdask.cluster.failures import leaves_nothing
from rnsdask.cluster.forks import ForkThreads
from rnsdask.core.place import Place
from rnsdask.lazy.call import Call
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.store import Location, StoreInfo


def reads(graph: Mapping[Any, Any], target: Location) -> bool:
    """Whether a Dask graph reads the store at a path, a store within it, or one that contains it.

    It looks at tasks, not at names of layers: however Dask has rewritten the graph, a task that reads a store
    has the store's description among its function's options.
    """
    places = {location.path: location for location in stores_read(graph)}
    return any(location.overlaps(target) for location in places.values())


def stores_read(graph: Mapping[Any, Any]) -> Iterator[Location]:
    """Return the places of the stores whose descriptions are in the tasks of a graph."""
    for layer in getattr(graph, "layers", {None: graph}).values():
        # A blockwise layer has one task for all chunks.
        yield from _stores_in(getattr(layer, "task", None) or list(layer.values()))


def _stores_in(value: Any) -> Iterator[Location]:
    """Return the places of stores in a task, or in the tasks that Dask has fused into it."""
    if isinstance(value, StoreInfo):
        yield value.location
    elif isinstance(value, Call):
        yield from _stores_in(value.options)
    elif isinstance(value, partial):
        yield from _stores_in([value.func, *value.args, value.keywords])
    elif isinstance(value, dict):
        yield from _stores_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _stores_in(item)
    elif all(hasattr(value, name) for name in ("func", "args", "kwargs")):  # a task object of Dask
        yield from _stores_in([value.func, value.args, value.kwargs])


class ChunkWriter(Protocol):
    """Interface of writers of chunks."""

    def write_chunk(self, index: Sequence[int], block: Any, /) -> None:
        """Write a whole chunk, of NumPy or CuPy, so that it appears at once or not at all."""

    def finish(self) -> object:
        """Mark the store as complete."""


def write_chunks(
    blocks: da.Array,
    writer: ChunkWriter,
    mask: da.Array | None = None,
    mask_writer: ChunkWriter | None = None,
    *,
    first: Sequence[int] | None = None,
) -> da.Array:
    """Make a lazy array that, when computed, writes each chunk and counts the true values of its mask.

    `blocks` (rows, *shape) have one chunk along the first axis, in the form that the writer expects:
    residues, or one row of other values. The mask (1, *shape), with the same chunks, is written by
    `mask_writer` if it is given. `first` is the index of the first of these chunks in the store.
    """
    masks = () if mask is None else (mask,)
    chunks = [(1,) * len(axis) for axis in blocks.chunks[1:]]
    counts: dict[str, Any] = {"rows": 1, "chunks": chunks, "dtype": np.int64, "like": np.empty(0)}
    options: dict[str, Any] = {"writer": writer, "mask_writer": mask_writer, "first": first}
    written: da.Array = map_chunks(_write_block, blocks, *masks, located=True, **counts, **options)
    return written


def compute_on_own_threads(words: da.Array) -> None:
    """Compute a lazy array, in a thread pool of its own if Dask would use threads and has no pool set.

    Dask raises the first error at once, while other tasks still write. Leaving the pool waits for them, so
    that the job can then remove what it began.
    """
    get = get_scheduler(collections=[words])
    if get is not threaded.get or not isinstance(dask.config.get("pool", None), ForkThreads | None):
        words.compute()
        return
    with ThreadPoolExecutor(dask.config.get("num_workers", None) or CPU_COUNT) as pool:
        words.compute(pool=pool)


@contextmanager
def removing_failed(*removals: Callable[[], object]) -> Iterator[None]:
    """Remove a job's unfinished output, by a given function, if it ends with an error that asks for it.

    :func:`.leaves_nothing` recognises these errors.
    """
    try:
        yield
    except Exception as error:
        if leaves_nothing(error):
            for remove in removals:
                remove()
        raise


def finish_later(written: da.Array, writer: ChunkWriter) -> Any:
    """Make a Delayed that computes the result of :func:`write_chunks`, and then marks the store complete."""
    (fused,) = optimize(written)
    return delayed(partial(_finish, writer), pure=False)(fused)


def _finish(writer: ChunkWriter, _written: Any) -> None:
    writer.finish()


def count_chunks(mask: da.Array) -> da.Array:
    """Make a lazy array that counts the true values of a mask in each chunk, as :func:`write_chunks` does."""
    return reduce_chunks(_count_block, mask, dtype=np.int64, like=np.empty(0))


def total_count(counts: list[NDArray[np.int64]]) -> int:
    """Add up the counts of :func:`write_chunks` for some chunks."""
    return sum(int(count.item()) for count in counts)


@never_alone  # others would wait until a whole chunk is written
def _write_block(
    block: Any,
    mask: Any = None,
    *,
    writer: ChunkWriter,
    mask_writer: ChunkWriter | None,
    first: Sequence[int] | None,
    place: Place,
) -> NDArray[np.int64]:
    if block.size == 0:  # Dask has an empty chunk where a store has no chunks
        return np.zeros((1,) * block.ndim, dtype=np.int64)
    index = place.index if first is None else tuple(map(add, place.index, first))
    if backend_name(block) == "cuda" and not block.flags.c_contiguous:
        with first_alone(contiguous):
            block = contiguous(block)
    writer.write_chunk(index, block)
    if mask_writer is not None:
        mask_writer.write_chunk(index, mask)
    if mask is None:
        return np.zeros((1,) * block.ndim, dtype=np.int64)
    with first_alone(_count_block):
        return _count_block(mask)


def _count_block(mask: Any) -> NDArray[np.int64]:
    return np.full((1,) * mask.ndim, int(mask.sum()), dtype=np.int64)
