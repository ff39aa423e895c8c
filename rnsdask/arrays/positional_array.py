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

    It has bits and fast comparison, which residues lack. Operands are arrays of the same number of bits and
    the same range, or integers within it.

    Make one with :func:`.from_ints`, :func:`.from_limbs`, :func:`.random`, :func:`.open_zarr`, or
    ``x.to_positional(bits)`` of an array of residues.

    Parameters
    ----------
    words : array of uint32, shape (k, *shape)
        Limbs as :class:`.Positional` defines them. This class does not check them (:func:`.from_limbs` does).
        A NumPy or CuPy array is not copied: do not write to it afterwards.
    system : Positional
        The bits of a number, and whether numbers may be negative.

    Raises
    ------
    TypeError, ValueError
        If words and system do not fit.
    """

    __slots__ = ()

    system_type = Positional

    @property
    def system(self) -> Positional:
        """Number system of the words."""
        system: Positional = self._system
        return system

    # ---- properties of the system --------------------------------------------------------------------------

    @property
    def bits(self) -> int:
        """Length of a number in bits."""
        return self.system.bits

    @property
    def signed(self) -> bool:
        """Whether numbers may be negative."""
        return self.system.signed

    def to_rns(self, moduli: ModuliSet | None = None, signed: bool | None = None) -> RNSArray:
        """Convert to an RNSArray; lazy if this array is.

        Parameters
        ----------
        moduli : ModuliSet, optional
            The moduli set; by default ``ModuliSet.for_bits`` of this array's bits, which holds every number.
        signed : bool, optional
            Whether the range is symmetric around 0; by default as in this array.

        Raises
        ------
        TypeError
            If `moduli` is not a ModuliSet, or `signed` is not a bool.
        ValueError
            If a number is out of range. It names the number's flat index, the first in its chunk; for a Dask
            array when it is computed.
        """
        wanted = self.signed if signed is None else as_bool(signed, "signed")
        if moduli is None:
            moduli = ModuliSet.for_bits(self.bits + (wanted and not self.signed))
        system = RNS(moduli, wanted, max(map(abs, self.system.value_range)))
        # Residues of an unsigned range need limbs without a sign.
        source = self.to_positional(self.bits, False) if self.signed and not wanted else self
        return RNSArray(convert.words_in(source, system), system)
