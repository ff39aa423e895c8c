"""Elimination in great matrices modulo primes by blocks, as if no rows had to be exchanged.

The first number of a column that is not 0 is its pivot. Modulo a great prime it nearly always is the first
number: then a block of the diagonal is eliminated by itself, and what is below it and right of it is a
product with an inverse of its factors. Where it is not, the caller eliminates otherwise.

A block loses all that is due to the pivots before it at once (P. Crout, 1941): the numbers of the matrix are
changed by one long product each, and the factors, as 8-bit residues, are made once and kept.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import int8_product, triangles
from rnsdask.backend.cuda.int8_product import Part, Residues, multiply_images
from rnsdask.backend.cuda.launching import has_matrix_units
from rnsdask.backend.cuda.layout import INT8_STEP, MOST_INVERTED
from rnsdask.backend.cuda.panel_lu import MOST_ROWS, GreatMatrices
from rnsdask.backend.cuda.triangles import Found
from rnsdask.backend.cuda.variants import MOST_CLUSTER
from rnsdask.backend.protocol import Array
from rnsdask.constants import LU_WORKSPACE, MOST_TERMS, int8_constants, small_moduli_for
from rnsdask.core.moduli import ModuliSet


class Small(Protocol):
    """Eliminates in small matrices, if it can, as :meth:`.Kernels.eliminate` does."""

    def __call__(  # noqa: D102
        self, x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, /, *, out: Array
    ) -> bool: ...


# Least quotient of primes and the number of pivots: a pivot is then hardly ever 0 by chance.
_RARE = 2**8

# Pivots from which on blocks take less time than panels, as measured: of many matrices, and of few.
_LEAST_PIVOTS = 768
LEAST_OF_FEW = 1536
_FEW = 64

# The same of few that have more rows than a cluster of blocks holds.
_LEAST_OF_TALL = 256

MOST_PIVOTS = MOST_TERMS
"""Pivots whose products are summed at once, at most; the factors' residues of more would fill a GPU, too."""

WIDTH = 2**14
"""Columns of a panel where there are more pivots."""

# Columns of a panel in place: an eighth, in whole steps. With a copy and ten residues of a byte for each of
# its words a panel takes 3.5 times its own memory.
_PARTS_IN_PLACE, _STEP_IN_PLACE = 8, 2**11


def is_for(pivots: int, rows: int, matrices: int, moduli: ModuliSet) -> bool:
    """Whether there are enough pivots for blocks to pay, and random matrices need no exchanges."""
    can = has_matrix_units(cupy.cuda.runtime.getDevice())
    few = _LEAST_OF_TALL if rows > MOST_CLUSTER * MOST_ROWS else LEAST_OF_FEW
    least = _LEAST_PIVOTS if matrices > _FEW else few
    return can and least <= pivots and min(moduli) >= _RARE * pivots * matrices


