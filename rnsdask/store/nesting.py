"""Checks that no store is within another: a Zarr array holds chunks, and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnsdask.core.errors import StoreError
from rnsdask.store.documents import ATTRIBUTE, attributes_in, document_of, own_attribute
from rnsdask.store.location import METADATA_KEY, STAGED, LocalLocation, Location


def check_outside_arrays(location: Location) -> None:
    """Raise StoreError if a place is in a Zarr array, or in one that is being written, by any path or link.

    Files there could hide the array's chunks or be taken for them, and vanish when the array is replaced.
    Unreadable folders above are ignored.
    """
    for folder in _folders_above(location):
        if _holds_chunks(folder):
            raise StoreError(
                f"{location.path}: nothing can be written there: {folder.path} is a Zarr array, which holds "
                "its own chunks alone; choose a place beside it"
            )


def check_file_outside_arrays(path: str | os.PathLike[str]) -> None:
    """Raise StoreError if a local file or folder is in a Zarr array, as :func:`check_outside_arrays` does."""
    check_outside_arrays(LocalLocation(str(Path(path).absolute())))


def _holds_chunks(location: Location) -> bool:
    """Whether an array is at a place; False if it cannot be reached, or its metadata are wrong."""
    try:
        return _is_array(location) or _is_being_written(location)
    except StoreError:
        return False


def _is_array(location: Location) -> bool:
    document = document_of(location)
    return location.exists(".zarray") if document is None else holds_no_stores(document)


def _is_being_written(location: Location) -> bool:
    """Whether an array is being written next to this place, or was interrupted before its rename."""
    staged = location.staged
    if staged == location:
        return False
    is_incomplete = own_attribute(document_of(staged)).get("complete") is False
    return is_incomplete or (staged.exists(METADATA_KEY) and staged.exists(STAGED))


def holds_no_stores(document: dict[str, Any]) -> bool:
    """Whether a metadata document describes an array, or an older version's group that forms one array."""
    own = attributes_in(document).get(ATTRIBUTE)
    return document["node_type"] != "group" or (isinstance(own, dict) and "kind" in own)


def _folders_above(location: Location) -> Iterator[Location]:
    if location.is_local:
        yield from map(LocalLocation, _local_folders_above(location.path))
        return
    above = location.parent
    while above is not None:
        yield above
        above = above.parent


def _local_folders_above(path: str) -> list[str]:
    """All folders above a path: as it is written, and above the target of each link in it."""
    # After a link, .. is another folder than the text suggests.
    written = Path(os.path.realpath(path) if ".." in Path(path).parts else path)
    names = _follow_links(written)  # the place itself is not among them
    left, found = [folder for name in names for folder in name.parents], set[Path]()
    while left:
        folder = left.pop()
        if folder not in found:
            found.add(folder)
            for target in _follow_links(folder)[1:]:
                left += [target, *target.parents]
    return sorted(map(str, found))


def _follow_links(path: Path) -> list[Path]:
    """A path, and the chain of targets if it is a link."""
    found = [path]
    while path.is_symlink():
        path = Path(os.path.normpath(Path(os.path.realpath(path.parent), path.readlink())))
        if path in found:  # a cycle
            break
        found.append(path)
    return found
