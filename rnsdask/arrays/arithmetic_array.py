"""What arrays of integers of every number system do alike: division, comparison, reductions."""

from typing import Any, SupportsIndex

from rnsdask.arrays.collection import array_type_of
from rnsdask.arrays.operators import deferring
from rnsdask.arrays.plotting import Plot
from rnsdask.arrays.ring_array import RingArray
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import convert, functions, logarithm, number_theory, sort, tree
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.operands import Operand
from rnsdask.positional.system import Positional


class ArithmeticArray(RingArray):
    """An array of integers with ``+ - * // %``, comparison, maximum, minimum and sum.

    Operands are arrays of the same numbers, or integers of the range. Overflow raises, unless errstate was
    told otherwise; with "flag" each operation that can overflow returns a pair (docs/operations.md).
    """

    __slots__ = ()

    # ---- division -----------------------------------------------------------------------------------------

    @deferring
    def __floordiv__(self, divisor: Operand) -> Any:
        """Quotients, rounded towards minus infinity, by an integer of any size or by another array."""
        return functions.divided(self, divisor, "quotient")[0]

    @deferring
    def __mod__(self, divisor: Operand) -> Any:
        """Remainders, 0 or of the divisor's sign, by an integer of any size or by another array."""
        return functions.divided(self, divisor, "remainder")[0]

    @deferring
    def __divmod__(self, divisor: Operand) -> tuple[Any, Any]:
        """Quotients and remainders from one division."""
        quotients, remainders = functions.divided(self, divisor, "quotient", "remainder")
        return quotients, remainders

    def __rfloordiv__(self, dividend: Operand) -> Any:
        return functions.divided(dividend, self, "quotient")[0]

    def __rmod__(self, dividend: Operand) -> Any:
        return functions.divided(dividend, self, "remainder")[0]

    def __rdivmod__(self, dividend: Operand) -> tuple[Any, Any]:
        quotients, remainders = functions.divided(dividend, self, "quotient", "remainder")
        return quotients, remainders

    @deferring
    def __truediv__(self, divisor: object) -> Any:
        """Refused, for a quotient is no integer as a rule.

        Raises
        ------
        TypeError
            Always; it names the way out.
        """
        kind = with_article(type(self))
        raise TypeError(f"/ of {kind} is not exact: // gives quotients, % remainders, divmod both")

    def __rtruediv__(self, dividend: object) -> Any:
        return self / 1

    # ---- bits, which positional numbers alone have --------------------------------------------------------

    @deferring
    def __and__(self, other: Operand) -> Any:
        return functions.bitwise_and(self, other)

    @deferring
    def __or__(self, other: Operand) -> Any:
        return functions.bitwise_or(self, other)

    @deferring
    def __xor__(self, other: Operand) -> Any:
        return functions.bitwise_xor(self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return functions.invert(self)

    # ---- comparison ---------------------------------------------------------------------------------------

    # Each compares with an array of the same numbers, or with any integer, exactly. The result is a Boolean
    # array, as NumPy's.

    @deferring
    def __lt__(self, other: Operand) -> Any:
        return functions.relate(self, "<", other)

    @deferring
    def __le__(self, other: Operand) -> Any:
        return functions.relate(self, "<=", other)

    @deferring
    def __gt__(self, other: Operand) -> Any:
        return functions.relate(self, ">", other)

    @deferring
    def __ge__(self, other: Operand) -> Any:
        return functions.relate(self, ">=", other)

    # ---- size ---------------------------------------------------------------------------------------------

    def bit_length(self) -> Any:
        """Bits of each number's magnitude, as :func:`.bit_length`: int64, lazy on Dask."""
        return number_theory.bit_length(self)

    def log2(self) -> Any:
        """Logarithm to the base 2 of each number, as :func:`.log2`: float64, lazy on Dask."""
        return logarithm.log2(self)

    @property
    def plot(self) -> Plot:
        """Pictures of the numbers, by Matplotlib: ``x.plot.hist()`` and ``x.plot.line()``."""
        return Plot(self)

    # ---- other systems ------------------------------------------------------------------------------------

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
        return array_type_of(system)(convert.words_in(self, system), system)

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
        """Refused, for NumPy's method sorts in place, and numbers here never change.

        Raises
        ------
        TypeError
            Always; ``rd.sort(x)`` gives a sorted array.
        """
        raise TypeError(
            f"{with_article(type(self))} never changes: use rd.sort(x), which gives a sorted array"
        )

    # ---- reductions ---------------------------------------------------------------------------------------

    def reduce(self, operation: str, *, split_every: int | None = None, backend: str = "auto") -> Any:
        """Reduce all numbers, and report how.

        Parameters
        ----------
        operation : {"max", "min", "sum", "bound"}
            What to compute; the bound is that of `RNSArray.measure_bound`.
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
        tell of each magnitude, and limbs are as many whatever is in them.

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
        tree.checked_split(split_every)
        if not self._is_lazy:
            return getattr(tree.reduce_words(operation, self._words, self._system), field)
        found = tree.tree_reduce(self._words, self._system, operation, field=field, split_every=split_every)
        return LazyInts.of(found, self._range_of_value(operation) if field == "value" else None)

    def _range_of_value(self, operation: str) -> tuple[int, int] | None:
        """Return the least and the greatest value that a reduction may have, or None."""
        known: tuple[int, int] | None = getattr(self._system, "known_range", None)
        if known is None or operation not in ("max", "min", "sum") or not self._has_lengths:
            return None
        return known if operation != "sum" else (min(0, known[0] * self.size), max(0, known[1] * self.size))
