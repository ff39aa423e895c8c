"""What a job shows of itself: progress, a log, and jobs of very many chunks."""

import io
import json
import sys
import textwrap
import time
import types
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
from rnsdask.jobs import log, progress
from rnsdask.jobs.progress import Meter, metered
from rnsdask.jobs.run import groups_of
from rnsdask.lazy.tree import combine_groups, reduce_groups
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
    assert state["fraction"] == 0.25
    assert state["numbers_per_second"] == 1000
    assert state["bytes_per_second"] == 5e8
    assert state["seconds_left"] == 6
    assert meter.line() == "max: 25.0 % done, 1e+03 numbers/s, 0.5 GB/s, 2.0 s, 6 s left"
    meter.update(5, 5)
    assert meter.fraction == 1
    assert meter.line().endswith(" s")
    assert Meter("empty", 0, 0, 0).fraction == 1
    unknown = Meter("import", None, 0, 0)
    unknown.advance(10)
    assert unknown.fraction is None
    assert unknown.line().startswith("import: 10 done, ")


def test_plain_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    with metered("job", 2, numbers=10, shown=True) as meter:
        meter.advance()
        time.sleep(0.2)
        meter.advance()
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("job: 50.0 % done, ") and line.endswith(" s left") for line in lines[:-1])
    assert lines[-1].startswith("job: 100.0 % done, ")
    assert not any("\r" in line for line in lines)


def test_no_last_line_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="gone"), metered("job", 2, shown=True):
        raise OSError("gone")
    assert capsys.readouterr().err == ""


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


class Kernel:
    """What a notebook's kernel shows: the outputs of its cells, each with all that it has been."""

    def __init__(self) -> None:
        self.kernel = self
        self.outputs: list[list[dict[str, str]]] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> "Kernel":
        assert raw
        assert display_id
        self.outputs.append([content])
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.outputs[-1].append(content)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: kernel  # type: ignore[attr-defined]
    display.display = kernel.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "_NOTEBOOK_SECONDS", 0.05)
    return kernel


def test_notebook(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    with metered("a < b", None, numbers=1000, shown=True) as meter:
        time.sleep(0.2)
        meter.update(1, 2)
        time.sleep(0.2)
        meter.update(2, 2)
    (shown,) = kernel.outputs
    assert shown[0]["text/html"].startswith("<progress></progress> a &lt; b: 0 done, ")
    half = [content for content in shown if '<progress value="0.5000">' in content["text/html"]]
    assert half
    assert half[-1]["text/plain"].startswith("a < b: 50.0 % done, ")
    assert " numbers/s, " in half[-1]["text/plain"]
    assert shown[-1]["text/plain"].startswith("a < b: 100.0 % done, ")
    assert capsys.readouterr() == ("", "")


def test_notebook_cell_that_is_interrupted(kernel: Kernel) -> None:
    with pytest.raises(KeyboardInterrupt), metered("max", 2, shown=True):
        raise KeyboardInterrupt
    (shown,) = kernel.outputs
    assert shown[-1]["text/plain"].startswith("max: 0.0 % done, ")


def test_not_every_ipython_is_a_notebook(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    del kernel.kernel
    with metered("max", 1, shown=True) as meter:
        meter.advance()
    assert kernel.outputs == []
    assert capsys.readouterr().err.startswith("max: 100.0 % done, ")


def test_a_real_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from nbformat import v4

    code = """
        from rnsdask.jobs.progress import metered
        with metered("max", 4, numbers=8, shown=True) as meter:
            meter.advance(4)
    """
    notebook = v4.new_notebook(cells=[v4.new_code_cell(textwrap.dedent(code))])
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    nbclient.NotebookClient(notebook, timeout=300).execute()
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/plain"].startswith("max: 100.0 % done, ")
    assert output["data"]["text/html"].startswith('<progress value="1.0000"></progress> max: 100.0 % done, ')


def test_threads_are_counted() -> None:
    x = da.ones(20, chunks=1).sum(split_every=2)
    with metered("sum") as meter, progress.TaskCounter(meter):
        x.compute(scheduler="threads")
    assert meter.total == meter.done > 20


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


def test_warnings_of_dask_are_in_the_log(tmp_path: Path) -> None:
    import logging

    with log.json_log(str(tmp_path / "log")):
        logging.getLogger("distributed.scheduler").warning("a worker is %s", "lost")
        log.record("retry", level=logging.WARNING, what=Path("x"))
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert events[1]["message"] == "a worker is lost"
    assert (events[2]["event"], events[2]["what"]) == ("retry", "x")
    assert not logging.getLogger("rnsdask.jobs").handlers


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
    pieces = combine_groups(noting, [[3, 7], [11]], total_count)
    assert dask.compute(*pieces, scheduler="sync") == (10, 11)
    assert sorted(computed) == [3, 7, 11]


@pytest.mark.parametrize(
    ("operation", "chunks"), [("max", 20_000), ("write", 20_000), ("topk", 2_000), ("cumsum", 2_000)]
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
        lazy = reduce_groups(x.residues, rd.RNS(moduli, False, None), operation, groups_of(chunks))
    elif operation == "write":
        lazy = combine_groups(write_chunks(x.residues, writer), groups_of(chunks), total_count)
    else:
        lazy = [x.topk(10) if operation == "topk" else x.cumsum()]
    graph = collections_to_expr(lazy).optimize().__dask_graph__()
    size = len(cloudpickle.dumps(graph))
    seconds = time.process_time() - started
    assert len(graph) >= chunks
    assert seconds < 1e-2 * chunks
    assert size < 10_000 * chunks
