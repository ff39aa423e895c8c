"""Constants of what tells where numbers are in their range: keys, fixed point and intervals."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS, factors_of_powers, last_residues
from rnsdask.core.coprime import product
from rnsdask.core.moduli import LIMB_BITS, ModuliSet

KEY_BITS = 64
"""Fraction bits of the evaluations that reductions compare and add (their keys)."""


@dataclass(frozen=True, eq=False)
class KeyConstants:
    """Constants of a reduction to evaluate ``2**64 * Y/M`` from above, for ``Y = 2**scale * X + offset``.

    For every Y, ``0 <= Y < M``, the evaluated key U satisfies ``U - slack <= 2**64 * Y/M <= U``, modulo
    2**64. Without a wrap-around this orders numbers; a key below ``ambiguous_below`` may have wrapped. The
    scale is 0 without a bound, and wherever a key may be ambiguous.
    """

    moduli: ModuliSet
    scale: int
    offset: int
    coefficients: NDArray[np.uint64]
    start: int
    slack: int
    ambiguous_below: int

    @property
    def signed(self) -> bool:
        """Whether the numbers are those of the symmetric range."""
        return self.offset > 0

    def key_of(self, residues: list[int]) -> int:
        """Key of one number, as kernels evaluate it: modulo 2**64."""
        terms = zip(residues, self.coefficients.tolist(), strict=True)
        key: int = (self.start + sum([x * c for x, c in terms])) % 2**KEY_BITS
        return key


def coefficient_slack(moduli: ModuliSet, bits: int, scale: int = 0) -> int:
    """Upper bound of what rounding the coefficients down takes from the sum of x_i c_i.

    Each coefficient loses ``frac(2**bits * v_i / m_i)`` with ``v_i = |w_i 2**scale|``, at most m_i - 1 times.
    The sum is rounded up, term by term at 64 bits behind the point and then to an integer.
    """
    error = 0
    for m, w in zip(moduli, moduli.partial_inverses, strict=True):
        remainder = (w * pow(2, scale + bits, m)) % m
        error += -(-((m - 1) * remainder << 64) // m)
    return -(-error >> 64)


def key_coefficients(moduli: ModuliSet, bits: int, scale: int = 0) -> list[int]:
    """``c_i = floor(2**bits * |w_i 2**scale|_{m_i} / m_i)`` for each modulus."""
    pairs = zip(moduli, moduli.partial_inverses, strict=True)
    return [((w * pow(2, scale, m) % m) << bits) // m for m, w in pairs]


@lru_cache(CACHED_SETS)
def key_constants(moduli: ModuliSet, signed: bool = False, bound: int | None = None) -> KeyConstants:
    """Constants for the keys of numbers in `moduli`'s range, with as few moduli as `bound` allows.

    If every ``|X| <= bound``, a prefix of the set is enough, and no key is ambiguous if it leaves room above
    the bound. The greatest scale by which no key wraps spreads the keys over that room. In the symmetric
    range, keys are of ``2**scale * X + M//2``, which is never negative.
    """
    for count in sufficient_prefixes(moduli, signed, bound):
        constants = _key_constants_of(moduli.prefix(count), signed, bound)
        if not constants.ambiguous_below:
            return constants
    return constants


def sufficient_prefixes(moduli: ModuliSet, signed: bool, bound: int | None) -> range:
    """Lengths of the prefixes that can hold every value, shortest first."""
    if bound is None:
        return range(len(moduli), len(moduli) + 1)
    needed = 2 * bound + 1 if signed else bound + 1
    # No product of fewer moduli, each at most 2**32, is as great.
    count = min(max(1, (needed.bit_length() - 1) // LIMB_BITS), len(moduli))
    total = product(moduli.moduli[:count])
    while total < needed and count < len(moduli):
        total *= moduli[count]
        count += 1
    # One modulus more always gives the room above the bound that avoids ambiguity.
    return range(count, len(moduli) + 1)


@lru_cache(CACHED_SETS)  # asked for each block; the same set also spares other caches to compare sets
def sufficient_prefix(moduli: ModuliSet, signed: bool, bound: int | None) -> ModuliSet:
    """The fewest first moduli whose residues determine every X with ``|X| <= bound``; all without a bound."""
    return moduli.prefix(sufficient_prefixes(moduli, signed, bound)[0])


def _key_constants_of(moduli: ModuliSet, signed: bool, bound: int | None) -> KeyConstants:
    product = moduli.product
    offset = product // 2 if signed else 0
    room = product - 1 - offset
    highest = room if bound is None else min(bound, room)
    # With 2**scale * highest <= room no Y reaches M, nor is one negative: room <= offset if signed.
    scale = (room // highest).bit_length() - 1 if highest else 0
    constants = _scaled_key_constants(moduli, scale, offset, highest)
    if scale and constants.ambiguous_below:
        # Y/M is now at most 3/4, and slack/2**64 below 1/16: nothing wraps.
        constants = _scaled_key_constants(moduli, scale - 1, offset, highest)
    return constants


def _scaled_key_constants(moduli: ModuliSet, scale: int, offset: int, highest: int) -> KeyConstants:
    """Constants for keys of ``2**scale * X + offset`` with X at most `highest`."""
    product = moduli.product
    slack = coefficient_slack(moduli, KEY_BITS, scale)
    start = slack
    if offset:
        # The key of the offset itself, rounded up, is one more source of error.
        start += -(-(offset << KEY_BITS) // product)
        slack += 1
    # While 2**64 Y/M + slack stays below 2**64, nothing wraps.
    reached = (highest << scale) + offset
    wraps = (reached << KEY_BITS) + slack * product >= product << KEY_BITS
    return KeyConstants(
        moduli,
        scale,
        offset,
        np.array(key_coefficients(moduli, KEY_BITS, scale), dtype=np.uint64),
        start % 2**KEY_BITS,
        slack,
        slack if wraps else 0,
    )


FIXED_POINT_BITS = (64, 96, 128)
_FIXED_POINT_ROOM = 24


@dataclass(frozen=True, eq=False)
class FixedPointConstants:
    """Coefficients for an evaluation of ``2**scale * X/M`` with `bits` fraction bits, as 32-bit words."""

    moduli: ModuliSet
    bits: int
    scale: int
    width: int
    coefficients: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def fixed_point_constants(moduli: ModuliSet, bits: int | None = None, scale: int = 0) -> FixedPointConstants:
    """Constants of the fixed-point evaluation by 64, 96 or 128 bits; by default the fewest with 24 good."""
    if bits is not None and bits not in FIXED_POINT_BITS:
        raise ValueError(f"fraction bits must be one of {FIXED_POINT_BITS}, got {bits}")
    if scale < 0:
        raise ValueError(f"scale must not be negative, got {scale}")
    for candidate in FIXED_POINT_BITS if bits is None else (bits,):
        coefficients = key_coefficients(moduli, candidate, scale)
        width = coefficient_slack(moduli, candidate, scale)
        if width << _FIXED_POINT_ROOM <= 1 << candidate:
            break
    words = [[c >> 32 * k & 0xFFFFFFFF for k in range(candidate // 32)] for c in coefficients]
    return FixedPointConstants(moduli, candidate, scale, width, np.array(words, dtype=np.uint32))


@dataclass(frozen=True, eq=False)
class LengthConstants:
    """Constants for bit lengths by a fixed-point `evaluation` of X/M with 64 or 128 bits.

    `table` has the fields of ``LengthTable`` in kernels/include/rns/fixed_point.cuh.
    """

    evaluation: FixedPointConstants
    table: tuple[int, int, int, int, bool]


@lru_cache(CACHED_SETS)
def length_constants(moduli: ModuliSet, signed: bool, bits: int) -> LengthConstants:
    """Constants for the lengths of the magnitudes of numbers, in the symmetric range if `signed`."""
    evaluation = fixed_point_constants(moduli, bits)
    high, low = divmod(evaluation.width << 128 - bits, 2**64)
    length = (moduli.product - 1).bit_length()  # M is above half of 2**length, and not above it
    size = (1 << length + 63) // moduli.product
    return LengthConstants(evaluation, (high, low, size, length, signed))


INTERVAL_POWERS = 64
"""Powers of two in a table of the floating-point evaluation (kPowers in the kernels)."""


@dataclass(frozen=True, eq=False)
class IntervalConstants:
    """Tables of the floating-point evaluation; a factor is a pair (value, Shoup quotient) of uint32.

    ``inverses[i]`` holds ``|w_i 2**(64 k)|`` for every k that a refinement may need, ``powers[i]`` holds
    ``|2**k|`` for k < 64, both modulo m_i and flattened; ``last[i]`` is m_i - 1; ``reciprocals[i]`` is 1/m_i
    rounded down and up.
    """

    moduli: ModuliSet
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    powers: NDArray[np.uint32]
    reciprocals: NDArray[np.float64]


@lru_cache(CACHED_SETS)
def interval_constants(moduli: ModuliSet) -> IntervalConstants:
    """Constants of the floating-point evaluation with all of `moduli`."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    inverses = np.array(list(moduli.partial_inverses), dtype=np.uint64)
    # A shift is below log2(M), which leaves a multiple of 2**shift * X below M.
    blocks = (moduli.bits - 1) // INTERVAL_POWERS + 1
    return IntervalConstants(
        moduli,
        last_residues(moduli),
        factors_of_powers(inverses, 2**INTERVAL_POWERS, blocks, sizes),
        factors_of_powers(np.uint64(1) % sizes, 2, INTERVAL_POWERS, sizes),
        np.array([directed(Fraction(1, m)) for m in moduli], dtype=np.float64),
    )


