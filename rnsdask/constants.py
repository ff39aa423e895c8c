"""Constants that the kernels read, computed once for a moduli set and kept for the process.

Each class holds NumPy arrays in the layout its kernels expect. Instances compare by identity, and the
functions that build them are cached, so the copies on a GPU can be cached by instance too
(:mod:`rnsdask.backend.cuda`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.moduli import LIMB_BITS, ModuliSet

# Sets in use at a time in one process; their tables are small next to one chunk of residues.
_CACHED_SETS = 64

KEY_BITS = 64
"""Fraction bits of the evaluations that reductions compare and add (their keys)."""


@dataclass(frozen=True, eq=False)
class KeyConstants:
    """What a reduction needs to evaluate ``2**64 * Y/M`` from above, for ``Y = X + offset``.

    For every Y the evaluated key U satisfies ``U - slack <= 2**64 * Y/M <= U``, modulo 2**64. Without
    a wrap-around this orders numbers; a key below ``ambiguous_below`` may have wrapped.
    """

    moduli: ModuliSet
    offset: int
    coefficients: NDArray[np.uint64]
    start: int
    slack: int
    ambiguous_below: int


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


@lru_cache(_CACHED_SETS)
def key_constants(moduli: ModuliSet, signed: bool = False, bound: int | None = None) -> KeyConstants:
    """Constants for the keys of numbers in `moduli`'s range, with as few moduli as `bound` allows.

    Parameters
    ----------
    moduli : ModuliSet
        The set the residues are in; the result is about its first ``len(result.moduli)`` moduli.
    signed : bool
        Symmetric range; keys are of ``X + M//2``, which is never negative.
    bound : int, optional
        Every ``|X| <= bound``. Then a prefix of the set is enough, and no key is ambiguous if
        it leaves room above the bound.
    """
    for count in _sufficient_prefixes(moduli, signed, bound):
        constants = _key_constants_of(moduli.prefix(count), signed, bound)
        if not constants.ambiguous_below:
            return constants
    return constants


def _sufficient_prefixes(moduli: ModuliSet, signed: bool, bound: int | None) -> range:
    """Lengths of the prefixes that can hold every value, shortest first."""
    if bound is None:
        return range(len(moduli), len(moduli) + 1)
    needed = 2 * bound + 1 if signed else bound + 1
    product, count = 1, 0
    while product < needed and count < len(moduli):
        product *= moduli[count]
        count += 1
    count = max(count, 1)
    # One modulus more always gives the room that avoids ambiguity, unless it is a very small one.
    return range(count, len(moduli) + 1)


def sufficient_prefix(moduli: ModuliSet, signed: bool, bound: int | None) -> ModuliSet:
    """The fewest first moduli whose residues determine every X with ``|X| <= bound``; all without a bound."""
    return moduli.prefix(_sufficient_prefixes(moduli, signed, bound)[0])


def _key_constants_of(moduli: ModuliSet, signed: bool, bound: int | None) -> KeyConstants:
    coefficients = key_coefficients(moduli, KEY_BITS)
    slack = coefficient_slack(moduli, KEY_BITS)
    product, start, offset = moduli.product, slack, 0
    if signed:
        offset = product // 2
        # The key of the offset itself, rounded up, is one more source of error.
        start += -(-(offset << KEY_BITS) // product)
        slack += 1
    # With |X| <= bound, 2**64 Y/M + slack stays below 2**64, so nothing wraps.
    highest = product - 1 if bound is None else min(bound + offset, product - 1)
    wraps = (highest << KEY_BITS) + slack * product >= product << KEY_BITS
    return KeyConstants(
        moduli,
        offset,
        np.array(coefficients, dtype=np.uint64),
        start % 2**KEY_BITS,
        slack,
        slack if wraps else 0,
    )


@dataclass(frozen=True, eq=False)
class MixedRadixConstants:
    """Factors of mixed-radix conversion, each a pair (value, Shoup quotient) of uint32.

    ``inverses[i (i-1)/2 + j]`` is ``|1/m_j|`` modulo m_i for j < i; ``ones[i]`` is 1 modulo m_i;
    ``last[i]`` is m_i - 1.
    """

    moduli: ModuliSet
    last: NDArray[np.uint32]
    ones: NDArray[np.uint32]
    inverses: NDArray[np.uint32]


def shoup_factors(values: list[int], moduli: list[int]) -> NDArray[np.uint32]:
    """Pairs (w, floor(w 2**32 / m)) as a uint32 array of shape (len(values), 2)."""
    pairs = [(w, (w << 32) // m) for w, m in zip(values, moduli, strict=True)]
    return np.array(pairs, dtype=np.uint32).reshape(-1, 2)


@lru_cache(_CACHED_SETS)
def mixed_radix_constants(moduli: ModuliSet) -> MixedRadixConstants:
    """Constants of mixed-radix conversion in the set's own order."""
    ms = list(moduli)
    pairs = [(int(gmpy2.invert(ms[j] % m, m)), m) for i, m in enumerate(ms) for j in range(i)]
    return MixedRadixConstants(
        moduli,
        last_residues(moduli),
        shoup_factors([1] * len(ms), ms),
        shoup_factors([w for w, _ in pairs], [m for _, m in pairs]),
    )


