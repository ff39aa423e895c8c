"""A GPU's context that is made while libraries are imported: which commands begin it, and what may fail."""

import ctypes
import threading
from typing import Any

import dask
import pytest
from commands import call

from rnsdask.cli import cuda_context


class Driver:
    """In the place of CUDA's: its functions fail from the one named on."""

    def __init__(self, failing: str) -> None:
        self.calls: list[str] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        def function(*_: Any) -> int:
            self.calls.append(name)
            return 100 if name == self._failing else 0

        return function


def begin_and_wait() -> None:
    cuda_context.begin()
    for thread in threading.enumerate():
        if thread.name == "rnsdask-cuda":
            thread.join()


@pytest.mark.parametrize(
    ("failing", "calls"),
    [
        ("", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]),
        ("cuInit", ["cuInit"]),
        ("cuDeviceGet", ["cuInit", "cuDeviceGet"]),
    ],
)
def test_the_context_of_the_first_gpu(
    monkeypatch: pytest.MonkeyPatch, failing: str, calls: list[str]
) -> None:
    driver = Driver(failing)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    begin_and_wait()
    assert driver.calls == calls


def test_a_host_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    failed: list[Any] = []
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    begin_and_wait()
    assert not failed


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        (("--gpus", 1), True),
        (("--backend", "cuda"), True),
        ((), True),
        (("--backend", "auto"), True),
        (("--backend", "cpu"), False),
        (("--gpus", 2), False),
        (("--gpus", 2, "--backend", "cuda"), False),
        (("--gpus", "all", "--backend", "cuda"), False),
        (("--gpus", 1, "--report", "report.html"), False),
        (("--scheduler", "tcp://127.0.0.1:1", "--backend", "cuda"), False),
        (("--gpus", 1, "--backend", "cpu"), False),
    ],
)
def test_commands_that_begin_it(
    monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...], begins: bool
) -> None:
    assert begun_by(monkeypatch, "max", "nowhere.zarr", *options) == begins


def begun_by(monkeypatch: pytest.MonkeyPatch, *command: object, has_cupy: bool = True) -> bool:
    """Whether a command that fails begins to make a context, in a process without a client of Dask's."""
    begun: list[bool] = []
    monkeypatch.setattr(cuda_context, "begin", lambda: begun.append(True))
    monkeypatch.setattr(cuda_context, "find_spec", lambda name: name if has_cupy else None)
    monkeypatch.setattr(cuda_context, "_may_have_client", lambda: False)
    assert call(*command).exit_code != 0
    return bool(begun)


def test_without_cupy_none_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ((), ("--backend", "auto"), ("--backend", "cuda")):
        assert not begun_by(monkeypatch, "max", "nowhere.zarr", *options, has_cupy=False)


def test_with_a_cluster_in_the_settings_none_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    with dask.config.set({"scheduler-address": "tcp://127.0.0.1:1"}):
        for options in ((), ("--backend", "cuda")):
            assert not begun_by(monkeypatch, "max", "nowhere.zarr", *options)
        assert begun_by(monkeypatch, "max", "nowhere.zarr", "--gpus", 1)


def test_scans_begin_it_where_they_are_told_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = ("cummax", "nowhere.zarr", "y.zarr")
    assert not begun_by(monkeypatch, *scan)
    assert not begun_by(monkeypatch, *scan, "--backend", "auto")
    assert not begun_by(monkeypatch, *scan, "--gpus", 1)  # they compute on the host then too
    assert begun_by(monkeypatch, *scan, "--backend", "cuda")
    assert begun_by(monkeypatch, *scan, "--gpus", 1, "--backend", "cuda")
