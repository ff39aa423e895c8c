"""Connecting to where a job runs, and running the commands there."""

import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import distributed
import numpy as np
import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster
from forking import forked_workers

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main
from rnsdask.cluster import connecting, workers
from rnsdask.cluster.connecting import connect, dashboard_of
from rnsdask.cluster.limits import process_limit
from rnsdask.core.errors import JobError
from rnsdask.jobs import exact_results, memory_plan
from rnsdask.jobs.reduction import reduce
from rnsdask.jobs.sources import OF_NUMBERS, Source
from rnsdask.lazy.blocks import Blocks


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as running:
        yield running


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(connecting, "WORKERS_SECONDS", 0.3)


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
    file.unlink()
    os.mkfifo(file)  # which nobody writes
    with pytest.raises(JobError, match=r"the scheduler file cannot be read: it is no regular file"):
        connect(scheduler_file=str(file)).__enter__()
    file.unlink()
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

    def local_cuda_cluster(n_workers: int, protocol: str, **options: Any) -> LocalCluster:
        asked.append(n_workers)
        return LocalCluster(n_workers=n_workers, processes=False, protocol="tcp", **options)

    package, utils = types.ModuleType("dask_cuda"), types.ModuleType("dask_cuda.utils")
    package.LocalCUDACluster = local_cuda_cluster  # type: ignore[attr-defined]
    utils.get_n_gpus = lambda: 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dask_cuda", package)
    monkeypatch.setitem(sys.modules, "dask_cuda.utils", utils)
    return asked


def test_a_cluster_that_does_not_close_costs_no_answer(
    two_gpus: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    close = LocalCluster.close

    def closing(self: LocalCluster, *args: Any, **options: Any) -> Any:
        close(self, *args, **options)
        raise TimeoutError("workers did not end")

    monkeypatch.setattr(LocalCluster, "close", closing)
    with connect(gpus=1) as client:
        assert client is not None
    assert two_gpus == [1]


def test_gpus(two_gpus: list[int]) -> None:
    for gpus, expected in ((1, 1), ("all", 2)):
        with connect(gpus=gpus) as client:  # type: ignore[arg-type]
            assert client is not None
            assert list(client.nthreads().values()) == [connecting.THREADS_PER_GPU] * expected
        assert two_gpus.pop() == expected
    with pytest.raises(JobError, match="3 GPUs were asked for, and this host has 2"), connect(gpus=3):
        pass
    with pytest.raises(ValueError, match="the number of GPUs must be at least 1, got 0"), connect(gpus=0):
        pass
    assert two_gpus == []


def test_one_gpu_needs_no_cluster(
    tmp_path: Path, two_gpus: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 10_000, "--bits", 512, "--chunk", 1280, "--seed", 3)
    for gpus in (1, "all"):
        failed = run("max", path, "--gpus", gpus, status=1).stderr
        assert "1 GPU was asked for, and this host has 0, or no CuPy (extra cu12 or cu13)" in failed
    monkeypatch.setattr(connecting, "has_gpu", lambda: True)
    found = [json.loads(run("max", path, "--json", *how).stdout)["value"] for how in ((), ("--gpus", 1))]
    assert found[0] == found[1]
    run("max", path, "--gpus", 2)
    assert two_gpus == [2]


def test_all_gpus_are_as_many_as_gain_time(
    tmp_path: Path, two_gpus: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two for what computes for longer than it reads, if that is much; one, without a cluster, for others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connecting, "has_gpu", lambda: True)
    monkeypatch.setattr(connecting, "gpu_count", lambda: 2)
    monkeypatch.setattr(memory_plan, "BYTES_OF_A_GPU", 10_000)
    run("random", "x", "--count", 1000, "--bits", 512, "--chunk", 256, "--seed", 3)
    run("random", "p", "--count", 1000, "--bits", 512, "--chunk", 256, "--seed", 3, "--positional")
    run("random", "m", "--shape", "100,100", "--bits", 64, "--chunk", "50,50", "--seed", 4)
    run("random", "few", "--count", 100, "--bits", 512, "--seed", 3, "--positional")
    one = "on 1 of 2 GPUs: more would gain {} no time on this much data; --gpus 2 takes all"
    two = "on 2 of 2 GPUs, each with a worker"
    told = {
        "max x": one.format("max"),
        "eval x**2 x=x --sum --overflow wrap": one.format("eval"),
        "eval mod_power(p,p,p+1) p=p --max": two,
        "eval mod_power(p,p,p+1) p=few --max": one.format("eval"),
        "rank m": one.format("rank"),
        "charpoly m": two,
        "powmod p 3 1000003 -o o --overwrite": one.format("powmod"),
        f"powmod p {2**2048} 1000003 -o o --overwrite": two,
    }
    for command, message in told.items():
        arguments = command.split()
        expected, found = (run(*arguments, *how, "--json") for how in ((), ("--gpus", "all")))
        assert found.stderr == f"rnsdask: {message}\n"
        ignored = {"seconds": 0, "retries": 0}
        assert json.loads(found.stdout) | ignored == json.loads(expected.stdout) | ignored
        assert two_gpus == ([2] if message == two else [])
        two_gpus.clear()


def test_workers_of_gpus_have_as_many_threads_as_fit(
    tmp_path: Path, two_gpus: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a job that one GPU does with fewer threads would be refused on two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory_plan, "CONTEXT_BYTES", 0)
    run("random", "m", "--shape", "4,300,300", "--bits", 512, "--chunk", "1,100,300", "--seed", 4)
    source = Source.at("m", OF_NUMBERS)
    work = exact_results.prepare("rank", [source], rd.linalg.rank, "cpu").work
    place = memory_plan.Place("", 8, 10**12, 10**12, local=False)
    expected = run("rank", "m").stdout
    for threads in (3, 1):
        _, device = place.need(work, threads)
        monkeypatch.setattr(memory_plan, "free_device_bytes", lambda device=device: device)
        found = run("rank", "m", "--gpus", 2)
        told = f"rnsdask: {threads} of 8 threads of each GPU run at a time, to fit into memory\n"
        assert (found.stdout, found.stderr) == (expected, told)
    monkeypatch.setattr(memory_plan, "free_device_bytes", lambda: device - 1)
    assert "8 threads may need" in run("rank", "m", "--gpus", 2, status=1).stderr
    assert two_gpus == [2, 2, 2]


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", [1, "all"])
def test_gpus_of_this_host(tmp_path: Path, gpus: int | str) -> None:
    pytest.importorskip("dask_cuda")
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 10_000, "--bits", 512, "--chunk", 1280, "--seed", 3)
    on_gpu = json.loads(run("max", path, "--gpus", gpus, "--json").stdout)
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
        assert "100%" in result.stderr
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


