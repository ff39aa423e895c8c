"""Elimination in great matrices modulo primes by panels of columns, with any exchanges of rows."""

import cupy
import numpy as np

from rnsdask.backend.cuda import int8_product, launching, triangles
from rnsdask.backend.cuda.int8_product import SUBTRACT, Bound, Part
from rnsdask.backend.cuda.launching import has_clusters, processors, shared_bytes
from rnsdask.backend.cuda.layout import (
    BOARD_BYTES,
    GREAT_TILE,
    MOST_INVERTED,
    PANEL_WIDTH,
    ROW,
    ROW_WIDTH,
    TALL_SEGMENT,
    WARP,
)
from rnsdask.backend.cuda.triangles import Found, in_warps, task_of
from rnsdask.backend.cuda.variants import MOST_CLUSTER, Defines, cluster_options, int8_options
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

_MOST_THREADS = 512

# Rows that a block of a cluster has, a thread for each.
MOST_ROWS = 512
_LEAST_ROWS = 64

# Columns that a launch eliminates of many great matrices, and of few, for which more launches take longer.
_PANEL = 128
_PANEL_OF_FEW = 256
_FEW = 32

# Columns that all multiprocessors eliminate together in a tall matrix, one after the other: of each they
# change all rows in all of these columns.
_PANEL_OF_TALL = 64
_TALL_BLOCK = 128


