"""Moduli added to a set, so that it holds all results of expressions."""

from collections.abc import Iterator

import gmpy2

from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.expressions.ranges import Range


def enough_moduli(moduli: ModuliSet, found: Range, signed: bool) -> ModuliSet:
    """A set that holds a range of integers: the moduli given, and the fewest after them that suffice.

    Parameters
    ----------
    moduli : ModuliSet
        The set to begin with.
    found : (int, int)
        The lowest and the highest integer; below 0 only signed sets hold any.
    signed : bool
        Whether the range is to be symmetric around 0.

    Returns
    -------
    ModuliSet
        The same one if it suffices. The others are as wide as its widest modulus, as long as there are such.
    """
    low, high = found
    needed = max(-2 * low, 2 * high + 1) if signed else high + 1
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
