"""Jobs that import integers, and residues of other programs, into a store in bounded memory."""

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from dask.array.core import normalize_chunks
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core import layout
from rnsdask.core.errors import InputError, JobError, brief
from rnsdask.core.files import naming_file
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.places import is_url, read_place
from rnsdask.core.ways import REPLACE, Message, Way, must, with_ways
from rnsdask.io.line_forms import NumberRange
from rnsdask.io.numpy_files import map_numpy
from rnsdask.jobs.compute import Advance, map_ahead, mapping
from rnsdask.jobs.derivation import most_alive
from rnsdask.jobs.input_forms import Integers, IntegerSource
from rnsdask.jobs.memory_plan import Work, describe
from rnsdask.jobs.writing import (
    Index,
    Transfer,
    check_same,
    resume_store,
    write_array,
    written_chunks,
)
from rnsdask.lazy.write import removing_failed
from rnsdask.positional.system import Positional
from rnsdask.rns.blocks import batch_size
from rnsdask.rns.system import RNS, least_system


def system_for(found: NumberRange, *, signed: bool, positional: bool = False) -> RNS | Positional:
    """Return the smallest number system that holds a range, signed if requested or needed."""
    signed = signed or found.lowest < 0
    if positional:
        longest = max(found.highest.bit_length(), (~found.lowest).bit_length() if found.lowest else 0, 1)
        return Positional(longest + signed, signed)
    return least_system(found.lowest, found.highest, signed)


# ---- The chunks -------------------------------------------------------------------------------------------


def consecutive_chunks(chunks: layout.Chunks, shape: tuple[int, ...] | None, rows: int) -> tuple[int, ...]:
    """Return chunks that are consecutive parts of an array in C order; ValueError if they cannot be."""
    if shape is None:
        return layout.plan_chunks(chunks, (0,), rows).chunks
    if not shape or 0 in shape:
        raise ValueError(must("shape", f"have at least one number along each axis, got {shape}"))
    if chunks != "auto" and len(shape) > 1 and not isinstance(chunks, Sequence):
        count = as_integer(chunks, "chunks")
        chunks = _rows_of(math.prod(shape) if count == -1 else count, shape)
    plan = layout.plan_chunks(chunks, shape, rows)
    if not plan.is_consecutive:
        raise ValueError(
            Message(
                f"chunks of shape {plan.chunks} are not consecutive parts of an array of shape {shape}, "
                "which is filled in C order; give the most integers of a chunk, and ",
                Way.RECHUNK,
                " afterwards",
            )
        )
    return plan.chunks


