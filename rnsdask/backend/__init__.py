"""The kernels for an array's processor: NumPy arrays on the CPU, CuPy arrays on their GPU.

Every kernel exists once for each processor under the same name, with the same arguments and bit for bit
the same results; :class:`Kernels` lists them.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Condition, RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.protocol import FITS as FITS
from rnsdask.backend.protocol import INTERVAL_OPERATIONS as INTERVAL_OPERATIONS
from rnsdask.backend.protocol import INTERVAL_RNS_ALGORITHMS as INTERVAL_RNS_ALGORITHMS
from rnsdask.backend.protocol import OPEN as OPEN
from rnsdask.backend.protocol import OVERFLOWS as OVERFLOWS
from rnsdask.backend.protocol import UNDECIDED as UNDECIDED
from rnsdask.backend.protocol import Array as Array
from rnsdask.backend.protocol import BoundProof as BoundProof
from rnsdask.backend.protocol import Bounds as Bounds
from rnsdask.backend.protocol import Extremum as Extremum
from rnsdask.backend.protocol import IntervalGoal as IntervalGoal
from rnsdask.backend.protocol import Kernels as Kernels
from rnsdask.backend.protocol import KeySums as KeySums
from rnsdask.backend.protocol import Moduli as Moduli
from rnsdask.core.errors import GPUMemoryError, NoGPUError
from rnsdask.core.ways import must

BACKENDS = ("auto", "cpu", "cuda")


def kernels_of(array: Any) -> Kernels:
    """The kernels for `array`'s type.

    Raises
    ------
    TypeError
        If `array` is neither a NumPy nor a CuPy array.
    """
    return _kernels_of_type(type(array))  # type: ignore[arg-type]  # mypy: types have no hash


@functools.cache
def _kernels_of_type(array_type: type) -> Kernels:
    if issubclass(array_type, np.ndarray):
        from rnsdask.backend import cpu

        return cpu
    if _top_package(array_type.__module__) == "cupy":
        from rnsdask.backend.cuda import kernels

        return kernels
    raise TypeError(f"residues must be a NumPy or CuPy array, got {array_type.__name__}")


def backend_name(array: Any) -> str:
    """``"cuda"`` for a CuPy array, else ``"cpu"``."""
    return "cuda" if _is_cupy(array) else "cpu"


def is_array(value: Any) -> bool:
    """Whether an object is an array of NumPy's or CuPy's."""
    return isinstance(value, np.ndarray) or _is_cupy(value)


def is_any(mask: Array) -> bool:
    """Whether any item of a Boolean or unsigned array is not 0."""
    return bool(mask.any()) if isinstance(mask, np.ndarray) else bool(mask.size and _octets(mask).max())


def is_all(mask: Array) -> bool:
    """Whether no item of a Boolean or unsigned array is 0."""
    return bool(mask.all()) if isinstance(mask, np.ndarray) else not mask.size or bool(_octets(mask).min())


_FEW_TO_COUNT = 2**18
"""Values on a GPU that the host counts sooner than a kernel for it is compiled."""


def count_each(values: Array, length: int) -> NDArray[np.int64]:
    """How often each integer from 0 to ``length - 1`` occurs among values (k,) that are all of these."""
    if isinstance(values, np.ndarray):
        return np.bincount(values, minlength=length)
    if len(values) <= _FEW_TO_COUNT:
        return np.bincount(values.get(), minlength=length)
    # CuPy's bincount() looks for negative values by any().
    starts: Array = np.searchsorted(np.sort(values), np.arange(length + 1, dtype=values.dtype, like=values))
    counts: NDArray[np.int64] = np.diff(starts.get())
    return counts


def _octets(mask: Array) -> Array:
    """Booleans of CuPy as integers: it compiles any() for seconds at first use, and comes with max()."""
    return mask.view(np.uint8) if mask.dtype == np.bool_ else mask


class WorkersArray(np.ndarray):
    """Type of empty arrays that stand for chunks of CuPy on processes that have a GPU, of NumPy on others.

    A process without a GPU has no array of CuPy, and yet may say what the GPUs of others compute.
    """

    __array_priority__ = 1.0  # what is joined of these and NumPy's is of this type


def empty_like_chunks(chunk: Any, ndim: int, dtype: Any) -> Any:
    """An empty array of `ndim` axes that stands for chunks of the same library, for Dask's ``meta``."""
    empty = np.empty((0,) * ndim, dtype=dtype, like=chunk)
    return empty.view(WorkersArray) if isinstance(chunk, WorkersArray) else empty


