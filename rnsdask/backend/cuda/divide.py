"""Kernels of the division of numbers of limbs."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.protocol import Array


def floor_divide_limbs(limbs: Array, divisors: Array, width: int, signed: bool) -> tuple[Array, Array]:
    quotients, remainders = (cupy.empty((len(limbs), width), dtype=cupy.uint32) for _ in range(2))
    stride = np.int64(divisors.shape[1] if len(divisors) > 1 else 0)
    numbers = (limbs, np.int64(len(limbs)), np.int32(limbs.shape[1]))
    others = (divisors, stride, np.int32(divisors.shape[1]))
    results = (np.int32(signed), np.int32(width), quotients, remainders)
    launching.launch("divide", "floor_divide_limbs", len(limbs), (*numbers, *others, *results))
    return quotients, remainders


# Remainders by long integers, and division by arrays, are left to the division of limbs.
remainder_limbs = remainders = divide_residues = None
