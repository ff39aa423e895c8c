"""IntegerArray: what arrays of integers have besides: division, order, bits, powers, reductions, scans."""

from typing import Any, NoReturn, SupportsIndex

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays.number_array import Axis, NumberArray, without_axes
from rnsdask.arrays.protocols import both_ways, comparison, deferring
from rnsdask.arrays.showing import Plot
from rnsdask.backend import check_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate, with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.lazy import axis as axis_reductions
from rnsdask.lazy import (
    convert,
    elementwise,
    functions,
    logarithm,
    moments,
    number_theory,
    powers,
    products,
    scan,
    sort,
    topk,
    tree,
)
from rnsdask.lazy.growing import extends
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Operand, filled_like
from rnsdask.lazy.tree import checked_split
from rnsdask.positional.system import Positional


def _quotients(dividend: Operand, divisor: Operand) -> Any:
    """Quotients, rounded towards minus infinity, by an integer of any size or by another array."""
    return functions.divided(dividend, divisor, "quotient")[0]


def _remainders(dividend: Operand, divisor: Operand) -> Any:
    """Remainders, 0 or of the divisor's sign, by an integer of any size or by another array."""
    return functions.divided(dividend, divisor, "remainder")[0]


def _quotients_and_remainders(dividend: Operand, divisor: Operand) -> tuple[Any, Any]:
    """Quotients and remainders from one division."""
    quotients, remainders = functions.divided(dividend, divisor, "quotient", "remainder")
    return quotients, remainders


