"""A reduction over the chunks of a Dask array: one task a chunk, and a tree that combines their results."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate
from typing import Any

import dask
import dask.array as da
import numpy as np

from rnsdask.backend import check_backend, to_backend
from rnsdask.moduli import ModuliSet, from_text, to_text
from rnsdask.reductions import REDUCTIONS, ReductionResult, reduce_chunk

# Partial results are a number each, so a wide tree costs no memory and saves tasks.
_SPLIT_EVERY = 16


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
        If there are no numbers, a chunk's size is unknown, or `operation` or `backend` is.
    """
    if operation not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")
    check_backend(backend)
    chunks = residues.chunks[1:]
    if any(np.isnan(c) for axis in chunks for c in axis):
        raise ValueError("chunk sizes are unknown; call compute_chunk_sizes() on the residues first")
    if residues.shape[1:] and 0 in residues.shape[1:]:
        raise ValueError(
            f"{operation} of an empty array: it needs at least one number, got shape {residues.shape[1:]}"
        )
    partials = da.map_blocks(
        _reduce_block,
        residues,
        operation=operation,
        moduli=moduli,
        signed=signed,
        bound=to_text(bound),
        backend=backend,
        shape=residues.shape[1:],
        starts=tuple(_starts(axis) for axis in chunks),
        # The residue axis stays, with length 1: to drop it, Dask would copy every chunk first.
        chunks=((1,), *((1,) * len(axis) for axis in chunks)),
        dtype=object,
        meta=np.empty((0,) * residues.ndim, dtype=object),
    )
    result: da.Array = da.reduction(
        partials,
        chunk=_unchanged,
        combine=partial(_combine_blocks, operation=operation),
        aggregate=partial(_aggregate_blocks, operation=operation),
        concatenate=True,
        split_every=_fan_in(split_every, len(chunks)),
        dtype=object,
        meta=np.empty((), dtype=object),
        name=f"rns-{operation}",
    )
    return result


def _fan_in(split_every: int | None, ndim: int) -> dict[int, int]:
    """Results combined along each axis, `split_every` together; the residue axis has one chunk."""
    total = split_every or dask.config.get("split_every", _SPLIT_EVERY)
    return {0: 2} | dict.fromkeys(range(1, ndim + 1), max(2, int(total ** (1 / ndim))))


def _starts(chunks: Sequence[int]) -> int | tuple[int, ...]:
    """Where the chunks of an axis start: their common length, or a table if they differ.

    The common length keeps the tasks of an array of very many chunks small.
    """
    if all(c == chunks[0] for c in chunks[:-1]) and chunks[-1] <= chunks[0]:
        return chunks[0]
    return (0, *accumulate(chunks[:-1]))


def _reduce_block(
    block: Any,
    *,
    operation: str,
    moduli: ModuliSet,
    signed: bool,
    bound: str | None,
    backend: str,
    shape: tuple[int, ...],
    starts: tuple[int | tuple[int, ...], ...],
    block_id: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    """Reduce one chunk; its index becomes that of the whole array."""
    chunk_shape = block.shape[1:]
    block = to_backend(block, backend)
    result = reduce_chunk(REDUCTIONS[operation], block, moduli, signed, from_text(bound))
    if result.index is not None:
        corner = [i * s if isinstance(s, int) else s[i] for i, s in zip(block_id[1:], starts, strict=True)]
        place = [c + int(k) for c, k in zip(corner, np.unravel_index(result.index, chunk_shape), strict=True)]
        result = replace(result, index=_flat_index(place, shape))
    return _boxed(result, len(block_id))


def _flat_index(place: Sequence[int], shape: Sequence[int]) -> int:
    """C-order index, in Python integers of any size."""
    return reduce(lambda flat, axis: flat * axis[1] + axis[0], zip(place, shape, strict=True), 0)


def _boxed(result: ReductionResult, ndim: int) -> np.ndarray[Any, Any]:
    box = np.empty((1,) * ndim, dtype=object)
    box[...] = result
    return box


def _unchanged(block: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (Dask passes both)
    return block


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool, operation: str) -> Any:
    if blocks.size == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    return _boxed(_aggregate_blocks(blocks, axis, keepdims, operation), blocks.ndim)


def _aggregate_blocks(blocks: Any, axis: Any, keepdims: bool, operation: str) -> Any:  # noqa: ARG001
    if blocks.size == 0:
        return blocks
    return reduce(REDUCTIONS[operation].combine, blocks.flat)
