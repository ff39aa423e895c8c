"""Files into the memory of a GPU and back, piece by piece through pinned memory of the host.

A little of that is enough, where pinning as much as a chunk takes longer than to read it. Each piece is read,
or written, while those before are copied, without Python's lock.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import cpu
from rnsdask.backend.cuda import launching
from rnsdask.backend.protocol import Array


def file_to_gpu(file: int, array: Array, slots: NDArray[np.uint8]) -> int:
    """Read from where a file stands into an array of the current GPU; it is there when this returns.

    Parameters
    ----------
    file : int
        Descriptor of the open file.
    array : cupy.ndarray
        C-contiguous.
    slots : pinned array, shape (slots, bytes)
        Pieces on their way.

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
    stream = cupy.cuda.get_current_stream()
    return _moved(cpu.file_to_gpu, "cuMemcpyHtoDAsync_v2", file, array, slots, stream)


def gpu_to_file(file: int, array: Array, slots: NDArray[np.uint8]) -> None:
    """Write an array of the current GPU to a file, from where it stands on, as :func:`file_to_gpu` reads."""
    stream = _stream_back(array.device.id)
    stream.wait_event(cupy.cuda.get_current_stream().record())  # for what makes the array
    _moved(cpu.gpu_to_file, "cuMemcpyDtoHAsync_v2", file, array, slots, stream)


def _moved(
    move: Callable[..., int], copy: str, file: int, array: Array, slots: NDArray[np.uint8], stream: Any
) -> int:
    # Threads sleep while they wait. To make an event gives a thread the GPU's context, which copies need.
    events = [cupy.cuda.Event(block=True, disable_timing=True) for _ in slots]
    handles = np.array([event.ptr for event in events], dtype=np.uint64)
    how = slots, handles, stream.ptr, _functions(copy)
    done: int = launching.call(move, file, array, array.nbytes, *how)
    if done < 0:
        raise OSError(-done, os.strerror(-done))
    return done


@functools.cache
def _stream_back(device: int) -> Any:
    """The stream of a GPU on which results come back: kernels and copies to the GPU need not wait for it."""
    with cupy.cuda.Device(device):
        return cupy.cuda.Stream(non_blocking=True)


@functools.cache
def _functions(copy: str) -> list[int | None]:
    """Addresses of a copy of CUDA's driver, and of what records an event and waits for it."""
    driver = ctypes.CDLL("libcuda.so.1")
    names = (copy, "cuEventRecord", "cuEventSynchronize")
    return [ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in names]
