"""Quotients, roots, greatest common divisors and inverses of positional numbers."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter
from rnsdask.backend.cuda.positional_lanes import operand, resident_threads
from rnsdask.backend.cuda_layout import LIMB_BLOCK, LIMB_OPERAND
from rnsdask.backend.protocol import Array

_RESIDENT = 256
"""Threads that run on a multiprocessor at once."""


def positional_divmod(x: Array, y: Array, signed: bool) -> tuple[Array, Array]:
    count, width = x.shape[1], max(len(x) + signed, len(y))
    quotients, remainders = (cupy.empty((width, count), dtype=cupy.uint32) for _ in range(2))
    size = (np.int64(count), np.int64(width), np.int32(signed))
    launching.launch(
        "positional_divide",
        "floor_divide_positional",
        count,
        (_place(x), _place(y), *size, quotients, remainders),
        block=LIMB_BLOCK,
    )
    return quotients, remainders


def _place(x: Array) -> Parameter:
    data, stride, step, limbs = operand(x)
    return Parameter(LIMB_OPERAND, data=data, stride=stride, step=step, limbs=limbs)


def _workspace(numbers: int, limbs: int, count: int) -> tuple[int, Array]:
    """Threads, of whole blocks, and room for so many numbers of each."""
    threads = -(-resident_threads(_RESIDENT, count) // LIMB_BLOCK) * LIMB_BLOCK
    return threads, cupy.empty((numbers * limbs, threads), dtype=cupy.uint32)


def positional_gcd(x: Array, y: Array, signed: bool, out: Array) -> None:
    limbs, count = out.shape
    threads, workspace = _workspace(2, limbs + 1, count)
    size = (np.int64(count), np.int64(limbs), np.int32(signed))
    arguments = (_place(x), _place(y), *size, workspace, out)
    launching.launch("positional_gcd", "gcd_positional", threads, arguments, block=LIMB_BLOCK)


def positional_isqrt(x: Array, out: Array) -> None:
    limbs, count = out.shape
    threads, workspace = _workspace(2, limbs, count)
    arguments = (_place(x), np.int64(count), workspace, out)
    launching.launch("positional_divide", "square_roots_positional", threads, arguments, block=LIMB_BLOCK)


def positional_inverse(x: Array, moduli: Array, out: Array) -> int | None:
    limbs, count = out.shape
    threads, workspace = _workspace(4, limbs + 1, count)
    first = cupy.full(1, count, dtype=np.int64)
    arguments = (_place(x), _place(moduli), np.int64(count), workspace, out, first)
    launching.launch("positional_gcd", "invert_positional", threads, arguments, block=LIMB_BLOCK)
    index = int(first[0])
    return None if index == count else index
