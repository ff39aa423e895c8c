"""Kernels of products of positional numbers, and of products and powers modulo odd ones."""

import math
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, row_stride
from rnsdask.backend.cuda.results import results
from rnsdask.backend.cuda_layout import (
    LIMB_BLOCK,
    LIMB_OPERAND,
    MODULAR_TASK,
    MOST_POWER_TABLES,
    MOST_POWER_WINDOW,
    PRODUCT_TASK,
    WARP,
    lane_options,
    limb_options,
    product_options,
)
from rnsdask.backend.protocol import Array, power_window

MOST_BY_ONE_LANE = 32
"""Limbs of the longest moduli that a thread keeps in registers with two numbers and a quotient."""

_LIMBS_OF_LANE = 32
"""Limbs that a lane takes of longer ones, and of factors that go by rows, if a warp has lanes enough."""

_ROWS = 16
"""Rows of products that are added without a loop, at most."""

_ROWS_OF_POWERS = 12
"""The same of powers: squares' code is beside that of products, and both together fit the caches then."""

MOST_OF_PRODUCT_IN_REGISTERS = 64
MOST_PRODUCTS_IN_REGISTERS = 2500
"""Limbs of factors that one thread takes, and products of limbs whose code fits the cache of instructions."""

_MOST_PRODUCTS_BY_COLUMNS = 600
"""The same where it takes nearly all products of limbs: more are quicker by rows."""

_LEAST_LANES_OF_HALVES = 2
"""Lanes that products of halves by A. Karatsuba's method pay from: of 32 limbs they do not."""

LIMB_BITS = 32
_RESIDENT = 256
_RESIDENT_LIMBS = 2**13
_SHORT = 8
"""Limbs of one factor of powers that run on a multiprocessor at once, of numbers of at least so many."""

_RESIDENT_BY_LANES = 384
"""Threads of the same at most, where several lanes take a number: more would wait for registers."""


def _operand(x: Array) -> tuple[Any, ...]:
    return x, row_stride(x), int(x.shape[1] != 1), len(x)


def _threads(resident: int, count: int) -> int:
    """Threads for numbers, of which so many run on a multiprocessor."""
    return min(launching.processors(cupy.cuda.runtime.getDevice()) * resident, max(1, count))


