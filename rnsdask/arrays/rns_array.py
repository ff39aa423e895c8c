"""RNSArray: an array of integers held as residues, on NumPy, CuPy or Dask."""

from typing import Any, ClassVar, SupportsIndex

import dask.array as da
import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays import rns_storage
from rnsdask.arrays.elementary_array import ElementaryArray
from rnsdask.arrays.ring_array import Axis, without_axes
from rnsdask.arrays.storage import Storage
from rnsdask.backend import check_backend
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.lazy import axis as axis_reductions
from rnsdask.lazy import convert, divide, foreign, moments, scan, topk
from rnsdask.lazy.check import checked, readable, within_bound
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import made_like
from rnsdask.rns.axis_products import bound_of_products
from rnsdask.rns.axis_scan import AxisExtrema, AxisProducts, AxisSums, LineScan, Scan
from rnsdask.rns.foreign import system_of
from rnsdask.rns.interval import IntervalEvaluation
from rnsdask.rns.system import RNS
from rnsdask.rns.topk import select as topk_of_chunk


class RNSArray(ElementaryArray):
    """An array of exact integers in a residue number system.

    It composes an array of residues with the moduli set that they belong to. If the residues are a Dask
    array, it is a Dask collection and everything is lazy; if they are a NumPy or CuPy array, results come
    at once, computed on that array's processor.

    Make one with :func:`.from_ints`, :func:`.from_residues`, :func:`.random` or :func:`.open_zarr`.

    Parameters
    ----------
    words : array of uint32, shape (n, *shape)
        Residues: row i of every number is below ``moduli[i]``, which this class does not check
        (:func:`.from_residues` does). A Dask array is rechunked so that the residue axis has one chunk. A
        NumPy or CuPy array is not copied: nobody may write to it any more.
    system : RNS
        The moduli set, the range, and a bound of the numbers, which is not checked either.

    Raises
    ------
    TypeError, ValueError
        If residues and system do not fit.
    """

    __slots__ = ()

    system_type = RNS
    storage: ClassVar[Storage] = rns_storage

    # ---- what it is ---------------------------------------------------------------------------------------

    @property
    def residues(self) -> Any:
        """The residues: NumPy, CuPy or Dask array of uint32, shape (n, *shape).

        A NumPy array is read-only. CuPy knows no such arrays: do not write to it. :meth:`with_residues` makes
        an array of other residues.
        """
        return self.words

    @property
    def signed(self) -> bool:
        """Whether the range is symmetric around 0."""
        return bool(self.system.signed)

    @property
    def bound(self) -> int | None:
        """An upper bound of every magnitude, or None if none is known."""
        bound: int | None = self.system.bound
        return bound

    def with_residues(self, residues: Any, bound: int | None = None, *, trusted: bool = False) -> "RNSArray":
        """An array of the same moduli set and range with other residues, checked as by `from_residues`.

        Parameters
        ----------
        residues : NumPy, CuPy or Dask array of uint32, shape (n, *shape)
            Of any shape and kind, such as a changed copy of :attr:`residues`.
        bound : int, optional
            Every number must be at most this in magnitude. This array's bound is not passed on.
        trusted : bool
            Take the array as it is: neither checked nor copied.
        """
        return array_of_residues(residues, self.system.with_bound(bound), trusted=trusted)

    def with_bound(self, bound: SupportsIndex | None, *, trusted: bool = False) -> "RNSArray":
        """The same numbers with another bound.

        Parameters
        ----------
        bound : int or None
            Every number must be at most this in magnitude; None forgets the bound. One beyond the range is
            cut down to it.
        trusted : bool
            Do not check the numbers. A wrong bound makes wrong results.

        Raises
        ------
        TypeError, ValueError
            If it is no integer, or negative.
        ValueError
            If a number is beyond it, naming the first; for a Dask array when a chunk is computed. Numbers are
            not looked at where the bound that they have already is not greater.
        """
        system = self.system.with_bound(None if bound is None else as_integer(bound, "bound"))
        is_proved = trusted or self.system.known_magnitude <= system.known_magnitude
        return RNSArray(self._words if is_proved else within_bound(self._words, system), system)

    # ---- reductions ---------------------------------------------------------------------------------------

    def max(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Maximum of all numbers or along axes, exact.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it.
        out : None
            There for NumPy, whose ``np.max(x)`` gives it.
        keepdims : bool
            Keep the axes reduced, with length 1.

        Returns
        -------
        int or RNSArray
            Of all numbers a Python int; on Dask a lazy 0-d array that computes to one. Along some axes, or
            with `keepdims`, an RNSArray like this one.

        Raises
        ------
        ValueError
            If an axis is wrong, or there are no numbers to choose from.
        """
        self._check_numpys("max", out)
        return self._extremum("max", axis, keepdims, split_every)

    def min(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Minimum of all numbers or along axes, as :meth:`max`."""
        self._check_numpys("min", out)
        return self._extremum("min", axis, keepdims, split_every)

    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Sum of all numbers or along axes, exact also beyond the dynamic range.

        Parameters are those of :meth:`max`. Sums along axes come as an object array of Python ints: in the
        moduli set they might not fit, and the fewest moduli that hold them are known only in the end. Without
        numbers a sum is 0. `dtype` is object, if given.
        """
        self._check_numpys("sum", out, dtype)
        axes = self._axes(axis)
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", "sum", split_every)
        self._find_lengths()
        sums = axis_reductions.sums(self._words, self.system, axes, split_every)
        return sums if keepdims else without_axes(sums, axes)

    def argmax(
        self,
        axis: int | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Smallest flat (C order) index of the maximum, or along one axis its smallest index.

        Of all numbers a Python int; on Dask lazy, as :meth:`max`. Along an axis, or with `keepdims`, an
        int64 array.
        """
        self._check_numpys("argmax", out)
        return self._place(axis, keepdims, False, split_every)

    def argmin(
        self,
        axis: int | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Smallest index of the minimum, as :meth:`argmax`."""
        self._check_numpys("argmin", out)
        return self._place(axis, keepdims, True, split_every)

    def _extrema(self, axes: tuple[int, ...], minimum: bool, split_every: int | None) -> tuple[Any, Any]:
        """Residues and places of the extrema along axes, which keep length 1."""
        self._find_lengths()
        if any(self.shape[axis] == 0 for axis in axes):
            name = "min" if minimum else "max"
            raise ValueError(
                f"{name} along an axis of length 0: it needs at least one number, got shape {self.shape}"
            )
        return axis_reductions.extrema(self._words, self.system, axes, minimum, split_every)

    def _extremum(self, name: str, axis: Axis | None, keepdims: bool, split_every: int | None) -> Any:
        axes = self._axes(axis)
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", name, split_every)
        residues, _ = self._extrema(axes, name == "min", split_every)
        residues = residues if keepdims else without_axes(residues, tuple(axis + 1 for axis in axes))
        return self._with_words(residues)

    def _place(self, axis: int | None, keepdims: bool, minimum: bool, split_every: int | None) -> Any:
        if axis is not None:
            axis = self._axes(as_integer(axis, "axis"))[0]
        if axis is None or (self.ndim == 1 and not keepdims):
            index = self._field("index", "min" if minimum else "max", split_every)
            return _as_array(index, self.ndim) if keepdims else index
        _, places = self._extrema((axis,), minimum, split_every)
        return places if keepdims else without_axes(places, (axis,))

    def var(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Variance of all numbers or along axes, exact, as :meth:`mean` gives means.

        Parameters
        ----------
        axis, dtype, out, keepdims
            Those of :meth:`sum`.
        ddof : int
            The sum of the squares of the differences from the mean is divided by the count minus this.
        split_every : int, optional
            How many partial results a task of the tree combines.

        Raises
        ------
        TypeError
            If `ddof` is no integer.
        ValueError
            If an axis is wrong, there are no more numbers than `ddof`, or a length is unknown.
        """
        self._check_numpys("var", out, dtype)
        axes, count = self._axes(axis), self._count("var", axis, ddof)
        variances = moments.variance(self, axes, count, as_integer(ddof, "ddof"), split_every)
        return variances if keepdims else without_axes(variances, axes)

    def topk(self, k: int, axis: int = -1, *, backend: str = "auto") -> Any:
        """The k greatest numbers along an axis in descending order, as Dask defines it.

        Parameters
        ----------
        k : int
            For k < 0, the -k least numbers in ascending order. An axis of fewer numbers gives them all.
        axis : int
            The axis.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array of one axis are gone through, as for :meth:`reduce`; those of
            several axes are where they are.

        Returns
        -------
        object array of Python ints
            In NumPy, with min(abs(k), length) numbers along the axis; for a Dask array lazy.

        Raises
        ------
        ValueError
            If a length is unknown; AxisError, which is one, if there is no such axis.
        """
        return self._selection("values", k, axis, backend)

    def argtopk(self, k: int, axis: int = -1, *, backend: str = "auto") -> Any:
        """Indices (int64) of the numbers that :meth:`topk` gives; of equal ones, the lowest first."""
        return self._selection("indices", k, axis, backend)

    def _selection(self, field: str, k: int, axis: int, backend: str) -> Any:
        axis = normalize_axis_index(as_integer(axis, "axis"), self.ndim)
        k = as_integer(k, "k")
        self._find_lengths()
        check_backend(backend)
        if self.ndim > 1:
            return topk.along_axis(self._words, self.system, k, axis, field)
        if not self._is_lazy:
            found = topk_of_chunk(self._words, self.system, k)
            return found.values_array() if field == "values" else found.indices_array()
        selection = topk.select(self._words, self.system, k, backend)
        dtype = np.dtype(object if field == "values" else np.int64)
        return topk.selected(selection, field, min(abs(k), len(self)), dtype)

    # ---- scan ---------------------------------------------------------------------------------------------

    def cumsum(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        backend: str = "auto",
    ) -> "RNSArray":
        """Sums of all numbers up to each one along an axis, exactly.

        On Dask, one pass over the chunks gives their sums and a second one writes, with the same chunks. The
        array is made, or read, in each of them, so that it need not fit in memory.

        Parameters
        ----------
        axis : int, optional
            The axis; without it the result is that of :meth:`ravel`, as NumPy's.
        dtype, out
            There for NumPy, whose ``np.cumsum(x)`` gives them.
        backend : {"auto", "cpu", "cuda"}
            Where the first pass over a Dask array's chunks computes, as for :meth:`reduce`. The second one
            does so where they are.

        Raises
        ------
        ValueError
            If there is no such axis, or a length is unknown.
        RNSOverflowError
            If a sum is out of range, naming the first one; for a Dask array when it is computed, naming
            the first one of a chunk or the last one before it.
        """
        self._check_numpys("cumsum", out, dtype)
        x, k = self._line(axis)
        bound = None if x.bound is None else x.bound * x.shape[k]
        if x.ndim == 1:
            how: Scan = LineScan(x.system, k, operation="cumsum")
        else:
            how = AxisSums(x.system, k)
        return RNSArray(scan.scan(x.words, how, backend), x.system.with_bound(bound))

    def cumprod(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        overflow: str | None = None,
        backend: str = "auto",
    ) -> Any:
        """Products of all numbers up to each one along an axis, in two passes as :meth:`cumsum`.

        Parameters
        ----------
        axis, dtype, out, backend
            Those of :meth:`cumsum`.
        overflow : {"raise", "wrap", "flag"}, optional
            What happens to products out of range; without it, what :func:`.errstate` set, else ``"raise"``.

        Returns
        -------
        RNSArray
            With ``"wrap"`` the products modulo M; with ``"flag"`` a pair, the same and a Boolean array that
            is true where the exact product is out of range.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range, naming the first one; for a Dask array when it is
            computed, naming the first one of a chunk.
        ValueError
            If there is no such axis, or a length is unknown.
        """
        self._check_numpys("cumprod", out, dtype)
        x, k = self._line(axis)
        mode = overflow_mode(overflow)
        bound = bound_of_products(x.system, x.shape[k])
        is_safe = bound is not None and mode == "raise"
        how = AxisProducts(x.system, k, "wrap" if is_safe else mode)
        return made_like((x,), scan.scan(x.words, how, backend), x.system.with_bound(bound), mode)

    def cummax(self, axis: int | None = None, *, backend: str = "auto") -> "RNSArray":
        """Maxima of all numbers up to each one along an axis, in two passes as :meth:`cumsum`."""
        return self._running_extrema("cummax", axis, backend)

    def cummin(self, axis: int | None = None, *, backend: str = "auto") -> "RNSArray":
        """Minima of all numbers up to each one along an axis, in two passes as :meth:`cumsum`."""
        return self._running_extrema("cummin", axis, backend)

    def _running_extrema(self, operation: str, axis: int | None, backend: str) -> "RNSArray":
        x, k = self._line(axis)
        if x.ndim == 1:
            how: Scan = LineScan(x.system, k, operation=operation)
        else:
            how = AxisExtrema(x.system, k, minimum=operation == "cummin")
        return RNSArray(scan.scan(x.words, how, backend), x.system)

    # ---- division and size --------------------------------------------------------------------------------

    def interval(self, accuracy: float = 1e-7) -> IntervalEvaluation:
        """Interval of X/M for each number: ``low * 2**exponent <= X/M <= upp * 2**exponent``.

        Parameters
        ----------
        accuracy : float
            Upper bound of the relative width of an interval.

        Returns
        -------
        IntervalEvaluation
            Of arrays with this array's shape; lazy on Dask.

        Raises
        ------
        ValueError
            If no evaluation in double precision is that accurate for this moduli set.
        """
        return convert.interval_evaluation(self, accuracy)

    def is_even(self) -> Any:
        """Whether each number is even: a Boolean array of the same shape, lazy on Dask."""
        return divide.is_even(self)

    # ---- other moduli sets --------------------------------------------------------------------------------

    def extend(self, moduli: ModuliSet) -> "RNSArray":
        """The same numbers under another moduli set (base extension), exactly.

        Parameters
        ----------
        moduli : ModuliSet
            Usually a larger set. Its range must hold every number: if neither the ranges nor the array's
            bound prove that, each number is checked, at twice the cost.

        Returns
        -------
        RNSArray
            Signed as this array is, with the same chunks.

        Raises
        ------
        ValueError
            If a number does not fit, naming its flat index, the first in its chunk; for a Dask array when it
            is computed.
        """
        if not isinstance(moduli, ModuliSet):
            raise TypeError(f"moduli must be a ModuliSet, got {type(moduli).__name__}")
        bound, words = self.bound, convert.change_moduli(self, moduli)
        if bound is None and moduli.product > self.moduli.product:
            bound = self.system.greatest_magnitude
        return RNSArray(words, RNS(moduli, self.signed, bound))

    def shrink(self, moduli: ModuliSet) -> "RNSArray":
        """The same numbers under a set of at most as many moduli; otherwise as :meth:`extend`."""
        if len(moduli) > len(self.moduli):
            raise ValueError(f"an array of {len(self.moduli)} moduli cannot shrink to {len(moduli)} moduli")
        return self.extend(moduli)


def array_of_residues(residues: Any, system: RNS, *, trusted: bool) -> RNSArray:
    """Make an array of residues of uint32 as :func:`.from_residues` says."""
    system.check_words(residues)
    residues = readable(residues)
    return RNSArray(residues if trusted else checked(residues, system), system)


def array_of_foreign_residues(
    residues: Any, moduli: ModuliSet | WideModuli, system: RNS, *, trusted: bool
) -> RNSArray:
    """Make an array of residues (n, *shape) of any other integer type, or under wide moduli."""
    # What the moduli prove of the numbers needs no look at them.
    stated = system_of(moduli, system.signed, None).known_magnitude
    array = RNSArray(foreign.words_of_residues(residues, moduli, system, trusted), system)
    if trusted or system.known_magnitude >= stated:
        return array
    return RNSArray(within_bound(array.words, system), system)


def _as_array(index: Any, ndim: int) -> Any:
    """One index, lazy or not, as an int64 array of `ndim` axes."""
    if isinstance(index, da.Array):
        return map_chunks(_index_block, index, chunks=((1,),) * ndim, dtype=np.int64, ndim=ndim)
    return _index_block(index, ndim=ndim)[0]


def _index_block(index: Any, *, ndim: int) -> NDArray[np.int64]:
    return np.full((1,) * (1 + ndim), int(index), dtype=np.int64)