def _rows_of(count: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of at most `count` numbers that are consecutive parts of the array, from the last axis up."""
    lengths: list[int] = []
    for length in reversed(shape):
        lengths.append(max(1, min(length, count)))
        count //= length
    return tuple(reversed(lengths))


def _parts(shape: tuple[int, ...] | None, chunks: tuple[int, ...]) -> Iterator[tuple[Index, tuple[int, ...]]]:
    """Indices and shapes of all chunks in order; endless if the shape is not known yet."""
    if shape is None:
        yield from (((i,), chunks) for i in count())
        return
    plan = layout.ChunkPlan(shape, chunks)
    for index in plan.indices():
        yield index, plan.part_shape(index)


# ---- Integers ---------------------------------------------------------------------------------------------


@dataclass
class Import:
    """Import of integers into a store, which is created with its first chunk, or resumed.

    The limits of `source` must be the system's range. The array is filled in C order; without a shape it has
    one axis. :func:`consecutive_chunks` gives its chunks.
    """

    source: IntegerSource
    output: store.Output
    system: NumberSystem
    shape: tuple[int, ...] | None
    chunks: tuple[int, ...]
    _writer: store.StoreWriter | None = None
    _written: set[Index] = field(default_factory=set)
    _damaged: set[Index] = field(default_factory=set)

    @property
    def work(self) -> Work:
        """Description of the job for the plan of its memory."""
        one_chunk = layout.ChunkPlan(self.chunks, self.chunks)
        return describe("import", [self.system], one_chunk, held=self.source.held)

    def run(self, *, any_chunks: bool = False, advance: Advance = lambda _: None) -> Transfer:
        """Write all integers, chunk by chunk.

        To resume an incomplete store, the integers are read again, and compared with the chunks that are
        already written, which stay; with `any_chunks` the store may have other chunks. `advance` is called
        with the bytes read from the source since its last call. InputError if the source is empty or wrong;
        then a new store is removed.
        """
        resumed = self.output.decide() is store.Decision.GO_ON
        if resumed:
            self._resume(any_chunks)
        elif self.shape is None:
            self.output.check()
        with nullcontext() if resumed else removing_failed(self._discard):
            if not resumed and self.shape is not None:  # before anything is read
                self._create(self.shape, self.source.nonzero)
            self._write_chunks(advance)
            return self._finish()

    def _create(self, shape: tuple[int, ...], nonzero: int | None = None) -> None:
        output = self.output
        how: dict[str, Any] = {"chunks": self.chunks, "overwrite": output.overwrite, "nonzero": nonzero}
        self._writer = store.create(output.path, self.system, shape, job=output.job, **how)

    def _resume(self, any_chunks: bool) -> None:
        """Open an incomplete store, and find its whole and its damaged chunks."""
        wanted: dict[str, Any] = {"system": self.system}
        wanted |= {} if any_chunks else {"chunks": self.chunks}
        wanted |= {} if self.shape is None else {"shape": self.shape}
        self._writer = resume_store(self.output, True, any_bound=True, **wanted)
        info = self._writer.info
        if self.shape is None and len(info.shape) > 1:
            raise JobError(
                with_ways(
                    f"{info.path}: it cannot be resumed: its shape: {info.shape}; the job has no shape",
                    REPLACE,
                )
            )
        layout.check_consecutive(info.path, info)
        self.chunks = info.chunks
        # On the threads that the job was granted, because each holds a chunk in memory.
        with mapping(None) as map_chunks:
            self._written, self._damaged = written_chunks(self._writer, map_chunks)

    def _write_chunks(self, advance: Advance) -> None:
        source, shape = self.source, self.shape
        for index, part in _parts(shape, self.chunks):
            begun, size = source.count, math.prod(part)
            words = self._read(size, advance)
            is_whole = source.count == begun + size
            if shape is not None and not is_whole:
                raise self._other_count(str(source.count))
            self._take(index, words.reshape(-1, *part) if shape else words, is_whole)
            if not is_whole:
                break
        if shape is not None and len(source.read(1)):
            raise self._other_count("more")

    def _read(self, length: int, advance: Advance) -> NDArray[Any]:
        """Read up to `length` integers, as words."""
        words = np.empty((self.system.rows, length), dtype=self.system.word_dtype)
        begun = self.source.count

        def convert_batch(part: tuple[int, Integers]) -> None:
            first, batch = part
            words[:, first : first + len(batch)] = batch.to_words(self.system)

        batches = _batches(self.source, length, batch_size(self.system.words32), advance)
        for _ in map_ahead(convert_batch, batches):
            pass
        return words[:, : self.source.count - begun]

    def _take(self, index: Index, words: NDArray[Any], is_whole: bool) -> None:
        """Write a chunk, or compare it with the stored one."""
        count = self.source.count
        if index in self._written:
            assert self._writer is not None
            # The last chunk is shorter than the stored one: there are too few integers, which `finish`
            # reports.
            if is_whole or count >= self._writer.info.count:
                check_same(self._writer, index, words)
        elif words.size:
            if self._writer is None:
                self._create(words.shape[1:])
            elif count > self._writer.info.count:
                self._writer.resize((count,))
            assert self._writer is not None
            self._writer.write_chunk(index, words)

    def _other_count(self, found: str) -> InputError:
        assert self.shape is not None
        taken = math.prod(self.shape)
        return InputError(f"{self.source.name}: shape {self.shape} takes {taken} integers, it holds {found}")

    def _discard(self) -> None:
        """Remove the store, if it has been created."""
        if self._writer is not None:
            self._writer.discard()

    def _finish(self) -> Transfer:
        """Complete the store."""
        source = self.source
        if self._writer is None:
            but = f" but for names, {brief(source.names)}" if source.names else ""
            raise InputError(f"{source.name}: it is empty{but}; at least one integer was expected")
        info = self._writer.info
        if source.count != info.count:
            begun = f"{info.path}: it was begun with {info.count} integers or more"
            raise JobError(
                with_ways(f"{begun}, and {source.name} holds {source.count}; it cannot be resumed", REPLACE)
            )
        info = self._writer.finish(bound=source.bound if info.system.extends else None)
        return Transfer(info.count, source.bytes_read, info.nbytes, len(self._written), len(self._damaged))


def _batches(
    source: IntegerSource, total: int, size: int, advance: Advance
) -> Iterator[tuple[int, Integers]]:
    """Read at most `total` integers in batches of at most `size`; yield each with its position."""
    first = 0
    while first < total:
        before = source.bytes_read
        batch = source.read(min(size, total - first))
        if not len(batch):
            return
        yield first, batch
        first += len(batch)
        advance(source.bytes_read - before)


# ---- Residues of other programs ---------------------------------------------------------------------------


def open_residues(path: str) -> Any:
    """Open residues from another program: a NumPy file, mapped into memory, or a Zarr array."""
    place = read_place(path, "an input")
    if is_url(place) or not Path(place).is_file():
        return store.open_any_array(path)
    with naming_file(path):
        return map_numpy(place, path)


def work_of_import(array: RNSArray, source: Any, axis: int) -> Work:
    """Describe the job that writes an array made of residues along an axis of `source`.

    Whole chunks of a Zarr array are read, and wait in memory to be cut and joined to the written ones.
    """
    written = array.words.chunks[1:]
    plan = layout.ChunkPlan.longest(written)
    if isinstance(source, np.ndarray):  # a file, which is read in the chunks that are written
        return describe("residues", [array.system], plan)
    chunks = list(source.chunks)
    del chunks[axis]
    read = normalize_chunks(tuple(chunks), array.shape)
    plan = max(plan, layout.ChunkPlan.longest(read), key=lambda one: one.chunk_count)
    waiting = most_alive(read, written, array.shape) * array.system.words32 * layout.RESIDUE_DTYPE.itemsize
    return describe("residues", [array.system], plan, held=waiting)


def import_residues(
    array: RNSArray, source: Any, name: str, output: store.Output, *, progress: bool = False
) -> Transfer:
    """Write an array that :func:`.from_residues` made of `source`, called `name` in messages, to a store.

    The job's hash is from :func:`.import_hash`. InputError if a residue is not below its modulus.
    """
    try:
        done = write_array(array, output, compare_all=True, progress=progress)
    except ValueError as error:
        if type(error) is not ValueError:  # of the store
            raise
        raise InputError(Message(f"{name}: ", error)) from error
    nbytes = int(source.nbytes)
    return Transfer(done.count, nbytes, done.bytes_written, done.chunks_kept, done.chunks_rewritten)
