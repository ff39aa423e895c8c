"""A reduction over the chunks of a Dask array: one task a chunk, and a tree that combines their results."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate
from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from rnsdask.backend import check_backend, naming_gpu_memory, to_backend
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.core.place import flat_index
from rnsdask.rns.reduce import REDUCTIONS, ReductionResult, reduce_chunk

# How many partial results one task combines. Where they are a number each, a wide tree costs no memory, and
# each level that it saves is a way to the scheduler and back for every reduction.
_SPLIT_NUMBERS = 64
_SPLIT_EVERY = 16

Starts: TypeAlias = int | tuple[int, ...]
"""Where the chunks of an axis start: :func:`chunk_starts`."""


def tree_reduce(
    residues: da.Array,
    moduli: ModuliSet,
    operation: str,
    *,
    signed: bool,
    bound: int | None,
    split_every: int | None = None,
    backend: str = "auto",
) -> da.Array:
    """Reduce a Dask array of residues to one :class:`.ReductionResult`.

    Reading a chunk, moving it to a GPU and reducing it fuse into one task. The result does not depend on
    chunks, `split_every`, processors or workers.

    Returns
    -------
    dask.array.Array, shape (), dtype object
        Lazy; computes to a ReductionResult.

    Raises
    ------
    ValueError
        If there are no numbers (whose sum alone is known, 0), a chunk's size is unknown, or `operation` or
        `backend` is.
    """
    partials = _partial_results(residues, moduli, operation, signed, bound, backend)
    combine = partial(combine_blocks, operation=operation)
    axes = tuple(range(residues.ndim))
    split_every = split_every or dask.config.get("split_every", _SPLIT_NUMBERS)
    return combine_tree(partials, combine, axes, f"rns-{operation}", split_every, keepdims=False)


def reduce_groups(
    residues: da.Array,
    moduli: ModuliSet,
    operation: str,
    groups: Sequence[Sequence[int]],
    *,
    signed: bool,
    bound: int | None,
    backend: str = "auto",
) -> list[Delayed]:
    """Reduce groups of chunks, each to one :class:`.ReductionResult`; :func:`combine_results` joins them.

    Parameters are those of :func:`tree_reduce`, and `groups` of chunks, which are numbered in C order.
    """
    partials = _partial_results(residues, moduli, operation, signed, bound, backend)
    return combine_groups(partials, groups, partial(_combine_boxes, operation=operation))


def combine_groups(
    blocks: da.Array, groups: Sequence[Sequence[int]], combine: Callable[[list[Any]], Any]
) -> list[Delayed]:
    """Apply a function to each group of blocks of an array, which are numbered in C order.

    One graph is shared by all: a call of ``delayed`` for each group would take milliseconds for each block.
    """
    name = f"rns-groups-{tokenize(blocks, groups, combine)}"
    grid = blocks.numblocks

    def key(number: int) -> tuple[Any, ...]:
        return (blocks.name, *map(int, np.unravel_index(number, grid)))

    layer: dict[Any, Any] = {
        (name, i): (combine, [key(number) for number in group]) for i, group in enumerate(groups)
    }
    sources: list[Any] = [blocks]
    graph = HighLevelGraph.from_collections(name, layer, dependencies=sources)
    combined: Any = da.Array(graph, name, chunks=((1,) * len(groups),), dtype=object)
    pieces: list[Delayed] = combined.to_delayed().tolist()
    return pieces


def combine_results(results: Sequence[ReductionResult], operation: str) -> ReductionResult:
    """Combine the results of all groups of chunks to that of the array."""
    return reduce(REDUCTIONS[operation].combine, results)


def _partial_results(
    residues: da.Array, moduli: ModuliSet, operation: str, signed: bool, bound: int | None, backend: str
) -> da.Array:
    """The result of each chunk, as an array of boxes."""
    if operation not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")
    check_backend(backend)
    check_sizes(residues)
    shape, chunks = residues.shape[1:], residues.chunks[1:]
    if 0 in shape and REDUCTIONS[operation].identity is None:
        raise ValueError(f"{operation} of an empty array: it needs at least one number, got shape {shape}")
    partials: da.Array = da.map_blocks(
        _reduce_block,
        residues,
        operation=operation,
        moduli=moduli,
        signed=signed,
        bound=to_text(bound),
        backend=backend,
        shape=shape,
        starts=tuple(chunk_starts(axis) for axis in chunks),
        # The residue axis stays, with length 1: to drop it, Dask would copy every chunk first.
        chunks=((1,), *((1,) * len(axis) for axis in chunks)),
        dtype=object,
        meta=np.empty((0,) * residues.ndim, dtype=object),
    )
    return partials


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


def check_sizes(residues: da.Array) -> None:
    """Raise ValueError if the size of a chunk is unknown."""
    if any(np.isnan(c) for axis in residues.chunks for c in axis):
        raise ValueError("chunk sizes are unknown; call compute_chunk_sizes() first")


def boxed(item: Any, ndim: int) -> np.ndarray[Any, Any]:
    """An object array of one item, as the block of a Dask array."""
    box = np.empty((1,) * ndim, dtype=object)
    box.fill(item)  # not assigned, for a tuple would be taken apart
    return box


def chunk_starts(chunks: Sequence[int]) -> Starts:
    """Where the chunks of an axis start: their common length, or a table if they differ.

    The common length keeps the tasks of an array of very many chunks small; Dask's own ``block_info`` makes
    them large, and takes longer to build than the rest of a task.
    """
    if all(c == chunks[0] for c in chunks[:-1]) and chunks[-1] <= chunks[0]:
        return chunks[0]
    return (0, *accumulate(chunks[:-1]))


def start_of(chunk: int, starts: Starts) -> int:
    """Where one chunk of an axis starts, of what :func:`chunk_starts` gives."""
    return chunk * starts if isinstance(starts, int) else starts[chunk]


def _reduce_block(
    block: Any,
    *,
    operation: str,
    moduli: ModuliSet,
    signed: bool,
    bound: str | None,
    backend: str,
    shape: tuple[int, ...],
    starts: tuple[Starts, ...],
    block_id: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    """Reduce one chunk; its index becomes that of the whole array."""
    with naming_gpu_memory(f"chunk {block_id[1:]}"):
        block = to_backend(block, backend)
        result = reduce_chunk(REDUCTIONS[operation], block, moduli, signed, from_text(bound))
    if result.index is not None:
        corner = [start_of(i, axis) for i, axis in zip(block_id[1:], starts, strict=True)]
        location = [(c, c + length) for c, length in zip(corner, block.shape[1:], strict=True)]
        result = replace(result, index=flat_index(result.index, location, shape))
    return boxed(result, len(block_id))


def _unchanged(block: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (Dask passes both)
    return block


def _combine_boxes(boxes: list[Any], operation: str) -> ReductionResult:
    return combine_results([box.item() for box in boxes], operation)


def combine_blocks(blocks: Any, axis: Any, keepdims: bool, operation: str) -> Any:  # noqa: ARG001
    """Combine :class:`.ReductionResult` of neighbouring blocks, as :func:`combine_tree` asks for it."""
    if blocks.size == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    result = reduce(REDUCTIONS[operation].combine, blocks.flat)
    return boxed(result, blocks.ndim) if keepdims else result
