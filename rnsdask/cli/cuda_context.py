"""A GPU made ready by a thread, while Python imports the libraries of a job, which takes as long."""

import ctypes
from threading import Thread


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
