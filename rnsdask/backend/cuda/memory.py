"""Memory of a GPU and copies to it: who owns what a copy or a kernel reads, and until when.

CuPy queues copies and kernels on the current stream and returns before they are done. Memory of the GPU that
is given back meanwhile is safe: CuPy lends it again to work on the same stream only, which comes later. Here
is what that does not hold for: memory of the host, memory that is filled without a stream, and tables that
kernels of several streams read.
"""

import weakref
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.protocol import Array


def pinned_memory(count: int) -> NDArray[np.uint32]:
    """Uninitialised pinned memory of the host for `count` words, which a GPU copies to and from by itself."""
    # As cupyx.empty_pinned does; to import that module, and with it SciPy, takes longer than to import CuPy.
    return np.ndarray(count, np.uint32, cupy.cuda.alloc_pinned_memory(4 * count))


def is_pinned(array: NDArray[Any]) -> bool:
    """Whether a copy to the GPU can read the array where it lies."""
    attributes = cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data)
    return bool(attributes.type == cupy.cuda.runtime.memoryTypeHost and array.flags.c_contiguous)


def copy_to_gpu(array: NDArray[Any]) -> Array:
    """Copy to the current GPU. The copy is done when this returns: then the host's memory may be used again.

    CuPy copies from memory that is not pinned through pinned memory of its own.
    """
    if is_pinned(array):
        moved = cupy.empty(array.shape, array.dtype)
        moved.set(array)
    else:
        moved = cupy.asarray(array)
    # Of this copy and not of the stream, on which other threads queue more. The thread sleeps, so that
    # others may read files.
    done = cupy.cuda.Event(block=True, disable_timing=True)
    done.record()
    done.synchronize()
    return moved


def table_on_gpu(table: NDArray[Any]) -> Array:
    """Copy a table that kernels of any stream may read, as one thread's caches serve other threads.

    It can be read at once, and its memory is used again only when all kernels of its GPU are done: another
    stream than the one it was made on may have queued the last that reads it.
    """
    owner = copy_to_gpu(table)
    lent = owner.view()
    weakref.finalize(lent, _await_kernels, owner).atexit = False
    return lent


def _await_kernels(table: Array) -> None:
    with table.device:
        cupy.cuda.runtime.deviceSynchronize()
