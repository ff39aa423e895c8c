"""Positional numbers, rows of limbs: sums, order, bits, products, division, modular arithmetic."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.cpu.positional_choice import (
    GMP,
    MOST_PRODUCT_LIMBS,
    best_method,
    gmp,
    method_for,
)
from rnsdask.backend.protocol import LIMB_COUNTS, Array, power_window


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
