"""Elimination in great matrices over primes beyond 32 bits, by halves of their columns. No Dask in here.

Where a processor's own elimination takes all columns one by one, through memory, nearly all of the work is
made products of matrices instead: once the left half of some columns is eliminated, the right one loses what
is due to its pivots by two products, and is eliminated itself. Pivots, exchanges of rows and words are the
same.
"""

import numpy as np

from rnsdask.backend import Array, Moduli, kernels_of
from rnsdask.core import rows
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields.system import PrimeFields, fields_of
from rnsdask.fields.triangles import inverse_of_lower, inverse_of_upper

LEAST_PIVOTS = 384
"""Pivots from which on halves of a single matrix are quicker."""

MOST_MATRICES = 16
"""Matrices of that size, modulo all primes, that are eliminated one after the other."""

PANEL = 128
"""Columns that are eliminated one by one."""

MOVED_WORDS = 2**27
"""Words whose rows are exchanged at a time: indices of CuPy's arrays are not to be trusted beyond 2**31."""


def eliminate(x: Array, pivot_columns: int, moduli: Moduli, out: Array | None) -> tuple[Array, Array, Array]:
    """Eliminate matrices (n, B, rows, columns) as :meth:`.Kernels.eliminate`, great ones by halves."""
    n, count, height, _ = x.shape
    most = min(height, pivot_columns)
    if not _has_panels(x, moduli) or most < LEAST_PIVOTS or n * count > MOST_MATRICES:
        return kernels_of(x).eliminate(x, pivot_columns, moduli, out)
    words = np.empty_like(x, order="C") if out is None else out
    if words is not x:
        words[...] = x
    order, pivots = (np.empty_like(x, shape=(n, count, k), dtype=np.int32, order="C") for k in (height, most))
    products = np.empty_like(x, shape=(n, count), order="C")
    for i, p in enumerate(moduli):
        for b in range(count):
            found = _Halves(words[i, b], WideModuli((p,)))
            found.eliminate(0, pivot_columns)
            found.reduce(0, pivot_columns, x.shape[3])
            order[i, b], pivots[i, b] = found.order, found.pivots[:most]
            products[i, b] = np.uint64(found.product)
    return order, pivots, products


def solve_upper(upper: Array, right: Array, moduli: Moduli, out: Array) -> None:
    """Solve triangular systems as :meth:`.Kernels.solve_upper`, great ones by halves."""
    if not _has_panels(out, moduli) or right.shape[2] < LEAST_PIVOTS or not out.size:
        kernels_of(out).solve_upper(upper, right, moduli, out)
        return
    if out is not right:
        out[...] = right
    _solve_halves(upper, out, moduli, fields_of(moduli))


def _solve_halves(upper: Array, out: Array, moduli: Moduli, fields: PrimeFields) -> None:
    """Solve triangular systems in place of their right-hand sides (n, B, N, columns), in any layout."""
    height = out.shape[2]
    if height <= PANEL:
        out[...] = fields.apply(rows.multiply_matrices, inverse_of_upper(upper, moduli), out)
        return
    half = height // 2
    above, below = out[:, :, :half], out[:, :, half:]
    _solve_halves(upper[:, :, half:, half:], below, moduli, fields)
    due = fields.apply(rows.multiply_matrices, upper[:, :, :half, half:], below)
    above[...] = fields.apply(rows.subtract, above, due)
    _solve_halves(upper[:, :, :half, :half], above, moduli, fields)


def _has_panels(x: Array, moduli: Moduli) -> bool:
    return isinstance(moduli, WideModuli) and kernels_of(x).wide_panel is not None


class _Halves:
    """One matrix (rows, columns) modulo one prime, with the order of its rows and the pivots found so far.

    `ranks` are the pivots before each column at which some begin or end.
    """

    def __init__(self, words: Array, moduli: WideModuli) -> None:
        self.words, self.moduli, self.fields = words, moduli, fields_of(moduli)
        self.order: Array = np.arange(len(words), dtype=np.int32, like=words)
        self.pivots: Array = np.full_like(self.order, -1)
        self.product = 1
        self.ranks = {0: 0}

    def eliminate(self, start: int, stop: int) -> None:
        """Eliminate some columns, in which all pivots before have been taken into account."""
        if self.ranks[start] == len(self.words):
            self.ranks[stop] = self.ranks[start]
        elif stop - start <= PANEL:
            self._eliminate_panel(start, stop)
        else:
            middle = start + -(-(stop - start) // (2 * PANEL)) * PANEL
            self.eliminate(start, middle)
            self.reduce(start, middle, stop)
            self.eliminate(middle, stop)

    def _eliminate_panel(self, start: int, stop: int) -> None:
        rank, words = self.ranks[start], self.words
        panel = kernels_of(words).wide_panel
        assert panel is not None
        found = panel(words, rank, (start, stop), self.moduli)
        last = rank + len(found.pivots)
        self.ranks[stop], self.product = last, self.product * int(found.product[0]) % self.moduli[0]
        self.pivots[rank:last] = found.pivots + np.int32(start)
        if found.order is None:
            return
        self.order[rank:] = self.order[rank:][found.order]
        # In between there are the factors of these pivots, which lie as they should.
        step = max(1, MOVED_WORDS // len(words))
        for first, last in ((0, rank), (stop, words.shape[1])):
            for at in range(first, last, step):
                part = words[rank:, at : min(at + step, last)]
                part[...] = part[found.order]

    def reduce(self, start: int, middle: int, stop: int) -> None:
        """Take the pivots of the columns start to middle into account in those from there to stop."""
        first, last = self.ranks[start], self.ranks[middle]
        if first == last or middle == stop:
            return
        top, rest = self.words[first:last, middle:stop], self.words[last:, middle:stop]
        factors = self.words[None, first:last, first:last]
        top[...] = self._multiply(inverse_of_lower(factors, self.moduli)[0], top)
        if rest.size:
            rest[...] = self._subtract(rest, self._multiply(self.words[last:, first:last], top))

    def _multiply(self, a: Array, b: Array) -> Array:
        return self.fields.apply(rows.multiply_matrices, a[None], b[None])[0]

    def _subtract(self, a: Array, b: Array) -> Array:
        return self.fields.apply(rows.subtract, a[None], b[None])[0]
