"""A reduction over the chunks of a Dask array: one task a chunk, and a tree that combines their results."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from rnsdask.backend import Array, check_backend, naming_gpu_memory, to_backend
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Grid, Place
from rnsdask.interval_rns.reduce import reduce_columns
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.map import map_chunks, map_values, reduce_chunks
from rnsdask.rns.reduce import REDUCTIONS, ReductionResult, reduce_chunk
from rnsdask.rns.system import RNS

# How many partial results one task combines. Where they are a number each, a wide tree costs no memory, and
# each level that it saves is a way to the scheduler and back for every reduction.
_SPLIT_NUMBERS = 64
_SPLIT_EVERY = 16


def tree_reduce(
    words: da.Array,
    system: NumberSystem,
    operation: str,
    *,
    split_every: int | None = None,
    backend: str = "auto",
) -> da.Array:
    """Reduce a Dask array of words to one :class:`.ReductionResult`.

    Reading a chunk, moving it to a GPU and reducing it fuse into one task. The result does not depend on
    chunks, `split_every`, processors or workers.

    Returns
    -------
    dask.array.Array, shape (), dtype object
        Lazy; computes to a ReductionResult.

    Raises
    ------
    ValueError
        If there are no numbers (whose sum alone is known, 0), or `operation` or `backend` is unknown. Of
        chunks of unknown sizes, without numbers when it is computed.
    """
    partials = _partial_results(words, system, operation, backend)
    if not has_sizes(words):
        return _combine_unplaced(partials, operation)
    axes = tuple(range(words.ndim))
    if partials.npartitions == 1:
        lone: dict[str, Any] = {"dtype": object, "meta": np.empty((), dtype=object)}
        alone: da.Array = da.blockwise(_unboxed, (), partials, axes, concatenate=False, **lone)
        return alone
    combine = partial(_combine_blocks, operation=operation)
    split_every = split_every or dask.config.get("split_every", _SPLIT_NUMBERS)
    return combine_tree(partials, combine, axes, f"rns-{operation}", split_every, keepdims=False)


def reduce_groups(
    words: da.Array,
    system: NumberSystem,
    operation: str,
    groups: Sequence[Sequence[int]],
    *,
    backend: str = "auto",
) -> list[Delayed]:
    """Reduce groups of chunks, each to one :class:`.ReductionResult`; :func:`combine_results` joins them.

    Parameters are those of :func:`tree_reduce`, and `groups` of chunks, which are numbered in C order.
    """
    check_sizes(words)
    partials = _partial_results(words, system, operation, backend)
    return combine_groups(partials, groups, partial(_combine_boxes, operation=operation))


def combine_groups(
    blocks: da.Array, groups: Sequence[Sequence[int]], combine: Callable[[list[Any]], Any]
) -> list[Delayed]:
    """Apply a function to each group of blocks of an array, which are numbered in C order.

    One graph is shared by all: a call of ``delayed`` for each group would take milliseconds for each block.
    """
    return pieces_of(grouped(blocks, groups, combine))[0]


def grouped(
    blocks: da.Array, groups: Sequence[Sequence[int]], combine: Callable[[list[Any]], Any]
) -> da.Array:
    """What :func:`combine_groups` gives, as an array of one block for each group."""
    name = f"rns-groups-{tokenize(blocks, groups, combine)}"
    grid = blocks.numblocks

    def key(number: int) -> tuple[Any, ...]:
        return (blocks.name, *map(int, np.unravel_index(number, grid)))

    layer: dict[Any, Any] = {
        (name, i): (combine, [key(number) for number in group]) for i, group in enumerate(groups)
    }
    sources: list[Any] = [blocks]
    graph = HighLevelGraph.from_collections(name, layer, dependencies=sources)
    return da.Array(graph, name, chunks=((1,) * len(groups),), dtype=object)


def pieces_of(*arrays: da.Array) -> list[list[Delayed]]:
    """The blocks of each of some arrays, which share what they have in common.

    Were each optimised alone, its tasks would make by themselves what another's make too.
    """
    if not arrays:
        return []
    keys = [list(flatten(array.__dask_keys__())) for array in arrays]
    merged = HighLevelGraph.merge(*(array.dask for array in arrays))
    optimized = da.Array.__dask_optimize__(merged, [key for of_array in keys for key in of_array])
    layer = f"rns-pieces-{tokenize(keys)}"
    graph = HighLevelGraph.from_collections(layer, optimized, dependencies=())
    return [[Delayed(key, graph, layer=layer) for key in of_array] for of_array in keys]


def combine_results(results: Sequence[ReductionResult], operation: str) -> ReductionResult:
    """Combine the results of all groups of chunks to that of the array."""
    return reduce(REDUCTIONS[operation].combine, results)


def _partial_results(words: da.Array, system: NumberSystem, operation: str, backend: str) -> da.Array:
    """The result of each chunk, as an array of boxes."""
    check_operation(operation)
    check_backend(backend)
    if 0 in words.shape[1:] and REDUCTIONS[operation].identity is None:
        raise _of_nothing(operation, words.shape[1:])
    options: dict[str, Any] = {"operation": operation, "system": system, "backend": backend}
    function = _reduce_block if has_sizes(words) else _reduce_unplaced
    return reduce_chunks(function, words, located=True, **options)


def _of_nothing(operation: str, shape: tuple[Any, ...]) -> ValueError:
    return ValueError(f"{operation} of an empty array: it needs at least one number, got shape {shape}")


def _combine_unplaced(partials: da.Array, operation: str) -> da.Array:
    """Combine the results of chunks of unknown sizes in one task, which learns where each chunk lies."""
    whole = partials.rechunk(dict.fromkeys(range(partials.ndim), -1))
    boxes: da.Array = map_chunks(
        _combine_placed,
        whole,
        rows=1,
        chunks=((1,),) * (partials.ndim - 1),
        dtype=object,
        operation=operation,
    )
    return map_values(_only_item, boxes.reshape(1)[0], dtype=object)


def reduce_words(operation: str, words: Array, system: NumberSystem) -> ReductionResult:
    """Reduce the words of numbers in memory, NumPy or CuPy, of any system that has reductions."""
    check_operation(operation)
    if isinstance(system, IntervalRNS):
        return reduce_columns(operation, words, system.moduli)
    assert isinstance(system, RNS)
    return reduce_chunk(REDUCTIONS[operation], words, system)


def check_operation(operation: str) -> None:
    """Raise ValueError unless a reduction has this name."""
    if operation not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")


def combine_tree(
    partials: da.Array,
    combine: Any,
    axes: tuple[int, ...],
    name: str,
    split_every: int | None = None,
    *,
    keepdims: bool = True,
) -> da.Array:
    """Combine the partial results of chunks along axes with one associative function.

    Parameters
    ----------
    combine : callable
        ``combine(blocks, axis, keepdims)`` of neighbouring blocks, concatenated. The axes keep length 1 if
        `keepdims` says so, as it always does but for the last call.
    split_every : int, optional
        How many results one task combines; without it Dask's setting, or 16.
    """
    # Only axes of more than one chunk take part in the fan-in.
    split = [axis for axis in axes if partials.numblocks[axis] > 1]
    total = split_every or dask.config.get("split_every", _SPLIT_EVERY)
    fan_in = max(2, int(total ** (1 / max(len(split), 1))))
    meta = partials._meta if keepdims else np.empty((), dtype=partials.dtype)
    result: da.Array = da.reduction(
        partials,
        chunk=_unchanged,
        aggregate=combine,
        combine=combine,
        axis=axes,
        keepdims=keepdims,
        concatenate=True,
        split_every=dict.fromkeys(axes, fan_in),
        dtype=partials.dtype,
        meta=meta,
        name=name,
    )
    return result


def has_sizes(words: da.Array) -> bool:
    """Whether the size of each chunk is known."""
    return not any(np.isnan(c) for axis in words.chunks for c in axis)


def check_sizes(words: da.Array) -> None:
    """Raise ValueError if the size of a chunk is unknown."""
    if not has_sizes(words):
        raise ValueError("chunk sizes are unknown; call compute_chunk_sizes() first")


def boxed(item: Any, ndim: int) -> np.ndarray[Any, Any]:
    """An object array of one item, as the block of a Dask array."""
    box = np.empty((1,) * ndim, dtype=object)
    box.fill(item)  # not assigned, for a tuple would be taken apart
    return box


def _reduce_block(
    block: Any, *, operation: str, system: NumberSystem, backend: str, place: Place
) -> np.ndarray[Any, Any]:
    """Reduce one chunk; its index becomes that of the whole array."""
    with naming_gpu_memory(f"chunk {place.index}"):
        # Stored intervals choose among numbers where they are: nearly no residues are read, so none move.
        stays = backend == "auto" and isinstance(system, IntervalRNS)
        result = reduce_words(operation, block if stays else to_backend(block, backend), system)
    if result.index is not None:
        result = replace(result, index=place.flat_index(result.index))
    return boxed(result, block.ndim)


def _reduce_unplaced(
    block: Any, *, operation: str, system: NumberSystem, backend: str, place: Place
) -> np.ndarray[Any, Any]:
    """Reduce one chunk of unknown size: a box of its shape and its result, None without numbers."""
    result = None
    if 0 not in block.shape or REDUCTIONS[operation].identity is not None:
        alone = replace(place, shape=ALONE.shape)
        result = _reduce_block(block, operation=operation, system=system, backend=backend, place=alone).item()
    return boxed((block.shape[1:], result), block.ndim)


def _combine_placed(boxes: np.ndarray[Any, Any], *, operation: str) -> np.ndarray[Any, Any]:
    """Combine boxes of all chunks, with indices of the whole array."""
    chunks = boxes[0]
    # The chunks at the edges of the grid tell the lengths along each axis.
    edges = [np.moveaxis(chunks, axis, -1).reshape(-1, count)[0] for axis, count in enumerate(chunks.shape)]
    grid = Grid.of([[shape[axis] for shape, _ in edge] for axis, edge in enumerate(edges)])
    results = []
    for index in np.ndindex(chunks.shape):
        _, result = chunks[index]
        if result is not None and result.index is not None:
            result = replace(result, index=grid.place(index).flat_index(result.index))
        results += [] if result is None else [result]
    if not results:
        raise ValueError(
            f"{operation} of an empty array: it needs at least one number, got shape {grid.shape}"
        )
    return boxed(combine_results(results, operation), boxes.ndim)


def _only_item(box: Any) -> Any:
    return box.item() if isinstance(box, np.ndarray) else box


def _unchanged(block: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (Dask passes both)
    return block


def _unboxed(boxes: Any) -> ReductionResult:
    """What is in the only box of an array, as Dask gives its blocks: in lists in lists."""
    while isinstance(boxes, list):
        (boxes,) = boxes
    result: ReductionResult = boxes.item()
    return result


def _combine_boxes(boxes: list[Any], operation: str) -> ReductionResult:
    return combine_results([box.item() for box in boxes], operation)


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool, operation: str) -> Any:  # noqa: ARG001
    """Combine :class:`.ReductionResult` of neighbouring blocks, as :func:`combine_tree` asks for it."""
    if blocks.size == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    result = reduce(REDUCTIONS[operation].combine, blocks.flat)
    return boxed(result, blocks.ndim) if keepdims else result
