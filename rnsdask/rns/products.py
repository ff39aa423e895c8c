"""Products of all numbers of a chunk or along axes, with detection of overflow.

A product without zeros that has more factors of magnitude 2 or more than M has bits is out of range. So a few
Python integers decide; zeros, ones and minus ones are only counted.

Factors of products along axes are words (n + 1, *shape): the residues of a magnitude modulo M, and a row of
flags, so that products can be combined before all factors are known: a factor of 0 makes any product 0. If
overflow is not checked, they are the numbers' residues (n, *shape).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.axes import reduced_shape
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.rns import arithmetic, exact
from rnsdask.rns.axis import fold_along
from rnsdask.rns.blocks import column_of, with_overflow
from rnsdask.rns.compare import absolute, choose, compare, differ, sign
from rnsdask.rns.system import RNS

# Flags of a product: the magnitude is M or more, before factors of 0; a factor is 0; it is negative.
BEYOND, ZERO, NEGATIVE = 1, 2, 4


def factors_of(residues: Array, system: RNS, mode: str) -> Array:
    """Factors of single numbers for a mode of overflow; with ``"wrap"`` their residues."""
    if mode == "wrap":
        return residues
    signs = sign(residues, system)
    return with_signs(absolute(residues, system, "wrap"), signs == 0, signs < 0)


def axis_factors(residues: Array, system: RNS, axes: tuple[int, ...], mode: str) -> Array:
    """Factors of the products of numbers along axes, which keep length 1."""
    return factors_along(factors_of(residues, system, mode), system.moduli, axes)


def with_signs(magnitudes: Array, zero: Array, negative: Array) -> Array:
    """Factors of single numbers from their magnitudes and signs."""
    flags = zero * np.uint32(ZERO) + negative * np.uint32(NEGATIVE)
    return np.concatenate([magnitudes, flags[None].astype(np.uint32)])


def joined_flags(a: Array, b: Array) -> Array:
    """Flags of the products of factors, except for the overflow of their magnitudes' product."""
    return (a[-1] | b[-1]) & np.uint32(BEYOND | ZERO) | (a[-1] ^ b[-1]) & np.uint32(NEGATIVE)


def multiply(a: Array, b: Array, moduli: ModuliSet) -> Array:
    """Factors of the products, element by element."""
    if len(a) == len(moduli):
        return arithmetic.apply("multiply", (a, b), RNS(moduli), "wrap")
    # Magnitudes are numbers of the unsigned range; M/2 is not in the signed one.
    product = arithmetic.apply("multiply", (a[:-1], b[:-1]), RNS(moduli), "flag")
    product[-1] |= joined_flags(a, b)
    return product


def factors_along(factors: Array, moduli: ModuliSet, axes: tuple[int, ...]) -> Array:
    """Multiply factors along axes of the numbers, which keep length 1; no factors give 1."""
    if factors.size == 0:
        shape = (len(factors), *reduced_shape(factors.shape[1:], axes))
        one = np.zeros((len(factors), *(1,) * (len(shape) - 1)), dtype=np.uint32)
        one[: len(moduli)] = column_of(1, moduli, len(shape) - 1)
        return np.broadcast_to(np.asarray(one, like=factors), shape)
    return fold_along(factors, axes, lambda a, b: multiply(a, b, moduli))


