"""Dask graphs that read each chunk of a store, in its chunks, in parts of them, or in several joined."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from rnsdask import store
from rnsdask.backend import Array, WorkersArray, check_backend, has_gpu, naming_gpu_memory, to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import ChunkPlan, Chunks, Lengths
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.lazy.chunks import normalize_chunks, rechunk
from rnsdask.lazy.map import map_chunks

_AT_A_TIME = 8
"""Stored chunks that a task reads at a time, because each remote one has latency."""


def read_words(
    info: store.StoreInfo,
    *,
    chunks: Chunks | None = None,
    part: int | None = None,
    backend: str = "cpu",
) -> da.Array:
    """Read the residues of a complete store lazily, as :func:`.open_zarr` says."""
    check_backend(backend)
    wanted = None
    if chunks is not None:
        wanted = normalize_chunks(chunks, info.shape, info.system.words32, info.lengths)
        if part is None and _are_joined(info, wanted):
            return _read_in(info, wanted, None, backend)
    check_graph(info.n_chunks, info.path)
    lengths = info.lengths
    if part is not None and (part := _check_part(info, as_integer(part, "part"))) is not None:
        axis = info.split_axis
        divided = tuple(min(part, c - i) for c in lengths[axis] for i in range(0, c, part))
        lengths = (*lengths[:axis], divided, *lengths[axis + 1 :])
    words = _read_in(info, lengths, part, backend)
    return words if wanted is None else rechunk(words, ((info.system.rows,), *wanted))


def _are_joined(info: store.StoreInfo, chunks: Lengths) -> bool:
    """Whether each chunk consists of whole stored chunks."""
    return all(
        all(lengths) and all(start % stored == 0 for start in accumulate(lengths[:-1], initial=0))
        for lengths, stored in zip(chunks, info.chunks, strict=True)
    )


def _read_in(info: store.StoreInfo, chunks: Lengths, part: int | None, backend: str) -> da.Array:
    """Read a store in chunks that are whole stored ones, parts of them, or several joined."""
    how: dict[str, Any] = {"part": part, "backend": backend}
    # This process cannot know whether the reading processes have a GPU.
    like = np.empty(0) if backend == "cpu" else np.empty(0).view(WorkersArray)
    name = f"open-zarr-{tokenize(info, how, chunks)}"
    how.update(rows=info.system.rows, dtype=info.system.word_dtype, chunks=chunks, like=like)
    words: da.Array = map_chunks(_read_block, located=True, name=name, info=info, **how)
    return words


def _check_part(info: store.StoreInfo, part: int) -> int | None:
    """Check the length of parts; None if they are whole chunks."""
    if part < 1:
        raise ValueError(f"part must be at least 1, got {abbreviate(part)}")
    if part >= info.chunks[info.split_axis] or not info.count:
        return None
    if not info.has_chunk_files:
        raise ValueError(f"{info.path}: only local chunks without compression can be read in parts")
    return part


def _read_block(*, info: store.StoreInfo, part: int | None, backend: str, place: Place) -> Any:
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


# ---- plain arrays -----------------------------------------------------------------------------------------


def read_plain(info: store.PlainInfo, backend: str = "cpu") -> da.Array:
    """Read a complete plain array lazily, with chunks on a processor as :func:`read_words` has them."""
    check_graph(info.n_chunks, info.path)
    options: dict[str, Any] = {"dtype": info.dtype, "located": True, "info": info, "backend": backend}
    name = f"open-plain-{tokenize(info, backend)}"
    values = map_chunks(_read_plain_block, rows=1, chunks=info.lengths, name=name, **options)
    array: da.Array = values[0]
    return array


def _read_plain_block(*, info: store.PlainInfo, backend: str, place: Place) -> Any:
    if info.count:
        values = store.read_plain_chunk(info, place.index)
    else:  # Dask has empty chunks for an empty array
        values = np.empty(info.part_shape(place.index), dtype=info.dtype)
    with naming_gpu_memory(info.chunk_name(place.index)):
        return to_backend(values[None], backend)
