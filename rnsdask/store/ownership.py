"""Whose an incomplete array is: the one writer that may change it, and how others are kept out.

The metadata document names the writer. On a local disk each writer's files appear by being moved out of a
folder of its own, and who takes an array over first writes its own name, then moves the folders of the others
away: whatever those have checked before, nothing of theirs can appear any more.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from rnsdask.core.errors import CorruptChunkError, StoreAccessError, StoreError
from rnsdask.store.attributes import ATTRIBUTE, read_writer
from rnsdask.store.chunk_files import PARTIAL_SUFFIX, exchange, link_file, write_file
from rnsdask.store.documents import changed_metadata, with_attributes
from rnsdask.store.location import CHUNK_FOLDER, METADATA_KEY, STAGED, Location

WRITER_PREFIX = ".writer-"
"""Begin of the name of the folder where the files of a writer are while they are written."""

_REQUESTS = 16
"""Files that are shared at a time."""


def is_left_behind(name: str) -> bool:
    """Whether a file or folder of an array, by its name, is of a write that was interrupted."""
    return name.endswith(PARTIAL_SUFFIX) or name.startswith(WRITER_PREFIX)


class Owner:
    """A writer's right to an array, which lasts until another one takes it over.

    Parameters
    ----------
    location
        The array's place.
    attribute
        Key of the attribute that names the writer.
    is_new
        Whether there was no array when this was made: then one that is there later is not taken.
    """

    def __init__(self, location: Location, attribute: str = ATTRIBUTE, *, is_new: bool = False) -> None:
        self.location = location
        self.token = uuid.uuid4().hex
        self._attribute = attribute
        self.is_new = is_new

    @cached_property
    def place(self) -> Path | None:
        """Folder of this writer's files while they are written, where that is a local one."""
        return Path(self.location.path, f"{WRITER_PREFIX}{self.token}") if self.location.is_local else None

    def check(self) -> None:
        """Raise StoreError if another writer has begun to write the array."""
        if read_writer(self.location, self._attribute) != self.token:
            path = self.location.path
            raise StoreError(f"{path}: another job has begun to write it, or it was removed")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Tell of a file that is gone in this context as of what another writer has removed, if one has."""
        try:
            yield
        except (FileNotFoundError, CorruptChunkError):
            self.check()
            raise

    def take(self, metadata: bytes, may_replace: Callable[[bytes], bool] | None = None) -> None:
        """Make the array this writer's, by metadata that name it.

        Parameters
        ----------
        metadata
            They replace those that are there, unless there was no array.
        may_replace
            Told those, it decides whether they are still what was found when this began.

        Raises
        ------
        StoreError
            If they are not, or another writer has taken it at the same time.
        """
        if may_replace is not None and not self.is_new:
            replace_metadata(self.location, metadata, may_replace)
        else:
            write_first_metadata(self.location, metadata, is_new=self.is_new)
        remove_folders_of_writers(self.location)
        self.check()

    def take_over(self, attributes: dict[str, Any], was_found: Callable[[bytes], bool]) -> None:
        """Make an array this writer's by attributes that name it, if its metadata are as they were found."""
        try:
            metadata = with_attributes(self.location, attributes)
        except FileNotFoundError:
            raise _completed(self.location) from None
        self.take(metadata, was_found)

    def set_chunks_aside(self) -> None:
        """Move the chunks of a local array that begins anew into this writer's folder, to be removed there.

        To remove many takes time, in which another writer may take the array over, whose chunks would be
        removed in their place. That one moves this folder away before it writes any.
        """
        if self.place is None:
            return
        chunks = Path(self.location.path, CHUNK_FOLDER)
        try:
            while os.path.lexists(chunks):
                with suppress(FileNotFoundError):  # of this folder: by a writer that has lost the array
                    self.place.mkdir(exist_ok=True)
                    self.check()
                    chunks.rename(self.place / uuid.uuid4().hex)
        except StoreError:
            with suppress(OSError):
                self.place.rmdir()
            raise
        except OSError as error:
            raise StoreAccessError.of(f"{self.location.path}: its chunks cannot be removed", error) from error

    def write_metadata(self, metadata: bytes) -> None:
        """Replace the metadata, unless another writer has begun to write the array."""
        self.check()
        what = f"{self.location.path}: it"
        if self.place is None:
            self.location.write(METADATA_KEY, metadata, what)
            return
        write_file(Path(self.location.path, METADATA_KEY), metadata, what, self.check, self.place)
        with suppress(OSError):  # it is not empty
            self.place.rmdir()

    def change_metadata(self, change: Callable[[Any], object]) -> None:
        """Have Zarr change the metadata, unless another writer has begun to write the array."""
        self.check()
        self.write_metadata(changed_metadata(self.location, change))

    def put_chunk(self, location: Location, key: str, encoded: bytes, name: str) -> None:
        """Write an encoded chunk of the array, or of one at `location` that belongs to it.

        To send a chunk to an object store takes time, in which another job may take the array over. So a
        chunk is first put where there is none: one that comes late does not replace the other job's. What is
        there already, from an earlier try or from another job, is replaced by who owns the array.
        """
        if self.place is not None:
            write_file(Path(location.path, key), encoded, name, self.check, self.place)
            return
        self.check()
        if not location.create(key, encoded, name):
            self.check()
            location.write(key, encoded, name)

    def share_chunks(self, new: Location, old: Location, keys: Iterable[str]) -> None:
        """Have what is written at a place, and is this writer's, hold chunks of what it will replace.

        On a local disk they are the same files: nobody ever changes a chunk's file, but puts another in its
        place.
        """
        with ThreadPoolExecutor(_REQUESTS) as pool:
            list(pool.map(lambda key: self._share(new, old, key), keys))

    def _share(self, new: Location, old: Location, key: str) -> None:
        name = f"{new.path}: chunk {key}"
        try:
            if self.place is not None:
                link_file(Path(new.path, key), Path(old.path, key), name, self.check, self.place)
                return
            self.check()
            old.copy(key, f"{STAGED}/{key}", name)
        except FileNotFoundError:
            raise CorruptChunkError(f"{old.path}: chunk {key} is missing") from None


