"""Selecting and shaping numbers by methods, with NumPy's names and rules."""

from typing import Any, Generic, Self, TypeVar

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.collection import NumberCollection
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy import convert, indexing
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.lazy_ints import LazyInts

Made = TypeVar("Made", bound="ShapedArray")


class ShapedArray(NumberCollection):
    """An array of numbers with NumPy's indexing, and its methods that change the shape."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """Select numbers as NumPy does; one number alone comes as a Python int (lazily, on Dask).

        Raises
        ------
        IndexError, TypeError, ValueError
            As :func:`.indexing.select` says: those of NumPy.
        """
        try:
            words = indexing.select(self._words, key)
        except indexing.UnknownLengthError:
            return self.compute_chunk_sizes()[key]
        return self._part(words)

    @property
    def vindex(self) -> "_Points[Self]":
        """Select numbers point by point, as Dask's ``vindex``: the axis of the points comes first."""
        return _Points(self)

    def _part(self, words: Any) -> Any:
        """An array of some of the numbers; of words without an axis of numbers, the number itself."""
        if words.ndim > 1:
            return self._with_words(words)
        ints = convert.to_ints(self._with_words(words[:, None]))
        if not isinstance(words, da.Array):
            return ints[0]
        number = ints.map_blocks(_only_item, drop_axis=0, dtype=object, meta=np.empty((), dtype=object))
        return LazyInts.of(number, getattr(self._system, "known_range", None))

    # ---- shape --------------------------------------------------------------------------------------------

    # Each follows NumPy's method of its name: arguments, results and errors. Where no axis would be left, the
    # result is the number itself, as that of an index. Lazy on Dask, with the same bound.

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """The numbers in C order in another shape, given as a tuple or as integers, one of which may be -1.

        Raises
        ------
        ValueError
            If the shape does not hold as many numbers, or the order is not ``"C"``.
        """
        self._check_reshape(order)
        return self._part(shapes.reshape(self._words, shape[0] if len(shape) == 1 else shape))

    def ravel(self, order: str = "C") -> Any:
        """The numbers in C order along one axis."""
        self._check_reshape(order)
        return self._with_words(shapes.reshape(self._words, -1))

    def _check_reshape(self, order: str) -> None:
        if order != "C":
            raise ValueError(f"order must be 'C', got {order!r:.40}; transpose the array first for another")
        self._find_lengths()

    @property
    def T(self) -> Self:  # noqa: N802  (NumPy's name)
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """The array with its axes in another order: reversed, or as given, a tuple or integers.

        Raises
        ------
        ValueError
            If not each axis is named once; AxisError, which is one, if there is no such axis.
        """
        return self._with_words(shapes.transpose(self._words, axes))

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """The array with two axes exchanged; AxisError if there is no such axis."""
        return self._with_words(shapes.swapaxes(self._words, axis1, axis2))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """The array without the axes of length 1, or without those given.

        Raises
        ------
        ValueError
            If an axis given has another length; AxisError if there is no such axis.
        """
        self._find_lengths()
        return self._part(shapes.squeeze(self._words, axis))

    def flip(self, axis: int | tuple[int, ...] | None = None) -> Self:
        """The array in reverse order along all axes, or along those given; as ``numpy.flip``."""
        self._find_lengths()
        return self._with_words(shapes.flip(self._words, axis))

    def roll(self, shift: Any, axis: int | tuple[int, ...] | None = None) -> Self:
        """The array shifted along axes, or in C order; what leaves it at one end enters at the other.

        As ``numpy.roll``.

        Raises
        ------
        TypeError
            If a shift is no integer.
        ValueError
            If shifts and axes do not go together; AxisError, which is one, if there is no such axis.
        """
        self._find_lengths()
        return self._with_words(shapes.roll(self._words, shift, axis))

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Any:
        """The numbers at indices along an axis, or in C order.

        Parameters
        ----------
        indices : integers, of any shape
            An index from the end may be negative. A Dask array makes the result lazy.
        axis : int, optional
            The axis, in whose place the axes of `indices` come.
        out, mode
            There for NumPy, whose ``np.take(x, indices)`` gives them; None and ``"raise"``.

        Raises
        ------
        IndexError
            If an index is out of bounds; for a Dask array of indices when the result is computed.
        TypeError
            If indices are no integers.
        ValueError
            If the mode is another; AxisError, which is one, if there is no such axis.
        """
        self._check_numpys("take", out)
        if mode != "raise":
            raise ValueError(f"mode must be 'raise', got {mode!r:.40}")
        self._find_lengths()
        return self._part(shapes.take(self._words, indices, axis))

    def repeat(self, repeats: Any, axis: int | None = None) -> Self:
        """Each number repeated, along an axis or in C order.

        Parameters
        ----------
        repeats : int, or sequence of int
            How often each number, or each place along the axis, comes.
        axis : int, optional
            The axis.

        Raises
        ------
        TypeError
            If `repeats` are no integers.
        ValueError
            If they are negative or do not suit the axis; AxisError, which is one, if there is no such axis.
        """
        self._find_lengths()
        return self._with_words(shapes.repeat(self._words, repeats, axis))

    def copy(self, order: str = "C") -> Self:  # noqa: ARG002  (there for NumPy)
        """The same numbers in memory of their own, as if anybody could write to either."""
        return self._with_words(self._words.copy())

    def flatten(self, order: str = "C") -> Self:
        """As :meth:`ravel`, in memory of its own."""
        flat: Self = self.ravel(order)
        return flat.copy()


class _Points(Generic[Made]):
    """An array whose axes with indices come before those with slices."""

    def __init__(self, array: Made) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        given = key if isinstance(key, tuple) else (key,)
        indices = [*given, *(slice(None),) * (self._array.ndim - len(given))]
        axes = sorted(range(len(indices)), key=lambda axis: isinstance(indices[axis], slice))
        return self._array.transpose(axes)[tuple(indices[axis] for axis in axes)]


def _only_item(ints: NDArray[np.object_]) -> ScalarInt:
    return ScalarInt(ints[0])
