"""Facts about CUDA and its devices, and the rates at which a device reads, copies and multiplies."""

import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cuda import check, int8_product
from rnsdask.backend.cuda.memory import copy_to_gpu, pinned_memory

_READ_BYTES, _COPY_BYTES = 4 * 2**30, 256 * 2**20
"""Most bytes that are read, and bytes that are copied, at a time: so many that launches do not count."""

_INT8_SIDE = 8192
"""Side of 8-bit matrices, at which cuBLAS has its best rate on all cards known."""

_REPEATS = 8


def cuda_versions() -> tuple[int, int]:
    """Return the CUDA versions of the driver and of CuPy's runtime, such as 12040, without need of a GPU.

    That of the driver is 0 where there is none.
    """
    runtime = cupy.cuda.runtime
    return int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())


def count_devices() -> int:
    """Return the number of GPUs; RuntimeError, with CUDA's reason, if there is none."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(str(error)) from error


def use_device(number: int) -> Any:
    """Return a context in which a device is the current one of the thread."""
    return cupy.cuda.Device(number)


def describe_device(number: int) -> dict[str, Any]:
    """Return name, compute capability, PCI bus id, and free and total bytes of a device."""
    with use_device(number) as device:
        free, total = cupy.cuda.runtime.memGetInfo()
        capability = str(device.compute_capability)
        return {
            "name": cupy.cuda.runtime.getDeviceProperties(number)["name"].decode(),
            "capability": f"{capability[:-1]}.{capability[-1]}",
            "bus": str(device.pci_bus_id),
            "free_bytes": int(free),
            "bytes": int(total),
        }


def read_rate() -> float:
    """Measure how many bytes a second the current device reads of its memory."""
    free, _ = cupy.cuda.runtime.memGetInfo()
    nbytes = min(_READ_BYTES, int(free) // 64 * 16)
    words = cupy.empty((1, nbytes // 4), dtype=cupy.uint32)
    words.data.memset_async(0x55, nbytes)
    return nbytes / _least_seconds(lambda: check.read_all(words))


def copy_rate() -> float:
    """Measure how many bytes a second come from pinned memory of the host to the current device."""
    words = pinned_memory(_COPY_BYTES // 4)
    words[:] = 1
    return _COPY_BYTES / _least_seconds(lambda: copy_to_gpu(words))


def int8_rate() -> float:
    """Measure how many operations a second cuBLAS does on 8-bit matrices: two for each product of numbers."""
    side = _INT8_SIDE
    rng = np.random.default_rng(1)  # zeros would take less power, and higher clocks
    x, y = (copy_to_gpu(rng.integers(-128, 128, (1, 1, side, side), dtype=np.int8)) for _ in range(2))
    sums = cupy.empty((1, 1, side, side), dtype=cupy.int32)
    device = cupy.cuda.Device()

    def multiply() -> None:
        int8_product.multiply_int8(x, y, sums)
        device.synchronize()

    return 2 * side**3 / _least_seconds(multiply)


def _least_seconds(call: Callable[[], Any]) -> float:
    """Least time of a call that ends when the device is done, after one that compiles and warms up."""
    call()
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
