"""Decimal text of positional numbers, as limbs of 9 decimal digits."""

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.positional.system import Positional
from rnsdask.rns.convert import to_limbs, to_residues
from rnsdask.rns.decimal import decimal_limbs, decimal_to_ints, decimal_to_residues, residues_to_decimal

_LONG_BITS = 2**12
"""Bits above which GMP converts decimal text: the time by residues grows with their square."""


def from_decimal(limbs: Array, system: Positional, signed: bool) -> Array:
    """Convert limbs of 9 decimal digits (L, N) to words (rows, N)."""
    if system.bits > _LONG_BITS:
        return system.encode(decimal_to_ints(limbs, signed))
    moduli = ModuliSet.for_bits(system.bits + 1)  # residues have a fast conversion
    residues = decimal_to_residues(limbs, moduli, signed)
    return system.words_of_limbs(to_limbs(residues, moduli, signed), signed, int)


def to_decimal(words: Array, system: Positional) -> tuple[Array, Array]:
    """Convert words to limbs of 9 decimal digits of the magnitudes, and a mask of the negative numbers."""
    if system.bits > _LONG_BITS:
        return decimal_limbs(system.decode(words).ravel().tolist())
    moduli = ModuliSet.for_bits(system.bits + 1)
    residues = to_residues(system.limbs_of(words), moduli, system.signed)
    return residues_to_decimal(residues, moduli, system.signed)
