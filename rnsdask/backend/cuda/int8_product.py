"""Matrix products by products of 8-bit matrices.

One kernel splits both matrices. Of few terms another one multiplies and joins, for all small moduli at once;
of many cuBLAS multiplies, and a third kernel joins. Sums of products modulo each of the small moduli are
exact 32-bit integers (docs/exact-linalg.md). Matrices that are too large for the memory that they would take
go by blocks.
"""

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import cupy
import numpy as np
from cupy_backends.cuda.libs import cublas
from numpy.typing import NDArray

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, has_matrix_units, on_device, processors, stack
from rnsdask.backend.cuda.layout import (
    BLOCK,
    IMAGE,
    INT8_BLOCKS,
    INT8_FACTORS,
    INT8_RESULTS,
    INT8_STAGES,
    INT8_STEP,
    INT8_TASK,
    INT8_TILE,
    INT8_WARPS,
    MOST_SMALL_MODULI,
    SMALL_MODULUS,
    WARP,
)
from rnsdask.backend.cuda.variants import int8_options
from rnsdask.backend.protocol import Array
from rnsdask.constants import (
    INT8_COLUMNS,
    INT8_ROWS,
    INT8_TERMS,
    INT8_WORKSPACE,
    MOST_TERMS,
    Int8Constants,
    int8_constants,
    small_moduli_for,
)
from rnsdask.core.moduli import ModuliSet

REPLACE, ADD, SUBTRACT = 0, 1, -1
"""How a product is combined with the numbers at its destination."""

assert INT8_TERMS <= MOST_TERMS
_PAD = 16  # sides of the 8-bit matrices are multiples of it

# Most terms of products that one kernel multiplies and joins, if nearly each multiprocessor gets a tile; else
# the library is quicker, as measured.
MOST_JOINED = 512

# The most products of a call.
_MOST_PRODUCTS = 2**15

_INT8, _INT32, _SUM_OF_INT32 = 3, 10, 72  # CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT


Bound: TypeAlias = Array | int
"""A row or column of all matrices, or int32 (n, B) of each."""