def last_residues(moduli: ModuliSet) -> NDArray[np.uint32]:
    """The greatest residue m_i - 1 of each modulus: it fits 32 bits even when m_i is 2**32."""
    return np.array([m - 1 for m in moduli], dtype=np.uint32)


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


@lru_cache(_CACHED_SETS)
def fixed_point_constants(moduli: ModuliSet, bits: int | None = None, scale: int = 0) -> FixedPointConstants:
    """Constants of the fixed-point evaluation; without `bits`, the fewest that leave 24 good ones.

    Raises
    ------
    ValueError
        If `bits` is not 64, 96 or 128, or `scale` is negative.
    """
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


@lru_cache(_CACHED_SETS)
def interval_constants(moduli: ModuliSet) -> IntervalConstants:
    """Constants of the floating-point evaluation with all of `moduli`."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    inverses = np.array(list(moduli.partial_inverses), dtype=np.uint64)
    # A shift is below log2(M), which leaves a multiple of 2**shift * X below M.
    blocks = (moduli.bits - 1) // INTERVAL_POWERS + 1
    return IntervalConstants(
        moduli,
        last_residues(moduli),
        _factors_of_powers(inverses, 2**INTERVAL_POWERS, blocks, sizes),
        _factors_of_powers(np.uint64(1) % sizes, 2, INTERVAL_POWERS, sizes),
        np.array([directed(Fraction(1, m)) for m in moduli], dtype=np.float64),
    )


def _factors_of_powers(
    start: NDArray[np.uint64], base: int, count: int, sizes: NDArray[np.uint64]
) -> NDArray[np.uint32]:
    """Factors ``|start_i base**k|`` modulo each size, k < count, as a row of pairs for each size."""
    factors = np.empty((len(sizes), count, 2), dtype=np.uint32)
    ratio = np.array([base % m for m in sizes.tolist()], dtype=np.uint64)
    values = start
    for k in range(count):
        factors[:, k, 0] = values
        factors[:, k, 1] = (values << np.uint64(32)) // sizes
        values = values * ratio % sizes
    return factors.reshape(len(sizes), 2 * count)


def directed(value: Fraction) -> tuple[float, float]:
    """Greatest double not above and least double not below a positive `value` of moderate size."""
    nearest = float(value)
    exact = Fraction(nearest)
    low = nearest if exact <= value else math.nextafter(nearest, 0.0)
    upp = nearest if exact >= value else math.nextafter(nearest, math.inf)
    return low, upp


TABLE_MULTIPLE = 8
"""The tables of conversion have rows of a multiple of this many results (kResults in the kernels)."""


@dataclass(frozen=True, eq=False)
class ForwardConstants:
    """Constants of the conversion of `limb_count` limbs to residues.

    ``table[l, i]`` is ``|2**(32 l)|`` modulo m_i; of two's complement numbers, one row more belongs to the
    sign bit. ``factors[i]`` are those of 1, 2**32 and 2**64; ``last[i]`` is m_i - 1. ``bounds`` are the
    lowest and the highest value of the range as limbs, to be compared with numbers whose top limb has the
    bits of ``flip`` inverted; None if no number of so many limbs is out of range.
    """

    moduli: ModuliSet
    limb_count: int
    table: NDArray[np.uint32]
    last: NDArray[np.uint32]
    factors: NDArray[np.uint32]
    bounds: NDArray[np.uint32] | None
    flip: int


@lru_cache(_CACHED_SETS)
def forward_constants(moduli: ModuliSet, limb_count: int, signed: bool = False) -> ForwardConstants:
    """Constants of the conversion to residues from `limb_count` limbs, two's complement when `signed`."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    powers = _factors_of_powers(np.ones_like(sizes), 2**LIMB_BITS, max(limb_count + 1, 3), sizes)
    table = powers[:, 0 : 2 * (limb_count + signed) : 2].T.copy()
    if signed:
        # A two's complement number is its limbs' number, minus 2**(32 limb_count) if the sign bit is set.
        table[-1] = (sizes - table[-1]) % sizes
    return ForwardConstants(
        moduli,
        limb_count,
        _padded(table),
        last_residues(moduli),
        np.ascontiguousarray(powers[:, :6]),
        _range_bounds(moduli, limb_count, signed),
        2**31 if signed else 0,
    )


