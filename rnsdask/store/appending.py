"""Appending to stores: a longer one, which shares the old one's chunks, takes its place.

Chunks that are whole along the axis stay as they are: on a local disk the longer array has links to their
files, in an object store copies until it is whole. The last ones, where they are cut by the array's edge, are
written anew. So the old array is whole until the longer one is, and what is interrupted is begun again.
"""

import math
from collections.abc import Iterator

from rnsdask.core.errors import ChangedStoreError, CorruptChunkError, StoreError
from rnsdask.core.layout import chunk_grid, grid_indices
from rnsdask.core.number_system import NumberSystem
from rnsdask.store.attributes import APPEND, ATTRIBUTE, begun_attribute, read_job_identity
from rnsdask.store.chunk_files import chunk_file_size
from rnsdask.store.documents import changed_metadata, check_lengths
from rnsdask.store.location import Location
from rnsdask.store.metadata import StoreInfo
from rnsdask.store.old_groups import GroupInfo
from rnsdask.store.reading import content_of
from rnsdask.store.replacing import check_no_part, staging
from rnsdask.store.space import check_room
from rnsdask.store.targets import begin, take_anew
from rnsdask.store.writing import StoreWriter


def append(info: StoreInfo, system: NumberSystem, axis: int, length: int) -> StoreWriter:
    """Begin a store with more numbers along an axis, which replaces a complete one when it is finished.

    Its codecs, and what else its metadata hold, are those of the old one. It has the chunks that stay; the
    others, from the last one that is not whole along the axis, are to be written.

    Parameters
    ----------
    info
        The old store, as it was opened.
    system
        Its number system, with a bound that holds for what is appended too.
    axis, length
        How many numbers more along which axis.

    Raises
    ------
    ValueError
        If the array gets too large.
    ChangedStoreError
        If the store was overwritten since it was opened.
    CorruptChunkError
        If a chunk is missing, or they are not those that it was completed with.
    StoreError
        If it is a group of an older version, or cannot be written.
    """
    location = info.location.check_writable()
    if isinstance(info, GroupInfo):
        raise StoreError(
            f"{info.path}: it is a group, as older versions stored intervals, and nothing can be appended to "
            "it; write it to another place, x.to_zarr(path), and append there"
        )
    check_no_part(location)
    shape = _longer(info, axis, length)
    content = content_of(location, map(info.chunk_key, info.indices()))
    if info.content not in (None, content) and not _was_interrupted(location):
        raise _other_chunks(location.path)
    owner, replacement = begin(location, overwrite=True)
    if replacement is None:
        raise _changed(location.path)
    info.opened.check(location)
    replacement.keep_chunks(axis - len(shape), info.shape[axis] // info.chunks[axis])
    attribute = begun_attribute(system, owner.token, _identity(owner.token))
    metadata = changed_metadata(
        location,
        lambda array: (array.resize((system.rows, *shape)), array.update_attributes({ATTRIBUTE: attribute})),
    )
    if info.has_chunk_files:
        files = math.prod(chunk_grid(shape, info.chunks)) - sum(1 for _ in _lasting(info, axis))
        check_room({owner.location: files * chunk_file_size(info.file_shape)})
    take_anew(owner, metadata, replacement)
    owner.share_chunks(owner.location, location, map(info.chunk_key, _lasting(info, axis)))
    return StoreWriter.of_own(owner, replacement)


def _longer(info: StoreInfo, axis: int, length: int) -> tuple[int, ...]:
    """The shape of a store with more numbers along an axis, or ValueError."""
    shape = tuple(old + length * (k == axis) for k, old in enumerate(info.shape))
    check_lengths((info.system.rows, *shape), info.chunk_shape, info.system.word_dtype.itemsize)
    return shape


def _lasting(info: StoreInfo, axis: int) -> Iterator[tuple[int, ...]]:
    """Indices of the chunks that are whole along an axis."""
    grid = list(info.grid)
    grid[axis] = info.shape[axis] // info.chunks[axis]
    return grid_indices(grid)


def _identity(token: str) -> str:
    """The identity of a job that no other one has, so that none resumes it."""
    return f"{APPEND}{token}"


def _was_interrupted(location: Location) -> bool:
    """Whether an append ended in an object store, where it may have written the last chunks anew already."""
    recipe = read_job_identity(staging(location))
    return not location.is_local and recipe is not None and recipe.startswith(APPEND)


def _changed(path: str) -> ChangedStoreError:
    return ChangedStoreError(f"{path}: it was overwritten, or removed, since it was opened")


def _other_chunks(path: str) -> CorruptChunkError:
    return CorruptChunkError(
        f"{path}: its chunks are not those that it was completed with, so nothing is appended"
    )
