"""Elimination in matrices modulo primes, triangular systems and characteristic polynomials."""

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda import block_lu, int8_product, launching, triangles
from rnsdask.backend.cuda.arithmetic import inverse
from rnsdask.backend.cuda.block_lu import Found
from rnsdask.backend.cuda.int8_product import SUBTRACT, Bound, Part
from rnsdask.backend.cuda.launching import (
    Parameter,
    has_clusters,
    modulus_table_on,
    most_shared,
    processors,
)
from rnsdask.backend.cuda_layout import (
    BLOCK,
    BOARD_BYTES,
    ELIMINATION,
    GREAT_TILE,
    LU_STRIP,
    MOST_CLUSTER,
    MOST_INVERTED,
    PANEL_WIDTH,
    POLYNOMIALS,
    ROW,
    ROW_TILE,
    ROW_WIDTH,
    TRIANGULAR,
    WARP,
    WHOLE_ROWS,
    cluster_options,
)
from rnsdask.backend.protocol import LU_FACTORS, Array, LUFactor
from rnsdask.core.moduli import ModuliSet

# Numbers of its matrix that a thread computes at the first step, where there are enough.
_NUMBERS = 32

_MOST_THREADS = 512

# Rows of triangular systems that are solved without products of matrices.
_MOST_SOLVED = 128

# Pivots up to which matrices are quicker as a whole in shared memory than by products, as measured.
_MOST_WHOLE = 128

# Rows that a block of a cluster has, a thread for each.
_MOST_ROWS = 512
_LEAST_ROWS = 64

# Columns that a launch eliminates of many great matrices, and of few, for which more launches take longer.
_PANEL = 128
_PANEL_OF_FEW = 256
_FEW = 32

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


def eliminate(x: Array, pivot_columns: int, moduli: ModuliSet, out: Array | None) -> Found:
    found = _no_pivots(x, pivot_columns)
    if x.size == 0 or _eliminate_whole(x, pivot_columns, moduli, found, out=out):
        return found
    n, count, rows, columns = x.shape
    if out is None:
        out = cupy.empty(x.shape, dtype=cupy.uint32)
    if (2 in moduli or rows > WHOLE_ROWS) and (shared := _shared(rows * (columns | 1))):
        ranks = cupy.zeros((2, n, count), dtype=cupy.int32)
        task = _task(
            x, found, (0, pivot_columns, columns), moduli, out=out, ranks=ranks[0], new_ranks=ranks[1]
        )
        block = max(WARP, min(_MOST_THREADS, 1 << (2 * rows - 1).bit_length()))  # two for each row
        launching.launch("elimination", "eliminate", n * count * block, (task,), block=block, shared=shared)
    else:
        _eliminate_great(x, pivot_columns, moduli, out, found)
    return found