def backend_beside(chunk: Any) -> str:
    """Backend of the chunks that an empty array represents, for :func:`to_backend` of words to join them."""
    return "auto" if isinstance(chunk, WorkersArray) else backend_name(chunk)


def _is_cupy(array: Any) -> bool:
    return _top_package(type(array).__module__) == "cupy"


@functools.cache
def _top_package(module: str) -> str:
    # By name, so that CuPy is imported only where such an array exists.
    return module.partition(".")[0]


def has_gpu() -> bool:
    """Whether CuPy is installed and sees a GPU in this process."""
    return gpu_count() > 0


@functools.cache
def gpu_count() -> int:
    """Count the GPUs that CuPy sees in this process, once; 0 without CuPy."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except ImportError:
        return 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def free_device_bytes() -> int | None:
    """Memory that this process could still take of its GPU; None if it has no GPU."""
    if not has_gpu():
        return None
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free) + int(cupy.get_default_memory_pool().free_bytes())


def prepare_gpu() -> None:
    """Prepare this process's GPU, if it has one, for its first task: kernels, and memory to receive into."""
    if has_gpu():
        import_module("rnsdask.backend.cuda.kernels")  # and CuPy, before the first task needs them
        lend_idle_memory()


def lend_idle_memory() -> None:
    """Let RMM, where it is installed, take memory that CuPy's pool keeps and does not use.

    UCX receives chunks into memory of RMM, beside CuPy's pool. The pool gives idle memory back when CuPy
    finds none left, but not when RMM does.
    """
    try:
        import rmm.mr
    except ImportError:
        return
    import cupy

    pool = cupy.get_default_memory_pool()

    def give_back(_needed: int) -> bool:
        idle = pool.free_bytes()
        pool.free_all_blocks()
        return int(idle) > 0  # then RMM tries again

    resource = rmm.mr.get_current_device_resource()
    rmm.mr.set_current_device_resource(rmm.mr.FailureCallbackResourceAdaptor(resource, give_back))


@contextmanager
def naming_gpu_memory(what: str = "") -> Iterator[None]:
    """Turn CuPy's error of a full memory into one with figures, which processes without CuPy can read too.

    The message begins with `what` did not fit, if that is known. CuPy has given back its idle memory by then,
    and tried again.
    """
    try:
        yield
    except GPUMemoryError as error:
        if not what:
            raise
        message = str(error)
    except MemoryError as error:
        if not _is_cupy(error):
            raise
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        message = (
            f"GPU {cupy.cuda.runtime.getDevice()} has no memory left, {free} of its {total} bytes are free: "
            f"{error}; smaller chunks or fewer threads need less"
        )
    else:
        return
    # Out here the error has neither cause nor context, which a worker would send along.
    raise GPUMemoryError(f"{what}: {message}" if what else message)


def empty_on_gpu(count: int) -> Any:
    """Uninitialised memory for `count` words on this process's GPU, to be filled on the current stream."""
    import cupy

    return cupy.empty(count, np.uint32)


def file_to_gpu(path: Path, array: Array) -> int:
    """Read a file into an array of this process's GPU: :func:`.cuda.files.file_to_gpu`."""
    from rnsdask.backend.cuda import files

    return files.file_to_gpu(path, array)


def gpu_to_file(file: int, array: Array) -> None:
    """Write an array of this process's GPU to a file: :func:`.cuda.files.gpu_to_file`."""
    from rnsdask.backend.cuda import files

    files.gpu_to_file(file, array)


def empty_like(array: Any, shape: tuple[int, ...]) -> Any:
    """Memory in C order with any content, of another array's type and processor; quicker than NumPy's."""
    if isinstance(array, np.ndarray):
        return np.empty(shape, array.dtype)
    import cupy

    return cupy.empty(shape, array.dtype)


