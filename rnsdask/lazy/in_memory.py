"""Arrays in memory as Dask arrays, without a copy where nobody writes to them."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.core import flatten
from dask.local import get_sync

from rnsdask.rns.remembered import is_constant, kept


def as_lazy(array: Any, chunks: Sequence[Any] | int = -1) -> da.Array:
    """A NumPy or CuPy array as a Dask array, of one chunk unless others are given; a Dask array as it is.

    Its name is that of its contents. Words of numbers stay where they are; what somebody may write to, such
    as a mask of the user's, is copied, as ``da.from_array`` does of all.
    """
    if isinstance(array, da.Array):
        return array
    if not is_constant(array):
        copied: da.Array = da.from_array(array, chunks=chunks, asarray=False)
        return copied
    lengths = da.core.normalize_chunks(chunks, array.shape, dtype=array.dtype)
    name = f"array-{tokenize(kept(array, 'token', tokenize), lengths)}"
    places = product([name], *(range(len(along)) for along in lengths))
    parts = (array[part] for part in da.core.slices_from_chunks(lengths))
    meta = np.empty((0,) * array.ndim, dtype=array.dtype)  # a part of the array would keep all of it alive
    return da.Array(dict(zip(places, parts, strict=True)), name, lengths, meta=meta)


# Most chunks that are cut at once where they are in memory.
_FEW_CHUNKS = 64


def chunk_in_memory(array: da.Array, index: Sequence[int]) -> Any:
    """The chunk of a Dask array at an index, or None if it is yet to be computed, or in another process."""
    layer = getattr(array.dask, "layers", {}).get(array.name)
    if layer is None or not layer.is_materialized():
        return None
    chunk = layer.get((array.name, *index))
    return chunk if _is_in_memory(chunk) else None


def cut_in_memory(part: da.Array, whole: da.Array) -> da.Array:
    """Return a slice of an array as few chunks in memory if the array's chunks are there; else unchanged.

    The chunks are views, so that this computes and copies nothing.
    """
    first = (0,) * whole.ndim
    if part.npartitions > _FEW_CHUNKS or 0 in part.shape or chunk_in_memory(whole, first) is None:
        return part
    keys = list(flatten(part.__dask_keys__()))
    needed = part.dask.cull(set(keys)).to_dict()
    if not all(_is_in_memory(chunk) for key, chunk in needed.items() if key[0] == whole.name):
        return part
    chunks = dict(zip(keys, get_sync(needed, keys), strict=True))
    return da.Array(chunks, part.name, part.chunks, meta=meta_from_array(part))


def _is_in_memory(chunk: Any) -> bool:
    return isinstance(chunk, np.ndarray) or type(chunk).__module__.partition(".")[0] == "cupy"
