"""Folds and running folds of words along their last axis, by halves. No Dask in here.

The operation is associative and commutative; it takes and gives words (rows, ..., R), of all rows at a time.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rnsdask.backend import Array

Combine: TypeAlias = Callable[[Array, Array], Array]


def fold(words: Array, combine: Combine) -> Array:
    """All words along the last axis, at least one, combined to one: (rows, ..., 1)."""
    while words.shape[-1] > 1:
        half = words.shape[-1] // 2
        single = words[..., 2 * half :]
        words = combine(words[..., :half], words[..., half : 2 * half])
        if single.shape[-1]:
            words = np.concatenate([words, single], axis=-1)
    return words


def running(words: Array, combine: Combine) -> Array:
    """All words up to each one along the last axis combined: those of pairs first, then each between them.

    So R words take less than 2 R combinations, in 2 log2 R calls.
    """
    length = words.shape[-1]
    if length < 2:
        return words
    even, odd = words[..., 0::2], words[..., 1::2]
    pairs = running(combine(even[..., : odd.shape[-1]], odd), combine)
    result = np.empty_like(words)
    result[..., :1] = words[..., :1]
    result[..., 1::2] = pairs
    if length > 2:
        result[..., 2::2] = combine(pairs[..., : even.shape[-1] - 1], even[..., 1:])
    return result
