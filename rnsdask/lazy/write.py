"""Dask graphs that write: each chunk of an array goes to a store as soon as it is made."""

from collections.abc import Sequence
from typing import Any, Protocol

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import to_backend


class ChunkWriter(Protocol):
    """What writes chunks: a `store.StoreWriter`, or a `store.PlainWriter`."""

    def write_chunk(self, index: Sequence[int], block: Any, /) -> None:
        """Write a whole chunk, so that it appears at once or not at all."""

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""

    def finish(self) -> object:
        """Declare that all is written."""


def write_chunks(
    blocks: da.Array,
    writer: ChunkWriter,
    mask: da.Array | None = None,
    mask_writer: ChunkWriter | None = None,
) -> da.Array:
    """A lazy array that, when it is computed, writes each chunk and counts where the mask holds in it.

    Parameters
    ----------
    blocks : array (rows, *shape)
        With one chunk along the first axis, which is what the writer expects of a chunk: residues, or one
        row of other values.
    mask : Boolean array (1, *shape), optional
        With the same chunks; written by `mask_writer` if there is one.

    Returns
    -------
    int64 array, of one number for each chunk
    """
    masks = () if mask is None else (mask,)
    written: da.Array = da.map_blocks(
        _write_block,
        blocks,
        *masks,
        writer=writer,
        mask_writer=mask_writer,
        chunks=((1,), *((1,) * len(axis) for axis in blocks.chunks[1:])),
        dtype=np.int64,
        meta=np.empty((0,) * blocks.ndim, dtype=np.int64),
    )
    return written


def count_chunks(mask: da.Array) -> da.Array:
    """A lazy array of how often a mask as :func:`write_chunks` takes it holds in each chunk."""
    counted: da.Array = da.map_blocks(
        _count_block,
        mask,
        chunks=tuple((1,) * len(axis) for axis in mask.chunks),
        dtype=np.int64,
        meta=np.empty((0,) * mask.ndim, dtype=np.int64),
    )
    return counted


def total_count(counts: list[NDArray[np.int64]]) -> int:
    """Add up what :func:`write_chunks` gives for some chunks."""
    return sum(int(count.item()) for count in counts)


def _write_block(
    block: Any,
    mask: Any = None,
    *,
    writer: ChunkWriter,
    mask_writer: ChunkWriter | None,
    block_id: tuple[int, ...],
) -> NDArray[np.int64]:
    if block.size == 0:  # Dask has a chunk of no numbers where a store has none
        return np.zeros((1,) * len(block_id), dtype=np.int64)
    writer.write_chunk(block_id[1:], to_backend(block, "cpu"))
    if mask_writer is not None:
        mask_writer.write_chunk(block_id[1:], to_backend(mask, "cpu"))
    return np.zeros((1,) * len(block_id), dtype=np.int64) if mask is None else _count_block(mask)


def _count_block(mask: Any) -> NDArray[np.int64]:
    return np.full((1,) * mask.ndim, int(mask.sum()), dtype=np.int64)
