"""Constants of number-theoretic transforms, and of convolution by three of them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.arithmetic import modulus_table
from rnsdask.constants.factors import CACHED_SETS, progressions, shoup_factors
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import root_of_unity
from rnsdask.core.wide_moduli import WideModuli

_TABLE_RESIDUES = 2**18
"""Most residues in a table of powers, which stays in a processor's cache: 1 MiB."""


Moduli: TypeAlias = ModuliSet | WideModuli


@dataclass(frozen=True, eq=False)
class TransformConstants:
    """Constants of transforms of one length N modulo each of some primes.

    ``X_j`` is the sum of ``x_i roots**(i j)``, times ``scales``: of the inverse transform ``roots`` are the
    inverses of the forward one's, and ``scales`` those of N; else these are 1.
    """

    moduli: Moduli
    length: int
    roots: NDArray[Any]
    scales: NDArray[Any]


@lru_cache(CACHED_SETS)
def transform_constants(
    moduli: Moduli, length: int, inverse: bool, exponents: tuple[int, ...] | None = None
) -> TransformConstants:
    """Constants of transforms modulo primes p, of a length that divides each p - 1.

    Roots are the usual ones, or powers of these, with an exponent for each prime.
    """
    roots = _roots(moduli, length, inverse, exponents)
    scales = [pow(length, -1, p) if inverse else 1 for p in moduli]
    dtype = _word(moduli)
    return TransformConstants(moduli, length, np.array(roots, dtype=dtype), np.array(scales, dtype=dtype))


def _word(moduli: Moduli) -> type[np.unsignedinteger[Any]]:
    return np.uint64 if isinstance(moduli, WideModuli) else np.uint32


@dataclass(frozen=True, eq=False)
class TwiddleFactors:
    """Factors ``a**i * b**r * c**(i r)`` of the elements at (i, r) of a matrix of R columns, for each prime.

    The table (n, S, R) has ``a**i * c**(i r)`` for i from 0 to S - 1.
    """

    moduli: Moduli
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]
    table: NDArray[Any]

    def at_row(self, i: int) -> NDArray[Any]:
        """The factors of row i, (n, R); those of row i + k are these by row k of `table`."""
        primes = self.moduli
        starts = [pow(a, i, p) for a, p in zip(self.a, primes, strict=True)]
        ratios = [b * pow(c, i, p) % p for b, c, p in zip(self.b, self.c, primes, strict=True)]
        return progressions(starts, ratios, self.table.shape[2], primes)


