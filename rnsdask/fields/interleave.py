"""The words of chunks of elements in another order: number by number, or word by word. No Dask in here."""

import math

import numpy as np

from rnsdask.backend import Array, kernels_of


def interleaved(numbers: Array) -> Array:
    """Words (*shape, k), those of a number side by side, as (k, *shape), those of a row side by side."""
    *shape, rows = numbers.shape
    return _transposed(numbers.reshape(math.prod(shape), rows)).reshape(rows, *shape)


def separated(words: Array) -> Array:
    """Words (k, *shape) as (*shape, k): the inverse of :func:`interleaved`."""
    rows, *shape = words.shape
    return _transposed(words.reshape(rows, math.prod(shape))).reshape(*shape, rows)


def _transposed(matrix: Array) -> Array:
    matrix = np.asarray(matrix, order="C", like=matrix)
    out = np.empty_like(matrix, shape=matrix.shape[::-1], order="C")
    if out.size:
        kernels_of(matrix).transpose(matrix, out)
    return out
