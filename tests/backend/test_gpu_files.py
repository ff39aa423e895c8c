"""Files into the memory of a GPU and back: copies come as late, and a slot is used as early, as can be."""

import ctypes
import errno
import os
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rnsdask.backend import cpu

GONE = 0xAB
CONTEXT, STREAM, FOLLOWED = HANDLES = 55, 77, 99

_COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
_RECORD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_AWAIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_HOLD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
_SET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_FINISH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Driver:
    """In the place of CUDA's: a copy is made when an event after it is waited for, and no sooner.

    Attributes
    ----------
    failing : tuple (name, number)
        Which call of which function, from 0 on, gives an error.
    """

    def __init__(self) -> None:
        self.failing = ("", -1)
        self._calls: dict[str, int] = {}
        self._queued: list[tuple[int, int, int]] = []
        self._recorded: dict[int, int] = {}
        self._made = 0
        self._context, self._follows = 0, False
        kinds = (
            _COPY(self._copy),
            _RECORD(self._record),
            _AWAIT(self._await),
            _HOLD(self._hold),
            _SET(self._set),
            _FINISH(self._finish),
        )
        self._functions = kinds

    @property
    def functions(self) -> list[int]:
        return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions]

    @property
    def is_idle(self) -> bool:
        return self._made == len(self._queued)

    def _failed(self, name: str) -> bool:
        number = self._calls[name] = self._calls.get(name, -1) + 1
        return (name, number) == self.failing

    def _set(self, context: int) -> int:
        if self._failed("set"):
            return 703
        self._context = context
        return 0

    def _hold(self, stream: int, event: int, flags: int) -> int:
        assert (stream, self._recorded[event], flags) == (STREAM, -1, 0)
        if self._failed("hold"):
            return 704
        self._follows = True
        return 0

    def _copy(self, target: int, source: int, count: int, stream: int) -> int:
        assert stream == STREAM
        assert self._follows
        if self._failed("copy"):
            return 700
        self._queued.append((target, source, count))
        return 0

    def _record(self, event: int, stream: int) -> int:
        assert self._context == CONTEXT
        if self._failed("record"):
            return 701
        if stream == FOLLOWED:
            self._recorded[event] = -1
            return 0
        assert stream == STREAM
        self._recorded[event] = len(self._queued)
        return 0

    def _await(self, event: int) -> int:
        if self._failed("await"):
            return 702
        self._make(self._recorded[event])
        return 0

    def _finish(self, stream: int) -> int:
        assert stream == STREAM
        self._make(len(self._queued))
        return 0

    def _make(self, count: int) -> None:
        while self._made < count:
            target, source, size = self._queued[self._made]
            ctypes.memmove(target, source, size)
            ctypes.memset(source, GONE, size)  # who needs it again comes too late
            self._made += 1


@pytest.fixture
def driver() -> Driver:
    return Driver()


def move(
    function: Callable[..., int], driver: Driver, file: Any, array: NDArray[np.uint8], slots: tuple[int, int]
) -> int:
    memory = np.full(slots, GONE, np.uint8)
    events = 1000 + np.arange(slots[0], dtype=np.uint64)
    return function(file.fileno(), array.ctypes.data, array.size, memory, events, HANDLES, driver.functions)


