"""IntervalRNSArray: an array of signed integers with stored intervals, on NumPy, CuPy or Dask."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from dask.base import normalize_token
from numpy.typing import DTypeLike

from rnsdask import store
from rnsdask.arrays.interval_rns_storage import read_array, write_array
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.backend import backend_name
from rnsdask.core import layout as array_layout
from rnsdask.core.errors import brief
from rnsdask.core.moduli import ModuliSet, check_moduli_set
from rnsdask.core.place import locate_in
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.interval_rns import arithmetic, convert, layout
from rnsdask.interval_rns.reduce import reduce_columns
from rnsdask.lazy import tree
from rnsdask.lazy.check import checked_residues
from rnsdask.lazy.interval_rns import (
    Operand,
    add,
    divided,
    mapped,
    maximum,
    minimum,
    multiply,
    negative,
    related,
    sign,
    subtract,
    where,
)
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.rns.convert import flat_values
from rnsdask.rns.interval import IntervalEvaluation
from rnsdask.rns.reduce import REDUCTIONS, ReductionResult


class IntervalRNSArray(NumberArray):
    """An array of exact signed integers: sign, residues of the magnitude, and an interval of X/M.

    The range is from ``-(M-1)`` to ``M-1``. Sign and comparison come from the stored intervals; residues
    are looked at only where intervals touch. If the columns are a Dask array, it is a Dask collection and
    everything is lazy.

    Make one with :meth:`from_ints`, :meth:`from_rns`, :meth:`from_residues` or :func:`.open_zarr`.

    Parameters
    ----------
    columns : array of uint32, shape (n + 6, *shape)
        Residues and headers as :mod:`rnsdask.interval_rns.layout` defines them, which this class does not
        check. A NumPy or CuPy array is not copied: nobody may write to it any more.
    moduli : ModuliSet
        The set of n moduli.

    Raises
    ------
    TypeError, ValueError
        If columns and moduli do not fit.
    """

    __slots__ = ()

    functions_of_system: ClassVar[Mapping[str, Callable[..., Any]]] = {
        function.__name__: function
        for function in (add, subtract, multiply, negative, maximum, minimum, where, sign)
    }
    """What ``rd.add`` and the other functions of arrays call for arrays of this kind."""

    def __init__(self, columns: Any, moduli: ModuliSet) -> None:
        layout.check_columns(columns, moduli)
        super().__init__(columns, moduli)

    # ---- ways to make one ---------------------------------------------------------------------------------

    @classmethod
    def from_ints(
        cls, ints: Iterable[Any], moduli: ModuliSet, chunks: array_layout.Chunks | None = None
    ) -> "IntervalRNSArray":
        """Make an array of exact integers.

        Parameters
        ----------
        ints : iterable of integers, nested lists, or NumPy array
            The numbers, as :func:`rnsdask.from_ints` takes them.
        moduli : ModuliSet
            The moduli set; every magnitude is below M.
        chunks : "auto", int, tuple of int, or None
            Chunks of a Dask array, along the axes of the numbers; None for a NumPy array.

        Raises
        ------
        TypeError
            If a value is not an integer.
        ValueError
            If a value is out of range. Both errors name the position.
        """
        check_moduli_set(moduli)
        flat, shape = flat_values(ints)
        columns = convert.columns_of_ints(flat, moduli)
        array = cls(columns.reshape(len(columns), *shape), moduli)
        return array if chunks is None else array.rechunk(chunks)

    @classmethod
    def from_residues(cls, residues: Any, sign: Any, moduli: ModuliSet) -> "IntervalRNSArray":
        """Make an array from residues of magnitudes (n, *shape), uint32, and signs (*shape), 0 or 1.

        NumPy or CuPy, both on one processor. Intervals are evaluated.

        Raises
        ------
        TypeError, ValueError
            If dtype, shape, a residue or a sign is wrong.
        """
        array_layout.check_residue_array(residues, moduli)
        for array, name in ((residues, "residues"), (sign, "signs")):
            if not (isinstance(array, np.ndarray) or backend_name(array) == "cuda") or np.ma.is_masked(array):
                kind = type(array).__name__
                raise TypeError(f"{name} must be a NumPy or CuPy array without masked values, got {kind}")
        checked_residues(residues, moduli)
        if sign.shape != residues.shape[1:] or not bool(((sign == 0) | (sign == 1)).all()):
            raise ValueError(f"signs must be 0 or 1 and of shape {residues.shape[1:]}, got {brief(sign)}")
        return cls(layout.evaluated(residues, moduli, sign != 0), moduli)

    @classmethod
    def from_rns(cls, x: RNSArray) -> "IntervalRNSArray":
        """Make an array of the numbers of an RNSArray, signed or not; lazy if that is."""
        if not isinstance(x, RNSArray):
            raise TypeError(f"from_rns takes an RNSArray, got {type(x).__name__}")
        arguments = {"moduli": x.moduli, "signed": x.signed}
        return cls(mapped(_columns_block, [x.residues], layout.rows_of(x.moduli), **arguments), x.moduli)

    def to_rns(self, signed: bool = True) -> RNSArray:
        """The numbers as an RNSArray of the same moduli set; lazy if this array is.

        Raises
        ------
        ValueError
            If a number is outside of its range, naming the first one's flat index, the first in its chunk;
            for a Dask array when it is computed.
        """
        residues = self._map(_residues_block, len(self._moduli), signed=bool(signed))
        return RNSArray(residues, self._moduli, bool(signed))

    # ---- what it is ---------------------------------------------------------------------------------------

    @property
    def columns(self) -> Any:
        """Residues and headers, uint32 (n + 6, *shape), as :mod:`rnsdask.interval_rns.layout` defines them.

        A NumPy array is read-only. CuPy knows no such arrays: do not write to it.
        """
        return self._readable_words

    @property
    def residues(self) -> Any:
        """Residues of the magnitudes, uint32 (n, *shape): part of the columns, and read-only as they are."""
        return layout.residues_of(self._words, self._moduli)

    @property
    def sign(self) -> Any:
        """Signs, uint8: 1 for numbers below 0, else 0."""
        return self._part("sign")

    @property
    def low(self) -> Any:
        """Lower bounds of the intervals of X/M, float64, before the factor ``2**exponent``."""
        return self._part("low")

    @property
    def upp(self) -> Any:
        """Upper bounds, float64, from 1/2 to less than 1; 0 for 0."""
        return self._part("upp")

    @property
    def exponent(self) -> Any:
        """Exponents of both bounds, int32."""
        return self._part("exponent")

    def interval(self) -> IntervalEvaluation:
        """The stored intervals of X/M, of the magnitudes."""
        return IntervalEvaluation(self.low, self.upp, self.exponent)

    def _part(self, name: str) -> Any:
        return self._map(_part_block, 1, dtype=layout.PART_DTYPES[name], part=name)[0]

    def __repr__(self) -> str:
        chunks = f", chunksize={self._words.chunksize[1:]}" if self._is_lazy else ""
        return f"IntervalRNSArray<{self._kind}: shape={self.shape}, {self._moduli!r}{chunks}>"

    # ---- Dask collection ----------------------------------------------------------------------------------

    def __dask_tokenize__(self) -> Any:
        return "IntervalRNSArray", normalize_token(self._words), normalize_token(self._moduli)

    @property
    def _parameters(self) -> tuple[Any, ...]:
        return (self._moduli,)

    # ---- parts and numbers --------------------------------------------------------------------------------

    def _as_ints(self) -> Any:
        if not self._is_lazy:
            return arithmetic.to_ints(self._words, self._moduli)
        return self._map(_ints_block, 1, dtype=np.dtype(object))[0]

    def rechunk(self, chunks: array_layout.Chunks = "auto") -> "IntervalRNSArray":
        """Give the array other chunks, as :meth:`.RNSArray.rechunk`; makes it a Dask array if it is not."""
        self._check_lengths("rechunk")
        rows = layout.rows_of(self._moduli)
        lengths = (rows, *array_layout.normalize_chunks(chunks, self.shape, rows))
        lazy = self._words.rechunk(lengths) if self._is_lazy else da.from_array(self._words, lengths)
        return IntervalRNSArray(lazy, self._moduli)

    def _map(self, function: Callable[..., Any], rows: int, **options: Any) -> Any:
        return mapped(function, [self._words], rows, moduli=self._moduli, **options)

    # ---- arithmetic ---------------------------------------------------------------------------------------

    # With arrays of the same moduli set, or integers of the range. Overflow raises, unless errstate was told
    # otherwise; with "flag" each returns a pair (docs/interval-rns.md).

    def __add__(self, other: Operand) -> Any:
        return add(self, other)

    def __radd__(self, other: Operand) -> Any:
        return add(other, self)

    def __sub__(self, other: Operand) -> Any:
        return subtract(self, other)

    def __rsub__(self, other: Operand) -> Any:
        return subtract(other, self)

    def __mul__(self, other: Operand) -> Any:
        return multiply(self, other)

    def __rmul__(self, other: Operand) -> Any:
        return multiply(other, self)

    def __neg__(self) -> "IntervalRNSArray":
        return IntervalRNSArray(self._map(_negative_block, layout.rows_of(self._moduli)), self._moduli)

    def __abs__(self) -> "IntervalRNSArray":
        return IntervalRNSArray(self._map(_absolute_block, layout.rows_of(self._moduli)), self._moduli)

    def __floordiv__(self, divisor: Operand) -> "IntervalRNSArray":
        """Quotients, rounded towards minus infinity."""
        return self._divided(self, divisor)[0]

    def __mod__(self, divisor: Operand) -> "IntervalRNSArray":
        """Remainders, 0 or of the divisor's sign."""
        return self._divided(self, divisor)[1]

    def __divmod__(self, divisor: Operand) -> "tuple[IntervalRNSArray, IntervalRNSArray]":
        """Quotients and remainders from one division."""
        return self._divided(self, divisor)

    def __rfloordiv__(self, dividend: int) -> "IntervalRNSArray":
        return self._divided(dividend, self)[0]

    def __rmod__(self, dividend: int) -> "IntervalRNSArray":
        return self._divided(dividend, self)[1]

    def __rdivmod__(self, dividend: int) -> "tuple[IntervalRNSArray, IntervalRNSArray]":
        return self._divided(dividend, self)

    def _divided(self, dividend: Operand, divisor: Operand) -> "tuple[IntervalRNSArray, IntervalRNSArray]":
        quotients, remainders = divided(dividend, divisor)
        return quotients, remainders

    # ---- comparison ---------------------------------------------------------------------------------------

    def __lt__(self, other: Operand) -> Any:
        return related(self, "<", other)

    def __le__(self, other: Operand) -> Any:
        return related(self, "<=", other)

    def __gt__(self, other: Operand) -> Any:
        return related(self, ">", other)

    def __ge__(self, other: Operand) -> Any:
        return related(self, ">=", other)

    def __eq__(self, other: Operand) -> Any:
        return related(self, "==", other)

    def __ne__(self, other: Operand) -> Any:
        return related(self, "!=", other)

    # As NumPy's and Dask's arrays: == does not return one bool, so there can be no hash.
    __hash__ = None  # type: ignore[assignment]

    # ---- reductions ---------------------------------------------------------------------------------------

    def reduce(self, operation: str, *, split_every: int | None = None) -> Any:
        """Reduce all numbers, and report how.

        Parameters
        ----------
        operation : {"max", "min", "sum"}
            What to compute.
        split_every : int, optional
            How many partial results a task of the tree combines. The result does not depend on it.

        Returns
        -------
        ReductionResult
            On Dask a lazy 0-d array of dtype object that computes to one.

        Raises
        ------
        ValueError
            If the array is empty, except for a sum, or the operation is another one.
        """
        if not self._is_lazy:
            return reduce_columns(operation, self._words, self._moduli)
        if operation not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")
        tree.check_sizes(self._words)
        if self.size == 0:
            REDUCTIONS[operation].of_nothing("cpu")
        partials = da.map_blocks(
            _reduce_block,
            self._words,
            operation=operation,
            moduli=self._moduli,
            chunks=((1,), *((1,) * len(axis) for axis in self._words.chunks[1:])),
            dtype=object,
            meta=np.empty((0,) * self._words.ndim, dtype=object),
        )
        combine = partial(tree.combine_blocks, operation=operation)
        axes = tuple(range(self._words.ndim))
        name = f"interval-rns-{operation}"
        return tree.combine_tree(partials, combine, axes, name, split_every, keepdims=False)

    def max(self, axis: None = None, out: None = None) -> Any:
        """Maximum of all numbers, exact: a Python int; on Dask a lazy 0-d array that computes to one.

        `axis` and `out` are there for NumPy, whose ``np.max(x)`` gives them.
        """
        self._check_whole("max", axis, out)
        return self._field("value", "max")

    def min(self, axis: None = None, out: None = None) -> Any:
        """Minimum of all numbers, as :meth:`max`."""
        self._check_whole("min", axis, out)
        return self._field("value", "min")

    def sum(self, axis: None = None, dtype: DTypeLike | None = None, out: None = None) -> Any:
        """Sum of all numbers, exact also beyond the range, as :meth:`max`; of no numbers 0."""
        self._check_whole("sum", axis, out, dtype)
        return self._field("value", "sum")

    def _check_whole(self, function: str, axis: Any, out: Any, dtype: DTypeLike | None = None) -> None:
        self._check_numpys(function, out, dtype)
        if axis is not None and (self.ndim > 1 or axis not in (0, -1)):
            raise ValueError(
                f"{function} of an IntervalRNSArray is that of all numbers, got axis {axis!r:.40}; "
                "to_rns() makes an RNSArray, which reduces along axes"
            )

    def argmax(self, axis: None = None, out: None = None) -> Any:
        """Smallest flat (C order) index of the maximum, as :meth:`max`."""
        self._check_whole("argmax", axis, out)
        return self._field("index", "max")

    def argmin(self, axis: None = None, out: None = None) -> Any:
        """Smallest flat (C order) index of the minimum, as :meth:`max`."""
        self._check_whole("argmin", axis, out)
        return self._field("index", "min")

    def _field(self, field: str, operation: str) -> Any:
        result = self.reduce(operation)
        if not self._is_lazy:
            return getattr(result, field)
        found = result.map_blocks(_get_field, field, dtype=object, meta=np.empty((), dtype=object))
        return LazyInts.of(found)

    # ---- storage ------------------------------------------------------------------------------------------

    def to_zarr(
        self,
        path: store.StorePath,
        *,
        chunks: array_layout.Chunks = "auto",
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the array to a new Zarr group, chunk by chunk (docs/store-format.md).

        Parameters
        ----------
        path, storage_options
            Where: as :func:`rnsdask.open_zarr` takes them.
        chunks
            The stored chunks along each axis, as :meth:`rechunk` takes them.
        overwrite
            Whether to replace such a group that `path` holds already. It stays until the new one is whole.

        Raises
        ------
        StoreError
            If there is something else at `path`, or it cannot be written.
        """
        location = store.locate(path, storage_options)
        write_array(self.rechunk(chunks).columns, self._moduli, location, overwrite)


def open_group(location: store.Location) -> IntervalRNSArray:
    """Open a complete group, as :func:`rnsdask.open_zarr` says."""
    return IntervalRNSArray(*read_array(location))


# ---- chunks -----------------------------------------------------------------------------------------------


def _columns_block(block: Any, *, moduli: ModuliSet, signed: bool, block_info: Any = None) -> Any:  # noqa: ARG001
    return convert.columns_of_residues(block, moduli, signed)


def _residues_block(block: Any, *, moduli: ModuliSet, signed: bool, block_info: Any = None) -> Any:
    return convert.residues_of_columns(block, moduli, signed, locate_in(block_info))


def _part_block(block: Any, *, moduli: ModuliSet, part: str, block_info: Any = None) -> Any:  # noqa: ARG001
    return layout.part_of(block, moduli, part)[None]


def _ints_block(block: Any, *, moduli: ModuliSet, block_info: Any = None) -> Any:  # noqa: ARG001
    return arithmetic.to_ints(block, moduli)[None]


def _negative_block(block: Any, *, moduli: ModuliSet, block_info: Any = None) -> Any:  # noqa: ARG001
    return arithmetic.negative(block, moduli)


def _absolute_block(block: Any, *, moduli: ModuliSet, block_info: Any = None) -> Any:  # noqa: ARG001
    return arithmetic.absolute(block, moduli)


def _reduce_block(block: Any, *, operation: str, moduli: ModuliSet, block_info: Any = None) -> Any:
    result = reduce_columns(operation, block, moduli)
    if result.index is not None:
        place = locate_in(block_info)(result.index)
        result = ReductionResult(result.value, place, result.count, result.exact_fallbacks, result.backend)
    return tree.boxed(result, block.ndim)


def _get_field(result: ReductionResult, field: str) -> ScalarInt:
    return ScalarInt(getattr(result, field))
