"""Elimination in matrices modulo primes, triangular systems and characteristic polynomials."""

import cupy

from rnsdask.backend.cuda import int8_product, launching
from rnsdask.backend.cuda.arithmetic import inverse
from rnsdask.backend.cuda.int8_product import SUBTRACT, Bound, Part
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on, most_shared
from rnsdask.backend.cuda_layout import (
    ELIMINATION,
    GREAT_PANEL,
    PANEL_WIDTH,
    POLYNOMIALS,
    TRIANGULAR,
    UNIT_LOWER,
    WARP,
)
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

# Numbers of its matrix that a thread computes at the first step, where there are enough.
_NUMBERS = 32

_MOST_THREADS = 512

# Rows of triangular systems that are solved without products of matrices.
_MOST_SOLVED = 128

# A kernel has so many bytes of shared memory besides.
_STATIC_BYTES = 512


def _lanes(length: int) -> int:
    """The least power of two that is not below a length, or a warp."""
    return min(WARP, 1 << (length - 1).bit_length())


def _threads(size: int, most: int) -> int:
    """Threads of a block that computes so many numbers at a time."""
    return max(WARP, min(most, 1 << (-(-size // _NUMBERS) - 1).bit_length()))


def _stack(x: Array) -> tuple[Array | int, ...]:
    """The structure Stack of matrices."""
    return x, *(stride // x.itemsize for stride in x.strides)


def _shared(words: int) -> int:
    """Bytes of so many words if a block of the current device can share them, else 0."""
    size = 4 * words
    return size if size + _STATIC_BYTES <= most_shared(cupy.cuda.runtime.getDevice()) else 0


def eliminate(x: Array, pivot_columns: int, moduli: ModuliSet, out: Array) -> tuple[Array, Array, Array]:
    n, count, rows, columns = x.shape
    order = cupy.empty((n, count, rows), dtype=cupy.int32)
    order[...] = cupy.arange(rows, dtype=cupy.int32)
    pivots = cupy.full((n, count, min(rows, pivot_columns)), -1, dtype=cupy.int32)
    products = cupy.ones((n, count), dtype=cupy.uint32)
    found = order, pivots, products
    shared = _shared(rows * (columns | 1))
    if n * count == 0:
        return found
    if shared:
        ranks = cupy.zeros((2, n, count), dtype=cupy.int32)
        pair = ranks[0], ranks[1]
        block = max(WARP, min(_MOST_THREADS, 1 << (2 * rows - 1).bit_length()))  # two for each row
        task = _task(x, out, found, (0, pivot_columns, columns), pair, moduli)
        launching.launch("elimination", "eliminate", n * count * block, (task,), block=block, shared=shared)
    elif out.size:
        out[...] = x
        _GreatMatrices(out, found, pivot_columns, moduli).eliminate()
    return found


def _task(
    x: Array,
    out: Array,
    found: tuple[Array, Array, Array],
    columns: tuple[int, int, int],
    ranks: tuple[Array, Array],
    moduli: ModuliSet,
    has_panels: bool = False,
) -> Parameter:
    """Elimination with pivots of columns from the first to the second, of what is left of the third."""
    n, count, rows, width = out.shape
    order, pivots, products = found
    return Parameter(
        ELIMINATION,
        x=_stack(x),
        out=out,
        order=order,
        pivots=pivots,
        products=products,
        ranks=ranks[0],
        new_ranks=ranks[1],
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        rows=rows,
        columns=width,
        most=pivots.shape[2],
        start=columns[0],
        stop=columns[1],
        reach=columns[2],
        has_panels=has_panels,
    )


class _GreatMatrices:
    """Elimination in matrices that shared memory does not hold: by halves of their columns, and products.

    Once the left half of some columns is eliminated, the right one loses the multiples of the pivots' rows,
    by one product for all rows below; then it is eliminated itself. Ranks differ from matrix to matrix, so
    that the factors and rows of each are windows of its own.
    """

    def __init__(
        self, words: Array, found: tuple[Array, Array, Array], pivot_columns: int, moduli: ModuliSet
    ) -> None:
        self.words, self.found, self.pivot_columns, self.moduli = words, found, pivot_columns, moduli
        # Of each matrix, before a column; and the least of these.
        self.ranks = {0: cupy.zeros(words.shape[:2], dtype=cupy.int32)}
        self.least = {0: 0}

    def eliminate(self) -> None:
        columns = self.words.shape[3]
        self._eliminate(0, self.pivot_columns)
        if self.pivot_columns < columns:
            self._reduce(0, self.pivot_columns, columns)

    def _eliminate(self, start: int, stop: int) -> None:
        """Columns start to stop, in which all pivots before have been taken into account."""
        if stop - start > GREAT_PANEL:
            middle = _middle(start, stop)
            self._eliminate(start, middle)
            self._reduce(start, middle, stop)
            self._eliminate(middle, stop)
            return
        ranks = cupy.empty_like(self.ranks[start])
        pair = self.ranks[start], ranks
        n, count, rows, _ = self.words.shape
        shared = _shared(rows * PANEL_WIDTH)
        task = _task(self.words, self.words, self.found, (start, stop, stop), pair, self.moduli, bool(shared))
        threads = n * count * _MOST_THREADS
        launching.launch(
            "elimination", "eliminate_great", threads, (task,), block=_MOST_THREADS, shared=shared
        )
        self.ranks[stop], self.least[stop] = ranks, int(ranks.min())

    def _reduce(self, start: int, stop: int, end: int) -> None:
        """Columns stop to end by the pivots of the columns start to stop."""
        self._solve(start, stop, (stop, end))
        self._subtract(start, stop, self.words.shape[2], (stop, end))

    def _solve(self, start: int, stop: int, columns: tuple[int, int]) -> None:
        """The rows of the pivots of columns start to stop, in columns to the right."""
        if stop - start > GREAT_PANEL:
            middle = _middle(start, stop)
            self._solve(start, middle, columns)
            self._subtract(start, middle, self.ranks[stop], columns)
            self._solve(middle, stop, columns)
            return
        n, count, *_ = self.words.shape
        task = Parameter(
            UNIT_LOWER,
            x=_stack(self.words),
            first=self.ranks[start],
            last=self.ranks[stop],
            moduli=modulus_table_on(self.moduli, cupy.cuda.runtime.getDevice()),
            moduli_count=n,
            count=count,
            start=columns[0],
            stop=columns[1],
        )
        threads = n * count * -(-(columns[1] - columns[0]) // GREAT_PANEL) * GREAT_PANEL
        launching.launch("elimination", "solve_unit_lower", threads, (task,), block=GREAT_PANEL)

    def _subtract(self, start: int, stop: int, end: Bound, columns: tuple[int, int]) -> None:
        """From rows up to `end` their factors times the rows of the pivots of columns start to stop."""
        first, last = self.ranks[start], self.ranks[stop]
        left = Part(self.words, (last, end), (first, last))
        right = Part(self.words, (first, last), columns)
        out = Part(self.words, (last, end), columns)
        most = end - self.least[stop] if isinstance(end, int) else stop - start
        shape = most, stop - start, columns[1] - columns[0]
        if min(shape):
            int8_product.multiply(left, right, self.moduli, out, shape, SUBTRACT)


def _middle(start: int, stop: int) -> int:
    """A column that cuts some into halves of whole panels, about."""
    return start + -(-(stop - start) // (2 * GREAT_PANEL)) * GREAT_PANEL


def solve_upper(upper: Array, right: Array, moduli: ModuliSet, out: Array) -> None:
    if out.size == 0:
        return
    rows = right.shape[2]
    if rows <= _MOST_SOLVED:
        _solve_upper(upper, right, moduli, out)
        return
    if out is not right:
        out[...] = right
    half = rows // 2
    lower, above = out[:, :, half:], out[:, :, :half]
    solve_upper(upper[:, :, half:, half:], lower, moduli, lower)
    parts = [Part.whole(x) for x in (upper[:, :, :half, half:], lower, above)]
    shape = half, rows - half, out.shape[3]
    int8_product.multiply(parts[0], parts[1], moduli, parts[2], shape, SUBTRACT)
    solve_upper(upper[:, :, :half, :half], above, moduli, above)


def _solve_upper(upper: Array, right: Array, moduli: ModuliSet, out: Array) -> None:
    n, count, rows, columns = right.shape
    # A copy, with the diagonals as they are in memory.
    diagonals = upper.diagonal(axis1=2, axis2=3).reshape(n, count * rows).copy()
    inverses = cupy.empty_like(diagonals)
    inverse(diagonals, moduli, inverses)
    lanes = _lanes(columns)
    system = Parameter(
        TRIANGULAR,
        upper=_stack(upper),
        right=_stack(right),
        out=_stack(out),
        inverses=inverses,
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        rows=rows,
        columns=columns,
        lanes=lanes,
    )
    launching.launch("elimination", "solve_upper", n * count * -(-columns // lanes) * WARP, (system,))


def characteristic_polynomials(x: Array, moduli: ModuliSet) -> Array:
    n, count, length, _ = x.shape
    out = cupy.empty((n, count, length + 1), dtype=cupy.uint32)
    size = length * (length + 2)
    shared = _shared(size)
    task = Parameter(
        POLYNOMIALS,
        x=_stack(x),
        out=out,
        space=cupy.empty(n * count * (length + 1) ** 2, dtype=cupy.uint32),
        work=cupy.empty(0 if shared else n * count * size, dtype=cupy.uint32),
        moduli=modulus_table_on(moduli, cupy.cuda.runtime.getDevice()),
        moduli_count=n,
        count=count,
        length=length,
        is_shared=bool(shared),
    )
    if n * count:
        block, name = _threads(size, 512), "characteristic_polynomials"
        launching.launch("elimination", name, n * count * block, (task,), block=block, shared=shared)
    return out
