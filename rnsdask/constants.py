"""Constants that the kernels read, computed once for a moduli set and kept for the process.

Each class holds NumPy arrays in the layout its kernels expect. Instances compare by identity, and the
functions that build them are cached, so the copies on a GPU can be cached by instance too
(:mod:`rnsdask.backend.cuda`).
"""

from dataclasses import dataclass
from functools import lru_cache

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.moduli import ModuliSet

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
