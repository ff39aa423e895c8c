"""Files to and from memory, a GPU's too, without Python's lock."""

from collections.abc import Callable

from rnsdask.backend.cpu.extension import _cpu

read_checked: Callable[..., tuple[int, int, bool]] = _cpu.read_checked
"""Reads words of a file and checks them (kernels/cpu/checked_read.cpp).

How many bytes, or a negative errno; their checksum; whether each is at most its row's last one.
"""

file_to_gpu: Callable[..., int] = _cpu.file_to_gpu
"""Reads a file into the memory of a GPU (kernels/cpu/gpu_files.cpp); how many bytes, or a negative errno."""

gpu_to_file: Callable[..., int] = _cpu.gpu_to_file
"""Writes memory of a GPU to a file; 0, or a negative errno."""
