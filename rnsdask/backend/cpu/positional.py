"""Positional numbers, rows of limbs: sums, order, bits, products, division, modular arithmetic.

Loops of the processor's vectors take some numbers at once. GMP takes one after another, in less time if they
are long or few, as measured (docs/limb-arithmetic.md).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import gmpy2.gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import LIMB_COUNTS, Array, power_window

GMP = "gmp"


class _Loops(NamedTuple):
    """From how many limbs to how many loops are quicker, and how many times if all lanes have a number."""

    least: int
    most: float
    gain: float


_LANES = {"avx2": 4, "ifma": 8}

_QUICKER = {
    "avx2": {
        "multiply": _Loops(1, 768, 1.3),
        "multiply_low": _Loops(1, 1536, 1.5),
        "divmod": _Loops(16, 256, 1.2),
        "divmod_short": _Loops(1, 16, 1.3),
        "mod_multiply": _Loops(1, 384, 1.3),
        "mod_power": _Loops(1, 512, 1.5),
        "mod_inverse": _Loops(1, 112, 1.4),
    },
    "ifma": {
        "multiply": _Loops(1, math.inf, 2.5),
        "multiply_low": _Loops(1, math.inf, 3.0),
        "divmod": _Loops(1, 2048, 1.5),
        "divmod_short": _Loops(1, 128, 1.3),
        "mod_multiply": _Loops(1, 3072, 2.0),
        "mod_power": _Loops(1, 1024, 2.4),
        "mod_inverse": _Loops(1, 256, 1.5),
    },
}

MOST_PRODUCT_LIMBS = {GMP: 2**32, "avx2": 4095, "ifma": 9216}
"""Most limbs of the shorter operand for which a product is faster than by transforms."""


def positional_methods() -> list[str]:
    """The ways to multiply positional numbers that this processor has: "gmp", and levels, the best last."""
    return [GMP, *_cpu.positional_levels()]


best_method = positional_methods()[-1]


def method_for(operation: str, limbs: int, count: int) -> str:
    """Quickest algorithm for numbers of that many limbs."""
    if best_method == GMP:
        return GMP
    loops, lanes = _QUICKER[best_method][operation], _LANES[best_method]
    if not loops.least <= limbs <= loops.most:
        return GMP
    return best_method if loops.gain * count > -(-count // lanes) * lanes else GMP


@lru_cache(1)
def gmp() -> _cpu.Gmp:
    """The functions of the GMP that gmpy2 has loaded."""
    return _cpu.Gmp(gmpy2.gmpy2.__file__)


def positional_add(
    operands: Sequence[Array],
    are_signed: Sequence[bool],
    subtract: bool,
    top_bits: int,
    signed: bool,
    out: Array,
) -> NDArray[np.uint8]:
    flags = np.empty(out.shape[1], dtype=np.uint8)
    (x, y), (x_signed, y_signed) = operands, are_signed
    _cpu.positional_add(x, x_signed, y, y_signed, subtract, top_bits, signed, out, flags)
    return flags


def positional_compare(x: Array, y: Array, signed: bool) -> NDArray[np.int8]:
    order = np.empty(max(x.shape[1], y.shape[1]), dtype=np.int8)
    _cpu.positional_compare(x, y, signed, order)
    return order


def positional_shift(x: Array, bits: Array, top_bits: int, signed: bool) -> NDArray[np.uint32]:
    out = np.empty((len(x), max(x.shape[1], len(bits))), dtype=np.uint32)
    _cpu.positional_shift(x, bits, top_bits, signed, out)
    return out


def positional_count(x: Array, signed: bool, what: str) -> NDArray[np.int64]:
    counts = np.empty(x.shape[1], dtype=np.int64)
    _cpu.positional_count(x, signed, LIMB_COUNTS.index(what), counts)
    return counts


def overlap_add(numbers: NDArray[np.uint32], step: int, out: NDArray[np.uint32]) -> None:
    """Add (N, L) limbs to those of one number: row k counts ``2**(32 step k)``; a last carry is dropped."""
    _cpu.overlap_add(numbers, step, out)


most_product_limbs = MOST_PRODUCT_LIMBS[best_method]
most_montgomery_limbs = 0 if best_method == GMP else 31


def by_integers(operation: str, limbs: int, count: int) -> bool:
    return method_for(operation, limbs, count) == GMP


def positional_multiply(
    x: Array,
    y: Array,
    addend: Array | None,
    bits: int,
    signed: bool,
    out: Array,
    overflowed: Array | None,
    method: str | None = None,
    algorithm: str = "best",
) -> None:
    flags = None if overflowed is None else overflowed.view(np.uint8)
    limbs = min(len(x), len(y))
    operation = "multiply_low" if len(out) <= limbs and flags is None else "multiply"
    method = method or method_for(operation, limbs, out.shape[1])
    if method == GMP:
        gmp().multiply(x, y, addend, bits, signed, out, flags)
    else:
        _cpu.positional_multiply(x, y, addend, bits, signed, out, flags, method, algorithm)


def positional_divmod(
    x: Array, y: Array, signed: bool, method: str | None = None
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    count = max(x.shape[1], y.shape[1])
    quotients = np.empty((len(x) + signed, count), dtype=np.uint32)
    remainders = np.empty((len(y), count), dtype=np.uint32)
    if method is None:
        method = method_for("divmod_short", max(len(x), len(y)), count)
        if method == GMP:
            method = method_for("divmod", min(len(x) - len(y), len(y)), count)
    if method == GMP:
        gmp().divmod(x, y, signed, quotients, remainders)
    else:
        _cpu.positional_divmod(x, y, signed, quotients, remainders, method)
    return quotients, remainders


def positional_gcd(x: Array, y: Array, signed: bool, out: Array) -> None:
    gmp().gcd(x, y, signed, out)


def positional_isqrt(x: Array, out: Array) -> None:
    gmp().isqrt(x, out)


def positional_inverse(x: Array, moduli: Array, out: Array, method: str | None = None) -> int | None:
    method = method or method_for("mod_inverse", len(moduli), out.shape[1])
    if method == GMP:
        index: int = gmp().inverse(x, moduli, out)
    else:
        index = _cpu.positional_inverse(x, moduli, out, method)
    return None if index < 0 else index


def positional_mod_add(
    x: Array, y: Array, moduli: Array, subtract: bool, out: Array, method: str = best_method
) -> bool:
    are_reduced: bool = _cpu.positional_mod_add(x, y, moduli, subtract, out, method)
    return are_reduced


def positional_mod_multiply(x: Array, y: Array, moduli: Array, out: Array, method: str | None = None) -> None:
    method = method or method_for("mod_multiply", len(moduli), out.shape[1])
    if method == GMP:
        gmp().mod_multiply(x, y, moduli, out)
    else:
        _cpu.positional_mod_multiply(x, y, moduli, out, method)


def positional_mod_power(x: Array, exponents: Array, moduli: Array, out: Array) -> None:
    """``x**exponent`` modulo each of any moduli, by GMP."""
    gmp().mod_power(x, exponents, moduli, out)


# Of processors that have loops.


def montgomery_bits(limbs: int, method: str = best_method) -> int:
    bits: int = _cpu.montgomery_bits(limbs, method)
    return bits


def montgomery_multiply(
    x: Array, y: Array, moduli: Array, squares: Array, out: Array, method: str = best_method
) -> None:
    _cpu.montgomery_multiply(x, y, moduli, squares, out, method)


def montgomery_power(
    x: Array,
    exponents: Array,
    bits: int,
    moduli: Array,
    squares: Array,
    out: Array,
    method: str = best_method,
) -> None:
    _cpu.montgomery_power(x, exponents, bits, moduli, squares, power_window(bits), out, method)
