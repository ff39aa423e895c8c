"""Kernels that transpose matrices of words."""

import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import row_stride
from rnsdask.backend.cuda_layout import BLOCK, TRANSPOSED_WORDS
from rnsdask.backend.protocol import Array

_LONGEST = 5  # bits of the shorter side of a tile


def transpose(matrix: Array, out: Array) -> None:
    rows, columns = matrix.shape
    # A matrix of few columns is cut into tiles of all of them, and one of few rows likewise.
    bits = min(_LONGEST, (columns - 1).bit_length())
    if rows < 2**_LONGEST:
        bits = TRANSPOSED_WORDS.bit_length() - 1 - (rows - 1).bit_length()
    tiles = -(-columns // 2**bits) * -(-rows // (TRANSPOSED_WORDS >> bits))
    size = (row_stride(matrix), np.int64(rows), np.int64(columns), np.int32(bits))
    launching.launch(
        "transpose", f"transpose_{8 * matrix.dtype.itemsize}", BLOCK * tiles, (matrix, *size, out)
    )
