"""Products and running products of a chunk along axes, and exactly which overflow. No Dask in here.

Factors are words (n + 1, *shape): the residues of a magnitude modulo M, and a row of flags, so that products
combine whatever is still to come: a factor of 0 makes any product 0. Where nobody asks about overflow they
are the numbers' residues (n, *shape).
"""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.rns import arithmetic
from rnsdask.rns.absolute import absolute
from rnsdask.rns.axis import fold_along, reduced_shape
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import choose, compare, sign
from rnsdask.rns.system import RNS

# Flags of a product: the magnitude is M or more, before factors of 0; a factor is 0; it is negative.
BEYOND, ZERO, NEGATIVE = 1, 2, 4


def bound_of_products(system: RNS, terms: int) -> int | None:
    """A bound of the products of so many numbers, if it shows that all are in range; else None."""
    magnitude, highest = max(system.known_magnitude, 1), system.value_range[1]
    # Other magnitudes than 1 grow by a bit at least.
    if magnitude > 1 and terms > highest.bit_length():
        return None
    bound: int = magnitude**terms
    return bound if bound <= highest else None


def factors_of(residues: Array, system: RNS, mode: str) -> Array:
    """Factors of single numbers, for a mode of overflow; with ``"wrap"`` their residues."""
    if mode == "wrap":
        return residues
    signs = sign(residues, system)
    flags = (signs == 0) * np.uint32(ZERO) + (signs < 0) * np.uint32(NEGATIVE)
    return np.concatenate([absolute(residues, system, "wrap"), flags[None].astype(np.uint32)])


def multiply(a: Array, b: Array, moduli: ModuliSet) -> Array:
    """Factors of the products, element by element."""
    if len(a) == len(moduli):
        return arithmetic.apply("multiply", (a, b), RNS(moduli), "wrap")
    # Magnitudes are numbers of the unsigned range, also M/2, which no signed one is.
    product = arithmetic.apply("multiply", (a[:-1], b[:-1]), RNS(moduli), "flag")
    product[-1] |= (a[-1] | b[-1]) & np.uint32(BEYOND | ZERO)
    product[-1] |= (a[-1] ^ b[-1]) & np.uint32(NEGATIVE)
    return product


def factors_along(factors: Array, moduli: ModuliSet, axes: tuple[int, ...]) -> Array:
    """Factors multiplied along axes of the numbers, which keep length 1; no factors give 1."""
    if factors.size == 0:
        shape = (len(factors), *reduced_shape(factors.shape[1:], axes))
        one = np.zeros((len(factors), *(1,) * (len(shape) - 1)), dtype=np.uint32)
        one[: len(moduli)] = column_of(1, moduli, len(shape) - 1)
        return np.broadcast_to(np.asarray(one, like=factors), shape)
    return fold_along(factors, axes, lambda a, b: multiply(a, b, moduli))


def finish(factors: Array, system: RNS, mode: str, locate: Locate = int) -> Array:
    """The products that factors stand for, as numbers of the system.

    Returns
    -------
    array of uint32, shape (n, *shape)
        With ``"flag"`` one row more, which holds 1 where the exact product is out of range, else 0.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; it names the index that `locate` makes of that in the
        chunk.
    """
    if mode == "wrap":
        return factors
    magnitudes, flags = factors[:-1], factors[-1]
    negative = (flags & np.uint32(NEGATIVE)) != 0
    zero = column_of(0, system.moduli, magnitudes.ndim - 1)
    negated = arithmetic.apply("subtract", (zero, magnitudes), RNS(system.moduli), "wrap")
    result = choose(negative[None], negated, magnitudes)
    outside = _beyond_signed(magnitudes, negative, system) | ((flags & np.uint32(BEYOND)) != 0)
    outside &= (flags & np.uint32(ZERO)) == 0
    if mode == "flag":
        return np.concatenate([result, outside[None].astype(np.uint32)])
    if outside.any():
        raise _overflow(factors, int(outside.argmax()), system, locate)
    return result


def _beyond_signed(magnitudes: Array, negative: Array, system: RNS) -> Array:
    """Boolean: a magnitude below M is out of range with its sign."""
    if not system.signed:
        return np.zeros_like(negative)
    unsigned, (lowest, highest) = RNS(system.moduli), system.value_range
    ndim = magnitudes.ndim - 1
    above, below = (
        compare(magnitudes, column_of(limit, system.moduli, ndim), unsigned) > 0
        for limit in (highest, -lowest)
    )
    return np.where(negative, below, above)


def _overflow(factors: Array, index: int, system: RNS, locate: Locate) -> RNSOverflowError:
    moduli, signed = system.moduli, system.signed
    flags = int(factors[-1].reshape(-1)[index])
    negative = bool(flags & NEGATIVE)
    if flags & BEYOND:
        # In two's complement -2**k is one bit shorter than 2**k.
        needed = (moduli.product - int(negative)).bit_length() + int(signed)
        return system.overflow_type(locate(index), needed, moduli.bits - 1, signed, negative, at_least=True)
    magnitude = RNS(moduli).decode_at(factors[:-1], index)
    return system.overflow_error(-magnitude if negative else magnitude, locate(index))
