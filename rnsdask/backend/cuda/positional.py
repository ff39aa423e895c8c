"""Kernels of products of positional numbers, and of products and powers modulo odd ones."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda_layout import (
    LIMB_OPERAND,
    MODULAR_TASK,
    MOST_POWER_WINDOW,
    PRODUCT_TASK,
    TILES_OF_LIMBS,
    WARP,
    lane_options,
    limb_options,
    product_options,
    tile_options,
)
from rnsdask.backend.protocol import Array, power_window

MOST_BY_ONE_LANE = 32
"""Limbs of the longest moduli that a thread keeps in registers with two numbers and a quotient."""

_LIMBS_OF_LANE = 16
"""Limbs that a lane takes of longer ones, if a warp has lanes enough."""

MOST_BY_LANES = 512
"""Limbs of the longest operands of a product of which each lane of a warp has so many."""

_MOST_WORKSPACE = 3 * 2**26
"""Bytes of the tables of powers."""

MOST_OF_PRODUCT_IN_REGISTERS = 64
MOST_PRODUCTS_IN_REGISTERS = 2500
"""The same of operands of a product, and products of limbs whose code fits the cache of instructions."""

LIMB_BITS = 32
_BLOCK = 64
_RESIDENT = 256
_RESIDENT_LIMBS = 2**13
_SHORT = 8
"""Limbs of one factor of powers that run on a multiprocessor at once, of numbers of at least so many."""

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
    columns = limbs
    if overflowed is not None:
        # A product that fits or has one bit too many tells so; one that has more is known by lengths.
        columns = max(len(x) + len(y), others, limbs) + 1
        if addend is None:
            columns = min(columns, -(-(bits + (3 if signed else 1)) // LIMB_BITS))
    is_plain = not signed and addend is None
    if is_plain:
        columns = min(columns, max(len(x) + len(y), limbs))  # above is 0
    shortest, longest = sorted((len(x), len(y)))
    half = -(-limbs // 2)
    if (
        is_plain
        and overflowed is None
        and half < shortest <= longest <= limbs
        and (half <= MOST_OF_PRODUCT_IN_REGISTERS < limbs)
    ):
        _multiply_halves(x, y, bits, out)
        return
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
    products = sum(min(len(y), max(0, columns - i)) for i in range(len(x)))
    if longest <= MOST_OF_PRODUCT_IN_REGISTERS and products <= MOST_PRODUCTS_IN_REGISTERS:
        options = product_options(len(x), len(y), columns, not signed, not signed and addend is not None)
        launching.launch(
            "positional_multiply",
            "multiply_in_registers",
            count,
            (task,),
            block=_BLOCK,
            strides=False,
            defines=options,
        )
        return
    if is_plain and longest <= MOST_BY_LANES:
        share, lanes = _shares(longest)
        if len(x) < len(y):
            task.fields["x"], task.fields["y"] = task.fields["y"].copy(), task.fields["x"].copy()
        launching.launch(
            "positional_multiply",
            "multiply_by_lanes",
            count * lanes,
            (task,),
            block=_BLOCK,
            strides=False,
            defines=(*product_options(1, 1, 1, True), *lane_options(share, lanes)),
        )
        return
    options = (*product_options(1, 1, 1, is_plain), *tile_options(_tile(longest)))
    threads = _threads_by_tiles(4 * (len(x) + len(y)), count)
    launching.launch(
        "positional_multiply", "multiply_by_tiles", threads, (task,), block=_BLOCK, defines=options
    )


def _multiply_halves(x: Array, y: Array, bits: int, out: Array) -> None:
    """The low product by the exact one of the lower halves and low ones, of halves that fit registers."""
    half = -(-len(out) // 2)
    upper, upper_bits = out[half:], bits - LIMB_BITS * half
    positional_multiply(x[:half], y[:half], None, bits, False, out, None)
    positional_multiply(x[:half], y[half:], upper, upper_bits, False, upper, None)
    positional_multiply(x[half:], y[:half], upper, upper_bits, False, upper, None)


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


positional_mod_multiply = None  # it is the remainder of the product
overlap_add = None
most_product_limbs, transforms_long_products = 2047, True
most_montgomery_limbs, most_inverse_limbs = 1024, 2**32


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
    launching.launch(
        "positional_modular",
        "add_modular",
        out.shape[1],
        (task, np.int32(subtract), unreduced),
        block=_BLOCK,
        strides=False,
        defines=limb_options(len(out)),
    )
    return not int(unreduced[0])


def _shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, and lanes of a number."""
    if limbs <= MOST_BY_ONE_LANE:
        return limbs, 1
    lanes = min(WARP, 1 << (-(-limbs // _LIMBS_OF_LANE) - 1).bit_length())
    return -(-limbs // lanes), lanes


def montgomery_bits(limbs: int) -> int:
    share, lanes = _shares(limbs)
    return LIMB_BITS * share * lanes


def montgomery_multiply(x: Array, y: Array, moduli: Array, squares: Array, out: Array) -> None:
    operands = {"x": x, "y": y, "modulus": moduli, "square": squares}
    places = {name: _operand(cupy.asarray(array)) for name, array in operands.items()}
    share, lanes = _shares(len(moduli))
    task = Parameter(MODULAR_TASK, out=out, count=out.shape[1], **places)
    launching.launch(
        "positional_montgomery",
        "montgomery_multiply",
        out.shape[1] * lanes,
        (task,),
        block=_BLOCK,
        strides=False,
        defines=lane_options(share, lanes),
    )


def montgomery_power(
    x: Array, exponents: Array, bits: int, moduli: Array, squares: Array, out: Array
) -> None:
    operands = {"x": x, "y": exponents, "modulus": moduli, "square": squares}
    places = {name: _operand(cupy.asarray(array)) for name, array in operands.items()}
    share, lanes = _shares(len(moduli))
    count, window = out.shape[1], min(MOST_POWER_WINDOW, power_window(bits))
    table = share << window  # words of a thread
    resident = _RESIDENT_LIMBS // max(_SHORT, share)
    threads = min(_threads(resident, count * lanes), _MOST_WORKSPACE // (4 * table))
    blocks = -(-threads // _BLOCK)
    task = Parameter(
        MODULAR_TASK,
        out=out,
        workspace=cupy.empty((table, blocks * _BLOCK), dtype=cupy.uint32),
        count=count,
        exponent_bits=bits,
        window=window,
        **places,
    )
    launching.launch(
        "positional_montgomery",
        "montgomery_power",
        threads,
        (task,),
        block=_BLOCK,
        strides=False,
        defines=lane_options(share, lanes),
    )
