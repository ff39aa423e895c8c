"""Small results of kernels, which write them to memory of the host: a copy takes longer than the wait."""

import weakref
from collections import defaultdict, deque
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cuda.launching import BLOCKS_PER_PROCESSOR, SHARED_BYTES, processors
from rnsdask.backend.cuda.memory import pinned_memory
from rnsdask.backend.cuda_layout import EXTREMUM

# Words of a sum: those of each row, whose number shared memory bounds, and three of the keys.
_SUMS = SHARED_BYTES // 16 + 3

_EXTREMUM = EXTREMUM.itemsize // 8


class Results:
    """What one launch at a time writes its results to, and what its blocks share.

    It is taken by :func:`results`, and lent again when :meth:`read` has returned. If it never comes to that,
    the memory is given back when the GPU is idle.

    Attributes
    ----------
    host : uint64
        Address of pinned memory of the host, the words that :meth:`read` returns: as many as a launch has
        blocks of 256 threads, and as many as a sum, or an extremum with its residues, takes.
    arrived, sums, partials : arrays of uint64
        On the GPU: a counter and sums, which are 0 between launches, and the extrema of blocks.
    """

    def __init__(self, device: int) -> None:
        most_blocks = processors(device) * BLOCKS_PER_PROCESSOR
        self._words = pinned_memory(2 * max(_EXTREMUM + _SUMS, most_blocks)).view(np.uint64)
        shared = cupy.zeros(1 + _SUMS + most_blocks * _EXTREMUM, dtype=np.uint64)
        self.host = np.uint64(self._words.ctypes.data)
        self.arrived, self.sums, self.partials = shared[:1], shared[1 : 1 + _SUMS], shared[1 + _SUMS :]
        self._idle = _idle[device]
        self._done = cupy.cuda.Event(disable_timing=True)
        self._wait()  # for the zeros, which launches on other streams need too
        weakref.finalize(self, _await_kernels, device, self._words, shared).atexit = False

    def _wait(self) -> None:
        # For what is queued so far, and not for the stream, on which other threads queue more.
        self._done.record()
        self._done.synchronize()

    def cleared(self, count: int) -> np.uint64:
        """The address, where so many words are 0 now."""
        self._words[:count] = 0
        return self.host

    def read(self, count: int) -> NDArray[np.uint64]:
        """The first words, once the kernels queued on the current stream are done."""
        self._wait()
        found: NDArray[np.uint64] = self._words[:count].copy()
        self._idle.append(self)
        return found


# Deques, which threads share without a lock.
_idle: defaultdict[int, deque[Results]] = defaultdict(deque)


def results() -> Results:
    """Results for one launch on the current device."""
    device = cupy.cuda.runtime.getDevice()
    try:
        return _idle[device].pop()
    except IndexError:
        return Results(device)


def _await_kernels(device: int, *_owned: Any) -> None:
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.deviceSynchronize()
