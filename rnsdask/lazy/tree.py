"""A reduction over the chunks of a Dask array: one task for each chunk, and a tree that combines results."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from rnsdask.cluster.workers import chunks_by_worker
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Grid, Place
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy.call import Call
from rnsdask.lazy.chunk_reductions import check_reduction, combine_results, empty_error, reduce_chunk
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.map import array_of_tasks, keys_of, map_chunks, map_values, reduce_chunks
from rnsdask.typing import SplitEvery

# Partial results that one task combines. If each is a number, a wide tree costs no memory, and saves levels:
# each is a round trip to the scheduler.
_SPLIT_NUMBERS = 64
_SPLIT_EVERY = 16


def tree_reduce(
    words: da.Array,
    system: NumberSystem,
    operation: str,
    *,
    field: str | None = None,
    split_every: SplitEvery = None,
    backend: str = "auto",
) -> da.Array:
    """Reduce a Dask array of words to a lazy :class:`.ReductionResult`, or to a `field`, a lazy integer.

    Reading a chunk, moving it to a GPU and reducing it fuse into one task. The result does not depend on
    chunks, `split_every`, processors or workers. ValueError without numbers, unless it is a sum, which is 0;
    for unknown chunk sizes when it is computed.
    """
    check_reduction(operation, words.shape[1:], backend)
    options: dict[str, Any] = {"operation": operation, "system": system, "backend": backend}
    if not has_sizes(words):
        boxes = _combine_unplaced(_partial_results(words, options), operation)
        return map_values(_field_of, boxes, field=field, dtype=object)
    # A GPU takes chunks one after another anyway, and a separate task costs Dask more than a chunk.
    groups = chunks_by_worker(words) if backend != "cpu" else None
    if groups is not None:
        results = _group_results(words, groups, options)
        tasks = {(): (partial(_combine_listed, operation=operation, field=field), keys_of(results))}
        name = f"rns-{operation}-{tokenize(results.name, field)}"
        return array_of_tasks(name, tasks, (), np.empty((), dtype=object), results)
    partials = _partial_results(words, options)
    combine = partial(_combine_blocks, operation=operation, field=field)
    axes, split_every = tuple(range(partials.ndim)), fan_in_of(split_every, words.ndim - 1, _SPLIT_NUMBERS)
    return combine_tree(partials, combine, axes, f"rns-{operation}", split_every, keepdims=False)


def combine_each(
    blocks: da.Array, groups: Sequence[Sequence[int]], combine: Callable[[list[Any]], Any]
) -> da.Array:
    """Combine each group of blocks into a block of an array."""
    name = f"rns-groups-{tokenize(blocks, [*map(list, groups)], combine)}"
    keys = keys_of(blocks)
    tasks = {(i,): (combine, [keys[number] for number in group]) for i, group in enumerate(groups)}
    return array_of_tasks(name, tasks, ((1,) * len(groups),), np.empty(0, dtype=object), blocks)


def pieces_of(*arrays: da.Array) -> list[Delayed]:
    """Return the blocks of all arrays, one array after another, with the arrays' common tasks shared.

    If each array were optimised separately, its tasks would repeat the work of others.
    """
    if not arrays:
        return []
    keys = [key for array in arrays for key in keys_of(array)]
    merged = HighLevelGraph.merge(*(array.__dask_graph__() for array in arrays))
    tasks = da.Array.__dask_optimize__(merged, keys)
    layer = f"rns-pieces-{tokenize([array.name for array in arrays])}"
    graph = HighLevelGraph.from_collections(layer, dict(tasks), dependencies=())
    return [Delayed(key, graph, layer=layer) for key in keys]


def _partial_results(words: da.Array, options: dict[str, Any]) -> da.Array:
    """Compute the result of each chunk, as an array of boxes."""
    function = _reduce_block if has_sizes(words) else _reduce_unplaced
    return reduce_chunks(function, words, located=True, **options)


def _group_results(words: da.Array, groups: Sequence[Sequence[int]], options: dict[str, Any]) -> da.Array:
    """Reduce groups of chunks, numbered in C order, each in one task: an array of boxes."""
    grid, keys, indices = Grid.of(words.chunks[1:]), keys_of(words), list(np.ndindex(words.numblocks[1:]))
    tasks = {}
    for i, group in enumerate(groups):
        places = tuple(grid.place(indices[number]) for number in group)
        tasks[i,] = (Call(_reduce_group, {**options, "places": places}), *(keys[number] for number in group))
    name = f"rns-reduce_group-{tokenize(words.name, groups, Call(_reduce_group, options))}"
    return array_of_tasks(name, tasks, ((1,) * len(groups),), np.empty(0, dtype=object), words)


def _combine_unplaced(partials: da.Array, operation: str) -> da.Array:
    """Combine the results of chunks of unknown sizes in one task, which determines each chunk's place."""
    whole = rechunk(partials, dict.fromkeys(range(partials.ndim), -1))
    boxes: da.Array = map_chunks(
        _combine_placed,
        whole,
        rows=1,
        chunks=((1,),) * (partials.ndim - 1),
        dtype=object,
        operation=operation,
    )
    box: da.Array = boxes[(0,) * boxes.ndim]
    return box


