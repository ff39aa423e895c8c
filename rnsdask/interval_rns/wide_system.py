"""The system of residues that holds the numbers of intervals' systems and exact results of them."""

from functools import lru_cache

import gmpy2

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.coprime import greedy_coprime
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.rns.system import RNS

# Bounds are rounded up to a multiple of this number of bits, so that constants are computed for few of them.
_STEP = 32


def rounded(bits: int) -> int:
    """The next of the numbers of bits that systems are made for."""
    return -(-bits // _STEP) * _STEP


def wide_system(moduli: ModuliSet, bits: int) -> RNS:
    """A signed system whose first moduli are those given, for numbers below ``2**bits`` in magnitude.

    A ValueError says if too few other integers up to 2**32 have no common factor with these.
    """
    return RNS(_wide_moduli(moduli, rounded(max(bits + 2 - moduli.bits, 1))), True)


@lru_cache(CACHED_SETS)
def _wide_moduli(moduli: ModuliSet, missing: int) -> ModuliSet:
    """The moduli and others, of the greatest ones, whose product has at least `missing` bits more."""
    product, wanted = gmpy2.mpz(moduli.product), gmpy2.mpz(1) << moduli.bits + missing - 1
    added, whole = [], product
    for candidate in greedy_coprime(MODULUS_MAX, -1, 1):
        if gmpy2.gcd(product, candidate) == 1:
            added.append(candidate)
            whole *= candidate
            if whole >= wanted:
                return ModuliSet([*moduli, *added])
    raise ValueError(f"too few integers up to 2**32 have no common factor with the moduli of {moduli!r}")