def _eliminate_whole(
    x: Array, pivot_columns: int, moduli: ModuliSet, found: Found, **results: Array | None
) -> bool:
    """Eliminate by a thread for each row with the matrix in shared memory, if it is one for that."""
    n, count, rows, columns = x.shape
    # Products by Montgomery are modulo odd numbers.
    if 2 in moduli or rows > WHOLE_ROWS or min(rows, pivot_columns) > _MOST_WHOLE:
        return False
    is_small = rows <= WARP and columns <= ROW and columns == pivot_columns
    right = 0 if is_small else ROW * (ROW + ROW_TILE)
    shared = _shared(BOARD_BYTES // 4 + right + rows * (columns | 1))
    if not shared:
        return False
    task = _task(x, found, (0, pivot_columns, columns), moduli, **results)
    block, name = _rounded(rows), "eliminate_small" if is_small else "eliminate_whole"
    launching.launch("eliminate_rows", name, n * count * block, (task,), block=block, shared=shared)
    return True


def _rounded(threads: int) -> int:
    """So many threads in whole warps."""
    return -(-threads // WARP) * WARP


def _eliminate_great(x: Array, pivot_columns: int, moduli: ModuliSet, out: Array, found: Found) -> None:
    """Eliminate as if no rows had to be exchanged, or else as if each column had a pivot, or else with ranks.

    So most of the time nothing waits for a rank. Each way is of the primes that the one before leaves.
    """
    n, count, rows, _ = x.shape
    ways = [_eliminate_with_all_pivots, _eliminate_with_ranks]
    if block_lu.is_for(min(rows, pivot_columns), n * count, moduli):
        ways.insert(0, _eliminate_by_blocks)
    left = list(range(n))
    for way in ways:
        if way is ways[0]:
            out[...] = x
            is_done = way(out, pivot_columns, moduli, found)
        else:
            words = cupy.ascontiguousarray(x[left])
            new = _no_pivots(words, pivot_columns)
            is_done = way(words, pivot_columns, ModuliSet([moduli[i] for i in left]), new)
            out[left] = words
            for whole, part in zip(found, new, strict=True):
                whole[left] = part
        left = [i for i, done in zip(left, is_done.tolist(), strict=True) if not done]
        if not left:
            return


def _eliminate_by_blocks(
    words: Array, pivot_columns: int, moduli: ModuliSet, found: Found
) -> NDArray[np.bool_]:
    return block_lu.Blocks(words, moduli, eliminate).eliminate(pivot_columns, found)


def _eliminate_with_all_pivots(
    words: Array, pivot_columns: int, moduli: ModuliSet, found: Found
) -> NDArray[np.bool_]:
    _GreatMatrices(words, found, pivot_columns, moduli, is_full=True).eliminate()
    pivots = found[1]
    is_full = (pivots == cupy.arange(pivots.shape[2], dtype=cupy.int32)).all(axis=(1, 2))
    return np.asarray(is_full.get())


def _eliminate_with_ranks(
    words: Array, pivot_columns: int, moduli: ModuliSet, found: Found
) -> NDArray[np.bool_]:
    _GreatMatrices(words, found, pivot_columns, moduli, is_full=False).eliminate()
    return np.ones(len(moduli), dtype=bool)


def _no_pivots(x: Array, pivot_columns: int) -> Found:
    """What is known before there are pivots."""
    n, count, rows, _ = x.shape
    order = cupy.empty((n, count, rows), dtype=cupy.int32)
    order[...] = cupy.arange(rows, dtype=cupy.int32)
    pivots = cupy.full((n, count, min(rows, pivot_columns)), -1, dtype=cupy.int32)
    return order, pivots, cupy.ones((n, count), dtype=cupy.uint32)


def _task(
    x: Array,
    found: Found,
    columns: tuple[int, int, int],
    moduli: ModuliSet,
    has_panels: bool = False,
    /,
    **results: Array | None,
) -> Parameter:
    """Elimination with pivots of columns from the first to the second, of what is left of the third."""
    n, count, rows, width = x.shape
    order, pivots, products = found
    return Parameter(
        ELIMINATION,
        x=_stack(x),
        order=order,
        pivots=pivots,
        products=products,
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
        **{name: array for name, array in results.items() if array is not None},
    )


class _GreatMatrices:
    """Elimination in matrices that shared memory does not hold: by halves of their columns, and products.

    Once the left half of some columns is eliminated, the right one loses the multiples of the pivots' rows,
    by one product for all rows below; then it is eliminated itself. Ranks differ from matrix to matrix, so
    that the factors and rows of each are windows of its own. Where each column is taken to have a pivot until
    there are no rows left, ranks are not waited for, and results are right only if it has.
    """

    def __init__(
        self, words: Array, found: Found, pivot_columns: int, moduli: ModuliSet, is_full: bool
    ) -> None:
        self.words, self.found, self.pivot_columns, self.moduli = words, found, pivot_columns, moduli
        self.is_full = is_full
        self.panel = _PANEL if words.shape[0] * words.shape[1] > _FEW else _PANEL_OF_FEW
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
        if stop - start > self.panel:
            middle = _middle(start, stop, self.panel)
            self._eliminate(start, middle)
            self._reduce(start, middle, stop)
            self._eliminate(middle, stop)
            return
        ranks = cupy.empty_like(self.ranks[start])
        self._eliminate_panel(start, stop, {"ranks": self.ranks[start], "new_ranks": ranks})
        self.ranks[stop] = ranks
        self.least[stop] = min(stop, self.words.shape[2]) if self.is_full else int(ranks.min())

    def _eliminate_panel(self, start: int, stop: int, ranks: dict[str, Array]) -> None:
        n, count, rows, _ = self.words.shape
        left = max(1, rows - self.least[start])
        blocks = _blocks_of_cluster(left, n * count)
        block = _rounded(-(-left // blocks))
        shared = _shared(BOARD_BYTES // 4 + ROW * (ROW + GREAT_TILE) + ROW_WIDTH * block)
        if 2 not in self.moduli and block <= _MOST_ROWS and shared:
            task = _task(self.words, self.found, (start, stop, stop), self.moduli, out=self.words, **ranks)
            launching.launch(
                "eliminate_rows",
                "eliminate_panel",
                n * count * blocks * block,
                (task,),
                block=block,
                shared=shared,
                defines=cluster_options(blocks),
                cluster=blocks,
            )
            return
        shared = _shared(rows * PANEL_WIDTH)
        task = _task(
            self.words,
            self.found,
            (start, stop, stop),
            self.moduli,
            bool(shared),
            out=self.words,
            **ranks,
        )
        threads = n * count * _MOST_THREADS
        launching.launch(
            "elimination", "eliminate_great", threads, (task,), block=_MOST_THREADS, shared=shared
        )

    def _reduce(self, start: int, stop: int, end: int) -> None:
        """Columns stop to end by the pivots of the columns start to stop."""
        first, last, rows = self.ranks[start], self.ranks[stop], self.words.shape[2]
        self._solve(first, last, stop - start, (stop, end))
        self._subtract(first, last, rows, (rows - self.least[stop], stop - start), (stop, end))

    def _solve(self, first: Array, last: Array, most: int, columns: tuple[int, int]) -> None:
        """The rows of the pivots from the first on, `most` of a matrix, in columns to the right."""
        if most > MOST_INVERTED:
            half = _middle(0, most, MOST_INVERTED)
            middle = cupy.minimum(first + half, last)
            self._solve(first, middle, half, columns)
            self._subtract(first, middle, last, (most - half, half), columns)
            self._solve(middle, last, most - half, columns)
            return
        inverse = Part.whole(triangles.lower_inverses(self.words, (first, last), most, self.moduli))
        rows = Part(self.words, (first, last), columns)
        int8_product.multiply(inverse, rows, self.moduli, rows, (most, most, columns[1] - columns[0]))

    def _subtract(
        self, first: Array, last: Array, end: Bound, most: tuple[int, int], columns: tuple[int, int]
    ) -> None:
        """From rows up to `end` their factors times the rows of pivots: of the most rows, and pivots."""
        left = Part(self.words, (last, end), (first, last))
        right = Part(self.words, (first, last), columns)
        out = Part(self.words, (last, end), columns)
        shape = *most, columns[1] - columns[0]
        if min(shape):
            int8_product.multiply(left, right, self.moduli, out, shape, SUBTRACT)


def _middle(start: int, stop: int, panel: int) -> int:
    """A column that cuts some into halves of whole panels, about."""
    return start + -(-(stop - start) // (2 * panel)) * panel


def _blocks_of_cluster(rows: int, matrices: int) -> int:
    """Blocks that work on each matrix of so many rows together: more for few matrices, to keep all busy."""
    device = cupy.cuda.runtime.getDevice()
    most = MOST_CLUSTER if has_clusters(device) else 1
    blocks = 1
    while blocks < most and (
        rows > blocks * _MOST_ROWS
        or (2 * blocks * matrices <= processors(device) and rows > blocks * _LEAST_ROWS)
    ):
        blocks *= 2
    return blocks


# Many small matrices are eliminated in shared memory, which takes no less time without factors.
small_cramer = None


def lu(x: Array, moduli: ModuliSet, factors: tuple[Array, Array, Array]) -> None:
    rows, columns = x.shape[2:]
    if x.size == 0:
        factors[0][...] = cupy.eye(rows, dtype=cupy.uint32)  # the others are empty
        return
    found = _no_pivots(x, columns)
    results = dict(zip(("permutation", "lower", "upper"), factors, strict=True))
    if not _eliminate_whole(x, columns, moduli, found, **results):
        words = cupy.empty(x.shape, dtype=cupy.uint32)
        order = eliminate(x, columns, moduli, words)[0]
        for factor, out in zip(LU_FACTORS, factors, strict=True):
            _lu_factor(words, columns, order, 1, factor, out)


def lu_factor(packed: Array, factor: LUFactor, out: Array) -> None:
    words, width = cupy.ascontiguousarray(packed), packed.shape[3]
    _lu_factor(words, width, words.reshape(-1)[width - 1 :], width, factor, out)


def _lu_factor(words: Array, width: int, order: Array, step: int, factor: LUFactor, out: Array) -> None:
    """A factor of echelon forms in rows of `width` words; numbers of the order are `step` words apart."""
    n, count, rows, columns = out.shape
    strips = n * count * -(-rows // LU_STRIP)
    sizes = tuple(map(np.int64, (n * count, words.shape[2], width, rows, columns)))
    if out.size:
        arguments = words, order, np.int64(step), out, *sizes, np.int32(LU_FACTORS.index(factor))
        launching.launch("lu_factors", "lu_factor", strips * BLOCK, arguments)


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
