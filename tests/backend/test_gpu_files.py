"""Files into the memory of a GPU and back: copies come as late, and a slot is used as early, as can be."""

import ctypes
import errno
import functools
import itertools
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rnsdask.backend import cpu
from rnsdask.backend.cpu.files import checked_size, read_first

GONE = 0xAB
CONTEXT, FOLLOWER = 55, 77

_events = itertools.count(10000)
_memory_of: dict[int, range] = {}
"""By the event after which it may be used, of each file that is moved."""

_POINTER, _SIZE, _ADDRESS = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
_PLACE = ctypes.POINTER(ctypes.c_uint64)


ERRORS = {
    **dict.fromkeys(("to_gpu", "from_gpu"), 700),
    **{"record": 701, "await_event": 702, "set_context": 703, "hold": 704},
    **{"make_pinned": 705, "make_stream": 706, "make_event": 707},
}


class Driver:
    """In the place of CUDA's: a copy is made when what comes after it is waited for, and no sooner.

    Attributes
    ----------
    failing : dict
        Of functions, which of their calls, from 0 on, give an error; or "all" of them.
    on_make_stream : callable
        Called when a thread begins.
    """

    def __init__(self) -> None:
        self.failing: dict[str, Any] = {}
        self.on_make_stream: Callable[[], object] = lambda: None
        self._lock = Lock()
        self._calls: dict[str, int] = {}
        self._copies: dict[int, list[tuple[int, int, int]]] = {}  # by the stream, those that are not made yet
        self._made: dict[int, int] = {}
        self._recorded: dict[int, tuple[int, int]] = {}
        self._followed: dict[int, int] = {}  # by the stream, the last event
        self._memory: list[Any] = []
        self.handles: set[int] = set()
        """Streams and events that are there."""
        kinds = {
            "to_gpu": (_ADDRESS, _ADDRESS, _SIZE, _POINTER),
            "from_gpu": (_ADDRESS, _ADDRESS, _SIZE, _POINTER),
            "set_context": (_POINTER,),
            "make_pinned": (_PLACE, _SIZE),
            "make_stream": (_PLACE, ctypes.c_uint),
            "await_stream": (_POINTER,),
            "make_event": (_PLACE, ctypes.c_uint),
            "record": (_POINTER, _POINTER),
            "await_event": (_POINTER,),
            "hold": (_POINTER, _POINTER, ctypes.c_uint),
            "end_stream": (_POINTER,),
            "end_event": (_POINTER,),
        }
        self._functions = [
            ctypes.CFUNCTYPE(ctypes.c_int, *kind)(self._guarded(name)) for name, kind in kinds.items()
        ]

    @property
    def functions(self) -> list[int]:
        return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions]

    @property
    def is_idle(self) -> bool:
        return not any(self._copies.values())

    def _guarded(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            with self._lock:
                number = self._calls[name] = self._calls.get(name, -1) + 1
                if self.failing.get(name) in (number, "all"):
                    return ERRORS[name]
                getattr(self, f"_{name}")(*arguments)
                return 0

        return call

    def _set_context(self, context: int) -> None:
        assert context == CONTEXT

    def _make_pinned(self, place: Any, size: int) -> None:
        memory = np.full(size, GONE, np.uint8)
        self._memory.append(memory)
        place[0] = memory.ctypes.data

    def _make_stream(self, place: Any, flags: int) -> None:
        assert flags == 1  # it waits for no other stream
        self.on_make_stream()
        place[0] = 1000 + len(self._copies)
        self.handles.add(place[0])
        self._copies[place[0]] = []

    def _make_event(self, place: Any, flags: int) -> None:
        assert flags == 2  # without its time
        place[0] = 2000 + len(self._recorded)
        self.handles.add(place[0])
        self._recorded[place[0]] = (0, 0)

    def _end_stream(self, stream: int) -> None:
        self.handles.remove(stream)

    def _end_event(self, event: int) -> None:
        self.handles.remove(event)

    def _hold(self, stream: int, event: int, flags: int) -> None:
        assert flags == 0
        if stream == FOLLOWER:
            self._await_event(event)
        else:
            assert event in _memory_of
            self._followed[stream] = event

    def _to_gpu(self, target: int, source: int, count: int, stream: int) -> None:
        self._copy(target, target, source, count, stream)

    def _from_gpu(self, target: int, source: int, count: int, stream: int) -> None:
        self._copy(source, target, source, count, stream)

    def _copy(self, used: int, target: int, source: int, count: int, stream: int) -> None:
        assert used in _memory_of[self._followed[stream]]
        self._copies[stream].append((target, source, count))

    def _record(self, event: int, stream: int) -> None:
        self._recorded[event] = stream, self._made.get(stream, 0) + len(self._copies[stream])

    def _await_event(self, event: int) -> None:
        stream, count = self._recorded[event]
        if stream:
            self._make(stream, count - self._made.get(stream, 0))

    def _await_stream(self, stream: int) -> None:
        self._make(stream, len(self._copies[stream]))

    def _make(self, stream: int, count: int) -> None:
        for target, source, size in self._copies[stream][: max(0, count)]:
            ctypes.memmove(target, source, size)
            ctypes.memset(source, GONE, size)  # who needs it again comes too late
            self._made[stream] = self._made.get(stream, 0) + 1
        del self._copies[stream][: max(0, count)]


_made: list[Driver] = []
"""All of them, for a thread may begin when what it was begun for is done."""


@pytest.fixture
def driver() -> Driver:
    _made.append(Driver())
    return _made[-1]


def files_of(driver: Driver, *sizes: int) -> Any:
    return cpu.GpuFiles(driver.functions, CONTEXT, sizes)


def ready(array: NDArray[np.uint8]) -> int:
    event = next(_events)
    _memory_of[event] = range(array.ctypes.data, array.ctypes.data + array.size)
    return event


def read(files: Any, path: Path, array: NDArray[np.uint8]) -> int:
    found: int = files.read(os.fsencode(path), array.ctypes.data, array.size, ready(array), FOLLOWER)
    return found


def write(files: Any, file: Any, array: NDArray[np.uint8]) -> int:
    done: int = files.write(file.fileno(), array.ctypes.data, array.size, ready(array))
    return done


SIZES = [0, 1, 7, 8, 9, 31, 32, 33, 1000]
SLOTS = [(1, 8, 1), (2, 8, 3), (4, 8, 1), (3, 5, 2), (4, 4096, 12)]
"""How many, of how many bytes, of how many threads."""


@pytest.mark.parametrize("slots", SLOTS)
def test_into_a_gpu(tmp_path: Path, rng: np.random.Generator, driver: Driver, slots: tuple[int, ...]) -> None:
    files = files_of(driver, *slots)
    for size in SIZES:
        content = rng.integers(0, 256, size, dtype=np.uint8)
        (tmp_path / "x").write_bytes(content.tobytes())
        for wanted in (size, max(0, size - 1), size + 1):
            array = np.full(wanted, 1, np.uint8)
            assert read(files, tmp_path / "x", array) == size
            assert driver.is_idle
            assert np.array_equal(array, content) if wanted == size else np.all(array == 1)


@pytest.mark.parametrize("left", [0, 1, 8, 40, 99])
def test_a_file_that_shrinks(tmp_path: Path, driver: Driver, left: int) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    driver.on_make_stream = lambda: os.truncate(tmp_path / "x", left)
    array = np.full(100, 1, np.uint8)
    assert read(files_of(driver, 2, 8, 1), tmp_path / "x", array) == left
    assert not np.any(array[:left])
    assert np.all(array[left:] == 1)


def test_many_at_a_time(tmp_path: Path, rng: np.random.Generator, driver: Driver) -> None:
    files = files_of(driver, 2, 16, 3)
    sizes = [*range(1, 80, 7), 1000]
    contents = [rng.integers(0, 256, size, dtype=np.uint8) for size in sizes]
    for i, content in enumerate(contents):
        (tmp_path / f"{i}").write_bytes(content.tobytes())

    def read_one(i: int) -> NDArray[np.uint8]:
        array = np.zeros(sizes[i], np.uint8)
        assert read(files, tmp_path / f"{i}", array) == sizes[i]
        return array

    with ThreadPoolExecutor(6) as pool:
        for content, found in zip(contents, pool.map(read_one, range(len(sizes))), strict=True):
            np.testing.assert_array_equal(found, content)


@pytest.mark.parametrize("slots", SLOTS)
def test_back_to_a_file(
    tmp_path: Path, rng: np.random.Generator, driver: Driver, slots: tuple[int, ...]
) -> None:
    files = files_of(driver, *slots)
    for size in SIZES:
        content = rng.integers(0, 256, size, dtype=np.uint8)
        with (tmp_path / "x").open("wb", buffering=0) as file:
            file.write(b"before")
            assert write(files, file, content.copy()) == 0
            file.write(b"after")
        assert driver.is_idle
        assert (tmp_path / "x").read_bytes() == b"before" + content.tobytes() + b"after"


def test_files_that_fail(tmp_path: Path, driver: Driver) -> None:
    files, array = files_of(driver, 2, 8, 2), np.zeros(100, np.uint8)
    (tmp_path / "x").write_bytes(bytes(100))
    os.mkfifo(tmp_path / "pipe")
    assert read(files, tmp_path / "missing", array) == -errno.ENOENT
    assert read(files, tmp_path, array) == -errno.EISDIR
    assert read(files, tmp_path / "pipe", array) == read(files, Path("/dev/zero"), array) == -errno.EINVAL
    assert read(files, tmp_path / "x\0y", array) == -errno.ENOENT
    with pytest.raises(FileNotFoundError):
        read_first(tmp_path / "x\0y", 9)
    with (tmp_path / "x").open("rb", buffering=0) as file:
        assert write(files, file, array) == -errno.EBADF
    with Path("/dev/full").open("wb", buffering=0) as file:
        assert write(files, file, array) == -errno.ENOSPC
    assert driver.is_idle
    with Path("/dev/null").open("wb", buffering=0) as file:
        assert write(files, file, array) == 0  # as if nothing had happened


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, n) for name in ("copy", "record") for n in (0, 3, 12)),  # of 13
        *(("await_event", n) for n in (0, 3, 10)),
        *((name, 0) for name in ("set_context", "hold", "make_pinned", "make_stream", "make_event")),
        ("make_event", 1),
    ],
)
@pytest.mark.parametrize("way", ["to_gpu", "from_gpu"])
@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_cuda(
    tmp_path: Path, driver: Driver, name: str, number: int, way: str, threads: int
) -> None:
    """No copy is on its way after one, and the next file is moved as if nothing had happened."""
    content = np.arange(100, dtype=np.uint8)
    (tmp_path / "x").write_bytes(content.tobytes())
    files, array = files_of(driver, 2, 8, threads), np.zeros(100, np.uint8)

    def move() -> int:
        if way == "to_gpu":
            return read(files, tmp_path / "x", array)
        with Path("/dev/null").open("wb", buffering=0) as file:
            return write(files, file, array)

    name = way if name == "copy" else name
    driver.failing = {name: "all" if name.startswith(("make", "set")) else number}
    with pytest.raises(RuntimeError, match=f"CUDA's error {ERRORS[name]} of cu"):
        move()
    assert driver.is_idle
    end = time.monotonic() + 300
    while name.startswith("make") and driver.handles:  # other threads may be at theirs
        assert time.monotonic() < end
    driver.failing.clear()
    assert move() == (100 if way == "to_gpu" else 0)
    assert way == "from_gpu" or np.array_equal(array, content)


