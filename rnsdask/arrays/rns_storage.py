"""Complete stores as lazy arrays of words, on the CPU or a GPU."""

from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize

from rnsdask import store
from rnsdask.backend import Array, check_backend, has_gpu, naming_gpu_memory, to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.core import layout
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.place import Place
from rnsdask.lazy.chunks import normalize_chunks
from rnsdask.lazy.map import map_chunks


def read_words(info: store.StoreInfo, *, part: int | None = None, backend: str = "cpu") -> da.Array:
    """The residues of a complete store, lazy, as :func:`.open_zarr` says."""
    check_backend(backend)
    check_graph(info.n_chunks, info.path)
    chunks = normalize_chunks(info.chunks, info.shape, info.system.words32)
    if part is not None and (part := _check_part(info, as_integer(part, "part"))) is not None:
        axis = store.split_axis(info.chunks)
        divided = tuple(min(part, c - i) for c in chunks[axis] for i in range(0, c, part))
        chunks = (*chunks[:axis], divided, *chunks[axis + 1 :])
    straight = reads_straight(info, backend)
    how: dict[str, Any] = {"part": part, "backend": backend, "straight": straight}
    # Dask knows chunks as NumPy's, for where they will be read is not known here.
    name = f"open-zarr-{tokenize(info, how)}"
    how.update(rows=info.system.rows, dtype=info.system.word_dtype, chunks=chunks)
    words: da.Array = map_chunks(_read_block, located=True, name=name, info=info, **how)
    return words


def kvikio_is_wanted() -> bool:
    """Whether processes that have KvikIO and a GPU are to use it: Dask's setting ``rnsdask.kvikio``."""
    return bool(dask.config.get("rnsdask.kvikio", True))


def _check_part(info: store.StoreInfo, part: int) -> int | None:
    """Check the length of parts; None if they are whole chunks."""
    if part < 1:
        raise ValueError(f"part must be at least 1, got {abbreviate(part)}")
    if part >= info.chunks[store.split_axis(info.chunks)] or not info.count:
        return None
    if not info.has_chunk_files:
        raise ValueError(f"{info.path}: only local chunks without compression can be read in parts")
    return part


def _read_block(
    *, info: store.StoreInfo, part: int | None, backend: str, straight: bool, place: Place
) -> Any:
    index = place.index
    if not info.count:  # Dask has chunks of no numbers where a store has none
        shape = layout.part_shape(index, info.shape, info.chunks)
        return to_backend(np.empty((info.system.rows, *shape), dtype=info.system.word_dtype), backend)
    if part is None:
        return read_whole_chunk(info, index, backend=backend, straight=straight)
    axis = store.split_axis(info.chunks)
    chunk, within = divmod(index[axis], -(-info.chunks[axis] // part))
    index = (*index[:axis], chunk, *index[axis + 1 :])
    residues = store.read_part(info, index, within * part, (within + 1) * part)
    with naming_gpu_memory(info.chunk_name(index)):
        return to_backend(residues, backend)


def reads_straight(info: store.StoreInfo, backend: str) -> bool:
    """Whether processes that have KvikIO and a GPU are to read chunks for a processor by it."""
    return backend != "cpu" and info.has_chunk_files and kvikio_is_wanted()


def read_whole_chunk(info: store.StoreInfo, index: Sequence[int], *, backend: str, straight: bool) -> Array:
    """Read a chunk to a processor; `straight`, by KvikIO if the process has it, as :func:`reads_straight`."""
    straight = straight and store.reads_on_gpu()
    if straight or (backend != "cpu" and info.has_chunk_files and has_gpu()):
        return store.read_chunk_on_gpu(info, index, straight=straight)
    residues = store.read_chunk(info, index)
    with naming_gpu_memory(info.chunk_name(index)):
        return to_backend(residues, backend)
