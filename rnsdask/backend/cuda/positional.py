"""Positional numbers, rows of limbs: sums, order, bits, division, roots and inverses."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda.layout import LIMB_BLOCK, LIMB_OPERAND, LIMB_TASK
from rnsdask.backend.cuda.variants import limb_options
from rnsdask.backend.protocol import LIMB_COUNTS, Array

LIMB_BITS = 32


def operand(x: Array) -> tuple[Any, ...]:
    """The fields of an operand in kernels' structs."""
    return x, row_stride(x), int(x.shape[1] != 1), len(x)


def resident_threads(resident: int, count: int) -> int:
    """Threads for numbers, given how many of them run on a multiprocessor at once."""
    return min(launching.processors(cupy.cuda.runtime.getDevice()) * resident, max(1, count))


_BLOCK = 64


def _launch(
    name: str,
    operands: Sequence[Array],
    are_signed: Sequence[bool],
    rows: int,
    count: int,
    arguments: tuple[Any, ...],
    **fields: Any,
) -> None:
    places: list[Any] = [
        (x, row_stride(x), int(x.shape[1] != 1), len(x)) for x in map(cupy.asarray, operands)
    ]
    places += [(0, 0, 0, 0)] * (2 - len(places))
    signs = [*map(int, are_signed), 0][:2]
    task = Parameter(LIMB_TASK, x=places, are_signed=signs, rows=rows, count=count, **fields)
    launching.launch(
        "limbs", name, count, (task, *arguments), block=_BLOCK, strides=False, defines=limb_options(rows)
    )


def positional_add(
    operands: Sequence[Array],
    are_signed: Sequence[bool],
    subtract: bool,
    top_bits: int,
    signed: bool,
    out: Array,
) -> Array:
    rows, count = out.shape
    flags = cupy.empty(count, dtype=cupy.uint8)
    fields = {"out": out, "top_bits": top_bits, "is_signed": int(signed)}
    _launch("positional_add", operands, are_signed, rows, count, (np.int32(subtract), flags), **fields)
    return flags


def positional_compare(x: Array, y: Array, signed: bool) -> Array:
    order = cupy.empty(max(x.shape[1], y.shape[1]), dtype=cupy.int8)
    signs = (signed, signed)
    _launch("positional_compare", (x, y), signs, len(x), len(order), (order,), is_signed=int(signed))
    return order


def positional_shift(x: Array, bits: Array, top_bits: int, signed: bool) -> Array:
    bits = cupy.asarray(bits)
    out = cupy.empty((len(x), max(x.shape[1], len(bits))), dtype=cupy.uint32)
    rows, count = out.shape
    fields = {"out": out, "top_bits": top_bits, "is_signed": int(signed)}
    arguments = (bits, np.int64(len(bits) != 1))
    _launch("positional_shift", (x,), (signed,), rows, count, arguments, **fields)
    return out


def positional_count(x: Array, signed: bool, what: str) -> Array:
    counts = cupy.empty(x.shape[1], dtype=cupy.int64)
    arguments = (np.int32(LIMB_COUNTS.index(what)), counts)
    _launch("positional_count", (x,), (signed,), len(x), len(counts), arguments)
    return counts


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