class GreatMatrices:
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
        launching.prepare(_modules())

    def eliminate(self, start: int = 0) -> None:
        """Change the matrices, and find their pivots, from a column on."""
        columns = self.words.shape[3]
        self._eliminate(start, self.pivot_columns)
        if self.pivot_columns < columns:
            self._reduce(start, self.pivot_columns, columns)

    def pass_on(self, start: int, stop: int, *, has_factors: bool = False) -> None:
        """Take columns into account to their right: each has been eliminated, with a pivot.

        Their pivots' rows may already have the factors there.
        """
        self.ranks[stop] = cupy.full_like(self.ranks[start], stop)
        self.least[stop] = stop
        if stop < self.words.shape[3]:
            self._reduce(start, stop, self.words.shape[3], has_factors=has_factors)

    def _eliminate(self, start: int, stop: int) -> None:
        """Columns start to stop, in which all pivots before have been taken into account."""
        panel = _PANEL_OF_TALL if self._is_tall(start) else self.panel
        if stop - start > panel:
            middle = _middle(start, stop, panel)
            self._eliminate(start, middle)
            self._reduce(start, middle, stop)
            if self._is_done(start, middle, stop):
                self.ranks[stop], self.least[stop] = self.ranks[middle], self.least[middle]
            else:
                self._eliminate(middle, stop)
            return
        ranks = self.ranks[start].copy()
        eliminate = self._eliminate_tall if self._is_tall(start) else self._eliminate_panel
        eliminate(start, stop, {"ranks": self.ranks[start], "new_ranks": ranks})
        self.ranks[stop] = ranks
        self.least[stop] = min(stop, self.words.shape[2]) if self.is_full else int(ranks.min())

    def _is_done(self, start: int, middle: int, stop: int) -> bool:
        """Whether pivots lacked in columns up to the middle, and what is left of those to its right is 0."""
        lacks = not self.is_full and self.least[middle] - self.least[start] < middle - start
        if not lacks:
            return False
        left = self.words[:, :, self.least[middle] :, middle:stop]
        return not left.size or not int(left.max())

    def _is_tall(self, start: int) -> bool:
        """Whether blocks of their own have too few threads for the rows, and leave processors idle."""
        n, count, rows, _ = self.words.shape
        left = rows - self.least[start]
        blocks = 1 if 2 in self.moduli else _blocks_of_cluster(left, n * count)
        are_few = n * count < processors(cupy.cuda.runtime.getDevice())
        return are_few and bool(left > blocks * MOST_ROWS)

    def _eliminate_tall(self, start: int, stop: int, ranks: dict[str, Array]) -> None:
        n, count, rows, columns = self.words.shape
        matrices, first = n * count, self.least[start]
        task = task_of(self.words, self.found, (start, stop, stop), self.moduli, out=self.words, **ranks)
        found = cupy.full(matrices, rows, dtype=cupy.int32)
        places = cupy.full(matrices, -1, dtype=cupy.int32)
        inverses = cupy.empty(matrices, dtype=cupy.uint32)
        pivot_rows = cupy.empty((matrices, stop - start), dtype=cupy.uint32)
        shared = found, places, inverses, pivot_rows
        threads = matrices * (rows - first + -(-columns // TALL_SEGMENT)) * WARP
        for column in range(start - 1, stop):
            at = task, np.int64(column)
            if column >= start:
                size = matrices * _TALL_BLOCK
                launching.launch("tall_panel", "bring_pivot", size, (*at, *shared), block=_TALL_BLOCK)
            launching.launch("tall_panel", "clear_column", threads, (*at, np.int64(first), *shared))

    def _eliminate_panel(self, start: int, stop: int, ranks: dict[str, Array]) -> None:
        n, count, rows, _ = self.words.shape
        left = max(1, rows - self.least[start])
        blocks = _blocks_of_cluster(left, n * count)
        block = in_warps(-(-left // blocks))
        shared = shared_bytes(BOARD_BYTES // 4 + ROW * (ROW + GREAT_TILE) + ROW_WIDTH * block)
        if 2 not in self.moduli and block <= MOST_ROWS and shared:
            task = task_of(self.words, self.found, (start, stop, stop), self.moduli, out=self.words, **ranks)
            launching.launch(
                "eliminate_panel",
                "eliminate_panel",
                n * count * blocks * block,
                (task,),
                block=block,
                shared=shared,
                defines=cluster_options(blocks),
                cluster=blocks,
            )
            return
        shared = shared_bytes(rows * PANEL_WIDTH)
        task = task_of(
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

    def _reduce(self, start: int, stop: int, end: int, *, has_factors: bool = False) -> None:
        """Columns stop to end by the pivots of the columns start to stop."""
        first, last, rows = self.ranks[start], self.ranks[stop], self.words.shape[2]
        if not has_factors:
            self._solve(first, last, stop - start, (stop, end))
        self._subtract(first, last, rows, (rows - self.least[stop], stop - start), (stop, end))

    def _solve(self, first: Array, last: Array, most: int, columns: tuple[int, int]) -> None:
        """The rows of the pivots from the first on, `most` of a matrix, in columns to the right."""
        if most > MOST_INVERTED:
            half = _middle(0, most, MOST_INVERTED)
            middle = triangles.middle_ranks(first, last, half)
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


def _modules() -> list[tuple[str, Defines]]:
    """Modules that most great matrices need on the current device."""
    blocks = (1, 2, 4, 8) if has_clusters(cupy.cuda.runtime.getDevice()) else (1,)
    by_options = {"eliminate_panel": map(cluster_options, blocks), "int8_tiles": map(int8_options, (1, 2))}
    return [
        ("int8_product", ()),
        ("triangles", ()),
        *((module, defines) for module, variants in by_options.items() for defines in variants),
    ]


def _middle(start: int, stop: int, panel: int) -> int:
    """A column that cuts some into halves of whole panels, about."""
    return start + -(-(stop - start) // (2 * panel)) * panel


def _blocks_of_cluster(rows: int, matrices: int) -> int:
    """Blocks that share a matrix: more where there are few matrices, to keep all multiprocessors busy."""
    device = cupy.cuda.runtime.getDevice()
    most = MOST_CLUSTER if has_clusters(device) else 1
    blocks = 1
    while blocks < most and (
        rows > blocks * MOST_ROWS
        or (2 * blocks * matrices <= processors(device) and rows > blocks * _LEAST_ROWS)
    ):
        blocks *= 2
    return blocks
