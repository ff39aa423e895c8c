"""A stand-in for CuPy on NumPy's arrays, with the functions that the package calls."""

import contextlib
import ctypes
import functools
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

SHARED_BYTES = 2**18
ATTRIBUTES = {16: 2, 75: 8, 76: 0, 97: 2**17}
"""Attributes of a device: multiprocessors, version, bytes of shared memory that a block can ask for."""


FUNCTIONS = (
    *("empty", "zeros", "full", "ones", "arange", "empty_like", "full_like", "ascontiguousarray"),
    "concatenate",
)
"""Functions of NumPy that CuPy has, too."""


class Stream:
    """A stream of work that is done as soon as it is queued."""

    ptr = 0

    def __init__(self, **_: Any) -> None:
        """Make a stream, whose options are nothing here."""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def record(self) -> None:
        """Do nothing, for all work before is done."""

    def wait_event(self, _: None) -> None:
        """Do nothing, for all work before is done."""


class ndarray(np.ndarray):  # noqa: N801  (CuPy's name)
    """A NumPy array that has what the package asks of CuPy's."""

    __module__ = "cupy"

    @property
    def data(self) -> Any:  # type: ignore[override]
        fill = functools.partial(ctypes.memset, self.ctypes.data)
        return types.SimpleNamespace(ptr=self.ctypes.data, device_id=0, memset_async=fill)

    @property
    def device(self) -> Any:
        return contextlib.nullcontext()

    def get(self) -> np.ndarray:
        return np.array(self, subok=False)


def launched_by(run: Callable[[int, int, list[np.ndarray], int], None]) -> Callable[..., None]:
    """CuPy's launch of a kernel, by what takes blocks, threads, arguments, arrays as pointers, and bytes."""

    def launch(grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
        assert shared_mem <= SHARED_BYTES
        values = [np.array(v.ctypes.data if isinstance(v, np.ndarray) and v.ndim else v) for v in arguments]
        run(grid[0], block[0], values, shared_mem)

    launch.max_dynamic_shared_size_bytes = SHARED_BYTES  # type: ignore[attr-defined]
    return launch


def install(module: type) -> None:
    """Put a module in the place of CuPy."""
    cupy: Any = types.ModuleType("cupy")
    nothing = lambda *_, **__: None  # noqa: E731
    runtime = types.SimpleNamespace(
        getDevice=lambda: 0,
        deviceGetAttribute=lambda what, _: ATTRIBUTES[what],
        pointerGetAttributes=lambda _: types.SimpleNamespace(type=0),
        deviceSynchronize=nothing,
        driverGetVersion=lambda: 0,  # which loads no cubins
        streamPerThread=2,
        memcpyDeviceToDevice=3,
        memcpyAsync=lambda out, x, size, *_: ctypes.memmove(out, x, size),
        memcpy2DAsync=_copy_rows,
        memoryTypeHost=2,
    )
    cupy.cuda = types.SimpleNamespace(
        runtime=runtime,
        alloc_pinned_memory=bytearray,
        get_current_stream=Stream,
        Stream=Stream,
        Device=lambda _: contextlib.nullcontext(),
        Event=lambda **_: types.SimpleNamespace(record=nothing, synchronize=nothing),
    )
    cupy.ndarray, cupy.RawModule = ndarray, module
    for name in ("uint8", "int8", "int32", "uint32", "int64", "uint64", "float64", "bool_"):
        setattr(cupy, name, getattr(np, name))
    for name in FUNCTIONS:
        setattr(cupy, name, partial(_as_cupys, getattr(np, name)))
    cupy.__version__ = "0"  # whose streams have no priorities
    cupy.asarray = _asarray
    libraries: Any = types.ModuleType("cupy_backends.cuda.libs")
    libraries.cublas = None
    for name in ("cupy_backends", "cupy_backends.cuda"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["cupy_backends.cuda.libs"] = libraries
    sys.modules["cupy"] = cupy


def _copy_rows(out: int, out_step: int, x: int, step: int, width: int, rows: int, *_: Any) -> None:
    for i in range(rows):
        ctypes.memmove(out + i * out_step, x + i * step, width)


def _as_cupys(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return function(*args, **options).view(ndarray)


def _asarray(array: Any, *args: Any, **options: Any) -> Any:
    """A copy of the host's arrays, in C order whatever theirs is, as CuPy's."""
    if isinstance(array, ndarray):
        return np.asarray(array, *args, **options).view(ndarray)
    return np.array(array, *args, **{**options, "order": "C"}).view(ndarray)
