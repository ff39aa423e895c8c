"""Places of stores and access to their files: the local disk, or what fsspec or obstore reach."""

import errno
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import fsspec  # type: ignore[import-untyped]

from rnsdask.backend.cpu.files import read_first
from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.messages import redact
from rnsdask.core.places import is_url
from rnsdask.store.access import access_error
from rnsdask.store.chunk_files import PARTIAL_SUFFIX, open_regular, write_file

METADATA_KEY = "zarr.json"

JOB_KEY = "rnsdask-job.json"
"""Name of the file in a complete array that says which job completed it."""

LONGEST_METADATA = 16 * 2**20
"""Most bytes of a metadata document, enough for half a million moduli, so that no file fills the memory."""

CHUNK_FOLDER = "c"

STAGED = ".partial"
"""Folder within an array of an object store where its replacement is written."""

# Keys of a file's version in fsspec's file systems: the local one; s3, gs, http, memory and others.
_LOCAL_VERSION_KEYS = ("size", "mtime", "ino")
_VERSION_KEYS = (
    "size",
    "mtime",
    "ETag",
    "etag",
    "Last-Modified",
    "LastModified",
    "last_modified",
    "updated",
    "created",
    "created_at",
)

_ALIASES = {"s3a": "s3", "gcs": "gs", "abfs": "az"}

# File systems that can put an object only where none exists.
_CREATING = ("s3", "s3a", "gs", "gcs", "memory")


