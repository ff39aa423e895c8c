"""Arithmetic of chunks of elements of prime fields beyond 32 bits: uint64 (n, *shape). No Dask in here."""

import math
from functools import partial

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.axes import reduced_shape
from rnsdask.fields.system import WidePrimeFields
from rnsdask.rns.axis import fold_along, rows_along
from rnsdask.rns.blocks import matrices

# Number of halves of words whose sum is surely below 2**64.
_TERMS = 2**32


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
            terms = rows_along(row, axes)[:, first : first + _TERMS]
            lower[...] = (terms & np.uint64(2**32 - 1)).sum(axis=1, dtype=np.uint64) % np.uint64(p)
            upper[...] = (terms >> np.uint64(32)).sum(axis=1, dtype=np.uint64) % np.uint64(p)
        total = apply(
            "add", total, apply("fma", high, system.column(2**32), low, system=system), system=system
        )
    return total.reshape(shape)


def products_along(words: Array, system: WidePrimeFields, axes: tuple[int, ...]) -> Array:
    """Multiply elements along axes of the numbers, which keep length 1; an empty product is 1."""
    if words.size == 0:
        shape = (len(words), *reduced_shape(words.shape[1:], axes))
        return np.broadcast_to(np.asarray(system.column(1, len(shape) - 1), like=words), shape)
    return fold_along(words, axes, partial(apply, "multiply", system=system))
