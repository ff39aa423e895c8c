"""Copies of arrays on a GPU: into others, transposed, in bit-reversed order, or with zeros after them."""

from collections.abc import Sequence

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import row_stride
from rnsdask.backend.cuda.layout import BLOCK, REVERSED_BITS, TRANSPOSED_WORDS
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


def reverse_runs(x: Array, log_length: int, out: Array) -> None:
    """Copy runs of 2**10 words or more, in rows (n, N), each in bit-reversed order, to other memory."""
    rows, count = x.shape
    sizes = np.int64(rows), np.int64(count >> log_length), np.int32(log_length)
    arguments = x, row_stride(x), *sizes, out, row_stride(out)
    name, tiles = f"reverse_runs_{8 * x.itemsize}", rows * count >> 2 * REVERSED_BITS
    launching.launch("bit_reversal", name, BLOCK * tiles, arguments)


_MOST_PITCH = 2**31 - 1
"""Bytes from row to row, CU_DEVICE_ATTRIBUTE_MAX_PITCH of all GPUs."""


def padded(array: Array, shape: Sequence[int]) -> Array:
    """A copy in C order with zeros after it along each axis up to a shape, on the current GPU.

    A matrix is copied as by :func:`assign`.
    """
    larger = cupy.empty(shape, array.dtype) if array.shape == tuple(shape) else cupy.zeros(shape, array.dtype)
    assign(larger[tuple(map(slice, array.shape))], array)
    return larger


def assign(out: Array, array: Array) -> None:
    """Write an array to a view of another that has its shape and dtype, and other memory.

    CUDA copies a matrix, or all memory: CuPy would compile a kernel for each layout at first use.
    """
    if not array.size:
        return
    while array.ndim > 2 and array.shape[0] == 1:
        out, array = out[0], array[0]
    kind, stream = cupy.cuda.runtime.memcpyDeviceToDevice, cupy.cuda.get_current_stream().ptr
    if array.flags.c_contiguous and out.flags.c_contiguous:
        launching.call(cupy.cuda.runtime.memcpyAsync, out, array, array.nbytes, kind, stream)
    elif _has_rows(array) and _has_rows(out):
        places = (out, out.strides[0], array, array.strides[0])
        size = array.shape[1] * array.itemsize, array.shape[0]
        launching.call(cupy.cuda.runtime.memcpy2DAsync, *places, *size, kind, stream)
    else:
        out[...] = array


def _has_rows(array: Array) -> bool:
    """Whether it is a matrix whose rows CUDA copies at once: apart from one another, and not too far."""
    if array.ndim != 2 or array.strides[1] != array.itemsize:
        return False
    return bool(array.shape[1] * array.itemsize <= array.strides[0] <= _MOST_PITCH)
