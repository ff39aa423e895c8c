"""Keeping stores out of one another: a Zarr array holds chunks, and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnsdask.core.errors import StoreError
from rnsdask.store.documents import ATTRIBUTE, attributes_in, document_of, own_attribute
from rnsdask.store.location import METADATA_KEY, STAGED, LocalLocation, Location


def check_outside_arrays(location: Location) -> None:
    """Raise StoreError if a place is in a Zarr array, or in one that is being written, by any path or link.

    What is there would hide chunks of the array or pass for some, and go when the array is replaced. A folder
    above that must not be read counts as none.
    """
    for folder in _folders_above(location):
        if _holds_chunks(folder):
            raise StoreError(
                f"{location.path}: nothing can be written there: {folder.path} is a Zarr array, which holds "
                "its own chunks alone; choose a place beside it"
            )


def check_file_outside_arrays(path: str | os.PathLike[str]) -> None:
    """Raise StoreError if a local file or folder is in a Zarr array, as :func:`check_outside_arrays`."""
    check_outside_arrays(LocalLocation(str(Path(path).absolute())))


def _holds_chunks(location: Location) -> bool:
    """Whether a place is that of an array; not of one that cannot be reached, or whose metadata are wrong."""
    try:
        return _is_array(location) or _is_being_written(location)
    except StoreError:
        return False


def _is_array(location: Location) -> bool:
    document = document_of(location)
    return location.exists(".zarray") if document is None else holds_no_stores(document)


def _is_being_written(location: Location) -> bool:
    """Whether an array is written beside its place, or was interrupted before it was renamed."""
    staged = location.staged
    if staged == location:
        return False
    is_incomplete = own_attribute(document_of(staged)).get("complete") is False
    return is_incomplete or (staged.exists(METADATA_KEY) and staged.exists(STAGED))


def holds_no_stores(document: dict[str, Any]) -> bool:
    """Whether a metadata document is that of an array, or of a group that an older version wrote as one."""
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
    """All folders that a path is in: as it is written, and where each link in it leads."""
    # Above what follows a link, .. is another folder than the text says.
    written = Path(os.path.realpath(path) if ".." in Path(path).parts else path)
    names = _linked(written)  # the place itself is not above it
    left, found = [folder for name in names for folder in name.parents], set[Path]()
    while left:
        folder = left.pop()
        if folder not in found:
            found.add(folder)
            for target in _linked(folder)[1:]:
                left += [target, *target.parents]
    return sorted(map(str, found))


def _linked(path: Path) -> list[Path]:
    """A path, and where it leads if it is a link, and so on."""
    found = [path]
    while path.is_symlink():
        path = Path(os.path.normpath(Path(os.path.realpath(path.parent), path.readlink())))
        if path in found:  # a circle
            break
        found.append(path)
    return found
