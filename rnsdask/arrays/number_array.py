"""What arrays of numbers have in common, whatever words hold a number: shape, Dask collection, items."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Self, SupportsIndex, TypeVar

import dask
import dask.array as da
import numpy as np
from dask.base import DaskMethodsMixin, normalize_token
from numpy.typing import DTypeLike, NDArray

from rnsdask import store
from rnsdask.arrays import protocols
from rnsdask.arrays.storage import Storage, check_not_its_own, to_zarr
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.scalar_int import ScalarInt, as_scalars
from rnsdask.lazy import casting, convert, foreign, indexing
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.chunks import normalize_chunks
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_values
from rnsdask.lazy.operands import without_empty_chunks

Made = TypeVar("Made", bound="NumberArray")


class NumberArray(DaskMethodsMixin):
    """An array of numbers: words of a number system in one NumPy, CuPy or Dask array (rows, *shape).

    If the words are a Dask array, it is a Dask collection and everything is lazy; if they are a NumPy or CuPy
    array, results come at once, computed on that array's processor.

    Parameters
    ----------
    words : array of uint32, shape (rows, *shape)
        Words as the system defines them, which is not checked. A Dask array is rechunked so that the axis of
        words has one chunk. A NumPy or CuPy array is not copied: nobody may write to it any more.
    system : NumberSystem
        What the words mean.

    Raises
    ------
    TypeError, ValueError
        If words and system do not fit.
    """

    __slots__ = ("_system", "_words")

    system_type: ClassVar[type[NumberSystem]]
    """The kind of system that the array's class has operations for."""

    storage: ClassVar[Storage]
    """How arrays of the class are stored."""

    def __init__(self, words: Any, system: NumberSystem) -> None:
        if not isinstance(system, self.system_type):
            kind, wanted = type(system).__name__, self.system_type.__name__
            raise TypeError(f"an {type(self).__name__} has words and an {wanted} system, got {kind}")
        system.check_words(words)
        if isinstance(words, da.Array):
            words = words.rechunk({0: -1}) if words.numblocks[0] > 1 else words
            words = without_empty_chunks(words)
        elif isinstance(words, np.ndarray):
            words = words.view()
            words.flags.writeable = False  # numbers never change, nor does what is known of them
        self._words = words
        self._system = system

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays that are unpickled can be written to, until the class has made a view of them.
        return type(self), (self._words, self._system)

    def _with_words(self, words: Any) -> Self:
        return type(self)(words, self._system)

    # ---- what it is ---------------------------------------------------------------------------------------

    @property
    def words(self) -> Any:
        """The words: NumPy, CuPy or Dask array of uint32, shape (rows, *shape).

        A NumPy array is read-only. CuPy knows no such arrays: do not write to it.
        """
        # Assigning to items of a Dask array changes it: here, a copy.
        return self._words.copy() if self._is_lazy else self._words

    @property
    def system(self) -> Any:
        """The number system: what the words mean."""
        return self._system

    @property
    def moduli(self) -> ModuliSet:
        """The moduli set."""
        moduli: ModuliSet = self.system.moduli
        return moduli

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of numbers."""
        return tuple(self._words.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of numbers; ValueError if it is unknown, as after selecting by a condition."""
        self._refuse_unknown("size")
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all words, as :attr:`size`."""
        self._refuse_unknown("nbytes")
        return int(self._words.nbytes)

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...] | None:
        """Lengths of the chunks along each axis, as Dask gives them; None if the array is not chunked."""
        return self._words.chunks[1:] if self._is_lazy else None

    @property
    def numblocks(self) -> tuple[int, ...] | None:
        """Number of chunks along each axis, as Dask gives it; None if the array is not chunked."""
        return self._words.numblocks[1:] if self._is_lazy else None

    @property
    def npartitions(self) -> int | None:
        """Number of chunks; None if the array is not chunked."""
        return self._words.npartitions if self._is_lazy else None

    @property
    def chunksize(self) -> tuple[int, ...] | None:
        """Greatest length of a chunk along each axis; None if the array is not chunked."""
        return self._words.chunksize[1:] if self._is_lazy else None

    @property
    def blocks(self) -> "_Blocks[Self]":
        """The chunks, selected by an index of :attr:`numblocks`, as Dask's ``blocks``: a lazy array.

        Raises
        ------
        AttributeError
            If the array is not chunked.
        """
        if not self._is_lazy:
            raise AttributeError("an array in memory has no blocks; rechunk() makes a Dask array of it")
        return _Blocks(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements for NumPy and Dask, which take them for Python ints: object."""
        return np.dtype(object)

    @property
    def _meta(self) -> NDArray[np.object_]:
        """What Dask's own functions, which convert the numbers, find chunks to be."""
        return np.empty((0,) * self.ndim, dtype=object)

    @property
    def _is_lazy(self) -> bool:
        return isinstance(self._words, da.Array)

    @property
    def _kind(self) -> str:
        """The library of the words, for people."""
        return "dask" if self._is_lazy else type(self._words).__module__.partition(".")[0]

    @property
    def _has_lengths(self) -> bool:
        """Whether the length along each axis is known."""
        return not any(np.isnan(length) for length in self.shape)

    def _check_lengths(self, what: str) -> None:  # noqa: ARG002
        """Make sure that lengths are known, for what needs them; it computes those that are not."""
        if not self._has_lengths:
            self.compute_chunk_sizes()

    def _refuse_unknown(self, what: str) -> None:
        """Refuse what must not compute anything, if a length is unknown."""
        if not self._has_lengths:
            raise ValueError(
                f"{what} of an array of unknown length, shape {self.shape}: it was selected by a condition; "
                "call compute_chunk_sizes() first"
            )

    def __len__(self) -> int:
        if np.isnan(self.shape[0]):
            self._check_lengths("len()")
        return int(self._words.shape[1])

    def __bool__(self) -> bool:
        """Whether the only number is not 0, as NumPy has it; computes a lazy array.

        Raises
        ------
        ValueError
            If there are none or more numbers than one.
        """
        self._check_lengths("truth")
        count = self.size
        if count != 1:
            kind = "truth value of an empty array" if count == 0 else f"truth value of {count} numbers"
            raise ValueError(f"the {kind} is ambiguous; use a comparison and any() or all()")
        return bool(self.to_ints().item())

    def __contains__(self, value: Any) -> bool:
        """Whether a number equals a value, as NumPy has it; computes a lazy array."""
        found: Any = self == value
        return bool(found.any())

    def __repr__(self) -> str:
        chunks = f", chunksize={self._words.chunksize[1:]}" if self._is_lazy else ""
        return f"{type(self).__name__}<{self._kind}: shape={self.shape}, {self._system}{chunks}>"

    def _repr_html_(self) -> str:
        size = dask.utils.format_bytes(self.nbytes) if self._has_lengths else "unknown"
        rows = {"Shape": self.shape, **self._system.details(), "Bytes": size}
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        table = f"<table><caption>{type(self).__name__}</caption><tbody>{cells}</tbody></table>"
        return table + (self._words._repr_html_() if self._is_lazy else "")

    # ---- Dask collection ----------------------------------------------------------------------------------

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, normalize_token(self._words), normalize_token(self._system)

    def __dask_graph__(self) -> Any:
        return self._words.__dask_graph__() if self._is_lazy else None

    def __dask_keys__(self) -> Any:
        return self._words.__dask_keys__()

    def __dask_layers__(self) -> Any:
        return self._words.__dask_layers__()

    __dask_optimize__ = staticmethod(da.Array.__dask_optimize__)
    __dask_scheduler__ = staticmethod(da.Array.__dask_scheduler__)

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (self._words.__dask_postcompute__(), type(self), self._system)

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (self._words.__dask_postpersist__(), type(self), self._system)

    def compute(self, **kwargs: Any) -> Any:
        """Compute the words, as of any Dask collection; on a cluster whose workers run this version.

        Raises
        ------
        JobError
            If a worker does not.
        """
        with checked_workers(kwargs.get("scheduler")):
            return super().compute(**kwargs)  # type: ignore[no-untyped-call]

    def persist(self, **kwargs: Any) -> Any:
        """Compute the words where they stay, chunk by chunk; as :meth:`compute`."""
        with checked_workers(kwargs.get("scheduler")):
            return super().persist(**kwargs)  # type: ignore[no-untyped-call]

    def compute_chunk_sizes(self) -> Self:
        """Find out unknown chunk sizes, as after selecting by a Boolean array, in place; as Dask's own.

        What needs them calls this itself: indices, ``len``, :meth:`rechunk` and others
        (docs/operations.md).
        """
        if self._is_lazy:
            with checked_workers():
                # Of a copy, for other arrays may have these words, with their empty chunks.
                self._words = without_empty_chunks(self._words.copy().compute_chunk_sizes())
        return self

    # ---- parts --------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """Select numbers as NumPy does; one number alone comes as a Python int (lazily, on Dask).

        Raises
        ------
        IndexError, TypeError, ValueError
            As :func:`.indexing.select` says: those of NumPy.
        """
        try:
            return self._part(indexing.select(self._words, key))
        except indexing.UnknownLengthError:
            return self.compute_chunk_sizes()[key]

    def _part(self, words: Any) -> Any:
        """An array of some of the numbers; of words without an axis of numbers, the number itself."""
        if words.ndim > 1:
            return self._with_words(words)
        ints = convert.to_ints(self._with_words(words.reshape(-1, 1)))
        if not isinstance(words, da.Array):
            return ints[0]
        number = ints.map_blocks(_only_item, drop_axis=0, dtype=object, meta=np.empty((), dtype=object))
        return LazyInts.of(number)

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
        self._check_lengths("the shape")

    @property
    def T(self) -> Self:  # noqa: N802  (NumPy's name)
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """The array with its axes in another order: reversed, or as given, a tuple or integers.

        Raises
        ------
        ValueError
            If not each axis is named once; AxisError, which is one, if there is no such axis.
        """
        return self._with_words(shapes.transpose(self._words, axes))

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """The array with two axes exchanged; AxisError if there is no such axis."""
        return self._with_words(shapes.swapaxes(self._words, axis1, axis2))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Any:
        """The array without the axes of length 1, or without those given.

        Raises
        ------
        ValueError
            If an axis given has another length; AxisError if there is no such axis.
        """
        self._check_lengths("squeeze")
        return self._part(shapes.squeeze(self._words, axis))

    def flip(self, axis: int | tuple[int, ...] | None = None) -> Self:
        """The array in reverse order along all axes, or along those given; as ``numpy.flip``."""
        self._check_lengths("flip")
        return self._with_words(shapes.flip(self._words, axis))

    def roll(self, shift: Any, axis: int | tuple[int, ...] | None = None) -> Self:
        """The array shifted along axes, or in C order; what leaves it at one end enters at the other.

        As ``numpy.roll``.

        Raises
        ------
        TypeError
            If a shift is no integer.
        ValueError
            If shifts and axes do not go together; AxisError, which is one, if there is no such axis.
        """
        self._check_lengths("roll")
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
            If the mode is another; AxisError, which is one, if there is no such axis.
        """
        self._check_numpys("take", out)
        if mode != "raise":
            raise ValueError(f"mode must be 'raise', got {mode!r:.40}")
        self._check_lengths("take")
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
            If they are negative or do not suit the axis; AxisError, which is one, if there is no such axis.
        """
        self._check_lengths("repeat")
        return self._with_words(shapes.repeat(self._words, repeats, axis))

    # ---- chunks and numbers -------------------------------------------------------------------------------

    def rechunk(self, chunks: layout.Chunks = "auto") -> Self:
        """Give the array other chunks, along the axes of the numbers; makes it a Dask array if it is not.

        Parameters
        ----------
        chunks
            As Dask takes them: one length for all axes or one for each, where -1 is the whole axis and None
            what it is; the lengths of all chunks along an axis; a size such as ``"32MiB"``; a mapping from
            some of the axes to these. ``"auto"``, of all axes, means 64 to 128 MiB.

        Raises
        ------
        TypeError, ValueError
            If they are none of these, do not add up to the shape, or a length that they need is unknown.
        JobError
            If there are more chunks than this process has memory for.
        """
        rows = self._system.rows
        lengths = ((rows,), *normalize_chunks(chunks, self.shape, rows, self.chunks))
        return self._with_words(
            self._words.rechunk(lengths) if self._is_lazy else da.from_array(self._words, lengths)
        )

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
        chunks: Any = "auto" if self.size == 0 else self._words.chunksize[1:]
        return layout.normalize_chunks(chunks, self.shape, self._system.rows)

    def with_storable_chunks(self) -> Self:
        """A Dask array with chunks that are alike along each axis: where they differ, with the longest."""
        self._check_lengths("to_zarr")
        if self.chunks is None:
            return self.rechunk("auto")
        if layout.are_regular(self.chunks):
            return self
        return self.rechunk(layout.storable_chunks(self.chunks, self.shape, self._system.rows))

    def _check_numpys(self, function: str, out: Any, dtype: DTypeLike | None = None) -> None:
        """Refuse what NumPy's functions pass on, such as ``np.sum(x, out=...)``, and this array cannot do."""
        if out is not None:
            raise TypeError(
                f"{function} of an {type(self).__name__} takes no out: its result is a new object"
            )
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(f"{function} of an {type(self).__name__} is exact, got dtype {np.dtype(dtype)}")

    def __iter__(self) -> Iterator[Any]:
        """Iterate along the first axis: Python ints of an array of one axis, else arrays.

        A lazy array of one axis is computed chunk by chunk; the parts of others are lazy, as Dask's.
        """
        if self.ndim > 1:
            self._check_lengths("iteration")
            return (self[i] for i in range(len(self)))
        if not self._is_lazy:
            return iter(self.to_ints())
        blocks = self._with_words(self._words).blocks  # which stay as they are when sizes are found out
        return (number for i in range(blocks.size) for number in blocks[i].to_ints())

    def map_blocks(
        self, function: Callable[..., Any], *, dtype: DTypeLike | None = None, **options: Any
    ) -> Any:
        """Apply a function to each chunk, as Dask's ``map_blocks``; of an array in memory, to it as a whole.

        Parameters
        ----------
        function : callable
            Called with an array in memory like this one, and `options`. It returns such an array, of the same
            moduli set and range, or with `dtype` a NumPy or CuPy array, of the same shape in either case.
        dtype : optional
            Type of the array that it returns, if not an array of numbers.

        Returns
        -------
        array like this one, or of `dtype`
            Lazy if this one is, with the same chunks. It has no bound.

        Raises
        ------
        TypeError, ValueError
            If the function returns anything else; for a lazy array when it is computed.
        """
        made = casting.map_blocks(type(self), self, function, dtype, options)
        return made if dtype is not None else type(self)(made, casting.without_bound(self._system))

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

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Any:  # noqa: ARG002  (the result is a new object)
        """The numbers in another type, without a loss.

        Parameters
        ----------
        dtype
            object for Python ints; a type of integers; or bool, which is whether a number is not 0.
        copy : bool
            There for NumPy and xarray; the result is a new array in any case.

        Returns
        -------
        array of `dtype`, of the same shape
            NumPy, or CuPy for other types than object if the words are; lazy on Dask.

        Raises
        ------
        TypeError
            If it is another type, such as float.
        OverflowError
            If a number does not fit, naming its flat index, the first in its chunk; for a lazy array when it
            is computed.
        """
        wanted = np.dtype(dtype)
        if wanted.kind == "O":
            return self.to_dask_array() if self._is_lazy else self.to_ints()
        if wanted.kind == "b":
            nonzero: Any = self
            return nonzero != 0
        return casting.to_machine_integers(self, wanted)

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
        self._check_lengths("item")
        if not args and self.size != 1:
            raise ValueError(f"item() takes an array of one number, got shape {self.shape}; name an index")
        index = args[0] if len(args) == 1 else args or (0,) * self.ndim
        if isinstance(index, tuple):
            if len(index) != self.ndim:
                raise ValueError(f"item() takes an index of each of {self.ndim} axes, got {index!r:.80}")
            return int(self[tuple(map(operator.index, index))])
        flat = operator.index(index)
        if not -self.size <= flat < self.size:
            raise IndexError(f"index {flat} is out of bounds for size {self.size}")
        return int(self[np.unravel_index(flat % self.size, self.shape)])

    def copy(self, order: str = "C") -> Self:  # noqa: ARG002  (there for NumPy)
        """The same numbers in memory of their own, as if anybody could write to either."""
        return self._with_words(self._words.copy())

    def flatten(self, order: str = "C") -> Self:
        """As :meth:`ravel`, in memory of its own."""
        flat: Self = self.ravel(order)
        return flat.copy()

    def nonzero(self) -> tuple[Any, ...]:
        """Indices of the numbers that are not 0, an int64 array for each axis; as ``numpy.nonzero``.

        Those of a lazy array have an unknown length.
        """
        self._check_lengths("nonzero")
        numbers: Any = self
        return indexing.nonzero(numbers != 0)

    # ---- protocols of NumPy and Dask ----------------------------------------------------------------------

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """NumPy's conversion: the numbers as Python ints, never as anything that could lose a bit."""
        name = f"an {type(self).__name__}"
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(f"{name} converts to dtype object only, got {np.dtype(dtype)}")
        if copy is False:
            raise ValueError(f"{name} cannot be converted to an array of numbers without a copy")
        return self.to_ints()

    def to_dask_array(self) -> LazyInts:
        """The numbers as a Dask array of Python ints, which is what ``da.asarray(x)`` gives.

        Dask's own functions, such as ``da.concatenate``, calculate with such; NumPy's and this package's stay
        with residues.
        """
        lazy = self if self._is_lazy else self.rechunk()
        return LazyInts.of(map_values(as_scalars, convert.to_ints(lazy), dtype=object))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Functions of NumPy such as ``np.add``; see :mod:`.protocols`."""
        return protocols.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
    ) -> Any:
        """Functions of NumPy such as ``np.concatenate``; see :mod:`.protocols`."""
        return protocols.apply_function(function, types, args, kwargs)


class _Blocks(Generic[Made]):
    """The chunks of a lazy array, to be selected by an index."""

    def __init__(self, array: Made) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of chunks along each axis."""
        return self._array._words.numblocks[1:]  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of chunks."""
        return math.prod(self.shape)

    def __getitem__(self, index: Any) -> Made:
        indices = index if isinstance(index, tuple) else (index,)
        return self._array._with_words(self._array._words.blocks[(slice(None), *indices)])

    def ravel(self) -> list[Made]:
        """All chunks in C order."""
        return [self[index] for index in np.ndindex(self.shape)]


def _only_item(ints: NDArray[np.object_]) -> ScalarInt:
    return ScalarInt(ints[0])


def _rebuild(
    results: Any, rebuild_words: Any, array_type: type[NumberArray], system: NumberSystem, **options: Any
) -> NumberArray:
    rebuild, arguments = rebuild_words
    return array_type(rebuild(results, *arguments, **options), system)