@dataclass(frozen=True)
class Part:
    """Matrices (n, B, rows, columns), or a window in each of them.

    ``rows`` and ``columns`` of the window are the first and the one after the last. A product takes as many
    rows and columns from the first on as it has; those beyond the window are 0, and never written.
    """

    words: Array
    rows: tuple[Bound, Bound]
    columns: tuple[Bound, Bound]

    @classmethod
    def whole(cls, words: Array) -> "Part":
        """All of the matrices."""
        return cls(words, (0, words.shape[2]), (0, words.shape[3]))

    def turned(self) -> "Part":
        """Part of the transposed matrices."""
        return Part(self.words.transpose(0, 1, 3, 2), self.columns, self.rows)

    def task(
        self,
        place: tuple[int, int, int],
        block: tuple[int, int, int],
        padded: tuple[int, int],
        small: NDArray[np.int32],
    ) -> Parameter:
        """Parameter of a block: first matrix, row and column, size, and sides of its 8-bit matrices."""
        return Parameter(
            INT8_TASK,
            x=(self.words, *(stride // self.words.itemsize for stride in self.words.strides)),
            row_start=_bound(self.rows[0]),
            row_end=_bound(self.rows[1]),
            column_start=_bound(self.columns[0]),
            column_end=_bound(self.columns[1]),
            first=place[0],
            count=block[0],
            batch=self.words.shape[1],
            row=place[1],
            column=place[2],
            rows=block[1],
            columns=block[2],
            padded_rows=padded[0],
            padded_columns=padded[1],
            small=_small(small.tobytes()),
            small_count=len(small),
        )


@dataclass(frozen=True)
class Residues:
    """Images of matrices (count, moduli, steps, rows, INT8_STEP), and the constants of their small moduli."""

    image: Array
    small: NDArray[np.int32]


def _bound(bound: Bound) -> tuple[Bound, int]:
    """The structure Bound."""
    return (0, bound) if isinstance(bound, int) else (bound, 0)


@functools.lru_cache(256)
def _small(small: bytes) -> NDArray[Any]:
    """Array of the structure SmallModulus, as long as a task's."""
    table = np.zeros(MOST_SMALL_MODULI, dtype=SMALL_MODULUS)
    given = np.frombuffer(small, dtype=SMALL_MODULUS)
    table[: len(given)] = given
    return table


def _padded(length: int, step: int = _PAD) -> int:
    return -(-length // step) * step


def empty_image(count: int, moduli: int, rows: int, terms: int) -> Array:
    """Memory for the residues (count, moduli, steps, rows, INT8_STEP) of matrices, of whole steps."""
    return cupy.empty((count, moduli, -(-terms // INT8_STEP), rows, INT8_STEP), dtype=cupy.int8)


def _image(x: Array) -> tuple[Array | int, ...]:
    """The structure Image of residues (count, moduli, steps, rows, INT8_STEP), or (..., rows, terms)."""
    step = x.strides[2] if x.ndim == 5 else INT8_STEP
    return x, x.strides[1], step, x.strides[-2]


def split(
    part: Part,
    place: tuple[int, int, int],
    shape: tuple[int, int],
    constants: Int8Constants,
    small: NDArray[np.int32],
    out: Array,
) -> None:
    """Residues modulo small moduli of a block: of its first matrix, row and column, and rows and columns."""
    _split(constants, _Side(part, place, shape, small, out))


@dataclass(frozen=True)
class _Side:
    """A block of matrices, and where its residues go."""

    part: Part
    place: tuple[int, int, int]
    shape: tuple[int, int]
    small: NDArray[np.int32]
    out: Array

    @property
    def has_factors(self) -> bool:
        """Whether residues are multiplied by factors, as those of left matrices."""
        return bool(self.small[0, -1])

    def parameters(self) -> tuple[Parameter, Parameter]:
        """Task and image."""
        task = self.part.task(self.place, (len(self.out), *self.shape), _sides(self.out), self.small)
        return task, Parameter(IMAGE, **dict(zip(IMAGE.names or (), _image(self.out), strict=True)))

    def threads(self) -> int:
        rows, terms = _sides(self.out)
        return len(self.out) * -(-rows // 32) * -(-terms // 128) * BLOCK


def _sides(image: Array) -> tuple[int, int]:
    """Rows and terms of residues (count, moduli, steps, rows, INT8_STEP), or (..., rows, terms)."""
    return int(image.shape[-2]), int(image.shape[-1] * (image.shape[2] if image.ndim == 5 else 1))


_NO_SIDE = Parameter(INT8_TASK), Parameter(IMAGE)


def _split(constants: Int8Constants, *sides: _Side) -> None:
    """Residues of one side, or of both in one launch; the left one's small moduli have factors."""
    left, right = _NO_SIDE, _NO_SIDE
    for side in sides:
        if side.has_factors:
            left = side.parameters()
        else:
            right = side.parameters()
    threads = sum(side.threads() for side in sides)
    arguments = (*left, *right, on_device(constants, "weights"))
    launching.launch("int8_product", "int8_split", threads, arguments)


def _join(
    sums: Array,
    part: Part,
    place: tuple[int, int, int],
    shape: tuple[int, int],
    constants: Int8Constants,
    is_added: bool,
) -> None:
    task = part.task(place, (len(sums), *shape), sums.shape[2:], constants.left)
    threads = len(sums) * shape[0] * -(-shape[1] // 4)
    arguments = (task, on_device(constants, "weights"), sums, np.int32(is_added))
    launching.launch("int8_product", "int8_join", threads, arguments)


def multiply_images(
    x: Array,
    y: Array,
    part: Part,
    shape: tuple[int, int],
    constants: Int8Constants,
    added: Array | None = None,
    residues: Residues | None = None,
    has_words: bool = True,
    is_beside: bool = False,
    place: tuple[int, int, int] = (0, 0, 0),
) -> None:
    """Products of x (count, moduli, steps, I, INT8_STEP) and the transposed of y (..., J, INT8_STEP).

    They go to a block: of the first matrix, row and column, and of at most I rows and J columns. What is in
    the same place of `added` comes to them. They are written as words unless they only become `residues`,
    whose terms are their columns. If other work runs `beside` them, tiles start as soon as there is room.
    """
    padded = shape[0], _padded(shape[1], INT8_STEP)
    task = part.task(place, (len(x), *shape), padded, constants.left)
    factors = Parameter(
        INT8_FACTORS,
        left=_image(x),
        right=_image(y),
        terms=x.shape[2] * INT8_STEP,
        added=0 if added is None else stack(added),
    )
    results = Parameter(INT8_RESULTS, has_words=has_words)
    if residues is not None:
        small, count = _small(residues.small.tobytes()), len(residues.small)
        results = Parameter(
            INT8_RESULTS, image=_image(residues.image), small=small, small_count=count, has_words=has_words
        )
    down, tiles = _warps_down(shape[0]), len(x) * _tiles(*shape)
    block = INT8_WARPS * WARP
    launching.launch(
        "int8_tiles",
        "int8_multiply",
        (tiles if is_beside else min(tiles, resident_tiles())) * block,
        (task, on_device(constants, "weights"), factors, results),
        block=block,
        shared=INT8_STAGES * INT8_STEP * sum(_tile(down)),
        strides=False,
        defines=int8_options(down),
    )


def _warps_down(rows: int) -> int:
    """Warps along the rows of a tile."""
    return 1 if rows <= INT8_TILE[0] else 2


def _tile(down: int) -> tuple[int, int]:
    """Rows and columns of a tile."""
    return INT8_TILE[0] * down, INT8_TILE[1] * (INT8_WARPS // down)


def _tiles(rows: int, columns: int) -> int:
    """Number of tiles of a product."""
    height, width = _tile(_warps_down(rows))
    return -(-rows // height) * -(-columns // width)


def resident_tiles() -> int:
    """Tiles that the current device works on at a time."""
    return processors(cupy.cuda.runtime.getDevice()) * INT8_BLOCKS


def _is_joined_at_once(count: int, rows: int, terms: int, columns: int) -> bool:
    """Whether one kernel multiplies and joins a batch of that shape."""
    can = has_matrix_units(cupy.cuda.runtime.getDevice())
    return can and terms <= MOST_JOINED and 3 * count * _tiles(rows, columns) >= resident_tiles()


def int8_split(x: Array, constants: Int8Constants, is_left: bool, out: Array) -> None:
    n, batch, *_ = x.shape
    merged = out.reshape(n * batch, *out.shape[2:])
    small = constants.left if is_left else constants.right
    split(Part.whole(x), (0, 0, 0), out.shape[-2:], constants, small, merged)


def int8_join(sums: Array, constants: Int8Constants, out: Array) -> None:
    n, batch, rows, columns = out.shape
    merged = sums.reshape(n * batch, *sums.shape[2:])
    _join(merged, Part.whole(out), (0, 0, 0), (rows, columns), constants, is_added=False)


def multiply(
    a: Part, b: Part, moduli: ModuliSet, out: Part, shape: tuple[int, int, int], mode: int = REPLACE
) -> None:
    """Products of `rows` x `terms` and `terms` x `columns` numbers, brought to as many of `out`.

    Parameters
    ----------
    a, b, out : Part
        Arrays of uint32 on the current device, in any layout but that the columns of `out` are contiguous.
    shape : (rows, terms, columns)
    mode : REPLACE, ADD or SUBTRACT
        Whether the numbers in `out` are lost, or are added to, or lessened.
    """
    rows, terms, columns = shape
    constants = int8_constants(moduli, small_moduli_for(moduli, min(terms, INT8_TERMS)))
    right = b.turned()
    count = out.words.shape[0] * out.words.shape[1]
    factors = constants.negative if mode == SUBTRACT else constants.left
    is_joined = _is_joined_at_once(count, rows, terms, columns)
    for (k, depth), (i, height) in itertools.product(_cut(terms, INT8_TERMS), _cut(rows, INT8_ROWS)):
        is_added = k > 0 or mode != REPLACE
        most = _matrices_at_a_time(constants.count, (height, depth, min(columns, INT8_COLUMNS)), is_joined)
        for first, matrices in _cut(count, most):
            x = _empty(matrices, constants.count, height, depth, is_joined)
            sides = [_Side(a, (first, i, k), (height, depth), factors, x)]  # once for all columns
            for j, width in _cut(columns, INT8_COLUMNS):
                y = _empty(matrices, constants.count, width, depth, is_joined)
                _split(constants, *sides, _Side(right, (first, j, k), (width, depth), constants.right, y))
                place, block, sides = (first, i, j), (height, width), []
                if is_joined:
                    multiply_images(x, y, out, block, constants, out.words if is_added else None, place=place)
                else:
                    sums = cupy.empty((*x.shape[:3], y.shape[2]), dtype=cupy.int32)
                    multiply_int8(x, y, sums)
                    _join(sums, out, place, block, constants, is_added)
                    del sums
                del y  # before the next ones are made
            del x


def _empty(matrices: int, moduli: int, rows: int, terms: int, is_joined: bool) -> Array:
    """Memory for residues, as kernels or the library take them."""
    if is_joined:
        return empty_image(matrices, moduli, rows, terms)
    return cupy.empty((matrices, moduli, _padded(rows), _padded(terms)), dtype=cupy.int8)


def _matrices_at_a_time(moduli: int, shape: tuple[int, int, int], is_joined: bool) -> int:
    """Number of matrices of a shape whose images and sums fit the workspace together, at least one."""
    rows, depth, columns = map(_padded, shape)
    images = _padded(depth, INT8_STEP if is_joined else _PAD) * (rows + columns)
    each = moduli * (images + (0 if is_joined else 4 * rows * columns))
    return max(1, min(INT8_WORKSPACE // each, _MOST_PRODUCTS // moduli))


def _cut(length: int, most: int) -> Iterator[tuple[int, int]]:
    """First and length of parts of at most `most`."""
    for start in range(0, length, most):
        yield start, min(most, length - start)


def multiply_int8(x: Array, y: Array, sums: Array) -> None:
    """Queue the products x (..., I, K) times the transposed of y (..., J, K) of 8-bit matrices.

    `sums` (..., I, J) of int32 receives them. All three are C-contiguous; I, J and K are multiples of 16.
    """
    count, (rows, columns), terms = math.prod(x.shape[:-2]), sums.shape[-2:], x.shape[-1]
    one, zero = (np.array(value, dtype=np.int32) for value in (1, 0))
    launching.call(
        cublas.gemmStridedBatchedEx,
        cupy.cuda.get_cublas_handle(),
        cublas.CUBLAS_OP_T,
        cublas.CUBLAS_OP_N,
        *(columns, rows, terms, one.ctypes.data),
        *(y, _INT8, terms, columns * terms),
        *(x, _INT8, terms, rows * terms, zero.ctypes.data),
        *(sums, _INT32, columns, rows * columns),
        *(count, _SUM_OF_INT32, _DEFAULT),
    )
