"""RNSArray: an array of integers held as residues, on NumPy, CuPy or Dask."""

from collections.abc import Callable, Mapping
from typing import Any, SupportsIndex, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask.base import normalize_token
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import DTypeLike, NDArray

from rnsdask import store
from rnsdask.arrays.number_array import NumberArray
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.errors import StoreError, abbreviate
from rnsdask.core.moduli import ModuliSet, as_integer, from_text, to_text
from rnsdask.core.place import locate_in
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy import chunk_graphs, compare, divide, elementwise, matmul, powers, products, tree, write
from rnsdask.lazy.check import checked, readable
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.operands import Operand, integer_of, is_lazy_integer
from rnsdask.lazy.sources import reads
from rnsdask.rns import axis as axis_reductions
from rnsdask.rns import convert, scan, topk
from rnsdask.rns.divide import Part, is_even
from rnsdask.rns.extend import change_moduli
from rnsdask.rns.interval import IntervalEvaluation, interval_evaluation
from rnsdask.rns.reduce import REDUCTIONS, ReductionResult, reduce_chunk
from rnsdask.rns.system import RNS

Axis: TypeAlias = int | tuple[int, ...]


class RNSArray(NumberArray):
    """An array of exact integers in a residue number system.

    It composes an array of residues with the moduli set that they belong to. If the residues are a Dask
    array, it is a Dask collection and everything is lazy; if they are a NumPy or CuPy array, results come
    at once, computed on that array's processor.

    Make one with :func:`.from_ints`, :func:`.from_residues`, :func:`.random` or :func:`.open_zarr`.

    Parameters
    ----------
    residues : array of uint32, shape (n, *shape)
        Residue i of every number is below ``moduli[i]``, which this class does not check
        (:func:`.from_residues` does). A Dask array is rechunked so that the residue axis has one chunk. A
        NumPy or CuPy array is not copied: nobody may write to it any more.
    moduli : ModuliSet
        The set of n moduli.
    signed : bool
        Whether the numbers are in the symmetric range ``-(M//2) .. (M-1)//2`` instead of ``0 .. M-1``.
    bound : int, optional
        Every number is at most this in magnitude, which is not checked either. Reductions then look at fewer
        moduli. A bound beyond the range is cut down to it.

    Raises
    ------
    TypeError, ValueError
        If residues and moduli do not fit, or the bound is negative.
    """

    __slots__ = ("_bound", "_signed")

    def __init__(
        self, residues: Any, moduli: ModuliSet, signed: bool = False, bound: int | None = None
    ) -> None:
        layout.check_residue_array(residues, moduli)
        if bound is not None:
            bound = as_integer(bound, "bound")
            if bound < 0:
                raise ValueError(f"bound must not be negative, got {abbreviate(bound)}")
            # Here for all operations: a bound that follows from the operands' may lie beyond the range.
            bound = min(bound, max(map(abs, moduli.value_range(bool(signed)))))
        super().__init__(residues, moduli)
        self._signed = bool(signed)
        self._bound = bound

    # ---- what it is ---------------------------------------------------------------------------------------

    @property
    def residues(self) -> Any:
        """The residues: NumPy, CuPy or Dask array of uint32, shape (n, *shape).

        A NumPy array is read-only. CuPy knows no such arrays: do not write to it. :meth:`with_residues` makes
        an array of other residues.
        """
        return self._readable_words

    @property
    def signed(self) -> bool:
        """Whether the range is symmetric around 0."""
        return self._signed

    @property
    def bound(self) -> int | None:
        """An upper bound of every magnitude, or None if none is known."""
        return self._bound

    def __repr__(self) -> str:
        parts = [f"shape={self.shape}", repr(self._moduli), "signed" if self._signed else "unsigned"]
        if self._bound is not None:
            parts.append(f"bound of {self._bound.bit_length()} bits")
        if self._is_lazy:
            parts.append(f"chunksize={self._words.chunksize[1:]}")
        return f"RNSArray<{self._kind}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        rows = {
            "Shape": self.shape,
            "Moduli": repr(self._moduli),
            "Range": "signed" if self._signed else "unsigned",
            "Bound": "unknown" if self._bound is None else f"{self._bound.bit_length()} bits",
            "Bytes": dask.utils.format_bytes(self.nbytes) if self._has_lengths else "unknown",
        }
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        table = f"<table><caption>RNSArray</caption><tbody>{cells}</tbody></table>"
        detail = self._words._repr_html_() if self._is_lazy else ""
        return table + detail

    # ---- Dask collection ----------------------------------------------------------------------------------

    def __dask_tokenize__(self) -> Any:
        parts = (self._words, self._moduli, self._signed, to_text(self._bound))
        return "RNSArray", *map(normalize_token, parts)

    @property
    def _parameters(self) -> tuple[Any, ...]:
        return self._moduli, self._signed, self._bound

    # ---- parts and numbers --------------------------------------------------------------------------------

    def _as_ints(self) -> Any:
        if not self._is_lazy:
            return convert.residues_to_ints(self._words, self._moduli, self._signed)
        return self._map_numbers(_ints_of_block, self._moduli, self._signed, dtype=np.dtype(object))

    def _map_numbers(self, function: Callable[..., Any], *arguments: Any, dtype: np.dtype[Any]) -> da.Array:
        """Map chunks of residues (n, ...) to chunks (1, ...), and leave out the axis of length 1.

        Dask's own way to drop an axis, ``drop_axis``, copies every chunk first.
        """
        mapped: da.Array = da.map_blocks(
            function,
            self._words,
            *arguments,
            chunks=((1,), *self._words.chunks[1:]),
            dtype=dtype,
            meta=np.empty((0,) * self._words.ndim, dtype=dtype),
        )
        numbers: da.Array = mapped[0]
        return numbers

    def with_residues(self, residues: Any, bound: int | None = None, *, trusted: bool = False) -> "RNSArray":
        """An array of the same moduli set and range with other residues, checked as by `from_residues`.

        Parameters
        ----------
        residues : NumPy, CuPy or Dask array of uint32, shape (n, *shape)
            Of any shape and kind, such as a changed copy of :attr:`residues`.
        bound : int, optional
            Every number must be at most this in magnitude. This array's bound is not passed on.
        trusted : bool
            Take the array as it is: neither checked nor copied.
        """
        return array_of_residues(residues, self._moduli, self._signed, bound, trusted=trusted)

    def rechunk(self, chunks: layout.Chunks = "auto") -> "RNSArray":
        """Give the array other chunks, along the axes of the numbers; makes it a Dask array if it is not.

        Parameters
        ----------
        chunks
            ``"auto"`` (64 to 128 MiB), or the length along each axis; along the last one a multiple of 128 or
            the whole axis.
        """
        self._check_lengths("rechunk")
        lengths = (len(self._moduli), *layout.normalize_chunks(chunks, self.shape, len(self._moduli)))
        lazy = self._words.rechunk(lengths) if self._is_lazy else da.from_array(self._words, lengths)
        return self._with_words(lazy)

    # ---- arithmetic ---------------------------------------------------------------------------------------

    # With arrays of the same moduli set and range, or integers of that range. Overflow raises, unless
    # errstate was told otherwise; with "flag" each returns a pair (docs/operations.md).

    def __add__(self, other: Operand) -> Any:
        return elementwise.add(self, other)

    def __radd__(self, other: Operand) -> Any:
        return elementwise.add(other, self)

    def __sub__(self, other: Operand) -> Any:
        return elementwise.subtract(self, other)

    def __rsub__(self, other: Operand) -> Any:
        return elementwise.subtract(other, self)

    def __mul__(self, other: Operand) -> Any:
        return elementwise.multiply(self, other)

    def __rmul__(self, other: Operand) -> Any:
        return elementwise.multiply(other, self)

    def __neg__(self) -> Any:
        return elementwise.negative(self)

    def __matmul__(self, other: Any) -> Any:
        return matmul.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul.matmul(other, self)

    def __pow__(self, exponent: SupportsIndex) -> Any:
        return powers.power(self, exponent)

    # ---- comparison ---------------------------------------------------------------------------------------

    # Each compares with an array of the same moduli set and range, or with any integer, exactly. The result
    # is a Boolean array, as NumPy's. Another type is an error for == too: False would be no answer.

    def __lt__(self, other: Operand) -> Any:
        return compare.relate(self, "<", other)

    def __le__(self, other: Operand) -> Any:
        return compare.relate(self, "<=", other)

    def __gt__(self, other: Operand) -> Any:
        return compare.relate(self, ">", other)

    def __ge__(self, other: Operand) -> Any:
        return compare.relate(self, ">=", other)

    def __eq__(self, other: Operand) -> Any:
        return compare.relate(self, "==", other)

    def __ne__(self, other: Operand) -> Any:
        return compare.relate(self, "!=", other)

    # As NumPy's and Dask's arrays: == does not return one bool, so there can be no hash.
    __hash__ = None  # type: ignore[assignment]

    # ---- reductions ---------------------------------------------------------------------------------------

    def reduce(self, operation: str, *, split_every: int | None = None, backend: str = "auto") -> Any:
        """Reduce all numbers, and report how.

        Parameters
        ----------
        operation : {"max", "min", "sum"}
            What to compute.
        split_every : int, optional
            How many partial results a task of the tree combines. The result does not depend on it.
        backend : {"auto", "cpu", "cuda"}
            For a Dask array: where its chunks are reduced; "auto" takes the GPU of the process that runs
            the task if there is one. A NumPy or CuPy array is reduced where it is.

        Returns
        -------
        ReductionResult
            On Dask a lazy 0-d array of dtype object that computes to one.

        Raises
        ------
        ValueError
            If the array is empty, or an argument is not one of those above.
        """
        if not self._is_lazy:
            if operation not in REDUCTIONS:
                raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")
            return reduce_chunk(REDUCTIONS[operation], self._words, self._moduli, self._signed, self._bound)
        return tree.tree_reduce(
            self._words,
            self._moduli,
            operation,
            signed=self._signed,
            bound=self._bound,
            split_every=split_every,
            backend=backend,
        )

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
            The axes to reduce; all without it.
        out : None
            There for NumPy, whose ``np.max(x)`` gives it.
        keepdims : bool
            Keep the axes reduced, with length 1.

        Returns
        -------
        int or RNSArray
            Of all numbers a Python int; on Dask a lazy 0-d array that computes to one. Along some axes, or
            with `keepdims`, an RNSArray like this one.

        Raises
        ------
        ValueError
            If an axis is wrong, or there are no numbers to choose from.
        """
        self._check_numpys("max", out)
        axes = self._axes(axis)
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", "max", split_every)
        return self._extrema_along(axes, keepdims, False, split_every)

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
        axes = self._axes(axis)
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", "min", split_every)
        return self._extrema_along(axes, keepdims, True, split_every)

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
        if len(axes) == self.ndim and not keepdims:
            return self._field("value", "sum", split_every)
        arguments = (self._words, self._moduli, axes, self._signed, self._bound)
        sums: Any
        if self._is_lazy:
            sums = chunk_graphs.sums_lazily(*arguments, split_every)
        else:
            sums = axis_reductions.sums(*arguments)
        return sums if keepdims else _without_axes(sums, axes)

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

    def _axes(self, axis: Axis | None) -> tuple[int, ...]:
        """Check the axes to reduce; ascending."""
        axes = tuple(range(self.ndim)) if axis is None else normalize_axis_tuple(axis, self.ndim, "axis")
        if not axes:
            raise ValueError("axis must name at least one axis, got ()")
        return tuple(sorted(axes))

    def _extrema(self, axes: tuple[int, ...], minimum: bool, split_every: int | None) -> tuple[Any, Any]:
        """Residues and places of the extrema along axes, which keep length 1."""
        if any(self.shape[axis] == 0 for axis in axes):
            name = "min" if minimum else "max"
            raise ValueError(f"{name} along an axis of length 0: it needs at least one number, got {self!r}")
        arguments = (self._words, self._moduli, axes, minimum, self._signed, self._bound)
        if not self._is_lazy:
            return axis_reductions.extrema(*arguments)
        packed = chunk_graphs.extrema_lazily(*arguments, split_every)
        return packed[: len(self._moduli)], chunk_graphs.places_of(packed, len(self._moduli))

    def _extrema_along(
        self, axes: tuple[int, ...], keepdims: bool, minimum: bool, split_every: int | None
    ) -> "RNSArray":
        residues, _ = self._extrema(axes, minimum, split_every)
        residues = residues if keepdims else _without_axes(residues, tuple(axis + 1 for axis in axes))
        return RNSArray(residues, self._moduli, self._signed, self._bound)

    def _place(self, axis: int | None, keepdims: bool, minimum: bool, split_every: int | None) -> Any:
        if axis is not None:
            axis = self._axes(as_integer(axis, "axis"))[0]
        if axis is None or (self.ndim == 1 and not keepdims):
            index = self._field("index", "min" if minimum else "max", split_every)
            return _as_array(index, self.ndim) if keepdims else index
        _, places = self._extrema((axis,), minimum, split_every)
        return places if keepdims else _without_axes(places, (axis,))

    def _field(self, field: str, operation: str, split_every: int | None) -> Any:
        result = self.reduce(operation, split_every=split_every)
        if not self._is_lazy:
            return getattr(result, field)
        found = result.map_blocks(_get_field, field, dtype=object, meta=np.empty((), dtype=object))
        return LazyInts.of(found)

    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        overflow: str | None = None,
        split_every: int | None = None,
    ) -> Any:
        """Product of all numbers, exact; 1 of no numbers.

        Parameters
        ----------
        axis, dtype, out
            There for NumPy, whose ``np.prod(x)`` gives them.
        overflow : {"raise", "wrap", "flag"}, optional
            What happens if it is out of range; without it, what :func:`.errstate` set, else ``"raise"``.
        split_every : int, optional
            How many partial results a task of the tree combines.

        Returns
        -------
        int
            With ``"wrap"`` modulo M, as a number of the range; with ``"flag"`` a pair, this number and a bool
            that is true if the exact product is out of range. On Dask lazy 0-d arrays that compute to these.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if the product is out of range; its index is 0, for the result is one number.
        """
        self._check_numpys("prod", out, dtype)
        if axis is not None and self._axes(axis) != tuple(range(self.ndim)):
            raise ValueError(f"prod is that of all numbers, got axis {axis!r:.40} of shape {self.shape}")
        return products.prod(self, overflow, split_every)

    def topk(self, k: int, *, backend: str = "auto") -> Any:
        """The k greatest numbers of a 1-D array in descending order, as Dask defines it.

        Parameters
        ----------
        k : int
            For k < 0, the -k least numbers in ascending order. An array of fewer numbers gives them all.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array are gone through, as for :meth:`reduce`.

        Returns
        -------
        object array of Python ints, shape (min(abs(k), len(self)),)
            In NumPy; for a Dask array lazy.

        Raises
        ------
        ValueError
            If the array has more than one axis.
        """
        return self._selection("values", k, np.dtype(object), backend)

    def argtopk(self, k: int, *, backend: str = "auto") -> Any:
        """Indices (int64) of the numbers that :meth:`topk` gives; of equal ones, the lowest first."""
        return self._selection("indices", k, np.dtype(np.int64), backend)

    def _selection(self, field: str, k: int, dtype: np.dtype[Any], backend: str) -> Any:
        if self.ndim != 1:
            raise ValueError(f"topk and argtopk take an array of one axis, got shape {self.shape}")
        k = as_integer(k, "k")
        self._check_lengths("topk")
        if not self._is_lazy:
            found = topk.select(self._words, self._moduli, k, self._signed, self._bound)
            return found.values_array() if field == "values" else found.indices_array()
        described = (self._signed, self._bound, backend)
        selection = chunk_graphs.select_lazily(self._words, self._moduli, k, *described)
        return chunk_graphs.selected(selection, field, min(abs(k), len(self)), dtype)

    # ---- scan ---------------------------------------------------------------------------------------------

    def cumsum(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        backend: str = "auto",
    ) -> "RNSArray":
        """Sums of all numbers up to each one of a 1-D array, exactly.

        On Dask, one pass over the chunks gives their sums and a second one writes, with the same chunks. The
        array is made, or read, in each of them, so that it need not fit in memory.

        Parameters
        ----------
        axis, dtype, out
            There for NumPy, whose ``np.cumsum(x)`` gives them; the axis is the only one.
        backend : {"auto", "cpu", "cuda"}
            Where the first pass over a Dask array's chunks computes, as for :meth:`reduce`. The second one
            does so where they are.

        Raises
        ------
        ValueError
            If the array has more than one axis.
        RNSOverflowError
            If a sum is out of range, naming the first one; for a Dask array when it is computed, naming
            the first one of a chunk or the last one before it.
        """
        self._check_numpys("cumsum", out, dtype)
        if axis is not None:
            self._axes(axis)
        self._check_lengths("cumsum")
        bound = None if self._bound is None else self._bound * len(self)
        return self._scan("cumsum", bound, backend)

    def cummax(self, *, backend: str = "auto") -> "RNSArray":
        """Maxima of all numbers up to each one of a 1-D array, in two passes as :meth:`cumsum`."""
        return self._scan("cummax", self._bound, backend)

    def cummin(self, *, backend: str = "auto") -> "RNSArray":
        """Minima of all numbers up to each one of a 1-D array, in two passes as :meth:`cumsum`."""
        return self._scan("cummin", self._bound, backend)

    def _scan(self, operation: str, bound: int | None, backend: str) -> "RNSArray":
        if self.ndim != 1:
            raise ValueError(f"{operation} takes an array of one axis, got shape {self.shape}")
        described = (self._signed, self._bound)
        residues: Any
        if self._is_lazy:
            residues = chunk_graphs.scan_lazily(self._words, self._moduli, operation, *described, backend)
        elif operation == "cumsum":
            residues = scan.running_sums(self._words, self._moduli, *described)
        else:
            minimum = operation == "cummin"
            residues = scan.running_extrema(self._words, self._moduli, minimum, *described)
        return RNSArray(residues, self._moduli, self._signed, bound)

    def interval(self, accuracy: float = 1e-7) -> IntervalEvaluation:
        """Interval of X/M for each number: ``low * 2**exponent <= X/M <= upp * 2**exponent``.

        Parameters
        ----------
        accuracy : float
            Upper bound of the relative width of an interval.

        Returns
        -------
        IntervalEvaluation
            Of arrays with this array's shape; lazy on Dask.

        Raises
        ------
        ValueError
            If no evaluation in double precision is that accurate for this moduli set.
        """
        # On Dask one number is evaluated at once, to refuse an accuracy that cannot be.
        residues = np.zeros((len(self._moduli), 1), np.uint32) if self._is_lazy else self._words
        evaluation = interval_evaluation(residues, self._moduli, self._signed, self._bound, accuracy)
        if not self._is_lazy:
            return evaluation
        arguments = (self._moduli, self._signed, to_text(self._bound), accuracy)
        packed = self._map_numbers(_packed_interval, *arguments, dtype=_PACKED)
        return IntervalEvaluation(packed["low"], packed["upp"], packed["exponent"])

    # ---- division -----------------------------------------------------------------------------------------

    def __floordiv__(self, divisor: Any) -> "RNSArray":
        """Quotients, rounded towards minus infinity, by an integer of any size or by another array."""
        return self._divide(self, divisor, ("quotient",))[0]

    def __mod__(self, divisor: Any) -> "RNSArray":
        """Remainders, 0 or of the divisor's sign, by an integer of any size or by another array."""
        return self._divide(self, divisor, ("remainder",))[0]

    def __divmod__(self, divisor: Any) -> "tuple[RNSArray, RNSArray]":
        """Quotients and remainders from one division."""
        quotient, remainder = self._divide(self, divisor, ("quotient", "remainder"))
        return quotient, remainder

    def __rfloordiv__(self, dividend: int) -> "RNSArray":
        return self._divide(dividend, self, ("quotient",))[0]

    def __rmod__(self, dividend: int) -> "RNSArray":
        return self._divide(dividend, self, ("remainder",))[0]

    def __rdivmod__(self, dividend: int) -> "tuple[RNSArray, RNSArray]":
        quotient, remainder = self._divide(dividend, self, ("quotient", "remainder"))
        return quotient, remainder

    def _divide(self, dividend: Any, divisor: Any, parts: tuple[Part, ...]) -> "list[RNSArray]":
        divided = divide.divided(dividend, divisor, parts)
        return [RNSArray(residues, self._moduli, self._signed, bound) for residues, bound in divided]

    def __rshift__(self, bits: SupportsIndex) -> "RNSArray":
        """Floor division by ``2**bits``, for any number of bits that is not negative."""
        # No number is longer than M, so that all further shifts give the same.
        return self._divide(self, self._power_of_two(bits), ("quotient",))[0]

    def __lshift__(self, bits: SupportsIndex) -> Any:
        """Product with ``2**bits``, which must be in the range itself; overflow as in a product."""
        return elementwise.multiply(self, self._power_of_two(bits))

    def _power_of_two(self, bits: Any) -> Any:
        """2**bits, or a greater power than any number for more bits than M has; lazy if `bits` are."""
        if not is_lazy_integer(bits):
            return _power_of_two(as_integer(bits, "shift"), self._moduli.bits)
        options: dict[str, Any] = {"dtype": object, "meta": np.empty((), dtype=object)}
        return da.map_blocks(_lazy_power_of_two, bits, self._moduli.bits, **options)

    def is_even(self) -> Any:
        """Whether each number is even: a Boolean array of the same shape, lazy on Dask."""
        if not self._is_lazy:
            return is_even(self._words, self._moduli, self._signed, self._bound)
        arguments = (self._moduli, self._signed, to_text(self._bound))
        return self._map_numbers(divide.is_even_block, *arguments, dtype=np.dtype(bool))

    # ---- other moduli sets --------------------------------------------------------------------------------

    def extend(self, moduli: ModuliSet) -> "RNSArray":
        """The same numbers under another moduli set (base extension), exactly.

        Parameters
        ----------
        moduli : ModuliSet
            Usually a larger set. Its range must hold every number: if neither the ranges nor the array's
            bound prove that, each number is checked, at twice the cost.

        Returns
        -------
        RNSArray
            Signed as this array is, with the same chunks.

        Raises
        ------
        ValueError
            If a number does not fit, naming its flat index, the first in its chunk; for a Dask array when it
            is computed.
        """
        if not isinstance(moduli, ModuliSet):
            raise TypeError(f"moduli must be a ModuliSet, got {type(moduli).__name__}")
        residues = self._map_residues(
            _change_moduli, len(moduli), self._moduli, moduli, self._signed, to_text(self._bound)
        )
        bound = self._bound
        if bound is None and moduli.product > self._moduli.product:
            bound = max(map(abs, self._moduli.value_range(self._signed)))
        return RNSArray(residues, moduli, self._signed, bound)

    def shrink(self, moduli: ModuliSet) -> "RNSArray":
        """The same numbers under a set of at most as many moduli; otherwise as :meth:`extend`."""
        if len(moduli) > len(self._moduli):
            raise ValueError(f"an array of {len(self._moduli)} moduli cannot shrink to {len(moduli)} moduli")
        return self.extend(moduli)

    def _map_residues(self, function: Callable[..., Any], rows: int, *arguments: Any) -> Any:
        """Map residues (n, ...) to residues (rows, ...) of the same shape otherwise."""
        if not self._is_lazy:
            return function(self._words, *arguments)
        return da.map_blocks(
            function,
            self._words,
            *arguments,
            chunks=((rows,), *self._words.chunks[1:]),
            dtype=np.uint32,
            meta=self._words._meta,
        )

    # ---- storage ------------------------------------------------------------------------------------------

    def to_zarr(
        self,
        path: store.StorePath,
        *,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the array to a new Zarr store, chunk by chunk (docs/store-format.md).

        A Dask array keeps its chunks where the format allows them, else it gets those of 64 to 128 MiB.

        Parameters
        ----------
        path, storage_options
            Where: as :func:`.open_zarr` takes them.
        overwrite
            Whether to replace a Zarr array that is there already. It stays until the new one is whole.

        Raises
        ------
        StoreError
            If there is something at `path` and `overwrite` is false, or it is not a store, or this very
            array is read from it; :class:`.StoreAccessError` if it cannot be written.
        JobError
            If it would be computed on a cluster, and a worker does not run this version of rnsdask.
        """
        source, location = self.with_storable_chunks(), store.locate(path, storage_options)
        with checked_workers():
            writer = source.create_store(location, overwrite=overwrite)
            write.write_chunks(source.residues, writer).compute()
            writer.finish()

    def create_store(
        self, path: store.StorePath, *, overwrite: bool = False, job_identity: str | None = None
    ) -> store.StoreWriter:
        """Create a store for this array, a Dask array with storable chunks, and write none of them yet."""
        location = store.locate(path)
        if overwrite and reads(self._words.dask, location):
            raise StoreError(f"{location.path}: an array cannot overwrite the store that it is read from")
        system = RNS(self._moduli, self._signed, self._bound)
        how: dict[str, Any] = {"overwrite": overwrite, "job_identity": job_identity}
        return store.create(location, system, self.shape, chunks=self.storable_lengths(), **how)

    def storable_lengths(self) -> tuple[int, ...]:
        """A chunk's length along each axis in the store that `create_store` makes."""
        chunks: Any = "auto" if self.size == 0 else self._words.chunksize[1:]
        return layout.normalize_chunks(chunks, self.shape, len(self._moduli))

    def with_storable_chunks(self) -> "RNSArray":
        """A Dask array with the same chunks where a store can have them, else with those of 64 to 128 MiB."""
        self._check_lengths("to_zarr")
        if self.chunks is None:
            return self.rechunk("auto")
        return self.rechunk(layout.storable_chunks(self.chunks, self.shape, len(self._moduli)))


def array_of_residues(
    residues: Any, moduli: ModuliSet, signed: bool, bound: int | None, *, trusted: bool
) -> RNSArray:
    """Make an array as :func:`.from_residues` says."""
    layout.check_residue_array(residues, moduli)
    residues = readable(residues)
    array = RNSArray(residues, moduli, signed, bound)
    if trusted:
        return array
    return RNSArray(checked(residues, moduli, array.signed, array.bound), moduli, signed, bound)


_PACKED = np.dtype([("low", np.float64), ("upp", np.float64), ("exponent", np.int32)])


def _power_of_two(bits: int, most: int) -> int:
    if bits < 0:
        raise ValueError(f"shift must not be negative, got {abbreviate(bits)}")
    return 1 << min(bits, most)


def _lazy_power_of_two(bits: Any, most: int) -> ScalarInt:
    return ScalarInt(_power_of_two(integer_of(bits), most))


def _ints_of_block(block: Any, moduli: ModuliSet, signed: bool) -> NDArray[np.object_]:
    return convert.residues_to_ints(block, moduli, signed)[None]


def _packed_interval(
    block: Any, moduli: ModuliSet, signed: bool, bound: str | None, accuracy: float
) -> NDArray[np.void]:
    """Interval evaluation of a chunk as one structured array, so that one task makes all three fields."""
    interval = interval_evaluation(block, moduli, signed, from_text(bound), accuracy)
    packed = np.empty((1, *block.shape[1:]), dtype=_PACKED)
    for name in ("low", "upp", "exponent"):
        field = getattr(interval, name)
        packed[name][0] = field.get() if hasattr(field, "get") else field
    return packed


def _change_moduli(
    block: Any, moduli: ModuliSet, targets: ModuliSet, signed: bool, bound: str | None, block_info: Any = None
) -> Any:
    return change_moduli(block, moduli, targets, signed, from_text(bound), locate_in(block_info))


def _without_axes(array: Any, axes: tuple[int, ...]) -> Any:
    """Leave out axes of length 1."""
    return array[tuple(0 if axis in axes else slice(None) for axis in range(array.ndim))]


def _as_array(index: Any, ndim: int) -> Any:
    """One index, lazy or not, as an int64 array of `ndim` axes."""
    if isinstance(index, da.Array):
        options: dict[str, Any] = {"new_axis": list(range(ndim)), "chunks": ((1,),) * ndim}
        meta = np.empty((0,) * ndim, dtype=np.int64)
        return da.map_blocks(_as_array, index, ndim, dtype=np.int64, meta=meta, **options)
    return np.full((1,) * ndim, int(index), dtype=np.int64)


def _get_field(result: ReductionResult, field: str) -> ScalarInt:
    return ScalarInt(getattr(result, field))
