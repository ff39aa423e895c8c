"""A GPU made ready by a thread, while Python imports the libraries of a job, which takes as long."""

import ctypes
import sys
from importlib.util import find_spec
from threading import Thread
from typing import Any


def is_wanted(gpus: Any, backend: str | None) -> bool:
    """Whether a command that is told of no cluster takes the GPU of this process, if there is one."""
    if backend == "cpu":  # also beside --gpus: the commands that compute on the host
        return False
    if gpus is not None:
        return bool(gpus == 1)
    if backend is None or find_spec("cupy") is None or _may_have_client():
        return False
    from rnsdask.cluster.settings import scheduler_address

    # Dask's settings may name a cluster, whose workers may need all of the GPU.
    return scheduler_address() is None


def _may_have_client() -> bool:
    """Whether this process may be the client of a cluster, as a notebook may: none that runs one command."""
    return "distributed" in sys.modules


def begin() -> None:
    """Have a thread make the context of this process's first GPU that CuPy will use, if there is one.

    The process ends no sooner than the thread. Errors are met, and told, by whoever uses the GPU then.
    """
    Thread(target=_make_context, name="rnsdask-cuda").start()


def _make_context() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    # CuPy calls the driver through CUDA's runtime library, which takes the device's primary context too.
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
