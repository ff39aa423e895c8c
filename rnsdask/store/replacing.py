"""Replacing an array or group: the old one stays, whole, until the new one is; then they change places.

The new one is written beside the old one: on a local disk into a folder next to it, with which it is
exchanged at once; in an object store, where nothing can be moved, below it, and is copied at the end.
"""

import json
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.store.attributes import ATTRIBUTE, PLAIN_ATTRIBUTE
from rnsdask.store.chunk_files import PARTIAL_SUFFIX, exchange
from rnsdask.store.documents import parse_document
from rnsdask.store.location import CHUNK_FOLDER, JOB_KEY, METADATA_KEY, STAGED, LocalLocation, Location
from rnsdask.store.metadata import Opened
from rnsdask.store.ownership import is_left_behind
from rnsdask.store.reading import content_of

_REQUESTS = 16

_LONGEST_NAME = 255
"""Most bytes of a file's name, on all usual file systems."""


def _own_name(path: str) -> str:
    """Return a path beside a store that no other job knows; of a long name only the beginning is in it."""
    name, suffix = Path(path).name, f".{uuid.uuid4().hex}{PARTIAL_SUFFIX}"
    if len(os.fsencode(name)) > (room := _LONGEST_NAME - len(suffix)):
        name = os.fsencode(name)[:room].decode(errors="ignore")
    return str(Path(path).with_name(name + suffix))


def staging(location: Location) -> Location:
    """Where what is to replace an array is written: a place that has no other use."""
    if location.is_local:
        return LocalLocation(f"{os.path.realpath(location.path)}{PARTIAL_SUFFIX}")
    return location.child(STAGED)


def state(location: Location) -> str:
    """What is at a place: ``"nothing"`` that is known, or an array or group.

    That is ``"whole"``, ``"incomplete"``, or about to be replaced, ``"replaced"``: nothing of it is left.
    """
    return _state_in(document_of(location))


def is_whole(metadata: bytes) -> bool:
    """Whether a metadata document is that of an array or group that is whole."""
    return _state_in(_parsed(metadata)) == "whole"


def _state_in(document: dict[str, Any] | None) -> str:
    if document is None:
        return "nothing"
    attributes = attributes_in(document)
    for key in (ATTRIBUTE, PLAIN_ATTRIBUTE):
        attribute = attributes.get(key)
        if isinstance(attribute, dict) and attribute.get("complete") is False:
            return "replaced" if attribute.get("replaced") else "incomplete"
    return "whole"


def document_of(location: Location) -> dict[str, Any] | None:
    """The metadata document of an array or group; None if there is none."""
    try:
        return _parsed(location.read_metadata())
    except FileNotFoundError:
        return None


def _parsed(metadata: bytes) -> dict[str, Any] | None:
    try:
        document = parse_document(metadata)
    except ValueError:
        return None
    return document if document.get("node_type") in ("array", "group") else None


def attributes_in(document: dict[str, Any] | None) -> dict[str, Any]:
    """The attributes in a metadata document."""
    attributes = None if document is None else document.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def as_replaced(metadata: bytes) -> bytes:
    """The metadata document of what is begun where something else is still: nothing that can be resumed."""
    document = parse_document(metadata)
    for key in (ATTRIBUTE, PLAIN_ATTRIBUTE):
        if key in document["attributes"]:
            document["attributes"][key]["replaced"] = True
    return json.dumps(document).encode()


def check_no_part(location: Location) -> None:
    """Raise StoreError if an array is a part of a group: alone, it is neither replaced nor continued."""
    own = attributes_in(document_of(location)).get(ATTRIBUTE)
    group = None
    if location.parent is not None:
        with suppress(StoreError):  # it may be nobody's business to read there
            group = attributes_in(document_of(location.parent)).get(ATTRIBUTE)
    if (isinstance(own, dict) and "group" in own) or (isinstance(group, dict) and "kind" in group):
        raise StoreError(f"{location.path}: it is a part of a group, and is not written alone")


