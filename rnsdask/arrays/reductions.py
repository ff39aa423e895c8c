"""Reductions: the mixins with sums, extrema and other reductions, of all numbers or along axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, NoReturn, Self, SupportsIndex, TypeVar, overload

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays.conversion import Conversion
from rnsdask.backend import check_backend
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate, with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.lazy import axis as axis_reductions
from rnsdask.lazy import fields, products, tree
from rnsdask.lazy import topk as selections
from rnsdask.lazy.chunk_reductions import reduce_words
from rnsdask.lazy.growing import extends
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.lazy.operands import fill_like
from rnsdask.lazy.tree import checked_split
from rnsdask.typing import Axis, Flag, Integer, Overflow, PlainArray, Rational, SplitEvery

ArrayType = TypeVar("ArrayType", bound="Truth")


class Asked(NamedTuple):
    """Name of a reduction, and arguments of the methods of that name in NumPy and Dask."""

    name: str
    axis: Axis | None
    out: None
    dtype: DTypeLike | None
    keepdims: bool
    split_every: SplitEvery


class Truth(Conversion):
    """Tests for zeros, of all numbers or along axes."""

    __slots__ = ()

    def any(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.bool_]:
        """Whether any number differs from 0, of all or along axes.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it.
        out : None
            Must be None; NumPy passes it.
        keepdims : bool
            Keep the axes reduced, with length 1.
        split_every : int or dict, optional
            Number of partial results that one task combines on Dask, in all or for each axis.

        Returns
        -------
        bool or Boolean array
            A bool for all numbers; a NumPy or CuPy array along axes; lazy on Dask. False without numbers.

        Raises
        ------
        ValueError
            If an axis is wrong.
        """
        truth: PlainArray[np.bool_] = _truth(self, Asked("any", axis, out, None, keepdims, split_every))
        return truth

    def all(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.bool_]:
        """Whether all numbers differ from 0, of all or along axes, as :meth:`any`; True without numbers."""
        truth: PlainArray[np.bool_] = _truth(self, Asked("all", axis, out, None, keepdims, split_every))
        return truth


class Reductions(Truth):
    """Extrema, sums, products, means and running results of integers, of all numbers or along axes."""

    __slots__ = ()

    # ---- extrema ------------------------------------------------------------------------------------------

    @overload
    def max(
        self,
        axis: None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def max(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Self: ...
    def max(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | Self:
        """Maximum of all numbers or along axes, exact.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it. With ``()`` each number is its own result, as in NumPy.
        out : None
            Must be None; NumPy passes it.
        keepdims : bool
            Keep the axes reduced, with length 1.
        split_every : int or dict, optional
            Number of partial results that one task combines on Dask, in all or for each axis.

        Returns
        -------
        int or array like this one
            For all numbers a Python int; on Dask a lazy 0-d array that computes to one. Along some axes, or
            with `keepdims`, an array like this one.

        Raises
        ------
        ValueError
            If an axis is wrong, or a result would be of no numbers.
        """
        return _extremum(self, Asked("max", axis, out, None, keepdims, split_every))

    @overload
    def min(
        self,
        axis: None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def min(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Self: ...
    def min(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | Self:
        """Minimum of all numbers or along axes, as :meth:`max`."""
        return _extremum(self, Asked("min", axis, out, None, keepdims, split_every))

    @overload
    def argmax(
        self,
        axis: None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def argmax(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.int64]: ...
    def argmax(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | PlainArray[np.int64]:
        """Smallest flat (C order) index of the maximum, or along one axis its smallest index.

        A Python int for all numbers, on Dask lazy as :meth:`max`. Along an axis, or with `keepdims`, an int64
        array.
        """
        place: Integer | PlainArray[np.int64]
        place = _place(self, Asked("argmax", axis, out, None, keepdims, split_every))
        return place

    @overload
    def argmin(
        self,
        axis: None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def argmin(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.int64]: ...
    def argmin(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | PlainArray[np.int64]:
        """Smallest index of the minimum, as :meth:`argmax`."""
        place: Integer | PlainArray[np.int64]
        place = _place(self, Asked("argmin", axis, out, None, keepdims, split_every))
        return place

    def topk(
        self,
        k: SupportsIndex,
        axis: SupportsIndex = -1,
        split_every: SplitEvery = None,
        *,
        backend: str = "auto",
    ) -> PlainArray[np.object_]:
        """Select the k greatest numbers along an axis, in descending order, as in Dask.

        Parameters
        ----------
        k : int
            For k < 0, the -k least numbers in ascending order. All numbers of a shorter axis.
        axis : int
            The axis.
        split_every : int or dict, optional
            Number of partial results that one task combines on Dask, in all or for each axis.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array of one axis are reduced, as for :meth:`reduce`. With several axes
            chunks are reduced where they are.

        Returns
        -------
        object array of Python ints
            On NumPy, with min(abs(k), length) numbers along the axis; lazy for a Dask array.

        Raises
        ------
        ValueError
            If a length is unknown; AxisError, a ValueError, if there is no such axis.
        """
        found: PlainArray[np.object_] = _selection(self, "values", k, axis, split_every, backend)
        return found

    def argtopk(
        self,
        k: SupportsIndex,
        axis: SupportsIndex = -1,
        split_every: SplitEvery = None,
        *,
        backend: str = "auto",
    ) -> PlainArray[np.int64]:
        """Return the indices (int64) of what :meth:`topk` selects; of equal numbers the lowest first."""
        found: PlainArray[np.int64] = _selection(self, "indices", k, axis, split_every, backend)
        return found

    # ---- sums, products and means -------------------------------------------------------------------------

    @overload
    def gcd(
        self,
        axis: None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def gcd(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.object_]: ...
    def gcd(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | PlainArray[np.object_]:
        """Greatest common divisor of all numbers or along axes, as ``numpy.gcd.reduce``; never negative.

        It is 0 without numbers. Parameters are those of :meth:`max`.

        Returns
        -------
        int or object array of Python ints
            For all numbers a Python int; on Dask a lazy 0-d array that computes to one. Along some axes, or
            with `keepdims`, an object array: the magnitude of the lowest number of a signed range may be out
            of range.

        Raises
        ------
        ValueError
            If an axis is wrong.
        """
        return _common(self, "gcd", Asked("gcd", axis, out, None, keepdims, split_every))

    @overload
    def lcm(
        self,
        axis: None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def lcm(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.object_]: ...
    def lcm(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | PlainArray[np.object_]:
        """Least common multiple of all numbers or along axes, as ``numpy.lcm.reduce``: at least 0.

        That of no numbers is 1, as of ``math.lcm``; one of the numbers being 0, it is 0. Parameters are those
        of :meth:`max`.

        Returns
        -------
        int or object array of Python ints
            As those of :meth:`gcd`, of any size: at most as many digits as all numbers have together.

        Raises
        ------
        ValueError
            If an axis is wrong.
        """
        return _common(self, "lcm", Asked("lcm", axis, out, None, keepdims, split_every))

    @overload
    def sum(
        self,
        axis: None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.object_]: ...
    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | PlainArray[np.object_]:
        """Sum of all numbers or along axes, exact even beyond the range.

        Parameters are those of :meth:`max`. Sums along axes are an object array of Python ints: the range
        might not hold them, and how many moduli would is known only at the end. Without numbers a sum is 0.
        `dtype` may only be object.
        """
        return _sum(self, Asked("sum", axis, out, dtype, keepdims, split_every))

    @overload
    def mean(
        self,
        axis: None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Rational: ...
    @overload
    def mean(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.object_]: ...
    def mean(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Rational | PlainArray[np.object_]:
        """Mean of all numbers or along axes, exact.

        Parameters are those of :meth:`sum`.

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
        return _mean(self, Asked("mean", axis, out, dtype, keepdims, split_every))

    @overload
    def prod(
        self,
        axis: None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        overflow: Overflow | None = None,
        split_every: SplitEvery = None,
        backend: str = "auto",
    ) -> Integer: ...
    @overload
    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        overflow: Overflow | None = None,
        split_every: SplitEvery = None,
        backend: str = "auto",
    ) -> Self: ...
    @overload
    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        overflow: Flag,
        split_every: SplitEvery = None,
        backend: str = "auto",
    ) -> tuple[Integer | Self, PlainArray[np.bool_]]: ...
    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        overflow: Overflow | Flag | None = None,
        split_every: SplitEvery = None,
        backend: str = "auto",
    ) -> Integer | Self | tuple[Integer | Self, PlainArray[np.bool_]]:
        """Product of all numbers or along axes, exact; 1 without numbers.

        Parameters
        ----------
        axis, dtype, out, keepdims
            As in :meth:`sum`.
        overflow : {"raise", "wrap", "flag", "extend"}, optional
            What happens to products out of range. The default is the mode set by :func:`.errstate`, else
            ``"extend"`` for arrays whose range grows and ``"raise"`` for others.
        split_every : int or dict, optional
            Number of partial results that one task combines, in all or for each axis.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array are reduced, as for :meth:`reduce`.

        Returns
        -------
        int or array like this one
            For all numbers a Python int, on Dask a lazy 0-d array that computes to one; along some axes, or
            with `keepdims`, an array like this one. With ``"wrap"`` products are reduced modulo M into the
            range; with ``"flag"`` the result is a pair of these and a bool, or Boolean array, that is true
            where the exact product is out of range.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range. It names the product's flat index in the result;
            on Dask when it is computed.
        ValueError
            If an axis is wrong.
        """
        asked = Asked("prod", axis, out, dtype, keepdims, split_every)
        found: Integer | Self | tuple[Integer | Self, PlainArray[np.bool_]] = _prod(
            self, asked, overflow, backend
        )
        return found

    @overload
    def var(
        self,
        axis: None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: SupportsIndex = 0,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Rational: ...
    @overload
    def var(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: SupportsIndex = 0,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> PlainArray[np.object_]: ...
    def var(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: SupportsIndex = 0,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Rational | PlainArray[np.object_]:
        """Variance of all numbers or along axes, an exact fraction as from :meth:`mean`.

        Parameters
        ----------
        axis, dtype, out, keepdims
            As in :meth:`sum`.
        ddof : int
            The sum of the squares of the differences from the mean is divided by the count minus this.
        split_every : int or dict, optional
            Number of partial results that one task combines, in all or for each axis.

        Raises
        ------
        TypeError
            If `ddof` is not an integer.
        ValueError
            If an axis is wrong, there are at most `ddof` numbers, or a length is unknown.
        """
        found: Rational | PlainArray[np.object_]
        found = _var(self, Asked("var", axis, out, dtype, keepdims, split_every), ddof)
        return found

    def std(self, *_: Any, **__: Any) -> NoReturn:
        """Raise TypeError: most standard deviations are irrational.

        Raises
        ------
        TypeError
            Always; it names the way out.
        """
        raise TypeError(
            f"std of {with_article(type(self))} would not be exact: it is the root of the variance, which "
            "math.sqrt(x.var()) takes to a float"
        )

    def trace(
        self,
        offset: SupportsIndex = 0,
        axis1: SupportsIndex = 0,
        axis2: SupportsIndex = 1,
        out: None = None,
    ) -> Integer | PlainArray[np.object_]:
        """Sum of the numbers of a diagonal; arguments as :meth:`diagonal`, results as :meth:`sum`."""
        self._check_numpys("trace", out)
        return self.diagonal(offset, axis1, axis2).sum(-1)


class FieldReductions(Truth):
    """Sums and products of elements of fields, of all or along axes."""

    __slots__ = ()

    @overload
    def sum(
        self,
        axis: None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Self: ...
    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | Self:
        """Sum of all elements or along axes, in each field; 0 without elements.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it.
        dtype, out
            As NumPy passes them: `dtype` object or None, `out` None.
        keepdims : bool
            Keep the axes reduced, with length 1.
        split_every : int or dict, optional
            Number of partial results that one task combines on Dask, in all or for each axis.

        Returns
        -------
        int or FieldArray
            For all elements a Python int, from 0 to M - 1; on Dask a lazy 0-d array that computes to one.

        Raises
        ------
        ValueError
            If an axis is wrong.
        """
        return _reduce_in_fields(self, Asked("sum", axis, out, dtype, keepdims, split_every))

    @overload
    def prod(
        self,
        axis: None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: Literal[False] = False,
        split_every: SplitEvery = None,
    ) -> Integer: ...
    @overload
    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Self: ...
    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: SplitEvery = None,
    ) -> Integer | Self:
        """Product of all elements or along axes, in each field, as :meth:`sum`; 1 without elements."""
        return _reduce_in_fields(self, Asked("prod", axis, out, dtype, keepdims, split_every))

    def trace(
        self,
        offset: SupportsIndex = 0,
        axis1: SupportsIndex = 0,
        axis2: SupportsIndex = 1,
        out: None = None,
    ) -> Integer | Self:
        """Sum of the elements of a diagonal; arguments as :meth:`diagonal`, results as :meth:`sum`."""
        self._check_numpys("trace", out)
        return self.diagonal(offset, axis1, axis2).sum(-1)


# ---- shared by the methods ---------------------------------------------------------------------------------


def _reduce(
    x: Any,
    asked: Asked,
    along: Callable[[tuple[int, ...]], Any],
    whole: Callable[[], Any] | None = None,
    each: Callable[[], Any] | None = None,
) -> Any:
    """Reduce all axes by `whole`, no axes by `each`, others by `along`, which keeps them with length 1."""
    x._check_numpys(asked.name, asked.out, asked.dtype)
    axes = x._axes(asked.axis)
    checked_split(asked.split_every, x.ndim)
    if not axes:
        return x if each is None else each()
    if whole is not None and len(axes) == x.ndim and not asked.keepdims:
        return whole()
    x._find_lengths()
    found = along(axes)
    if asked.keepdims:
        return found
    pair = isinstance(found, tuple)
    return tuple(_drop_axes(part, axes) for part in found) if pair else _drop_axes(found, axes)


def _drop_axes(array: Any, axes: tuple[int, ...]) -> Any:
    """Remove axes of length 1."""
    return array[tuple(0 if axis in axes else slice(None) for axis in range(array.ndim))]


def _field(x: Any, field: str, operation: str, split_every: SplitEvery = None) -> Any:
    """Return one field of the result of a reduction of all numbers."""
    tree.checked_split(split_every, x.ndim)
    if not x._is_lazy:
        return getattr(reduce_in_memory(x, operation), field)
    found = tree.tree_reduce(x._words, x._system, operation, field=field, split_every=split_every)
    return LazyInts.of(found, _range_of_value(x, operation) if field == "value" else None)


def reduce_in_memory(x: Any, operation: str) -> Any:
    """Reduce all numbers of an array in memory."""
    # Keys of signed numbers determine their sum, whatever the size.
    needs_bound = operation in ("max", "min") or (operation == "sum" and not x._system.is_signed)
    system = x._measured_system() if needs_bound else x._system
    return reduce_words(operation, x._words, system)


def _range_of_value(x: Any, operation: str) -> tuple[int, int] | None:
    """Return the least and the greatest possible value of a reduction, or None."""
    if operation not in ("max", "min", "sum") or not x._has_lengths:
        return None
    low, high = x._system.known_range
    return (low, high) if operation != "sum" else (min(0, low * x.size), max(0, high * x.size))


def _truth(x: Any, asked: Asked) -> Any:
    x._check_numpys(asked.name, asked.out)
    axes, told = x._axes(asked.axis), checked_split(asked.split_every, x.ndim)
    most = max(2, *x._words.numblocks) if x._is_lazy else 2  # Dask makes lists as long as this number
    wide = (
        {axis: min(max(2, n), most) for axis, n in told.items()}
        if isinstance(told, Mapping)
        else min(max(2, told or 2), most ** max(1, x.ndim))
    )
    options = {"split_every": wide} if x._is_lazy and told is not None else {}
    found: Any = x != 0
    if axes:
        found = getattr(found, asked.name)(axis=axes, keepdims=asked.keepdims, **options)
    truth: Any = found if found.ndim or x._is_lazy else bool(found)
    return truth


def _extremum(x: ArrayType, asked: Asked) -> Integer | ArrayType:
    found: Integer | ArrayType = _reduce(
        x,
        asked,
        lambda axes: _extrema(x, axes, asked.name, asked.split_every)[0],
        lambda: _field(x, "value", asked.name, asked.split_every),
    )
    return found


def _place(x: Any, asked: Asked) -> Any:
    name, axis, keepdims = asked.name.removeprefix("arg"), asked.axis, asked.keepdims
    x._check_numpys(asked.name, asked.out)
    checked_split(asked.split_every, x.ndim)
    if axis is not None:
        axis = x._axes(as_integer(axis, "axis"))[0]
    if axis is None or (x.ndim == 1 and not keepdims):
        index = _field(x, "index", name, asked.split_every)
        if keepdims:
            return _as_array(index, x.ndim)
        # Along an axis Dask's own functions would reduce, but they do not handle Python ints.
        return index if axis is None or not x._is_lazy else map_values(np.int64, index, dtype=np.int64)
    x._find_lengths()
    places = _extrema(x, (axis,), name, asked.split_every)[1]
    return places if keepdims else _drop_axes(places, (axis,))


def _extrema(x: Any, axes: tuple[int, ...], name: str, split_every: SplitEvery) -> tuple[Any, Any]:
    """Return the extrema along axes, which keep length 1, and their positions."""
    if any(x.shape[axis] == 0 for axis in axes):
        raise ValueError(
            f"{name} along an axis of length 0: it needs at least one number, got shape {x.shape}"
        )
    return axis_reductions.extrema(x, axes, name == "min", split_every)


def _as_array(index: Any, ndim: int) -> Any:
    """Return one index, lazy or not, as an int64 array of `ndim` axes."""
    if isinstance(index, da.Array):
        return map_chunks(_index_block, index, chunks=((1,),) * ndim, dtype=np.int64, ndim=ndim)
    return _index_block(index, ndim=ndim)[0]


def _index_block(index: Any, *, ndim: int) -> NDArray[np.int64]:
    return np.full((1,) * (1 + ndim), int(index), dtype=np.int64)


def _selection(
    x: Any, field: str, k: SupportsIndex, axis: SupportsIndex, split_every: SplitEvery, backend: str
) -> Any:
    """Return the k greatest numbers along an axis, or their indices."""
    axis = axis_index(axis, x.ndim)
    count = as_integer(k, "k")
    x._find_lengths()
    check_backend(backend)
    checked_split(split_every, x.ndim)
    if x.ndim > 1:
        return selections.select_along_axis(x._words, x.system, count, axis, field, split_every)
    if not x._is_lazy:
        found = selections.select_of_chunk(x._words, x._measured_system(), count)
        return found.values_array() if field == "values" else found.indices_array()
    selection = selections.select(x._words, x.system, count, backend, split_every)
    dtype = np.dtype(object if field == "values" else np.int64)
    return selections.select_field(selection, field, min(abs(count), len(x)), dtype)


def _common(x: Any, name: Literal["gcd", "lcm"], asked: Asked) -> Integer | PlainArray[np.object_]:
    def along(axes: tuple[int, ...]) -> Any:
        return axis_reductions.common(x, axes, name, asked.split_every)

    found: Integer | PlainArray[np.object_] = _reduce(
        x, asked, along, lambda: _field(x, "value", name, asked.split_every), lambda: along(())
    )
    return found


def _sum(x: Any, asked: Asked) -> Integer | PlainArray[np.object_]:
    found: Integer | PlainArray[np.object_] = _reduce(
        x,
        asked,
        lambda axes: axis_reductions.sums(x, axes, asked.split_every),
        lambda: _field(x, "value", "sum", asked.split_every),
        lambda: x.astype(object),
    )
    return found


def _reduce_in_fields(x: ArrayType, asked: Asked) -> Integer | ArrayType:
    found: Integer | ArrayType = _reduce(
        x, asked, lambda axes: fields.reduce_along(asked.name, x, axes, asked.split_every)
    )
    return found


def _mean(x: Any, asked: Asked) -> Rational | PlainArray[np.object_]:
    x._check_numpys("mean", asked.out, asked.dtype)
    count = _count(x, "mean", asked.axis)
    options: dict[str, Any] = {"keepdims": True} if asked.keepdims else {}
    total = x.sum(asked.axis, split_every=asked.split_every, **options)
    found: Rational | PlainArray[np.object_] = axis_reductions.mean(total, count)
    return found


def _prod(x: Any, asked: Asked, overflow: str | None, backend: str) -> Any:
    def along(axes: tuple[int, ...]) -> Any:
        return products.prod_along(x, axes, overflow, asked.split_every)

    def whole() -> Any:
        return products.prod(x, overflow, asked.split_every, backend)

    def each() -> Any:
        mode = "raise" if extends(overflow, x) else overflow_mode(overflow, x.system)
        return (x, fill_like(x._words, 0, np.bool_)) if mode == "flag" else x

    return _reduce(x, asked, along, whole, each)


def _var(x: Any, asked: Asked, ddof: SupportsIndex) -> Any:
    count = _count(x, "var", asked.axis, ddof)

    def along(axes: tuple[int, ...]) -> Any:
        return axis_reductions.variance(x, axes, count, as_integer(ddof, "ddof"), asked.split_every)

    return _reduce(x, asked, along, each=lambda: axis_reductions.mean(x.astype(object) * 0, 1))


def _count(x: Any, function: str, axis: Axis | None, ddof: SupportsIndex = 0) -> int:
    """Return how many numbers are reduced to one; ValueError if they are too few, or the count is unknown."""
    x._find_lengths()
    freedom = as_integer(ddof, "ddof")
    count = int(np.prod([x.shape[k] for k in x._axes(axis)], dtype=object))
    if count <= max(freedom, 0):
        needed = "at least one number" if freedom <= 0 else f"more numbers than ddof={abbreviate(freedom)}"
        raise ValueError(f"{function} needs {needed}, got {count} of shape {x.shape}")
    return count
