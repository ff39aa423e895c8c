"""IntervalRNSArray: an array of signed integers with stored intervals, on NumPy, CuPy or Dask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from rnsdask.arrays.extending import Extending
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.backend import backend_name
from rnsdask.core import layout as array_layout
from rnsdask.core.errors import brief
from rnsdask.core.moduli import ModuliSet, check_moduli_set
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy import functions, interval_rns
from rnsdask.lazy.check import checked_residues
from rnsdask.rns.evaluation import IntervalEvaluation
from rnsdask.rns.system import RNS
from rnsdask.rns.values import flat_integers
from rnsdask.typing import PlainArray


class IntervalRNSArray(Extending, IntegerArray):
    """An array of exact signed integers: sign, residues of the magnitude, and an interval of X/M.

    The range is from ``-(M-1)`` to ``M-1``. Signs and comparisons use the stored intervals; residues are read
    only where intervals overlap. If the columns are a Dask array, it is a Dask collection and everything is
    lazy.

    Make one with :meth:`from_ints`, :meth:`from_rns`, :meth:`from_residues` or :func:`.open_zarr`.

    Parameters
    ----------
    words : array of uint32, shape (n + 6, *shape)
        Residues and headers as :mod:`rnsdask.interval_rns.layout` defines them. This class does not check
        them. A NumPy or CuPy array is not copied: do not write to it afterwards.
    system : IntervalRNS
        The number system, of n moduli.

    Raises
    ------
    TypeError, ValueError
        If words and system do not fit.
    """

    __slots__ = ()

    system_type = IntervalRNS

    @property
    def system(self) -> IntervalRNS:
        """Number system of the words."""
        system: IntervalRNS = self._system
        return system

    # ---- ways to make one ---------------------------------------------------------------------------------

    @classmethod
    def from_ints(
        cls, ints: Iterable[Any], moduli: ModuliSet, chunks: array_layout.Chunks | None = None
    ) -> IntervalRNSArray:
        """Make an array of exact integers.

        Parameters
        ----------
        ints : iterable of integers, nested lists, or NumPy array
            The numbers, as :func:`rnsdask.from_ints` takes them.
        moduli : ModuliSet
            The moduli set; every magnitude is below M.
        chunks : "auto", int, tuple, mapping, str, or None
            Chunks of a Dask array, as :meth:`rechunk` takes them; None for a NumPy array.

        Raises
        ------
        TypeError
            If a value is not an integer.
        ValueError
            If a value is out of range. Both errors name the position.
        """
        system = IntervalRNS(moduli)
        flat, shape = flat_integers(ints)
        array = cls(system.encode(flat).reshape(system.rows, *shape), system)
        return array if chunks is None else array.rechunk(chunks)

    @classmethod
    def from_residues(cls, residues: Any, sign: Any, moduli: ModuliSet) -> IntervalRNSArray:
        """Make an array from residues of magnitudes (n, *shape), uint32, and signs (*shape), 0 or 1.

        NumPy or CuPy, both on one processor. Intervals are evaluated.

        Raises
        ------
        TypeError, ValueError
            If dtype, shape, a residue or a sign is wrong.
        """
        check_moduli_set(moduli)
        array_layout.check_residue_array(residues, moduli)
        for array, name in ((residues, "residues"), (sign, "signs")):
            if not (isinstance(array, np.ndarray) or backend_name(array) == "cuda") or np.ma.is_masked(array):
                kind = type(array).__name__
                raise TypeError(f"{name} must be a NumPy or CuPy array without masked values, got {kind}")
        checked_residues(residues, moduli)
        if sign.shape != residues.shape[1:] or not bool(((sign == 0) | (sign == 1)).all()):
            raise ValueError(f"signs must be 0 or 1 and of shape {residues.shape[1:]}, got {brief(sign)}")
        return cls(layout.evaluated(residues, moduli, sign != 0), IntervalRNS(moduli))

    @classmethod
    def from_rns(cls, x: RNSArray) -> IntervalRNSArray:
        """Convert an RNSArray, signed or not; lazy if `x` is."""
        if not isinstance(x, RNSArray):
            raise TypeError(f"from_rns takes an RNSArray, got {type(x).__name__}")
        return cls(interval_rns.columns_of(x), IntervalRNS(x.moduli, x.system.source))

    def to_rns(self, signed: bool = True) -> RNSArray:
        """Convert to an RNSArray of the same moduli set; lazy if this array is.

        Raises
        ------
        ValueError
            If a number is outside of its range. It names the first one's flat index, the first in its chunk;
            for a Dask array when it is computed.
        """
        system = RNS(self.moduli, signed, source=self.system.source)
        return RNSArray(interval_rns.residues_of(self, system), system)

    # ---- parts of the numbers -----------------------------------------------------------------------------

    @property
    def columns(self) -> PlainArray[np.uint32]:
        """Residues and headers, uint32 (n + 6, *shape), as :mod:`rnsdask.interval_rns.layout` defines them.

        A NumPy array is read-only. CuPy has no read-only arrays: do not write to one.
        """
        return self.words

    @property
    def residues(self) -> PlainArray[np.uint32]:
        """Residues of the magnitudes, uint32 (n, *shape): a view of the columns, read-only if they are."""
        residues: PlainArray[np.uint32] = layout.residues_of(self._words, self.moduli)
        return residues

    @property
    def sign(self) -> PlainArray[np.uint8]:
        """Signs, uint8: 1 for numbers below 0, else 0."""
        sign: PlainArray[np.uint8] = interval_rns.part(self, "sign")
        return sign

    @property
    def low(self) -> PlainArray[np.float64]:
        """Lower bounds of the intervals of X/M, float64, as multiples of ``2**exponent``."""
        low: PlainArray[np.float64] = interval_rns.part(self, "low")
        return low

    @property
    def upp(self) -> PlainArray[np.float64]:
        """Upper bounds, scaled alike, float64, from 1/2 to less than 1, or 0 for the number 0."""
        upp: PlainArray[np.float64] = interval_rns.part(self, "upp")
        return upp

    @property
    def exponent(self) -> PlainArray[np.int32]:
        """Common exponents of both bounds, int32."""
        exponent: PlainArray[np.int32] = interval_rns.part(self, "exponent")
        return exponent

    def interval(self) -> IntervalEvaluation:
        """Stored intervals of X/M for the magnitudes X."""
        return IntervalEvaluation(self.low, self.upp, self.exponent)

    # ---- operations ---------------------------------------------------------------------------------------

    def __neg__(self) -> Self:
        return functions.negative(self, overflow="raise")

    # ---- other moduli sets --------------------------------------------------------------------------------

    def extend(self, moduli: ModuliSet) -> Self:
        """Extend the numbers to another moduli set (base extension), exactly.

        Parameters
        ----------
        moduli : ModuliSet
            Usually a larger set. If its product is smaller, each number is checked.

        Returns
        -------
        IntervalRNSArray
            With the same chunks.

        Raises
        ------
        ValueError
            If a number does not fit. It names the number's flat index, the first in its chunk; for a Dask
            array when it is computed.
        """
        check_moduli_set(moduli)
        return type(self)(interval_rns.change_moduli(self, moduli), IntervalRNS(moduli))
