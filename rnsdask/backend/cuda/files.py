"""Files into the memory of a GPU and back, piece by piece through pinned memory of the host.

A little of that is enough, where pinning as much as a chunk takes longer than to read it. Each piece is read,
or written, while those before are copied, without Python's lock.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import cupy

from rnsdask.backend import cpu
from rnsdask.backend.cpu.files import checked_size
from rnsdask.backend.cuda import launching
from rnsdask.backend.protocol import Array

_SLOTS = 2
SLOT_BYTES = 2**21
"""Bytes of a piece in flight. A copy costs 4 us besides its bytes, and pinning a MiB 0.6 ms."""

_READERS = 12
"""Threads that read all files of a process for one GPU: as many as its bus needs."""

# In the order of kernels/cpu/gpu_lane.hpp.
_FUNCTIONS = (
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuCtxSetCurrent",
    "cuMemAllocHost_v2",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
)

_making = Lock()


def file_to_gpu(path: Path, array: Array) -> int:
    """Read a regular file into a C-contiguous array of the current GPU; return how many bytes it has.

    What comes later on the current stream finds it there. If these are not as many as those of the array,
    nothing is there of it. OSError if the file cannot be read; RuntimeError for an error of CUDA.
    """
    return _moved("read", os.fsencode(path), array, cupy.cuda.get_current_stream().ptr)


def gpu_to_file(file: int, array: Array) -> None:
    """Write an array of the current GPU to an open file, from where it stands on; errors as of reading."""
    _moved("write", file, array)


def _moved(method: str, file: bytes | int, array: Array, *follower: int) -> int:
    # After what makes the array, or still uses its memory.
    ready = cupy.cuda.Event(disable_timing=True)
    ready.record()
    move: Callable[..., int] = getattr(_files_of_device(), method)
    size = launching.call(move, file, array, array.nbytes, ready.ptr, *follower)
    return checked_size(size, reading=method == "read")


def _files_of_device() -> Any:
    with _making:
        return files_on(cupy.cuda.runtime.getDevice())


@functools.cache
def files_on(_device: int) -> Any:
    """Transfers between files and the current device."""
    cupy.cuda.runtime.free(0)  # a thread that has done nothing on a GPU has no context yet
    driver = ctypes.CDLL("libcuda.so.1")
    functions = [ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    context = ctypes.c_void_p()
    error = driver.cuCtxGetCurrent(ctypes.byref(context))
    if error or not context.value:
        raise RuntimeError(f"CUDA's error {error} of cuCtxGetCurrent")
    return cpu.GpuFiles(functions, context.value, (_SLOTS, SLOT_BYTES, _READERS))