# ---- what workers run -------------------------------------------------------------------------------------


def pretend_version() -> None:
    """Make this process one of another version, of which no import tells."""
    import rnsdask.store.metadata

    rnsdask.__version__ = "9.9"
    rnsdask.store.metadata.__version__ = "9.9"


def lose_package() -> None:
    """Make this process one without the package."""

    class NoPackage:
        @staticmethod
        def find_spec(name, *_):  # type: ignore[no-untyped-def]  # no annotations: nothing to pickle
            if name.partition(".")[0] == "rnsdask":
                raise ModuleNotFoundError(f"No module named {name!r}", name="rnsdask")

    for name in [name for name in sys.modules if name.partition(".")[0] == "rnsdask"]:
        del sys.modules[name]
    sys.meta_path.insert(0, NoPackage())  # type: ignore[arg-type]


@pytest.fixture
def processes() -> Iterator[Client]:
    """A cluster of two processes, and a client that is not Dask's default."""
    with (
        forked_workers(),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as running,
        Client(running, set_as_default=False) as client,
    ):
        yield client


def spoil(client: Client, worker: int, function: Any) -> str:
    """Run a function in one worker alone, and return its address; cloudpickle sends this file's by value."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        address = sorted(client.scheduler_info(n_workers=-1)["workers"])[worker]
        client.run(function, workers=[address])
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    return str(address)


def test_workers_of_other_versions(processes: Client) -> None:
    scheduler = processes.scheduler.address
    with connect(scheduler) as client:
        assert client is not None
    other = spoil(processes, 0, pretend_version)
    with pytest.raises(JobError, match=r"the job runs rnsdask .*, but ") as caught:
        connect(scheduler).__enter__()
    assert f"{other}: rnsdask 9.9" in str(caught.value)
    without = spoil(processes, 1, lose_package)
    with pytest.raises(JobError) as caught:
        connect(scheduler).__enter__()
    assert f"{other}: rnsdask 9.9" in str(caught.value)
    assert f"{without}: rnsdask cannot be imported" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_computing_with_an_active_client_checks_its_workers(
    processes: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = rd.from_ints(range(1000), rd.ModuliSet([2**32]), chunks=128)
    expected = list(range(1000))
    checks: list[Client] = []
    check = workers.check_workers
    monkeypatch.setattr(workers, "check_workers", lambda client: (checks.append(client), check(client)))
    starting: list[Callable[[], object]] = [
        x.to_ints,
        lambda: np.asarray(x),
        x.compute,
        x.persist,
        x[x < 500].compute_chunk_sizes,
        lambda: x.to_zarr(tmp_path / "x.zarr", overwrite=True),
        lambda: rd.IntervalRNSArray.from_rns(x).to_zarr(tmp_path / "y.zarr", overwrite=True),
    ]
    assert list(x.to_ints()) == expected
    assert checks == []  # there is no cluster
    with processes.as_current():
        for start in starting:
            start()
        assert checks == [processes]  # not anew for workers that were checked
        other = spoil(processes, 0, pretend_version)
        processes.restart_workers([max(processes.scheduler_info(n_workers=-1)["workers"])])
        assert list(x.compute(scheduler="threads").to_ints()) == expected
        before = sorted(tmp_path.rglob("*"))
        for start in starting:
            with pytest.raises(JobError, match=rf"{other}: rnsdask 9\.9"):
                start()
        assert sorted(tmp_path.rglob("*")) == before  # refused before an old store is removed
    assert list(x.to_ints()) == expected


def test_worker_that_joins_later_with_another_version(processes: Client, tmp_path: Path) -> None:
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 1000, "--bits", 64, "--chunk", 128)
    others = []

    def reduce_on_spoiled_workers() -> None:
        with connect(processes.scheduler.address) as client:
            others.extend(spoil(processes, worker, pretend_version) for worker in (0, 1))
            reduce(Blocks.of(store.open_info(path)), "max", client)

    with pytest.raises(JobError) as caught:
        reduce_on_spoiled_workers()
    assert others
    assert all(other in str(caught.value) for other in others)
    assert "rnsdask 9.9" in str(caught.value)


def test_active_client_and_environment(local_cluster: LocalCluster, tmp_path: Path) -> None:
    address = local_cluster.scheduler_address
    with dask.config.set(scheduler_address=address):  # as DASK_SCHEDULER_ADDRESS sets it
        with connect() as client:
            assert client is not None
            assert client.scheduler.address == address
        with pytest.raises(JobError, match="the scheduler file cannot be read"):  # an option goes first
            connect(scheduler_file=str(tmp_path / "none.json")).__enter__()
    with Client(address) as active:
        with connect() as client:
            assert client is active
        assert active.status == "running"
        x = rd.from_ints(range(1000), rd.ModuliSet([2**32]), chunks=128)
        x.to_zarr(tmp_path / "x.zarr")
        assert list(rd.open_zarr(tmp_path / "x.zarr").to_ints()) == list(range(1000))
    with connect() as client:
        assert client is None


def test_report_and_dashboard(local_cluster: LocalCluster, tmp_path: Path) -> None:
    path, report = str(tmp_path / "x.zarr"), tmp_path / "report.html"
    place = ["--scheduler", local_cluster.scheduler_address]
    result = run("random", path, "--count", 1000, "--bits", 64, "--chunk", 128, *place, "--report", report)
    assert "dashboard: http://" in result.stderr
    assert "<html" in report.read_text()[:1000].lower()
    assert "No such file" in run("max", path, *place, "--report", tmp_path / "a/b", status=1).stderr


def test_memory_of_workers(local_cluster: LocalCluster, tmp_path: Path) -> None:
    path = str(tmp_path / "x.zarr")
    run("random", path, "--count", 1000, "--bits", 64, "--chunk", 128)
    options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=1, threads_per_worker=2, memory_limit="100 MB", **options) as small:
        error = run("max", path, "--scheduler", small.scheduler_address, status=1).stderr
    assert "does not fit into the memory of worker tcp://" in error
    assert "2 threads may need" in error
    assert "of 0.08 GB; no chunk size would fit" in error


def test_gpus_contradict_cpu() -> None:
    assert "contradict each other" in run("max", "x", "--gpus", 1, "--backend", "cpu", status=2).stderr


@pytest.mark.parametrize("is_on", [False, True])
def test_the_address_of_a_dashboard_is_told_where_there_is_one(is_on: bool) -> None:
    options: dict[str, Any] = {"n_workers": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(**options, scheduler_kwargs={"dashboard": is_on}) as running,
        Client(running, set_as_default=False) as client,
    ):
        assert "dashboard" in client.scheduler_info()["services"]  # of the HTTP server, in either case
        address = dashboard_of(client)
        assert address == (client.dashboard_link if is_on else None)


def test_the_limit_of_memory_is_that_of_workers() -> None:
    assert process_limit() == distributed.system.memory_limit()
