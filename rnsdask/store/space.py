"""Checks of a place before anything is written: free space, and write permission."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.messages import size_text
from rnsdask.store.location import Location


def check_room(wanted: Mapping[Location, int]) -> None:
    """Raise StoreError unless the bytes to be written at all local places fit on their disks together."""
    totals: dict[int, int] = {}
    for location, nbytes in wanted.items():
        if not location.is_local:
            continue
        folder = _existing_folder(location)
        device = folder.stat().st_dev
        totals[device] = needed = totals.get(device, 0) + nbytes
        if needed > (free := shutil.disk_usage(folder).free):
            raise StoreError(
                f"{location.path}: {needed} bytes ({size_text(needed)}) are to be written, and {free} "
                f"({size_text(free)}) are free on the disk; make room there, or write to another disk"
            )


def check_can_write(location: Location) -> None:
    """Raise StoreError if a place cannot be written, as far as can be seen without writing."""
    location.check_writable()
    if not location.is_local:
        return
    try:
        with tempfile.TemporaryFile(dir=_existing_folder(location)):
            pass
    except OSError as error:
        raise StoreAccessError.of(f"{location.path}: it cannot be written", error) from error


def _existing_folder(location: Location) -> Path:
    """Folder of a local place, or the nearest existing one above it."""
    path = Path(os.path.realpath(location.path))
    try:
        return next(folder for folder in (path, *path.parents) if folder.exists())
    except OSError as error:  # such as a name that is too long
        raise StoreAccessError.of(f"{location.path}: it cannot be written", error) from error
