"""Appending to stores: a longer store that shares the old one's chunks takes its place.

Chunks that are whole along the axis stay as they are. Last chunks that the array's edge cuts are rewritten.
The longer local array is written next to its place, like any other, with hard-links to the old chunks. In an
object store the new chunks are written to a folder in the old array, and copied when all are there. So the
old array stays whole until the longer one is, and an interrupted append starts again.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rnsdask.core.errors import CorruptChunkError
from rnsdask.core.layout import ChunkPlan, grid_indices
from rnsdask.core.number_system import NumberSystem
from rnsdask.store.attributes import APPEND, begun_attribute, read_job
from rnsdask.store.chunk_files import chunk_file_size, link_file
from rnsdask.store.content import content_of
from rnsdask.store.documents import ATTRIBUTE, changed_metadata, check_lengths
from rnsdask.store.location import STAGED, Location
from rnsdask.store.metadata import StoreInfo
from rnsdask.store.space import check_room
from rnsdask.store.target import Target, check_unchanged, target_at
from rnsdask.store.writing import StoreWriter, load_own

REQUESTS = 16
"""Files that are linked or copied concurrently."""


def append(info: StoreInfo, system: NumberSystem, axis: int, length: int) -> StoreWriter:
    """Begin a store with `length` more numbers along an axis; when finished, it replaces the complete `info`.

    Codecs and other metadata are those of `info`; the bound of `system` includes the appended numbers. Chunks
    that are whole along the axis are there already; the others are to be written.

    ValueError if the array gets too large; ChangedStoreError if the store was overwritten since it was
    opened; CorruptChunkError if a chunk is missing or changed; StoreError if it is a group of an older
    version, or cannot be written.
    """
    location = info.location.check_writable()
    info.check_appendable()
    shape = _longer_shape(info, axis, length)
    try:
        _check_content(info)
    except CorruptChunkError:
        check_unchanged(info.version, location)  # or the chunks belong to another job's array
        raise
    target = replace(target_at(location, overwrite=True), extends=info.version)
    if not location.is_local:
        target = replace(target, staged=location.child(STAGED))
    attribute = begun_attribute(system, target.token, f"{APPEND}{target.token}")
    try:
        metadata = changed_metadata(
            location,
            lambda old: (old.resize((system.rows, *shape)), old.update_attributes({ATTRIBUTE: attribute})),
        )
    finally:  # also if it is gone
        target.check_extended()
    lasting = list(_whole_chunks(info, axis))
    if info.has_chunk_files:
        files = ChunkPlan(shape, info.chunks).n_chunks - len(lasting)
        check_room({location: files * chunk_file_size(info.file_shape)})
    target.begin(metadata)
    if not location.is_local:
        return _RemoteAppender(load_own(target), target, lasting)
    writer = StoreWriter(load_own(target), target)
    _link_chunks(writer, info, lasting)
    return writer


class _RemoteAppender(StoreWriter):
    """Writer of the chunks of a longer array in an object store that differ from the old array's."""

    def __init__(self, info: StoreInfo, target: Target, lasting: Sequence[tuple[int, ...]]) -> None:
        super().__init__(info, target)
        self._whole_chunks = frozenset(lasting)

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""
        return [index for index in super().missing_chunks() if index not in self._whole_chunks]

    def _content(self) -> str:
        """Copy the new chunks to the old array; return the hash of the checksums of all chunks.

        A new chunk may replace one that the old array's edge cuts: it starts with the same numbers.
        """
        location, info = self.target.location, self.info
        self.target.check_extended()
        new = [info.chunk_key(index) for index in info.indices() if index not in self._whole_chunks]
        with ThreadPoolExecutor(REQUESTS) as pool:
            list(pool.map(lambda key: location.copy(f"{STAGED}/{key}", key, f"{location.path}: {key}"), new))
        return content_of(location, map(info.chunk_key, info.indices()))


def _link_chunks(writer: StoreWriter, old: StoreInfo, indices: Sequence[tuple[int, ...]]) -> None:
    """Hard-link chunks of the old array; this is safe because files are replaced, never changed."""
    target = writer.target

    def link(index: tuple[int, ...]) -> None:
        file, name = writer.info.chunk_file(index), writer.chunk_name(index)
        try:
            link_file(file, old.chunk_file(index), name, target.check, target.unfinished)
        except FileNotFoundError:
            target.check_extended()
            raise CorruptChunkError(f"{old.chunk_name(index)} is missing") from None

    with ThreadPoolExecutor(REQUESTS) as pool:
        list(pool.map(link, indices))


def _check_content(info: StoreInfo) -> None:
    """Raise CorruptChunkError if chunks of a store are missing, or changed since it was completed."""
    content = content_of(info.location, map(info.chunk_key, info.indices()))
    if info.content not in (None, content) and not _was_interrupted(info.location):
        raise CorruptChunkError(
            f"{info.path}: its chunks are not those that it was completed with, so nothing is appended"
        )


def _longer_shape(info: StoreInfo, axis: int, length: int) -> tuple[int, ...]:
    """Return the shape of a store with more numbers along an axis, or raise ValueError."""
    shape = tuple(old + length * (k == axis) for k, old in enumerate(info.shape))
    check_lengths((info.system.rows, *shape), info.chunk_shape, info.system.word_dtype.itemsize)
    return shape


def _whole_chunks(info: StoreInfo, axis: int) -> Iterator[tuple[int, ...]]:
    """Indices of the chunks that are whole along an axis."""
    grid = list(info.grid)
    grid[axis] = info.shape[axis] // info.chunks[axis]
    return grid_indices(grid)


def _was_interrupted(location: Location) -> bool:
    """Whether an append to an object store was interrupted; it may have replaced the last chunks."""
    job = None if location.is_local else read_job(location.child(STAGED))
    return job is not None and job.startswith(APPEND)
