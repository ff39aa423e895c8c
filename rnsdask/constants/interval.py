"""Constants of the floating-point interval evaluation."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS, factors_of_powers, last_residues
from rnsdask.core.moduli import ModuliSet

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
