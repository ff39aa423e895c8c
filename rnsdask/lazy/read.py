"""Dask graphs that read each chunk of a store, in its chunks, in parts of them, or in several joined."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize

from rnsdask import store
from rnsdask.backend import Array, WorkersArray, check_backend, naming_gpu_memory, to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.core.layout import Chunks, Lengths
from rnsdask.core.place import Place
from rnsdask.lazy.blocks import divide, read_block
from rnsdask.lazy.call import Call
from rnsdask.lazy.chunks import normalize_chunks, rechunk
from rnsdask.lazy.map import map_chunks


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
    part, lengths = divide(info, part)
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
    words: da.Array = map_chunks(read_block, located=True, name=name, info=info, **how)
    return words


# ---- functions of chunks that only their task reads --------------------------------------------------------


def map_read(
    function: Callable[..., Any], words: da.Array, chunks: Sequence[Sequence[int]], **options: Any
) -> da.Array | None:
    """Apply a function to chunks that are read from a store, in the tasks that read them.

    It is called with ``overwrite=True`` where it may write to a chunk: no other task has it, and a task that
    is tried again reads it again. `chunks` are those of the result, as many along each axis; `options` are
    its own and those of :func:`.map_chunks`, with the type of `words` by default. None if the chunks are not
    as they are read.
    """
    call = _reader_of(words)
    if call is None:
        return None
    names = "rows", "dtype", "token"
    how = {"dtype": words.dtype} | {name: options.pop(name) for name in names if name in options}
    how |= {"chunks": chunks, "located": True, "like": meta_from_array(words), "reader": call}
    mapped: da.Array = map_chunks(_apply_to_read, apply=function, given=options, **how)
    return mapped


def is_as_read(words: Any) -> bool:
    """Whether each chunk is as a task reads it from a store, so that :func:`map_read` takes it."""
    return isinstance(words, da.Array) and _reader_of(words) is not None


def _reader_of(words: da.Array) -> Call | None:
    """Return the call that reads each chunk from a store, if there is nothing else in the graph."""
    layers = list(getattr(words.__dask_graph__(), "layers", {}).values())
    call = getattr(getattr(layers[0], "task", None), "func", None) if len(layers) == 1 else None
    return call if isinstance(call, Call) and call.function is read_block else None


def _apply_to_read(
    *, reader: Call, apply: Callable[..., Any], given: Mapping[str, Any], place: Place
) -> Array:
    assert reader.grid is not None
    words = reader.function(**reader.options, place=reader.grid.place(place.index))
    is_own = words.flags.c_contiguous and getattr(words.flags, "writeable", True)  # CuPy's arrays all are
    return apply(words, overwrite=is_own, **given)


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
