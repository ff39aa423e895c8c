"""Files into the memory of a GPU and back, piece by piece through pinned memory of the host.

A little of that is enough, where pinning as much as a chunk takes longer than to read it. Each piece is read,
or written, while those before are copied, without Python's lock.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from threading import Lock
from typing import Any

import cupy

from rnsdask.backend import cpu
from rnsdask.backend.cuda import launching
from rnsdask.backend.protocol import Array

_SLOTS = 3
_SLOT_BYTES = 2**20
"""Of pieces on their way. A copy takes 4 us beside those of its bytes, and to pin a MiB takes 0.6 ms."""

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
)

_making = Lock()


def file_to_gpu(file: int, array: Array) -> int:
    """Read a file into an array of the current GPU, where what comes later on the current stream finds it.

    Parameters
    ----------
    file : int
        Descriptor of the open file, which is read from its beginning.
    array : cupy.ndarray
        C-contiguous.

    Returns
    -------
    int
        How many bytes were read: fewer than those of the array at the end of the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    RuntimeError
        For an error of CUDA.
    """
    return _moved("read", file, array, cupy.cuda.get_current_stream().ptr)


def gpu_to_file(file: int, array: Array) -> None:
    """Write an array of the current GPU to a file, from where it stands on; errors are those of reading."""
    _moved("write", file, array)


def _moved(method: str, file: int, array: Array, *follower: int) -> int:
    # After what makes the array, or still uses its memory.
    ready = cupy.cuda.Event(disable_timing=True)
    ready.record()
    with _making:
        move: Callable[..., int] = getattr(_files(cupy.cuda.runtime.getDevice()), method)
    done: int = launching.call(move, file, array, array.nbytes, ready.ptr, *follower)
    if done < 0:
        raise OSError(-done, os.strerror(-done))
    return done


@functools.cache
def _files(_device: int) -> Any:
    """What moves files to a device and back, which must be the current one."""
    driver = ctypes.CDLL("libcuda.so.1")
    functions = [ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    context = ctypes.c_void_p()
    error = driver.cuCtxGetCurrent(ctypes.byref(context))
    if error or not context.value:
        raise RuntimeError(f"CUDA's error {error} of cuCtxGetCurrent")
    return cpu.GpuFiles(functions, context.value, (_SLOTS, _SLOT_BYTES, _READERS))
