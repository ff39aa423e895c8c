"""PositionalArray: an array of integers of a fixed number of bits, as limbs, on NumPy, CuPy or Dask."""

from __future__ import annotations

from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.moduli import ModuliSet, as_bool
from rnsdask.lazy import convert
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS


class PositionalArray(IntegerArray):
    """An array of exact integers of a fixed number of bits: limbs of 32 bits, the least significant first.

    It has what residues lack, bits and quick comparison. Operands are arrays of as many bits and the same
    range, or integers of it.

    Make one with :func:`.from_ints`, :func:`.from_limbs`, :func:`.random`, :func:`.open_zarr`, or
    ``x.to_positional(bits)`` of an array of residues.

    Parameters
    ----------
    words : array of uint32, shape (k, *shape)
        Limbs as :class:`.Positional` defines them, which is not checked (:func:`.from_limbs` does). A NumPy
        or CuPy array is not copied: do not write to it afterwards.
    system : Positional
        The bits of a number, and whether there are negative ones.

    Raises
    ------
    TypeError, ValueError
        If words and system do not fit.
    """

    __slots__ = ()

    system_type = Positional

    @property
    def system(self) -> Positional:
        """The number system: what the words mean."""
        system: Positional = self._system
        return system

    # ---- what it is ---------------------------------------------------------------------------------------

    @property
    def bits(self) -> int:
        """Bits of a number."""
        return self.system.bits

    @property
    def signed(self) -> bool:
        """Whether numbers may be negative."""
        return self.system.signed

    def to_rns(self, moduli: ModuliSet | None = None, signed: bool | None = None) -> RNSArray:
        """The numbers as an RNSArray; lazy if this array is.

        Parameters
        ----------
        moduli : ModuliSet, optional
            The moduli set; without it ``ModuliSet.for_bits`` of this array's bits, which holds every number.
        signed : bool, optional
            Whether the range is the symmetric one; without it as this array's.

        Raises
        ------
        TypeError
            If `moduli` is no ModuliSet, or `signed` no bool.
        ValueError
            If a number is out of range, naming its flat index, the first in its chunk; for a Dask array when
            it is computed.
        """
        wanted = self.signed if signed is None else as_bool(signed, "signed")
        if moduli is None:
            moduli = ModuliSet.for_bits(self.bits + (wanted and not self.signed))
        system = RNS(moduli, wanted, max(map(abs, self.system.value_range)))
        # Residues without negative numbers take limbs without them.
        source = self.to_positional(self.bits, False) if self.signed and not wanted else self
        return RNSArray(convert.words_in(source, system), system)