def contiguous(array: Array) -> Array:
    """Copy an array to C order unless it is in that order."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    return array if array.flags.c_contiguous else padded(array, array.shape)


def padded(array: Array, shape: Sequence[int]) -> Array:
    """A copy in C order, on the same processor, with zeros after it along each axis up to a shape."""
    if isinstance(array, np.ndarray):
        larger = np.zeros(shape, array.dtype)
        larger[tuple(map(slice, array.shape))] = array
        return larger
    from rnsdask.backend.cuda import copies

    return copies.padded(array, shape)


def assign(out: Array, array: Array) -> None:
    """Write an array to a view of another on the same processor that has its shape and dtype."""
    if isinstance(array, np.ndarray):
        out[...] = array
        return
    from rnsdask.backend.cuda import copies

    copies.assign(out, array)


def check_backend(backend: str) -> None:
    """Raise ``ValueError`` unless `backend` is one of ``"auto"``, ``"cpu"``, ``"cuda"``."""
    if backend not in BACKENDS:
        raise ValueError(must("backend", f"be one of {', '.join(BACKENDS)}, got {backend!r}"))


def uses_gpu(backend: str, *blocks: Any) -> bool:
    """Whether computing is on a GPU: of blocks that are there, or that :func:`to_backend` moves there."""
    return any(map(_is_cupy, blocks)) or (backend != "cpu" and has_gpu())


_turns = Condition()
_waiting: list[tuple[int, int]] = []
_tickets = count()
_has_turn = False


@contextmanager
def in_turn(block: Any, order: int) -> Iterator[None]:
    """Let one thread at a time queue work on this process's GPU, of the least order, and wait for its end.

    A GPU does first what was queued first. What other tasks wait for then waits for one turn of these, and
    not for all that threads have queued before.
    """
    if not _is_cupy(block):
        yield
        return
    global _has_turn
    ticket = order, next(_tickets)
    with _turns:
        _waiting.append(ticket)
        try:
            _turns.wait_for(lambda: not _has_turn and min(_waiting) == ticket)
            _has_turn = True
        finally:  # also of one that is interrupted
            _waiting.remove(ticket)
            _turns.notify_all()
    try:
        yield
        import cupy

        cupy.cuda.get_current_stream().synchronize()
    finally:
        with _turns:
            _has_turn = False
            _turns.notify_all()


@contextmanager
def first_alone(function: Callable[..., Any], *kind: Hashable) -> Iterator[None]:
    """Let one thread call a function for the first time on this process's GPU, and all others wait.

    CuPy's own functions compile a kernel at first use in each thread that needs it, and the compiler takes
    these one after the other: 16 threads would need 16 times as long. Calls of another `kind`, with other
    kernels, have a first one of their own.
    """
    call = function, *kind
    if call in _called or function in _never_alone:
        yield
        return
    with _first_calls[call]:
        yield
        _called.add(call)


def never_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that never has CuPy compile: :func:`first_alone` lets every call pass."""
    _never_alone.add(function)
    return function


_never_alone: set[Callable[..., Any]] = set()
_called: set[tuple[Hashable, ...]] = set()
_first_calls: defaultdict[tuple[Hashable, ...], RLock] = defaultdict(RLock)


def to_backend(array: Any, backend: str) -> Any:
    """Move a chunk to the processor that `backend` names; ``"auto"`` prefers this process's GPU.

    A copy is done when this returns, so that the memory of `array` may be used again. NoGPUError if it is
    ``"cuda"`` and there is no CuPy or no GPU.
    """
    check_backend(backend)
    if backend == "cpu":
        return array.get() if _is_cupy(array) else array
    if _is_cupy(array):
        return array
    if has_gpu():
        from rnsdask.backend.cuda import memory

        with naming_gpu_memory():
            return memory.copy_to_gpu(array)
    if backend == "cuda":
        raise NoGPUError("backend 'cuda' needs CuPy and a GPU, and this process has none")
    return array
