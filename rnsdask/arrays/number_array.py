"""What arrays of numbers give others: Python ints, machine words, stores, NumPy's and Dask's protocols."""

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from dask.base import compute
from numpy.typing import DTypeLike, NDArray

from rnsdask import store
from rnsdask.arrays import protocols, tables
from rnsdask.arrays.shaped_array import ShapedArray
from rnsdask.arrays.storage import Storage, check_not_its_own, to_zarr
from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.errors import brief, with_article
from rnsdask.core.moduli import ModuliSet
from rnsdask.lazy import casting as casting_of
from rnsdask.lazy import convert, foreign, indexing, rounding
from rnsdask.lazy.lazy_ints import LazyInts

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


class NumberArray(ShapedArray):
    """An array of numbers of any number system, with all that needs no arithmetic."""

    __slots__ = ()

    storage: ClassVar[Storage]
    """How arrays of the class are stored."""

    def __bool__(self) -> bool:
        """Whether the only number is not 0, as NumPy has it; computes a lazy array.

        Raises
        ------
        ValueError
            If there are none or more numbers than one.
        """
        self._find_lengths()
        count = self.size
        if count != 1:
            kind = "truth value of an empty array" if count == 0 else f"truth value of {count} numbers"
            raise ValueError(f"the {kind} is ambiguous; use a comparison and any() or all()")
        return bool(self.to_ints().item())

    def __contains__(self, value: Any) -> bool:
        """Whether a number equals a value, as NumPy has it; computes a lazy array."""
        found: Any = self == value
        return bool(found.any())

    def __iter__(self) -> Iterator[Any]:
        """Iterate along the first axis: Python ints of an array of one axis, else arrays.

        A lazy array of one axis is computed chunk by chunk; the parts of others are lazy, as Dask's.
        """
        if self.ndim > 1:
            self._find_lengths()
            return (self[i] for i in range(len(self)))
        if not self._is_lazy:
            return iter(self.to_ints())
        blocks = self._with_words(self._words).blocks  # which stay as they are when sizes are found out
        return (number for i in range(blocks.size) for number in blocks[i].to_ints())

    @property
    def real(self) -> Self:
        """The array itself: its numbers have no imaginary part."""
        return self

    @property
    def imag(self) -> Any:
        """Zeros. xarray takes for an array what has `real` and `imag`, and makes Python ints of the rest."""
        return np.zeros_like(self)  # type: ignore[call-overload,unused-ignore]

    # ---- as NumPy's numbers -------------------------------------------------------------------------------

    def to_ints(self) -> NDArray[np.object_]:
        """All numbers as a NumPy object array of Python ints, of the same shape. Computes a lazy array."""
        ints = convert.to_ints(self)
        if self._is_lazy:
            with checked_workers():
                ints = ints.compute()
        return np.asarray(ints)

    def to_residues(
        self,
        moduli: ModuliSet | Iterable[SupportsIndex],
        *,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        overflow: str = "raise",
    ) -> Any:
        """Residues of the numbers under any moduli up to 2**64, as :func:`.from_residues` reads them.

        Parameters
        ----------
        moduli : ModuliSet or iterable of int
            Pairwise coprime integers from 2 to 2**64.
        axis : int
            The axis of residues in the result: 0 for ``(k, *shape)``, -1 for ``(*shape, k)``.
        dtype : integer type, optional
            Without it uint32 if no modulus is greater than 2**32, else uint64.
        overflow : {"raise", "wrap"}
            Numbers must be in the range of these moduli, the symmetric one if this array may have negative
            numbers, for from no other can they be read back. With ``"wrap"`` they need not be.

        Returns
        -------
        NumPy, CuPy or Dask array
            Lazy if this array is. Residues of negative numbers are not negative, as Python's remainders.

        Raises
        ------
        TypeError, ValueError
            If an argument is wrong.
        ValueError
            If a number is out of range, naming the first one's flat index, the first in its chunk; for a Dask
            array when it is computed.
        """
        return foreign.to_residues(self, moduli, axis, dtype, overflow)

    def to_limbs(self, bits: int = 32, *, count: int | None = None, axis: int = -1) -> Any:
        """The numbers as machine words, the least significant first, as :func:`.from_limbs` reads them.

        In two's complement if the range has negative numbers.

        Parameters
        ----------
        bits : {32, 64}
            Bits of a limb, of uint32 or uint64.
        count : int, optional
            Limbs of a number; without it as many as hold the whole range.
        axis : int
            The axis of limbs in the result.

        Returns
        -------
        NumPy, CuPy or Dask array of shape (*shape, count)
            Lazy if this array is.

        Raises
        ------
        ValueError
            If a number does not fit, naming the first one's flat index, the first in its chunk; for a Dask
            array when it is computed.
        """
        return foreign.to_limbs(self, bits, count, axis)

    def to_bytes(self, length: int | None = None, byteorder: str = "little") -> Any:
        """The numbers as bytes, uint8 of shape (*shape, length), as :func:`.from_bytes` reads them.

        In two's complement if the range has negative numbers. ``x.to_bytes(8).tobytes()`` is a buffer.

        Parameters
        ----------
        length : int, optional
            Bytes of a number; without it as many as hold the whole range.
        byteorder : {"little", "big"}
            Which byte comes first.

        Raises
        ------
        ValueError
            As :meth:`to_limbs`.
        """
        return foreign.to_bytes(self, length, byteorder)

    def astype(
        self,
        dtype: DTypeLike,
        copy: bool = True,  # noqa: ARG002  (the result is a new object)
        *,
        casting: str = "safe",
    ) -> Any:
        """The numbers in another type: exactly, or as floats where `casting` says that they may be rounded.

        Parameters
        ----------
        dtype
            object for Python ints; a type of integers; bool, which is whether a number is not 0; or, with
            ``casting="unsafe"``, float32 or float64.
        copy : bool
            There for NumPy and xarray; the result is a new array in any case.
        casting : {"safe", "unsafe", "no", "equiv", "same_kind"}
            With ``"unsafe"`` floats are taken too: each number is rounded to the nearest, of two to the even
            one, as Python's ``float`` does. Integers never wrap, and with all others nothing is rounded.

        Returns
        -------
        array of `dtype`, of the same shape
            NumPy, or CuPy for other types than object if the words are; lazy on Dask.

        Raises
        ------
        TypeError
            If it is another type, or a type of floats without ``casting="unsafe"``, or elements of fields are
            to be rounded.
        ValueError
            If `casting` is none of these words.
        OverflowError
            If a number does not fit, or is beyond the greatest float, where NumPy would give an infinity. It
            names the number's flat index, the first in its chunk; for a lazy array when it is computed.
        """
        if casting not in _CASTINGS:
            raise ValueError(
                f"casting must be one of {', '.join(map(repr, _CASTINGS))}, got {brief(casting)}"
            )
        wanted = np.dtype(dtype)
        if wanted.kind == "O":
            return self._lazy_ints() if self._is_lazy else self.to_ints()
        if wanted.kind == "b":
            nonzero: Any = self
            return nonzero != 0
        if wanted.kind == "f" and casting == "unsafe":
            return rounding.to_floats(self, wanted)
        return casting_of.to_machine_integers(self, wanted)

    def to_numpy(self, dtype: DTypeLike | None = None, *, casting: str = "safe") -> NDArray[Any]:
        """The numbers as a NumPy array of int64, or of uint64 where that holds them and int64 does not.

        Matplotlib calls it, as in ``plt.plot(x)`` and ``plt.hist(x)``. Computes a lazy array.

        Parameters
        ----------
        dtype, casting
            Another type, as :meth:`astype` takes it: ``x.to_numpy(float, casting="unsafe")`` rounds.

        Raises
        ------
        TypeError, ValueError
            As :meth:`astype`.
        OverflowError
            If the type, or neither of the two, holds all numbers; it names what takes such numbers.
        """
        if dtype is not None:
            (found,) = compute(self.astype(dtype, casting=casting))
            return found if isinstance(found, np.ndarray) else np.asarray(to_backend(found, "cpu"))
        for kind in (np.int64, np.uint64):
            try:
                (found,) = compute(casting_of.to_machine_integers(self, np.dtype(kind)))
            except OverflowError:
                continue
            return np.asarray(to_backend(found, "cpu"))
        raise OverflowError(
            "the numbers do not fit into 64 bits: x.plot.hist() and x.plot.line() draw them, rd.histogram(x) "
            "counts them, x.log2() gives float64 and x.to_ints() Python ints"
        )

    def to_pandas(self) -> Any:
        """A Series of an array of one axis, a DataFrame of one of two; computes a lazy array.

        It has the type that pandas gives a list of the same ints: int64 where that holds all numbers, else
        uint64, else object, of Python ints. ``rd.from_ints`` reads a Series. Elements of fields are the
        integers of :meth:`to_ints`. It needs pandas.

        Raises
        ------
        ImportError
            If there is no pandas.
        ValueError
            If the array has no axes, or more than two.
        """
        return tables.to_pandas(self)

    def to_arrow(self, type: Any = None) -> Any:  # noqa: A002  (as pyarrow calls it)
        """The numbers as an array of Arrow; computes a lazy array. ``pa.array(x)`` does the same.

        It has the first of these types that holds all numbers: int64, uint64, decimal128(38, 0),
        decimal256(76, 0), and large_string, of decimal digits. ``rd.from_ints`` reads each of them. Elements
        of fields are the integers of :meth:`to_ints`. It needs pyarrow.

        Parameters
        ----------
        type : pyarrow.DataType, optional
            Another type: of integers, decimals without fraction, or text.

        Raises
        ------
        ImportError
            If there is no pyarrow.
        TypeError
            If `type` is another one.
        ValueError
            If the array has not one axis.
        OverflowError
            If a number does not fit into `type`; it names its index.
        """
        return tables.to_arrow(self, type)

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002
        """Arrow's conversion, ``pyarrow.array(x)``: :meth:`to_arrow`."""
        return self.to_arrow(type)

    def to_parquet(
        self,
        path: str | os.PathLike[str],
        column: str = "value",
        *,
        type: Any = None,  # noqa: A002
        overwrite: bool = False,
    ) -> None:
        """Write the numbers to a Parquet file of one column, as :func:`.read_parquet` reads it.

        A lazy array is computed some chunks at a time, in order, and each chunk is a row group; what several
        chunks need is computed for each time again, unless it was made :meth:`persist` or stored before. It
        needs pyarrow.

        Parameters
        ----------
        path : str or path-like
            A local file, which gets its name when it is whole.
        column : str
            The column's name.
        type : pyarrow.DataType, optional
            The column's type, as :meth:`to_arrow` takes it. Without it that of an array in memory is the
            one that it has there. The numbers of a lazy array are not known yet: the type is the first that
            holds all numbers up to its bound, or, if it has none, all of its number system.
        overwrite : bool
            Replace a file that is there.

        Raises
        ------
        ImportError, TypeError, ValueError, OverflowError
            As :meth:`to_arrow`. No file is written then.
        JobError
            If there is a file at `path`, and `overwrite` is false.
        """
        tables.to_parquet(self, path, column, type, overwrite)

    def tolist(self) -> list[Any]:
        """All numbers as nested lists of Python ints; computes a lazy array."""
        found: list[Any] = self.to_ints().tolist()
        return found

    def item(self, *args: Any) -> int:
        """One number as a Python int, as ``ndarray.item``; computes a lazy array's.

        Parameters
        ----------
        *args
            Nothing, of an array of one number; or a flat (C order) index; or an index of each axis.

        Raises
        ------
        ValueError
            If the array has more numbers than one, or the number of indices is not that of axes.
        IndexError
            If an index is out of bounds.
        """
        self._find_lengths()
        if not args and self.size != 1:
            raise ValueError(f"item() takes an array of one number, got shape {self.shape}; name an index")
        index = args[0] if len(args) == 1 else args or (0,) * self.ndim
        if isinstance(index, tuple):
            if len(index) != self.ndim:
                raise ValueError(f"item() takes an index of each of {self.ndim} axes, got {brief(index)}")
            return int(self[tuple(map(operator.index, index))])
        flat = operator.index(index)
        if not -self.size <= flat < self.size:
            raise IndexError(f"index {flat} is out of bounds for size {self.size}")
        return int(self[np.unravel_index(flat % self.size, self.shape)])

    def nonzero(self) -> tuple[Any, ...]:
        """Indices of the numbers that are not 0, an int64 array for each axis; as ``numpy.nonzero``.

        Those of a lazy array have an unknown length.
        """
        self._find_lengths()
        numbers: Any = self
        return indexing.nonzero(numbers != 0)

    # ---- storage ------------------------------------------------------------------------------------------

    def to_zarr(
        self,
        path: store.StorePath,
        *,
        component: str | None = None,
        chunks: layout.Chunks | None = None,
        mode: str | None = None,
        append_dim: int | None = None,
        overwrite: bool = False,
        compute: bool = True,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Write the array to Zarr, chunk by chunk (docs/store-format.md): a store, or a group of arrays.

        Parameters
        ----------
        path, component, storage_options
            Where: as :func:`.open_zarr` takes them. Zarr groups above a component are made where there are
            none.
        chunks
            The stored chunks, as :meth:`rechunk` takes them, but alike along each axis. A length may be
            longer than its axis, for what is appended later. Without it they are those of the array, or of 64
            to 128 MiB if it is in memory; if they differ along an axis, the longest are taken, with a
            warning, as Dask does.
        mode : {"w-", "w", "a", "r+"}, optional
            As of Zarr. ``"w-"`` (without `append_dim` the default): nothing may be there. ``"w"``: an array
            of this kind that is there is replaced; it stays until the new one is whole. ``"a"`` (with
            `append_dim` the default): append if something is there. ``"r+"``: append to what is there.
        append_dim : int, optional
            The axis along which the array is appended to the one that is there, which is of the same moduli
            and range, and of the same shape along the others. Its chunks, codecs and attributes stay, and its
            bound becomes the greater of both. It stays as it is, and can be read, until the longer one is
            whole and takes its place (docs/failures.md). Who has it open must open it again then.
        overwrite : bool
            The same as mode ``"w"``.
        compute : bool
            With False nothing is computed: the result is a Dask Delayed that writes the chunks, and then
            declares that the store is complete. Until then there is an incomplete one.

        Returns
        -------
        None, or without `compute` a Dask Delayed

        Raises
        ------
        TypeError
            If `overwrite` or `compute` is no bool.
        ValueError
            If modes or chunks are wrong, or the array does not fit to the one that it is appended to.
        StoreError
            If something is at `path` that is not to be replaced, or is not of this kind, or this very array
            is read from what it should replace; :class:`.StoreAccessError` if it cannot be written.
        JobError
            If it would be computed on a cluster, and a worker does not run this version of rnsdask.
        """
        return to_zarr(
            self,
            path,
            component=component,
            chunks=chunks,
            mode=mode,
            append_dim=append_dim,
            overwrite=overwrite,
            compute=compute,
            storage_options=storage_options,
        )

    def create_store(
        self, path: store.StorePath, *, overwrite: bool = False, job_identity: str | None = None
    ) -> store.ArrayWriter:
        """Create a store for this array, a Dask array with storable chunks, and write none of them yet."""
        location = store.locate(path)
        check_not_its_own(self, location, overwrite)
        how: dict[str, Any] = {"overwrite": overwrite, "job_identity": job_identity}
        return self.storage.create(location, self._system, self.shape, self.storable_lengths(), **how)

    def storable_lengths(self) -> tuple[int, ...]:
        """A chunk's length along each axis in a store of this array, a Dask array with storable chunks."""
        chunks: Any = "auto" if self.size == 0 else self.chunksize
        return layout.normalize_chunks(chunks, self.shape, self._system.words32)

    def with_storable_chunks(self) -> Self:
        """A Dask array with chunks that are alike along each axis: where they differ, with the longest."""
        self._find_lengths()
        if not self._is_lazy:
            return self.rechunk("auto")
        if layout.are_regular(self.chunks):
            return self
        return self.rechunk(layout.storable_chunks(self.chunks, self.shape, self._system.words32))

    # ---- protocols of NumPy and Dask ----------------------------------------------------------------------

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """NumPy's conversion: the numbers as Python ints, never as anything that could lose a bit."""
        name = with_article(type(self))
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(
                f"{name} converts to dtype object only, got {np.dtype(dtype)}; x.astype(dtype) converts what "
                'fits, x.astype(float, casting="unsafe") rounds, and x.to_zarr(path) stores the numbers, '
                "which xarray does not"
            )
        if copy is False:
            raise ValueError(f"{name} cannot be converted to an array of numbers without a copy")
        return self.to_ints()

    def to_dask_array(self) -> LazyInts:
        """The numbers as a Dask array of Python ints, which is what ``da.asarray(x)`` gives.

        Dask's own functions, such as ``da.concatenate``, calculate with such; NumPy's and this package's stay
        with residues. docs/numpy.md lists all of Dask's.
        """
        return self._lazy_ints()

    def _lazy_ints(self) -> LazyInts:
        lazy = self if self._is_lazy else self.rechunk()
        return LazyInts.of_ints(convert.to_ints(lazy))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Functions of NumPy such as ``np.add``; see :mod:`.protocols`."""
        return protocols.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
    ) -> Any:
        """Functions of NumPy such as ``np.concatenate``; see :mod:`.protocols`."""
        return protocols.apply_function(function, types, args, kwargs)
