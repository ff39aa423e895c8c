"""What a job tells at its end of what it took."""

import json
import re
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
from rnsdask.core.errors import CorruptChunkError, SchedulerLostError, StoreAccessError
from rnsdask.jobs import cost as costs
from rnsdask.jobs import run
from rnsdask.jobs.cost import Cost, measured
from rnsdask.jobs.reduction import reduce
from rnsdask.jobs.verification import verify
from rnsdask.store import reading
from rnsdask.store.statistics import ReadStatistics as Read
from rnsdask.store.statistics import counted, read_so_far

MODULI = rd.ModuliSet.for_bits(64)
CHUNKS = 8
NBYTES = 4 * len(MODULI) * 128 * CHUNKS


@pytest.fixture(autouse=True)
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """x.zarr and y.zarr, of 8 chunks each."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate("xy"):
        rd.random(MODULI, 128 * CHUNKS, seed=seed, chunks=128).to_zarr(f"{name}.zarr")
    Path("in").write_text("1\n2\n3\n")


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


# ---- what was read ----------------------------------------------------------------------------------------


def test_readings_are_counted() -> None:
    info = store.open_info("x.zarr")
    (_, before), (process, _) = read_so_far([info.path]), read_so_far([])
    store.read_chunk(info, (0,))
    store.read_part(info, (7,), 0, 64)
    (Path("x.zarr") / "c/0/3").unlink()
    with pytest.raises(CorruptChunkError):
        store.read_chunk(info, (3,))
    again, after = read_so_far([info.path, info.path])
    done = after - before
    assert (again, done.chunks, done.nbytes) == (process, 2, 4 * len(MODULI) * (128 + 64))
    assert 0 < done.seconds < 60
    assert read_so_far([path_of("y.zarr")])[1] == read_so_far([])[1] == Read()


def test_counting_keeps_the_function() -> None:
    assert store.read_chunk.__name__ == "read_chunk"
    assert counted(len).__wrapped__ is len  # type: ignore[arg-type, attr-defined]


# ---- the rates --------------------------------------------------------------------------------------------


def rates(seconds: float, before: Any, after: Any) -> tuple[float | None, float | None]:
    cost = Cost(seconds)
    costs._compare_rates(cost, before, after)
    return cost.read_limit, cost.of_read_limit


def test_rates() -> None:
    nothing = Read()
    # 100 bytes in 4 s of reading are 25 bytes/s a thread, 50 on two threads; the job took 8 s, not 2.
    assert rates(8, {"a": (2, nothing)}, {"a": (2, Read(10, 100, 4.0))}) == (50, 0.25)
    # What was read before does not count.
    assert rates(8, {"a": (2, Read(1, 7, 9.0))}, {"a": (2, Read(11, 107, 13.0))}) == (50, 0.25)
    # One chunk cannot be read by two threads.
    assert rates(8, {"a": (2, nothing)}, {"a": (2, Read(1, 100, 4.0))}) == (25, 0.5)
    # Each process at its own rate; one that read nothing says nothing.
    three = dict.fromkeys("abc", (1, nothing))
    after = {"a": (1, Read(10, 100, 2.0)), "b": (1, Read(10, 100, 5.0)), "c": (1, nothing)}
    assert rates(5, three, after) == (70, 40 / 70)
    assert rates(5, three, three) == (None, None)
    assert rates(0, {}, {}) == (None, None)


def test_no_rates_if_workers_came_or_went() -> None:
    nothing, something = Read(), Read(10, 100, 2.0)
    for before, after in (
        ({"a": (1, nothing)}, {"a": (1, something), "b": (1, nothing)}),
        ({"a": (1, nothing), "b": (1, nothing)}, {"a": (1, something)}),
        ({"a": (1, nothing)}, {"b": (1, something)}),
        ({"a": (1, nothing)}, {"a": (2, something)}),
    ):
        assert rates(8, before, after) == (None, None)


def test_a_job_that_only_reads_is_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_reads(monkeypatch, 0.1)
    for threads in (1, 2):
        with dask.config.set(num_workers=threads):
            found = json.loads(call("max", "x.zarr", "--json").stdout)
        assert found["seconds"] > 0.1 * CHUNKS / threads
        assert found["read_limit"] < NBYTES * threads / (0.1 * CHUNKS)
        rate = NBYTES / found["seconds"]
        assert found["of_read_limit"] == pytest.approx(rate / found["read_limit"])
        assert 0.3 < found["of_read_limit"] <= 1.01


def test_a_job_that_hardly_reads_is_far_from_the_limit() -> None:
    with measured(paths=[path_of("x.zarr")]) as cost:
        rd.open_zarr("x.zarr").max().compute(scheduler="threads")
        time.sleep(1)
    assert cost.seconds > 1
    assert cost.of_read_limit is not None
    assert cost.of_read_limit < 0.5


def test_data_in_memory_have_no_read_limit() -> None:
    x = rd.from_ints(range(1000), MODULI, chunks=128)
    with measured(paths=[path_of("x.zarr")]) as cost:
        assert int(x.max()) == 999
    assert (cost.read_limit, cost.of_read_limit) == (None, None)


# ---- commands ---------------------------------------------------------------------------------------------

READING = {
    "max": ["max", "x.zarr"],
    "sum": ["sum", "x.zarr"],
    "verify": ["verify", "x.zarr"],
    "topk": ["topk", "3", "x.zarr"],
    "compare": ["compare", "x.zarr", "x.zarr"],
    "cummax": ["cummax", "x.zarr", "out.zarr"],
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
    for field in ("seconds", "read_limit", "of_read_limit"):
        assert logged[field] == found[field]
    if name in WRITING:
        assert (found["read_limit"], found["of_read_limit"]) == (None, None)
    else:
        assert 0 < found["of_read_limit"] <= 1.01
        assert found["of_read_limit"] == pytest.approx(logged["bytes_per_second"] / found["read_limit"])
    if name in ("max", "sum", "eval --max"):
        assert logged["exact_fallbacks"] == 0


def test_text() -> None:
    text = call("max", "x.zarr").stdout.splitlines()[-1]
    assert re.fullmatch(
        r"\(.* in .* s, .*/s, [0-9]+ % of the read limit, (cpu|cuda), 0 exact fallbacks\)", text
    )
    assert re.search(r"\(.* s, .*/s\)", call(*WRITING["random"]).stdout)
    done = call("topk", 2, "x.zarr", "--progress")
    assert len(done.stdout.splitlines()) == 2
    assert " % of the read limit)" in done.stderr
    done = call("export", "x.zarr", "-")
    assert (len(done.stdout.splitlines()), done.stderr) == (128 * CHUNKS, "")
    assert "-: 1024 integers, " in call("export", "x.zarr", "-", "--progress").stderr


def test_nothing_read_has_no_limit() -> None:
    found = json.loads(call("compare", "x.zarr", -1, "--json", status=1).stdout)
    assert (found["bytes_read"], found["read_limit"]) == (0, None)
    arguments = ["max", "x.zarr", "--checkpoint", "kept"]
    assert "read limit" in call(*arguments).stdout
    assert "read limit" not in call(*arguments).stdout


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


@pytest.mark.parametrize("name", ["max", "verify", "eval"])
def test_jobs_on_a_cluster(name: str, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_reads(monkeypatch, 0.02)
    found = json.loads(call(*READING[name], "--json", "--scheduler", cluster.scheduler_address).stdout)
    assert found["retries"] == 0
    # Two workers of one thread, in one process: their readings count once.
    assert found["read_limit"] < found["bytes_read"] * 2 / (0.02 * CHUNKS)
    assert 0 < found["of_read_limit"] <= 1.01


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


def test_worker_that_does_not_tell_what_it_reads(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_client: Any, _question: Any, addresses: Any) -> dict[str, Any]:
        return dict.fromkeys(addresses, OSError("gone"))

    monkeypatch.setattr(costs, "ask_workers", broken)
    found = json.loads(call("max", "x.zarr", "--json", "--scheduler", cluster.scheduler_address).stdout)
    assert (found["read_limit"], found["of_read_limit"]) == (None, None)
    assert found["value"] == str(max(rd.open_zarr("x.zarr").to_ints()))


def test_retries_are_of_the_innermost_job() -> None:
    with measured() as outer:
        with measured() as inner:
            costs.count_retries(2)
        costs.count_retries(1)
    costs.count_retries(5)  # of no job
    assert (outer.retries, inner.retries) == (1, 2)


def test_silent_scheduler_costs_the_rates_alone(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(cluster.scheduler_address) as client:
        assert client is not None
        ask, asked = costs.workers_of, []

        def silent_in_the_end(client: Any) -> Any:
            asked.append(client)
            if len(asked) == 2:
                raise SchedulerLostError("silent")
            return ask(client)

        monkeypatch.setattr(costs, "workers_of", silent_in_the_end)
        with measured(client, [path_of("x.zarr")]) as cost:
            reduce(rd.open_zarr("x.zarr"), "max", client)
        assert len(asked) == 2
        assert (cost.read_limit, cost.of_read_limit) == (None, None)