def twists(
    moduli: Moduli, length: int, inverse: bool, exponents: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """The roots psi of order 2N, or their inverses, of which powers make cyclic transforms negacyclic."""
    return np.array(_roots(moduli, 2 * length, inverse, exponents), dtype=_word(moduli))


@lru_cache(CACHED_SETS)
def twist_factors(moduli: Moduli, length: int, inverse: bool) -> TwiddleFactors:
    """Factors ``psi**i``, or ``psi**-i``, by the `twists` psi."""
    ones = (1,) * len(moduli)
    return _factors(moduli, _roots(moduli, 2 * length, inverse), ones, ones, length, 1)


@lru_cache(CACHED_SETS)
def twiddle_factors(
    moduli: Moduli, length: int, count: int, inverse: bool, negacyclic: bool
) -> TwiddleFactors:
    """Factors between the transforms of a matrix' columns and of its rows, for a transform of length N.

    The columns have `count` elements. After their transforms, (i, r) is the r-th value of column i of the N /
    count columns, and its factor is ``w**(i r)`` with w of order N. In a forward negacyclic transform the
    columns' transforms are negacyclic too, and the factor is ``psi**(i (2 r + 1))``, with psi of order 2N; in
    an inverse one the rows' transforms are, and it is ``w**-(i r) * psi**-r``.
    """
    ones = (1,) * len(moduli)
    roots = _roots(moduli, length, inverse)
    halves = _roots(moduli, 2 * length, inverse) if negacyclic else ones
    a, b = (ones, halves) if inverse else (halves, ones)
    return _factors(moduli, a, b, roots, length // count, count)


def _roots(
    moduli: Moduli, order: int, inverse: bool, exponents: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    powers = exponents or (1,) * len(moduli)
    pairs = zip(moduli, powers, strict=True)
    return tuple(pow(root_of_unity(order, p), -k if inverse else k, p) for p, k in pairs)


def _factors(
    moduli: Moduli, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], rows: int, columns: int
) -> TwiddleFactors:
    size = min(rows, max(1, _TABLE_RESIDUES // (len(moduli) * columns)))
    ratios = progressions(a, c, columns, moduli)
    table = progressions(np.ones_like(ratios), ratios, size, moduli)
    return TwiddleFactors(moduli, a, b, c, table)


# Tables of powers of roots of unity (twiddle factors), as pairs for multiplication by them.
#
# For primes below 2**31 pairs are Shoup's, ``(w, floor(w 2**32 / p))``. If a set has greater primes, all
# pairs are Montgomery's: ``v = w 2**32`` modulo p, and ``v / p`` modulo 2**32; all primes must be odd.
# Pairs of uint64 are Shoup's for 2**64, of any primes below it.


def root_factors(
    roots: list[int], primes: list[int], length: int, dtype: np.dtype[Any], *, is_twisted: bool = False
) -> NDArray[Any]:
    """Factors for transforms of a length, of roots of that order: shape (n, length, 2).

    That at ``half + k`` is of the power k of a root of order ``2 half``, for every power of two ``half``. For
    twisted transforms roots are of twice the order, and it is of the power 2k + 1 of one of order ``4 half``.
    """
    values = np.zeros((len(primes), length), dtype=dtype)
    half = length // 2
    while half > 0:
        squares = [root * root % p for root, p in zip(roots, primes, strict=True)]
        of_half = ([1] * len(primes), roots) if not is_twisted else (roots, squares)
        values[:, half : 2 * half] = progressions(*of_half, half, primes)
        roots, half = squares, half // 2
    return _pairs(values, primes, dtype)


def power_factors(
    starts: list[int], roots: list[int], primes: list[int], count: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Factors of ``start root**k`` for k below a power of two: shape (n, count, 2)."""
    return _pairs(progressions(starts, roots, count, primes), primes, dtype)


def is_narrow(primes: list[int]) -> bool:
    """Whether pairs of uint32 are those of Shoup."""
    return max(primes) < 2**31


def _pairs(values: NDArray[Any], primes: list[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype == np.uint64:
        exact = values.astype(object)
        return np.stack([exact, (exact << 64) // np.array(primes, dtype=object)[:, None]], axis=-1).astype(
            dtype
        )
    sizes, shifted = np.array(primes, dtype=np.uint64)[:, None], values.astype(np.uint64) << np.uint64(32)
    if is_narrow(primes):
        return np.stack([values, (shifted // sizes).astype(np.uint32)], axis=-1)
    inverses = np.array([pow(p, -1, 2**32) for p in primes], dtype=np.uint32)[:, None]
    values = (shifted % sizes).astype(np.uint32)
    return np.stack([values, values * inverses], axis=-1)


THREE_PRIMES = ModuliSet([469762049, 1811939329, 2013265921])
"""The primes below 2**31, ascending, that have transforms of length 2**26.

Their product is above 2**90, so that sums of 2**26 products of any two 32-bit words are below it.
"""


@dataclass(frozen=True, eq=False)
class ThreePrimeConstants:
    """Constants that take residues modulo `THREE_PRIMES` to each modulus m.

    ``primes`` is the kernels' ``ThreePrimes``, 9 words; ``weights`` (n, 6) their ``PrimeWeights``.
    """

    primes: NDArray[np.uint32]
    weights: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def three_prime_constants(moduli: ModuliSet) -> ThreePrimeConstants:
    """Constants for any moduli up to 2**32."""
    p0, p1, p2 = THREE_PRIMES
    inverses = shoup_factors([pow(p0, -1, p1), pow(p0, -1, p2), pow(p1, -1, p2)], [p1, p2, p2])
    last = np.array([p0 - 1, p1 - 1, p2 - 1], dtype=np.uint32)
    factors = np.array([(p0 % m, p0 * p1 % m) for m in moduli], dtype=np.uint32)
    return ThreePrimeConstants(
        np.concatenate([last, inverses.ravel()]), np.concatenate([modulus_table(moduli), factors], axis=1)
    )
