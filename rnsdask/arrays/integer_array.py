"""IntegerArray: division, order, bits, powers, reductions and scans of arrays of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike

from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.reductions import Reductions, reduce_in_memory
from rnsdask.arrays.showing import Plot
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import rows
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import (
    convert,
    doubles,
    elementwise,
    functions,
    number_theory,
    scan,
    sort,
    tree,
)
from rnsdask.positional.system import Positional
from rnsdask.typing import Flag, Integers, Overflow, PlainArray, Reduced, SplitEvery

if TYPE_CHECKING:
    from rnsdask.arrays.positional_array import PositionalArray


class IntegerArray(Reductions, NumberArray):
    """An array of integers with ``+ - * // % **``, comparison, reductions, running results and order.

    Operands are arrays of the same numbers, or integers of the range. Overflow raises an error, unless
    :func:`.errstate` sets another mode; with "flag" each operation that can overflow returns a pair
    (docs/operations.md).
    """

    __slots__ = ()

    # ---- operators ----------------------------------------------------------------------------------------

    def __truediv__(self, divisor: object) -> NoReturn:
        """Raise TypeError, which names the way out: most quotients are not integers."""
        kind = with_article(type(self))
        raise TypeError(f"/ of {kind} is not exact: // gives quotients, % remainders, divmod both")

    def __rtruediv__(self, dividend: object) -> NoReturn:
        self.__truediv__(dividend)

    # ---- element by element -------------------------------------------------------------------------------

    bit_length = number_theory.bit_length
    log2 = doubles.log2

    def is_even(self) -> PlainArray[np.bool_]:
        """Test each number for evenness: a Boolean array of the same shape, lazy on Dask."""
        even: PlainArray[np.bool_] = elementwise.apply(rows.is_even, self)
        return even

    def clip(
        self,
        min: Self | Integers | None = None,  # noqa: A002
        max: Self | Integers | None = None,  # noqa: A002
        out: None = None,
    ) -> Self:
        """Limit the numbers to the interval from `min` to `max`: :func:`.clip`. NumPy passes `out`."""
        self._check_numpys("clip", out)
        return functions.clip(self, min, max)

    @property
    def plot(self) -> Plot:
        """Plots of the numbers by Matplotlib: ``x.plot.hist()`` and ``x.plot.line()``."""
        return Plot(self)

    def to_positional(self, bits: SupportsIndex, signed: bool | None = None) -> PositionalArray:
        """Convert to a PositionalArray; lazy if this array is.

        Parameters
        ----------
        bits : int
            Bits of a number including the sign bit, from 1 to 2**20.
        signed : bool, optional
            Whether numbers may be negative; by default as in this array.

        Raises
        ------
        TypeError, ValueError
            If `bits` is not an integer from 1 to 2**20.
        ValueError
            If a number is out of range. It names the number's flat index, the first in its chunk; for a Dask
            array when it is computed.
        """
        wanted: Any = self.system.is_signed if signed is None else signed
        system = Positional(as_integer(bits, "bits"), wanted)
        made: PositionalArray = system.array_type(convert.words_in(self, system), system)
        return made

    # ---- order --------------------------------------------------------------------------------------------

    def argsort(
        self,
        axis: SupportsIndex | None = -1,
        kind: str | None = None,  # noqa: ARG002  (NumPy passes it)
        order: None = None,
        *,
        stable: bool | None = None,
    ) -> PlainArray[np.int64]:
        """Return the indices that sort the array along an axis, as :func:`rnsdask.argsort`.

        NumPy passes `kind`, `order` and `stable`. They are ignored: each sort is stable, and numbers have no
        fields to order by.
        """
        if order is not None:
            raise TypeError(
                f"argsort of {with_article(type(self))} takes no order: its numbers have no fields"
            )
        return sort.argsort(self, axis, stable=stable)

    def sort(self, *_: Any, **__: Any) -> NoReturn:
        """Raise TypeError: NumPy's method sorts in place, and these arrays are immutable.

        Raises
        ------
        TypeError
            Always; ``rd.sort(x)`` gives a sorted array.
        """
        raise TypeError(
            f"{with_article(type(self))} never changes: use rd.sort(x), which gives a sorted array"
        )

    # ---- reductions with details ---------------------------------------------------------------------------

    def reduce(self, operation: str, *, split_every: SplitEvery = None, backend: str = "auto") -> Reduced:
        """Reduce all numbers, and return the value with details of the computation.

        Parameters
        ----------
        operation : {"max", "min", "sum", "gcd", "lcm", "bound"}
            What to compute; ``"bound"`` as :meth:`measure_bound`.
        split_every : int or dict, optional
            Number of partial results that one task combines, in all or for each axis. Results do not depend
            on it.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array are reduced; "auto" is the GPU of the process that runs the task
            if it has one (not for an IntervalRNSArray). Other arrays are reduced where they are.

        Returns
        -------
        ReductionResult
            On Dask a lazy 0-d array of dtype object that computes to one.

        Raises
        ------
        ValueError
            If a maximum or minimum is requested for an empty array, or an argument is not one of those above.
        """
        if self._is_lazy:
            how: dict[str, Any] = {"split_every": split_every, "backend": backend}
            result: Any = tree.tree_reduce(self._words, self._system, operation, **how)
        else:
            result = reduce_in_memory(self, operation)
        found: Reduced = result
        return found

    def measure_bound(self, *, backend: str = "auto") -> int:
        """Measure a tight bound in one pass, for :meth:`.RNSArray.with_bound` with ``trusted=True``.

        Computes a lazy array. The bound of an RNSArray is trusted: ``x.with_bound(None).measure_bound()``
        reads all residues. Other arrays have no bound: stored intervals show each magnitude, and the number
        of limbs does not depend on the numbers.

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
        if not self._is_lazy:
            return result.value
        with checked_workers():
            return result.compute().value

    # ---- running results ----------------------------------------------------------------------------------

    def cumsum(
        self,
        axis: SupportsIndex | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        backend: str = "auto",
    ) -> Self:
        """Exact running sums along an axis.

        On Dask, a first pass sums the chunks, and a second one computes the result in the same chunks. Each
        pass computes or reads the array again, so it need not fit in memory.

        Parameters
        ----------
        axis : int, optional
            The axis; by default the array is flattened first, as in NumPy.
        dtype, out
            As NumPy passes them: `dtype` object or None, `out` None.
        backend : {"auto", "cpu", "cuda"}
            Where the first pass over a Dask array computes, as for :meth:`reduce`. The second pass computes
            where the chunks are.

        Raises
        ------
        ValueError
            If there is no such axis, or a length is unknown.
        RNSOverflowError
            If a sum is out of range; it names the first one. For a Dask array when it is computed; it names
            the first one in a chunk, or the number before that chunk.
        """
        self._check_numpys("cumsum", out, dtype)
        sums: Self = scan.running_sums(*self._line(axis), backend)
        return sums

    @overload
    def cumprod(
        self,
        axis: SupportsIndex | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        overflow: Overflow | None = None,
        backend: str = "auto",
    ) -> Self: ...
    @overload
    def cumprod(
        self,
        axis: SupportsIndex | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        overflow: Flag,
        backend: str = "auto",
    ) -> tuple[Self, PlainArray[np.bool_]]: ...
    def cumprod(
        self,
        axis: SupportsIndex | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        overflow: Overflow | Flag | None = None,
        backend: str = "auto",
    ) -> Self | tuple[Self, PlainArray[np.bool_]]:
        """Running products along an axis, in two passes as :meth:`cumsum`.

        Parameters
        ----------
        axis, dtype, out, backend
            As in :meth:`cumsum`.
        overflow : {"raise", "wrap", "flag", "extend"}, optional
            What happens to products out of range. The default is the mode set by :func:`.errstate`, else
            ``"extend"`` for arrays whose range grows and ``"raise"`` for others.

        Returns
        -------
        array like this one
            With ``"wrap"`` the products modulo M; with ``"flag"`` a pair of these and a Boolean array that is
            true where the exact product is out of range. In an IntervalRNSArray the signs are exact even
            then.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range; it names the first one. For a Dask array when it
            is computed; it names the first one of a chunk.
        ValueError
            If there is no such axis, or a length is unknown.
        """
        self._check_numpys("cumprod", out, dtype)
        found: Self | tuple[Self, PlainArray[np.bool_]]
        found = scan.running_products(*self._line(axis), overflow, backend)
        return found

    def cummax(self, axis: SupportsIndex | None = None, *, backend: str = "auto") -> Self:
        """Running maxima along an axis, in two passes as :meth:`cumsum`."""
        maxima: Self = scan.running_extrema(*self._line(axis), False, backend)
        return maxima

    def cummin(self, axis: SupportsIndex | None = None, *, backend: str = "auto") -> Self:
        """Running minima along an axis, in two passes as :meth:`cumsum`."""
        minima: Self = scan.running_extrema(*self._line(axis), True, backend)
        return minima

    def _line(self, axis: SupportsIndex | None) -> tuple[Self, int]:
        """Return the array and its axis; for None the flattened array."""
        self._find_lengths()
        if axis is None:
            return self if self.ndim == 1 else self.ravel(), 0
        return self, self._axes(as_integer(axis, "axis"))[0]
