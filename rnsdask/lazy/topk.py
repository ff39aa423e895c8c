"""The k greatest numbers of a lazy array, or along an axis, chunk by chunk and in a tree."""

from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import check_backend, to_backend
from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.scalar_int import as_scalars
from rnsdask.lazy import ranks
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.ranks import sorted_indices
from rnsdask.lazy.tree import check_sizes, combine_tree, fan_in_of, put_in_box
from rnsdask.rns import sort
from rnsdask.rns.sort import positions, taken
from rnsdask.typing import SplitEvery


def select_of_chunk(words: Any, system: NumberSystem, k: int, offset: int = 0) -> sort.Selection:
    """Select from the numbers of a chunk of one axis, whose indices begin at `offset`."""
    return sort.selection_by(system.apply(rows.ordering, words), words, system, k, offset)


def select(
    words: da.Array, system: NumberSystem, k: int, backend: str, split_every: SplitEvery = None
) -> da.Array:
    """Combine the selections of all chunks of a 1-D array: a lazy (1, 1) array of a `sort.Selection`."""
    check_backend(backend)
    check_sizes(words)
    options: dict[str, Any] = {"system": system, "k": k, "backend": backend}
    partials = reduce_chunks(_select_block, words, located=True, **options)
    return combine_tree(partials, partial(_combine_selections, k=k), (1,), "rns-topk", split_every)


def _select_block(
    block: Any, *, system: NumberSystem, k: int, backend: str, place: Place
) -> np.ndarray[Any, Any]:
    ((start, _),) = place.location
    return put_in_box(select_of_chunk(to_backend(block, backend), system, k, start), 2)


def _combine_selections(blocks: Any, axis: Any, keepdims: bool, k: int) -> Any:  # noqa: ARG001
    return put_in_box(sort.combine_selections(blocks.flat, k), 2)


def select_field(selection: da.Array, field: str, count: int, dtype: Any) -> da.Array:
    """Return one field of a lazy selection of `count` numbers, as a 1-D array."""
    array: da.Array = map_chunks(_selection_field, selection, chunks=((count,),), dtype=dtype, field=field)
    return LazyInts.of(array) if field == "values" else array


def _selection_field(box: np.ndarray[Any, Any], *, field: str) -> Any:
    selection = box.item()
    array = as_scalars(selection.values_array()) if field == "values" else selection.indices_array()
    return array[None]


def select_along_axis(
    words: Any, system: NumberSystem, k: int, axis: int, field: str, split_every: SplitEvery = None
) -> Any:
    """Select the k greatest numbers of each line along an axis, the best first; for k < 0 the least.

    Return Python ints for the field ``"values"``, else int64 indices along the axis.
    """
    best = _best(words, system, k, axis, split_every)
    if field == "values":
        ints = map_chunks(_values_block, best, dtype=object, system=system)
        return LazyInts.of_ints(ints) if isinstance(ints, da.Array) else ints
    return map_chunks(_indices_block, best, dtype=np.int64)


def _values_block(best: Any, *, system: NumberSystem) -> Any:
    return system.decode(best[: -ranks.INDEX_ROWS])[None]


def _indices_block(best: Any) -> Any:
    return ranks.indices_of(best)[None]


def _best(words: Any, system: NumberSystem, k: int, axis: int, split_every: SplitEvery) -> Any:
    """Return words (rows + 2, *shape) of the best numbers; the last two rows are indices along the axis."""
    options: dict[str, Any] = {"system": system, "k": k, "axis": axis}
    if not isinstance(words, da.Array):
        return _best_of_block(words, place=None, **options)
    check_sizes(words)
    chunks = [
        tuple(min(abs(k), length) for length in lengths) if at == axis else lengths
        for at, lengths in enumerate(words.chunks[1:])
    ]
    best = map_chunks(
        _best_of_block, words, rows=system.rows + ranks.INDEX_ROWS, chunks=chunks, located=True, **options
    )
    told = fan_in_of(split_every, words.ndim - 1)
    fan_in = max(2, told if isinstance(told, int) else told[axis])
    while best.numblocks[1 + axis] > 1:
        best = _combine(best, fan_in, **options)
    return best


def _combine(best: da.Array, count: int, *, system: NumberSystem, k: int, axis: int) -> da.Array:
    """Combine the best of `count` neighbouring chunks along the axis into one chunk."""
    lengths = best.chunks[1 + axis]
    joined = tuple(sum(lengths[i : i + count]) for i in range(0, len(lengths), count))
    best = rechunk(best, {1 + axis: joined})
    kept = tuple(min(abs(k), length) for length in joined)
    chunks = [kept if at == axis else given for at, given in enumerate(best.chunks[1:])]
    options: dict[str, Any] = {"system": system, "k": k, "axis": axis}
    combined: da.Array = map_chunks(_best_of_best, best, rows=len(best), chunks=chunks, **options)
    return combined


def _best_of_block(block: Any, *, system: NumberSystem, k: int, axis: int, place: Place | None) -> Any:
    order = sorted_indices(block, system, axis, k > 0)[_first(axis, k)]
    indices = positions(order, block.shape[1:], axis)
    start = place.location[axis][0] if place else 0
    return ranks.with_indices(taken(block, order), indices + start)


def _best_of_best(block: Any, *, system: NumberSystem, k: int, axis: int) -> Any:
    order = sorted_indices(block[: -ranks.INDEX_ROWS], system, axis, k > 0)[_first(axis, k)]
    return taken(block, order)


def _first(axis: int, k: int) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, slice(abs(k)))
