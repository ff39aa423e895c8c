"""The working store of an elimination: panels that are finished, from which a job goes on.

Two arrays keep them. The words of the matrix [A B] after the elimination downwards are in tiles; a panel is
written once, and never changes. For each panel, and for each reduced block column of B, a record of integers
is written after its tiles, so that it tells that they are whole.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.backend import Array, Moduli, to_backend
from rnsdask.cluster.connecting import THREADS_PER_GPU
from rnsdask.core.layout import ChunkPlan
from rnsdask.fields import block_elimination as blocks
from rnsdask.fields.block_elimination import Found, Panel
from rnsdask.fields.stored_panels import first_row, found_of, panel_of, record_of, words_of
from rnsdask.jobs.compute import mapping
from rnsdask.jobs.hashes import result_hash
from rnsdask.store.identity import Identity

TILES = 32
"""Tiles of a block column: one at most is read in vain where only rows from a pivot on are wanted."""


@dataclass(frozen=True)
class Layout:
    """Division of a matrix A (rows, columns), and of right-hand sides, into block columns of `width` columns.

    `info` describes the store of A, and `right` that of B, if there is one: (rows,) or (rows, K). Unless it
    `keeps` them, the elimination drops rows with pivots.
    """

    info: store.StoreInfo
    width: int
    keeps: bool
    right: store.StoreInfo | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A."""
        rows, columns = self.info.shape
        return rows, columns

    @property
    def moduli(self) -> Moduli:
        """The primes."""
        moduli: Moduli = self.info.system.moduli
        return moduli

    @property
    def panels(self) -> int:
        """Number of block columns of A."""
        return -(-self.shape[1] // self.width)

    @property
    def sides(self) -> int:
        """Number of block columns of B."""
        return -(-self.side_columns // self.width)

    @property
    def side_columns(self) -> int:
        """Number of right-hand sides."""
        if self.right is None:
            return 0
        return math.prod(self.right.shape[1:])

    @property
    def block_bytes(self) -> int:
        """Bytes of a block column."""
        itemsize: int = self.info.system.word_dtype.itemsize
        return len(self.moduli) * self.shape[0] * self.width * itemsize

    def place(self, k: int) -> tuple[store.StoreInfo, int, int]:
        """Store of block column k of [A B], and its first column and the one after its last there."""
        info, columns, own = self.info, self.shape[1], k
        if k >= self.panels:
            assert self.right is not None
            info, columns, own = self.right, self.side_columns, k - self.panels
        return info, own * self.width, min((own + 1) * self.width, columns)

    @property
    def tiles(self) -> ChunkPlan:
        """Tiles of the store of [A B]; B begins with a tile."""
        rows, columns = self.shape
        if self.right is not None:
            columns = self.panels * self.width + self.side_columns
        return ChunkPlan((rows, columns), (-(-rows // TILES), self.width))


@dataclass
class WorkingStore:
    """Writer and reader of finished panels.

    Attributes
    ----------
    layout : Layout
    words, records : store.ArrayWriter
        Tiles (n, R, width), and records (1, n, L) of what was found up to each panel.
    backend : str
        Processor of the panels that are read.
    bytes_read, bytes_written : int
        Bytes of tiles and records so far, by all threads.
    source_bytes : int
        Bytes of the chunks of A and B that were read.
    map_parts : callable
        The ``map`` by which chunks and tiles of a block column are read and written, in this thread unless
        within :meth:`in_threads`.
    """

    layout: Layout
    words: store.ArrayWriter
    records: store.ArrayWriter
    backend: str
    bytes_read: int = 0
    bytes_written: int = 0
    source_bytes: int = 0
    map_parts: Callable[..., Iterable[Any]] = map
    _lock: Any = field(default_factory=Lock)

    @classmethod
    def at(cls, paths: Sequence[str], layout: Layout, job: Identity, backend: str) -> "WorkingStore":
        """Begin the arrays at two paths, or go on with what the job has begun there.

        StoreError if another job has begun them, or they do not fit on the disk.
        """
        of_words, of_records = (
            store.Output(path, result_hash(job, panels=layout.width, part=k), resume=True)
            for k, path in enumerate(paths)
        )
        system, plan = layout.info.system, layout.tiles
        if of_words.decide() is store.Decision.BEGIN:
            words = store.create(of_words.path, system, plan.shape, chunks=plan.chunks, job=of_words.job)
        else:
            words = store.resume(of_words.path, job=of_words.job)
        shape = layout.panels + layout.sides, len(layout.moduli), 2 + min(layout.shape) + layout.shape[0]
        how = of_records.path, shape, (1, *shape[1:]), np.dtype(np.int64)
        if of_records.decide() is store.Decision.BEGIN:
            records = store.create_plain(*how, job=of_records.job)
        else:
            records = store.resume_plain(*how, job=of_records.job)
        return cls(layout, words, records, backend)

    @property
    def token(self) -> str:
        """Text that identifies the panels, for the names of tasks."""
        return str(self.words.target.token)

    @contextmanager
    def in_threads(self) -> Iterator[None]:
        """Read and write on several threads, for a caller that is not itself one task of many.

        Where a GPU computes, threads that wait for it are few, and its host has nothing else to do.
        """
        threads = None if self.backend == "cpu" else THREADS_PER_GPU
        with mapping(None, threads=threads) as self.map_parts:
            try:
                yield
            finally:
                self.map_parts = map

    # ---- what is finished ---------------------------------------------------------------------------------

    def count_finished(self) -> int:
        """Number of block columns, from the first on, that are finished and whole. Reads all tiles."""
        with mapping(None) as map_chunks:
            damaged = {k for _, k in self.words.damaged_chunks(map_chunks)}
            damaged |= {k for k, *_ in self.records.damaged_chunks(map_chunks)}
        wrong = damaged | {k for k, *_ in self.records.missing_chunks()}
        missing = {tuple(index) for index in self.words.missing_chunks()}
        for k in range(self.layout.panels + self.layout.sides):
            if k in wrong or any((i, k) in missing for i in self._tiles_of(self._dropped(k))):
                return k
        return self.layout.panels + self.layout.sides

    def _dropped(self, k: int) -> int:
        return first_row(self.found(min(k, self.layout.panels)), keeps=self.layout.keeps)

    def _tiles_of(self, first: int, last: int | None = None) -> range:
        """Numbers of the tiles that hold the rows from `first` to `last` of a block column."""
        rows, length = self.layout.shape[0], self.layout.tiles.chunks[0]
        return range(min(first, rows - 1) // length, -(-(rows if last is None else last) // length))

    # ---- records ------------------------------------------------------------------------------------------

    def found(self, k: int) -> Found:
        """Pivots and row exchanges of the first k panels."""
        rows, columns = self.layout.shape
        if not k:
            return blocks.nothing_found(self.layout.moduli, rows, columns)
        return found_of(self._record(k - 1), rows, self.layout.info.system.word_dtype)

    def fails(self) -> list[NDArray[np.bool_]]:
        """Whether each block column of B has no solution, modulo each prime."""
        count = self.layout.panels
        return [self._record(count + k)[:, 0] != 0 for k in range(self.layout.sides)]

    def _record(self, k: int) -> NDArray[np.int64]:
        record: NDArray[np.int64] = self.records.read_chunk((k, 0, 0))[0, 0]
        self._count(read=record.nbytes)
        return record

    def _write_record(self, k: int, record: NDArray[np.int64]) -> None:
        self.records.write_chunk((k, 0, 0), record[None, None])
        self._count(written=record.nbytes)

    # ---- words --------------------------------------------------------------------------------------------

    def write_panel(self, k: int, panel: Panel, found: Found) -> None:
        """Write a panel, and what was found with it."""
        first = self._tiles_of(panel.dropped)[0] * self.layout.tiles.chunks[0]
        shape = len(self.layout.moduli), self.layout.shape[0], self._tile_columns(k)
        self._write(k, to_backend(words_of(panel, shape, first), "cpu"), first)
        self._write_record(k, record_of(found))

    def write_side(self, k: int, block: Array, fails: NDArray[np.bool_]) -> None:
        """Write a reduced block column of B, and whether it has no solution, modulo each prime."""
        self._write(k, to_backend(block, "cpu"), 0)
        record = np.zeros(self.records.info.shape[1:], dtype=np.int64)
        record[:, 0] = fails
        self._write_record(k, record)

    def _tile_columns(self, k: int) -> int:
        plan = self.layout.tiles
        return min(plan.chunks[1], plan.shape[1] - k * plan.chunks[1])

    def _write(self, k: int, words: NDArray[Any], first: int) -> None:
        def write_tile(i: int) -> None:
            rows, _ = self.layout.tiles.slices((i, k))
            tile = np.ascontiguousarray(words[:, rows.start - first : rows.stop - first])
            self.words.write_chunk((i, k), tile)
            self._count(written=tile.nbytes)

        list(self.map_parts(write_tile, self._tiles_of(first)))

    def read(self, k: int, first: int = 0, last: int | None = None) -> tuple[NDArray[Any], int]:
        """Read rows of a block column, with those around them in their tiles; also return the first one."""
        plan, numbers = self.layout.tiles, self._tiles_of(first, last)
        _, start, stop = self.layout.place(k)
        begin, end = numbers[0] * plan.chunks[0], min((numbers[-1] + 1) * plan.chunks[0], plan.shape[0])
        shape = len(self.layout.moduli), end - begin, stop - start
        words = np.empty(shape, dtype=self.layout.info.system.word_dtype)

        def read_tile(i: int) -> None:
            rows, _ = plan.slices((i, k))
            tile = self.words.read_chunk((i, k))
            words[:, rows.start - begin : rows.stop - begin] = tile[..., : stop - start]
            self._count(read=tile.nbytes)

        list(self.map_parts(read_tile, numbers))
        return words, begin

    def read_panel(self, k: int, *, of_form: bool = False) -> Panel:
        """Read a panel: what reduces columns to its right, or the rows of its reduced form alone."""
        before, after = self.found(k), self.found(k + 1)
        last = max(1, int(after.ranks.max())) if of_form else None
        words, first = self.read(k, 0 if of_form else int(before.ranks.min()), last)
        how: dict[str, Any] = {"keeps": self.layout.keeps, "moduli": self.layout.moduli}
        place = self.layout.place(k)[1]
        return panel_of(to_backend(words, self.backend), first, before, after, first_column=place, **how)

    def _count(self, *, read: int = 0, written: int = 0) -> None:
        with self._lock:
            self.bytes_read += read
            self.bytes_written += written


# ---- block columns of stores ------------------------------------------------------------------------------


def read_columns(
    layout: Layout, numbers: range, backend: str, map_chunks: Callable[..., Iterable[Any]]
) -> tuple[list[Array], int]:
    """Read some block columns of A, or of B, each stored chunk once; also return the bytes of the chunks."""
    places = [layout.place(k) for k in numbers]
    info, n, rows = places[0][0], len(layout.moduli), layout.shape[0]
    like = to_backend(np.empty(0, dtype=info.system.word_dtype), backend)
    found = [np.empty_like(like, shape=(n, rows, stop - start), order="C") for _, start, stop in places]
    ends = [(start, stop) for _, start, stop in places]
    length = info.chunks[1] if len(info.shape) > 1 else 1
    wanted = range(ends[0][0] // length, -(-ends[-1][1] // length))
    if len(info.shape) == 1:
        wanted = range(1)
    indices = [(i, j) for i in range(info.grid[0]) for j in wanted]
    sizes = map_chunks(partial(_read_into, info, found, ends), indices)
    return found, sum(sizes)


def _read_into(
    info: store.StoreInfo, out: list[Array], ends: list[tuple[int, int]], index: tuple[int, int]
) -> int:
    """Read a stored chunk, and copy its parts to the block columns that they belong to."""
    own = index[: len(info.shape)]
    chunk, (rows, *columns) = store.read_chunk(info, own), info.slices(own)
    first, last = (columns[0].start, columns[0].stop) if columns else (0, 1)
    words = chunk.reshape(*chunk.shape[:2], last - first)
    for block, (start, stop) in zip(out, ends, strict=True):
        low, high = max(start, first), min(stop, last)
        if low < high:
            part = np.ascontiguousarray(words[..., low - first : high - first])
            block[:, rows, low - start : high - start] = np.asarray(part, like=block)
    return chunk.nbytes