def eliminate(
    x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, small: Small, out: Array
) -> NDArray[np.int64]:
    """Pivots modulo each prime up to which the matrices need no exchanges of rows.

    `out` has the factors of the rows and columns before those; `found` is right only where they are all.
    """
    n, count = x.shape[:2]
    most = max(1, LU_WORKSPACE // workspace_bytes(x, pivot_columns, moduli))
    primes = max(1, most // count)
    leading = np.full(n, min(x.shape[2], pivot_columns))
    for i in range(0, n, primes):
        some = moduli if primes >= n else ModuliSet(list(moduli)[i : i + primes])
        for b in range(0, count, most):
            part = slice(i, i + primes), slice(b, b + most)
            results = found[0], found[1][part], found[2][part]
            # Without a name, which would keep the factors until there are the next matrices'.
            of_some = Blocks(x[part], pivot_columns, some, small, out[part]).eliminate(results)
            leading[i : i + primes] = np.minimum(leading[i : i + primes], of_some)
    return leading


def width_in_place(pivots: int) -> int:
    """Columns of a panel that leave the matrix most of the memory."""
    steps = pivots // (_PARTS_IN_PLACE * _STEP_IN_PLACE)
    return min(max(steps, 1) * _STEP_IN_PLACE, WIDTH)


def eliminate_in_panels(
    x: Array,
    pivot_columns: int,
    moduli: ModuliSet,
    found: Found,
    small: Small,
    out: Array,
    width: int | None = None,
) -> None:
    """Eliminate matrices of any number of pivots: panels by blocks, and what is right of each by products.

    From the first column on in whose block rows of a matrix have to be exchanged, all go by ranks. Panels are
    `width` columns wide.
    """
    if out is not x:
        out[...] = x
    great = GreatMatrices(out, found, pivot_columns, moduli, is_full=False)
    start, most = 0, min(out.shape[2], pivot_columns)
    while start < most:
        stop = min(start + (width or WIDTH), most)
        done = _eliminate_panel(start, stop, moduli, found, small, out)
        if done < stop:
            _eliminate_panel(start, done, moduli, found, small, out)
        if start < done:
            great.pass_on(start, done)
        if done < stop:
            great.eliminate(done)
            return
        start = stop


def go_on(words: Array, pivot_columns: int, moduli: ModuliSet, found: Found, leading: int) -> None:
    """Eliminate by ranks from a column on, given the factors of the rows and columns before it.

    What is both below these rows and right of these columns is as it was.
    """
    great = GreatMatrices(words, found, pivot_columns, moduli, is_full=False)
    if leading:
        diagonals = words.diagonal(axis1=2, axis2=3)[..., :leading].transpose(2, 0, 1).astype(cupy.uint64)
        found[1][..., :leading] = cupy.arange(leading, dtype=cupy.int32)
        _multiply_products(found[2], diagonals, moduli)
        great.pass_on(0, leading, has_factors=True)
    great.eliminate(leading)


def _eliminate_panel(
    start: int, stop: int, moduli: ModuliSet, found: Found, small: Small, words: Array
) -> int:
    """The column up to which a panel needs no exchanges: only if it is the last, the panel is eliminated."""
    if start == stop:
        return stop
    window, pivots, products = words[:, :, start:, start:stop], found[1][:, :, start:stop], found[2].copy()
    kept = window.copy()
    results = found[0], pivots, found[2]
    done = start + int(eliminate(window, stop - start, moduli, results, small, window).min())
    if done < stop:
        window[...], pivots[...], found[2][...] = kept, -1, products
    else:
        pivots += start
    return done


def workspace_bytes(x: Array, pivot_columns: int, moduli: ModuliSet) -> int:
    """Bytes of the factors of a matrix, and of what both sides of a block are multiplied from."""
    rows, columns = map(int, x.shape[2:])
    most = min(rows, pivot_columns)
    height = max(rows, columns, rows + columns - most)
    return small_moduli_for(moduli, most) * (most + INT8_STEP + 2 * MOST_INVERTED) * height


def _stream_ahead() -> Any:
    """One whose kernels begin before those that wait on others, where CuPy knows priorities."""
    has_priorities = int(cupy.__version__.split(".")[0]) >= 14
    return cupy.cuda.Stream(non_blocking=True, **({"priority": -1} if has_priorities else {}))


@dataclass(frozen=True)
class Side:
    """Part below the diagonal, or, transposed, right of it.

    Its factors become an image, which is multiplied by the other side's; so does what is to be multiplied by
    the inverse of a block.
    """

    x: Array
    words: Array
    image: Array
    others: Array
    small: NDArray[np.int32]


class Blocks:
    """Matrices (n, B, rows, columns), and words that become their factors.

    Numbers of the matrices lose what is due to the pivots before, and are words from then on; they may be in
    the same memory, for each is read before its word is written.

    Left factors and right ones, transposed, are 8-bit images in the same memory, one from each end, for both
    are lower triangles. A block of the diagonal is eliminated on a stream that goes before the other, while
    what is below it and right of it loses what is due to the pivots before.
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
        left = images[:, :, :, height - self.rows :]
        right = images[:, :, ::-1, ::-1][:, :, :, height - self.columns :]
        self.below = Side(x, words, left, right, self.long.negative)
        x, words = (a.transpose(0, 1, 3, 2) for a in (x, words))
        self.right = Side(x, words, right, left, self.long.right)
        # Of all whole blocks of the diagonal, and of the last one.
        whole, rest = divmod(self.most, MOST_INVERTED)
        sizes = (whole, MOST_INVERTED), (1, rest)
        self.found = [
            triangles.pivots_of_none((blocks, *self.words.shape[:2]), size, size)
            for blocks, size in sizes
            if blocks and size
        ]
        self.ahead = _stream_ahead()

    def eliminate(self, found: Found) -> NDArray[np.int64]:
        """Pivots modulo each prime up to which no rows are exchanged: only if all, it is eliminated."""
        try:
            for start in range(0, self.most, MOST_INVERTED):
                self._eliminate(start, min(start + MOST_INVERTED, self.most))
        finally:  # memory is given back as if there were one stream
            cupy.cuda.get_current_stream().wait_event(self.ahead.record())
        self._subtract(self.below, self.most, (self.most, self.rows), (self.most, self.columns))
        found[1][...] = cupy.arange(self.most, dtype=cupy.int32)
        for _, _, products in self.found:
            _multiply_products(found[2], products.astype(cupy.uint64), self.moduli)
        return self._leading()

    def _leading(self) -> NDArray[np.int64]:
        """Pivots modulo each prime before the first block in which rows are exchanged, or a pivot lacks."""
        is_regular = []
        for order, pivots, _ in self.found:
            within = np.arange(order.shape[3])
            is_regular.append(((order.get() == within) & (pivots.get() == within)).all(axis=(2, 3)))
        blocks = np.logical_and.accumulate(np.concatenate(is_regular)).sum(axis=0)
        leading: NDArray[np.int64] = np.minimum(MOST_INVERTED * blocks, self.most)
        return leading

    def _eliminate(self, start: int, stop: int) -> None:
        """A block of pivots, with what is below it and right of it."""
        now, size = cupy.cuda.get_current_stream(), stop - start
        # All memory is of this stream, which waits for the other one before it is given back.
        words = cupy.empty((3, *self.words.shape[:2], size, size), dtype=cupy.uint32)
        inverses = [int8_product.empty_image(self.count, self.short.count, size, size) for _ in range(2)]
        before = now.record()
        with self.ahead as ahead:
            ahead.wait_event(before)
            self._eliminate_diagonal(start, stop, words, inverses)
        sides = [side for side in (self.below, self.right) if side.words.shape[2] > stop]
        images = [self._reduced(side, start, stop) for side in sides]
        now.wait_event(ahead.record())
        for side, image in zip(sides, images, strict=True):
            inverse = inverses[side is self.right]
            self._multiply(side, image, inverse, start, stop, is_last=len(sides) == 1)

    def _eliminate_diagonal(self, start: int, stop: int, words: Array, inverses: list[Array]) -> None:
        """A block, and images of the inverses of its factors, each as the right one of a product."""
        window, size = (start, stop), stop - start
        self._subtract(self.below, start, window, window)
        block = (self.words if start else self.x)[:, :, start:stop, start:stop]
        factors, lower, upper = words
        found, number = self.found[0 if stop % MOST_INVERTED == 0 else -1], start // MOST_INVERTED
        order, pivots, products = (x[number % len(x)] for x in found)
        if not self.small(block, size, self.moduli, (order, pivots, products), out=factors):
            raise RuntimeError(f"shared memory does not hold {size} rows of a matrix")
        self.words[:, :, start:stop, start:stop] = factors
        triangles.invert(factors, self.moduli, lower, upper)
        # The factors of small moduli go to the lesser matrix.
        c = self.short
        for part, image in zip((Part.whole(upper).turned(), Part.whole(lower)), inverses, strict=True):
            int8_product.split(part, (0, 0, 0), (size, size), c, c.left, image)

    def _reduced(self, side: Side, start: int, stop: int) -> Array:
        """Residues of a block's side after elimination by all earlier pivots."""
        rows, c = side.words.shape[2], self.short
        image = int8_product.empty_image(self.count, c.count, rows - stop, stop - start)
        if start:
            self._subtract(side, start, (stop, rows), (start, stop), Residues(image, c.right))
        else:
            x = Part(side.x, (stop, rows), (start, stop))
            int8_product.split(x, (0, 0, 0), (rows - stop, stop - start), c, c.right, image)
        return image

    def _multiply(self, side: Side, x: Array, inverse: Array, start: int, stop: int, is_last: bool) -> None:
        """The factors of a side of a block: words, and residues unless no more comes after them."""
        rows, steps = (stop, side.words.shape[2]), slice(start // INT8_STEP, -(-stop // INT8_STEP))
        residues = None if is_last else Residues(side.image[:, :, steps, stop:], side.small)
        shape = rows[1] - rows[0], stop - start
        out = Part(side.words, rows, (start, stop))
        multiply_images(x, inverse, out, shape, self.short, residues=residues)

    def _subtract(
        self,
        side: Side,
        terms: int,
        rows: tuple[int, int],
        columns: tuple[int, int],
        residues: Residues | None = None,
    ) -> None:
        """From rows and columns what is due to so many pivots, the first ones: to words, or to residues."""
        shape = rows[1] - rows[0], columns[1] - columns[0]
        if terms and min(shape):
            steps = -(-terms // INT8_STEP)
            x = side.image[:, :, :steps, rows[0] : rows[1]]
            y = side.others[:, :, :steps, columns[0] : columns[1]]
            out = Part(side.words, rows, columns)
            is_alone = residues is None
            multiply_images(x, y, out, shape, self.long, side.x, residues, is_alone, not is_alone)


def _multiply_products(products: Array, x: Array, moduli: ModuliSet) -> None:
    """Multiply products (n, B) by all numbers of (count, n, B)."""
    sizes = cupy.asarray(list(moduli), dtype=cupy.uint64)[:, None]
    while len(x) > 2:
        half = len(x) // 2
        x = cupy.concatenate([x[:half] * x[half : 2 * half] % sizes, x[2 * half :]])
    for some in x:
        products[...] = products.astype(cupy.uint64) * some % sizes
