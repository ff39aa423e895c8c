"""The content of an array: a hash of the checksums of all its chunks, which they end with."""

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from rnsdask.core.errors import CorruptChunkError
from rnsdask.store.chunk_files import CHECKSUM_BYTES
from rnsdask.store.location import Location

REQUESTS = 16
"""How many files are asked for at a time, where only a little of each is wanted."""

_BATCH = 16
"""Files that a thread asks for one after the other: for a local one, a thread's turn takes longer."""


def content_of(location: Location, keys: Iterable[str]) -> str:
    """Hash of the checksums at the end of chunks, in their order: the same for the same chunks."""
    listed = list(keys)
    digest = hashlib.sha256()
    with ThreadPoolExecutor(REQUESTS) as pool:
        starts = range(0, len(listed), _BATCH)
        for checksums in pool.map(lambda i: _ends_of(location, listed[i : i + _BATCH]), starts):
            digest.update(checksums)
    return digest.hexdigest()


def _ends_of(location: Location, keys: Iterable[str]) -> bytes:
    """The checksums at the end of some chunks, one after the other."""
    ends = []
    for key in keys:
        name = f"{location.path}: chunk {key}"
        try:
            ends.append(location.read_end(key, CHECKSUM_BYTES, name))
        except FileNotFoundError:
            raise CorruptChunkError(f"{name} is missing") from None
    return b"".join(ends)
