"""Blocks of residues in the form that kernels take."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_any, kernels_of
from rnsdask.core.layout import RESIDUE_DTYPE, as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.exact import residues_of

# Residues that are gathered at a time for exact decisions.
EXACT_RESIDUES = 2**22

# Residues, and fewest integers, of a batch that is converted from or to text: a few batches together take
# less memory than a chunk.
BATCH_RESIDUES = 2**18
BATCH_INTEGERS = 16


def batch_size(words: int) -> int:
    """Return the number of integers, each of `words` words, that are converted at a time."""
    return max(BATCH_INTEGERS, BATCH_RESIDUES // words)


def column_of(value: int, moduli: ModuliSet, ndim: int = 1) -> NDArray[np.uint32]:
    """Residues of any integer as one number, (n, 1, ..., 1) with `ndim` axes of length 1."""
    return np.array(residues_of(value, moduli), dtype=RESIDUE_DTYPE).reshape(-1, *(1,) * ndim)


def matrices(*blocks: Array) -> tuple[list[Array], tuple[int, ...]]:
    """Return blocks of residues as matrices for kernels, and the broadcast shape of their numbers.

    A matrix is (n, N), contiguous along N. A NumPy block of one number among longer ones stays (n, 1), which
    kernels take as a scalar on every processor; any other broadcast block is copied in full. Empty matrices
    are all on one processor.
    """
    shapes = {block.shape[1:] for block in blocks}
    shape = np.broadcast_shapes(*shapes) if len(shapes) > 1 else blocks[0].shape[1:]
    if len(shapes) == 1 and len(shape) == 1 and shape[0]:
        return [as_matrix(block) for block in blocks], shape
    count = math.prod(shape)
    if count == 0:  # Dask makes NumPy blocks of any empty ones when it rechunks
        like = next((block for block in blocks if backend_name(block) == "cuda"), blocks[0])
        return [np.empty_like(like, shape=(len(block), 0), order="C") for block in blocks], shape
    result = []
    for block in blocks:
        is_scalar = block.size == block.shape[0] and isinstance(block, np.ndarray)
        if block.shape[1:] != shape and not is_scalar:
            block = np.broadcast_to(block, (block.shape[0], *shape)).copy()
        result.append(as_matrix(block))
    assert all(matrix.shape[1] in (1, count) for matrix in result)
    return result, shape


def with_overflow(words: Array, outside: Array, mode: str, error: Callable[[int], Exception]) -> Array:
    """Finish results by `mode`, given a mask of those `outside` the range; `error` takes a flat index."""
    if mode == "flag":
        return np.concatenate([words, outside[None].astype(np.uint32)])
    if mode == "raise" and is_any(outside):
        raise error(int(outside.argmax()))
    return words


def numbers_at(matrix: Array, indices: Array) -> Array:
    """Numbers (n, k) at ascending indices (k,), without a copy if they are contiguous."""
    if indices.size and int(indices[-1] - indices[0]) == indices.size - 1:
        return matrix[:, int(indices[0]) : int(indices[-1]) + 1]
    return kernels_of(matrix).gather(matrix, indices)


def batches(indices: Array, rows: int) -> Iterator[Array]:
    """Divide indices into batches; gathering `rows` residues for each index takes bounded memory."""
    size = max(1, EXACT_RESIDUES // max(rows, 1))
    return (indices[i : i + size] for i in range(0, len(indices), size))
