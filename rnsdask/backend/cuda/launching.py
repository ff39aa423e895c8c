"""Kernels loaded or compiled at first use, launches, their arguments, and small results written to the host.

All work goes to the current device and stream, which must be the ones of the arrays.
"""

import functools
import os
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np
import psutil
from numpy.typing import NDArray

from rnsdask.backend.cuda import cubins, sources
from rnsdask.backend.cuda.layout import BLOCK, EXTREMUM
from rnsdask.backend.cuda.memory import pinned_memory, table_on_gpu
from rnsdask.backend.cuda.variants import Defines
from rnsdask.backend.protocol import Array
from rnsdask.constants import modulus_table
from rnsdask.core.moduli import ModuliSet

BLOCKS_PER_PROCESSOR = 8
SHARED_BYTES = 48 * 1024 - 512
"""Most bytes of dynamic shared memory of a launch, which leave room for what kernels declare."""
_PROCESSOR_COUNT = 16  # cudaDevAttrMultiProcessorCount
_MAJOR = 75  # cudaDevAttrComputeCapabilityMajor
_MINOR = 76  # cudaDevAttrComputeCapabilityMinor
_CACHE = 38  # cudaDevAttrL2CacheSize
_MOST_SHARED = 97  # cudaDevAttrMaxSharedMemoryPerBlockOptin

_MOST_COMPILING = 8
"""Threads that compile at the same time, at most."""

_COMPILING_BYTES = 2**29
"""Memory of the host for each of them: NVRTC takes up to some 300 MB for the largest source."""


class Parameter:
    """A structure that a kernel takes by value, with the arrays whose addresses its fields are.

    It owns them until the kernel is launched: memory that is given back before that may be another thread's
    by the time the kernel reads it. A field that is a structure is given as a tuple, whose first item may be
    an array; several as a list. One that is not given is 0.
    """

    def __init__(self, dtype: np.dtype[Any], **fields: Any) -> None:
        self.arrays: list[Array] = []
        values = [self._item(fields.get(name, 0)) for name in dtype.names or ()]
        self.fields = np.array(tuple(values), dtype)  # at once: to set one item takes as long

    def _item(self, value: Any) -> Any:
        kind = type(value)
        if kind is int:  # most are
            return value
        if kind is tuple:
            return value if type(value[0]) is int else (self._item(value[0]), *value[1:])
        if kind is list:
            return [self._item(item) for item in value]
        if isinstance(value, cupy.ndarray):
            self.arrays.append(value)
            return value.data.ptr
        return value


loaded_modules: dict[tuple[str, Defines, int], Any] = {}
_kernels: dict[tuple[str, str, Defines, int], Any] = {}


class Load(NamedTuple):
    """A module that a process has loaded; `is_compiled` by NVRTC, or found in CuPy's cache."""

    name: str
    defines: Defines
    is_compiled: bool
    seconds: float


loads: list[Load] = []
"""All modules that this process has loaded, in the order of their ends."""

_loading: defaultdict[tuple[str, Defines], threading.Lock] = defaultdict(threading.Lock)
"""Held by the thread that loads a module: others would compile the same again."""

_limits = threading.Lock()
"""Held by the thread that raises a kernel's limit of shared memory."""


def _kernel(module: str, name: str, defines: Defines, device: int) -> Any:
    key = module, name, defines, device  # a function belongs to one device
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _kernels.setdefault(key, _module(module, defines, device).get_function(name))
    return kernel


def _module(name: str, defines: Defines, device: int) -> Any:
    """Return a module on the current device, loaded or compiled at the first call."""
    key = name, defines, device
    module = loaded_modules.get(key)
    if module is None:
        with _loading[name, defines]:
            module = loaded_modules.get(key)
            if module is None:
                started = time.perf_counter()
                module = raw_module(name, defines, device)
                module.compile()
                loaded_modules[key] = module
                is_compiled = _cubin(name, defines, device) is None
                loads.append(Load(name, defines, is_compiled, time.perf_counter() - started))
    return module


def raw_module(name: str, defines: Defines, device: int) -> Any:
    """Return a module of the file that came compiled for a device, or of its source, not loaded yet."""
    cubin = _cubin(name, defines, device)
    if cubin is not None:
        return cupy.RawModule(path=str(cubin))
    # The text holds its headers: CuPy's cache is keyed by text and options, and serves all installations.
    text = sources.whole_source(name)
    return cupy.RawModule(code=text, options=cubins.options_of(defines), backend="nvrtc")


