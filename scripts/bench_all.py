"""Runs every benchmark, and writes the results, pages and plots in docs/benchmarks.

    python scripts/bench_all.py              the CPU
    python scripts/bench_all.py --gpu        the GPU
    python scripts/bench_all.py --render     only pages and plots, from the results that are there

The results are docs/benchmarks/MACHINE.json. Pages and plots come from these files alone; they need
matplotlib, and without it they are left for --render on another machine. The results are written after each
run, the most important first. A benchmark that fails or runs out of its time is listed as such, and the exit
status is 1.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "papers"))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

import argparse
import importlib
import json
import subprocess
import tempfile
import time
from typing import Any

import benchmark_pages
from benchmark_pages import FOLDERS
from benchmarking import ROOT, RUNS, WARM_UPS, environment

RESULTS = ROOT / "docs" / "benchmarks"

# Run first, so that a limit does not leave them out; then the others by name.
ORDER = ("reduce", "arith", "interval_rns", "paper", "peers", "modular")

# Seconds for all runs, and the part of them that one may take.
LIMITS = {"cpu": 1800.0, "gpu": 1500.0}
RUN_PART = 1 / 3


def place(script: str) -> tuple[int, str]:
    """Return a script's place in the order of runs, by its file's name."""
    name = script.removeprefix("bench_").removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def benchmarks(only: str | None) -> list[Path]:
    """The scripts in order, or those whose names are listed in `only`."""
    paths = {path for folder in FOLDERS for path in folder.glob("bench_*.py")} - {Path(__file__).resolve()}
    found = {path.stem: path for path in sorted(paths, key=lambda path: place(path.name))}
    if only is None:
        return list(found.values())
    names = [name if name.startswith("bench_") else f"bench_{name}" for name in only.split(",")]
    if unknown := set(names) - set(found):
        raise SystemExit(f"error: no benchmark {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    return [found[name] for name in names]


def run(script: Path, arguments: str, limit: float, gpu: bool) -> dict[str, Any]:
    """Run a benchmark once; its rows, with what was run, where and how it went."""
    print(f"== {script.name} {arguments}", flush=True)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        command = [sys.executable, str(script), *arguments.split(), "--json", str(path)]
        outcome = finish(command, limit)
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() and outcome == "done" else {}
    seconds = time.perf_counter() - start
    print(f"   {outcome} in {seconds:.0f} s", flush=True)
    facts = {"outcome": outcome, "seconds": seconds, "warm_ups": WARM_UPS, "machine": environment(gpu)}
    return {"script": script.name, "arguments": arguments, **facts, "rows": result.get("rows", [])}


def finish(command: list[str], limit: float) -> str:
    """Run a command for so many seconds at most: "done", or what went wrong."""
    if limit <= 0:
        return "not run: no time left"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"stopped after {limit:.0f} s"
    print(done.stdout, end="", flush=True)
    if done.returncode == 0:
        return "done"
    print(done.stderr, file=sys.stderr, flush=True)
    return f"failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}"


def runs_of(script: Path, kind: str) -> tuple[str, ...]:
    """The command lines of a benchmark for "cpu", "gpu", "tiny" or "tiny-gpu", as RUNS says."""
    return tuple(getattr(importlib.import_module(script.stem), "RUNS", RUNS)[kind])


def run_all(options: argparse.Namespace) -> bool:
    """Run the benchmarks and write their results; whether all went well."""
    processor = "gpu" if options.gpu else "cpu"
    kind = {"cpu": "tiny", "gpu": "tiny-gpu"}[processor] if options.tiny else processor
    total = options.limit or LIMITS[processor]
    each, end = options.run_limit or RUN_PART * total, time.monotonic() + total
    scripts = benchmarks(options.only)
    machine = environment(options.gpu)
    path = options.folder / f"{benchmark_pages.machine_slug(machine)}.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    # Of other benchmarks, which are not to be run now, the earlier results stay.
    earlier = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    names = {script.name for script in scripts}
    kept = [result for result in earlier if result["script"] not in names]
    runs: list[dict[str, Any]] = []
    for script in scripts:
        for arguments in runs_of(script, kind):
            runs.append(run(script, arguments, min(each, end - time.monotonic()), options.gpu))
            if options.commit:
                runs[-1]["machine"]["commit"] = options.commit
            ordered = sorted([*kept, *runs], key=lambda result: place(result["script"]))
            path.write_text(as_text(machine, ordered), encoding="utf-8")
    print(f"wrote {path}")
    return all(result["outcome"] == "done" for result in runs)


def as_text(machine: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """JSON with a line for each row, and figures of six digits."""

    def line(value: Any) -> str:
        return json.dumps(rounded(value))

    def block(result: dict[str, Any]) -> str:
        fields = [f"{line(k)}: {line(v)}" for k, v in result.items() if k != "rows"]
        rows = ",\n".join(f"  {line(row)}" for row in result.get("rows", []))
        return " {" + ",\n  ".join([*fields, f'"rows": [\n{rows}\n  ]']) + "}"

    what = {k: v for k, v in machine.items() if k not in benchmark_pages.OF_A_RUN}
    return f'{{"machine": {line(what)},\n"runs": [\n' + ",\n".join(map(block, runs)) + "\n]}\n"


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", action="store_true", help="the benchmarks of the GPU instead of the CPU's")
    parser.add_argument("--render", action="store_true", help="run nothing")
    parser.add_argument("--only", help="some benchmarks only, e.g. reduce,paper; of others results stay")
    parser.add_argument("--tiny", action="store_true", help="only see that they work")
    parser.add_argument("--limit", type=float, help="seconds for all; default 1500 on a GPU, 1800 on a CPU")
    parser.add_argument("--run-limit", type=float, help="seconds for each run; default a third of --limit")
    parser.add_argument("--commit", help="the commit, where the sources are no git checkout")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args()
    good = options.render or run_all(options)
    if benchmark_pages.can_draw():
        for path in benchmark_pages.render(options.folder):
            print(f"wrote {path}")
    else:
        print(
            "no pages and plots: matplotlib is not installed (the extra 'bench'); --render makes them later"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
