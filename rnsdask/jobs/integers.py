"""Jobs that bring integers into a store and out of it, in bounded memory."""

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.core import layout
from rnsdask.core.errors import InputError, JobError
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.fields.system import PrimeFields
from rnsdask.interval_rns import layout as interval_layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.jobs.compute import Advance, map_ahead, mapping
from rnsdask.jobs.integer_reading import LONG_BITS, ByteOrder
from rnsdask.jobs.integer_writing import Form, check_consecutive, write_integers
from rnsdask.jobs.writing import Index, Transfer, check_same, continues, resume_store, written_chunks
from rnsdask.lazy.write import removing_failed
from rnsdask.positional.system import Positional
from rnsdask.rns import convert
from rnsdask.rns.blocks import BATCH_INTEGERS, BATCH_RESIDUES
from rnsdask.rns.decimal import decimal_limbs, residues_to_decimal
from rnsdask.rns.system import RNS

# ---- Into a store -----------------------------------------------------------------------------------------


System: TypeAlias = RNS | Positional | PrimeFields
"""The number systems of stores that integers are imported to."""


class Integers(Protocol):
    """Some integers, such as a :class:`.Batch`."""

    def __len__(self) -> int: ...

    def to_words(self, system: System, /) -> NDArray[np.uint32]:
        """Their words in a system, of shape (rows, integers)."""
        ...


class IntegerSource(Protocol):
    """What gives integers one after the other, as :class:`.IntegerReader` says it."""

    count: int
    bytes_read: int

    @property
    def bound(self) -> int:
        """The largest absolute value among the integers read so far."""
        ...

    def read(self, count: int) -> Integers:
        """The next integers."""
        ...