def _cubin(name: str, defines: Defines, device: int) -> Path | None:
    """Return the file of a module that came compiled for a device, or None."""
    return cubins.installed().find(name, defines, capability(device), driver())


@functools.cache
def driver() -> int:
    """Version of CUDA that the driver knows: 12090 for 12.9."""
    return int(cupy.cuda.runtime.driverGetVersion())


@functools.cache
def capability(device: int) -> int:
    """Compute capability of a device: 90 for 9.0."""
    major, minor = (int(cupy.cuda.runtime.deviceGetAttribute(k, device)) for k in (_MAJOR, _MINOR))
    return 10 * major + minor


def load(module: str, name: str) -> None:
    """Load a kernel on the current device, as its first launch would."""
    _kernel(module, name, (), cupy.cuda.runtime.getDevice())


def modules_to_compile(device: int) -> list[tuple[str, Defines]]:
    """Return the declared modules that did not come compiled for a device."""
    return [one for one in cubins.declared_modules(capability(device)) if _cubin(*one, device) is None]


def prepare(
    modules: Iterable[tuple[str, Defines]],
    device: int | None = None,
    advance: Callable[[], object] = lambda: None,
) -> None:
    """Compile modules for a device, by default the current one, unless they are loaded or came compiled.

    Several threads compile side by side. `advance` is called in the calling thread after each module. The
    first that fails raises its error, CuPy's; those that have begun are waited for, the others left out.
    """
    if device is None:
        device = cupy.cuda.runtime.getDevice()
    left = [one for one in modules if (*one, device) not in loaded_modules and _cubin(*one, device) is None]
    if not left:
        return

    def compile_one(module: tuple[str, Defines]) -> None:
        with cupy.cuda.Device(device):  # the current one is each thread's own
            _module(*module, device)

    with ThreadPoolExecutor(min(len(left), _compiling_threads())) as pool:
        futures = [pool.submit(compile_one, module) for module in left]
        try:
            for future in as_completed(futures):
                future.result()
                advance()
        finally:
            pool.shutdown(cancel_futures=True)


def _compiling_threads() -> int:
    """Threads that compile side by side, by processors and free memory of the host."""
    room = int(psutil.virtual_memory().available) // _COMPILING_BYTES
    return max(1, min(_MOST_COMPILING, os.cpu_count() or 1, room))


@functools.cache
def processors(device: int) -> int:
    """Multiprocessors of a device."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_PROCESSOR_COUNT, device))


@functools.cache
def most_shared(device: int) -> int:
    """Bytes of shared memory that a block of a device may ask for; more than `SHARED_BYTES` on all known."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_MOST_SHARED, device))


# Shared memory that kernels declare statically, at most.
_STATIC_BYTES = 512


def shared_bytes(words: int) -> int:
    """Bytes of `words` words if a block of the current device can share them, else 0."""
    size = 4 * words
    return size if size + _STATIC_BYTES <= most_shared(cupy.cuda.runtime.getDevice()) else 0


@functools.cache
def has_clusters(device: int) -> bool:
    """Whether blocks of a device can work in clusters."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_MAJOR, device)) >= 9


@functools.cache
def is_hopper(device: int) -> bool:
    """Whether a device is of the generation that launches measured on an H100 are for."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_MAJOR, device)) == 9


