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
    TILES_OF_LIMBS,
    montgomery_options,
    product_options,
    tile_options,
)
from rnsdask.backend.protocol import Array, power_window

MOST_IN_REGISTERS = 32
"""Limbs of the longest moduli that a thread keeps in registers with two numbers and a quotient."""

MOST_OF_PRODUCT_IN_REGISTERS = 64
MOST_PRODUCTS_IN_REGISTERS = 2500
"""The same of operands of a product, and products of limbs whose code fits the cache of instructions."""

_BLOCK = 64
_RESIDENT = 256
_RESIDENT_IN_REGISTERS = 512
_CACHE_BYTES = 3 * 2**17
"""A multiprocessor's share of the cache, where its threads read long numbers again and again."""


def _operand(x: Array) -> tuple[Any, ...]:
    return x, row_stride(x), int(x.shape[1] != 1), len(x)


def _threads(resident: int, count: int) -> int:
    """Threads for numbers, of which so many run on a multiprocessor."""
    return min(launching.processors(cupy.cuda.runtime.getDevice()) * resident, max(1, count))


def _threads_by_tiles(number_bytes: int, count: int) -> int:
    """The same for numbers that take so much of the cache."""
    return _threads(max(_BLOCK, min(_RESIDENT, _CACHE_BYTES // number_bytes // _BLOCK * _BLOCK)), count)


def _tile(limbs: int) -> int:
    """Limbs of a tile: the greater one, for which less is read, unless it makes numbers much longer."""
    small, great = TILES_OF_LIMBS
    return great if _multiple(limbs, great) <= 1.1 * _multiple(limbs, small) else small


def _multiple(limbs: int, tile: int) -> int:
    return -(-limbs // tile) * tile


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
    longest = max(len(x), len(y))
    products = sum(min(len(y), max(0, columns - i)) for i in range(len(x)))
    if longest <= MOST_OF_PRODUCT_IN_REGISTERS and products <= MOST_PRODUCTS_IN_REGISTERS:
        name, threads = "multiply_in_registers", count
        options = product_options(len(x), len(y), columns, is_plain)
    else:
        name, threads = "multiply_by_tiles", _threads_by_tiles(4 * (len(x) + len(y)), count)
        options = (*product_options(1, 1, 1, is_plain), *tile_options(_tile(longest)))
    launching.launch("positional_multiply", name, threads, (task,), block=_BLOCK, defines=options)


def positional_divmod(x: Array, y: Array, signed: bool) -> tuple[Array, Array]:
    count, width = x.shape[1], max(len(x) + signed, len(y))
    quotients, remainders = (cupy.empty((width, count), dtype=cupy.uint32) for _ in range(2))
    size = (np.int64(count), np.int64(width), np.int32(signed))
    launching.launch(
        "positional_divide",
        "floor_divide_positional",
        count,
        (_place(x), _place(y), *size, quotients, remainders),
        block=_BLOCK,
    )
    return quotients, remainders


def _place(x: Array) -> Parameter:
    data, stride, step, limbs = _operand(x)
    return Parameter(LIMB_OPERAND, data=data, stride=stride, step=step, limbs=limbs)


def _workspace(numbers: int, limbs: int, count: int) -> tuple[int, Array]:
    """Threads, of whole blocks, and room for so many numbers of each."""
    threads = -(-_threads(_RESIDENT, count) // _BLOCK) * _BLOCK
    return threads, cupy.empty((numbers * limbs, threads), dtype=cupy.uint32)


def positional_gcd(x: Array, y: Array, signed: bool, out: Array) -> None:
    limbs, count = out.shape
    threads, workspace = _workspace(2, limbs + 1, count)
    size = (np.int64(count), np.int64(limbs), np.int32(signed))
    arguments = (_place(x), _place(y), *size, workspace, out)
    launching.launch("positional_gcd", "gcd_positional", threads, arguments, block=_BLOCK)


def positional_isqrt(x: Array, out: Array) -> None:
    limbs, count = out.shape
    threads, workspace = _workspace(2, limbs, count)
    arguments = (_place(x), np.int64(count), workspace, out)
    launching.launch("positional_divide", "square_roots_positional", threads, arguments, block=_BLOCK)


def positional_inverse(x: Array, moduli: Array, out: Array) -> int | None:
    limbs, count = out.shape
    threads, workspace = _workspace(4, limbs + 1, count)
    first = cupy.full(1, count, dtype=np.int64)
    arguments = (_place(x), _place(moduli), np.int64(count), workspace, out, first)
    launching.launch("positional_gcd", "invert_positional", threads, arguments, block=_BLOCK)
    index = int(first[0])
    return None if index == count else index


def positional_mod_add(x: Array, y: Array, moduli: Array, subtract: bool, out: Array) -> bool:
    operands = {"x": x, "y": y, "modulus": moduli, "square": moduli}
    places = {name: _operand(cupy.asarray(array)) for name, array in operands.items()}
    task = Parameter(MODULAR_TASK, out=out, count=out.shape[1], **places)
    unreduced = cupy.zeros(1, dtype=cupy.uint32)
    launching.launch("positional_modular", "add_modular", out.shape[1], (task, np.int32(subtract), unreduced))
    return not int(unreduced[0])


def _padded(limbs: int) -> int:
    return limbs if limbs <= MOST_IN_REGISTERS else _multiple(limbs, _tile(limbs))


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
    if not in_registers:
        threads = _threads_by_tiles(16 * padded, count)
    elif numbers:
        threads = _threads(_RESIDENT_IN_REGISTERS, count)
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
    module, place = "positional_montgomery", "in_registers"
    options = montgomery_options(limbs)
    if not in_registers:
        module, place = "positional_montgomery_tiles", "by_tiles"
        options = tile_options(_tile(limbs))
    launching.launch(module, f"montgomery_{name}_{place}", threads, (task,), block=_BLOCK, defines=options)
    if result is not out:
        out[...] = result[:limbs]
