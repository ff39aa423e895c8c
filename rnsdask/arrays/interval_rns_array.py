"""IntervalRNSArray: an array of signed integers with stored intervals, on NumPy, CuPy or Dask."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnsdask import store
from rnsdask.arrays.elementary_array import ElementaryArray
from rnsdask.arrays.interval_rns_storage import read_array, write_array
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.backend import backend_name
from rnsdask.core import layout as array_layout
from rnsdask.core.errors import brief
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy import interval_rns
from rnsdask.lazy.check import checked_residues
from rnsdask.rns.interval import IntervalEvaluation
from rnsdask.rns.system import RNS


class IntervalRNSArray(ElementaryArray):
    """An array of exact signed integers: sign, residues of the magnitude, and an interval of X/M.

    The range is from ``-(M-1)`` to ``M-1``. Sign and comparison come from the stored intervals; residues
    are looked at only where intervals touch. If the columns are a Dask array, it is a Dask collection and
    everything is lazy.

    Make one with :meth:`from_ints`, :meth:`from_rns`, :meth:`from_residues` or :func:`.open_zarr`.

    Parameters
    ----------
    words : array of uint32, shape (n + 6, *shape)
        Residues and headers as :mod:`rnsdask.interval_rns.layout` defines them, which this class does not
        check. A NumPy or CuPy array is not copied: nobody may write to it any more.
    system : IntervalRNS
        The number system, of n moduli.

    Raises
    ------
    TypeError, ValueError
        If words and system do not fit.
    """

    __slots__ = ()

    system_type = IntervalRNS

    # ---- ways to make one ---------------------------------------------------------------------------------

    @classmethod
    def from_ints(
        cls, ints: Iterable[Any], moduli: ModuliSet, chunks: array_layout.Chunks | None = None
    ) -> "IntervalRNSArray":
        """Make an array of exact integers.

        Parameters
        ----------
        ints : iterable of integers, nested lists, or NumPy array
            The numbers, as :func:`rnsdask.from_ints` takes them.
        moduli : ModuliSet
            The moduli set; every magnitude is below M.
        chunks : "auto", int, tuple of int, or None
            Chunks of a Dask array, along the axes of the numbers; None for a NumPy array.

        Raises
        ------
        TypeError
            If a value is not an integer.
        ValueError
            If a value is out of range. Both errors name the position.
        """
        system = IntervalRNS(moduli)
        array = cls(system.encode(ints), system)
        return array if chunks is None else array.rechunk(chunks)

    @classmethod
    def from_residues(cls, residues: Any, sign: Any, moduli: ModuliSet) -> "IntervalRNSArray":
        """Make an array from residues of magnitudes (n, *shape), uint32, and signs (*shape), 0 or 1.

        NumPy or CuPy, both on one processor. Intervals are evaluated.

        Raises
        ------
        TypeError, ValueError
            If dtype, shape, a residue or a sign is wrong.
        """
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
    def from_rns(cls, x: RNSArray) -> "IntervalRNSArray":
        """Make an array of the numbers of an RNSArray, signed or not; lazy if that is."""
        if not isinstance(x, RNSArray):
            raise TypeError(f"from_rns takes an RNSArray, got {type(x).__name__}")
        return cls(interval_rns.columns_of(x), IntervalRNS(x.moduli))

    def to_rns(self, signed: bool = True) -> RNSArray:
        """The numbers as an RNSArray of the same moduli set; lazy if this array is.

        Raises
        ------
        ValueError
            If a number is outside of its range, naming the first one's flat index, the first in its chunk;
            for a Dask array when it is computed.
        """
        system = RNS(self.moduli, signed)
        return RNSArray(interval_rns.residues_of(self, system), system)

    # ---- what it is ---------------------------------------------------------------------------------------

    @property
    def columns(self) -> Any:
        """Residues and headers, uint32 (n + 6, *shape), as :mod:`rnsdask.interval_rns.layout` defines them.

        A NumPy array is read-only. CuPy knows no such arrays: do not write to it.
        """
        return self.words

    @property
    def residues(self) -> Any:
        """Residues of the magnitudes, uint32 (n, *shape): part of the columns, and read-only as they are."""
        return layout.residues_of(self._words, self.moduli)

    @property
    def sign(self) -> Any:
        """Signs, uint8: 1 for numbers below 0, else 0."""
        return interval_rns.part(self, "sign")

    @property
    def low(self) -> Any:
        """Lower bounds of the intervals of X/M, float64, before the factor ``2**exponent``."""
        return interval_rns.part(self, "low")

    @property
    def upp(self) -> Any:
        """Upper bounds, float64, from 1/2 to less than 1; 0 for 0."""
        return interval_rns.part(self, "upp")

    @property
    def exponent(self) -> Any:
        """Exponents of both bounds, int32."""
        return interval_rns.part(self, "exponent")

    def interval(self) -> IntervalEvaluation:
        """The stored intervals of X/M, of the magnitudes."""
        return IntervalEvaluation(self.low, self.upp, self.exponent)

    # ---- operations ---------------------------------------------------------------------------------------

    def __neg__(self) -> Any:
        return interval_rns.negative(self, overflow="raise")

    def max(self, axis: None = None, out: None = None) -> Any:
        """Maximum of all numbers, exact: a Python int; on Dask a lazy 0-d array that computes to one.

        `axis` and `out` are there for NumPy, whose ``np.max(x)`` gives them.
        """
        self._check_whole("max", axis, out)
        return self._field("value", "max")

    def min(self, axis: None = None, out: None = None) -> Any:
        """Minimum of all numbers, as :meth:`max`."""
        self._check_whole("min", axis, out)
        return self._field("value", "min")

    def sum(self, axis: None = None, dtype: DTypeLike | None = None, out: None = None) -> Any:
        """Sum of all numbers, exact also beyond the range, as :meth:`max`; of no numbers 0."""
        self._check_whole("sum", axis, out, dtype)
        return self._field("value", "sum")

    def _check_whole(self, function: str, axis: Any, out: Any, dtype: DTypeLike | None = None) -> None:
        self._check_numpys(function, out, dtype)
        if axis is not None and (self.ndim > 1 or axis not in (0, -1)):
            raise ValueError(
                f"{function} of an IntervalRNSArray is that of all numbers, got axis {axis!r:.40}; "
                "to_rns() makes an RNSArray, which reduces along axes"
            )

    def argmax(self, axis: None = None, out: None = None) -> Any:
        """Smallest flat (C order) index of the maximum, as :meth:`max`."""
        self._check_whole("argmax", axis, out)
        return self._field("index", "max")

    def argmin(self, axis: None = None, out: None = None) -> Any:
        """Smallest flat (C order) index of the minimum, as :meth:`max`."""
        self._check_whole("argmin", axis, out)
        return self._field("index", "min")

    # ---- storage ------------------------------------------------------------------------------------------

    def to_zarr(
        self,
        path: store.StorePath,
        *,
        chunks: array_layout.Chunks = "auto",
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the array to a new Zarr group, chunk by chunk (docs/store-format.md).

        Parameters
        ----------
        path, storage_options
            Where: as :func:`rnsdask.open_zarr` takes them.
        chunks
            The stored chunks along each axis, as :meth:`rechunk` takes them.
        overwrite
            Whether to replace such a group that `path` holds already. It stays until the new one is whole.

        Raises
        ------
        StoreError
            If there is something else at `path`, or it cannot be written.
        """
        location = store.locate(path, storage_options)
        write_array(self.rechunk(chunks).columns, self.moduli, location, overwrite)


def open_group(location: store.Location) -> IntervalRNSArray:
    """Open a complete group, as :func:`rnsdask.open_zarr` says."""
    columns, moduli = read_array(location)
    return IntervalRNSArray(columns, IntervalRNS(moduli))
