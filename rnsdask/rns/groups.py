"""Groups of a chunk: sums modulo each modulus, folds, and codes without gaps. No Dask in here."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, is_all
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


# ---- groups of any columns ---------------------------------------------------------------------------------

_MOST_OF_TABLE = 4
"""Entries of a table, relative to the codes, up to which it is faster than to sort the codes."""


def distinct_codes(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct codes (k,), ascending, and the index of each of the N codes among them.

    Codes are from 0 on, in NumPy.
    """
    if len(codes) and int(codes.max()) < _MOST_OF_TABLE * len(codes):
        table = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
        table[codes] = True
        (present,) = table.nonzero()
        if len(present) == len(table):
            return present, codes
        return present, (np.cumsum(table) - 1)[codes]
    present, index = np.unique(codes, return_inverse=True)
    return present, index.reshape(-1)


def fold_groups(values: Any, codes: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Combine the columns (rows, N) of each group to one: (rows, count), by ascending code.

    `codes` (N,) has every group from 0 to count - 1. `combine` takes two arrays (rows, k) and is associative;
    neighbours of a group are combined in pairs, so that operands are of similar length.
    """
    order = np.argsort(codes, kind="stable")
    values, codes = values[:, order], codes[order]
    while True:
        begins = np.ones_like(codes, dtype=np.bool_)
        begins[1:] = codes[1:] != codes[:-1]
        if is_all(begins):
            return values
        (starts,) = begins.nonzero()
        rank = np.arange(len(codes), like=codes) - starts[np.cumsum(begins) - 1]
        is_left = rank % 2 == 0
        has_right = np.zeros_like(begins)
        has_right[:-1] = is_left[:-1] & ~begins[1:]
        (left,) = has_right.nonzero()
        combined = combine(values[:, left], values[:, left + 1])
        values = values[:, is_left]
        values[:, has_right[is_left]] = combined
        codes = codes[is_left]
