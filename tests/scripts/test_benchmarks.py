"""A tiny run of each benchmark, so that none rots, and the pages made of their results."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import bench_all
import benchmark_pages
import forking
import peers_report
import pytest
from benchmarking import WARM_UPS, tables_of, time_calls

from rnsdask import ModuliSet

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"

# Packages may come from PYTHONPATH; but the scripts are to find one another without it.
PYTHONPATH = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
SAFE_PATHS = {
    "PYTHONSAFEPATH": "1",
    "PYTHONPATH": os.pathsep.join(p for p in PYTHONPATH if Path(p).resolve() not in bench_all.FOLDERS),
}

KINDS = {"cpu": "tiny", "gpu": "tiny-gpu"}
SLOW = (
    "bench_eliminations",
    "bench_interval_rns",
    "bench_jobs",
    "bench_paper",
    "bench_pipelines",
    "bench_protocols",
    "bench_scaling",
    "bench_reduce",
    "bench_peers",
    "bench_costs",
)
"""Benchmarks that start many processes, or have many rows."""

BENCHMARKS = [
    pytest.param(
        path.stem,
        kind,
        marks=[pytest.mark.gpu] if kind == "gpu" else [pytest.mark.slow] if path.stem in SLOW else [],
    )
    for path in bench_all.benchmarks(None)
    for kind, size in KINDS.items()
    if bench_all.runs_of(path, size)
]


STARTED = "bench_arith"
"""The benchmark that runs in a process of its own from its start; all others are forked."""

FORKED = """
import runpy, sys
import dask
folders = sys.argv[1].split(":")
sys.path[:] = [path for path in sys.path if path not in folders]
sys.argv[:] = sys.argv[2:]
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def finish_forked(command: list[str], limit: float) -> str:
    """Run `bench_all.finish` in a process that has imported most of what benchmarks need."""
    process = forking.start(FORKED, ":".join(map(str, bench_all.FOLDERS)), *command[1:])
    process.join(limit)
    status = process.exitcode
    process.kill()
    return "done" if status == 0 else f"failed: {status}"


