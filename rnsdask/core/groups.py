"""Groups of columns of an array: their numbers without gaps, and folds by any associative function."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        if bool(begins.all()):
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
