"""Sums, products and powers modulo long numbers."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter
from rnsdask.backend.cuda.positional_lanes import (
    LIMB_BITS,
    MOST_ROWS,
    operand,
    resident_threads,
    shares,
)
from rnsdask.backend.cuda.results import results
from rnsdask.backend.cuda_layout import (
    LIMB_BLOCK,
    MODULAR_TASK,
    MOST_POWER_TABLES,
    MOST_POWER_WINDOW,
    lane_options,
    limb_options,
)
from rnsdask.backend.protocol import Array, power_window

_MOST_BY_ONE_LANE = 32
"""Limbs of the longest moduli that a thread keeps in registers with two numbers and a quotient."""

_ROWS_OF_POWERS = 12
"""Rows of powers without a loop: squares' code is beside that of products, and both fit the caches then."""

_RESIDENT_LIMBS = 2**13
_SHORT = 8
"""Limbs of one factor of powers that run on a multiprocessor at once, of numbers of at least so many."""

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


def _shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, and lanes of a number."""
    return (limbs, 1) if limbs <= _MOST_BY_ONE_LANE else shares(limbs)


def _montgomery_options(share: int, lanes: int, most_rows: int = MOST_ROWS) -> tuple[str, ...]:
    rows = 0 if lanes == 1 else share if share <= MOST_ROWS else share // 2
    return lane_options(share, lanes, rows // 2 if rows > most_rows and rows % 4 == 0 else rows)


def montgomery_bits(limbs: int) -> int:
    share, lanes = _shares(limbs)
    return LIMB_BITS * share * lanes


def montgomery_multiply(x: Array, y: Array, moduli: Array, squares: Array, out: Array) -> None:
    share, lanes = _shares(len(moduli))
    launching.launch(
        "positional_montgomery",
        "montgomery_multiply",
        out.shape[1] * lanes,
        (_task(x, y, moduli, squares, out),),
        block=LIMB_BLOCK,
        strides=False,
        defines=_montgomery_options(share, lanes),
    )


def montgomery_power(
    x: Array, exponents: Array, bits: int, moduli: Array, squares: Array, out: Array
) -> None:
    share, lanes = _shares(len(moduli))
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
        defines=_montgomery_options(share, lanes, _ROWS_OF_POWERS),
    )
