"""Files to and from memory, a GPU's too, without Python's lock."""

from collections.abc import Callable
from typing import Any

from rnsdask.backend.cpu.extension import _cpu

read_checked: Callable[..., tuple[int, int, bool]] = _cpu.read_checked
"""Reads words of a file and checks them (kernels/cpu/checked_read.cpp).

How many bytes, or a negative errno; their checksum; whether each is at most its row's last one.
"""

GpuFiles: Any = _cpu.GpuFiles
"""Reads files into the memory of a GPU, and writes them (kernels/cpu/gpu_files.cpp).

Of addresses of CUDA's functions (kernels/cpu/gpu_lane.hpp), a context, and how many slots, bytes in each and
threads there are. ``read(file, address, bytes, ready, stream)`` gives how many bytes it has read, or a
negative errno, ``write(file, address, bytes, ready)`` 0 or one; `ready` is an event that both come after, and
what comes later on the stream finds what was read.
"""