@pytest.mark.parametrize(("name", "kind"), BENCHMARKS)
def test_bench_all(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in SAFE_PATHS.items():
        monkeypatch.setenv(variable, value)
    if name != STARTED and kind == "cpu":
        monkeypatch.setattr(bench_all, "finish", finish_forked)
    command = ["bench_all.py", "--tiny", "--only", name, "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*command, *(["--gpu"] if kind == "gpu" else [])])
    assert bench_all.main() == 0
    (path,) = tmp_path.glob("*.json")
    result = json.loads(path.read_text())
    assert result["machine"]["rnsdask"]
    assert ("gpu" in result["machine"]) == (kind == "gpu")
    assert len(result["runs"]) == len(bench_all.runs_of(Path(name), KINDS[kind]))
    for run in result["runs"]:
        assert run["outcome"] == "done"
        assert run["rows"]
        assert run["warm_ups"] == WARM_UPS
        assert run["machine"]["commit"]
        assert run["machine"]["date"]
    page = benchmark_pages.page(result, path.stem)
    assert page.count(f"\n`{name}.py") == len(result["runs"])
    if benchmark_pages.can_draw():
        assert path.with_suffix(".md").read_text() == page
        plots = {p.name for p in tmp_path.glob("*.svg")}
        assert all(f"({plot})" in page for plot in plots)


def test_bench_all_starts_by_its_path() -> None:
    command = [sys.executable, str(benchmark_pages.SCRIPTS / "bench_all.py"), "--help"]
    variables = os.environ | SAFE_PATHS
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr


def test_committed_pages_are_those_of_the_results() -> None:
    for path, text in benchmark_pages.pages_of(RESULTS).items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run scripts/bench_all.py --render"


def test_pages_of_machines_begin_with_pictures_and_have_words_as_headings() -> None:
    assert {path.name for path in bench_all.benchmarks(None)} <= set(benchmark_pages.HEADINGS)
    for results in RESULTS.glob("*.json"):
        page = results.with_suffix(".md").read_text(encoding="utf-8")
        title, _, first, *_ = page.splitlines()
        assert title.startswith("# ")
        assert first.endswith(f"]({results.stem}-summary.svg)")
        assert not re.findall(r"^#.*(?:[_/.]|--).*", page, re.MULTILINE)


def test_gains_are_those_over_the_quickest_other_library() -> None:
    times = {"gmpy2": 4.0, "python-flint": 3.0, "rnsdask": 2.0, "rnsdask, GPU": 0.5}
    tables = {"9 numbers of 64 bits": "sum", "8 x 8 matrices of 64 bits": "matrix product"}
    rows = [
        {"table": table, "operation": operation, "library": library, "ms": ms}
        for table, operation in tables.items()
        for library, ms in times.items()
    ]
    alone = {"table": "9 numbers of 64 bits", "operation": "plain read", "library": "rnsdask", "ms": 1.0}
    assert peers_report.gains([*rows, alone]) == {
        "64 bits": {"sum": 1.5, "matrix product, 8 x 8": 1.5},
        "64 bits, GPU": {"sum": 6.0, "matrix product, 8 x 8": 6.0},
    }


def test_committed_results_tell_no_host() -> None:
    facts = {
        "cpu",
        "threads",
        "system",
        "python",
        "gpu",
        "gpu_memory_GiB",
        "cuda_driver",
        "cuda_runtime",
        "driver",
    }
    for path in RESULTS.glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        assert path.stem == benchmark_pages.machine_slug(result["machine"])
        libraries = {name for name in result["machine"] if name not in facts}
        assert libraries <= {"rnsdask", "numpy", "dask", "zarr", "gmpy2", "python-flint", "cupy"} | {
            name for name in libraries if name.startswith("cupy-cuda")
        }


def test_rendering_draws_the_same_twice(tmp_path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    row = {"table": "1 number of 1 bit", "operation": "max", "threads": 1, "library": "gmpy2"}
    rows = [
        row | {"library": library, "ms": ms, "spread": 0.5, "calls": 3, "by_rnsdask": ms}
        for library, ms in (("gmpy2", 2.0), ("rnsdask", 1.0))
    ]
    machine = {"cpu": "A CPU", "threads": 1, "date": "today", "commit": "none"}
    run = {"script": "bench_peers.py", "arguments": "", "outcome": "done", "seconds": 1.0}
    result = {"machine": machine, "runs": [run | {"machine": machine, "warm_ups": 1, "rows": rows}]}
    (tmp_path / "a-cpu-1-threads.json").write_text(json.dumps(result))
    contents = []
    for _ in range(2):
        benchmark_pages.render(tmp_path)
        contents.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert contents[0] == contents[1]
    assert {"README.md", "a-cpu-1-threads.md", "a-cpu-1-threads-summary.svg"} <= set(contents[0])


def test_a_failure_is_listed() -> None:
    assert bench_all.finish([sys.executable, "-c", "import time; time.sleep(60)"], 0.5) == "stopped after 0 s"
    assert bench_all.finish([sys.executable, "-c", "raise ValueError('no such size')"], 60).startswith(
        "failed: ValueError: no such size"
    )
    assert bench_all.finish(["never started"], 0) == "not run: no time left"
    machine = {"cpu": "A CPU", "threads": 1}
    failed = {"script": "bench_x.py", "arguments": "--gpu", "outcome": "stopped after 9 s", "seconds": 9.0}
    page = benchmark_pages.page(json.loads(bench_all.as_text(machine, [failed])), "a")
    assert "**stopped after 9 s**" in page


def test_the_important_run_first() -> None:
    names = [path.stem.removeprefix("bench_") for path in bench_all.benchmarks(None)]
    assert names[: len(bench_all.ORDER)] == list(bench_all.ORDER)
    for path in bench_all.benchmarks(None):
        assert all(bench_all.runs_of(path, kind) for kind in ("cpu", "tiny"))
        assert bool(bench_all.runs_of(path, "gpu")) == bool(bench_all.runs_of(path, "tiny-gpu"))


def test_limits_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(bench_all, "finish", lambda _, limit: given.append(limit) or "stopped")
    arguments = [
        "bench_all.py",
        "--only",
        "reduce,interval_rns",
        "--tiny",
        "--limit",
        "90",
        "--folder",
        str(tmp_path),
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(benchmark_pages, "can_draw", lambda: False)
    assert bench_all.main() == 1
    assert given == [30, 30, 30]
    monkeypatch.setattr(sys, "argv", [*arguments, "--run-limit", "200"])
    assert bench_all.main() == 1
    assert all(80 < limit <= 90 for limit in given[3:])
    (path,) = tmp_path.glob("*.json")
    scripts = [run["script"] for run in json.loads(path.read_text())["runs"]]
    assert scripts == ["bench_reduce.py", "bench_reduce.py", "bench_interval_rns.py"]


@pytest.mark.parametrize(
    ("machine", "slug"),
    [
        ({"cpu": "Intel(R) Xeon(R) Processor @ 2.50GHz", "threads": 2}, "intel-xeon-2-threads"),
        ({"cpu": "AMD EPYC", "threads": 2}, "amd-epyc-2-threads"),
        ({"cpu": "AMD EPYC", "threads": 2, "gpu": "NVIDIA H200"}, "nvidia-h200"),
    ],
)
def test_names_of_machines(machine: dict[str, object], slug: str) -> None:
    assert benchmark_pages.machine_slug(machine) == slug


def test_timing_keeps_its_budget() -> None:
    calls = []
    assert len(time_calls(lambda: calls.append(None), 4).seconds) == 4
    assert len(calls) == 4 + WARM_UPS
    assert len(time_calls(lambda: calls.append(None), 4, budget=0.0).seconds) == 1
    assert len(calls) == 4 + 2 * WARM_UPS


def test_rows_fall_into_tables() -> None:
    assert tables_of([{"table": "a", "x": 1}, {"y": 2}, {"table": "a", "x": 3}]) == {
        "a": [{"x": 1}, {"x": 3}],
        "": [{"y": 2}],
    }


def test_sets_of_the_paper() -> None:
    from benchmarking import TABLE2_STARTS, moduli_set
    from paper_report import PAPER

    assert len(TABLE2_STARTS) == 7
    for n, start in TABLE2_STARTS.items():
        moduli, facts = moduli_set(str(n)), PAPER["Table 2"][str(n)]
        assert (len(moduli), min(moduli), max(moduli)) == (n, start, facts["last"])
        assert abs(moduli.bits - facts["bits"]) <= 1
    assert moduli_set("64b") == ModuliSet.for_bits(64)
