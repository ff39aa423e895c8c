"""Positional numbers, rows of limbs: sums, order, bits, products, division, modular arithmetic."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.divide import floor_divide_limbs
from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.cpu.transpose import transpose
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


def positional_methods() -> list[str]:
    """The ways to multiply positional numbers that this processor has, the quickest last."""
    methods: list[str] = _cpu.positional_methods()
    return methods


_POSITIONAL_METHOD = positional_methods()[-1]

# As measured (docs/limb-arithmetic.md).
most_product_limbs = {"portable": 256, "avx2": 4096, "ifma": 9216}[_POSITIONAL_METHOD]
transforms_long_products = _POSITIONAL_METHOD != "portable"
most_montgomery_limbs = 31
most_inverse_limbs = {"portable": 24, "avx2": 160, "ifma": 320}[_POSITIONAL_METHOD]


def positional_multiply(
    x: Array,
    y: Array,
    addend: Array | None,
    bits: int,
    signed: bool,
    out: Array,
    overflowed: Array | None,
    method: str = _POSITIONAL_METHOD,
    algorithm: str = "best",
) -> None:
    flags = None if overflowed is None else overflowed.view(np.uint8)
    _cpu.positional_multiply(x, y, addend, bits, signed, out, flags, method, algorithm)


def _turned(matrix: Array) -> NDArray[np.uint32]:
    out = np.empty(matrix.shape[::-1], dtype=np.uint32)
    transpose(matrix, out)
    return out


def positional_divmod(
    x: Array, y: Array, signed: bool, method: str = _POSITIONAL_METHOD
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    if method == "portable":
        # Words of 64 bits are quicker where there are no vectors, though limbs are turned first.
        width = max(len(x) + signed, len(y))
        found = floor_divide_limbs(_turned(x), _turned(y), width, signed)
        return _turned(found[0]), _turned(found[1])
    count = max(x.shape[1], y.shape[1])
    quotients = np.empty((len(x) + signed, count), dtype=np.uint32)
    remainders = np.empty((len(y), count), dtype=np.uint32)
    _cpu.positional_divmod(x, y, signed, quotients, remainders, method)
    return quotients, remainders


# These are left to integers.
positional_gcd = positional_isqrt = None


def positional_inverse(x: Array, moduli: Array, out: Array, method: str = _POSITIONAL_METHOD) -> int | None:
    index: int = _cpu.positional_inverse(x, moduli, out, method)
    return None if index < 0 else index


def positional_mod_add(
    x: Array, y: Array, moduli: Array, subtract: bool, out: Array, method: str = _POSITIONAL_METHOD
) -> bool:
    are_reduced: bool = _cpu.positional_mod_add(x, y, moduli, subtract, out, method)
    return are_reduced


def positional_mod_multiply(
    x: Array, y: Array, moduli: Array, out: Array, method: str = _POSITIONAL_METHOD
) -> None:
    _cpu.positional_mod_multiply(x, y, moduli, out, method)


def montgomery_bits(limbs: int, method: str = _POSITIONAL_METHOD) -> int:
    bits: int = _cpu.montgomery_bits(limbs, method)
    return bits


def montgomery_multiply(
    x: Array, y: Array, moduli: Array, squares: Array, out: Array, method: str = _POSITIONAL_METHOD
) -> None:
    _cpu.montgomery_multiply(x, y, moduli, squares, out, method)


def montgomery_power(
    x: Array,
    exponents: Array,
    bits: int,
    moduli: Array,
    squares: Array,
    out: Array,
    method: str = _POSITIONAL_METHOD,
) -> None:
    _cpu.montgomery_power(x, exponents, bits, moduli, squares, power_window(bits), out, method)