class Location(ABC):
    """A place of files by their names, such as ``c/0/17`` of an array.

    Every method raises StoreAccessError if the place cannot be reached.

    Attributes
    ----------
    path : str
        An absolute local path, or a URL, without a slash at its end: what messages call it.
    """

    path: str

    @property
    def is_local(self) -> bool:
        """Whether `path` is a local path, not a URL."""
        return not is_url(self.path)

    @property
    def canonical(self) -> str:
        """Identity of the place, equal for all paths to it."""
        if self.is_local:
            return os.path.realpath(self.path)
        # For a chained URL, such as simplecache::s3://, the one where its files are.
        protocol, _, rest = self.path.rpartition("::")[2].partition("://")
        return f"{_ALIASES.get(protocol, protocol)}://{rest.lstrip('/')}"

    def overlaps(self, other: "Location") -> bool:
        """Whether both are the same place, or one is in the other, by any path."""
        return _is_within(self, other) or _is_within(other, self)

    @property
    def lists(self) -> bool:
        """Whether it can list files and be written; HTTP servers can do neither."""
        return not self.path.startswith(("http://", "https://"))

    @property
    def staged(self) -> "Location":
        """Place where a new array is written before it is published: next to a local place, else here."""
        return self

    @property
    @abstractmethod
    def parent(self) -> "Location | None":
        """Place of the enclosing folder; None if it is unknown."""

    @abstractmethod
    def child(self, name: str) -> "Location":
        """Return the place of a folder in it."""

    @abstractmethod
    def kind(self) -> str:
        """Return what is at the place itself: ``"nothing"``, ``"file"`` or ``"folder"``."""

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        try:
            self.version(name)
        except FileNotFoundError:
            return False
        return True

    @abstractmethod
    def names(self) -> set[str]:
        """List the names of files and folders directly in it; empty if it is missing."""

    @abstractmethod
    def versions(self) -> dict[str, tuple[Any, ...]]:
        """Versions of all files by their names: the size in bytes, and whatever else changes with the file.

        Empty for a place that cannot list files (`lists`), for which :meth:`version` works only by name.
        """

    @abstractmethod
    def version(self, name: str) -> tuple[Any, ...]:
        """Return the version of one file; FileNotFoundError if there is none."""

    def found(self, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
        """Return the versions of those files that exist, also behind links."""
        listed = self.versions()
        return {name: listed[name] for name in names if name in listed}

    @abstractmethod
    def read(self, name: str, what: str, limit: int) -> bytes:
        """Read a file, which messages call `what`; FileNotFoundError if there is none.

        A file of more than `limit` bytes is cut after `limit` + 1, so that callers can detect it.
        """

    @abstractmethod
    def read_end(self, name: str, count: int, what: str) -> bytes:
        """Read the last bytes of a file, as `read` does."""

    @abstractmethod
    def put_file(self, name: str, content: bytes, what: str, *, new: bool) -> None:
        """Write a whole file; if it must be `new`, raise FileExistsError where there is one."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its contents, if it exists."""

    def read_metadata(self) -> bytes:
        """Read the metadata document; FileNotFoundError if there is none, StoreError if it is too long."""
        metadata = self.read(METADATA_KEY, f"{self.path}: it", LONGEST_METADATA)
        if len(metadata) > LONGEST_METADATA:
            raise StoreError(f"{self.path}: its {METADATA_KEY} has more than {LONGEST_METADATA} bytes")
        return metadata

    def write(self, name: str, content: bytes, what: str) -> None:
        """Write or replace a whole file atomically."""
        self.put_file(name, content, what, new=False)

    def create(self, name: str, content: bytes, what: str) -> bool:
        """Write a file if it does not exist; return whether it did not.

        With a service that cannot put an object conditionally, the file is written in any case.
        """
        try:
            self.put_file(name, content, what, new=True)
        except FileExistsError:
            return False
        except StoreAccessError as error:
            if error.errno != errno.ENOSYS:
                raise
            self.write(name, content, what)
        return True

    def copy(self, name: str, new_name: str, what: str) -> None:
        """Copy a file within the place, on the server side where the service can."""
        self.write(new_name, self.read(name, what, self.version(name)[0]), what)

    def check_writable(self) -> "Location":
        """Return the place, or raise StoreError if nothing can be written there."""
        if not self.lists:
            raise StoreError(f"{self.path}: it cannot be written: stores on HTTP servers are read-only")
        if not self.is_local and "::" in self.path:
            raise StoreError(
                f"{self.path}: it cannot be written: a store that is read through another file system is "
                "read-only; write to the URL after ::"
            )
        return self


def chunk_key(index: Sequence[int]) -> str:
    """Return the name of a chunk's file within a Zarr array, such as ``c/0/17``."""
    return "/".join((CHUNK_FOLDER, *map(str, index)))


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Turn errors of a remote place into StoreAccessErrors, except for a missing file."""
    try:
        yield
    except (FileNotFoundError, StoreError, MemoryError):
        raise
    except Exception as error:  # of any type: each library has its own
        raise access_error(what, error) from error


def _is_within(inner: Location, outer: Location) -> bool:
    if inner.is_local != outer.is_local:
        return False
    if f"{inner.canonical}/".startswith(f"{outer.canonical}/"):
        return True
    if not inner.is_local:
        return False
    try:  # a folder may be mounted in several places
        there = Path(outer.path).stat()
        path = Path(inner.canonical)
        return any(os.path.samestat(folder.stat(), there) for folder in (path, *path.parents))
    except OSError:
        return False


class _FileSystemLocation(Location):
    """Place that fsspec reaches."""

    _version_keys: ClassVar[tuple[str, ...]] = _VERSION_KEYS

    @abstractmethod
    def _open(self) -> tuple[Any, str]:
        """The file system, and the path in it."""

    def kind(self) -> str:
        file_system, root = self._open()
        with reaching(f"{self.path}: it cannot be read"):
            file_system.invalidate_cache(root)
            if not file_system.exists(root):
                return "nothing"
            return "folder" if file_system.isdir(root) else "file"

    def names(self) -> set[str]:
        file_system, root = self._open()
        with reaching(f"{self.path}: it cannot be read"):
            file_system.invalidate_cache(root)
            try:
                listed = file_system.ls(root, detail=False)
            except FileNotFoundError:
                return set()
        # Some tools mark a folder by an object with its name.
        own = root.rstrip("/")
        return {name.rpartition("/")[2] for entry in listed if (name := entry.rstrip("/")) != own}

    def versions(self) -> dict[str, tuple[Any, ...]]:
        if not self.lists:
            return {}
        file_system, root = self._open()
        with reaching(f"{self.path}: it cannot be listed"):
            file_system.invalidate_cache(root)
            try:
                entries = file_system.find(root, detail=True)
            except FileNotFoundError:
                return {}
        names = {path: path.removeprefix(root).strip("/") for path in entries}
        return {name: self._version(entries[path]) for path, name in names.items() if name}

    def version(self, name: str) -> tuple[Any, ...]:
        file_system, root = self._open()
        with reaching(f"{self.path}: {name} cannot be read"):
            file_system.invalidate_cache(root)
            return self._version(file_system.info(f"{root}/{name}"))

    def remove(self, name: str) -> None:
        file_system, root = self._open()
        path = f"{root}/{name}"
        with suppress(FileNotFoundError), reaching(f"{self.path}: {name} cannot be removed"):
            if self.is_local or not any(sign in path for sign in "*?["):
                file_system.rm(path, recursive=True)
                return
            # fsspec would take the path for a glob pattern, and remove all that matches.
            for found in file_system.find(path):
                file_system.rm_file(found)

    def _version(self, entry: Mapping[str, Any]) -> tuple[Any, ...]:
        size, *others = (entry.get(key) for key in self._version_keys)
        return size, *map(str, others)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turn errors of a local file into StoreAccessErrors, except for a missing file."""
    try:
        yield
    except NotADirectoryError as error:
        raise FileNotFoundError(*error.args) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreAccessError.of(f"{what} cannot be read", error) from error


def _is_empty(file_system: Any, path: str) -> bool:
    try:
        return bool(file_system.size(path) == 0)
    except Exception:  # of any type; reading itself will report it
        return False


@dataclass(frozen=True)
class LocalLocation(_FileSystemLocation):
    """Folder of a local or mounted disk."""

    _version_keys = _LOCAL_VERSION_KEYS

    path: str

    def _open(self) -> tuple[Any, str]:
        return fsspec.filesystem("file"), self.path

    @property
    def staged(self) -> Location:
        return LocalLocation(f"{self.canonical}{PARTIAL_SUFFIX}")

    @property
    def parent(self) -> Location:
        return LocalLocation(str(Path(self.canonical).parent))

    def child(self, name: str) -> Location:
        return LocalLocation(f"{self.path}/{name}")

    def version(self, name: str) -> tuple[Any, ...]:
        # Not fsspec's, which describes a link instead of its target.
        with _reading(f"{self.path}: {name}"):
            status = Path(self.path, name).stat()
        return status.st_size, str(status.st_mtime), str(status.st_ino)

    def found(self, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
        versions = {}
        for name in names:
            with suppress(FileNotFoundError):
                versions[name] = self.version(name)
        return versions

    def read(self, name: str, what: str, limit: int) -> bytes:
        with _reading(what):
            return read_first(f"{self.path}/{name}", limit + 1)

    def read_end(self, name: str, count: int, what: str) -> bytes:
        with _reading(what), open_regular(Path(self.path, name)) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - count))
            return stream.read(count)

    def put_file(self, name: str, content: bytes, what: str, *, new: bool) -> None:
        # Renamed or linked into place atomically, so nothing arrives late.
        file = Path(self.path, name)
        if not new:
            write_file(file, content, what)
            return
        whole = Path(self.path, f"{name}.{uuid.uuid4().hex}{PARTIAL_SUFFIX}")
        write_file(whole, content, what)
        try:
            os.link(whole, file)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if file.exists():
                raise FileExistsError(name) from None
            write_file(file, content, what)
        finally:
            whole.unlink(missing_ok=True)


