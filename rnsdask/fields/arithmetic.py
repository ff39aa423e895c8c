"""Inverses, powers and sums of chunks of field elements. No Dask in here.

Sums and products of two chunks are computed by residue arithmetic modulo M (:mod:`rnsdask.rns.arithmetic`),
and products along axes are :func:`.products.factors_along`.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array, Moduli, is_any
from rnsdask.core import rows
from rnsdask.core.axes import reduced_shape
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.fields.system import FiniteFields, PrimeFields
from rnsdask.rns import arithmetic, compare, groups
from rnsdask.rns.axis import rows_along
from rnsdask.rns.powers import inverses_of, power_of_each, power_of_residues
from rnsdask.rns.system import RNS

# Number of residues below 2**32 whose sum is surely below 2**64.
TERMS = 2**32


def inverse(words: Array, moduli: Moduli, locate: Locate = int) -> Array:
    """Inverses of a chunk (n, *shape) of elements.

    ZeroDivisionError if an element is 0 in a field; it names the field and the index that `locate` derives
    from the index in the chunk.
    """
    inverses, failed = inverses_of(words, moduli)
    if failed is not None:
        row, index = failed
        raise ZeroDivisionError(
            f"the element at flat index {locate(index)} is 0 modulo {moduli[row]}, so it has no inverse"
        )
    return inverses


def apply(name: str, *blocks: Array, system: PrimeFields) -> Array:
    """Apply one of :data:`.OPERATIONS` to a chunk (n, *shape) of each operand."""
    return arithmetic.apply_to_blocks(name, *blocks, system=system.ring, mode="wrap")


def differ(a: Array, b: Array, moduli: ModuliSet) -> Array:
    """Mask (*shape) of the places where two chunks, which broadcast, differ."""
    return compare.differ(a, b, RNS(moduli))


def divide_by(words: Array, divisor: int, system: FiniteFields) -> Array:
    """Divide elements of any fields by an integer; ZeroDivisionError if it is 0 in one of them."""
    column = system.column(system.reciprocal(divisor), words.ndim - 1)
    return system.apply(rows.multiply, words, column)


def check_divisor(system: FiniteFields, divisor: int) -> None:
    """Raise ZeroDivisionError for a divisor whose element is 0 in a field."""
    system.check_divisor(divisor)


def multiply_sparse(x: Array, matrix: Any, moduli: Moduli) -> Array:
    """Products (n, R, K) of a sparse matrix (R, C) and blocks of vectors (n, C, K)."""
    found: Array = matrix.multiply(x, moduli)
    return found


def power(words: Array, exponent: int, moduli: Moduli, locate: Locate = int) -> Array:
    """Raise a chunk (n, *shape) to any integer power; a negative one takes :func:`inverse`, and 0**0 is 1."""
    if exponent < 0:
        words = inverse(words, moduli, locate)
    return power_of_residues(words, abs(exponent), moduli)


def powers(words: Array, exponents: Array, moduli: Moduli, locate: Locate = int) -> Array:
    """Raise each element of a chunk (n, *shape) to its own exponent, from machine integers (1, *shape)."""
    negative = exponents < 0
    if is_any(negative):
        words = np.broadcast_to(
            words, (len(words), *np.broadcast_shapes(words.shape[1:], negative.shape[1:]))
        )
        inverses = inverse(np.where(negative, words, np.ones_like(words)), moduli, locate)
        words = np.where(negative, inverses, words)
        # The magnitude of the least 64-bit integer is the same word, read as unsigned.
        exponents = exponents.astype(np.int64)
        exponents = np.where(negative, -exponents, exponents).astype(np.uint64)
    shape = np.broadcast_shapes(words.shape[1:], exponents.shape[1:])
    matrix = as_matrix(np.broadcast_to(words, (len(words), *shape)))
    given = np.broadcast_to(exponents[0], shape).reshape(-1).astype(np.uint64)
    return power_of_each(matrix, given, moduli).reshape(len(words), *shape)


def sums_along(words: Array, moduli: ModuliSet, axes: tuple[int, ...]) -> Array:
    """Add elements of a chunk along axes of the numbers, which keep length 1."""
    shape = (len(words), *reduced_shape(words.shape[1:], axes))
    if words.size == 0:
        return np.zeros_like(words, shape=shape, order="C")
    result = np.empty_like(words, shape=(len(words), math.prod(shape[1:])), dtype=np.uint32, order="C")
    for row, total, p in zip(words, result, moduli, strict=True):
        terms = rows_along(row, axes)
        parts = [
            terms[:, k : k + TERMS].sum(axis=1, dtype=np.uint64) % np.uint64(p)
            for k in range(0, terms.shape[1], TERMS)
        ]
        total[...] = sum(parts[1:], start=parts[0]) % np.uint64(p)
    return result.reshape(shape)


def fold_groups(name: str, words: Array, codes: Array, count: int, system: FiniteFields) -> Array:  # noqa: ARG001
    """Combine the elements (rows, N) of each group by one of :data:`.OPERATIONS`: (rows, count)."""
    row = rows.ROWS[name]
    return groups.fold_groups(words, codes, lambda a, b: system.apply(row, a, b))
