"""Targets of writers: where an array is written, its writer's token, and the swap into its place.

A local array is written next to its place, and renamed when it is whole. In an object store it is written in
its place, and is incomplete until its last object, the metadata. Meanwhile the metadata hold a random token
of the writer, which publishes files only while the token is there. A job that takes an array over writes
another token, then removes the unfinished files: they are in a folder of their own, so none arrives late.

The states of a local place ``x``. Folders ``.partial`` in ``x`` hold files that are no longer needed.

=========  ==============  ======================  =============  ============================================
state      ``x``           ``x.partial``           ``.x.former``  what comes next
=========  ==============  ======================  =============  ============================================
REST       old or nothing  nothing                 nothing
BEGUN      old or nothing  incomplete, a token     nothing        DECIDED; or another job has or removes it
DECIDED    old or nothing  whole, with .partial    nothing        BETWEEN; PLACED where nothing was
BETWEEN    nothing         whole, with .partial    the old one    PLACED
PLACED     new             nothing                 the old one    the old one is removed: REST
ABANDONED  nothing         nothing, or incomplete  the old one    it is renamed back: REST, or BEGUN
=========  ==============  ======================  =============  ============================================

- A job changes the state only while it holds the lock (:func:`.locked`), which the kernel releases for a job
  that is killed. The holder of the lock finds another state than REST and BEGUN only where a job was killed,
  and first brings it to one of these (:func:`settle`).
- From DECIDED on the new array counts: a job that is killed before leaves the old one, a job that is killed
  later the new one. A job whose renames fail goes back to BEGUN; where it cannot, its error says so.
- A job whose token is no longer in ``x.partial`` has lost it, changes nothing, and ends with an error.
- The only copy of the old array is ``x`` or ``.x.former``, and only in PLACED is ``.x.former`` removed.
- On a disk without locks the states are the same. There a job may come between two steps of another, and
  either of them may fail.
"""

import glob
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnsdask.core.errors import ChangedStoreError, StoreAccessError, StoreError
from rnsdask.core.messages import list_some
from rnsdask.core.ways import REPLACE, Message, Setting, with_ways
from rnsdask.store.attributes import read_writer, way_on
from rnsdask.store.beside import former, is_replaced, locked
from rnsdask.store.chunk_files import PARTIAL_SUFFIX, write_file
from rnsdask.store.consolidated import remove_consolidated
from rnsdask.store.documents import (
    ATTRIBUTE,
    concealed,
    document_of,
    own_attribute,
    with_attributes,
    with_fields,
)
from rnsdask.store.location import CHUNK_FOLDER, JOB_KEY, METADATA_KEY, STAGED, Location
from rnsdask.store.nesting import check_outside_arrays
from rnsdask.store.version import Version

_LEFT_BEHIND = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(PARTIAL_SUFFIX)}\Z")
"""Suffix of the name of a file that this package or Zarr is writing."""


