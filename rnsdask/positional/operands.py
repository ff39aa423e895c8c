"""Chunks of positional numbers as operands of kernels, in more or fewer bits, and as GMP's integers."""

import math

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core.layout import as_matrix


def limb_beyond(words: Array, signed: bool) -> Array:
    """Limb (N,) that extends each number of (k, N) limbs: copies of its sign, or 0."""
    top = words[-1]
    return np.uint32(0) - (top >> np.uint32(31)) if signed else np.zeros_like(top)


def trimmed(top: Array, top_bits: int, signed: bool) -> Array:
    """Make highest limbs canonical: bits above `top_bits` become 0, or copies of the sign."""
    unused = np.uint32(32 - top_bits)
    if not signed:
        return (top << unused) >> unused
    return ((top << unused).view(np.int32) >> np.int32(unused)).view(np.uint32)


def resized(words: Array, signed: bool, rows: int, top_bits: int, to_signed: bool) -> tuple[Array, Array]:
    """Convert numbers (k, N) to another number of bits, modulo a power of two; also mark those out of range.

    The result has `rows` limbs, the highest with `top_bits` bits; it is in two's complement if `to_signed`.
    """
    given = len(words)
    common, fill = min(rows, given), limb_beyond(words, signed)
    out = np.empty_like(words, shape=(rows, words.shape[1]), order="C")
    out[:common] = words[:common]
    out[common:] = fill
    top = out[-1].copy()
    out[-1] = trimmed(top, top_bits, to_signed)
    new_fill = limb_beyond(out, to_signed)
    # Limbs below the highest are the same; from there on each number is extended by its sign.
    outside = (out[-1] != top) | (fill != new_fill)
    if given > rows:
        outside |= (words[rows:] != new_fill).any(axis=0)
    return out, outside


def used_limbs(words: Array) -> int:
    """Number of limbs (k, N) up to the highest that is not 0 in all numbers; at least 1."""
    if not words.shape[1]:
        return 1
    (places,) = to_backend(words.max(axis=1), "cpu").nonzero()
    return int(places[-1]) + 1 if len(places) else 1


LIMB_BITS = 32


def limbs_of(bits: int) -> int:
    """Number of limbs that hold `bits` bits."""
    return -(-bits // LIMB_BITS)


class Operands:
    """Chunks that broadcast, as matrices (k, N), or (k, 1) for a single number, and memory for results."""

    def __init__(self, *words: Array) -> None:
        self.shape = np.broadcast_shapes(*(x.shape[1:] for x in words))
        self.like = next((x for x in words if not isinstance(x, np.ndarray)), words[0])
        self.matrices = [self._matrix(np.asarray(x, like=self.like)) for x in words]

    @property
    def count(self) -> int:
        """Number of numbers, N."""
        return math.prod(self.shape)

    def empty(self, limbs: int) -> Array:
        """Allocate a result (limbs, N)."""
        return np.empty_like(self.like, shape=(limbs, self.count), order="C")

    def flags(self) -> Array:
        """Allocate a mask (N,)."""
        return np.empty_like(self.like, shape=(self.count,), dtype=np.bool_, order="C")

    def shaped(self, result: Array) -> Array:
        """Reshape results (k, N) to words (k, *shape), masks (N,) to (*shape)."""
        return result.reshape(*result.shape[:-1], *self.shape)

    def _matrix(self, words: Array) -> Array:
        if words.size == len(words):
            return words.reshape(len(words), 1)
        if words.ndim == 2 and words.shape[1:] == self.shape and words.strides[1] == words.itemsize:
            return words
        if words.shape[1:] != self.shape:  # CuPy takes as long to broadcast as to launch a kernel
            words = np.broadcast_to(words, (len(words), *self.shape))
        return as_matrix(words)


def wide(matrix: Array, count: int) -> Array:
    """Broadcast a matrix (k, N) or (k, 1) to `count` contiguous columns."""
    if matrix.shape[1] == count and matrix.flags.c_contiguous:
        return matrix
    return np.copy(np.broadcast_to(matrix, (len(matrix), count)), order="C")


def on_host(matrix: Array) -> NDArray[np.uint32]:
    """Copy a matrix (k, N) of words to NumPy."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.get()


def to_integers(matrix: Array, signed: bool) -> list[gmpy2.mpz]:
    """Convert a matrix (k, N) to N integers."""
    host = on_host(matrix)
    data, size = np.copy(host.T, order="C").astype("<u4", copy=False).tobytes(), 4 * len(host)
    values = [gmpy2.mpz.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    if signed:
        half, modulus = gmpy2.mpz(1) << 8 * size - 1, gmpy2.mpz(1) << 8 * size
        values = [value - modulus if value >= half else value for value in values]
    return values


def from_integers(values: list[gmpy2.mpz], limbs: int, like: Array) -> Array:
    """Convert integers modulo 2**(32 limbs) to a matrix (limbs, N), where `like` is."""
    try:
        data = b"".join(value.to_bytes(4 * limbs, "little") for value in values)
    except OverflowError:  # some are negative, or too long
        modulus = gmpy2.mpz(1) << 32 * limbs
        data = b"".join((value % modulus).to_bytes(4 * limbs, "little") for value in values)
    rows = np.frombuffer(data, dtype="<u4").astype(np.uint32, copy=False).reshape(len(values), limbs)
    return np.asarray(np.copy(rows.T, order="C"), like=like)