@dataclass(frozen=True)
class RemoteLocation(_FileSystemLocation):
    """URL of fsspec, with the options for its file system.

    The URL may contain secrets; `path` does not.
    """

    url: str = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)  # not shown: secrets
    path: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", redact(self.url))

    def _open(self) -> tuple[Any, str]:
        try:
            file_system, root = fsspec.core.url_to_fs(self.url, **self.options)
        except (ValueError, TypeError, ImportError) as error:
            raise StoreError(f"{self.path}: {redact(str(error))}") from error
        except Exception as error:  # some look for credentials at once
            raise access_error(f"{self.path}: it cannot be opened", error) from error
        return file_system, root

    @property
    def parent(self) -> Location | None:
        above, _, name = self.url.rpartition("/")
        return RemoteLocation(above, self.options) if name and not above.endswith((":", "/")) else None

    def child(self, name: str) -> Location:
        return RemoteLocation(f"{self.url}/{name}", self.options)

    def read(self, name: str, what: str, limit: int) -> bytes:
        file_system, root = self._open()
        path = f"{root}/{name}"
        with reaching(f"{what} cannot be read"):
            try:
                content: bytes = file_system.cat_file(path, start=0, end=limit + 1)
            except FileNotFoundError:
                raise
            except Exception:
                if not _is_empty(file_system, path):  # services reject ranges of empty files
                    raise
                content = b""
        return content

    def read_end(self, name: str, count: int, what: str) -> bytes:
        file_system, root = self._open()
        with reaching(f"{what} cannot be read"):
            content: bytes = file_system.cat_file(f"{root}/{name}", start=-count)
        return content[-count:]  # a server without range requests sends all of it

    def copy(self, name: str, new_name: str, what: str) -> None:
        file_system, root = self._open()
        try:
            file_system.cp_file(f"{root}/{name}", f"{root}/{new_name}")
        except NotImplementedError:
            super().copy(name, new_name, what)
        except Exception as error:  # of any type: each library has its own
            raise access_error(f"{what} cannot be written", error) from error

    def put_file(self, name: str, content: bytes, what: str, *, new: bool) -> None:
        file_system, root = self._open()
        protocol = self.path.partition("://")[0]
        mode = {"mode": "create"} if new and protocol in _CREATING else {}
        try:
            file_system.pipe_file(f"{root}/{name}", content, **mode)
        except FileExistsError:
            raise
        except Exception as error:  # of any type: each library has its own
            raise access_error(f"{what} cannot be written", error) from error