@functools.cache
def cache_bytes(device: int) -> int:
    """Bytes of a device's second-level cache."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_CACHE, device))


@functools.cache
def has_matrix_units(device: int) -> bool:
    """Whether a device has the instructions for matrices of 8 bits and for copies that need no threads."""
    return int(cupy.cuda.runtime.deviceGetAttribute(_MAJOR, device)) >= 8


def launch(
    module: str,
    name: str,
    threads: int,
    arguments: tuple[Any, ...],
    *,
    block: int = BLOCK,
    shared: int = 0,
    strides: bool = True,
    defines: Defines = (),
    cluster: int = 1,
) -> int:
    """Run a kernel whose threads stride over their work; returns the number of blocks.

    Without `strides` there are all of `threads`: where registers let fewer blocks run at once than would be
    started, the last ones would have the GPU to themselves. `arguments` are arrays, scalars and
    :class:`Parameter` of the current device; `defines` are options of the compiler, made in
    :mod:`.variants`, by which a source is compiled more than once; `cluster` blocks at a time work together.
    ValueError if an array is another device's; RuntimeError if the current stream is one that CUDA gives each
    thread by default.
    """
    device = cupy.cuda.runtime.getDevice()
    values = _values_of(arguments, device)
    _check_stream()
    most = processors(device) * BLOCKS_PER_PROCESSOR * BLOCK // block
    blocks = -(-threads // block)
    if strides:
        blocks = min(most, blocks)
    blocks = max(1, blocks // cluster) * cluster
    kernel = _kernel(module, name, defines, device)
    if shared > SHARED_BYTES:
        _allow(kernel, shared)
    kernel((blocks,), (block,), values, shared_mem=shared)
    return blocks


def launch_each(
    module: str, name: str, threads: int, arguments: Iterable[tuple[Any, ...]], *, block: int = BLOCK
) -> None:
    """Run a short kernel for each of many arguments, one after the other, as :func:`launch`."""
    device = cupy.cuda.runtime.getDevice()
    _check_stream()
    most = processors(device) * BLOCKS_PER_PROCESSOR * BLOCK // block
    kernel, grid = _kernel(module, name, (), device), (max(1, min(most, -(-threads // block))),)
    for given in arguments:
        kernel(grid, (block,), _values_of(given, device))


def _values_of(arguments: tuple[Any, ...], device: int) -> tuple[Any, ...]:
    """Arguments as a kernel takes them; ValueError if an array is another device's."""
    values = []
    for argument in arguments:
        if isinstance(argument, Parameter):
            _check_device(argument.arrays, device)
            argument = argument.fields[()]
        elif isinstance(argument, cupy.ndarray):
            _check_device((argument,), device)
        values.append(argument)
    return tuple(values)


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a library's function that queues work; arrays among the arguments become their addresses."""
    _check_device((x for x in arguments if isinstance(x, cupy.ndarray)), cupy.cuda.runtime.getDevice())
    _check_stream()
    return function(*[x.data.ptr if isinstance(x, cupy.ndarray) else x for x in arguments])


def _allow(kernel: Any, shared: int) -> None:
    """Raise a kernel's limit of shared memory; never lower it, since another thread may launch the kernel."""
    with _limits:
        if kernel.max_dynamic_shared_size_bytes < shared:
            kernel.max_dynamic_shared_size_bytes = shared


def _check_device(arrays: Iterable[Array], device: int) -> None:
    for array in arrays:
        if (other := array.data.device_id) != device:
            raise ValueError(
                f"an array is on GPU {other} and the current one is GPU {device}: compute within "
                f"'with cupy.cuda.Device({other}):'"
            )


def _check_stream() -> None:
    if cupy.cuda.get_current_stream().ptr == cupy.cuda.runtime.streamPerThread:
        # Tasks hand arrays from thread to thread; such streams do not wait for one another.
        raise RuntimeError(
            "per-thread default streams are not supported, for threads share arrays: unset "
            "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM"
        )


@functools.lru_cache(256)
def constant_on(constants: Any, field: str, device: int) -> Any:
    return table_on_gpu(getattr(constants, field))


def on_device(constants: Any, field: str) -> Any:
    """The array `field` of `constants` on the current device, copied once."""
    return constant_on(constants, field, cupy.cuda.runtime.getDevice())


@functools.lru_cache(256)
def modulus_table_on(moduli: ModuliSet, device: int) -> Any:
    """Table of the moduli for arithmetic on a device, copied once."""
    return table_on_gpu(modulus_table(moduli))


def stack(x: Array) -> tuple[Array | int, ...]:
    """The structure Stack of matrices."""
    return x, *(stride // x.itemsize for stride in x.strides)


def is_aligned(array: Array) -> bool:
    """Whether an array, or each row of it, can be read in vectors of 16 bytes."""
    steps: int = array.data.ptr
    for stride in array.strides[:-1]:
        steps |= stride
    return steps % 16 == 0


def row_stride(residues: Array) -> np.int64:
    """Distance in elements from a residue to the next residue of the same number.

    ValueError if the numbers of a row are not next to one another, for the kernels would read others.
    """
    step, item = residues.strides, residues.itemsize
    if step[1] != item and residues.shape[1] > 1 and residues.size:
        raise ValueError("residues: the numbers' axis must be contiguous")
    return np.int64(step[0] // item)


def array_arguments(residues: Array) -> tuple[Any, ...]:
    """Residues, stride, number of numbers, number of moduli: how every kernel but the reductions starts."""
    return residues, row_stride(residues), np.int64(residues.shape[1]), np.int32(residues.shape[0])


# Words of a sum: those of each row, whose number shared memory bounds, and three of the keys.
_SUMS = SHARED_BYTES // 16 + 3

_EXTREMUM = EXTREMUM.itemsize // 8


class Results:
    """Memory for results and for what blocks share, used by one launch at a time.

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
        """Set the first `count` words to 0 and return their address."""
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
