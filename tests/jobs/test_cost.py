"""Costs that a job tells at its end."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from click.testing import CliRunner
from distributed import LocalCluster

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main
from rnsdask.cluster.connecting import connect
from rnsdask.core.errors import StoreAccessError
from rnsdask.jobs import cost as costs
from rnsdask.jobs import run
from rnsdask.jobs.cost import measured
from rnsdask.jobs.verification import verify
from rnsdask.store import reading

MODULI = rd.ModuliSet.for_bits(64)
CHUNKS = 8
NBYTES = 4 * len(MODULI) * 128 * CHUNKS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with x.zarr and y.zarr, of 8 chunks each."""
    folder = tmp_path_factory.mktemp("made")
    for seed, name in enumerate("xy"):
        rd.random(MODULI, 128 * CHUNKS, seed=seed, chunks=128).to_zarr(folder / f"{name}.zarr")
    (folder / "in").write_text("1\n2\n3\n")
    return folder


@pytest.fixture(autouse=True)
def stores(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def path_of(name: str) -> str:
    return store.open_info(name).path


def call(*args: object, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(arg) for arg in args], prog_name="rnsdask")
    assert result.exit_code == status, result.output
    return result


def slow_reads(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    read = reading.read_chunk_file

    def slowly(*args: Any) -> Any:
        time.sleep(seconds)
        return read(*args)

    monkeypatch.setattr(reading, "read_chunk_file", slowly)


READING = {
    "max": ["max", "x.zarr"],
    "sum": ["sum", "x.zarr"],
    "verify": ["verify", "x.zarr"],
    "topk": ["topk", "3", "x.zarr"],
    "compare": ["compare", "x.zarr", "x.zarr"],
    "cummax": ["cummax", "x.zarr", "-o", "out.zarr"],
    "eval": ["eval", "a > b", "a=x.zarr", "b=y.zarr", "-o", "out.zarr"],
    "eval --max": ["eval", "maximum(a, b)", "a=x.zarr", "b=y.zarr", "--max", "--argmax", "--sum"],
    "eval --count": ["eval", "a > b", "a=x.zarr", "b=y.zarr", "--count"],
    "export": ["export", "x.zarr", "out"],
}
WRITING = {
    "random": ["random", "out.zarr", "--count", "10", "--bits", "64"],
    "import": ["import", "in", "out.zarr", "--bits", "64"],
}


def summary_in(log: str) -> dict[str, Any]:
    (event,) = (e for e in map(json.loads, Path(log).read_text().splitlines()) if e["event"] == "summary")
    return dict(event)


@pytest.mark.parametrize("name", [*READING, *WRITING])
def test_every_job_sums_up(name: str) -> None:
    found = json.loads(call(*{**READING, **WRITING}[name], "--json", "--log-json", "log").stdout)
    logged = summary_in("log")
    assert logged["op"] == found["op"] == name.split()[0]
    assert found["retries"] == logged["retries"] == 0
    assert logged["count"] == found["count"]
    assert logged["bytes"] == found["bytes_read"] or name == "random"
    assert logged["bytes_per_second"] == pytest.approx(logged["bytes"] / found["seconds"])
    assert logged["seconds"] == found["seconds"]
    if name in ("max", "sum", "eval --max"):
        assert logged["exact_fallbacks"] == 0


def test_text() -> None:
    text = call("max", "x.zarr").stdout.splitlines()[-1]
    assert re.fullmatch(r"\(.* in .* s, .*/s, (cpu|cuda), 0 exact fallbacks\)", text)
    assert re.search(r"\(.* s, .*/s\)", call(*WRITING["random"]).stdout)
    done = call("topk", 2, "x.zarr", "--progress")
    assert len(done.stdout.splitlines()) == 2
    assert "/s)" in done.stderr
    done = call("export", "x.zarr", "-")
    assert (len(done.stdout.splitlines()), done.stderr) == (128 * CHUNKS, "")
    assert "-: 1024 integers, " in call("export", "x.zarr", "-", "--progress").stderr


def test_retries_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0.01)
    read = reading.read_chunk_file
    for failures, words in ((1, ", 1 retry, "), (2, ", 2 retries, "), (0, None)):
        left = [StoreAccessError("x.zarr: I/O error", 5)] * failures

        def flaky(*args: Any, left: list[Any] = left) -> Any:
            if left:
                raise left.pop()
            return read(*args)

        monkeypatch.setattr(reading, "read_chunk_file", flaky)
        with dask.config.set(num_workers=1):
            text = call("sum", "x.zarr", "--log-json", "log").stdout
        assert ("retr" not in text) if words is None else (words in text)
        assert summary_in("log")["retries"] == failures


# ---- on a cluster -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as running:
        yield running


def test_verification_on_a_cluster_tells_its_progress(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_reads(monkeypatch, 0.1)
    done: list[tuple[int, float]] = []
    with connect(cluster.scheduler_address) as client:
        info = store.open_info("x.zarr")
        assert verify(info, client, advance=lambda n: done.append((n, time.monotonic()))) == []
    assert [count for count, _ in done] == [1] * CHUNKS
    assert done[-1][1] - done[0][1] > 0.05


def test_retries_are_of_the_innermost_job() -> None:
    with measured() as outer:
        with measured() as inner:
            costs.count_retries(2)
        costs.count_retries(1)
    costs.count_retries(5)  # of no job
    assert (outer.retries, inner.retries) == (1, 2)