def positional_multiply(
    x: Array,
    y: Array,
    addend: Array | None,
    bits: int,
    signed: bool,
    out: Array,
    overflowed: Array | None,
) -> None:
    x, y = map(cupy.asarray, (x, y))
    limbs = len(out)
    half = -(-limbs // 2)
    shortest, longest = sorted((len(x), len(y)))
    is_low = addend is None and overflowed is None and half < shortest <= longest <= limbs
    if is_low and not signed and half <= MOST_OF_PRODUCT_IN_REGISTERS < limbs:
        _multiply_halves(x, y, bits, out)
        return
    columns = _columns(x, y, addend, bits, signed, limbs, overflowed is not None)
    is_plain = not signed and addend is None
    threads = count = out.shape[1]
    source = "positional_multiply"
    if _goes_by_columns(len(x), len(y), columns):
        name = "multiply_in_registers"
        options = product_options(len(x), len(y), columns, not signed, not signed and not is_plain)
    elif is_plain and overflowed is None and _goes_by_halves(shortest, longest, limbs):
        share, lanes = _shares_of_halves(longest)
        source, name, threads = "positional_karatsuba", "multiply_by_karatsuba", count * lanes
        options = (*product_options(1, 1, 1, True), *lane_options(share, lanes, share // 2))
    else:
        share, lanes = _shares_of_product(shortest)
        name, threads = "multiply_by_rows", count * lanes
        x, y = sorted((x, y), key=len)
        options = (*product_options(1, 1, 1, is_plain), *lane_options(share, lanes, _ROWS))
    more = {} if addend is None else {"addend": _operand(cupy.asarray(addend))}
    flags = {} if overflowed is None else {"overflowed": overflowed}
    task = Parameter(
        PRODUCT_TASK,
        x=_operand(x),
        y=_operand(y),
        out=out,
        out_limbs=limbs,
        count=count,
        columns=columns,
        unused_bits=LIMB_BITS * limbs - bits,
        is_signed=int(signed),
        **{"addend": (0, 0, 0, 0)} | more,
        **flags,
    )
    launching.launch(
        source,
        name,
        threads,
        (task,),
        block=LIMB_BLOCK,
        strides=False,
        defines=options,
    )


def _goes_by_columns(x_limbs: int, y_limbs: int, columns: int) -> bool:
    """Whether a product is one thread's, which saves those of limbs above its columns."""
    if max(x_limbs, y_limbs) > MOST_OF_PRODUCT_IN_REGISTERS:
        return False
    products = sum(min(y_limbs, max(0, columns - i)) for i in range(x_limbs))
    is_low = 4 * products <= 3 * x_limbs * y_limbs
    return products <= (MOST_PRODUCTS_IN_REGISTERS if is_low else _MOST_PRODUCTS_BY_COLUMNS)


def _columns(
    x: Array, y: Array, addend: Array | None, bits: int, signed: bool, limbs: int, checked: bool
) -> int:
    """Limbs of a product, or of a sum, that are computed of numbers."""
    if not checked:
        columns = limbs
    elif addend is not None:
        columns = max(len(x) + len(y), len(addend), limbs) + 1
    else:
        # A product that fits or has one bit too many tells so; one that has more is known by lengths.
        columns = min(max(len(x) + len(y), limbs) + 1, -(-(bits + (3 if signed else 1)) // LIMB_BITS))
    # Above is 0 where nothing is signed.
    return columns if signed or addend is not None else min(columns, max(len(x) + len(y), limbs))


def _shares_of_product(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, an even number, and lanes of a number of the shorter factor."""
    lanes = min(WARP, 1 << (-(-limbs // _LIMBS_OF_LANE) - 1).bit_length())
    return _multiple(-(-limbs // lanes), 2), lanes


def _shares_of_halves(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, of which half are pairs, and lanes of the longer factor."""
    share, lanes = _shares_of_product(limbs)
    return _multiple(share, 4), lanes


def _goes_by_halves(shortest: int, longest: int, limbs: int) -> bool:
    """Whether three products of halves take clearly less than the whole by rows."""
    share, lanes = _shares_of_halves(longest)
    held = share * lanes
    if lanes < _LEAST_LANES_OF_HALVES or share > _LIMBS_OF_LANE:
        return False
    if not shortest + longest <= limbs <= 2 * held:  # lower limbs alone, or zeros above
        return False
    by_rows = math.prod(_shares_of_product(shortest)) * longest
    return 6 * held * held <= 7 * by_rows


def _multiple(limbs: int, of: int) -> int:
    return -(-limbs // of) * of


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
        block=LIMB_BLOCK,
    )
    return quotients, remainders


def _place(x: Array) -> Parameter:
    data, stride, step, limbs = _operand(x)
    return Parameter(LIMB_OPERAND, data=data, stride=stride, step=step, limbs=limbs)


def _workspace(numbers: int, limbs: int, count: int) -> tuple[int, Array]:
    """Threads, of whole blocks, and room for so many numbers of each."""
    threads = -(-_threads(_RESIDENT, count) // LIMB_BLOCK) * LIMB_BLOCK
    return threads, cupy.empty((numbers * limbs, threads), dtype=cupy.uint32)


positional_mod_multiply = None  # it is the remainder of the product
overlap_add = None
most_product_limbs = 2047
most_montgomery_limbs = 1024


def by_integers(operation: str, limbs: int, count: int) -> bool:
    return operation == "mod_power" and limbs > most_montgomery_limbs


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


def positional_mod_add(x: Array, y: Array, moduli: Array, subtract: bool, out: Array) -> bool:
    operands = {"x": x, "y": y, "modulus": moduli, "square": moduli}
    places = {name: _operand(cupy.asarray(array)) for name, array in operands.items()}
    task = Parameter(MODULAR_TASK, out=out, count=out.shape[1], **places)
    unreduced = results()
    launching.launch(
        "positional_modular",
        "add_modular",
        out.shape[1],
        (task, np.int32(subtract), unreduced.cleared(1)),
        block=LIMB_BLOCK,
        strides=False,
        defines=limb_options(len(out)),
    )
    return not unreduced.read(1)[0]


def _shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, and lanes of a number."""
    if limbs <= MOST_BY_ONE_LANE:
        return limbs, 1
    lanes = min(WARP, 1 << (-(-limbs // _LIMBS_OF_LANE) - 1).bit_length())
    return _multiple(-(-limbs // lanes), 2), lanes


def _montgomery_options(share: int, lanes: int, most_rows: int = _ROWS) -> tuple[str, ...]:
    rows = 0 if lanes == 1 else share if share <= _ROWS else share // 2
    return lane_options(share, lanes, rows // 2 if rows > most_rows and rows % 4 == 0 else rows)


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
        block=LIMB_BLOCK,
        strides=False,
        defines=_montgomery_options(share, lanes),
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
    if lanes > 1:
        resident = min(resident, _RESIDENT_BY_LANES)
    threads = min(_threads(resident, count * lanes), MOST_POWER_TABLES // (4 * table))
    blocks = -(-threads // LIMB_BLOCK)
    task = Parameter(
        MODULAR_TASK,
        out=out,
        workspace=cupy.empty((table, blocks * LIMB_BLOCK), dtype=cupy.uint32),
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
        block=LIMB_BLOCK,
        strides=False,
        defines=_montgomery_options(share, lanes, _ROWS_OF_POWERS),
    )
