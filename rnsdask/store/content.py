"""Content hash of an array: the hash of the checksums at the ends of all its chunks."""

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from rnsdask.core.errors import CorruptChunkError
from rnsdask.store.chunk_files import CHECKSUM_BYTES
from rnsdask.store.location import Location

REQUESTS = 16
"""Concurrent requests where only a few bytes of each file are wanted."""

_BATCH = 16
"""Files that a thread reads in one turn: switching threads takes longer than reading a local file."""


def content_of(location: Location, keys: Iterable[str]) -> str:
    """Hash the checksums at the ends of chunks, in the order of `keys`."""
    listed = list(keys)
    digest = hashlib.sha256()
    with ThreadPoolExecutor(REQUESTS) as pool:
        starts = range(0, len(listed), _BATCH)
        for checksums in pool.map(lambda i: _ends_of(location, listed[i : i + _BATCH]), starts):
            digest.update(checksums)
    return digest.hexdigest()


def _ends_of(location: Location, keys: Iterable[str]) -> bytes:
    """Concatenate the checksums at the ends of some chunks."""
    ends = []
    for key in keys:
        name = f"{location.path}: chunk {key}"
        try:
            ends.append(location.read_end(key, CHECKSUM_BYTES, name))
        except FileNotFoundError:
            raise CorruptChunkError(f"{name} is missing") from None
    return b"".join(ends)