def test_some_threads_are_enough(tmp_path: Path, driver: Driver) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    driver.failing = {"make_pinned": 1}
    assert read(files_of(driver, 2, 8, 3), tmp_path / "x", np.zeros(100, np.uint8)) == 100


def test_threads_are_begun_beforehand(tmp_path: Path, driver: Driver) -> None:
    begun = threading.Semaphore(0)
    driver.on_make_stream = begun.release
    files = files_of(driver, 2, 8, 3)
    files.prepare()
    for _ in range(3):
        assert begun.acquire(timeout=300)
    (tmp_path / "x").write_bytes(bytes(100))
    assert read(files, tmp_path / "x", np.zeros(100, np.uint8)) == 100
    assert not begun.acquire(blocking=False)  # by those threads


def test_threads_that_cannot_be_begun_beforehand_are_begun_later(tmp_path: Path, driver: Driver) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    driver.failing = {"make_pinned": "all"}
    files = files_of(driver, 2, 8, 3)
    files.prepare()
    with pytest.raises(RuntimeError, match="CUDA's error 705 of cuMemAllocHost"):
        read(files, tmp_path / "x", np.zeros(100, np.uint8))
    driver.failing.clear()
    assert read(files, tmp_path / "x", np.zeros(100, np.uint8)) == 100


