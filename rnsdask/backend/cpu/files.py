"""Files to and from memory, a GPU's too, without Python's lock."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu

read_checked: Callable[..., tuple[int, int, bool]] = _cpu.read_checked
"""Reads words of a file and checks them (kernels/cpu/checked_read.cpp).

How many bytes, or a negative errno; their checksum; whether each is at most its row's last one.
"""


def extend_checksum(checksum: int, content: NDArray[np.uint8], *, by_tables: bool = False) -> int:
    """CRC-32C of what `checksum` is of, 0 of nothing, with the bytes of a contiguous array after it.

    `by_tables` does as processors that have no instruction for it.
    """
    extended: int = _cpu.crc32c(checksum, content, by_tables)
    return extended


GpuFiles: Any = _cpu.GpuFiles
"""Reads files into the memory of a GPU, and writes them (kernels/cpu/gpu_files.cpp).

Made from the addresses of CUDA's functions (kernels/cpu/gpu_lane.hpp), a context, and the numbers of slots,
of bytes in each and of threads. ``read(path, address, bytes, ready, stream)`` returns the size of the file,
and reads it if it has that many bytes; ``write(file, address, bytes, ready)`` returns 0; either may return a
negative errno. Both wait for the event `ready`; later work on the stream finds what was read. ``prepare()``
starts all threads.
"""


def read_first(path: str | Path, most: int) -> bytes:
    """Read at most `most` bytes at the beginning of a regular file, in one go.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    found: bytes | int = _cpu.read_first(os.fsencode(path), most)
    if isinstance(found, int):
        checked_size(found, reading=True)
    assert isinstance(found, bytes)
    return found


def checked_size(size: int, *, reading: bool) -> int:
    """A size, or raise the OSError of a negative errno, which of a file that is read may say what it is."""
    if size < 0:
        is_special = reading and size == -errno.EINVAL
        raise OSError(-size, "it is no regular file" if is_special else os.strerror(-size))
    return size
