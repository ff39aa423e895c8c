"""Files into the memory of a GPU and back, piece by piece through pinned memory of the host.

A little of that is enough, where pinning as much as a chunk takes longer than to read it. Each piece is read,
or written, while those before are copied, without Python's lock.
"""

import ctypes
import functools
import os
from collections import defaultdict, deque
from collections.abc import Callable

import cupy
import numpy as np

from rnsdask.backend import cpu
from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.memory import pinned_memory
from rnsdask.backend.protocol import Array

_SLOTS = 3
_SLOT_BYTES = 2**20
"""Of pieces on their way. A copy takes 4 us beside those of its bytes, and to pin a MiB takes 0.6 ms."""

_IDLE_WAYS = 32


class _Way:
    """What one thread moves bytes with: pinned memory for pieces, an event for each, and a stream.

    Copies on a stream that threads share would come one after the other, each after an event of another, and
    kernels after all of them.
    """

    def __init__(self) -> None:
        self.slots = pinned_memory(_SLOTS * _SLOT_BYTES // 4).view(np.uint8).reshape(_SLOTS, _SLOT_BYTES)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        # Threads that sleep while they wait, which they do where the bus is the limit, wake too late.
        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(_SLOTS)]
        self.events = np.array([event.ptr for event in self._events], dtype=np.uint64)
        self.context = _current_context()


# Deques, which threads share without a lock.
_idle: defaultdict[int, deque[_Way]] = defaultdict(lambda: deque(maxlen=_IDLE_WAYS))


def file_to_gpu(file: int, array: Array) -> int:
    """Read from where a file stands into an array of the current GPU; it is there when this returns.

    Parameters
    ----------
    file : int
        Descriptor of the open file.
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
    return _moved(cpu.file_to_gpu, "cuMemcpyHtoDAsync_v2", file, array)


def gpu_to_file(file: int, array: Array) -> None:
    """Write an array of the current GPU to a file, from where it stands on, as :func:`file_to_gpu` reads."""
    _moved(cpu.gpu_to_file, "cuMemcpyDtoHAsync_v2", file, array)


def _moved(move: Callable[..., int], copy: str, file: int, array: Array) -> int:
    idle = _idle[cupy.cuda.runtime.getDevice()]
    try:
        way = idle.pop()
    except IndexError:
        way = _Way()
    # It waits for what makes the array, or still uses its memory.
    handles = way.context, way.stream.ptr, cupy.cuda.get_current_stream().ptr
    try:
        how = way.slots, way.events, handles, _functions(copy)
        done: int = launching.call(move, file, array, array.nbytes, *how)
    finally:
        idle.append(way)  # nothing is on it any more
    if done < 0:
        raise OSError(-done, os.strerror(-done))
    return done


def _current_context() -> int:
    """The context of this thread, which another thread that copies is given."""
    context = ctypes.c_void_p()
    error = ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context))
    if error or not context.value:
        raise RuntimeError(f"CUDA's error {error} of cuCtxGetCurrent")
    return context.value


@functools.cache
def _functions(copy: str) -> list[int | None]:
    """Addresses of a copy of CUDA's driver, and of what else kernels/cpu/gpu_files.cpp calls."""
    driver = ctypes.CDLL("libcuda.so.1")
    events = ("cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent")
    names = (copy, *events, "cuCtxSetCurrent", "cuStreamSynchronize")
    return [ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in names]
