"""Constants of the conversion between limbs and digits of Fermat fields."""

from dataclasses import dataclass
from functools import lru_cache

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.fermat import FermatConstants
from rnsdask.core.moduli import LIMB_BITS


@dataclass(frozen=True)
class RadixDivision:
    """The radix R of 64-bit digits, and what division of two words by it takes (`WideRadix` of the kernels).

    R is the radix r of a field, or ``r**2`` where digits have 32 bits. ``normalized`` is ``R * 2**shift``,
    whose highest bit is that of a word; ``reciprocal`` is the quotient of ``2**128 - 1`` by it, less
    ``2**64``. ``digits`` are those to the radix R. ``limb_count`` is how many 32-bit limbs hold any element.
    """

    radix: int
    normalized: int
    reciprocal: int
    shift: int
    digits: int
    limb_count: int


@lru_cache(CACHED_SETS)
def radix_division(field: FermatConstants) -> RadixDivision:
    """Constants of division by the radix of a field."""
    joined = 8 // field.dtype.itemsize
    radix = field.radix**joined
    shift = 64 - radix.bit_length()
    normalized = radix << shift
    reciprocal = (2**128 - 1) // normalized - 2**64
    limb_count = -(-(field.modulus - 1).bit_length() // LIMB_BITS)
    return RadixDivision(radix, normalized, reciprocal, shift, field.digits // joined, limb_count)
