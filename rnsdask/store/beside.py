"""Lock of a local array while a job changes it, and the old array's name during the renames.

For ``x.zarr`` these are ``.x.zarr.lock`` and ``.x.zarr.former``. No component of a group begins with a dot,
as both names do.
"""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.store.location import Location

PATIENCE = 60.0
"""Seconds to wait for another job's lock before it is an error: jobs hold it for a few renames only."""

_PAUSE = 0.005
"""Seconds between two attempts to take the lock: about the time of a rename on a network disk."""

# Errors of file systems without locks, such as Lustre mounted without them.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def former(location: Location) -> Path:
    """Return where the old array is between its rename out of the place and the new array's into it."""
    return _hidden_path(location, "former")


def is_replaced(location: Location) -> bool:
    """Whether an old array is there because a job is renaming, or was killed while it did."""
    return location.is_local and former(location).exists()


@contextmanager
def locked(location: Location) -> Iterator[list[Path]]:
    """Hold a local place, so that no other job renames, begins or takes over anything there meanwhile.

    Folders that the context adds to the list are removed after the lock is released. The kernel releases the
    lock of a killed job. A remote place, a missing folder and a disk without locks are not locked.

    StoreError if another job holds the place for a minute; StoreAccessError if it cannot be locked.
    """
    removed: list[Path] = []
    try:
        with _hold(location):
            yield removed
    finally:
        for folder in removed:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _hold(location: Location) -> Iterator[None]:
    if not location.is_local or not Path(location.canonical).parent.is_dir():
        yield
        return
    file = _hidden_path(location, "lock")
    try:
        descriptor = _acquire(location, file)
    except OSError as error:
        raise StoreAccessError.of(f"{location.path}: it cannot be written", error) from error
    try:
        yield
    finally:
        with suppress(OSError):  # while it is held: jobs that wait for this file then try a new one
            file.unlink()
        os.close(descriptor)


def _hidden_path(location: Location, suffix: str) -> Path:
    place = Path(location.canonical)
    return place.with_name(f".{place.name}.{suffix}")


def _acquire(location: Location, file: Path) -> int:
    end = time.monotonic() + PATIENCE
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if _is_locked(descriptor, file):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > end:
            raise StoreError(
                f"{location.path}: another job has been putting an array in its place for {PATIENCE:.0f} s; "
                "try again later, or end that job"
            )
        time.sleep(_PAUSE)


def _is_locked(descriptor: int, file: Path) -> bool:
    """Try to lock a file; return whether it is locked and still has its name."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        if error.errno in _WITHOUT_LOCKS:
            return True
        raise
