"""Kernels of products of positional numbers, and of products and powers modulo odd ones."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda_layout import (
    BLOCK,
    LIMB_OPERAND,
    MODULAR_TASK,
    PRODUCT_TASK,
    TILE_OF_LIMBS,
    montgomery_options,
    product_options,
)
from rnsdask.backend.protocol import Array, power_window

MOST_IN_REGISTERS = 32
"""Limbs of the longest numbers that a thread keeps in registers."""

_BLOCK = 128
_THREADS_IN_REGISTERS = 512
_CACHE_BYTES = 2**18
"""Of a multiprocessor: about what its threads read again and again, when long numbers are cut into tiles."""


def _operand(x: Array) -> tuple[Any, ...]:
    return x, row_stride(x), int(x.shape[1] != 1), len(x)


def _threads(number_bytes: int, count: int) -> int:
    """Threads that fill multiprocessors, or their cache where each takes so much of it."""
    resident = max(_BLOCK, min(_THREADS_IN_REGISTERS, _CACHE_BYTES // number_bytes // _BLOCK * _BLOCK))
    device = cupy.cuda.runtime.getDevice()
    return min(launching.processors(device) * resident, max(1, count))


def positional_multiply(
    x: Array,
    y: Array,
    addend: Array | None,
    bits: int,
    signed: bool,
    out: Array,
    overflowed: Array | None,
) -> None:
    limbs, count = out.shape
    others = 0 if addend is None else len(addend)
    columns = limbs if overflowed is None else max(len(x) + len(y), others, limbs) + 1
    is_plain = not signed and addend is None
    if is_plain:
        columns = min(columns, max(len(x) + len(y), limbs))  # above is 0
    more = {} if addend is None else {"addend": _operand(cupy.asarray(addend))}
    flags = {} if overflowed is None else {"overflowed": overflowed}
    task = Parameter(
        PRODUCT_TASK,
        x=_operand(cupy.asarray(x)),
        y=_operand(cupy.asarray(y)),
        out=out,
        out_limbs=limbs,
        count=count,
        columns=columns,
        unused_bits=32 * limbs - bits,
        is_signed=int(signed),
        **{"addend": (0, 0, 0, 0)} | more,
        **flags,
    )
    if max(len(x), len(y)) <= MOST_IN_REGISTERS:
        options = product_options(len(x), len(y), columns, is_plain)
        launching.launch(
            "positional_multiply", "multiply_in_registers", count, (task,), block=_BLOCK, defines=options
        )
    else:
        threads = _threads(4 * (len(x) + len(y)), count)
        options = product_options(1, 1, 1, is_plain)
        launching.launch(
            "positional_multiply", "multiply_by_tiles", threads, (task,), block=_BLOCK, defines=options
        )


def positional_divmod(x: Array, y: Array, signed: bool) -> tuple[Array, Array]:
    count, width = x.shape[1], max(len(x) + signed, len(y))
    names = ("data", "stride", "step", "limbs")
    places = [Parameter(LIMB_OPERAND, **dict(zip(names, _operand(z), strict=True))) for z in (x, y)]
    quotients, remainders = (cupy.empty((width, count), dtype=cupy.uint32) for _ in range(2))
    size = (np.int64(count), np.int64(width), np.int32(signed))
    launching.launch(
        "positional_divide",
        "floor_divide_positional",
        count,
        (*places, *size, quotients, remainders),
        block=_BLOCK,
    )
    return quotients, remainders


def positional_mod_add(x: Array, y: Array, moduli: Array, subtract: bool, out: Array) -> bool:
    operands = {"x": x, "y": y, "modulus": moduli, "square": moduli}
    places = {name: _operand(cupy.asarray(array)) for name, array in operands.items()}
    task = Parameter(MODULAR_TASK, out=out, count=out.shape[1], **places)
    unreduced = cupy.zeros(1, dtype=cupy.uint32)
    launching.launch("positional_modular", "add_modular", out.shape[1], (task, np.int32(subtract), unreduced))
    return not int(unreduced[0])


def _padded(limbs: int) -> int:
    return limbs if limbs <= MOST_IN_REGISTERS else -(-limbs // TILE_OF_LIMBS) * TILE_OF_LIMBS


def montgomery_bits(limbs: int) -> int:
    return 32 * _padded(limbs)


def _lengthened(x: Array, limbs: int) -> Array:
    """Numbers with zeros above."""
    if len(x) == limbs:
        return cupy.asarray(x)
    longer = cupy.zeros((limbs, x.shape[1]), dtype=cupy.uint32)
    longer[: len(x)] = cupy.asarray(x)
    return longer


def montgomery_multiply(x: Array, y: Array, moduli: Array, squares: Array, out: Array) -> None:
    limbs = _padded(len(moduli))
    operands = {"x": x, "y": y, "modulus": moduli, "square": squares}
    places = {name: _operand(_lengthened(array, limbs)) for name, array in operands.items()}
    _launch("multiply", places, len(moduli), int(limbs > MOST_IN_REGISTERS), 0, out)


def montgomery_power(
    x: Array, exponents: Array, bits: int, moduli: Array, squares: Array, out: Array
) -> None:
    limbs, window = _padded(len(moduli)), power_window(bits)
    operands = {"x": x, "modulus": moduli, "square": squares}
    places = {name: _operand(_lengthened(array, limbs)) for name, array in operands.items()}
    places["y"] = _operand(cupy.asarray(exponents))
    _launch("power", places, len(moduli), 2**window + 3, bits, out)


def _launch(
    name: str, places: dict[str, tuple[Any, ...]], limbs: int, numbers: int, bits: int, out: Array
) -> None:
    """Products of padded operands, with room for so many numbers a thread."""
    padded, count = _padded(limbs), out.shape[1]
    in_registers = limbs <= MOST_IN_REGISTERS
    result = out if padded == limbs else cupy.empty((padded, count), dtype=cupy.uint32)
    threads = count
    if numbers > 1 or not in_registers:
        threads = _threads(1 if in_registers else 16 * padded, count)
    # Of whole blocks, as many as `launch` may start.
    most = launching.processors(cupy.cuda.runtime.getDevice()) * launching.BLOCKS_PER_PROCESSOR * BLOCK
    started = min(most, -(-threads // _BLOCK) * _BLOCK)
    task = Parameter(
        MODULAR_TASK,
        out=result,
        workspace=cupy.empty((numbers * padded, started), dtype=cupy.uint32),
        count=count,
        exponent_bits=bits,
        window=power_window(bits),
        **places,
    )
    if in_registers:
        launching.launch(
            "positional_montgomery",
            f"montgomery_{name}_in_registers",
            threads,
            (task,),
            block=_BLOCK,
            defines=montgomery_options(limbs),
        )
    else:
        launching.launch(
            "positional_montgomery_tiles", f"montgomery_{name}_by_tiles", threads, (task,), block=_BLOCK
        )
        if result is not out:
            out[...] = result[:limbs]
