"""NumberArray: what arrays of every number system have: indexing, shapes, ring operators, conversion."""

from collections.abc import Callable, Iterable, Iterator
from types import EllipsisType
from typing import Any, Generic, Self, SupportsIndex, TypeVar

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from rnsdask.arrays import conversion, protocols, reductions, showing, storage, tables
from rnsdask.arrays.collection import NumberCollection
from rnsdask.arrays.protocols import both_ways, comparison, deferring
from rnsdask.arrays.reductions import Axis
from rnsdask.core.axes import axis_indices
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import must
from rnsdask.lazy import convert, foreign, functions, indexing, matmul, powers
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.operands import Operand, is_true

Made = TypeVar("Made", bound="NumberArray")

_CUT_AT_ONCE = 2**20
"""Bytes of a slice of an array in memory that is cut at once, at most."""


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


class NumberArray(NumberCollection):
    """An array of numbers with NumPy's indexing and shapes, ``+ - *``, ``@``, ``== !=``, and ways out."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Whether the only number is not 0, as in NumPy; computes a lazy array.

        Raises
        ------
        ValueError
            If the array has no number, or more than one.
        """
        self._find_lengths()
        count = self.size
        if count != 1:
            kind = "truth value of an empty array" if count == 0 else f"truth value of {count} numbers"
            raise ValueError(f"the {kind} is ambiguous; use a comparison and any() or all()")
        return bool(self.to_ints().item())

    def __contains__(self, value: Any) -> bool:
        """Whether a number equals a value, as in NumPy; computes a lazy array."""
        return is_true((self == value).any())

    def __iter__(self) -> Iterator[Any]:
        """Iterate along the first axis: Python ints if it is the only axis, else arrays.

        A lazy array of one axis is computed chunk by chunk; the parts of others are lazy, as Dask's.
        """
        if self.ndim > 1:
            self._find_lengths()
            return (self[i] for i in range(len(self)))
        if not self._is_lazy:
            return iter(self.to_ints())
        blocks = self._with_words(self._words).blocks  # a copy: finding lengths changes self in place
        return (number for i in range(blocks.size) for number in blocks[i].to_ints())

    @property
    def real(self) -> Self:
        """The array itself: its numbers have no imaginary part."""
        return self

    @property
    def imag(self) -> Any:
        """Zeros in the shape of the array."""
        # xarray keeps as they are only arrays that have `real` and `imag`.
        return np.zeros_like(self)  # type: ignore[call-overload,unused-ignore]

    # ---- indexing -----------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """Select numbers as NumPy does; one number alone comes as a Python int (lazily, on Dask).

        Raises
        ------
        IndexError, TypeError, ValueError
            As NumPy.
        """
        try:
            words = indexing.select(self._words, key)
        except indexing.UnknownLengthError:
            return self.compute_chunk_sizes()[key]
        parts = key if isinstance(key, tuple) else (key,)
        if (
            isinstance(words, da.Array)
            and words.ndim > 1
            and all(isinstance(part, int | slice | EllipsisType | None) for part in parts)
            and words.size * words.dtype.itemsize <= _CUT_AT_ONCE
            and showing.is_in_memory(self._words)
        ):  # such a part shows its numbers too
            words = as_lazy(words.compute(scheduler="sync"), words.chunks)
        return self._part(words)

    @property
    def vindex(self) -> "_Points[Self]":
        """Select numbers point by point, as Dask's ``vindex``: the axis of the points comes first."""
        return _Points(self)

    def _part(self, words: Any) -> Any:
        """Return an array of some of the numbers; of words without an axis of numbers, the number itself."""
        if words.ndim > 1:
            return self._with_words(words)
        ints = convert.to_ints(self._with_words(words[:, None]))
        if not isinstance(words, da.Array):
            return ints[0]
        number = ints.map_blocks(conversion.only_item, drop_axis=0, dtype=object, meta=np.empty((), object))
        return LazyInts.of(number, self._system.known_range)

    def nonzero(self) -> tuple[Any, ...]:
        """Indices of the numbers that are not 0, an int64 array for each axis; as ``numpy.nonzero``.

        Those of a lazy array have an unknown length.
        """
        self._find_lengths()
        return indexing.nonzero(self != 0)

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

    def flatten(self, order: str = "C") -> Self:
        """A copy of the numbers in C order along one axis."""
        flat: Self = self.ravel(order)
        return flat.copy()

    def copy(self, order: str = "C") -> Self:  # noqa: ARG002  (there for NumPy)
        """A copy in its own memory."""
        return self._with_words(self._words.copy())

    @property
    def T(self) -> Self:  # noqa: N802  (NumPy's name)
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """The array with its axes in another order: reversed, or as given, a tuple or integers.

        Raises
        ------
        ValueError
            If the axes are not each named once; AxisError, a ValueError, if the axis is out of range.
        """
        return self._with_words(shapes.transpose(self._words, axes))

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """The array with two axes exchanged; AxisError if an axis is out of range."""
        return self._with_words(shapes.swapaxes(self._words, axis1, axis2))

    def squeeze(self, axis: Axis | None = None) -> Any:
        """The array without the axes of length 1, or without those given.

        Raises
        ------
        ValueError
            If an axis given has another length; AxisError if an axis is out of range.
        """
        self._find_lengths()
        return self._part(shapes.squeeze(self._words, axis))

    def flip(self, axis: Axis | None = None) -> Self:
        """The array in reverse order along all axes, or along those given; as ``numpy.flip``."""
        self._find_lengths()
        return self._with_words(shapes.flip(self._words, axis))

    def roll(self, shift: Any, axis: Axis | None = None) -> Self:
        """The array shifted along axes, or in C order; what leaves it at one end enters at the other.

        As ``numpy.roll``.

        Raises
        ------
        TypeError
            If a shift is no integer.
        ValueError
            If shifts and axes do not match in number; AxisError, a ValueError, if the axis is out of range.
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
            If the mode is not ``"raise"``; AxisError, a ValueError, if the axis is out of range.
        """
        self._check_numpys("take", out)
        if mode != "raise":
            raise ValueError(must("mode", f"be 'raise', got {mode!r:.40}"))
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
            If they are negative or do not fit the axis; AxisError, a ValueError, if the axis is out of range.
        """
        self._find_lengths()
        return self._with_words(shapes.repeat(self._words, repeats, axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """The numbers whose indices along two axes differ by `offset`, as ``ndarray.diagonal``.

        Returns
        -------
        array like this one
            Without the two axes, and with one more, the last, along the diagonal; lazy if this array is.

        Raises
        ------
        ValueError
            If the axes are the same, or a length is unknown; AxisError, a ValueError, if the axis is out of
            range.
        """
        self._find_lengths()
        return self._with_words(shapes.diagonal(self._words, as_integer(offset, "offset"), axis1, axis2))

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, out: None = None) -> Any:
        """Sum of the numbers of a diagonal, as :meth:`diagonal` and `sum` take and give them."""
        self._check_numpys("trace", out)
        return self.diagonal(offset, axis1, axis2).sum(-1)

    # ---- ring ---------------------------------------------------------------------------------------------

    __add__, __radd__ = both_ways("add", functions.add)
    __sub__, __rsub__ = both_ways("sub", functions.subtract)
    __mul__, __rmul__ = both_ways("mul", functions.multiply)
    __matmul__, __rmatmul__ = both_ways("matmul", matmul.matmul)

    def __neg__(self) -> Any:
        return functions.negative(self)

    def __pos__(self) -> Self:
        return self

    # ---- operators that some number systems lack: their tables, and so the errors, say which -------------

    __floordiv__, __rfloordiv__ = both_ways("floordiv", _quotients)
    __mod__, __rmod__ = both_ways("mod", _remainders)
    __divmod__, __rdivmod__ = both_ways("divmod", _quotients_and_remainders)

    @deferring
    def __pow__(self, exponent: Any, modulus: SupportsIndex | None = None) -> Any:
        """Powers by :func:`.power`; with a modulus, as ``pow(x, k, m)``, powers modulo that integer.

        These are exact, whatever lies between. Their exponent is one integer of any size, or an array of
        machine integers, one for each number; a negative one raises inverses. The modulus' magnitude minus 1
        must be in the range.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of these types, or a number has no inverse, naming its index; that is found
            when a Dask array is computed.
        """
        if modulus is None:
            return powers.power(self, exponent)
        return powers.power_modulo(self, exponent, modulus)

    __rpow__ = both_ways("pow", powers.power)[1]

    def __abs__(self) -> Any:
        return functions.absolute(self)

    __lshift__, __rlshift__ = both_ways("lshift", functions.left_shift)
    __rshift__, __rrshift__ = both_ways("rshift", functions.right_shift)
    __and__, __rand__ = both_ways("and", functions.bitwise_and)
    __or__, __ror__ = both_ways("or", functions.bitwise_or)
    __xor__, __rxor__ = both_ways("xor", functions.bitwise_xor)

    def __invert__(self) -> Any:
        return functions.invert(self)

    # ---- comparison and truth -----------------------------------------------------------------------------

    __lt__, __le__ = comparison("lt", "<"), comparison("le", "<=")
    __gt__, __ge__ = comparison("gt", ">"), comparison("ge", ">=")

    # An operand of another type is an error for == too: False would be no answer. As in NumPy and Dask, ==
    # does not return one bool, so there can be no hash.
    __eq__, __ne__ = comparison("eq", "=="), comparison("ne", "!=")
    __hash__ = None  # type: ignore[assignment]

    any, all = reductions.any_nonzero, reductions.all_nonzero

    def _axes(self, axis: Axis | None) -> tuple[int, ...]:
        """Check the axes to reduce; ascending. Without axes each number is its own result."""
        axes = tuple(range(self.ndim)) if axis is None else axis_indices(axis, self.ndim)
        return tuple(sorted(axes))

    # ---- conversion ---------------------------------------------------------------------------------------

    to_ints = conversion.to_ints
    tolist = conversion.tolist
    item = conversion.item
    astype = conversion.astype
    to_numpy = conversion.to_numpy
    to_dask_array = conversion.to_dask_array
    to_residues = foreign.to_residues
    to_limbs = foreign.to_limbs
    to_bytes = foreign.to_bytes
    to_pandas = tables.to_pandas
    to_arrow = __arrow_array__ = tables.to_arrow
    to_parquet = tables.to_parquet
    to_zarr = storage.to_zarr
    create_store = storage.create_store
    storable_lengths = storage.storable_lengths
    with_storable_chunks = storage.with_storable_chunks

    # ---- protocols of NumPy -------------------------------------------------------------------------------

    __array__ = conversion.as_array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Functions of NumPy such as ``np.add``; see :mod:`.protocols`."""
        return protocols.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
    ) -> Any:
        """Functions of NumPy such as ``np.concatenate``; see :mod:`.protocols`."""
        return protocols.apply_function(function, types, args, kwargs)

    def _check_numpys(self, function: str, out: Any, dtype: DTypeLike | None = None) -> None:
        """Refuse what NumPy's functions pass on, such as ``np.sum(x, out=...)``, and this array cannot do."""
        if out is not None:
            raise TypeError(
                f"{function} of {with_article(type(self))} takes no out: its result is a new object"
            )
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(
                f"{function} of {with_article(type(self))} is exact, got dtype {np.dtype(dtype)}; give none "
                "(xarray's mean and var give one but with skipna=False)"
            )


class _Points(Generic[Made]):
    """An array whose axes with indices come before those with slices."""

    def __init__(self, array: Made) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        given = key if isinstance(key, tuple) else (key,)
        indices = [*given, *(slice(None),) * (self._array.ndim - len(given))]
        axes = sorted(range(len(indices)), key=lambda axis: isinstance(indices[axis], slice))
        return self._array.transpose(axes)[tuple(indices[axis] for axis in axes)]
