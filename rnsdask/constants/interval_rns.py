"""Constants of signed multiple-precision integers with stored intervals."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.interval import directed
from rnsdask.core.moduli import ModuliSet

MAX_EXPONENT = 2**29
"""Exponents of intervals are at most this in magnitude: those of every result then fit 32 bits."""


@dataclass(frozen=True, eq=False)
class ProductBounds:
    """Bounds of M: ``low * 2**exponent <= M <= upp * 2**exponent``, upp from 1/2 to less than 1."""

    moduli: ModuliSet
    low: float
    upp: float
    exponent: int


@lru_cache(CACHED_SETS)
def product_bounds(moduli: ModuliSet) -> ProductBounds:
    """Bounds of the dynamic range M.

    Raises
    ------
    ValueError
        If M has so many bits that the exponent of a result would not fit 32 bits.
    """
    if moduli.bits >= MAX_EXPONENT:
        raise ValueError(f"intervals are for M of fewer than {MAX_EXPONENT} bits, got {moduli.bits}")
    exponent = moduli.bits
    low, upp = directed(Fraction(moduli.product, 2**exponent))
    if upp == 1.0:
        low, upp, exponent = low / 2, upp / 2, exponent + 1
    return ProductBounds(moduli, low, upp, exponent)
