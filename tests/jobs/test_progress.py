"""Progress and logs of jobs, also of very many chunks."""

import io
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner
from dask.base import collections_to_expr

import rnsdask as rd
from rnsdask import store
from rnsdask.arrays import creation
from rnsdask.cli import main
from rnsdask.jobs import progress
from rnsdask.jobs.compute import compute
from rnsdask.jobs.progress import Meter, metered
from rnsdask.jobs.run import groups_of
from rnsdask.lazy.blocks import Blocks
from rnsdask.lazy.chunk_reductions import combine_results, reduce_chunk
from rnsdask.lazy.tree import combine_each, pieces_of
from rnsdask.lazy.write import total_count, write_chunks
from rnsdask.rns.system import RNS


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(*args: str | int | Path, status: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(arg) for arg in args], prog_name="rnsdask")
    assert result.exit_code == status, result.output
    return result


def test_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    meter = Meter("max", 4, numbers=8000, nbytes=4 * 10**9)
    clock[0] += 2
    assert "seconds_left" not in meter.state()
    meter.advance()
    state = meter.state()
    assert (state["fraction"], state["seconds_left"]) == (0.25, 6)
    assert (state["numbers_per_second"], state["bytes_per_second"]) == (1000, 5e8)
    assert meter.rates() == "1e+03 numbers/s, 0.5 GB/s"
    assert Meter("empty", 0).state()["fraction"] == 1
    assert "fraction" not in Meter("import").state()


def test_events_while_a_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, Any]] = []
    monkeypatch.setattr(progress, "record", lambda _event, **fields: events.append(fields))
    monkeypatch.setattr(progress, "EVENT_SECONDS", 0.0)
    x = da.ones(20, chunks=1).sum(split_every=2)
    compute(x, label="sum")
    assert len(events) > 20
    assert events[-1]["done"] == events[-1]["total"] > 20


def test_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with metered("job", 2, numbers=10) as meter:
        meter.advance()
    assert capsys.readouterr().err == ""
    with metered("job", 2, numbers=10, shown=True) as meter:
        meter.advance(2)
    shown = capsys.readouterr().err
    assert shown.startswith("job ")
    assert "100%" in shown
    assert shown.count("\n") == 1
    assert "\x1b" not in shown


def test_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with metered("job", None, numbers=1000, shown=True) as meter:
        meter.update(1, 2)
        time.sleep(0.4)
    shown = terminal.getvalue()
    assert "job" in shown
    assert "50%" in shown
    assert "numbers/s" in shown


def test_log(tmp_path: Path) -> None:
    path, log = tmp_path / "x.zarr", tmp_path / "log"
    run("random", path, "--count", 1000, "--bits", 256, "--chunk", 128, "--log-json", log)
    run("max", path, "--log-json", log, "--no-progress")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", "plan", "progress", "summary", "end"]
    assert events[0]["command"] == "max"
    assert events[0]["options"]["path"] == str(path)
    assert events[2]["fraction"] == 1
    summary = events[3]
    assert (summary["op"], summary["count"], summary["exact_fallbacks"]) == ("max", 1000, 0)
    assert summary["bytes"] == rd.open_zarr(path).nbytes
    assert events[-1]["status"] == "done"

    (path / "c/0/3").unlink()
    run("max", path, "--log-json", log, status=1)
    end = json.loads(log.read_text().splitlines()[-1])
    assert end["status"] == "failed"
    assert "chunk c/0/3 is missing" in end["error"]
    assert "No such file or directory" in run("max", path, "--log-json", tmp_path / "a/b", status=1).stderr


def test_log_of_other_commands(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1\n2\n3\n")
    path, log = tmp_path / "x.zarr", tmp_path / "log"
    run("import", tmp_path / "in", path, "--bits", 64, "--log-json", log)
    assert json.loads(log.read_text().splitlines()[-1])["status"] == "done"
    for command in (["export", path, tmp_path / "out"], ["verify", path]):
        run(*command, "--log-json", log)
        assert json.loads(log.read_text().splitlines()[-1])["status"] == "done"


def test_report_needs_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    run("random", path, "--count", 10, "--bits", 64)
    assert "--report is about the tasks of a cluster" in run("max", path, "--report", "r", status=2).stderr


# ---- jobs of very many chunks -----------------------------------------------------------------------------


def test_groups_of_chunks() -> None:
    counts = da.arange(200, chunks=1)
    computed: list[int] = []

    def noted(block: Any) -> Any:
        computed.extend(block)
        return block

    noting = counts.map_blocks(noted, dtype=counts.dtype, meta=np.empty(0, dtype=counts.dtype))
    pieces = pieces_of(combine_each(noting, [[3, 7], [11]], total_count))
    assert dask.compute(*pieces, scheduler="sync") == (10, 11)
    assert sorted(computed) == [3, 7, 11]


@pytest.mark.parametrize(
    ("operation", "chunks"), [("max", 5_000), ("write", 5_000), ("topk", 1_000), ("cumsum", 1_000)]
)
def test_client_time_and_graph_of_many_chunks(
    operation: str, chunks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 10 ms of processor time a chunk to build, optimize and pickle: 1 ms on a quiet machine.

    1 GB for 100,000 chunks is 10 kB a chunk.
    """
    moduli = rd.ModuliSet.for_bits(4096)
    writer = store.create(tmp_path / "x.zarr", RNS(moduli), (128 * chunks,), chunks=128)
    monkeypatch.setattr(creation.store, "open_info", lambda _path, *_systems: writer.info)
    started = time.process_time()
    x = rd.open_zarr(writer.info.path)
    lazy: list[Any]
    if operation == "max":
        how: dict[str, Any] = {"operation": "max", "system": writer.info.system, "backend": "auto"}
        combine = partial(combine_results, operation="max")
        lazy = Blocks.of(writer.info).reduce(groups_of(chunks), reduce_chunk, combine, **how)
    elif operation == "write":
        lazy = pieces_of(combine_each(write_chunks(x.residues, writer), groups_of(chunks), total_count))
    else:
        lazy = [x.topk(10) if operation == "topk" else x.cumsum()]
    graph = collections_to_expr(lazy).optimize().__dask_graph__()
    size = len(cloudpickle.dumps(graph))
    seconds = time.process_time() - started
    assert len(graph) >= chunks
    assert seconds < 1e-2 * chunks
    assert size < 10_000 * chunks