def finish(factors: Array, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Convert factors to numbers of the system."""
    if mode == "wrap":
        return factors
    magnitudes, flags = factors[:-1], factors[-1]
    negative = (flags & np.uint32(NEGATIVE)) != 0
    zero = column_of(0, system.moduli, magnitudes.ndim - 1)
    negated = arithmetic.apply("subtract", (zero, magnitudes), RNS(system.moduli), "wrap")
    result = choose(negative[None], negated, magnitudes)
    outside = _beyond_signed(magnitudes, negative, system) | ((flags & np.uint32(BEYOND)) != 0)
    outside &= (flags & np.uint32(ZERO)) == 0
    error = partial(overflow_of, factors, RNS(system.moduli), system, locate)
    return with_overflow(result, outside, mode, error)


def _beyond_signed(magnitudes: Array, negative: Array, system: RNS) -> Array:
    """Mask of the magnitudes below M that are out of range with their sign."""
    if not system.signed:
        return np.zeros_like(negative)
    unsigned, (lowest, highest) = RNS(system.moduli), system.value_range
    ndim = magnitudes.ndim - 1
    above, below = (
        compare(magnitudes, column_of(limit, system.moduli, ndim), unsigned) > 0
        for limit in (highest, -lowest)
    )
    return np.where(negative, below, above)


def overflow_of(factors: Array, unsigned: Any, system: Any, locate: Locate, index: int) -> Any:
    """Error of a product out of a system's range; magnitudes are in the system `unsigned`."""
    flags = int(factors[-1].reshape(-1)[index])
    negative = bool(flags & NEGATIVE)
    if flags & BEYOND:
        # In two's complement -2**k is one bit shorter than 2**k.
        length = (unsigned.value_range[1] + 1 - int(negative)).bit_length()
        return system.overflow_of_length(length, negative, locate(index), at_least=True)
    magnitude = unsigned.decode_at(factors[:-1], index)
    return system.overflow_error(-magnitude if negative else magnitude, locate(index))


@dataclass(frozen=True)
class Factors:
    """Product of some numbers, in the form that products of more numbers need.

    `wrapped` is the product modulo M, or None if not wanted. The other attributes ignore zeros, which
    `has_zero` records: `value` is None once its magnitude exceeds M, which further factors cannot undo; the
    magnitude has at least `bits` bits.
    """

    wrapped: int | None
    has_zero: bool = False
    value: int | None = 1
    bits: int = 1
    negative: bool = False


def factors_of_chunk(residues: Array, system: RNS, mode: str) -> Factors:
    """Factors that the numbers of a chunk (n, *shape) contribute to a product."""
    matrix, moduli, signed = as_matrix(residues), system.moduli, system.signed
    wrapped = None if mode == "raise" else _product_modulo(matrix, moduli)
    if mode == "wrap":
        return Factors(wrapped)
    (nonzero,) = _differ(matrix, 0, system).nonzero()
    has_zero = nonzero.size < matrix.shape[1]
    if has_zero:
        matrix = kernels_of(matrix).gather(matrix, nonzero)
    other = _differ(matrix, 1, system)
    minus_ones = 0
    if signed:
        is_other = _differ(matrix, -1, system)
        minus_ones = int(other.size - is_other.sum())
        other &= is_other
    (chosen,) = other.nonzero()
    others = kernels_of(matrix).gather(matrix, chosen)
    negative = minus_ones % 2 == 1
    if chosen.size > moduli.bits:
        # Only an error needs the sign.
        if signed and mode == "raise":
            negative ^= int((sign(others, system) < 0).sum()) % 2 == 1
        return Factors(wrapped, has_zero, None, int(chosen.size) + 1, negative)
    factors = Factors(wrapped, has_zero, -1 if negative else 1, 1, negative)
    for value in system.decode(others).tolist():
        factors = combine(factors, Factors(1, False, value, abs(value).bit_length(), value < 0), moduli)
    return factors


def _differ(matrix: Array, value: int, system: RNS) -> Array:
    # The moduli that a bound needs may not distinguish an arbitrary value from the numbers.
    return differ(matrix, column_of(value, system.moduli), system.with_bound(None))


def _product_modulo(matrix: Array, moduli: ModuliSet) -> int:
    """Product of all numbers modulo M, from 0 to M - 1: the first half times the second, again and again."""
    kernels, single = kernels_of(matrix), []
    while matrix.shape[1] > 1:
        if matrix.shape[1] % 2:
            single.append(matrix[:, -1].tolist())
        half = matrix.shape[1] // 2
        out = np.empty_like(matrix, shape=(len(moduli), half), order="C")
        kernels.apply("multiply", (matrix[:, :half], matrix[:, half : 2 * half]), moduli, out)
        matrix = out
    if matrix.shape[1]:
        single.append(matrix[:, 0].tolist())
    residues = [math.prod(row) % m for row, m in zip(zip(*single, strict=True), moduli, strict=False)]
    return exact.value_of(residues, moduli) if single else 1


def combine(a: Factors, b: Factors, moduli: ModuliSet) -> Factors:
    """Factors of the product of both."""
    wrapped = None
    if a.wrapped is not None and b.wrapped is not None:
        wrapped = a.wrapped * b.wrapped % moduli.product
    value = None
    bits = a.bits + b.bits - 1
    if a.value is not None and b.value is not None:
        value = a.value * b.value
        bits = value.bit_length()
        if abs(value) > moduli.product:
            value = None
    return Factors(wrapped, a.has_zero or b.has_zero, value, bits, a.negative ^ b.negative)


def result_of(factors: Factors, system: RNS, mode: str) -> Any:
    """The product as `mode` wants it: a number, with ``"flag"`` a pair of it and a bool."""
    lowest, product = system.value_range[0], system.moduli.product
    wrapped = None if factors.wrapped is None else (factors.wrapped - lowest) % product + lowest
    return decided(factors, wrapped, system, mode)


def decided(factors: Factors, wrapped: int | None, system: Any, mode: str) -> Any:
    """The product as `mode` wants it, of any system, from what wraps and from the factors."""
    if mode == "wrap":
        return wrapped
    (lowest, highest), value = system.value_range, 0 if factors.has_zero else factors.value
    is_outside = value is None or not lowest <= value <= highest
    if mode == "flag":
        return wrapped, is_outside
    if value is None:
        # In two's complement -2**k is one bit shorter than 2**k.
        length = factors.bits - int(factors.negative)
        raise system.overflow_of_length(length, factors.negative, 0, at_least=True)
    if is_outside:
        raise system.overflow_error(value, 0)
    return value
