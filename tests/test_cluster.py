"""Connecting to where a job runs, and running the commands there."""

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from distributed import LocalCluster

import rnsdask as rd
from rnsdask import cluster
from rnsdask.cli import main
from rnsdask.cluster import connect
from rnsdask.errors import JobError


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as running:
        yield running


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(cluster, "WORKERS_SECONDS", 0.3)


def run(*args: str | int, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(arg) for arg in args], prog_name="rnsdask")
    assert result.exit_code == status, result.output
    return result


def test_without_a_cluster() -> None:
    with connect() as client:
        assert client is None


def test_address(local_cluster: LocalCluster) -> None:
    with connect(local_cluster.scheduler_address) as client:
        assert client is not None
        assert client.submit(abs, -3).result() == 3
    assert client.status == "closed"


def test_only_one_place() -> None:
    for arguments in ({"scheduler": "a", "gpus": 1}, {"scheduler": "a", "scheduler_file": "b"}):
        with pytest.raises(ValueError, match="give one of"), connect(**arguments):  # type: ignore[arg-type]
            pass


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "nowhere.invalid:8786", "a b", "x://y:1"]
)
def test_unreachable_scheduler(address: str) -> None:
    with pytest.raises(JobError, match="no Dask scheduler answers at ") as caught, connect(address):
        pass
    assert address in str(caught.value)


@pytest.mark.usefixtures("short_waits")
def test_scheduler_without_workers() -> None:
    options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=0, **options) as running,
        pytest.raises(JobError, match=r"has had no worker for 0\.3 s"),
        connect(running.scheduler_address),
    ):
        pass


def test_scheduler_file(local_cluster: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    with pytest.raises(JobError, match=r"scheduler\.json: the scheduler file cannot be read: No such file"):
        connect(scheduler_file=str(file)).__enter__()
    for text in ("", "[]", "{}", "\N{SNOWMAN}"):
        file.write_text(text)
        with pytest.raises(JobError, match=r"scheduler\.json: it is not a Dask scheduler file"):
            connect(scheduler_file=str(file)).__enter__()
    file.write_text(json.dumps({"address": local_cluster.scheduler_address}))
    with connect(scheduler_file=str(file)) as client:
        assert client is not None


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(JobError, match="a cluster needs the package distributed"), connect("127.0.0.1:1"):
        pass
    monkeypatch.setitem(sys.modules, "dask_cuda", None)
    with pytest.raises(JobError, match="GPU workers need the package dask-cuda"), connect(gpus=1):
        pass


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A host of two GPUs, as far as dask-cuda tells; the numbers of workers that it is asked for."""
    asked: list[int] = []

    def local_cuda_cluster(n_workers: int) -> LocalCluster:
        asked.append(n_workers)
        options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
        return LocalCluster(n_workers=n_workers, **options)

    package, utils = types.ModuleType("dask_cuda"), types.ModuleType("dask_cuda.utils")
    package.LocalCUDACluster = local_cuda_cluster  # type: ignore[attr-defined]
    utils.get_n_gpus = lambda: 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dask_cuda", package)
    monkeypatch.setitem(sys.modules, "dask_cuda.utils", utils)
    return asked


def test_gpus(two_gpus: list[int]) -> None:
    for gpus, expected in ((1, 1), ("all", 2)):
        with connect(gpus=gpus) as client:  # type: ignore[arg-type]
            assert client is not None
        assert two_gpus.pop() == expected
    with pytest.raises(JobError, match="3 GPUs were asked for, and this host has 2"), connect(gpus=3):
        pass
    with pytest.raises(ValueError, match="the number of GPUs must be at least 1, got 0"), connect(gpus=0):
        pass
    assert two_gpus == []


@pytest.mark.gpu
def test_gpus_of_this_host(tmp_path: Path) -> None:
    pytest.importorskip("dask_cuda")
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 10_000, "--bits", 512, "--chunk", 1280, "--seed", 3)
    on_gpu = json.loads(run("max", path, "--gpus", 1, "--json").stdout)
    on_cpu = json.loads(run("max", path, "--backend", "cpu", "--json").stdout)
    assert (on_gpu["backend"], on_cpu["backend"]) == ("cuda", "cpu")
    assert (on_gpu["value"], on_gpu["index"]) == (on_cpu["value"], on_cpu["index"])


@pytest.mark.parametrize("by_file", [False, True])
def test_commands_on_a_cluster(local_cluster: LocalCluster, tmp_path: Path, by_file: bool) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": local_cluster.scheduler_address}))
    place = ["--scheduler-file", str(file)] if by_file else ["--scheduler", local_cluster.scheduler_address]
    path, local_path = str(tmp_path / "x.zarr"), str(tmp_path / "y.zarr")
    options = ["--count", 1000, "--bits", 256, "--chunk", 128, "--seed", 5]
    run("random", path, *options, *place)
    run("random", local_path, *options)
    for chunk in Path(path, "c/0").iterdir():
        assert chunk.read_bytes() == Path(local_path, "c/0", chunk.name).read_bytes()
    values = [int(value) for value in rd.open_zarr(path).to_ints()]
    for op, expected in (("max", max(values)), ("min", min(values)), ("sum", sum(values))):
        result = run(op, path, *place, "--json", "--progress")
        assert json.loads(result.stdout)["value"] == str(expected)
        assert "Completed" in result.stderr
    assert "1000 integers, whole and valid" in run("verify", path, *place).stdout


def test_errors_of_tasks_on_a_cluster(local_cluster: LocalCluster, tmp_path: Path) -> None:
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 1000, "--bits", 256, "--chunk", 128)
    Path(path, "c/0/5").unlink()
    place = ["--scheduler", local_cluster.scheduler_address]
    for options in ([], ["--progress"]):
        assert "chunk c/0/5 is missing" in run("max", path, *place, *options, status=1).stderr
    assert "chunk c/0/5 is missing" in run("verify", path, *place, status=1).stdout


@pytest.mark.usefixtures("short_waits")
def test_unreachable_scheduler_is_one_line(tmp_path: Path) -> None:
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 10, "--bits", 64)
    stderr = run("max", path, "--scheduler", "tcp://127.0.0.1:1", status=1).stderr
    assert stderr.startswith("rnsdask: error: no Dask scheduler answers at tcp://127.0.0.1:1: ")
    assert stderr.count("\n") == 1
