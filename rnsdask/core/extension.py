"""Moduli added to a set, so that its range holds all results of expressions."""

from collections.abc import Iterator

import gmpy2

from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.ranges import Range


def needed_product(found: Range, signed: bool, symmetric: bool) -> int:
    """Return the least product of moduli whose range holds the integers from a lowest to a highest one.

    A symmetric range holds magnitudes up to half of the product. Where the sign is stored apart from the
    residues, it holds the magnitudes below the product.
    """
    low, high = found
    if not signed:
        return high + 1
    return max(-2 * low, 2 * high + 1) if symmetric else max(-low, high) + 1


def enough_moduli(moduli: ModuliSet, needed: int) -> ModuliSet:
    """Return a set of moduli with at least a given product: the given set, with the fewest moduli added.

    Added moduli are as wide as the widest given one, as long as there are such.
    """
    everything, added = gmpy2.mpz(moduli.product), list[int]()
    candidates = _candidates(max(moduli))
    while everything < needed:
        candidate = next(candidates)
        if gmpy2.gcd(everything, candidate) == 1:
            added.append(candidate)
            everything *= candidate
    return ModuliSet((*moduli, *added)) if added else moduli


def _candidates(widest: int) -> Iterator[int]:
    width = (widest - 1).bit_length()
    yield from range(2**width, 2, -1)
    yield from range(MODULUS_MAX, 2**width, -1)
