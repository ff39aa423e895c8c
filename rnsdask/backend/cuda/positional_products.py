"""Products of positional numbers, and sums, products and powers modulo them."""

import math
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, results
from rnsdask.backend.cuda.layout import (
    LIMB_BLOCK,
    MODULAR_TASK,
    MOST_POWER_TABLES,
    MOST_POWER_WINDOW,
    PRODUCT_TASK,
)
from rnsdask.backend.cuda.positional import LIMB_BITS, operand, resident_threads
from rnsdask.backend.cuda.variants import (
    LIMBS_OF_LANE,
    Defines,
    halved_shares,
    halves_options,
    limb_options,
    modular_shares,
    montgomery_options,
    product_options,
    row_options,
    shares,
)
from rnsdask.backend.protocol import Array, power_window

_MOST_LIMBS_IN_REGISTERS = 64
_MOST_PRODUCTS_IN_REGISTERS = 2500
"""Limbs of factors that one thread takes, and products of limbs whose code fits the cache of instructions."""

_MOST_PRODUCTS_BY_COLUMNS = 600
"""Tiles where nearly all products of limbs are taken; beyond that, rows are faster."""

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
    options: Defines


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
    _, lanes = shares(shortest)
    return _Way("positional_multiply", "multiply_by_rows", lanes, row_options(shortest, is_plain))


def _by_halves(longest: int) -> _Way:
    _, lanes = halved_shares(longest)
    return _Way("positional_karatsuba", "multiply_by_karatsuba", lanes, halves_options(longest))


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
        # One column more shows a product that is one bit too long; factors' lengths show any longer one.
        columns = min(max(len(x) + len(y), limbs) + 1, -(-(bits + (3 if signed else 1)) // LIMB_BITS))
    # Above is 0 where nothing is signed.
    return columns if signed or addend is not None else min(columns, max(len(x) + len(y), limbs))


def _goes_by_halves(shortest: int, longest: int, limbs: int) -> bool:
    """Whether three products of halves take clearly less than the whole by rows."""
    share, lanes = halved_shares(longest)
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


_RESIDENT_LIMBS = 2**13
_SHORT = 8
"""Limbs of one factor of all powers on a multiprocessor at once; shorter numbers count as `_SHORT` limbs."""

_RESIDENT_BY_LANES = 384
"""Threads of the same at most, where several lanes take a number: more would wait for registers."""

most_montgomery_limbs = 1024
positional_mod_multiply = None  # it is the remainder of the product


def by_integers(operation: str, limbs: int, count: int) -> bool:
    return operation == "mod_power" and limbs > most_montgomery_limbs


def _task(x: Array, y: Array, moduli: Array, squares: Array, out: Array, **more: Any) -> Parameter:
    operands = {"x": x, "y": y, "modulus": moduli, "square": squares}
    places = {name: operand(cupy.asarray(array)) for name, array in operands.items()}
    return Parameter(MODULAR_TASK, out=out, count=out.shape[1], **places, **more)


def positional_mod_add(x: Array, y: Array, moduli: Array, subtract: bool, out: Array) -> bool:
    unreduced = results()
    launching.launch(
        "positional_modular",
        "add_modular",
        out.shape[1],
        (_task(x, y, moduli, moduli, out), np.int32(subtract), unreduced.cleared(1)),
        block=LIMB_BLOCK,
        strides=False,
        defines=limb_options(len(out)),
    )
    return not unreduced.read(1)[0]


def montgomery_bits(limbs: int) -> int:
    share, lanes = modular_shares(limbs)
    return LIMB_BITS * share * lanes


def montgomery_multiply(x: Array, y: Array, moduli: Array, squares: Array, out: Array) -> None:
    _, lanes = modular_shares(len(moduli))
    launching.launch(
        "positional_montgomery",
        "montgomery_multiply",
        out.shape[1] * lanes,
        (_task(x, y, moduli, squares, out),),
        block=LIMB_BLOCK,
        strides=False,
        defines=montgomery_options(len(moduli), is_power=False),
    )


def montgomery_power(
    x: Array, exponents: Array, bits: int, moduli: Array, squares: Array, out: Array
) -> None:
    share, lanes = modular_shares(len(moduli))
    count, window = out.shape[1], min(MOST_POWER_WINDOW, power_window(bits))
    table = share << window  # words of a thread
    resident = _RESIDENT_LIMBS // max(_SHORT, share)
    if lanes > 1:
        resident = min(resident, _RESIDENT_BY_LANES)
    threads = min(resident_threads(resident, count * lanes), MOST_POWER_TABLES // (4 * table))
    blocks = -(-threads // LIMB_BLOCK)
    workspace = cupy.empty((table, blocks * LIMB_BLOCK), dtype=cupy.uint32)
    fields = {"workspace": workspace, "exponent_bits": bits, "window": window}
    launching.launch(
        "positional_montgomery",
        "montgomery_power",
        threads,
        (_task(x, exponents, moduli, squares, out, **fields),),
        block=LIMB_BLOCK,
        strides=False,
        defines=montgomery_options(len(moduli), is_power=True),
    )