def import_integers(
    source: IntegerSource,
    name: str,
    path: str,
    system: System,
    *,
    chunks: layout.Chunks = "auto",
    shape: tuple[int, ...] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    job_identity: str | None = None,
    nonzero: int | None = None,
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write all integers of a stream to a store, chunk by chunk.

    Parameters
    ----------
    source : IntegerSource
        The integers; their range must be that of the system.
    name : str
        The stream's name in error messages.
    shape : tuple of int, optional
        The shape of the array, filled in C order; one axis without it.
    resume : bool
        Continue an incomplete store that was begun from the same integers: they are read again, and compared
        with the chunks that are written, which stay. One that is not there is begun.
    job_identity : str, optional
        What the integers follow from, where that is known.
    nonzero : int, optional
        How many of the integers are not 0, at most, where that is known.
    advance : callable
        Told how many more bytes of the stream are done.

    Raises
    ------
    ValueError
        If `chunks` does not suit.
    InputError
        If the stream holds no integer, or something else. The store, if it was not resumed, is removed.
    """
    resume = continues(path, job_identity, overwrite=overwrite, resume=resume)
    lengths = consecutive_chunks(chunks, shape, system.rows)
    target = _Target(path, system, lengths, shape, overwrite, job_identity)
    if resume:
        target.resume(any_chunks=chunks == "auto")
    with nullcontext() if resume else removing_failed(target.discard):
        if not resume:
            target.begin(nonzero)
        for index, part in _parts(shape, target.chunks):
            begun, size = source.count, math.prod(part)
            residues = _next_chunk(source, system, size, advance)
            is_whole = source.count == begun + size
            if shape is not None and not is_whole:
                raise InputError(_other_count(name, str(source.count), shape))
            target.take(index, residues.reshape(-1, *part) if shape else residues, source.count, is_whole)
            if not is_whole:
                break
        if shape is not None and len(source.read(1)):
            raise InputError(_other_count(name, "more", shape))
        return target.finish(source, name)


def consecutive_chunks(chunks: layout.Chunks, shape: tuple[int, ...] | None, rows: int) -> tuple[int, ...]:
    """Chunks of an array that is filled in C order: consecutive parts of it.

    Raises
    ------
    ValueError
        If `chunks` does not suit, or the shape has no numbers.
    """
    if shape is None:
        return layout.normalize_chunks(chunks, (0,), rows)
    if not shape or 0 in shape:
        raise ValueError(f"shape must have at least one number along each axis, got {shape}")
    if chunks != "auto" and len(shape) > 1 and not isinstance(chunks, Sequence):
        count = as_integer(chunks, "chunks")
        chunks = _rows_of(math.prod(shape) if count == -1 else count, shape)
    lengths = layout.normalize_chunks(chunks, shape, rows)
    if not layout.are_consecutive(shape, lengths):
        raise ValueError(
            f"chunks of shape {lengths} are not consecutive parts of an array of shape {shape}, which is "
            "filled in C order; give the most integers of a chunk, and x.rechunk(chunks) afterwards"
        )
    return lengths


def _rows_of(count: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of at most so many numbers, from the last axis upwards; consecutive parts of the array."""
    lengths: list[int] = []
    for length in reversed(shape):
        lengths.append(max(1, min(length, count)))
        count //= length
    return tuple(reversed(lengths))


def _parts(shape: tuple[int, ...] | None, chunks: tuple[int, ...]) -> Iterator[tuple[Index, tuple[int, ...]]]:
    """The index and the shape of each chunk in order; without an end if the shape is not known yet."""
    if shape is None:
        yield from (((i,), chunks) for i in count())
        return
    for index in layout.grid_indices(layout.chunk_grid(shape, chunks)):
        yield index, layout.part_shape(index, shape, chunks)


def _other_count(name: str, found: str, shape: tuple[int, ...]) -> str:
    return f"{name}: shape {shape} takes {math.prod(shape)} integers, it holds {found}"


class _Target:
    """The store of an import, which is created when its first chunk is known, or continued.

    Attributes
    ----------
    chunks : tuple of int
        The lengths of its chunks.
    """

    def __init__(
        self,
        path: str,
        system: System,
        chunks: tuple[int, ...],
        shape: tuple[int, ...] | None,
        overwrite: bool,
        job_identity: str | None,
    ) -> None:
        self._path, self._system, self._shape, self._overwrite = path, system, shape, overwrite
        self._job_identity = job_identity
        self._writer: store.StoreWriter | None = None
        self._written: set[Index] = set()
        self._damaged: set[Index] = set()
        self.chunks = chunks

    def begin(self, nonzero: int | None) -> None:
        """Create the store before anything is read, if its shape is known; else look whether that can be."""
        if self._shape is None:
            store.check_can_begin(store.locate(self._path), overwrite=self._overwrite)
        else:
            self._create(self._shape, nonzero)

    def _create(self, shape: tuple[int, ...], nonzero: int | None = None) -> None:
        how: dict[str, Any] = {"chunks": self.chunks, "overwrite": self._overwrite, "nonzero": nonzero}
        how["job_identity"] = self._job_identity
        self._writer = store.create(self._path, self._system, shape, **how)

    def resume(self, *, any_chunks: bool) -> None:
        """Open an incomplete store, and find out which of its chunks are whole, and which are damaged."""
        wanted: dict[str, Any] = {"system": self._system}
        if not isinstance(self._system, PrimeFields):
            names = ["bits" if isinstance(self._system, Positional) else "moduli", "signed"]
            wanted = {name: getattr(self._system, name) for name in names}
        wanted |= {} if any_chunks else {"chunks": self.chunks}
        wanted |= {} if self._shape is None else {"shape": self._shape}
        self._writer = resume_store(self._path, self._job_identity, True, **wanted)
        info = self._writer.info
        if self._shape is None and len(info.shape) > 1:
            raise JobError(
                f"{info.path}: it cannot be resumed: its shape: {info.shape}; the job has no shape; "
                "replace it with overwrite=True"
            )
        check_consecutive(info.path, info.shape, info.chunks)
        self.chunks = info.chunks
        # On as many threads as the job was granted: each of them has a chunk in memory.
        with mapping(None) as map_chunks:
            self._written, self._damaged = written_chunks(self._writer, map_chunks)

    def take(self, index: Index, words: NDArray[np.uint32], count: int, is_whole: bool) -> None:
        """Write a chunk, or compare it with what is written, when `count` integers are read in all."""
        if index in self._written:
            assert self._writer is not None
            # A last chunk that is shorter than the one written: there are too few integers, as `finish` says.
            if is_whole or count >= self._writer.info.count:
                check_same(self._writer, index, words)
        elif words.size:
            if self._writer is None:
                self._create(words.shape[1:])
            elif count > self._writer.info.count:
                self._writer.resize((count,))
            assert self._writer is not None
            self._writer.write_chunk(index, words)

    def discard(self) -> None:
        """Remove the store, if it is created yet."""
        if self._writer is not None:
            self._writer.discard()

    def finish(self, source: IntegerSource, name: str) -> Transfer:
        """Make the store whole."""
        if self._writer is None:
            raise InputError(f"{name}: it is empty; at least one integer was expected")
        info = self._writer.info
        if source.count != info.count:
            begun = f"{info.path}: it was begun with {info.count} integers or more"
            raise JobError(
                f"{begun}, and {name} holds {source.count}; it cannot be resumed; "
                "replace it with overwrite=True"
            )
        info = self._writer.finish(bound=source.bound if isinstance(info.system, RNS) else None)
        return Transfer(info.count, source.bytes_read, info.nbytes, len(self._written), len(self._damaged))


def batch_size(system: System, nbytes: int = 0) -> int:
    """How many integers are converted at a time, where each takes so many bytes outside of the store."""
    words = max(system.rows, nbytes // layout.RESIDUE_DTYPE.itemsize)
    return max(BATCH_INTEGERS, BATCH_RESIDUES // words)


def _next_chunk(source: IntegerSource, system: System, length: int, advance: Advance) -> NDArray[np.uint32]:
    """Read up to `length` integers, as residues."""
    residues = np.empty((system.rows, length), dtype=np.uint32)
    begun = source.count

    def convert_batch(part: tuple[int, Integers]) -> None:
        first, batch = part
        residues[:, first : first + len(batch)] = batch.to_words(system)

    for _ in map_ahead(convert_batch, _batches(source, length, batch_size(system), advance)):
        pass
    return residues[:, : source.count - begun]


def _batches(
    source: IntegerSource, total: int, size: int, advance: Advance
) -> Iterator[tuple[int, Integers]]:
    """Read at most `total` integers in batches of at most `size`, each with its position."""
    first = 0
    while first < total:
        before = source.bytes_read
        batch = source.read(min(size, total - first))
        if not len(batch):
            return
        yield first, batch
        first += len(batch)
        advance(source.bytes_read - before)


# ---- Out of a store ---------------------------------------------------------------------------------------


def export_integers(
    info: store.StoreInfo,
    stream: BinaryIO,
    *,
    form: Form = "text",
    hexadecimal: bool = False,
    width: int | None = None,
    byteorder: ByteOrder = "little",
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write all integers of a store to a stream, in C order.

    Parameters
    ----------
    form : {"text", "csv", "npy", "parquet"}
        The kind of file, as :func:`.write_integers` writes it.
    hexadecimal : bool
        Text in hexadecimal instead of decimal.
    width : int, optional
        Binary records of so many bytes instead of text.
    byteorder : {"little", "big"}
        Which byte of a record is the first: the least or the most significant one.
    advance : callable
        Told how many more integers are written.

    Raises
    ------
    JobError
        If an integer does not fit into a record or a NumPy file, or the chunks are not consecutive parts of
        the array.
    """
    check_consecutive(info.path, info.shape, info.chunks)
    system = info.system
    how: dict[str, Any] = {"shape": info.shape, "limits": system.known_range, "form": form}
    how |= {"hexadecimal": hexadecimal, "width": width, "byteorder": byteorder}
    batches, decimal = stored_batches(info, batch_size(system, width or 0)), partial(_decimal, system=system)
    done, written = write_integers(
        stream, batches, decimal, system.limbs_of, signed=system.is_signed, **how, advance=advance
    )
    return Transfer(done, info.nbytes, written)


def _decimal(words: NDArray[np.uint32], system: System | IntervalRNS | FiniteFields) -> Any:
    """Decimal limbs of words, and which numbers are negative."""
    if isinstance(system, RNS | PrimeFields):
        return residues_to_decimal(words, system.moduli, getattr(system, "signed", False))
    if isinstance(system, IntervalRNS):
        residues = interval_layout.residues_of(words, system.moduli)
        limbs, _ = residues_to_decimal(residues, system.moduli)
        return limbs, interval_layout.is_negative(words, system.moduli)
    if not isinstance(system, Positional) or system.bits > LONG_BITS:
        return decimal_limbs(system.decode(words).ravel().tolist())
    moduli = ModuliSet.for_bits(system.bits + 1)  # by residues, for which there is a quick way
    residues = convert.to_residues(system.limbs_of(words), moduli, system.signed)
    return residues_to_decimal(residues, moduli, system.signed)


def stored_batches(info: store.StoreInfo, size: int) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Read a store's integers in batches of at most `size`, each with its position."""
    first = 0
    for index in info.indices():
        residues = layout.as_matrix(store.read_chunk(info, index))
        for start in range(0, residues.shape[1], size):
            yield first + start, residues[:, start : start + size]
        first += residues.shape[1]
