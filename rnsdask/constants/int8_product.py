"""Constants of matrix products modulo any m by products of residues modulo coprime moduli of 8 bits."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.arithmetic import modulus_table
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet

SMALL_MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227)
"""The greatest ten coprime moduli of 8 bits. Their product is above 2**79."""

MOST_TERMS = 2**16
"""So many products modulo m <= 2**32 add up to less than half of that, those of residues to 31 bits."""

INT8_WORKSPACE = 2**29
"""Bytes of 8-bit matrices and sums at a time on a GPU, unless a block of one product takes more."""

INT8_ROWS, INT8_TERMS, INT8_COLUMNS = 8192, 16384, 4096
"""Most rows, terms and columns of a block on a GPU: at more the library is no quicker; these take 3.4 GB."""

INT8_BYTES = 6 * len(SMALL_MODULI)
"""Bytes of 8-bit matrices and sums for each number of a product of square matrices."""

INT8_GREATEST = len(SMALL_MODULI) * (INT8_TERMS * (INT8_ROWS + INT8_COLUMNS) + 4 * INT8_ROWS * INT8_COLUMNS)
"""Bytes that a block of one product takes at most."""

LU_BYTES = 16
"""Bytes of the factors' 8-bit matrices for each number of a matrix of 768 rows and more, at most."""

LU_WORKSPACE = 5 * 2**30
"""Bytes of factors' 8-bit matrices that elimination keeps on a GPU, unless those of one matrix take more."""

_RECIPROCAL_BITS = 38
_VALUE_BITS = 43
_FRACTION_BITS = 17
_ROOM_BITS = 10
_FLOAT_BITS = 0x4A800000
_ROUNDER_BITS = _FLOAT_BITS + 3 * 2**22
_MIDDLE = 3 * 2**22 - 256
"""In the middle of the floats from 2**23 to 2**24, with room for a residue."""


@dataclass(frozen=True, eq=False)
class Int8Constants:
    """Constants that take residues modulo each m to the first small moduli, and sums of products back.

    ``left``, ``negative`` and ``right`` (count, 10) are the kernels' ``SmallModulus`` of left matrices of
    products, of those of negative products, and of right matrices, ``weights`` (n, 28) their
    ``Recombination``.
    """

    moduli: ModuliSet
    left: NDArray[np.int32]
    negative: NDArray[np.int32]
    right: NDArray[np.int32]
    weights: NDArray[np.uint32]

    @property
    def count(self) -> int:
        """How many small moduli there are."""
        return len(self.left)


@lru_cache(CACHED_SETS)
def small_moduli_for(moduli: ModuliSet, terms: int) -> int:
    """Number of small moduli that hold sums of `terms` products, at most `MOST_TERMS`.

    A residue is an integer of at most m / 2 around 0. With Q the product of the small moduli,
    ``|sum| / Q <= 1/2 - 2**-7`` lets the kernels find the integer part without any doubt.
    """
    reach = terms * (max(moduli) // 2) ** 2
    count = 1
    while 2 * 64 * reach > 63 * math.prod(SMALL_MODULI[:count]):
        count += 1
    return count


@lru_cache(CACHED_SETS)
def int8_constants(moduli: ModuliSet, count: int) -> Int8Constants:
    """Constants for any moduli up to 2**32, and the first `count` small moduli."""
    small = SMALL_MODULI[:count]
    product = math.prod(small)
    inverses = [pow(product // q, -1, q) for q in small]
    left, negative = (_small_table(small, [sign * x for x in inverses]) for sign in (1, -1))
    right = _small_table(small, None)
    shifts = [(_FLOAT_BITS - _ROUNDER_BITS * q) % 2**32 for q in small]
    fractions = [_rounded(2**_FRACTION_BITS, q) << _VALUE_BITS for q in small]
    weights = np.zeros((len(moduli), len(SMALL_MODULI) + 2), dtype=np.int64)
    for row, m in zip(weights, moduli, strict=True):
        row[:count] = own = [f + _centred(product // q, m) for q, f in zip(small, fractions, strict=True)]
        start = (m << _ROOM_BITS) + (1 << (_VALUE_BITS + _FRACTION_BITS - 1))
        shifted = start - sum(shift * weight for shift, weight in zip(shifts, own, strict=True))
        row[-2:] = _centred(-product, m), _centred(shifted, 2**64)
    both = np.concatenate([modulus_table(moduli), weights.view(np.uint32)], axis=1)
    return Int8Constants(moduli, left, negative, right, both)


def _small_table(small: tuple[int, ...], factors: list[int] | None) -> NDArray[np.int32]:
    """The structures ``SmallModulus`` of moduli and what residues are multiplied by, if anything."""
    table = np.zeros((len(small), 10), dtype=np.int32)
    for row, q, given in zip(table, small, factors or [1] * len(small), strict=True):
        factor = _centred(given, q)
        upper = 2**16 if factor == 1 else 2**22 * factor
        parts = (_centred(x, q) for x in (upper, 2**11 * factor, factor))
        row[:6] = q, _rounded(2**_RECIPROCAL_BITS, q), *parts, _MIDDLE // q * q + _FLOAT_BITS
        powers = (2**22 * factor, 2**11 * factor, factor) if factors else (2**16, 0, 0)
        row[7:] = np.array([_centred(x, q) for x in powers], np.float32).view(np.int32)
    table[:, 6] = (1 / np.array(small)).astype(np.float32).view(np.int32)
    return table


def _centred(x: int, m: int) -> int:
    """The residue of x modulo m from -m / 2 to m / 2, less than this if m is even."""
    return (x + m // 2) % m - m // 2


def _rounded(numerator: int, divisor: int) -> int:
    return (2 * numerator + divisor) // (2 * divisor)