class IntegerArray(NumberArray):
    """An array of integers with ``+ - * // % **``, comparison, reductions, running results and order.

    Operands are arrays of the same numbers, or integers of the range. Overflow raises, unless errstate was
    told otherwise; with "flag" each operation that can overflow returns a pair (docs/operations.md).
    """

    __slots__ = ()

    # ---- operators ----------------------------------------------------------------------------------------

    __floordiv__, __rfloordiv__ = both_ways("floordiv", _quotients)
    __mod__, __rmod__ = both_ways("mod", _remainders)
    __divmod__, __rdivmod__ = both_ways("divmod", _quotients_and_remainders)

    @deferring
    def __truediv__(self, divisor: object) -> Any:
        """Raise TypeError, which names the way out: a quotient is no integer as a rule."""
        kind = with_article(type(self))
        raise TypeError(f"/ of {kind} is not exact: // gives quotients, % remainders, divmod both")

    def __rtruediv__(self, dividend: object) -> Any:
        return self / 1

    @deferring
    def __pow__(self, exponent: Any, modulus: SupportsIndex | None = None) -> Any:
        """Powers by :func:`.power`; with a modulus, as ``pow(x, k, m)``, powers modulo that integer.

        These are exact, whatever lies between. Their exponent is one integer of any size, or an array of
        machine integers, one for each number; a negative one raises inverses. The modulus' magnitude minus 1
        must be in the range.

        Raises
        ------
        TypeError, ValueError
            If an argument is none of these, or a number has no inverse, naming its index; that is found when
            a Dask array is computed.
        """
        if modulus is None:
            return powers.power(self, exponent)
        return powers.power_modulo(self, exponent, modulus)

    def __abs__(self) -> Any:
        return functions.absolute(self)

    # Shifts are by integers alone, so none has an array as its right operand. Bits are for PositionalArrays.
    __lshift__ = both_ways("lshift", functions.left_shift)[0]
    __rshift__ = both_ways("rshift", functions.right_shift)[0]
    __and__, __rand__ = both_ways("and", functions.bitwise_and)
    __or__, __ror__ = both_ways("or", functions.bitwise_or)
    __xor__, __rxor__ = both_ways("xor", functions.bitwise_xor)

    def __invert__(self) -> Any:
        return functions.invert(self)

    __lt__, __le__ = comparison("lt", "<"), comparison("le", "<=")
    __gt__, __ge__ = comparison("gt", ">"), comparison("ge", ">=")

    # ---- element by element -------------------------------------------------------------------------------

    bit_length = number_theory.bit_length
    log2 = logarithm.log2

    def is_even(self) -> Any:
        """Whether each number is even: a Boolean array of the same shape, lazy on Dask."""
        return elementwise.apply("is_even", self)

    def clip(
        self,
        min: Operand | None = None,  # noqa: A002
        max: Operand | None = None,  # noqa: A002
        out: None = None,
    ) -> Any:
        """The numbers, but none below `min` or above `max`: :func:`.clip`; `out` is there for NumPy."""
        self._check_numpys("clip", out)
        return functions.clip(self, min, max)

    @property
    def plot(self) -> Plot:
        """Pictures of the numbers, by Matplotlib: ``x.plot.hist()`` and ``x.plot.line()``."""
        return Plot(self)

    def to_positional(self, bits: SupportsIndex, signed: bool | None = None) -> Any:
        """The numbers as a PositionalArray; lazy if this array is.

        Parameters
        ----------
        bits : int
            Bits of a number, that of the sign among them, from 1 to 2**20.
        signed : bool, optional
            Whether there may be negative numbers; without it as in this array.

        Raises
        ------
        TypeError, ValueError
            If `bits` is no integer, or another one.
        ValueError
            If a number is out of range, naming its flat index, the first in its chunk; for a Dask array when
            it is computed.
        """
        wanted: Any = self.system.is_signed if signed is None else signed
        system = Positional(as_integer(bits, "bits"), wanted)
        return system.array_type(convert.words_in(self, system), system)

    # ---- order --------------------------------------------------------------------------------------------

    def argsort(
        self,
        axis: int | None = -1,
        kind: str | None = None,  # noqa: ARG002  (NumPy passes it)
        order: None = None,
        *,
        stable: bool | None = None,
    ) -> Any:
        """Indices that sort the array along an axis, as :func:`rnsdask.argsort`.

        `kind`, `order` and `stable` are there for NumPy, whose ``np.argsort(x)`` gives them; each sort is
        stable, and of whole numbers.
        """
        if order is not None:
            raise TypeError(
                f"argsort of {with_article(type(self))} takes no order: its numbers have no fields"
            )
        return sort.argsort(self, axis, stable=stable)

    def sort(self, *_: Any, **__: Any) -> None:
        """Raise TypeError: NumPy's method sorts in place, and numbers here never change.

        Raises
        ------
        TypeError
            Always; ``rd.sort(x)`` gives a sorted array.
        """
        raise TypeError(
            f"{with_article(type(self))} never changes: use rd.sort(x), which gives a sorted array"
        )

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
            Where the chunks of a Dask array of one axis are reduced, as for :meth:`reduce`; those of several
            axes are reduced where they are.

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
        return self._extremum("max", axis, out, keepdims, split_every)

    def min(
        self,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Minimum of all numbers or along axes, as :meth:`max`."""
        return self._extremum("min", axis, out, keepdims, split_every)

    def _extremum(
        self, name: str, axis: Axis | None, out: None, keepdims: bool, split_every: int | None
    ) -> Any:
        self._check_numpys(name, out)
        axes = self._axes(axis)
        checked_split(split_every)
        if not axes:
            return self
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", name, split_every)
        found, _ = self._extrema(axes, name == "min", split_every)
        return found if keepdims else without_axes(found, axes)

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
        return self._place("max", axis, out, keepdims, split_every)

    def argmin(
        self,
        axis: int | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Smallest index of the minimum, as :meth:`argmax`."""
        return self._place("min", axis, out, keepdims, split_every)

    def _place(self, name: str, axis: int | None, out: None, keepdims: bool, split_every: int | None) -> Any:
        self._check_numpys(f"arg{name}", out)
        checked_split(split_every)
        if axis is not None:
            axis = self._axes(as_integer(axis, "axis"))[0]
        if axis is None or (self.ndim == 1 and not keepdims):
            index = self._field("index", name, split_every)
            return _as_array(index, self.ndim) if keepdims else index
        _, places = self._extrema((axis,), name == "min", split_every)
        return places if keepdims else without_axes(places, (axis,))

    def _extrema(self, axes: tuple[int, ...], minimum: bool, split_every: int | None) -> tuple[Any, Any]:
        """Return the extrema along axes, which keep length 1, and their places."""
        self._find_lengths()
        if any(self.shape[axis] == 0 for axis in axes):
            name = "min" if minimum else "max"
            raise ValueError(
                f"{name} along an axis of length 0: it needs at least one number, got shape {self.shape}"
            )
        return axis_reductions.extrema(self, axes, minimum, split_every)

    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Sum of all numbers or along axes, exact also beyond the range.

        Parameters are those of :meth:`max`. Sums along axes come as an object array of Python ints: the range
        might not hold them, and the fewest moduli that do are known only in the end. Without numbers a sum is
        0. `dtype` is object, if given.
        """
        self._check_numpys("sum", out, dtype)
        axes = self._axes(axis)
        checked_split(split_every)
        if not axes:
            return self.astype(object)
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", "sum", split_every)
        self._find_lengths()
        sums = axis_reductions.sums(self, axes, split_every)
        return sums if keepdims else without_axes(sums, axes)

    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        overflow: str | None = None,
        split_every: int | None = None,
        backend: str = "auto",
    ) -> Any:
        """Product of all numbers or along axes, exact; 1 of no numbers.

        Parameters
        ----------
        axis, dtype, out, keepdims
            Those of :meth:`sum`.
        overflow : {"raise", "wrap", "flag", "extend"}, optional
            What happens if it is out of range; without it, what :func:`.errstate` set, else ``"extend"`` for
            arrays whose range grows, ``"raise"`` for others.
        split_every : int, optional
            How many partial results a task of the tree combines.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array are reduced, as for :meth:`reduce`.

        Returns
        -------
        int or array like this one
            Of all numbers a Python int, on Dask a lazy 0-d array that computes to one; along some axes, or
            with `keepdims`, such an array. With ``"wrap"`` modulo M, as numbers of the range; with ``"flag"``
            a pair, the same and a bool, or Boolean array, that is true where the exact product is out of
            range.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range, naming its flat index in the result; on Dask
            when it is computed.
        ValueError
            If an axis is wrong.
        """
        self._check_numpys("prod", out, dtype)
        axes = self._axes(axis)
        checked_split(split_every)
        if not axes:
            mode = "raise" if extends(overflow, self) else overflow_mode(overflow, self.system)
            return (self, filled_like(self._words, 0, np.bool_)) if mode == "flag" else self
        if len(axes) == self.ndim and not keepdims:
            return products.prod(self, overflow, split_every, backend)
        self._find_lengths()
        found = products.prod_along(self, axes, overflow, split_every)
        if keepdims:
            return found
        if isinstance(found, tuple):
            return without_axes(found[0], axes), without_axes(found[1], axes)
        return without_axes(found, axes)

    def reduce(self, operation: str, *, split_every: int | None = None, backend: str = "auto") -> Any:
        """Reduce all numbers, and report how.

        Parameters
        ----------
        operation : {"max", "min", "sum", "bound"}
            What to compute; the bound is that of :meth:`measure_bound`.
        split_every : int, optional
            How many partial results a task of the tree combines. The result does not depend on it.
        backend : {"auto", "cpu", "cuda"}
            For a Dask array: where its chunks are reduced; "auto" takes the GPU of the process that runs
            the task if there is one (not for an IntervalRNSArray). Others are reduced where they are.

        Returns
        -------
        ReductionResult
            On Dask a lazy 0-d array of dtype object that computes to one.

        Raises
        ------
        ValueError
            If the array is empty, except for a sum or a bound, or an argument is not one of those above.
        """
        if not self._is_lazy:
            return tree.reduce_words(operation, self._words, self._system)
        return tree.tree_reduce(
            self._words, self._system, operation, split_every=split_every, backend=backend
        )

    def measure_bound(self, *, backend: str = "auto") -> int:
        """A tight bound, by one pass over the words: for :meth:`.RNSArray.with_bound`, with ``trusted=True``.

        Computes a lazy array. A bound that an RNSArray has is relied on:
        ``x.with_bound(None).measure_bound()`` looks at all residues. Other arrays have none: stored intervals
        tell each magnitude, and the number of limbs does not depend on the numbers.

        Parameters
        ----------
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array are measured, as for :meth:`reduce`.

        Returns
        -------
        int
            At least the greatest magnitude, and less than twice that: 2**bits - 1 with the bits of the
            greatest magnitude, or the end of the range or this array's bound if that is less. 0 without
            numbers.
        """
        result = self.reduce("bound", backend=backend)
        if self._is_lazy:
            with checked_workers():
                result = result.compute()
        bound: int = result.value
        return bound

    def _field(self, field: str, operation: str, split_every: int | None = None) -> Any:
        """Return one field of the result of a reduction of all numbers."""
        tree.checked_split(split_every)
        if not self._is_lazy:
            return getattr(tree.reduce_words(operation, self._words, self._system), field)
        found = tree.tree_reduce(self._words, self._system, operation, field=field, split_every=split_every)
        return LazyInts.of(found, self._range_of_value(operation) if field == "value" else None)

    def _range_of_value(self, operation: str) -> tuple[int, int] | None:
        """Return the least and the greatest value that a reduction may have, or None."""
        if operation not in ("max", "min", "sum") or not self._has_lengths:
            return None
        low, high = self._system.known_range
        return (low, high) if operation != "sum" else (min(0, low * self.size), max(0, high * self.size))

    # ---- statistics ---------------------------------------------------------------------------------------

    def mean(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
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
        self._check_numpys("mean", out, dtype)
        count = self._count("mean", axis)
        options: dict[str, Any] = {"keepdims": True} if keepdims else {}
        return moments.mean(self.sum(axis, split_every=split_every, **options), count)

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
        checked_split(split_every)
        if not axes:  # each number is its own mean
            return moments.mean(self.astype(object) * 0, 1)
        variances = moments.variance(self, axes, count, as_integer(ddof, "ddof"), split_every)
        return variances if keepdims else without_axes(variances, axes)

    def std(self, *_: Any, **__: Any) -> NoReturn:
        """Raise TypeError: a standard deviation is irrational as a rule.

        Raises
        ------
        TypeError
            Always; it names the way out.
        """
        raise TypeError(
            f"std of {with_article(type(self))} would not be exact: it is the root of the variance, which "
            "math.sqrt(x.var()) takes to a float"
        )

    def _count(self, function: str, axis: Axis | None, ddof: int = 0) -> int:
        """Return how many numbers are reduced to one; ValueError if they are too few, or it is unknown."""
        self._find_lengths()
        freedom = as_integer(ddof, "ddof")
        count = int(np.prod([self.shape[k] for k in self._axes(axis)], dtype=object))
        if count <= max(freedom, 0):
            needed = (
                "at least one number" if freedom <= 0 else f"more numbers than ddof={abbreviate(freedom)}"
            )
            raise ValueError(f"{function} needs {needed}, got {count} of shape {self.shape}")
        return count

    # ---- running results ----------------------------------------------------------------------------------

    def cumsum(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        backend: str = "auto",
    ) -> Any:
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
        return scan.running_sums(*self._line(axis), backend)

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
        overflow : {"raise", "wrap", "flag", "extend"}, optional
            What happens to products out of range; without it, what :func:`.errstate` set, else ``"extend"``
            for arrays whose range grows, ``"raise"`` for others.

        Returns
        -------
        array like this one
            With ``"wrap"`` the products modulo M; with ``"flag"`` a pair, the same and a Boolean array that
            is true where the exact product is out of range. Signs of an IntervalRNSArray are those of the
            exact products.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range, naming the first one; for a Dask array when it is
            computed, naming the first one of a chunk.
        ValueError
            If there is no such axis, or a length is unknown.
        """
        self._check_numpys("cumprod", out, dtype)
        return scan.running_products(*self._line(axis), overflow, backend)

    def cummax(self, axis: int | None = None, *, backend: str = "auto") -> Any:
        """Maxima of all numbers up to each one along an axis, in two passes as :meth:`cumsum`."""
        return scan.running_extrema(*self._line(axis), False, backend)

    def cummin(self, axis: int | None = None, *, backend: str = "auto") -> Any:
        """Minima of all numbers up to each one along an axis, in two passes as :meth:`cumsum`."""
        return scan.running_extrema(*self._line(axis), True, backend)

    def _line(self, axis: int | None) -> tuple[Any, int]:
        """Return the array and its axis, or with None all numbers along one axis."""
        self._find_lengths()
        if axis is None:
            return self if self.ndim == 1 else self.ravel(), 0
        return self, self._axes(as_integer(axis, "axis"))[0]


def _as_array(index: Any, ndim: int) -> Any:
    """Return one index, lazy or not, as an int64 array of `ndim` axes."""
    if isinstance(index, da.Array):
        return map_chunks(_index_block, index, chunks=((1,),) * ndim, dtype=np.int64, ndim=ndim)
    return _index_block(index, ndim=ndim)[0]


def _index_block(index: Any, *, ndim: int) -> NDArray[np.int64]:
    return np.full((1,) * (1 + ndim), int(index), dtype=np.int64)