def _padded(table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Append zeros to each row, up to a multiple of TABLE_MULTIPLE."""
    return np.ascontiguousarray(np.pad(table, ((0, 0), (0, -table.shape[1] % TABLE_MULTIPLE))))


def _range_bounds(moduli: ModuliSet, limb_count: int, signed: bool) -> NDArray[np.uint32] | None:
    representable = 1 << LIMB_BITS * limb_count
    offset = representable >> 1 if signed else 0
    lowest, highest = (end + offset for end in moduli.value_range(signed))
    if lowest <= 0 and highest >= representable - 1:
        return None
    return limbs_of([max(lowest, 0), min(highest, representable - 1)], limb_count)


def limbs_of(values: Iterable[int], limb_count: int) -> NDArray[np.uint32]:
    """Little-endian 32-bit limbs of integers that are not negative and fit, one row for each."""
    data = b"".join([value.to_bytes(LIMB_BITS // 8 * limb_count, "little") for value in values])
    return np.frombuffer(data, dtype="<u4").reshape(-1, limb_count).astype(np.uint32, copy=False)


@dataclass(frozen=True, eq=False)
class ReverseConstants:
    """Constants of the conversion of residues to `limb_count` limbs.

    ``table[i]`` holds the two words of ``floor(2**64 / m_i)`` and the limbs of M_i, ``inverses[i]`` the
    factor w_i; ``last[i]`` is m_i - 1. ``product`` are the limbs of M (0 if it is ``2**(32 limb_count)``),
    ``highest`` those of the range's highest value.
    """

    moduli: ModuliSet
    limb_count: int
    table: NDArray[np.uint32]
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    product: NDArray[np.uint32]
    highest: NDArray[np.uint32]


@lru_cache(_CACHED_SETS)
def reverse_constants(moduli: ModuliSet, signed: bool = False) -> ReverseConstants:
    """Constants of the conversion from residues to limbs, two's complement when `signed`."""
    limb_count = moduli.limb_count(signed)
    fractions = limbs_of([2**64 // m for m in moduli], 2)
    _, highest = moduli.value_range(signed)
    return ReverseConstants(
        moduli,
        limb_count,
        _padded(np.hstack([fractions, limbs_of(moduli.partial_products, limb_count)])),
        last_residues(moduli),
        shoup_factors(list(moduli.partial_inverses), list(moduli)),
        limbs_of([moduli.product % 2 ** (LIMB_BITS * limb_count)], limb_count)[0],
        limbs_of([highest], limb_count)[0],
    )
