"""Files that a job writes next to stores: whole or not at all, and private where they describe the job."""

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rnsdask.core.errors import JobError
from rnsdask.core.ways import REPLACE, with_ways

_PRIVATE = 0o600

# Errors of file systems without hard links, and of those that cannot flush to the disk.
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}
_NO_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when it is complete and on disk.

    Until then it has a unique temporary name in the same folder. A symbolic link is followed, as ``cp`` does:
    what it points to is replaced, and the link stays. A device or a named pipe is written directly. With
    `overwrite` a file at `path` is replaced; the new one then has its permissions. Otherwise JobError if
    `path` exists, also if it appears while the new file is written. An OSError, also from a write in the
    context, names `path`.
    """
    if path.exists() and not path.is_file():
        with naming_file(path), path.open("wb") as stream:
            yield stream
        return
    if path.is_symlink() and not path.exists():
        raise JobError(f"{path}: it is a symbolic link to nothing; remove it, or give another path")
    if path.exists() and not overwrite:
        raise _exists_error(path)
    target = Path(os.path.realpath(path))
    part = target.with_name(f".rnsdask-{uuid.uuid4().hex}.partial")
    with naming_file(path, part):
        try:
            with _open_new(part, target) as stream:
                yield stream
                _sync(stream)
            if overwrite:
                part.replace(target)
            else:
                _name(part, target)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _open_new(part: Path, target: Path) -> BinaryIO:
    """Open a new file, with the permissions of the file that it is to replace."""
    if not target.exists():
        return part.open("xb")
    stream = open(part, "xb", opener=private)  # noqa: SIM115  (the caller closes it)
    os.fchmod(stream.fileno(), stat.S_IMODE(target.stat().st_mode))
    return stream


def _sync(stream: BinaryIO) -> None:
    """Flush a file to the disk: a full disk behind a network may report its error only now."""
    stream.flush()
    try:
        os.fsync(stream.fileno())
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _name(part: Path, target: Path) -> None:
    """Give a file its final name, unless that name is in use by now."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise _exists_error(target) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            target.open("xb").close()  # reserves the name
        except FileExistsError:
            raise _exists_error(target) from None
        part.replace(target)


def _exists_error(path: Path) -> JobError:
    return JobError(with_ways(f"{path}: it exists", REPLACE))


def private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `opener` of ``open``: only its owner may read a file that this creates."""
    return os.open(path, flags, _PRIVATE)


@contextmanager
def naming_file(path: str | os.PathLike[str], part: Path | None = None) -> Iterator[None]:
    """Name this file in an OSError without a file name, as of a failed write, or with the name `part`."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(part or path)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
