"""The k greatest numbers of a lazy array, chunk by chunk and in a tree (:mod:`rnsdask.rns.topk`)."""

from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import check_backend, to_backend
from rnsdask.core.place import Place
from rnsdask.core.scalar_int import as_scalars
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.tree import boxed, check_sizes, combine_tree
from rnsdask.rns import topk
from rnsdask.rns.system import RNS


def select(words: da.Array, system: RNS, k: int, backend: str) -> da.Array:
    """The selections of all chunks of a 1-D array combined: a lazy (1, 1) array of a `topk.Selection`."""
    check_backend(backend)
    check_sizes(words)
    options: dict[str, Any] = {"system": system, "k": k, "backend": backend}
    partials = reduce_chunks(_select_block, words, located=True, **options)
    return combine_tree(partials, partial(_combine_selections, k=k), (1,), "rns-topk")


def _select_block(block: Any, *, system: RNS, k: int, backend: str, place: Place) -> np.ndarray[Any, Any]:
    ((start, _),) = place.location
    return boxed(topk.select(to_backend(block, backend), system, k, start), 2)


def _combine_selections(blocks: Any, axis: Any, keepdims: bool, k: int) -> Any:  # noqa: ARG001
    return boxed(topk.combine(blocks.flat, k), 2)


def selected(selection: da.Array, field: str, count: int, dtype: Any) -> da.Array:
    """One field of a lazy selection of `count` numbers, as a 1-D array."""
    array: da.Array = map_chunks(_selected, selection, chunks=((count,),), dtype=dtype, field=field)
    return LazyInts.of(array) if field == "values" else array


def _selected(box: np.ndarray[Any, Any], *, field: str) -> Any:
    selection = box.item()
    array = as_scalars(selection.values_array()) if field == "values" else selection.indices_array()
    return array[None]
