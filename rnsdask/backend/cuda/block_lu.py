"""Elimination in great matrices modulo primes by blocks, as if no rows had to be exchanged.

The first number of a column that is not 0 is its pivot. Modulo a great prime it nearly always is the first
number: then a block of the diagonal is eliminated by itself, and what is below it and right of it is a
product with an inverse of its factors. Where it is not, the caller eliminates otherwise.

A block loses all that is due to the pivots before it at once (P. Crout, 1941): the numbers of the matrix are
changed by one long product each, and the factors, as 8-bit residues, are made once and kept.
"""

from typing import Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import int8_product, triangles
from rnsdask.backend.cuda.elimination_task import Found
from rnsdask.backend.cuda.int8_product import Part
from rnsdask.backend.cuda.launching import has_matrix_units
from rnsdask.backend.cuda_layout import INT8_STEP, MOST_INVERTED
from rnsdask.backend.protocol import Array
from rnsdask.constants import LU_WORKSPACE, MOST_TERMS, int8_constants, small_moduli_for
from rnsdask.core.moduli import ModuliSet


class Small(Protocol):
    """Eliminates in small matrices, if it can, as :meth:`.Kernels.eliminate` does."""

    def __call__(  # noqa: D102
        self, x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, /, *, out: Array
    ) -> bool: ...


# With primes so many times the number of pivots, hardly ever one of them is 0 by chance.
_RARE = 2**8

# Pivots from which on blocks take less time than panels, as measured: of many matrices, and of few.
_LEAST_PIVOTS = 768
_LEAST_OF_FEW = 1536
_FEW = 64


def is_for(pivots: int, matrices: int, moduli: ModuliSet) -> bool:
    """Whether there are so many pivots that blocks pay, and random matrices need no exchanges."""
    can = has_matrix_units(cupy.cuda.runtime.getDevice())
    least = _LEAST_PIVOTS if matrices > _FEW else _LEAST_OF_FEW
    return can and least <= pivots <= MOST_TERMS and min(moduli) >= _RARE * pivots * matrices


