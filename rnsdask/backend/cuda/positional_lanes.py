"""What kernels of positional numbers take: their operands, and lanes of a warp that share long numbers."""

from typing import Any

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import row_stride
from rnsdask.backend.cuda_layout import WARP
from rnsdask.backend.protocol import Array

LIMB_BITS = 32

LIMBS_OF_LANE = 32
"""Limbs that a lane takes of long numbers, and of factors that go by rows, if a warp has lanes enough."""

MOST_ROWS = 16
"""Rows of products that are added without a loop, at most."""


def operand(x: Array) -> tuple[Any, ...]:
    """The fields of an operand in kernels' structs."""
    return x, row_stride(x), int(x.shape[1] != 1), len(x)


def resident_threads(resident: int, count: int) -> int:
    """Threads for numbers, of which so many run on a multiprocessor."""
    return min(launching.processors(cupy.cuda.runtime.getDevice()) * resident, max(1, count))


def shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, an even number, and lanes of a number."""
    lanes = min(WARP, 1 << (-(-limbs // LIMBS_OF_LANE) - 1).bit_length())
    return multiple(-(-limbs // lanes), 2), lanes


def multiple(limbs: int, of: int) -> int:
    return -(-limbs // of) * of