def write_first_metadata(location: Location, metadata: bytes, *, is_new: bool) -> None:
    """Write those that an array or group begins with; StoreError if it is to be new, and others are there."""
    what = f"{location.path}: it"
    if not is_new:
        location.write(METADATA_KEY, metadata, what)
    elif not location.create(METADATA_KEY, metadata, what) and location.read_metadata() != metadata:
        raise StoreError(f"{location.path}: another job has begun to write it")


def replace_metadata(location: Location, metadata: bytes, may_replace: Callable[[bytes], bool]) -> None:
    """Replace metadata if they are found to be what may be replaced; a local disk does both in one step."""
    what = f"{location.path}: it"
    if location.is_local:
        file = Path(location.path, METADATA_KEY)
        other = file.with_name(f"{METADATA_KEY}.{uuid.uuid4().hex}{PARTIAL_SUFFIX}")
        write_file(other, metadata, what)
        try:
            if exchange(other, file):
                if may_replace(other.read_bytes()):
                    return
                exchange(other, file)
                raise _completed(location)
        finally:
            other.unlink(missing_ok=True)
    found = b""
    with suppress(FileNotFoundError):
        found = location.read_metadata()
    if not may_replace(found):
        raise _completed(location)
    location.write(METADATA_KEY, metadata, what)


def _completed(location: Location) -> StoreError:
    return StoreError(f"{location.path}: another job has begun to write it, or has completed it")


def remove_folders_of_writers(location: Location) -> None:
    """Make sure that nothing of other writers appears in a local array any more."""
    if not location.is_local:
        return
    for name in location.names():
        if name.startswith(WRITER_PREFIX):
            moved = Path(location.path, f"{WRITER_PREFIX}{uuid.uuid4().hex}")
            with suppress(FileNotFoundError):  # another writer has done it
                Path(location.path, name).rename(moved)
            shutil.rmtree(moved, ignore_errors=True)


def remove_left_behind(location: Location) -> None:
    """Remove what interrupted writes have left in an array."""
    remove_folders_of_writers(location)
    for key in location.sizes():
        if key.endswith(PARTIAL_SUFFIX):
            location.remove(key)
