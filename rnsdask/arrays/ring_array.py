"""What arrays of elements of any ring do alike: sums, products, equality, what is not 0, diagonals."""

from typing import Any, Self, TypeAlias

from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.operators import deferring
from rnsdask.core.axes import axis_indices
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import functions, matmul, shape
from rnsdask.lazy.operands import Operand
from rnsdask.lazy.tree import checked_split

Axis: TypeAlias = int | tuple[int, ...]


class RingArray(NumberArray):
    """An array with ``+ - *``, ``@``, ``== !=``, `any`, `all` and diagonals."""

    __slots__ = ()

    @deferring
    def __add__(self, other: Operand) -> Any:
        return functions.add(self, other)

    def __radd__(self, other: Operand) -> Any:
        return functions.add(other, self)

    @deferring
    def __sub__(self, other: Operand) -> Any:
        return functions.subtract(self, other)

    def __rsub__(self, other: Operand) -> Any:
        return functions.subtract(other, self)

    @deferring
    def __mul__(self, other: Operand) -> Any:
        return functions.multiply(self, other)

    def __rmul__(self, other: Operand) -> Any:
        return functions.multiply(other, self)

    def __neg__(self) -> Any:
        return functions.negative(self)

    def __pos__(self) -> Self:
        return self

    @deferring
    def __matmul__(self, other: Any) -> Any:
        return matmul.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul.matmul(other, self)

    # ---- equality ------------------------------------------------------------------------------------------

    @deferring
    def __eq__(self, other: Operand) -> Any:
        return functions.relate(self, "==", other)

    @deferring
    def __ne__(self, other: Operand) -> Any:
        return functions.relate(self, "!=", other)

    # Another type is an error for == too: False would be no answer. As NumPy's and Dask's arrays, == does not
    # return one bool, so there can be no hash.
    __hash__ = None  # type: ignore[assignment]

    # ---- numbers that are not 0 ---------------------------------------------------------------------------

    def any(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Whether some number is not 0, of all or along axes.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it.
        out : None
            There for NumPy, whose ``np.any(x)`` gives it.
        keepdims : bool
            Keep the axes reduced, with length 1.
        split_every : int, optional
            How many partial results a task of the tree combines, on Dask.

        Returns
        -------
        bool or Boolean array
            Of all numbers a bool; a NumPy or CuPy array along axes; lazy on Dask. False of no numbers.

        Raises
        ------
        ValueError
            If an axis is wrong.
        """
        self._check_numpys("any", out)
        return self._truth("any", axis, keepdims, split_every)

    def all(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Whether no number is 0, of all or along axes, as :meth:`any`; True of no numbers."""
        self._check_numpys("all", out)
        return self._truth("all", axis, keepdims, split_every)

    def _truth(self, name: str, axis: Axis | None, keepdims: bool, split_every: int | None) -> Any:
        """Reduce where numbers are not 0 by NumPy's, CuPy's or Dask's method."""
        axes, count = self._axes(axis), checked_split(split_every)
        options = {"split_every": max(2, count)} if self._is_lazy and count is not None else {}
        is_nonzero = self != 0
        found = getattr(is_nonzero, name)(axis=axes, keepdims=keepdims, **options) if axes else is_nonzero
        return found if found.ndim or self._is_lazy else bool(found)

    def _axes(self, axis: Axis | None) -> tuple[int, ...]:
        """Check the axes to reduce; ascending. With none of them each number is a result."""
        axes = tuple(range(self.ndim)) if axis is None else axis_indices(axis, self.ndim)
        return tuple(sorted(axes))

    # ---- diagonals ----------------------------------------------------------------------------------------

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """The numbers whose indices along two axes differ by `offset`, as ``ndarray.diagonal``.

        Returns
        -------
        RNSArray or IntervalRNSArray
            Without the two axes, and with one more, the last, along the diagonal; lazy if this array is.

        Raises
        ------
        ValueError
            If the axes are the same, or a length is unknown; AxisError, which is one, if there is no such
            axis.
        """
        self._find_lengths()
        return self._with_words(shape.diagonal(self._words, as_integer(offset, "offset"), axis1, axis2))

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, out: None = None) -> Any:
        """Sum of the numbers of a diagonal, as :meth:`diagonal` and `sum` take and give them."""
        self._check_numpys("trace", out)
        return self.diagonal(offset, axis1, axis2).sum(-1)


def without_axes(array: Any, axes: tuple[int, ...]) -> Any:
    """Leave out axes of length 1."""
    return array[tuple(0 if axis in axes else slice(None) for axis in range(array.ndim))]