class Replacement:
    """What is written at `staged` to replace what is at `location`, as that was when this was made.

    Raises
    ------
    StoreError
        If that cannot be replaced by another folder.
    """

    def __init__(self, location: Location) -> None:
        if location.is_local and os.path.ismount(location.path):
            raise StoreError(
                f"{location.path}: it is a mount point, which cannot be replaced; remove what is in it"
            )
        self.location = location
        self.staged = staging(location)
        self._old = _opened(location)
        self._lasting: tuple[int, int] | None = None

    def keep_chunks(self, position: int, count: int) -> None:
        """Where nothing can be moved, keep the first chunks along an axis, which the new one has too.

        Parameters
        ----------
        position
            Where a chunk's index along the axis stands in its key, from the end: -1 is the last.
        count
            How many of them along the axis stay.
        """
        self._lasting = position, count

    def _was_changed(self) -> StoreError:
        return StoreError(
            f"{self.location.path}: it was changed while {self.staged.path} was written to replace it"
        )

    @classmethod
    def begun(cls, location: Location) -> "Replacement | None":
        """The one that was begun, and interrupted, at a place; None if there is none."""
        if state(location) == "incomplete" or state(staging(location)) != "incomplete":
            return None
        return cls(location)

    def put_in_place(
        self,
        metadata: bytes,
        write: Callable[[bytes], object],
        is_own: Callable[[Location], bool] = lambda _: True,
    ) -> None:
        """Have the new one, of which all but its final metadata is written, take the place of the old one.

        Parameters
        ----------
        metadata
            The final metadata document.
        write
            Writes it where the new one is.
        is_own
            Called with the place of what is to be exchanged, or copied, and of its copy; it tells whether all
            of that but its metadata document is as this writer left it.

        Raises
        ------
        StoreError
            If the old one was changed meanwhile, or another writer has begun to write the new one; then both
            stay.
        """
        if _opened(self.location) != self._old:
            raise self._was_changed()
        if not self.location.is_local:
            self._copy(metadata, is_own) if self._lasting is None else self._add(metadata, *self._lasting)
            return
        write(metadata)
        old, new = os.path.realpath(self.location.path), self.staged.path
        try:
            with self._out_of_reach(metadata, is_own) as own:
                left = _exchange(old, own)
                if left is not None and _opened(LocalLocation(left)) != self._old:
                    back = _exchange(old, left)  # it was replaced since it was looked at
                    if back not in (None, own):
                        Path(back).rename(own)
                    raise self._was_changed()
        except OSError as error:
            raise StoreAccessError.of(
                f"{old}: it cannot be replaced by {new}, which is whole", error
            ) from error
        if left is not None:
            remove(LocalLocation(left))
            with suppress(OSError):  # unless somebody has put something else there
                Path(left).rename(new)

    @contextmanager
    def _out_of_reach(self, metadata: bytes, is_own: Callable[[Location], bool]) -> Iterator[str]:
        """Move the new one to a name that no other writer knows; back again after an error.

        Another one may have begun to write it since its last check: then it is no longer whole, and would
        take the old one's place.
        """
        new = self.staged.path
        own = _own_name(os.path.realpath(self.location.path))
        Path(new).rename(own)
        try:
            place = LocalLocation(own)
            if place.read_metadata() != metadata or not is_own(place):
                raise StoreError(f"{new}: another job has begun to write it")
            yield own
        except BaseException:
            with suppress(OSError):  # another one is there
                Path(own).rename(new)
            raise

    def _copy(self, metadata: bytes, is_own: Callable[[Location], bool]) -> None:
        """Replace the old one by a copy; an interruption leaves the new one whole, to be copied again.

        Nothing keeps another job from writing at either place meanwhile. Who finds that one has leaves what
        is there, for a document beside chunks of another job's would tell wrong things of them.
        """
        place, staged = self.location, self.staged
        own = staged.read_metadata()
        note = as_replaced(own)
        place.write(METADATA_KEY, note, f"{place.path}: it")
        self._check_copy(note, own, is_own(staged))
        clear(place, keep=(METADATA_KEY, STAGED))
        keys = sorted(set(staged.sizes()) - {METADATA_KEY})
        try:
            with ThreadPoolExecutor(_REQUESTS) as pool:
                list(pool.map(lambda key: place.copy(f"{STAGED}/{key}", key, f"{place.path}: {key}"), keys))
        except (FileNotFoundError, StoreAccessError):  # another job may have removed it
            self._check_copy(note, own)
            raise
        self._check_copy(note, own, is_own(place))
        place.write(METADATA_KEY, metadata, f"{place.path}: it")
        clear(staged)

    def _check_copy(self, note: bytes, own: bytes, is_own: bool = True) -> None:
        """Raise StoreError unless documents of the old one and the new one are as this writer left them."""
        for place, document in ((self.location, note), (self.staged, own)):
            try:
                is_own = is_own and place.read_metadata() == document
            except FileNotFoundError:
                is_own = False
            if not is_own:
                raise StoreError(f"{place.path}: another job has begun to write it")

    def _add(self, metadata: bytes, position: int, count: int) -> None:
        """Add the chunks that are new to the old ones; the old array is whole until the metadata are written.

        Of those that are written anew, the old array has a part, and what it holds of it stays the same.
        """
        place, staged = self.location, self.staged
        keys = sorted(set(staged.sizes()) - {METADATA_KEY}, key=_index_in)
        new = [key for key in keys if _index_in(key)[position] >= count]
        with ThreadPoolExecutor(_REQUESTS) as pool:
            list(pool.map(lambda key: place.copy(f"{STAGED}/{key}", key, f"{place.path}: {key}"), new))
        content = attributes_in(parse_document(metadata))[ATTRIBUTE]["content"]
        if content_of(place, keys) != content or _opened(place) != self._old:
            raise StoreError(f"{place.path}: it was changed while {staged.path} was added to it")
        place.write(METADATA_KEY, metadata, f"{place.path}: it")
        place.remove(JOB_KEY)
        clear(staged)


