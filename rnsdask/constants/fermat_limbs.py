"""Constants of the conversion between limbs and digits of Fermat fields."""

from dataclasses import dataclass
from functools import lru_cache

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.fermat import FermatConstants
from rnsdask.core.moduli import LIMB_BITS


@dataclass(frozen=True)
class RadixDivision:
    """What division of two words by the radix r takes (N. Moeller and T. Granlund, 2011).

    ``normalized`` is ``r * 2**shift``, whose highest bit is that of a word; ``reciprocal`` is the quotient of
    ``2**(2 w) - 1`` by it, less ``2**w``, for words of w bits. ``limb_count`` is how many 32-bit limbs hold
    any element.
    """

    normalized: int
    reciprocal: int
    shift: int
    limb_count: int


@lru_cache(CACHED_SETS)
def radix_division(field: FermatConstants) -> RadixDivision:
    """Constants of division by the radix of a field."""
    bits = 8 * field.dtype.itemsize
    shift = bits - field.radix.bit_length()
    normalized = field.radix << shift
    limb_count = -(-(field.modulus - 1).bit_length() // LIMB_BITS)
    return RadixDivision(normalized, (4**bits - 1) // normalized - 2**bits, shift, limb_count)
