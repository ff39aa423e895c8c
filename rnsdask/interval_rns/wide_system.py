"""Systems of residues that hold numbers with intervals and their exact results."""

from functools import lru_cache

import gmpy2

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.coprime import greedy_coprime
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.rns.system import RNS

# Bits that bounds are rounded up to a multiple of, so that constants are computed for few systems.
_STEP = 32


def rounded(bits: int) -> int:
    """Round bits up to a number that systems are made for."""
    return -(-bits // _STEP) * _STEP


def wide_system(moduli: ModuliSet, bits: int) -> RNS:
    """Signed system that starts with the given moduli, for numbers below ``2**bits`` in magnitude.

    ValueError if too few other integers up to 2**32 are coprime to them.
    """
    return RNS(_wide_moduli(moduli, rounded(max(bits + 2 - moduli.bits, 1))), True)


@lru_cache(CACHED_SETS)
def _wide_moduli(moduli: ModuliSet, missing: int) -> ModuliSet:
    """The moduli and the greatest others that make the product longer by at least `missing` bits."""
    product, wanted = gmpy2.mpz(moduli.product), gmpy2.mpz(1) << moduli.bits + missing - 1
    added, whole = [], product
    for candidate in greedy_coprime(MODULUS_MAX, -1, 1):
        if gmpy2.gcd(product, candidate) == 1:
            added.append(candidate)
            whole *= candidate
            if whole >= wanted:
                return ModuliSet([*moduli, *added])
    raise ValueError(f"too few integers up to 2**32 have no common factor with the moduli of {moduli!r}")