@dataclass(frozen=True)
class Target:
    """A writer's right to an array, which lasts until another writer takes it over.

    Readers find the array at `location` once it is whole; it is written at `staged`, with the writer's
    `token` in an attribute of its metadata. `replaces` says whether it may replace an existing array. If it
    extends an array, that array, `extends`, must be unchanged.
    """

    location: Location
    staged: Location
    replaces: bool
    extends: Version | None = None
    attribute: str = ATTRIBUTE
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def unfinished(self) -> Path | None:
        """Folder of unfinished local files."""
        return Path(self.staged.path, STAGED) if self.location.is_local else None

    def check(self) -> None:
        """Raise StoreError if another writer has taken the array over."""
        if read_writer(self.staged, self.attribute) != self.token:
            raise self._lost()

    def _lost(self) -> StoreError:
        return StoreError(
            f"{self.location.path}: another job has begun to write it, or it was removed; start this job "
            "again when no other one writes there"
        )

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Turn errors of files that another job has removed into the error that says so."""
        try:
            yield
        except (FileNotFoundError, StoreError):
            self.check()
            raise

    def check_extended(self) -> None:
        """Raise ChangedStoreError if the array to be extended has changed."""
        if self.extends is not None:
            check_unchanged(self.extends, self.location)

    def begin(self, metadata: bytes) -> None:
        """Begin a new array by its first metadata, and clear the place of old contents.

        StoreError if another writer begins it at the same time.
        """
        metadata, what = concealed(metadata), f"{self.location.path}: it"
        if self.location.is_local:
            self._begin_beside(metadata)
            return
        if self.staged == self.location:
            remove_consolidated(self.location)
        if self.staged.exists(METADATA_KEY) or not self.staged.create(METADATA_KEY, metadata, what):
            if not self.replaces:
                raise self._lost()
            # It cannot be resumed until the old chunks are gone, or they would be kept as this job's.
            note = with_fields(metadata, self.attribute, replaced=True, recipe=None)
            self.write_metadata(note, checked=False)
            clear(self.staged, keep=(METADATA_KEY,))
            self.write_metadata(metadata)
        self.check()

    def _begin_beside(self, metadata: bytes) -> None:
        folder = Path(self.staged.path)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with settled(self.location, self.replaces) as removed:
                self.check_extended()
                if self.replaces or document_of(self.staged) is None:
                    _move_away(folder, removed)
                try:
                    folder.mkdir()
                except FileExistsError as error:
                    raise self._lost() from error
                try:
                    self.write_metadata(metadata, checked=False)
                except StoreError:
                    _move_away(folder, removed)
                    raise
        except OSError as error:
            raise StoreAccessError.of(f"{self.location.path}: it cannot be written", error) from error

    def take_over(self, attribute: dict[str, Any], found: Version) -> None:
        """Take over an array that another writer began, if it still is as `found`, by writing this token."""
        with locked(self.location):
            try:
                found.check(self.staged)
                metadata = concealed(with_attributes(self.staged, {self.attribute: attribute}))
            except (FileNotFoundError, ChangedStoreError):
                raise self._lost() from None
            if self.staged == self.location:
                remove_consolidated(self.location)
            self.write_metadata(metadata, checked=False)
            self._remove_unfinished()
            self.check()

    def _remove_unfinished(self) -> None:
        if self.unfinished is None:
            return
        shutil.rmtree(self.unfinished, ignore_errors=True)
        if self.staged == self.location:  # begun by an older version, which wrote files next to their names
            for file in Path(self.staged.path).rglob(f"*{PARTIAL_SUFFIX}"):
                file.unlink(missing_ok=True)

    def publish(self, key: str, content: bytes, name: str) -> None:
        """Write a file of the array while it belongs to this writer.

        An object store first tries to put it as a new object, so that a chunk sent while another job takes
        the array over does not replace that job's chunk.
        """
        if self.unfinished is not None:
            write_file(Path(self.staged.path, key), content, name, self.check, self.unfinished)
            return
        self.check()
        if self.staged.create(key, content, name):
            self._remove_late(key)
            return
        self.check()
        self.staged.write(key, content, name)

    def _remove_late(self, key: str) -> None:
        """Remove a file that arrived after its array was removed, unless another array is there by now."""
        try:
            self.check()
        except StoreError:
            with suppress(StoreError):
                if not self.staged.exists(METADATA_KEY):
                    self.staged.remove(key)
            raise

    def write_metadata(self, metadata: bytes, *, checked: bool = True) -> None:
        """Replace the metadata; if `checked`, only while the array belongs to this writer."""
        check = self.check if checked else lambda: None
        what = f"{self.location.path}: it"
        if self.unfinished is not None:
            write_file(Path(self.staged.path, METADATA_KEY), metadata, what, check, self.unfinished)
        else:
            check()
            self.staged.write(METADATA_KEY, metadata, what)

    def finish(self, metadata: bytes) -> None:
        """Publish the array, which is written except for its final metadata.

        After an error nothing is published, unless the error says that this is unknown.
        """
        with locked(self.location) as removed:
            self.check()
            self.check_extended()
            if self.location.is_local and self.staged != self.location:
                check_place(self.location, self.replaces)
            remove_consolidated(self.location)
            if self.staged == self.location:
                self.write_metadata(metadata)
                self._remove_unfinished()
            elif self.location.is_local:
                self._put_in_place(metadata, removed)
            else:
                self.location.write(METADATA_KEY, metadata, f"{self.location.path}: it")
                with suppress(StoreAccessError):  # the next append removes it
                    self.location.remove(JOB_KEY)
                    clear(self.staged)

    def _put_in_place(self, metadata: bytes, removed: list[Path]) -> None:
        with self.holding():
            begun = self.staged.read_metadata()
        try:
            self.write_metadata(metadata)
            _swap(self.location, removed, metadata)
        except StoreError as error:
            try:
                if self.staged.read_metadata() == metadata:
                    self.write_metadata(begun, checked=False)
            except (FileNotFoundError, StoreError):
                raise StoreError(
                    with_ways(
                        error,
                        "whether it is stored is not known, and shows when it is opened, or else when the "
                        "next job writes there",
                    )
                ) from None
            raise

    def discard(self) -> None:
        """Remove the unfinished array, unless another writer has taken it over."""
        with suppress(StoreError), locked(self.location) as removed:  # it may be another's, or unreachable
            self.check()
            if self.location.is_local and self.staged != self.location:
                _move_away(Path(self.staged.path), removed)
            else:
                _clear_folder(self.staged)


# ---- what is there ----------------------------------------------------------------------------------------


def target_at(location: Location, overwrite: bool, attribute: str = ATTRIBUTE) -> Target:
    """Check a place, and return a new writer's target there; nothing is written yet.

    StoreError if something that may not be replaced is there, or another job is writing there.
    """
    check_outside_arrays(location.check_writable())
    with settled(location, overwrite):
        check_place(location, overwrite)
        if location.is_local:
            _check_beside(location, overwrite)
    return Target(location, location.staged, overwrite, attribute=attribute)


def nothing_to_resume(path: str) -> StoreError:
    """Make the error of resuming a complete store."""
    return StoreError(with_ways(f"{path}: the store is complete: there is nothing to resume", REPLACE))


def find_begun(location: Location) -> Location:
    """Return where a job has begun to write the array for a place, to resume it.

    StoreError if it may hold chunks of another job.
    """
    settle(location.check_writable())
    begun = location.staged if is_begun(location) else location
    if own_attribute(document_of(begun)).get("replaced"):
        raise StoreError(
            Message(
                f"{location.path}: it cannot be resumed, because old chunks may be in it; begin again with ",
                Setting("overwrite", True),
            )
        )
    return begun


def find_described(location: Location) -> Location:
    """Return where an array is, or where one is being written for its place."""
    return location.staged if state_at(location) == "nothing" and is_begun(location) else location


def is_begun(location: Location) -> bool:
    """Whether an array for a place has been begun."""
    return state_at(location.staged) == "incomplete" or _is_unsettled(location)


def _is_unsettled(location: Location) -> bool:
    """Whether a job was killed between completing an array and putting it in its place."""
    staged = location.staged
    return staged != location and state_at(staged) == "whole" and staged.exists(STAGED)


def exists(location: Location) -> bool:
    """Whether metadata of a Zarr array or group are at a place, or of its replacement."""
    return is_begun(location) or location.exists(METADATA_KEY) or is_replaced(location)


def state(location: Location) -> str:
    """Return ``"nothing"``, ``"incomplete"`` or ``"whole"``: the state of a place or of an array for it."""
    return "incomplete" if is_begun(location) else state_at(location)


def state_at(location: Location) -> str:
    """Return the state of a place itself, as :func:`state` does."""
    document = document_of(location)
    if document is None:
        return "nothing"
    return "incomplete" if own_attribute(document).get("complete") is False else "whole"


def check_place(location: Location, overwrite: bool) -> None:
    """Raise StoreError if something that may not be replaced is at a place."""
    path, kind = location.path, location.kind()
    if kind == "file":
        raise StoreError(f"{path}: it exists and is not a Zarr array")
    if location.is_local and os.path.ismount(path):
        raise StoreError(f"{path}: it is a mount point, which cannot be replaced; choose a folder in it")
    names = location.names() if kind == "folder" else set()
    if all(map(_is_left_behind, names)):
        return
    document = document_of(location)
    if document is None or document["node_type"] != "array":
        raise StoreError(f"{path}: it exists and is not a Zarr array, but a folder with {list_some(names)}")
    _check_taking_over(path, document, overwrite)
    if not overwrite:
        raise StoreError(with_ways(f"{path}: it exists", REPLACE))
    if others := names - _own(names):
        raise StoreError(f"{path}: it is not replaced, because it also holds {list_some(others)}")


def _check_beside(location: Location, overwrite: bool) -> None:
    """Check that an array can be written next to its place, where another job may have begun one."""
    staged, document = location.staged, document_of(location.staged)
    names = staged.names() if staged.kind() == "folder" else set()
    if staged.kind() == "file" or names != _own(names) or state_at(staged) == "whole":
        raise StoreError(
            f"{staged.path}: it exists; remove it, or move it away: the new {location.path} is written "
            "there first"
        )
    _check_taking_over(location.path, document, overwrite)


def _check_taking_over(path: str, document: dict[str, Any] | None, overwrite: bool) -> None:
    attribute = own_attribute(document)
    if not overwrite and attribute.get("complete") is False:
        what = f"{path}: another job is writing it, or was interrupted"
        raise StoreError(with_ways(what, way_on(attribute)))


def _is_left_behind(name: str) -> bool:
    """Whether the name of a file or folder of an array shows that an interrupted write has left it.

    ``y.zarr.partial`` does not count: it is another store that is being written.
    """
    return name == STAGED or _LEFT_BEHIND.search(name) is not None


def _own(names: set[str]) -> set[str]:
    """Names in a folder that can belong to an array."""
    return {name for name in names if name in (METADATA_KEY, CHUNK_FOLDER, JOB_KEY) or _is_left_behind(name)}


# ---- renaming and removing --------------------------------------------------------------------------------


def settle(location: Location, overwrite: bool = True) -> None:
    """Finish the renames and removals that a job killed at its end has left.

    A whole array is put in its place; with `overwrite` also if another array is there.
    """
    if not location.is_local:
        return
    if _is_unsettled(location) or is_replaced(location) or Path(location.path, STAGED).exists():
        with settled(location, overwrite):
            pass


@contextmanager
def settled(location: Location, overwrite: bool = True) -> Iterator[list[Path]]:
    """Lock a place as `locked` does, and settle it."""
    with locked(location) as removed:
        _settle(location, overwrite, removed)
        yield removed


def _settle(location: Location, overwrite: bool, removed: list[Path]) -> None:
    if not location.is_local:
        return
    is_free = location.kind() == "nothing"
    if _is_unsettled(location) and (overwrite or is_free):
        check_place(location, overwrite)
        _swap(location, removed, location.staged.read_metadata())
    elif is_free and is_replaced(location):
        try:
            former(location).rename(Path(location.canonical))
        except OSError as error:
            what = f"{location.path}: {former(location)} cannot be put in its place again"
            raise StoreAccessError.of(what, error) from error
    elif own_attribute(document_of(location)).get("complete"):
        _clear_former(location, removed)


def _swap(location: Location, removed: list[Path], metadata: bytes) -> None:
    """Rename a whole local array to its place, and the old array to be removed.

    The folder of the new array's unfinished files, which marks it as ready, is moved with it.
    """
    place, new, old = Path(location.canonical), Path(location.staged.path), former(location)
    try:
        (new / STAGED).mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            place.rename(old)
        try:
            new.rename(place)
            if location.read_metadata() != metadata:  # possible without locks
                place.rename(new)
                raise StoreError(f"{location.path}: another job has begun to write it")
        except (OSError, StoreError):
            if not place.exists() and old.exists():
                old.rename(place)
            raise
    except OSError as error:
        what = f"{place}: it cannot be replaced by {new}, which is whole"
        raise StoreAccessError.of(what, error) from error
    _clear_former(location, removed)


def _clear_former(location: Location, removed: list[Path]) -> None:
    """Move the replaced array to the new array's folder of obsolete files, and remove it."""
    unfinished = Path(location.path, STAGED)
    with suppress(OSError):  # the array is in its place; the next job tries again
        if is_replaced(location):
            unfinished.mkdir(exist_ok=True)
            former(location).rename(unfinished / uuid.uuid4().hex)
    removed.append(unfinished)