def test_invalid_says_what_it_is_of() -> None:
    with pytest.raises(OSError, match="it is no regular file"):
        checked_size(-errno.EINVAL, reading=True)
    with pytest.raises(OSError, match=re.escape(os.strerror(errno.EINVAL))):
        checked_size(-errno.EINVAL, reading=False)
    assert checked_size(7, reading=False) == 7


def test_sizes_are_checked(driver: Driver) -> None:
    for sizes in ((0, 8, 1), (1, 0, 1), (1, 8, 0)):
        with pytest.raises(ValueError, match="there must be slots, bytes in each, and threads"):
            files_of(driver, *sizes)


@pytest.mark.gpu
@pytest.mark.parametrize("slot", [2**14, 2**19])
def test_on_a_gpu(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, slot: int
) -> None:
    import cupy

    from rnsdask.backend.cuda import files
    from rnsdask.backend.cuda.files import file_to_gpu, gpu_to_file

    monkeypatch.setattr(files, "SLOT_BYTES", slot)
    monkeypatch.setattr(files, "files_on", functools.cache(files.files_on.__wrapped__))
    content = rng.integers(0, 2**32, 10**6 + 1, dtype=np.uint32)
    array = cupy.asarray(content)
    with (tmp_path / "x").open("wb", buffering=0) as file:
        gpu_to_file(file.fileno(), array)
    assert (tmp_path / "x").read_bytes() == content.tobytes()
    again = cupy.zeros_like(array)
    assert file_to_gpu(tmp_path / "x", again) == content.nbytes
    np.testing.assert_array_equal(again.get(), content)
    os.truncate(tmp_path / "x", 1000)
    assert file_to_gpu(tmp_path / "x", again) == 1000
    with (
        (tmp_path / "x").open("rb", buffering=0) as file,
        pytest.raises(OSError, match="Bad file descriptor"),
    ):
        gpu_to_file(file.fileno(), again)
    with pytest.raises(FileNotFoundError):
        file_to_gpu(tmp_path / "y", again)
