"""Kernels of integers as limbs. Each number of limbs up to a limit has a compilation of its own."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda_layout import LIMB_TASK, limb_options
from rnsdask.backend.protocol import LIMB_COUNTS, Array

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