def eliminate(
    x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, small: Small, out: Array
) -> NDArray[np.bool_]:
    """Whether the matrices modulo each prime needed no exchanges: only then they are eliminated, in `out`."""
    n, count = x.shape[:2]
    if x.strides[3] != x.itemsize:  # products read columns that lie together
        out[...] = x
        x = out
    most = max(1, LU_WORKSPACE // _workspace(x, pivot_columns, moduli))
    primes = max(1, most // count)
    is_regular = cupy.ones(n, dtype=bool)
    for i in range(0, n, primes):
        some = moduli if primes >= n else ModuliSet(list(moduli)[i : i + primes])
        for b in range(0, count, most):
            part = slice(i, i + primes), slice(b, b + most)
            blocks = Blocks(x[part], pivot_columns, some, small, out[part])
            is_regular[i : i + primes] &= blocks.eliminate((found[0], found[1][part], found[2][part]))
    return np.asarray(is_regular.get())


def _workspace(x: Array, pivot_columns: int, moduli: ModuliSet) -> int:
    """Bytes of the factors of a matrix, and of a block's."""
    rows, columns = map(int, x.shape[2:])
    most = min(rows, pivot_columns)
    height = max(rows, columns, rows + columns - most)
    return small_moduli_for(moduli, most) * (most + INT8_STEP + MOST_INVERTED) * height


class Blocks:
    """Matrices (n, B, rows, columns), and words that become their factors.

    Numbers of the matrices lose what is due to the pivots before, and are words from then on.

    Left factors and right ones, transposed, are 8-bit images in the same memory, one from each end, for both
    are lower triangles. While a block of the diagonal is eliminated, the rows right of it lose what is due to
    the pivots before on another stream.
    """

    def __init__(self, x: Array, pivot_columns: int, moduli: ModuliSet, small: Small, words: Array) -> None:
        self.x, self.words, self.moduli, self.small = x, words, moduli, small
        self.count = words.shape[0] * words.shape[1]
        self.rows, self.columns = words.shape[2:]
        self.most = min(self.rows, pivot_columns)
        self.short, self.long = (
            int8_constants(moduli, small_moduli_for(moduli, terms)) for terms in (MOST_INVERTED, self.most)
        )
        # Of k pivots before, the left image has rows from k on, and the right one, from the other end,
        # columns from k on.
        height = max(self.rows, self.columns, self.rows + self.columns - self.most)
        images = int8_product.empty_image(self.count, self.long.count, height, self.most)
        self.left = images[:, :, :, height - self.rows :]
        self.right = images[:, :, ::-1, ::-1][:, :, :, height - self.columns :]
        # Of all whole blocks of the diagonal, and of the last one.
        whole, rest = divmod(self.most, MOST_INVERTED)
        sizes = (whole, MOST_INVERTED), (1, rest)
        self.found = [self._no_pivots(*some) for some in sizes if min(some)]
        self.beside = cupy.cuda.Stream(non_blocking=True)

    def _no_pivots(self, blocks: int, size: int) -> Found:
        """Of so many blocks."""
        order = cupy.empty((blocks, *self.words.shape[:2], size), dtype=cupy.int32)
        order[...] = cupy.arange(size, dtype=cupy.int32)
        pivots = cupy.full(order.shape, -1, dtype=cupy.int32)
        return order, pivots, cupy.ones(order.shape[:3], dtype=cupy.uint32)

    def eliminate(self, found: Found) -> Array:
        """Whether the matrices modulo each prime needed no exchanges: only then they are eliminated."""
        try:
            for start in range(0, self.most, MOST_INVERTED):
                self._eliminate(start, min(start + MOST_INVERTED, self.most))
        finally:  # memory is given back as if there were one stream
            cupy.cuda.get_current_stream().wait_event(self.beside.record())
        self._subtract(self.most, (self.most, self.rows), (self.most, self.columns))
        found[1][...] = cupy.arange(self.most, dtype=cupy.int32)
        is_regular = cupy.ones(len(self.moduli), dtype=bool)
        sizes = cupy.asarray(list(self.moduli), dtype=cupy.uint64)[:, None]
        for order, pivots, products in self.found:
            within = cupy.arange(order.shape[3], dtype=cupy.int32)
            is_regular &= ((order == within) & (pivots == within)).all(axis=(0, 2, 3))
            for some in _few_products(products.astype(cupy.uint64), sizes):
                found[2][...] = found[2].astype(cupy.uint64) * some % sizes
        return is_regular

    def _eliminate(self, start: int, stop: int) -> None:
        """A block of pivots, with what is below it and right of it."""
        now = cupy.cuda.get_current_stream()
        windows = ((stop, self.rows), (start, stop)), ((start, stop), (stop, self.columns))
        below, right = (Part(self.words, *window) for window in windows)
        below_before, right_before = (Part(self._before(start), *window) for window in windows)
        down, size, across = self.rows - stop, stop - start, self.columns - stop
        before = now.record()
        self._subtract(start, (start, self.rows), (start, stop))
        with self.beside as beside:
            beside.wait_event(before)
            self._subtract(start, (start, stop), (stop, self.columns), is_beside=True)
        lower, upper = self._eliminate_diagonal(start, stop)
        # The factors of small moduli go to the lesser matrix.
        c = self.short
        if down:
            self._multiply(below_before, c.right, upper, c.left, below, (down, size, size))
        now.wait_event(beside.record())
        if across:
            self._multiply(lower, c.left, right_before, c.right, right, (size, size, across))
        if down and across:
            steps, c = slice(start // INT8_STEP, -(-stop // INT8_STEP)), self.long
            int8_product.split(below, (0, 0, 0), (down, size), c, c.negative, self.left[:, :, steps, stop:])
            turned = right.turned()
            int8_product.split(turned, (0, 0, 0), (across, size), c, c.right, self.right[:, :, steps, stop:])

    def _before(self, start: int) -> Array:
        """What has lost all that is due to so many pivots."""
        return self.words if start else self.x

    def _eliminate_diagonal(self, start: int, stop: int) -> tuple[Part, Part]:
        """The inverses of the factors of a block."""
        block = self._before(start)[:, :, start:stop, start:stop]
        factors = cupy.empty(block.shape, dtype=cupy.uint32)
        found, number = self.found[0 if stop % MOST_INVERTED == 0 else -1], start // MOST_INVERTED
        order, pivots, products = (x[number % len(x)] for x in found)
        if not self.small(block, stop - start, self.moduli, (order, pivots, products), out=factors):
            raise RuntimeError(f"shared memory does not hold {stop - start} rows of a matrix")
        self.words[:, :, start:stop, start:stop] = factors
        lower, upper = triangles.inverses(factors, self.moduli)
        return Part.whole(lower), Part.whole(upper)

    def _multiply(
        self,
        x: Part,
        x_moduli: NDArray[np.int32],
        y: Part,
        y_moduli: NDArray[np.int32],
        out: Part,
        shape: tuple[int, int, int],
    ) -> None:
        """The product of a window with an inverse goes to the same window of the words."""
        (rows, terms, columns), c = shape, self.short
        left, right = (int8_product.empty_image(self.count, c.count, side, terms) for side in (rows, columns))
        int8_product.split(x, (0, 0, 0), (rows, terms), c, x_moduli, left)
        int8_product.split(y.turned(), (0, 0, 0), (columns, terms), c, y_moduli, right)
        int8_product.multiply_images(left, right, out, (0, 0, 0), (rows, columns), c)

    def _subtract(
        self, terms: int, rows: tuple[int, int], columns: tuple[int, int], is_beside: bool = False
    ) -> None:
        """From rows and columns of the matrices what is due to so many pivots, the first ones."""
        shape = rows[1] - rows[0], columns[1] - columns[0]
        if terms and min(shape):
            steps = -(-terms // INT8_STEP)
            x = self.left[:, :, :steps, rows[0] : rows[1]]
            y = self.right[:, :, :steps, columns[0] : columns[1]]
            out = Part(self.words, rows, columns)
            int8_product.multiply_images(x, y, out, (0, 0, 0), shape, self.long, self.x, is_beside)


def _few_products(x: Array, sizes: Array) -> Array:
    """Numbers (count, n, B), fewer, that have the product of all."""
    while len(x) > 2:
        half = len(x) // 2
        x = cupy.concatenate([x[:half] * x[half : 2 * half] % sizes, x[2 * half :]])
    return x