def _move_away(folder: Path, removed: list[Path]) -> None:
    """Rename a folder before its removal, so that nothing is added to it meanwhile."""
    moved = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}{PARTIAL_SUFFIX}")
    with suppress(FileNotFoundError):
        folder.rename(moved)
        removed.append(moved)


def _moved_away(folder: Path) -> list[Path]:
    """Folders that :func:`_move_away` has renamed in jobs that were killed before they removed them."""
    found = folder.parent.glob(f".{glob.escape(folder.name)}.*{PARTIAL_SUFFIX}")
    return [path for path in found if _LEFT_BEHIND.fullmatch(path.name.removeprefix(f".{folder.name}"))]


def clear(location: Location, keep: tuple[str, ...] = ()) -> None:
    """Remove an array, and nothing else; the metadata first, so that the rest is not taken for an array."""
    names = location.names() if location.kind() == "folder" else set()
    own = _own(names).difference(keep)
    for name in sorted(own, key=lambda name: (name not in (JOB_KEY, METADATA_KEY), name)):
        location.remove(name)


def remove(location: Location) -> None:
    """Remove an array and its unfinished replacement, and the folder unless it holds something else."""
    remove_consolidated(location)
    with locked(location) as removed:
        if location.is_local:
            _move_away(former(location), removed)
            staged = location.staged
            removed += _moved_away(Path(staged.path))
            is_empty = staged.kind() == "folder" and all(map(_is_left_behind, staged.names()))
            if is_empty or is_begun(location):
                _move_away(Path(staged.path), removed)
    _clear_folder(location)


def _clear_folder(location: Location) -> None:
    clear(location)
    if location.is_local:
        with suppress(OSError):
            Path(location.path).rmdir()


def check_unchanged(version: Version, location: Location) -> None:
    """Raise ChangedStoreError if a store to be appended to has changed since it was opened."""
    try:
        version.check(location)
    except ChangedStoreError as error:
        way = "nothing is appended: append to it as it is now"
        raise ChangedStoreError(with_ways(error, way)) from None
