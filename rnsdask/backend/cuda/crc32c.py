"""The kernel of CRC-32C."""

import cupy
import numpy as np

from rnsdask.backend.cuda import check, launching
from rnsdask.backend.cuda.launching import is_aligned
from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet


def crc32c(words: Array) -> int:
    if words.size == 0:
        return 0
    checksum = cupy.empty(1, dtype=cupy.uint32)
    checksum.data.memset_async(0xFF, 4)  # 2**32 - 1; cupy.full would compile a kernel
    _queue(words, checksum)
    return int(checksum[0])


def crc32c_and_validity(words: Array, moduli: ModuliSet) -> tuple[int, bool]:
    # One wait for both: between two of them other threads take Python's lock.
    found = cupy.empty(2, dtype=cupy.uint64)
    found.data.memset_async(0xFF, 16)
    _queue(words, found[:1])
    check.queue_first_invalid(words[:-1].reshape(len(moduli), -1), moduli, found[1:])
    checksum, position = found.get().tolist()
    return checksum % 2**32, position == check.NONE


def _queue(words: Array, checksum: Array) -> None:
    """Launch the kernel, which changes 2**32 - 1 into the checksum."""
    if not is_aligned(words):
        words = words.copy()
    vectors, tail = divmod(words.size, 4)
    launching.launch("crc32c", "crc32c", vectors, (words, np.int64(vectors), np.int32(tail), checksum))
