"""Stores between the passes of a job, next to its output."""

import re
from collections.abc import Iterable
from contextlib import suppress

from rnsdask import store
from rnsdask.core.errors import StoreError


def path_between(path: str, job: str, k: int) -> str:
    """Return the path of the store after pass k of a job with its output at a path.

    Its name includes the job's hash, so that no other job takes it for its own.
    """
    return f"{path.rstrip('/')}.{job[:12]}-{k}.partial"


def remove_between(path: str, places: Iterable[str]) -> None:
    """Remove some stores between passes, and all others of this output, as far as they can be listed."""
    for place in {*places, *_left_behind(path)}:
        store.remove(store.locate(place))


def _left_behind(path: str) -> list[str]:
    """Stores between the passes of any job with this output, as far as they can be listed."""
    folder = store.locate(path_between(path, "", 1)).parent
    names: set[str] = set()
    if folder is not None:
        with suppress(StoreError):  # listing may be forbidden
            names = folder.names()
    name = path.rstrip("/").rpartition("/")[2]
    place = re.escape(name) + r"(\.[0-9a-f]{12}-[0-9]\.partial)(?:\.partial)?"
    # The second is one that a killed job was removing.
    pattern = re.compile(rf"{place}|\.{place}\.[0-9a-f]{{32}}\.partial")
    matches = filter(None, map(pattern.fullmatch, sorted(names)))
    return [path.rstrip("/") + (match[1] or match[2]) for match in matches]
