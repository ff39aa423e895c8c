"""Products of positional numbers: by columns in one thread's registers, by rows and by halves of lanes."""

import math
from dataclasses import dataclass

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter
from rnsdask.backend.cuda.positional_lanes import (
    LIMB_BITS,
    LIMBS_OF_LANE,
    MOST_ROWS,
    multiple,
    operand,
    shares,
)
from rnsdask.backend.cuda_layout import LIMB_BLOCK, PRODUCT_TASK, lane_options, product_options
from rnsdask.backend.protocol import Array

_MOST_LIMBS_IN_REGISTERS = 64
_MOST_PRODUCTS_IN_REGISTERS = 2500
"""Limbs of factors that one thread takes, and products of limbs whose code fits the cache of instructions."""

_MOST_PRODUCTS_BY_COLUMNS = 600
"""The same where it takes nearly all products of limbs: more are quicker by rows."""

_LEAST_LANES_OF_HALVES = 2
"""Lanes that products of halves by A. Karatsuba's method pay from: of 32 limbs they do not."""

most_product_limbs = 2047
overlap_add = None


@dataclass(frozen=True)
class _Way:
    """A kernel, the lanes of a number, and what it is compiled for."""

    source: str
    name: str
    lanes: int
    options: tuple[str, ...]


def positional_multiply(
    x: Array,
    y: Array,
    addend: Array | None,
    bits: int,
    signed: bool,
    out: Array,
    overflowed: Array | None,
) -> None:
    x, y = sorted(map(cupy.asarray, (x, y)), key=len)
    limbs = len(out)
    is_plain = not signed and addend is None
    if is_plain and overflowed is None and _is_low_of_halves(len(x), len(y), limbs):
        _multiply_halves(x, y, bits, out)
        return
    columns = _columns(x, y, addend, bits, signed, limbs, overflowed is not None)
    if _goes_by_columns(len(x), len(y), columns):
        options = product_options(len(x), len(y), columns, not signed, not signed and not is_plain)
        way = _Way("positional_multiply", "multiply_in_registers", 1, options)
    elif is_plain and overflowed is None and _goes_by_halves(len(x), len(y), limbs):
        way = _by_halves(len(y))
    else:
        way = _by_rows(len(x), is_plain)
    task = Parameter(
        PRODUCT_TASK,
        x=operand(x),
        y=operand(y),
        addend=(0, 0, 0, 0) if addend is None else operand(cupy.asarray(addend)),
        out=out,
        out_limbs=limbs,
        count=out.shape[1],
        columns=columns,
        unused_bits=LIMB_BITS * limbs - bits,
        is_signed=int(signed),
        overflowed=0 if overflowed is None else overflowed,
    )
    launching.launch(
        way.source,
        way.name,
        out.shape[1] * way.lanes,
        (task,),
        block=LIMB_BLOCK,
        strides=False,
        defines=way.options,
    )


def _by_rows(shortest: int, is_plain: bool) -> _Way:
    share, lanes = shares(shortest)
    options = (*product_options(1, 1, 1, is_plain), *lane_options(share, lanes, MOST_ROWS))
    return _Way("positional_multiply", "multiply_by_rows", lanes, options)


def _by_halves(longest: int) -> _Way:
    share, lanes = _shares_of_halves(longest)
    options = (*product_options(1, 1, 1, True), *lane_options(share, lanes, share // 2))
    return _Way("positional_karatsuba", "multiply_by_karatsuba", lanes, options)


def _goes_by_columns(x_limbs: int, y_limbs: int, columns: int) -> bool:
    """Whether a product is one thread's, which saves those of limbs above its columns."""
    if max(x_limbs, y_limbs) > _MOST_LIMBS_IN_REGISTERS:
        return False
    products = sum(min(y_limbs, max(0, columns - i)) for i in range(x_limbs))
    is_low = 4 * products <= 3 * x_limbs * y_limbs
    return products <= (_MOST_PRODUCTS_IN_REGISTERS if is_low else _MOST_PRODUCTS_BY_COLUMNS)


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


def _shares_of_halves(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, of which half are pairs, and lanes of the longer factor."""
    share, lanes = shares(limbs)
    return multiple(share, 4), lanes


def _goes_by_halves(shortest: int, longest: int, limbs: int) -> bool:
    """Whether three products of halves take clearly less than the whole by rows."""
    share, lanes = _shares_of_halves(longest)
    held = share * lanes
    if lanes < _LEAST_LANES_OF_HALVES or share > LIMBS_OF_LANE:
        return False
    if not shortest + longest <= limbs <= 2 * held:  # lower limbs alone, or zeros above
        return False
    by_rows = math.prod(shares(shortest)) * longest
    return 6 * held * held <= 7 * by_rows


def _is_low_of_halves(shortest: int, longest: int, limbs: int) -> bool:
    """Whether the lower limbs alone are taken, of factors whose halves fit one thread's registers."""
    half = -(-limbs // 2)
    return half < shortest <= longest <= limbs and half <= _MOST_LIMBS_IN_REGISTERS < limbs


def _multiply_halves(x: Array, y: Array, bits: int, out: Array) -> None:
    """The low product by the exact one of the lower halves and low ones, of halves that fit registers."""
    half = -(-len(out) // 2)
    upper, upper_bits = out[half:], bits - LIMB_BITS * half
    positional_multiply(x[:half], y[:half], None, bits, False, out, None)
    positional_multiply(x[:half], y[half:], upper, upper_bits, False, upper, None)
    positional_multiply(x[half:], y[:half], upper, upper_bits, False, upper, None)
