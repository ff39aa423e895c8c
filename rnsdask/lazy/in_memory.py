"""Arrays in memory as Dask arrays, without a copy where nobody writes to them."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

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
