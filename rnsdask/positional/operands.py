"""Chunks of positional numbers, words (k, *shape), as kernels take them."""

import math

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.layout import as_matrix

LIMB_BITS = 32


def limbs_of(bits: int) -> int:
    """How many limbs hold so many bits."""
    return -(-bits // LIMB_BITS)


class Operands:
    """Chunks that broadcast: their matrices (k, N), or (k, 1) of one number, and what results are made of."""

    def __init__(self, *words: Array) -> None:
        self.shape = np.broadcast_shapes(*(x.shape[1:] for x in words))
        self.like = next((x for x in words if not isinstance(x, np.ndarray)), words[0])
        self.matrices = [self._matrix(np.asarray(x, like=self.like)) for x in words]

    @property
    def count(self) -> int:
        """N."""
        return math.prod(self.shape)

    def empty(self, limbs: int) -> Array:
        """Memory of a result (limbs, N)."""
        return np.empty_like(self.like, shape=(limbs, self.count), order="C")

    def flags(self) -> Array:
        """The same, of Booleans (N,)."""
        return np.empty_like(self.like, shape=(self.count,), dtype=np.bool_, order="C")

    def shaped(self, result: Array) -> Array:
        """A matrix (k, N) of results as words (k, *shape), flags (N,) as (*shape)."""
        return result.reshape(*result.shape[:-1], *self.shape)

    def _matrix(self, words: Array) -> Array:
        if words.size == len(words):
            return words.reshape(len(words), 1)
        if words.shape[1:] != self.shape:  # for CuPy takes as long to broadcast as to launch a kernel
            words = np.broadcast_to(words, (len(words), *self.shape))
        return as_matrix(words)


def wide(matrix: Array, count: int) -> Array:
    """A matrix (k, N) or (k, 1) as one of `count` columns, contiguous."""
    if matrix.shape[1] == count and matrix.flags.c_contiguous:
        return matrix
    return np.copy(np.broadcast_to(matrix, (len(matrix), count)), order="C")
