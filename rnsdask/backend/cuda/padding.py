"""Copies of arrays in C order, with zeros after them."""

from collections.abc import Sequence

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.protocol import Array

_MOST_PITCH = 2**31 - 1
"""Bytes from row to row, CU_DEVICE_ATTRIBUTE_MAX_PITCH of all GPUs."""


def padded(array: Array, shape: Sequence[int]) -> Array:
    """A copy in C order with zeros after it along each axis up to a shape, on the current GPU.

    Of a matrix without a kernel of CuPy's, which would be compiled at first use.
    """
    larger = cupy.empty(shape, array.dtype) if array.shape == tuple(shape) else cupy.zeros(shape, array.dtype)
    if not (array.size and _has_rows(array) and _has_rows(larger)):
        larger[tuple(map(slice, array.shape))] = array
        return larger
    rows, width = array.shape[0], array.shape[1] * array.itemsize
    places = (larger, larger.strides[0], array, array.strides[0])
    kind, stream = cupy.cuda.runtime.memcpyDeviceToDevice, cupy.cuda.get_current_stream().ptr
    launching.call(cupy.cuda.runtime.memcpy2DAsync, *places, width, rows, kind, stream)
    return larger


def _has_rows(array: Array) -> bool:
    """Whether it is a matrix whose rows CUDA copies at once: apart from one another, and not too far."""
    if array.ndim != 2 or array.strides[1] != array.itemsize:
        return False
    return bool(array.shape[1] * array.itemsize <= array.strides[0] <= _MOST_PITCH)
