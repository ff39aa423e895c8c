"""Content hash of an array: the hash of the checksums at the ends of all its chunks."""

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from rnsdask.core.errors import CorruptChunkError
from rnsdask.store.chunk_files import CHECKSUM_BYTES
from rnsdask.store.location import Location

REQUESTS = 16
"""Concurrent requests where only a few bytes of each file are wanted."""

_BATCH = 16
"""Files that a thread reads in one turn: switching threads takes longer than reading a local file."""


def content_of(location: Location, keys: Iterable[str]) -> str:
    """Hash the checksums at the ends of chunks, in the order of `keys`."""
    digest = hashlib.sha256()
    for key, checksum in checksums_of(location, keys):
        if checksum is None:
            raise CorruptChunkError(f"{location.path}: chunk {key} is missing")
        digest.update(checksum)
    return digest.hexdigest()


def checksums_of(location: Location, keys: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the checksum at the end of each chunk, with its key; None for a missing chunk."""
    listed = list(keys)
    with ThreadPoolExecutor(REQUESTS) as pool:
        starts = range(0, len(listed), _BATCH)
        ends = pool.map(lambda i: _ends_of(location, listed[i : i + _BATCH]), starts)
        yield from zip(listed, chain.from_iterable(ends), strict=True)


def _ends_of(location: Location, keys: Iterable[str]) -> list[bytes | None]:
    """Return the checksums at the ends of some chunks."""
    ends: list[bytes | None] = []
    for key in keys:
        try:
            ends.append(location.read_end(key, CHECKSUM_BYTES, f"{location.path}: chunk {key}"))
        except FileNotFoundError:
            ends.append(None)
    return ends
