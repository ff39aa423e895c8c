"""The kernel of CRC-32C."""

import cupy
import numpy as np

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import is_aligned
from rnsdask.backend.protocol import Array


def crc32c(words: Array) -> int:
    if words.size == 0:
        return 0
    if not is_aligned(words):
        words = words.copy()
    checksum = cupy.empty(1, dtype=cupy.uint32)
    checksum.data.memset_async(0xFF, 4)  # 2**32 - 1; cupy.full would compile a kernel
    vectors, tail = divmod(words.size, 4)
    launching.launch("crc32c", "crc32c", vectors, (words, np.int64(vectors), np.int32(tail), checksum))
    return int(checksum[0])
