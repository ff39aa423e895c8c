"""Matrix products by products of 8-bit matrices: kernels that split and join, and cuBLAS between.

Sums of products modulo each of the small moduli are exact 32-bit integers (docs/linalg.md). Matrices that are
too large for the memory that they would take go by blocks.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import cupy
import numpy as np
from cupy_backends.cuda.libs import cublas

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, on_device
from rnsdask.backend.cuda_layout import BLOCK, INT8_TASK, MOST_SMALL_MODULI
from rnsdask.backend.protocol import Array
from rnsdask.constants import (
    INT8_LONGEST,
    INT8_TERMS,
    INT8_WORKSPACE,
    MOST_TERMS,
    Int8Constants,
    int8_constants,
    small_moduli_for,
)
from rnsdask.core.moduli import ModuliSet

REPLACE, ADD, SUBTRACT = 0, 1, -1
"""What is done with the numbers that a product goes to."""

assert INT8_TERMS <= MOST_TERMS
_PAD = 16  # sides of the 8-bit matrices are multiples of it

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
        """Of the transposed matrices."""
        return Part(self.words.transpose(0, 1, 3, 2), self.columns, self.rows)

    def task(
        self, place: tuple[int, int, int], shape: tuple[int, int], constants: Int8Constants, parts: Array
    ) -> Parameter:
        """Of as many matrices as `parts` a block: the first matrix, row and column, and how many of these."""
        first, row, column = place
        return Parameter(
            INT8_TASK,
            x=(self.words, *(stride // self.words.itemsize for stride in self.words.strides)),
            row_start=_bound(self.rows[0]),
            row_end=_bound(self.rows[1]),
            column_start=_bound(self.columns[0]),
            column_end=_bound(self.columns[1]),
            first=first,
            count=len(parts),
            batch=self.words.shape[1],
            row=row,
            column=column,
            rows=shape[0],
            columns=shape[1],
            padded_rows=parts.shape[2],
            padded_columns=parts.shape[3],
            small=_small(constants),
            small_count=constants.count,
        )


def _bound(bound: Bound) -> tuple[Bound, int]:
    """The structure Bound."""
    return (0, bound) if isinstance(bound, int) else (bound, 0)


def _small(constants: Int8Constants) -> list[tuple[int, ...]]:
    """As many of the structure SmallModulus as a task has."""
    rows = [tuple(row) for row in constants.small.tolist()]
    return rows + [(0, 0, 0)] * (MOST_SMALL_MODULI - len(rows))


def _padded(length: int) -> int:
    return -(-length // _PAD) * _PAD


def _split(
    part: Part, place: tuple[int, int, int], shape: tuple[int, int], constants: Int8Constants, out: Array
) -> None:
    task = part.task(place, shape, constants, out)
    threads = len(out) * -(-out.shape[2] // 32) * -(-out.shape[3] // 128) * BLOCK
    launching.launch("int8_product", "int8_split", threads, (task, on_device(constants, "weights"), out))


def _join(
    sums: Array,
    part: Part,
    place: tuple[int, int, int],
    shape: tuple[int, int],
    constants: Int8Constants,
    mode: int,
) -> None:
    task = part.task(place, shape, constants, sums)
    threads = len(sums) * shape[0] * -(-shape[1] // 4)
    arguments = (task, on_device(constants, "weights"), sums, np.int32(mode))
    launching.launch("int8_product", "int8_join", threads, arguments)


def int8_split(x: Array, constants: Int8Constants, out: Array) -> None:
    n, batch, *_ = x.shape
    _split(Part.whole(x), (0, 0, 0), out.shape[-2:], constants, out.reshape(n * batch, *out.shape[2:]))


def int8_join(sums: Array, constants: Int8Constants, out: Array) -> None:
    n, batch, rows, columns = out.shape
    merged = sums.reshape(n * batch, *sums.shape[2:])
    _join(merged, Part.whole(out), (0, 0, 0), (rows, columns), constants, REPLACE)


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
    for (k, depth), (i, height), (j, width) in _blocks(terms, rows, columns):
        how = ADD if k and mode == REPLACE else mode
        sides = tuple(map(_padded, (height, depth, width)))
        each = constants.count * (sides[1] * (sides[0] + sides[2]) + 4 * sides[0] * sides[2])
        most = max(1, min(INT8_WORKSPACE // each, _MOST_PRODUCTS // constants.count))
        for first in range(0, count, most):
            products = min(most, count - first)
            matrices = products, constants.count
            x = cupy.empty((*matrices, sides[0], sides[1]), dtype=cupy.int8)
            y = cupy.empty((*matrices, sides[2], sides[1]), dtype=cupy.int8)
            sums = cupy.empty((*matrices, sides[0], sides[2]), dtype=cupy.int32)
            _split(a, (first, i, k), (height, depth), constants, x)
            _split(right, (first, j, k), (width, depth), constants, y)
            _multiply_int8(x, y, sums)
            _join(sums, out, (first, i, j), (height, width), constants, how)


def _blocks(terms: int, rows: int, columns: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """First and length of the terms, rows and columns of each block."""
    for k in range(0, terms, INT8_TERMS):
        for i in range(0, rows, INT8_LONGEST):
            for j in range(0, columns, INT8_LONGEST):
                yield (
                    (k, min(INT8_TERMS, terms - k)),
                    (i, min(INT8_LONGEST, rows - i)),
                    (j, min(INT8_LONGEST, columns - j)),
                )


def _multiply_int8(x: Array, y: Array, sums: Array) -> None:
    """Products x (..., I, K) times the transposed of y (..., J, K)."""
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
