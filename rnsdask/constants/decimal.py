"""Constants of the conversion between decimal limbs, which are digits in base 10**9, and residues."""

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.convert import ForwardConstants, forward_table, limbs_of, padded
from rnsdask.constants.factors import (
    CACHED_SETS,
    last_residues,
    shoup_factors,
    word_factors,
)
from rnsdask.core.integer_text import to_decimal
from rnsdask.core.moduli import ModuliSet

DECIMAL_DIGITS = 9
DECIMAL_BASE = 10**DECIMAL_DIGITS


@lru_cache(CACHED_SETS)
def decimal_forward_constants(moduli: ModuliSet, limb_count: int, signed: bool = False) -> ForwardConstants:
    """Constants of the conversion to residues from `limb_count` decimal limbs, for the same kernels.

    When `signed`, the last limb is 1 for a negative number, and counts ``-10**(9 (limb_count - 1))``.
    ``flip`` inverts it, so that unsigned comparisons order such numbers.
    """
    end = DECIMAL_BASE ** (limb_count - signed)
    lowest, highest = moduli.value_range(signed)
    bounds = _decimal_limbs([max(lowest, -end) % end, min(highest, end - 1)], limb_count)
    if signed:
        bounds[:, -1] = [0, 1]
    return ForwardConstants(
        moduli,
        limb_count,
        partial(forward_table, moduli, DECIMAL_BASE, limb_count - signed, signed),
        last_residues(moduli),
        word_factors(moduli),
        bounds,
        int(signed),
        DECIMAL_BASE,
    )


@dataclass(frozen=True, eq=False)
class DecimalConstants:
    """Constants of the conversion of residues to decimal limbs.

    ``table[i]`` holds the two words of ``floor(2**64 / m_i)`` and the limbs of M_i, its last row two zeros
    and the limbs of -M; ``inverses[i]`` is the factor w_i, ``last[i]`` is m_i - 1. ``product`` are the limbs
    of M, ``highest`` those of the range's highest value.
    """

    table: NDArray[np.uint32]
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    product: NDArray[np.uint32]
    highest: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def decimal_constants(moduli: ModuliSet, signed: bool = False) -> DecimalConstants:
    """Constants of the conversion from residues to decimal limbs, enough for twice the product."""
    _, highest = moduli.value_range(signed)
    limb_count = -(-len(to_decimal(2 * moduli.product)) // DECIMAL_DIGITS)
    negative = DECIMAL_BASE**limb_count - moduli.product
    product, top, complement = _decimal_limbs([moduli.product, highest, negative], limb_count)
    fractions = limbs_of([*(2**64 // m for m in moduli), 0], 2)
    return DecimalConstants(
        padded(np.hstack([fractions, np.vstack([_quotients(product, moduli), complement])])),
        last_residues(moduli),
        shoup_factors(list(moduli.partial_inverses), list(moduli)),
        product,
        top,
    )


def _quotients(limbs: NDArray[np.uint32], moduli: ModuliSet) -> NDArray[np.uint32]:
    """The limbs of a number divided by each modulus, by long division for all of them together."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    quotients = np.empty((len(sizes), len(limbs)), dtype=np.uint32)
    remainders = np.zeros_like(sizes)
    for limb in reversed(range(len(limbs))):
        values = remainders * np.uint64(DECIMAL_BASE) + limbs[limb]  # less than 2**62
        quotients[:, limb] = values // sizes
        remainders = values % sizes
    return quotients


def _decimal_limbs(values: list[int], limb_count: int) -> NDArray[np.uint32]:
    """Decimal limbs, the least significant first, of integers that are not negative and fit."""
    texts = [to_decimal(value).zfill(DECIMAL_DIGITS * limb_count) for value in values]
    ends = range(DECIMAL_DIGITS * limb_count, 0, -DECIMAL_DIGITS)
    limbs = [[int(text[end - DECIMAL_DIGITS : end]) for end in ends] for text in texts]
    return np.array(limbs, dtype=np.uint32).reshape(-1, limb_count)
