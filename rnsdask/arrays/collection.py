"""NumberCollection: words and a number system, with a shape and chunks, as a Dask collection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import DaskMethodsMixin, normalize_token
from numpy.typing import NDArray

from rnsdask.arrays.deferring import defer_operators
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy import casting
from rnsdask.lazy.chunks import as_lazy, normalize_chunks, rechunk, without_empty_chunks
from rnsdask.lazy.number_chunks import (
    join_chunks,
    join_single,
    numbers_of,
    rebuild_array,
    words_in_chunk,
    words_of,
)
from rnsdask.lazy.planning import PLANS_QUERIES, explain, explain_methods
from rnsdask.typing import PlainArray

ArrayType = TypeVar("ArrayType", bound="NumberCollection")

_OF_CHUNKS = {"chunks", "numblocks", "npartitions", "chunksize", "blocks"}
"""Attributes that only lazy arrays have."""


class NumberCollection(DaskMethodsMixin):
    """An array of numbers: words of a number system in one NumPy, CuPy or Dask array (rows, *shape).

    If the words are a Dask array, it is a Dask collection and everything is lazy; if they are a NumPy or CuPy
    array, results come at once, computed on that array's processor.

    Parameters
    ----------
    words : array of the system's word_dtype, shape (rows, *shape)
        Words as the system defines them; they are not checked. A Dask array is rechunked so that the axis of
        words has one chunk. A NumPy or CuPy array is not copied: do not write to it afterwards.
    system : NumberSystem
        The number system.

    Raises
    ------
    TypeError, ValueError
        If words and system do not fit.
    """

    __slots__ = ("_collection", "_system", "_words")

    system_type: ClassVar[type[NumberSystem]]
    """Kind of system for the class. A class that names one becomes the array type of its systems."""

    _dasks_way: ClassVar[str] = "x.to_dask_array()"
    """Way to a Dask array of Python ints, for messages."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        defer_operators(cls)
        explain_methods(cls)
        if "system_type" in cls.__dict__:
            cls.system_type.array_type = cls

    def __init__(self, words: Any, system: NumberSystem) -> None:
        if not isinstance(system, self.system_type):
            own, wanted = with_article(type(self)), with_article(self.system_type)
            raise TypeError(f"{own} has words and {wanted} system, got {type(system).__name__}")
        system.check_words(words)
        if isinstance(words, da.Array):
            words = rechunk(words, {0: -1}) if words.numblocks[0] > 1 else words
            words = without_empty_chunks(words)
        elif isinstance(words, np.ndarray):
            words = words.view()
            words.flags.writeable = False  # numbers never change
        self._words: Any = words
        self._system: Any = system
        self._collection: da.Array | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # NumPy arrays become writeable when unpickled; the constructor makes a read-only view of them again.
        return type(self), (self._words, self._system)

    def _with_words(self, words: Any) -> Self:
        return type(self)(words, self._system)

    # ---- attributes ---------------------------------------------------------------------------------------

    @property
    def words(self) -> PlainArray[Any]:
        """Words of the numbers: NumPy, CuPy or Dask array of the system's `word_dtype`, shape (rows, *shape).

        A NumPy array is read-only. CuPy has no read-only arrays: do not write to one.
        """
        # Assigning to items of a Dask array changes it, so return a copy. Arrays that are expressions cannot
        # be assigned to.
        words = self._words
        found: PlainArray[Any] = words.copy() if isinstance(words, da.Array) and not PLANS_QUERIES else words
        return found

    @property
    def system(self) -> NumberSystem:
        """Number system of the words."""
        system: NumberSystem = self._system
        return system

    def _measured_system(self) -> Any:
        """System with all that is known of the numbers, for operations whose results do not depend on it."""
        return self._system

    @property
    def moduli(self) -> ModuliSet:
        """The moduli set."""
        moduli: ModuliSet = self._system.moduli
        return moduli

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of numbers."""
        return tuple(self._words.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self._words.ndim) - 1

    @property
    def size(self) -> int:
        """Number of numbers; ValueError if it is unknown, as after selecting by a condition."""
        self._refuse_unknown("size")
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all words; ValueError if a length is unknown."""
        self._refuse_unknown("nbytes")
        return int(self._words.size * self._words.dtype.itemsize)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements for NumPy and Dask, which convert the numbers to Python ints: object."""
        return np.dtype(object)

    @property
    def _meta(self) -> NDArray[np.object_]:
        """Empty chunk as Dask's own functions see it: they convert the numbers to Python ints."""
        return np.empty((0,) * self.ndim, dtype=object)

    @property
    def _is_lazy(self) -> bool:
        return isinstance(self._words, da.Array)

    @property
    def _has_lengths(self) -> bool:
        """Whether the length of every axis is known."""
        return not any(np.isnan(length) for length in self.shape)

    def _find_lengths(self) -> None:
        """Compute unknown lengths, for operations that need them."""
        if not self._has_lengths:
            self.compute_chunk_sizes()

    def _refuse_unknown(self, what: str) -> None:
        """Raise ValueError if a length is unknown, for operations that must not compute anything."""
        if not self._has_lengths:
            raise ValueError(
                f"{what} of an array of unknown length, shape {self.shape}: it was selected by a condition; "
                "call compute_chunk_sizes() first"
            )

    def __sizeof__(self) -> int:
        """Bytes in memory, by which Dask estimates the load of a worker."""
        return object.__sizeof__(self) + (0 if self._is_lazy else int(self._words.nbytes))

    def __len__(self) -> int:
        if np.isnan(self.shape[0]):
            self._find_lengths()
        return int(self._words.shape[1])

    # ---- chunks -------------------------------------------------------------------------------------------

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of the chunks along each axis, as in Dask; an array in memory has none."""
        return self._words.chunks[1:]  # type: ignore[no-any-return]

    @property
    def _lengths(self) -> tuple[tuple[int, ...], ...] | None:
        """Lengths of the chunks along each axis, or None for an array in memory."""
        return self.chunks if self._is_lazy else None

    @property
    def numblocks(self) -> tuple[int, ...]:
        """Number of chunks along each axis, as in Dask; an array in memory has none."""
        return self._words.numblocks[1:]  # type: ignore[no-any-return]

    @property
    def npartitions(self) -> int:
        """Number of chunks; an array in memory has none."""
        return math.prod(self._words.numblocks)

    @property
    def chunksize(self) -> tuple[int, ...]:
        """Greatest chunk length along each axis; an array in memory has none."""
        return tuple(map(max, self.chunks))

    @property
    def blocks(self) -> _Blocks[Self]:
        """Chunks as a grid of :attr:`numblocks`; an index selects some as a lazy array, as Dask's ``blocks``.

        Raises
        ------
        AttributeError
            If the array is not chunked.
        """
        if not self._is_lazy:
            raise AttributeError  # `__getattr__` turns it into one that names the way out
        return _Blocks(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError for attributes that only Dask's arrays have; it names the way to one."""
            kind = with_article(type(self))
            if hasattr(type(self), name) and name not in _OF_CHUNKS:
                return object.__getattribute__(self, name)  # a property, which raises its own error again
            if name.startswith("_") or not hasattr(da.Array, name):
                raise AttributeError(f"{kind} has no attribute {name!r}", name=name, obj=self)
            lacking = (
                f"{kind} in memory has no {name}; rechunk() makes it lazy, and"
                if hasattr(type(self), name)
                else f"{kind} has no {name}, which Dask's arrays have;"
            )
            raise AttributeError(
                f"{lacking} {self._dasks_way} is a Dask array of Python ints, for Dask's functions",
                name=name,
                obj=self,
            )

    def rechunk(self, chunks: layout.Chunks = "auto") -> Self:
        """Change the chunks along the axes of the numbers; an array in memory becomes a Dask array.

        Parameters
        ----------
        chunks
            As in Dask: one length for all axes or one for each, where -1 is the whole axis and None keeps its
            chunks; the lengths of all chunks along an axis; a size such as ``"32MiB"``; a mapping from some
            of the axes to these. ``"auto"`` for all axes means 64 to 128 MiB.

        Raises
        ------
        TypeError, ValueError
            If they are not of these types, or do not add up to the shape.
        JobError
            If there are more chunks than this process has memory for.
        """
        rows = self._system.rows
        try:
            lengths = ((rows,), *normalize_chunks(chunks, self.shape, self._system.words32, self._lengths))
        except ValueError:
            if self._has_lengths:
                raise
            self._find_lengths()
            return self.rechunk(chunks)
        return self._with_words(
            rechunk(self._words, lengths) if self._is_lazy else as_lazy(self._words, lengths)
        )

    map_blocks = casting.map_blocks

    # ---- Dask collection ----------------------------------------------------------------------------------

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, normalize_token(self._words), normalize_token(self._system)

    def _numbers(self) -> da.Array:
        """Dask array whose chunks are arrays of numbers, which Dask's functions see."""
        if not self._is_lazy:
            raise TypeError(
                f"{with_article(type(self))} in memory is no Dask collection; rechunk() makes it lazy, and "
                f"{self._dasks_way} is a Dask array of Python ints, for Dask's functions"
            )
        if self._collection is None:
            self._collection = numbers_of(self._words, type(self), self._system)
        return self._collection

    def __dask_graph__(self) -> Any:
        return self._numbers().__dask_graph__() if self._is_lazy else None

    def __dask_keys__(self) -> Any:
        return self._numbers().__dask_keys__()

    def __dask_layers__(self) -> Any:
        return self._numbers().__dask_layers__()

    __dask_optimize__ = staticmethod(da.Array.__dask_optimize__)
    __dask_scheduler__ = staticmethod(da.Array.__dask_scheduler__)

    def __dask_exprs__(self) -> list[Any] | None:
        numbers: Any = self._numbers() if self._is_lazy and PLANS_QUERIES else None
        return None if numbers is None else [numbers.expr]

    def __dask_rebuild_from_exprs__(self, exprs: Any) -> Self:
        made: Any = da.Array
        like = meta_from_array(self._words)
        return self._with_words(words_of(made(*exprs), self._system, like, words_in_chunk))

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        finish = join_single if PLANS_QUERIES else join_chunks
        return finish, (self._words.__dask_postcompute__(), type(self), self._system)

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        rebuild = self._numbers().__dask_postpersist__()
        return rebuild_array, (rebuild, type(self), self._system, meta_from_array(self._words))

    def compute(self, **kwargs: Any) -> Self:
        """Compute the words, as any Dask collection does; a cluster's workers must run this version.

        Raises
        ------
        JobError
            If a worker runs another version.
        """
        with checked_workers(kwargs.get("scheduler")):
            return self._with_words(self._words.compute(**kwargs)) if self._is_lazy else self

    def persist(self, **kwargs: Any) -> Self:
        """Compute the words and keep the chunks where they are computed; errors as :meth:`compute`."""
        with checked_workers(kwargs.get("scheduler")):
            return self._with_words(self._words.persist(**kwargs)) if self._is_lazy else self

    def compute_chunk_sizes(self) -> Self:
        """Compute unknown chunk sizes in place, as Dask's method does, after selecting by a Boolean array.

        Operations that need the lengths call this themselves: indices, ``len``, :meth:`rechunk` and others
        (docs/operations.md).
        """
        if self._is_lazy:
            with checked_workers():
                # On a copy, because other arrays may share these words, with their empty chunks.
                self._words = without_empty_chunks(self._words.copy().compute_chunk_sizes())
            self._collection = None
        return self


explain_methods(NumberCollection)


class _Blocks(Generic[ArrayType]):
    """Chunks of a lazy array, to be selected by an index."""

    def __init__(self, array: ArrayType) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of chunks along each axis."""
        return self._array._words.numblocks[1:]  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of chunks."""
        return math.prod(self.shape)

    @explain
    def __getitem__(self, index: Any) -> ArrayType:
        indices = index if isinstance(index, tuple) else (index,)
        return self._array._with_words(self._array._words.blocks[(slice(None), *indices)])

    def ravel(self) -> list[ArrayType]:
        """List all chunks in C order."""
        return [self[index] for index in np.ndindex(self.shape)]
