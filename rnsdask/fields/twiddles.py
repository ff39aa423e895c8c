"""Products of matrices of elements with twiddle factors, which two tables make. No Dask in here."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array

# Words that are multiplied at a time: they and their factors stay in a processor's cache.
_WORDS_AT_A_TIME = 2**18


class Factors(Protocol):
    """What the element at (i, r) of a matrix of R columns is multiplied by: ``a**i * b**r * c**(i r)``."""

    @property
    def table(self) -> NDArray[Any]:
        """The words of ``a**i * c**(i r)`` for i from 0 to S - 1: (n, S, R)."""

    def at_row(self, i: int, /) -> NDArray[Any]:
        """The factors of row i, (n, R); those of row i + k are these by row k of `table`."""


def multiplied(
    words: Array, factors: Factors, first: int, multiply: Callable[[Array, Array], Array]
) -> Array:
    """Matrices by factors, of which those of their first row are of row `first`.

    Parameters
    ----------
    words : array, shape (n, B, rows, columns)
        Contiguous words of elements, on either processor.
    multiply : callable
        The product of elements (n, *shape) that broadcast, of which those of one element may be NumPy's.
    """
    n, batch, rows, columns = words.shape
    table = np.asarray(factors.table, like=words)
    out = np.empty_like(words)
    given, result = (array.reshape(n, -1) for array in (words, out))
    for row in range(0, rows, table.shape[1]):
        count = min(table.shape[1], rows - row)
        start = factors.at_row(first + row)[:, None]
        if columns > 1:  # else one element, which kernels take from the host
            start = np.asarray(start, like=words)
        block = multiply(table[:, :count], start)
        # Whole matrices lie one after the other, parts of several do not.
        together = max(1, _WORDS_AT_A_TIME // (n * count * columns)) if count == rows else 1
        copies = np.broadcast_to(block[:, None], (n, min(together, batch), count, columns)).reshape(n, -1)
        for i in range(0, batch, together):
            begin = (i * rows + row) * columns
            size = min(together, batch - i) * count * columns
            part = np.s_[:, begin : begin + size]
            result[part] = multiply(given[part], copies[:, :size])
    return out
