"""Arithmetic of chunks of elements of prime fields beyond 32 bits: uint64 (n, *shape). No Dask in here."""

import math
from functools import partial
from itertools import product

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.axes import reduced_shape
from rnsdask.fields.system import WidePrimeFields
from rnsdask.rns.axis import fold_along, rows_along
from rnsdask.rns.blocks import matrices

# Number of halves of words whose sum is surely below 2**64.
_TERMS = 2**32

# Words whose halves stay in a processor's cache until they are added.
_CACHED_WORDS = 2**16


def apply(name: str, *blocks: Array, system: WidePrimeFields) -> Array:
    """A sum of signed products (:data:`.operations.OPERATIONS`) of chunks, which broadcast."""
    operands, shape = matrices(*blocks)
    like = next((x for x in operands if not isinstance(x, np.ndarray)), operands[0])
    out = np.empty_like(like, shape=(system.rows, math.prod(shape)), order="C")
    if out.size:
        kernels_of(out).apply(name, operands, system.moduli, out)
    return out.reshape(system.rows, *shape)


def sums_along(words: Array, system: WidePrimeFields, axes: tuple[int, ...]) -> Array:
    """Add elements of a chunk along axes of the numbers, which keep length 1."""
    shape = (len(words), *reduced_shape(words.shape[1:], axes))
    if words.size == 0:
        return np.zeros_like(words, shape=shape, order="C")
    count = math.prod(words.shape[axis + 1] for axis in axes)
    total = np.zeros_like(words, shape=(len(words), math.prod(shape[1:])), order="C")
    for first in range(0, count, _TERMS):
        low, high = (np.empty_like(total) for _ in range(2))
        for row, lower, upper, p in zip(words, low, high, system.primes, strict=True):
            wrapped, halves = _sums(rows_along(row, axes)[:, first : first + _TERMS])
            lower[...] = (wrapped - (halves << np.uint64(32))) % np.uint64(p)
            upper[...] = halves % np.uint64(p)
        total = apply(
            "add", total, apply("fma", high, system.column(2**32), low, system=system), system=system
        )
    return total.reshape(shape)


def _sums(terms: Array) -> tuple[Array, Array]:
    """Sums of the rows of (k, N) words modulo 2**64, and of their upper halves.

    What the first exceeds 2**32 times the second by, modulo 2**64, are the sums of the lower halves.
    """
    wrapped, halves = (np.zeros_like(terms, shape=len(terms), order="C") for _ in range(2))
    rows, columns = terms.shape
    if isinstance(terms, np.ndarray):
        if terms.strides[0] < terms.strides[1]:  # whole lines of memory, whichever they are
            rows = min(rows, _CACHED_WORDS)
            columns = min(columns, _CACHED_WORDS // rows)
        else:
            columns = min(columns, _CACHED_WORDS)
            rows = min(rows, _CACHED_WORDS // columns)
    for row, column in product(range(0, len(terms), rows), range(0, terms.shape[1], columns)):
        part = terms[row : row + rows, column : column + columns]
        wrapped[row : row + rows] += part.sum(axis=1, dtype=np.uint64)
        halves[row : row + rows] += (part >> np.uint64(32)).sum(axis=1, dtype=np.uint64)
    return wrapped, halves


def products_along(words: Array, system: WidePrimeFields, axes: tuple[int, ...]) -> Array:
    """Multiply elements along axes of the numbers, which keep length 1; an empty product is 1."""
    if words.size == 0:
        shape = (len(words), *reduced_shape(words.shape[1:], axes))
        return np.broadcast_to(np.asarray(system.column(1, len(shape) - 1), like=words), shape)
    return fold_along(words, axes, partial(apply, "multiply", system=system))
