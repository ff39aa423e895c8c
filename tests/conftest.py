"""Fixtures and hooks of all tests: Hypothesis profiles, random seeds, processors."""

import gc
import os
import secrets
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import dask
import numpy as np
import pytest
from forks import Commands
from hypothesis import settings

from rnsdask.core.errors import QueryPlanningError

# Examples stay random in continuous integration too; a failure prints the blob that repeats it.
settings.register_profile("rnsdask", deadline=None, print_blob=True, derandomize=False)
settings.register_profile("thorough", parent=settings.get_profile("rnsdask"), max_examples=2000)
settings.load_profile(os.environ.get("RNSDASK_HYPOTHESIS_PROFILE", "rnsdask"))

pytest.register_assert_rewrite("laws")

SESSION_SEED = int(os.environ.get("RNSDASK_TEST_SEED") or secrets.randbits(32))


def cuda_is_usable() -> bool:
    """Whether CuPy is installed and sees a device."""
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # a broken driver raises errors of CuPy's own
        return False


def asks_for_gpus(config: pytest.Config) -> bool:
    """Whether `-m` selects tests of GPUs."""
    return "gpu" in config.option.markexpr and "not gpu" not in config.option.markexpr


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_configure(config: pytest.Config) -> None:
    """Hide GPUs from this process and those that it starts, unless `-m gpu` asks for their tests.

    All other tests say what happens without a GPU: which processor is chosen, what fits into memory.
    """
    if not asks_for_gpus(config):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_report_header(config: pytest.Config) -> str | None:
    if not asks_for_gpus(config):
        return "GPUs are hidden: -m gpu runs the tests marked gpu"
    return None if cuda_is_usable() else "no CUDA device, or no CuPy: tests marked gpu are left out"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are slow, and those of a GPU where there is none: to skip them takes seconds."""
    left_out = [] if config.option.slow else ["slow"]
    if any(item.get_closest_marker("gpu") for item in items) and not cuda_is_usable():
        left_out.append("gpu")
    marked = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if marked:
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, left_out))]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Spare the garbage collector the tests themselves, which are there to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the seed that repeats a failure."""
    report = yield
    if report.failed:
        report.sections.append(("Random seed", f"repeat with RNSDASK_TEST_SEED={SESSION_SEED}"))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Leave out tests of what Dask's arrays lack with ``array.query-planning`` on, which is one error."""
    try:
        return (yield)
    except QueryPlanningError as error:
        pytest.skip(str(error))


@pytest.fixture
def in_this_thread() -> Iterator[None]:
    """Compute lazy arrays in the thread of the test: as quick as can be where they are small."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all arrays in chunks take the steps that serve great ones, also where one task would join them."""
    monkeypatch.setattr("rnsdask.lazy.ntt.JOINED_BYTES", 0)
    monkeypatch.setattr("rnsdask.lazy.one_task.free_device_bytes", lambda: None)


@pytest.fixture
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    """Commands as processes of their own, without the second or two that Python takes to start each."""
    forks = Commands()
    yield forks
    forks.end()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A random generator of the test's own."""
    return np.random.default_rng([SESSION_SEED, zlib.crc32(request.node.nodeid.encode())])


class Processor(NamedTuple):
    """A processor and the array module whose arrays live on it."""

    name: str
    xp: ModuleType

    def to_numpy(self, array: Any) -> np.ndarray:
        """Bring an array of this processor to the host."""
        return array.get() if self.name == "cuda" else np.asarray(array)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of each processor with NumPy on the CPU and, if `-m gpu` asks for it, with CuPy on a GPU."""
    if "on_each_processor" in metafunc.fixturenames:
        on_gpu = [pytest.param("cuda", marks=pytest.mark.gpu)] if asks_for_gpus(metafunc.config) else []
        metafunc.parametrize("on_each_processor", ["cpu", *on_gpu], indirect=True, scope="session")


@pytest.fixture(scope="session")
def on_each_processor(request: pytest.FixtureRequest) -> Processor:
    """Run the test with NumPy on the CPU and, marked ``gpu``, with CuPy on a GPU."""
    if request.param == "cpu":
        return Processor("cpu", np)
    import cupy

    return Processor("cuda", cupy)


@pytest.fixture(scope="session")
def xp(on_each_processor: Processor) -> ModuleType:
    """The array module of each processor: NumPy, and CuPy where there is a GPU."""
    return on_each_processor.xp
