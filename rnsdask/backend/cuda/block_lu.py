"""Elimination in great matrices modulo primes by blocks, as if no rows had to be exchanged.

The first number of a column that is not 0 is its pivot. Modulo a great prime it nearly always is the first
number: then a block of the diagonal is eliminated by itself, and what is below it and right of it is a
product with an inverse of its factors. Where it is not, the caller eliminates otherwise.
"""

from collections.abc import Callable

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import int8_product, triangles
from rnsdask.backend.cuda.int8_product import SUBTRACT, Part
from rnsdask.backend.cuda_layout import MOST_INVERTED
from rnsdask.backend.protocol import Array
from rnsdask.constants import INVERSE_WORKSPACE
from rnsdask.core.moduli import ModuliSet

Found = tuple[Array, Array, Array]
"""Order, pivots and products, as :meth:`.Kernels.eliminate` gives them."""

# With primes so many times the number of pivots, hardly ever one of them is 0 by chance.
_RARE = 2**8

# Pivots and matrices that there are more of.
_LEAST_PIVOTS = 768
_LEAST_MATRICES = 64


def is_for(pivots: int, matrices: int, moduli: ModuliSet) -> bool:
    """Whether there are so many pivots and matrices that blocks pay, and random ones need no exchanges."""
    are_many = pivots > max(_LEAST_PIVOTS, MOST_INVERTED) and matrices > _LEAST_MATRICES
    # Beside the inverses that are kept, one more and the factors of a block.
    size = 4 * matrices * MOST_INVERTED * (pivots + 2 * MOST_INVERTED)
    return are_many and size <= INVERSE_WORKSPACE and min(moduli) >= _RARE * pivots * matrices


class Blocks:
    """Matrices (n, B, rows, columns) that become their factors, by halves of their columns."""

    def __init__(self, words: Array, moduli: ModuliSet, eliminate: Callable[..., Found]) -> None:
        self.words, self.moduli = words, moduli
        self.small = eliminate
        self.rows = words.shape[2]
        self.found: list[Found] = []  # of each block of the diagonal
        self.inverses: dict[int, Array] = {}  # of the lower factors of the block from a column on

    def eliminate(self, pivot_columns: int, found: Found) -> NDArray[np.bool_]:
        """Whether the matrices modulo each prime needed no exchanges: only then they are eliminated."""
        columns = self.words.shape[3]
        most = min(self.rows, pivot_columns)
        self._eliminate(0, most)
        if most < columns:
            self._reduce(0, most, columns)
        places = cupy.arange(most, dtype=cupy.int32)
        found[1][...] = places
        sizes = cupy.asarray(list(self.moduli), dtype=cupy.uint64)[:, None]
        for _, _, products in self.found:
            found[2][...] = found[2].astype(cupy.uint64) * products % sizes
        within = places % MOST_INVERTED
        is_regular = cupy.ones(len(self.moduli), dtype=bool)
        for k in (0, 1):
            is_regular &= (cupy.concatenate([x[k] for x in self.found], axis=2) == within).all(axis=(1, 2))
        return np.asarray(is_regular.get())

    def _eliminate(self, start: int, stop: int) -> None:
        """Columns start to stop, in which all pivots before have been taken into account."""
        if stop - start > MOST_INVERTED:
            middle = _middle(start, stop)
            self._eliminate(start, middle)
            self._reduce(start, middle, stop)
            self._eliminate(middle, stop)
            return
        size = stop - start
        block = self.words[:, :, start:stop, start:stop]
        factors = cupy.empty(block.shape, dtype=cupy.uint32)
        self.found.append(self.small(block, size, self.moduli, factors))
        block[...] = factors
        self.inverses[start], upper = triangles.inverses(block, self.moduli)
        if stop < self.rows:
            below = Part(self.words, (stop, self.rows), (start, stop))
            shape = self.rows - stop, size, size
            int8_product.multiply(below, Part.whole(upper), self.moduli, below, shape)

    def _reduce(self, start: int, stop: int, end: int) -> None:
        """Columns stop to end by the pivots of the columns start to stop."""
        self._solve(start, stop, (stop, end))
        self._subtract(start, stop, self.rows, (stop, end))

    def _solve(self, start: int, stop: int, columns: tuple[int, int]) -> None:
        """The rows of these pivots in columns to the right."""
        if stop - start > MOST_INVERTED:
            middle = _middle(start, stop)
            self._solve(start, middle, columns)
            self._subtract(start, middle, stop, columns)
            self._solve(middle, stop, columns)
            return
        size = stop - start
        right = Part(self.words, (start, stop), columns)
        shape = size, size, columns[1] - columns[0]
        int8_product.multiply(Part.whole(self.inverses[start]), right, self.moduli, right, shape)

    def _subtract(self, start: int, stop: int, end: int, columns: tuple[int, int]) -> None:
        """From the rows below these pivots, up to `end`, their factors times the pivots' rows."""
        left = Part(self.words, (stop, end), (start, stop))
        right = Part(self.words, (start, stop), columns)
        shape = end - stop, stop - start, columns[1] - columns[0]
        if min(shape):
            out = Part(self.words, (stop, end), columns)
            int8_product.multiply(left, right, self.moduli, out, shape, SUBTRACT)


def _middle(start: int, stop: int) -> int:
    """A column that cuts some into halves of whole blocks, about."""
    return start + -(-(stop - start) // (2 * MOST_INVERTED)) * MOST_INVERTED
