"""Constants of number-theoretic transforms: roots of unity, powers of them, scales of inverse ones."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.progressions import progressions
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import root_of_unity

_TABLE_RESIDUES = 2**18
"""Most residues in a table of powers, which stays in a processor's cache: 1 MiB."""


@dataclass(frozen=True, eq=False)
class TransformConstants:
    """Constants of transforms of one length N modulo each of some primes.

    ``X_j`` is the sum of ``x_i roots**(i j)``, times ``scales``: of the inverse transform ``roots`` are the
    inverses of the forward one's, and ``scales`` those of N; else these are 1.
    """

    moduli: ModuliSet
    length: int
    roots: NDArray[np.uint32]
    scales: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def transform_constants(moduli: ModuliSet, length: int, inverse: bool) -> TransformConstants:
    """Constants of transforms modulo primes p, of a length that divides each p - 1."""
    roots = [root_of_unity(length, p) for p in moduli]
    scales = [1] * len(roots)
    if inverse:
        roots = [pow(root, -1, p) for root, p in zip(roots, moduli, strict=True)]
        scales = [pow(length, -1, p) for p in moduli]
    return TransformConstants(
        moduli, length, np.array(roots, dtype=np.uint32), np.array(scales, dtype=np.uint32)
    )


@dataclass(frozen=True, eq=False)
class TwiddleFactors:
    """What the element at (i, r) of a matrix of R columns is multiplied by: ``a**i * b**r * c**(i r)``.

    Attributes
    ----------
    a, b, c : tuple of int
        One of each prime.
    table : array of uint32, shape (n, S, R)
        ``a**i * c**(i r)`` for i from 0 to S - 1.
    """

    moduli: ModuliSet
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]
    table: NDArray[np.uint32]

    def at_row(self, i: int) -> NDArray[np.uint32]:
        """The factors of row i, (n, R); those of row i + k are these by row k of `table`."""
        primes = self.moduli
        starts = [pow(a, i, p) for a, p in zip(self.a, primes, strict=True)]
        ratios = [b * pow(c, i, p) % p for b, c, p in zip(self.b, self.c, primes, strict=True)]
        return progressions(starts, ratios, self.table.shape[2], primes)


@lru_cache(CACHED_SETS)
def twist_factors(moduli: ModuliSet, length: int, inverse: bool) -> TwiddleFactors:
    """Factors ``psi**i``, or ``psi**-i``, with psi of order 2N: they make cyclic transforms negacyclic."""
    ones = (1,) * len(moduli)
    return _factors(moduli, _roots(moduli, 2 * length, inverse), ones, ones, length, 1)


@lru_cache(CACHED_SETS)
def twiddle_factors(
    moduli: ModuliSet, length: int, count: int, inverse: bool, negacyclic: bool
) -> TwiddleFactors:
    """Factors of transforms of length N as a matrix, between those of its columns and those of its rows.

    The columns have `count` elements. After their transforms, (i, r) is the r-th value of column i of the N /
    count columns, and its factor is ``w**(i r)`` with w of order N. A forward negacyclic transform, of which
    the columns' are negacyclic too, has ``psi**(i (2 r + 1))`` instead, with psi of order 2N; an inverse one,
    of which the rows' are, ``w**-(i r) * psi**-r``.
    """
    ones = (1,) * len(moduli)
    roots = _roots(moduli, length, inverse)
    halves = _roots(moduli, 2 * length, inverse) if negacyclic else ones
    a, b = (ones, halves) if inverse else (halves, ones)
    return _factors(moduli, a, b, roots, length // count, count)


def _roots(moduli: ModuliSet, order: int, inverse: bool) -> tuple[int, ...]:
    return tuple(pow(root_of_unity(order, p), -1 if inverse else 1, p) for p in moduli)


def _factors(
    moduli: ModuliSet, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], rows: int, columns: int
) -> TwiddleFactors:
    size = min(rows, max(1, _TABLE_RESIDUES // (len(moduli) * columns)))
    ratios = progressions(a, c, columns, moduli)
    table = progressions(np.ones_like(ratios), ratios, size, moduli)
    return TwiddleFactors(moduli, a, b, c, table)
