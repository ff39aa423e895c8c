"""Constants of convolution modulo any m by way of three primes: its sums are less than their product."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.arithmetic import modulus_table
from rnsdask.constants.factors import CACHED_SETS, shoup_factors
from rnsdask.core.moduli import ModuliSet

THREE_PRIMES = ModuliSet([469762049, 1811939329, 2013265921])
"""The primes below 2**31, ascending, that have transforms of length 2**26.

Their product is above 2**90, so that sums of 2**26 products of any two 32-bit words are below it.
"""


@dataclass(frozen=True, eq=False)
class ThreePrimeConstants:
    """What takes residues modulo `THREE_PRIMES` to those modulo each m.

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
