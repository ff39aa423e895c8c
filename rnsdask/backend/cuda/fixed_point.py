"""Kernels of the fixed-point evaluation."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments, on_device
from rnsdask.backend.protocol import Array
from rnsdask.constants import FixedPointConstants


def fixed_point(residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
    count = residues.shape[1]
    words = cupy.empty((constants.bits // 32, count), dtype=cupy.uint32)
    zero = cupy.empty(count, dtype=cupy.bool_)
    arguments = (*array_arguments(residues), on_device(constants, "coefficients"), words, zero)
    launching.launch("fixed_point", f"fixed_point_{constants.bits}", count, arguments)
    return words, zero
