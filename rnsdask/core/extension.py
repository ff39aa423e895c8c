"""Moduli added to a set, so that it holds all results of expressions."""

from collections.abc import Iterator

import gmpy2

from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.ranges import Range


def needed_product(found: Range, signed: bool, symmetric: bool) -> int:
    """The least product of moduli whose range holds the integers from a lowest to a highest one.

    Below 0 are only numbers that have a sign, which halves their range if it is `symmetric`; a sign beside
    the residues does not.
    """
    low, high = found
    if not signed:
        return high + 1
    return max(-2 * low, 2 * high + 1) if symmetric else max(-low, high) + 1


def enough_moduli(moduli: ModuliSet, needed: int) -> ModuliSet:
    """A set of moduli with a product: the set given if it suffices, else with the fewest after it that do.

    They are as wide as its widest modulus, as long as there are such.
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
