"""What arrays of integers reduce by words alone: maximum, minimum, sum, and the greatest."""

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays.arithmetic_array import ArithmeticArray
from rnsdask.arrays.ring_array import Axis, without_axes
from rnsdask.backend import check_backend
from rnsdask.core.axes import axis_index
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import axis as axis_reductions
from rnsdask.lazy import topk
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.tree import checked_split


class ReducedArray(ArithmeticArray):
    """An array of integers with `max`, `min`, `sum`, `argmax`, `argmin`, `topk` and `argtopk`."""

    __slots__ = ()

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
            The axes to reduce; all without it. With ``()`` each number is its own result, as in NumPy.
        out : None
            There for NumPy, whose ``np.max(x)`` gives it.
        keepdims : bool
            Keep the axes reduced, with length 1.
        split_every : int, optional
            How many partial results a task of the tree combines, on Dask.

        Returns
        -------
        int or array like this one
            Of all numbers a Python int; on Dask a lazy 0-d array that computes to one. Along some axes, or
            with `keepdims`, such an array.

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
        checked_split(split_every)
        if not axes:
            return self.astype(object)
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
        checked_split(split_every)
        if not axes:
            return self
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", name, split_every)
        residues, _ = self._extrema(axes, name == "min", split_every)
        residues = residues if keepdims else without_axes(residues, tuple(axis + 1 for axis in axes))
        return self._with_words(residues)

    def _place(self, axis: int | None, keepdims: bool, minimum: bool, split_every: int | None) -> Any:
        checked_split(split_every)
        if axis is not None:
            axis = self._axes(as_integer(axis, "axis"))[0]
        if axis is None or (self.ndim == 1 and not keepdims):
            index = self._field("index", "min" if minimum else "max", split_every)
            return _as_array(index, self.ndim) if keepdims else index
        _, places = self._extrema((axis,), minimum, split_every)
        return places if keepdims else without_axes(places, (axis,))

    def topk(self, k: int, axis: int = -1, split_every: int | None = None, *, backend: str = "auto") -> Any:
        """The k greatest numbers along an axis in descending order, as Dask defines it.

        Parameters
        ----------
        k : int
            For k < 0, the -k least numbers in ascending order. An axis of fewer numbers gives them all.
        axis : int
            The axis.
        split_every : int, optional
            How many partial results a task of the tree combines, on Dask.
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
        return self._selection("values", k, axis, split_every, backend)

    def argtopk(
        self, k: int, axis: int = -1, split_every: int | None = None, *, backend: str = "auto"
    ) -> Any:
        """Indices (int64) of the numbers that :meth:`topk` gives; of equal ones, the lowest first."""
        return self._selection("indices", k, axis, split_every, backend)

    def _selection(self, field: str, k: int, axis: int, split_every: int | None, backend: str) -> Any:
        axis = axis_index(axis, self.ndim)
        k = as_integer(k, "k")
        self._find_lengths()
        check_backend(backend)
        checked_split(split_every)
        if self.ndim > 1:
            return topk.along_axis(self._words, self.system, k, axis, field, split_every)
        if not self._is_lazy:
            found = topk.select_of_chunk(self._words, self.system, k)
            return found.values_array() if field == "values" else found.indices_array()
        selection = topk.select(self._words, self.system, k, backend, split_every)
        dtype = np.dtype(object if field == "values" else np.int64)
        return topk.selected(selection, field, min(abs(k), len(self)), dtype)


def _as_array(index: Any, ndim: int) -> Any:
    """One index, lazy or not, as an int64 array of `ndim` axes."""
    if isinstance(index, da.Array):
        return map_chunks(_index_block, index, chunks=((1,),) * ndim, dtype=np.int64, ndim=ndim)
    return _index_block(index, ndim=ndim)[0]


def _index_block(index: Any, *, ndim: int) -> NDArray[np.int64]:
    return np.full((1,) * (1 + ndim), int(index), dtype=np.int64)
