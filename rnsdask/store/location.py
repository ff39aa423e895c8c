"""Where a store is: an absolute local path, or a URL of any file system that fsspec knows."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import fsspec  # type: ignore[import-untyped]

from rnsdask.errors import StoreError

StorePath: TypeAlias = str | os.PathLike[str]

METADATA_KEY = "zarr.json"
CHUNK_FOLDER = "c"

# What file systems of fsspec tell of a file's version: the local one, s3, gs, and others.
_VERSION_KEYS = (
    "size",
    "mtime",
    "ino",
    "ETag",
    "etag",
    "LastModified",
    "last_modified",
    "updated",
    "created_at",
)


def normalize_path(path: StorePath) -> str:
    """Return an absolute local path, or a URL, without a slash at its end.

    Absolute, because a worker may have another working directory.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a store's path must be a string, got {path!r}")
    text = text.removeprefix("file://")
    if not text:
        raise ValueError("a store's path must not be empty")
    return text.rstrip("/") if "://" in text else str(Path(text).absolute())


def is_local(path: str) -> bool:
    """Tell a normalized local path from a URL."""
    return "://" not in path


def file_system_of(path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """Return the file system of a normalized path, and the path on it.

    Raises
    ------
    StoreError
        If the URL's file system is unknown, or the package for it is not installed.
    """
    if is_local(path):
        return fsspec.filesystem("file"), path
    try:
        file_system, root = fsspec.core.url_to_fs(path)
    except (ValueError, ImportError) as error:
        raise StoreError(f"{path}: {error}") from error
    return file_system, root


def file_sizes(path: str) -> dict[str, int]:
    """List all files of a store: their sizes in bytes by their names within the store."""
    return {name: entry["size"] for name, entry in _files(path)}


def file_versions(path: str) -> dict[str, tuple[Any, ...]]:
    """List all files of a store: what tells whether they were changed, by their names within the store."""
    return {name: tuple(str(entry.get(key)) for key in _VERSION_KEYS) for name, entry in _files(path)}


def _files(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    file_system, root = file_system_of(path)
    file_system.invalidate_cache(root)
    for name, entry in file_system.find(root, detail=True).items():
        yield name.removeprefix(root).lstrip("/"), entry