SIZES = [0, 1, 7, 8, 9, 31, 32, 33, 1000]
SLOTS = [(1, 8), (2, 8), (4, 8), (3, 5), (4, 4096)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("slots", SLOTS)
def test_into_a_gpu(
    tmp_path: Path, rng: np.random.Generator, driver: Driver, size: int, slots: tuple[int, int]
) -> None:
    content = rng.integers(0, 256, size + 3, dtype=np.uint8)
    (tmp_path / "x").write_bytes(content.tobytes())
    for wanted in (size, size + 3, size + 20):  # part of the file, all of it, and more than there is
        array = np.full(wanted, 1, np.uint8)
        with (tmp_path / "x").open("rb", buffering=0) as file:
            assert move(cpu.file_to_gpu, driver, file, array, slots) == min(wanted, size + 3)
        assert driver.is_idle
        np.testing.assert_array_equal(array[: size + 3], content[:wanted])
        assert np.all(array[size + 3 :] == 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("slots", SLOTS)
def test_back_to_a_file(
    tmp_path: Path, rng: np.random.Generator, driver: Driver, size: int, slots: tuple[int, int]
) -> None:
    content = rng.integers(0, 256, size, dtype=np.uint8)
    with (tmp_path / "x").open("wb", buffering=0) as file:
        file.write(b"before")
        assert move(cpu.gpu_to_file, driver, file, content.copy(), slots) == 0
        file.write(b"after")
    assert driver.is_idle
    assert (tmp_path / "x").read_bytes() == b"before" + content.tobytes() + b"after"


def test_files_that_fail(tmp_path: Path, driver: Driver) -> None:
    array = np.zeros(100, np.uint8)
    with (tmp_path / "x").open("wb", buffering=0) as file:
        assert move(cpu.file_to_gpu, driver, file, array, (2, 8)) == -errno.EBADF
    with (tmp_path / "x").open("rb", buffering=0) as file:
        assert move(cpu.gpu_to_file, driver, file, array, (2, 8)) == -errno.EBADF
    assert driver.is_idle
    with Path("/dev/full").open("wb", buffering=0) as file:
        assert move(cpu.gpu_to_file, driver, file, array, (2, 8)) == -errno.ENOSPC
    assert driver.is_idle


@pytest.mark.parametrize(
    ("name", "error", "number"),
    [
        *((name, error, n) for name, error in (("copy", 700), ("await", 702)) for n in (0, 3, 12)),  # of 13
        *(("record", 701, n) for n in (0, 1, 4, 13)),
        *(("set", 703, 0), ("hold", 704, 0)),
    ],
)
@pytest.mark.parametrize("function", ["file_to_gpu", "gpu_to_file"])
def test_errors_of_cuda(
    tmp_path: Path, driver: Driver, name: str, error: int, number: int, function: str
) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    driver.failing, array = (name, number), np.zeros(100, np.uint8)
    with (
        (tmp_path / "x").open("r+b", buffering=0) as file,
        pytest.raises(RuntimeError, match=f"CUDA's error {error} of cu"),
    ):
        move(getattr(cpu, function), driver, file, array, (2, 8))
    assert driver.is_idle


def test_slots_without_events(tmp_path: Path, driver: Driver) -> None:
    (tmp_path / "x").write_bytes(bytes(100))
    array, events = np.zeros(100, np.uint8), np.zeros(1, np.uint64)
    where = array.ctypes.data, array.size, np.zeros((2, 8), np.uint8)
    with (tmp_path / "x").open("rb") as file, pytest.raises(ValueError, match="an event for each slot"):
        cpu.file_to_gpu(file.fileno(), *where, events, HANDLES, driver.functions)


@pytest.mark.gpu
@pytest.mark.parametrize("slot", [2**14, 2**19])
def test_on_a_gpu(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, slot: int
) -> None:
    import cupy

    from rnsdask.backend.cuda import files
    from rnsdask.backend.cuda.files import file_to_gpu, gpu_to_file

    monkeypatch.setattr(files, "_SLOT_BYTES", slot)
    monkeypatch.setattr(files, "_idle", defaultdict(deque))
    content = rng.integers(0, 2**32, 10**6 + 1, dtype=np.uint32)
    array = cupy.asarray(content)
    with (tmp_path / "x").open("wb", buffering=0) as file:
        gpu_to_file(file.fileno(), array)
    assert (tmp_path / "x").read_bytes() == content.tobytes()
    again = cupy.zeros_like(array)
    with (tmp_path / "x").open("rb", buffering=0) as file:
        assert file_to_gpu(file.fileno(), again) == content.nbytes
    os.truncate(tmp_path / "x", 1000)
    np.testing.assert_array_equal(again.get(), content)
    with (tmp_path / "x").open("rb", buffering=0) as file:
        assert file_to_gpu(file.fileno(), again) == 1000
        with pytest.raises(OSError, match="Bad file descriptor"):
            gpu_to_file(file.fileno(), again)
