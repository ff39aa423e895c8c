"""Blocks of a store, each read by one task: its chunks, parts of them, or several joined."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from rnsdask import store
from rnsdask.backend import Array, check_backend, has_gpu, naming_gpu_memory, to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import ChunkPlan, Lengths
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Grid, Place
from rnsdask.lazy.call import Call

_AT_A_TIME = 8
"""Stored chunks that a task reads at a time, because each remote one has latency."""

_SPLIT_EVERY = 16
"""Results that one task combines."""


def divide(info: store.StoreInfo, part: int | None) -> tuple[int | None, Lengths]:
    """Divide stored chunks into parts along one axis.

    Return the parts' length, None if they are whole, and the lengths of all along each axis. ValueError if
    it is less than 1, or the store's chunks cannot be read in parts.
    """
    lengths = info.lengths
    if part is None or (part := _check_part(info, as_integer(part, "part"))) is None:
        return None, lengths
    axis = info.split_axis
    divided = tuple(min(part, c - i) for c in lengths[axis] for i in range(0, c, part))
    return part, (*lengths[:axis], divided, *lengths[axis + 1 :])


def _check_part(info: store.StoreInfo, part: int) -> int | None:
    """Check the length of parts; None if they are whole chunks."""
    if part < 1:
        raise ValueError(f"part must be at least 1, got {abbreviate(part)}")
    if part >= info.chunks[info.split_axis] or not info.count:
        return None
    if not info.has_chunk_files:
        raise ValueError(f"{info.path}: only local chunks without compression can be read in parts")
    return part


# ---- the tasks of a job on a store ------------------------------------------------------------------------


@dataclass(frozen=True)
class Blocks:
    """The stored chunks of a complete store, or parts of them, for a job that makes no Dask array of it.

    Tasks of such a job are a plain graph: importing ``dask.array`` takes longer than a small job.
    """

    info: store.StoreInfo
    part: int | None
    backend: str
    grid: Grid
    counts: tuple[int, ...]
    """Number of blocks along each axis."""

    @classmethod
    def of(cls, info: store.StoreInfo, *, part: int | None = None, backend: str = "cpu") -> "Blocks":
        """Divide a store as :func:`.open_zarr` does; JobError if memory is too small for the tasks."""
        check_backend(backend)
        check_graph(info.n_chunks, info.path)
        part, chunks = divide(info, part)
        return cls(info, part, backend, Grid.of(chunks), tuple(map(len, chunks)))

    @property
    def count(self) -> int:
        """Number of blocks, numbered in C order."""
        return math.prod(self.counts)

    def reduce(
        self,
        groups: Sequence[range],
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        **options: Any,
    ) -> list[Delayed]:
        """Apply a function to each block, and combine the results of each group of blocks.

        ``function(words, place=place, **options)`` gets the words of a block and its :class:`.Place`. One
        task reads a block and reduces it, and a tree of tasks combines a group. All share one graph.
        """
        call = Call(function, options, self.grid, has_index=True)
        name = f"rns-{function.__name__}-{tokenize(self, call)}"
        of_groups = f"rns-groups-{tokenize(name, groups, combine)}"
        tasks: dict[Any, Any] = {}
        results = []
        for group in groups:
            keys: list[Any] = [(name, number) for number in group]
            tasks.update({key: (self._reduce, call, key[1]) for key in keys})
            while len(keys) > 1:
                parts = [keys[i : i + _SPLIT_EVERY] for i in range(0, len(keys), _SPLIT_EVERY)]
                keys = [(of_groups, len(tasks) + i) for i in range(len(parts))]
                tasks.update({key: (combine, part) for key, part in zip(keys, parts, strict=True)})
            results += keys
        graph = HighLevelGraph.from_collections(of_groups, tasks, dependencies=())
        return [Delayed(key, graph, layer=of_groups) for key in results]

    def _reduce(self, call: Call, number: int) -> Any:
        index = tuple(map(int, np.unravel_index(number, self.counts)))
        place = self.grid.place(index)
        return call(index, read_block(info=self.info, part=self.part, backend=self.backend, place=place))


# ---- what a task reads ------------------------------------------------------------------------------------


def read_block(*, info: store.StoreInfo, part: int | None, backend: str, place: Place) -> Any:
    """Read the words of a block to a processor: a part of a stored chunk, or one or more whole ones."""
    index = place.index
    if not info.count:  # Dask has empty chunks where a store has no chunks
        shape = (info.system.rows, *(stop - start for start, stop in place.location))
        return to_backend(np.empty(shape, dtype=info.system.word_dtype), backend)
    if part is None:
        return _read_joined(info, place.location, backend)
    axis = info.split_axis
    chunk, within = divmod(index[axis], -(-info.chunks[axis] // part))
    index = (*index[:axis], chunk, *index[axis + 1 :])
    residues = store.read_part(info, index, within * part, (within + 1) * part)
    with naming_gpu_memory(info.chunk_name(index)):
        return to_backend(residues, backend)


def _read_joined(info: store.StoreInfo, location: Sequence[tuple[int, int]], backend: str) -> Array:
    """Read the stored chunks that form a part of the array."""
    starts, shape = zip(*((start, stop - start) for start, stop in location), strict=True)
    first = tuple(start // length for start, length in zip(starts, info.chunks, strict=True))
    parts = ChunkPlan(shape, info.chunks)
    if parts.n_chunks == 1:
        return read_whole_chunk(info, first, backend=backend)
    joined: Array = None
    places = list(parts.indices())
    indices = [tuple(i + j for i, j in zip(first, place, strict=True)) for place in places]
    # Chunks that wait to be joined take no more memory than the result, plus one chunk.
    most = 4 * parts.count * info.system.words32 // info.chunk_bytes
    for place, chunk in zip(places, _whole_chunks(info, indices, backend, most), strict=True):
        if joined is None:
            with naming_gpu_memory(info.chunk_name(first)):
                joined = np.empty_like(chunk, order="C", shape=(len(chunk), *shape))
        joined[(slice(None), *parts.slices(place))] = chunk
    return joined


def _whole_chunks(
    info: store.StoreInfo, indices: Sequence[tuple[int, ...]], backend: str, most: int
) -> Iterator[Array]:
    """Yield chunks on a processor, in order: reads several at a time, but only one file for a GPU."""
    if _goes_straight_to_gpu(info, backend):
        yield from (read_whole_chunk(info, index, backend=backend) for index in indices)
        return
    count = max(1, min(_AT_A_TIME, most))
    with ThreadPoolExecutor(count) as pool:
        for i in range(0, len(indices), count):
            some = indices[i : i + count]
            for index, residues in zip(some, pool.map(partial(store.read_chunk, info), some), strict=True):
                with naming_gpu_memory(info.chunk_name(index)):
                    yield to_backend(residues, backend)


def read_whole_chunk(info: store.StoreInfo, index: Sequence[int], *, backend: str) -> Array:
    """Read a chunk to a processor."""
    if _goes_straight_to_gpu(info, backend):
        return store.read_chunk_on_gpu(info, index)
    residues = store.read_chunk(info, index)
    with naming_gpu_memory(info.chunk_name(index)):
        return to_backend(residues, backend)


def _goes_straight_to_gpu(info: store.StoreInfo, backend: str) -> bool:
    """Whether chunks are files that this process can read straight into its GPU's memory."""
    return backend != "cpu" and info.has_chunk_files and has_gpu()