def _opened(location: Location) -> Opened | None:
    try:
        metadata = location.read_metadata()
    except FileNotFoundError:
        return None
    return Opened.of(location, metadata, tells_content=True)


def _index_in(key: str) -> tuple[int, ...]:
    """The index of a chunk in the grid, which its key tells."""
    return tuple(map(int, key.split("/")[1:]))


def clear(location: Location, keep: Sequence[str] = (), parts: Collection[str] = ()) -> None:
    """Remove an array, or a group with its parts, and nothing else.

    The metadata go first, so that the rest passes for none.
    """
    names = location.names() if location.kind() == "folder" else set()
    for name in (JOB_KEY, METADATA_KEY):
        if name in names and name not in keep:
            location.remove(name)
    for name in sorted(names.difference(keep, {JOB_KEY, METADATA_KEY})):
        if name == CHUNK_FOLDER or is_left_behind(name):
            location.remove(name)
        elif name in parts or location.exists(f"{name}/{METADATA_KEY}"):
            location.remove(f"{name}/{METADATA_KEY}")
            location.remove(name)


def remove(location: Location, parts: Collection[str] = ()) -> None:
    """Remove an array, or a group with its parts, and its folder unless something else is there."""
    clear(location, parts=parts)
    if location.is_local:
        with suppress(OSError):
            Path(location.path).rmdir()


def _exchange(old: str, new: str) -> str | None:
    """Put a folder into another's place; return where the other is then, if there was one."""
    if not os.path.lexists(old):
        Path(new).rename(old)
        return None
    if exchange(Path(new), Path(old)):
        return new
    # Not every system can, nor every file system. For a moment nothing is there.
    aside = _own_name(old)
    Path(old).rename(aside)
    try:
        Path(new).rename(old)
    except OSError:
        Path(aside).rename(old)
        raise
    return aside