def combine_tree(
    partials: da.Array,
    combine: Any,
    axes: tuple[int, ...],
    name: str,
    split_every: SplitEvery = None,
    *,
    keepdims: bool = True,
) -> da.Array:
    """Combine the partial results of chunks along axes with one associative function.

    ``combine(blocks, axis, keepdims)`` receives neighbouring blocks, concatenated. The axes keep length 1 if
    `keepdims` is true, as in all calls but the last. Single chunks stay unchanged. A task combines
    `split_every` results, by default Dask's setting or 16.
    """
    # Only axes of more than one chunk take part in the fan-in.
    split = [axis for axis in axes if partials.numblocks[axis] > 1]
    if not split and keepdims:
        return partials
    told = fan_in_of(split_every, partials.ndim - 1)
    if isinstance(told, Mapping):  # keyed by axes of numbers; partial results have the axis of rows before
        fan_in = {axis: max(2, told.get(axis - 1, 2)) for axis in axes}
    else:
        fan_in = dict.fromkeys(axes, max(2, int(told ** (1 / max(len(split), 1)))))
    fan_in = {axis: min(n, max(2, partials.numblocks[axis])) for axis, n in fan_in.items()}
    reduced: da.Array = da.reduction(
        partials,
        _keep,
        _Combine(combine),
        axis=axes,
        keepdims=keepdims,
        dtype=partials.dtype,
        split_every=fan_in,
        name=name,
    )
    return reduced


