"""Sums of the groups of a chunk, row by row modulo each modulus. No Dask in here."""

from collections.abc import Iterator

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet

_MOST_TERMS = 2**21
"""Words below 2**32 whose sum is exact in float64, in any order: at most 2**53."""


def row_sums(words: Array, codes: Array, count: int) -> Iterator[Array]:
    """Sum each row of words (rows, N) of 32 bits by group: uint64 (count,), one row after another.

    `codes` (N,) are from 0 to `count` - 1. N is at most 2**32.
    """
    for row in words:
        total = np.zeros_like(row, shape=(count,), dtype=np.uint64, order="C")
        for first in range(0, len(row), _MOST_TERMS):
            part = slice(first, first + _MOST_TERMS)
            weights = row[part].astype(np.float64)
            total += np.bincount(codes[part], weights=weights, minlength=count).astype(np.uint64)
        yield total


def sums(words: Array, codes: Array, count: int, moduli: ModuliSet) -> Array:
    """Sum the numbers of each group modulo each modulus: residues (n, count)."""
    result = np.empty_like(words, shape=(len(words), count), order="C")
    for out, total, m in zip(result, row_sums(words, codes, count), moduli, strict=True):
        out[...] = total % np.uint64(m)
    return result
