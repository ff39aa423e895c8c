"""Files that a job makes beside stores: whole or not at all, and private where they tell about the job."""

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

    Until then it has a temporary unique name beside it. A symbolic link is followed, as ``cp`` does: what it
    points to is replaced, and the link stays. A device or a named pipe is written directly. With `overwrite`
    a file at `path` is replaced; the new one then has its permissions. Else nothing is replaced, not even
    what comes into being while the new one is written: JobError. An OSError, also of a write in the context,
    names `path`.
    """
    if path.exists() and not path.is_file():
        with naming_file(path), path.open("wb") as stream:
            yield stream
        return
    if path.is_symlink() and not path.exists():
        raise JobError(f"{path}: it is a symbolic link to nothing; remove it, or give another path")
    if path.exists() and not overwrite:
        raise _taken(path)
    target = Path(os.path.realpath(path))
    part = target.with_name(f".rnsdask-{uuid.uuid4().hex}.partial")
    with naming_file(path, part):
        try:
            with _opened(part, target) as stream:
                yield stream
                _sync(stream)
            if overwrite:
                part.replace(target)
            else:
                _name(part, target)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _opened(part: Path, target: Path) -> BinaryIO:
    """Make a file, with the permissions of the one that it shall replace if there is one."""
    if not target.exists():
        return part.open("xb")
    stream = open(part, "xb", opener=private)  # noqa: SIM115  (closed by who asks for it)
    os.fchmod(stream.fileno(), stat.S_IMODE(target.stat().st_mode))
    return stream


def _sync(stream: BinaryIO) -> None:
    """Flush a file to the disk: a full disk behind a network may report its error only here."""
    stream.flush()
    try:
        os.fsync(stream.fileno())
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _name(part: Path, target: Path) -> None:
    """Give a file its name, unless there is something of that name by now."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            target.open("xb").close()  # the name is ours from here on
        except FileExistsError:
            raise _taken(target) from None
        part.replace(target)


def _taken(path: Path) -> JobError:
    return JobError(with_ways(f"{path}: it exists", REPLACE))


def private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `opener` of ``open``: one that it makes can be read by its owner alone."""
    return os.open(path, flags, _PRIVATE)


@contextmanager
def naming_file(path: str | os.PathLike[str], part: Path | None = None) -> Iterator[None]:
    """Name this file in an OSError that names none, as a failed write does, or that names `part`."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(part or path)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
