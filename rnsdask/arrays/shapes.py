"""Indexing and shapes: the mixin of number arrays that selects and moves numbers, without computing."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, Generic, Self, SupportsIndex, TypeAlias, TypeVar, overload

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays import showing
from rnsdask.arrays.collection import NumberCollection
from rnsdask.core.axes import axis_indices
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.core.ways import must
from rnsdask.lazy import convert, functions, indexing
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.typing import Axis, Integer, Integers, PlainArray, Shape

ArrayType = TypeVar("ArrayType", bound="Shapes")

AxisIndices: TypeAlias = "slice | EllipsisType | list[Any] | NDArray[Any] | da.Array | PlainArray[Any] | None"
"""Indices that keep an axis."""

_CUT_AT_ONCE = 2**20
"""Most bytes of a slice that is computed at once, if the lazy array is in this process's memory."""


class Shapes(NumberCollection):
    """NumPy's indexing and shapes.

    Each method follows NumPy's in arguments, results and errors. If no axis would be left, the result is the
    number itself. Results are lazy on Dask, with the same bound.
    """

    __slots__ = ()

    # ---- indexing -----------------------------------------------------------------------------------------

    @overload
    def __getitem__(self, key: AxisIndices) -> Self: ...
    @overload
    def __getitem__(self, key: tuple[slice | None, *tuple[Any, ...]]) -> Self: ...
    @overload
    def __getitem__(self, key: tuple[Any, slice | None, *tuple[Any, ...]]) -> Self: ...
    @overload
    def __getitem__(self, key: SupportsIndex | tuple[Any, ...]) -> Self | Integer: ...
    def __getitem__(self, key: Any) -> Self | Integer:
        """Select numbers as in NumPy; a single number is returned as a Python int (lazy on Dask).

        Raises
        ------
        IndexError, TypeError, ValueError
            As in NumPy.
        """
        try:
            words = indexing.select(self._words, key)
        except indexing.UnknownLengthError:
            again: Self | Integer = self.compute_chunk_sizes()[key]
            return again
        parts = key if isinstance(key, tuple) else (key,)
        if (
            isinstance(words, da.Array)
            and words.ndim > 1
            and all(isinstance(part, int | slice | EllipsisType | None) for part in parts)
            and words.size * words.dtype.itemsize <= _CUT_AT_ONCE
            and showing.is_in_memory(self._words)
        ):  # its repr shows the numbers too
            words = as_lazy(words.compute(scheduler="sync"), words.chunks)
        part: Self | Integer = self._part(words)
        return part

    @property
    def vindex(self) -> _Points[Self]:
        """Select numbers point by point, as Dask's ``vindex``: the axis of the points comes first."""
        return _Points(self)

    def _part(self, words: Any) -> Any:
        """Return an array of selected words, or the number itself if they have no axis of numbers."""
        if words.ndim > 1:
            return self._with_words(words)
        ints = convert.to_ints(self._with_words(words[:, None]))
        if not isinstance(words, da.Array):
            return ints[0]
        number = ints.map_blocks(_only_item, drop_axis=0, dtype=object, meta=np.empty((), object))
        return LazyInts.of(number, self._system.known_range)

    def nonzero(self) -> tuple[PlainArray[np.int64], ...]:
        """Return the indices of numbers other than 0, an int64 array for each axis; as ``numpy.nonzero``.

        For a lazy array their length is unknown.
        """
        self._find_lengths()
        places: tuple[PlainArray[np.int64], ...] = indexing.nonzero(functions.relate(self, "!=", 0))
        return places

    # ---- shape --------------------------------------------------------------------------------------------

    def reshape(self, *shape: Shape, order: str = "C") -> Self:
        """Change the shape, in C order, to a tuple or integers, one of which may be -1.

        Raises
        ------
        ValueError
            If the shape has another size, or the order is not ``"C"``.
        """
        self._check_reshape(order)
        shaped: Self = self._part(shapes.reshape(self._words, shape[0] if len(shape) == 1 else shape))
        return shaped

    def ravel(self, order: str = "C") -> Self:
        """Return the numbers in C order along one axis."""
        self._check_reshape(order)
        return self._with_words(shapes.reshape(self._words, -1))

    def _check_reshape(self, order: str) -> None:
        if order != "C":
            raise ValueError(f"order must be 'C', got {order!r:.40}; transpose the array first for another")
        self._find_lengths()

    def flatten(self, order: str = "C") -> Self:
        """Return a copy of the numbers in C order along one axis."""
        return self.ravel(order).copy()

    def copy(self, order: str = "C") -> Self:  # noqa: ARG002  (there for NumPy)
        """Return a copy in memory of its own."""
        return self._with_words(self._words.copy())

    @property
    def T(self) -> Self:  # noqa: N802  (NumPy's name)
        """Return the array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Shape | None) -> Self:
        """Reorder the axes: reversed, or as given by a tuple or integers.

        Raises
        ------
        ValueError
            If an axis is missing or repeated; AxisError, a ValueError, if an axis is out of range.
        """
        return self._with_words(shapes.transpose(self._words, axes))

    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex) -> Self:
        """Exchange two axes; AxisError if an axis is out of range."""
        return self._with_words(shapes.swapaxes(self._words, axis1, axis2))

    def squeeze(self, axis: Axis | None = None) -> Self:
        """Remove all axes of length 1, or the given ones.

        Raises
        ------
        ValueError
            If an axis given has another length; AxisError if an axis is out of range.
        """
        self._find_lengths()
        squeezed: Self = self._part(shapes.squeeze(self._words, axis))
        return squeezed

    def flip(self, axis: Axis | None = None) -> Self:
        """Reverse the order along all axes, or along the given ones; as ``numpy.flip``."""
        self._find_lengths()
        return self._with_words(shapes.flip(self._words, axis))

    def roll(self, shift: Shape, axis: Axis | None = None) -> Self:
        """Shift the numbers cyclically along axes, or in C order, as ``numpy.roll``.

        As ``numpy.roll``.

        Raises
        ------
        TypeError
            If a shift is not an integer.
        ValueError
            If shifts and axes do not match in number; AxisError, a ValueError, if the axis is out of range.
        """
        self._find_lengths()
        return self._with_words(shapes.roll(self._words, shift, axis))

    @overload
    def take(  # type: ignore[overload-overlap]  # one index is not several
        self, indices: SupportsIndex, axis: SupportsIndex | None = None, out: None = None, mode: str = "raise"
    ) -> Self | Integer: ...
    @overload
    def take(
        self, indices: Integers, axis: SupportsIndex | None = None, out: None = None, mode: str = "raise"
    ) -> Self: ...
    def take(
        self, indices: Integers, axis: SupportsIndex | None = None, out: None = None, mode: str = "raise"
    ) -> Self | Integer:
        """Select the numbers at indices along an axis, or in C order.

        Parameters
        ----------
        indices : integers, of any shape
            A negative index counts from the end. A Dask array makes the result lazy.
        axis : int, optional
            The axis, which the axes of `indices` replace.
        out, mode
            Must be None and ``"raise"``; ``np.take(x, indices)`` passes them.

        Raises
        ------
        IndexError
            If an index is out of bounds; for a Dask array of indices when the result is computed.
        TypeError
            If indices are not integers.
        ValueError
            If the mode is not ``"raise"``; AxisError, a ValueError, if the axis is out of range.
        """
        self._check_numpys("take", out)
        if mode != "raise":
            raise ValueError(must("mode", f"be 'raise', got {mode!r:.40}"))
        self._find_lengths()
        taken: Self | Integer = self._part(shapes.take(self._words, indices, axis))
        return taken

    def repeat(self, repeats: Shape, axis: SupportsIndex | None = None) -> Self:
        """Repeat each number, along an axis or in C order.

        Parameters
        ----------
        repeats : int, or sequence of int
            Number of repetitions, for all numbers or for each position along the axis.
        axis : int, optional
            The axis.

        Raises
        ------
        TypeError
            If `repeats` are not integers.
        ValueError
            If they are negative or do not fit the axis; AxisError, a ValueError, if the axis is out of range.
        """
        self._find_lengths()
        return self._with_words(shapes.repeat(self._words, repeats, axis))

    def diagonal(self, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> Self:
        """Return the numbers whose indices along two axes differ by `offset`, as ``ndarray.diagonal``.

        Returns
        -------
        array like this one
            The diagonal is its last axis, instead of the two axes; lazy if this array is.

        Raises
        ------
        ValueError
            If the axes are the same, or a length is unknown; AxisError, a ValueError, if the axis is out of
            range.
        """
        self._find_lengths()
        first, second = as_integer(axis1, "axis1"), as_integer(axis2, "axis2")
        return self._with_words(shapes.diagonal(self._words, as_integer(offset, "offset"), first, second))

    # ---- shared by mixins of reductions --------------------------------------------------------------------

    def _axes(self, axis: Axis | None) -> tuple[int, ...]:
        """Check the axes to reduce, and return them in ascending order; () makes each number a result."""
        axes = tuple(range(self.ndim)) if axis is None else axis_indices(axis, self.ndim)
        return tuple(sorted(axes))

    def _check_numpys(self, function: str, out: Any, dtype: DTypeLike | None = None) -> None:
        """Refuse unsupported arguments that NumPy's functions pass on, as ``np.sum(x, out=...)`` does."""
        if out is not None:
            raise TypeError(
                f"{function} of {with_article(type(self))} takes no out: its result is a new object"
            )
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(
                f"{function} of {with_article(type(self))} is exact, got dtype {np.dtype(dtype)}; give none "
                "(xarray's mean and var give one but with skipna=False)"
            )


def _only_item(ints: NDArray[np.object_]) -> ScalarInt:
    """Return the item of a chunk of one integer."""
    return ScalarInt(ints[0])


class _Points(Generic[ArrayType]):
    """Array with the axes of indices before the axes of slices."""

    def __init__(self, array: ArrayType) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> ArrayType:
        given = key if isinstance(key, tuple) else (key,)
        indices = [*given, *(slice(None),) * (self._array.ndim - len(given))]
        axes = sorted(range(len(indices)), key=lambda axis: isinstance(indices[axis], slice))
        found: ArrayType = self._array.transpose(axes)[tuple(indices[axis] for axis in axes)]
        return found
