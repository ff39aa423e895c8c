"""Paths by which users name stores, also within Zarr groups, and their places."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore, ObjectStore

from rnsdask.core.errors import StoreError
from rnsdask.core.messages import redact
from rnsdask.core.places import is_url, read_place
from rnsdask.store.documents import document_of, new_group
from rnsdask.store.location import METADATA_KEY, LocalLocation, Location, RemoteLocation
from rnsdask.store.nesting import check_outside_arrays, holds_no_stores

_WITH_BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs")
_WEB = ("http", "https")

StorePath: TypeAlias = str | os.PathLike[str] | Store | Location


def locate(path: StorePath, storage_options: Mapping[str, Any] | None = None) -> Location:
    """Return the place of a path, a URL or a store of Zarr's.

    `path` is a local path; any URL of fsspec, with its `storage_options`, such as credentials or the
    endpoint; Zarr's ``LocalStore``, ``FsspecStore`` or ``ObjectStore``; or a place, which is returned as it
    is. TypeError for anything else; ValueError for text that is neither a URL nor a local path
    (:func:`.read_place`), for a URL without a name, or for options without a URL.
    """
    if not isinstance(storage_options, Mapping | None):
        raise TypeError(f"storage_options must be a mapping, got {type(storage_options).__name__}")
    options = dict(storage_options or {})
    if isinstance(path, str | bytes | os.PathLike):
        return _from_text(path, options)
    if options:
        raise ValueError(f"storage_options are for a URL, not for {type(path).__name__}")
    if isinstance(path, Location):
        return path
    if isinstance(path, LocalStore):
        return _from_text(str(path.root), {})
    if isinstance(path, FsspecStore):
        return _from_file_system(path)
    if isinstance(path, ObjectStore):
        from rnsdask.store.objects import from_obstore  # needs obstore, which such a store has

        found = from_obstore(path.store)
        return found if isinstance(found, Location) else _from_text(found, {})
    raise TypeError(
        "a store must be given by its path or URL, or as Zarr's LocalStore, FsspecStore or ObjectStore, "
        f"got {type(path).__name__}"
    )


def locate_to_write(path: StorePath, storage_options: Mapping[str, Any] | None = None) -> Location:
    """Return the place of a store to be written, as :func:`locate` does; ValueError if it is read-only."""
    if isinstance(path, Store) and path.read_only:
        raise ValueError(
            f"a {type(path).__name__} to write must not be read-only, got one with read_only=True; "
            "with_read_only(False) of it is not"
        )
    return locate(path, storage_options)


def _from_text(text: Any, options: dict[str, Any]) -> Location:
    text = read_place(text, "a store's path")
    if not is_url(text):
        if options:
            raise ValueError(f"storage_options are for a URL, not for the local path {text!r}")
        # Absolute, because a worker may have another working directory.
        return LocalLocation(str(Path(text).absolute()))
    _check_url(text)
    return RemoteLocation(text.rstrip("/"), options)


def _check_url(url: str) -> None:
    """Raise ValueError for a URL without a name, or with one that services and tools misread."""
    shown = redact(url)
    if not url.rpartition("://")[2].strip("/"):
        raise ValueError(f"{shown}: the URL names no store: nothing follows ://")
    for part in url.split("::"):
        scheme, _, rest = part.partition("://")
        if scheme in _WITH_BUCKETS and rest.startswith("/"):
            raise ValueError(f"{shown}: the URL names no bucket: {scheme}:/// has one slash too many")
        names = rest.strip("/").split("/") if rest.strip("/") else []
        if scheme not in _WEB and (wrong := {"", ".", ".."}.intersection(names)):
            names_it = f"a name {min(wrong)}" if min(wrong) else "an empty name, by two slashes"
            raise ValueError(f"{shown}: the URL has {names_it}, which services take for different places")


def _from_file_system(zarr_store: FsspecStore) -> Location:
    # Zarr's own file system works in one event loop only; fsspec remembers how it was made.
    file_system: Any = zarr_store.fs
    file_system = getattr(file_system, "sync_fs", file_system)
    own = ("asynchronous", "loop")
    options = {key: value for key, value in file_system.storage_options.items() if key not in own}
    url = file_system.unstrip_protocol(zarr_store.path)
    return _from_text(url, {} if url.startswith("file://") else options)


def component_of(root: Location, component: str | None) -> Location:
    """Place of an array by its path in a Zarr group, such as ``"a/b"``; without one, the root."""
    location = root
    for name in _names_in(component):
        location = location.child(name)
    return location


def create_parents(root: Location, component: str | None) -> None:
    """Create missing Zarr groups at the root and between it and an array."""
    location = root
    names = _names_in(component)
    if names:
        check_outside_arrays(root)
    for name in names:
        _create_group(location)
        location = location.child(name)


def _names_in(component: str | None) -> list[str]:
    if component is None:
        return []
    if not isinstance(component, str):
        raise TypeError(f"component must be a string such as 'a/b', got {type(component).__name__}")
    names = component.strip("/").split("/")
    if any(name in ("", ".", "..", METADATA_KEY) or name.startswith(("__", ".")) for name in names):
        raise ValueError(f"component must be names with / between them, such as 'a/b', got {component!r:.80}")
    return names


def _create_group(location: Location) -> None:
    document = document_of(location)
    if document is not None:
        if holds_no_stores(document):
            raise StoreError(f"{location.path}: it is an array, which holds no others")
        return
    for name in (METADATA_KEY, ".zarray", ".zgroup"):
        if location.exists(name):
            raise StoreError(f"{location.path}: it is not a Zarr group of format 3: it has a file {name}")
    if not location.create(METADATA_KEY, new_group({}), f"{location.path}: it"):
        _create_group(location)  # another job has created something in the meantime