@dataclass(frozen=True)
class _Combine:
    """A function that combines blocks, as Dask's reductions call it."""

    function: Callable[..., Any]

    def __call__(self, blocks: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if not any(blocks.shape):  # Dask asks for the type of the result
            ndim = blocks.ndim if keepdims else blocks.ndim - len(axis)
            return np.empty((0,) * ndim, dtype=blocks.dtype, like=blocks)
        return self.function(blocks, axis=axis, keepdims=keepdims)


def _keep(block: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (Dask passes both)
    return block


def fan_in_of(split_every: SplitEvery, ndim: int, otherwise: int = _SPLIT_EVERY) -> int | Mapping[int, int]:
    """Return how many results one task combines: the argument, else Dask's setting, else the default."""
    told = dask.config.get("split_every", None) if split_every is None else split_every
    return checked_split(told, ndim) or otherwise


def checked_split(split_every: Any, ndim: int) -> SplitEvery:
    """Check how many results one task combines, in all or along axes, counted from 0.

    None leaves the choice to others; as in Dask, axes that are not named have 2.
    """
    if split_every is None:
        return None
    if not isinstance(split_every, Mapping):
        return _checked_count(split_every)
    counts = {
        axis_index(axis, ndim, "axis in split_every"): _checked_count(n) for axis, n in split_every.items()
    }
    return {axis: counts.get(axis, 2) for axis in range(ndim)}


def _checked_count(split_every: Any) -> int:
    count = as_integer(split_every, "split_every")
    if count < 1:
        raise ValueError(f"split_every must be at least 1, got {abbreviate(count)}")
    return count


def has_sizes(words: da.Array) -> bool:
    """Whether the size of each chunk is known."""
    return not any(map(math.isnan, words.shape))


def check_sizes(words: da.Array) -> None:
    """Raise ValueError if the size of a chunk is unknown."""
    if not has_sizes(words):
        raise ValueError("chunk sizes are unknown; call compute_chunk_sizes() first")


def put_in_box(item: Any, ndim: int) -> np.ndarray[Any, Any]:
    """Put an item into an object array, as the block of a Dask array."""
    box = np.empty((1,) * ndim, dtype=object)
    box.fill(item)  # assignment would take a tuple apart
    return box


def _reduce_block(block: Any, *, place: Place, **options: Any) -> np.ndarray[Any, Any]:
    return put_in_box(reduce_chunk(block, place=place, **options), block.ndim)


def _reduce_group(
    *blocks: Any, places: Sequence[Place], operation: str, **options: Any
) -> np.ndarray[Any, Any]:
    pairs = zip(blocks, places, strict=True)
    results = [reduce_chunk(block, place=place, operation=operation, **options) for block, place in pairs]
    return put_in_box(combine_results(results, operation), 1)


def _reduce_unplaced(block: Any, *, operation: str, place: Place, **options: Any) -> np.ndarray[Any, Any]:
    """Reduce one chunk of unknown size to a box of its shape and its result, None without numbers."""
    result = None
    if 0 not in block.shape or REDUCTIONS[operation].identity is not None:
        unplaced = replace(place, shape=ALONE.shape)
        result = reduce_chunk(block, place=unplaced, operation=operation, **options)
    return put_in_box((block.shape[1:], result), block.ndim)


def _combine_placed(boxes: np.ndarray[Any, Any], *, operation: str) -> np.ndarray[Any, Any]:
    """Combine boxes of all chunks, with indices of the whole array."""
    chunks = boxes[0]
    # The chunks at the edges of the grid have the lengths along each axis.
    edges = [np.moveaxis(chunks, axis, -1).reshape(-1, count)[0] for axis, count in enumerate(chunks.shape)]
    grid = Grid.of([[shape[axis] for shape, _ in edge] for axis, edge in enumerate(edges)])
    results = []
    for index in np.ndindex(chunks.shape):
        _, result = chunks[index]
        if result is not None and result.index is not None:
            result = replace(result, index=grid.place(index).flat_index(result.index))
        results += [] if result is None else [result]
    if not results:
        raise empty_error(operation, grid.shape)
    return put_in_box(combine_results(results, operation), boxes.ndim)


def _field_of(result: Any, field: str | None) -> Any:
    """Return a field of a result, or without a name the result itself, which may be in a box."""
    result = result.item() if isinstance(result, np.ndarray) else result
    return result if field is None else ScalarInt(getattr(result, field))


def _combine_boxes(boxes: list[Any], operation: str) -> ReductionResult:
    return combine_results([box.item() for box in boxes], operation)


def _combine_listed(boxes: list[Any], operation: str, field: str | None) -> Any:
    return _field_of(_combine_boxes(boxes, operation), field)


def _combine_blocks(
    boxes: Any,
    axis: Any,  # noqa: ARG001  (combine_tree passes both)
    keepdims: bool,
    operation: str,
    field: str | None,
) -> Any:
    """Combine :class:`.ReductionResult` of neighbouring blocks, as :func:`combine_tree` calls it."""
    result = combine_results(boxes.ravel().tolist(), operation)
    return put_in_box(result, boxes.ndim) if keepdims else _field_of(result, field)