def directed(value: Fraction) -> tuple[float, float]:
    """Greatest double not above and least double not below a positive `value` of moderate size."""
    nearest = float(value)
    exact = Fraction(nearest)
    low = nearest if exact <= value else math.nextafter(nearest, 0.0)
    upp = nearest if exact >= value else math.nextafter(nearest, math.inf)
    return low, upp


MAX_EXPONENT = 2**29
"""Exponents of intervals are at most this in magnitude: those of every result then fit 32 bits."""


@dataclass(frozen=True, eq=False)
class ProductBounds:
    """Bounds of M: ``low * 2**exponent <= M <= upp * 2**exponent``, upp from 1/2 to less than 1."""

    moduli: ModuliSet
    low: float
    upp: float
    exponent: int


@lru_cache(CACHED_SETS)
def product_bounds(moduli: ModuliSet) -> ProductBounds:
    """Bounds of the dynamic range M; ValueError if the exponent of a result would not fit 32 bits."""
    if moduli.bits >= MAX_EXPONENT:
        raise ValueError(f"intervals are for M of fewer than {MAX_EXPONENT} bits, got {moduli.bits}")
    exponent = moduli.bits
    low, upp = directed(Fraction(moduli.product, 2**exponent))
    if upp == 1.0:
        low, upp, exponent = low / 2, upp / 2, exponent + 1
    return ProductBounds(moduli, low, upp, exponent)
