"""What arrays of every number system with arithmetic have of NumPy's elementary methods."""

from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import DTypeLike

from rnsdask.arrays.arithmetic_array import ArithmeticArray
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import functions, moments, shape
from rnsdask.lazy.operands import Operand

Axis: TypeAlias = int | tuple[int, ...]


class ElementaryArray(ArithmeticArray):
    """An array of numbers with absolute values, `clip`, `any`, `all`, and statistics of its reductions."""

    __slots__ = ()

    def __abs__(self) -> Any:
        return functions.absolute(self)

    def clip(
        self,
        min: Operand | None = None,  # noqa: A002
        max: Operand | None = None,  # noqa: A002
        out: None = None,
    ) -> Any:
        """The numbers, but none below `min` or above `max`: :func:`.clip`; `out` is there for NumPy."""
        self._check_numpys("clip", out)
        return functions.clip(self, min, max)

    # ---- numbers that are not 0 ---------------------------------------------------------------------------

    def any(self, axis: Axis | None = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Whether some number is not 0, of all or along axes.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it.
        out : None
            There for NumPy, whose ``np.any(x)`` gives it.
        keepdims : bool
            Keep the axes reduced, with length 1.

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
        found = (self != 0).any(axis=self._axes(axis), keepdims=keepdims)
        return found if found.ndim or self._is_lazy else bool(found)

    def all(self, axis: Axis | None = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Whether no number is 0, of all or along axes, as :meth:`any`; True of no numbers."""
        self._check_numpys("all", out)
        found = (self != 0).all(axis=self._axes(axis), keepdims=keepdims)
        return found if found.ndim or self._is_lazy else bool(found)

    def _axes(self, axis: Axis | None) -> tuple[int, ...]:
        """Check the axes to reduce; ascending."""
        axes = tuple(range(self.ndim)) if axis is None else normalize_axis_tuple(axis, self.ndim, "axis")
        if not axes:
            raise ValueError("axis must name at least one axis, got ()")
        return tuple(sorted(axes))

    # ---- statistics ---------------------------------------------------------------------------------------

    def mean(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Mean of all numbers or along axes, exact.

        Parameters are those of `sum`.

        Returns
        -------
        fractions.Fraction
            On Dask a lazy 0-d array that computes to one. Along some axes, or with `keepdims`, an object
            array of them.

        Raises
        ------
        ValueError
            If an axis is wrong, there are no numbers, or a length is unknown.
        """
        self._check_numpys("mean", out, dtype)
        count = self._count("mean", axis)
        options = {"keepdims": True} if keepdims else {}
        return moments.mean(self.sum(axis, **options), count)  # type: ignore[attr-defined]

    def std(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, for a standard deviation is irrational as a rule.

        Raises
        ------
        TypeError
            Always; it names the way out.
        """
        raise TypeError(
            f"std of an {type(self).__name__} would not be exact: it is the root of var(), which is, and "
            "which math.sqrt(x.var()) takes to a float"
        )

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
        self._check_lengths("diagonal")
        return self._with_words(shape.diagonal(self._words, as_integer(offset, "offset"), axis1, axis2))

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, out: None = None) -> Any:
        """Sum of the numbers of a diagonal, as :meth:`diagonal` and `sum` take and give them."""
        self._check_numpys("trace", out)
        return self.diagonal(offset, axis1, axis2).sum(-1)

    def _count(self, function: str, axis: Axis | None, ddof: int = 0) -> int:
        """How many numbers are reduced to one; ValueError if they are too few, or it is unknown."""
        self._check_lengths(function)
        freedom = as_integer(ddof, "ddof")
        count = int(np.prod([self.shape[k] for k in self._axes(axis)], dtype=object))
        if count <= max(freedom, 0):
            needed = (
                "at least one number" if freedom <= 0 else f"more numbers than ddof={abbreviate(freedom)}"
            )
            raise ValueError(f"{function} needs {needed}, got {count} of shape {self.shape}")
        return count
