"""``dask worker --preload rnsdask.worker``: it joins a scheduler of the same version only."""

import asyncio
import logging
import subprocess
import sys
import types
from collections.abc import Iterator

import dask
import pytest
from distributed import Client, LocalCluster

import rnsdask as rd
from rnsdask import worker


@pytest.fixture
def scheduler() -> Iterator[LocalCluster]:
    """A scheduler in this process, without workers."""
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=":0") as running:
        yield running


def setting_up(cluster: LocalCluster) -> None:
    """Set up a worker of the cluster as far as the check of its version needs one."""
    place = types.SimpleNamespace(address=cluster.scheduler_address)

    class Starting:
        scheduler, security = place, None

        def __await__(self) -> Iterator[None]:
            return iter(())

    async def set_up() -> None:
        await worker.dask_setup(Starting())
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(set_up())


def test_a_worker_of_the_same_version_is_prepared(
    scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []
    monkeypatch.setattr(worker, "prepare_gpu", lambda: prepared.append("GPU"))
    setting_up(scheduler)
    assert prepared == ["GPU"]


def test_a_scheduler_of_another_version_is_refused(
    scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mine = rd.__version__
    monkeypatch.setattr(rd, "__version__", "9.9")  # the scheduler's, which is in this process
    with caplog.at_level(logging.ERROR, "distributed.worker"), pytest.raises(SystemExit):
        setting_up(scheduler)
    told = f"this worker has rnsdask {mine}, and the scheduler {scheduler.scheduler_address}: rnsdask 9.9"
    assert caplog.messages == [f"{told}; it does not join"]


def test_a_scheduler_that_is_gone_is_refused(
    scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not as one without rnsdask."""
    scheduler.close()
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        caplog.at_level(logging.ERROR, "distributed.worker"),
        pytest.raises(SystemExit),
    ):
        setting_up(scheduler)
    assert "does not answer: " in caplog.messages[-1]


@pytest.mark.slow
@pytest.mark.parametrize("version", [None, "9.9"], ids=["same", "other"])
def test_worker_processes(
    scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    if version is not None:
        monkeypatch.setattr(rd, "__version__", version)
    options = ["--preload", "rnsdask.worker", "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    command = [sys.executable, "-P", "-m", "dask", "worker", scheduler.scheduler_address, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        if version is None:
            with Client(scheduler, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
                modules = client.run(lambda: "rnsdask._cpu" in sys.modules)
                assert list(modules.values()) == [True]
        else:
            printed, _ = process.communicate(timeout=60)
            assert process.returncode == 1
            lines = [line for line in printed.splitlines() if "ERROR" in line]
            assert len(lines) == 1
            assert lines[0].endswith(": rnsdask 9.9; it does not join")
            assert not scheduler.scheduler.workers
    finally:
        process.terminate()
        process.communicate(timeout=60)
