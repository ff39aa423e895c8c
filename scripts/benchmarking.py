"""Shared parts of the benchmarks: timing, the record of the machine, tables and files of results.

A benchmark is a script ``bench_NAME.py``. With ``--json FILE`` it writes what `write_results` writes. Its
constant ``RUNS``, or else the one here, says how bench_all.py runs it: for "cpu", "gpu", "tiny" and
"tiny-gpu" the command lines, of which the tiny ones are tests. A row of a result is a flat dictionary; where
the rows are of several tables, the key "table" tells which. ``spread`` is (greatest - least) / median of the
timed calls.
"""

import argparse
import contextlib
import ctypes
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rnsdask as rd
from rnsdask.backend.cuda.sources import NVRTC_OPTIONS, header_directories, inline
from rnsdask.core.wide_moduli import WideModuli

ROOT = Path(__file__).resolve().parents[1]
GIB = 2**30
WARM_UPS = 1

RUNS = {"cpu": ("",), "gpu": ("--gpu",), "tiny": ("--tiny",), "tiny-gpu": ("--gpu --tiny",)}

# First moduli of the sets of Table 2 in K. Isupov, Computation 9 (2021), by their number of moduli.
TABLE2_STARTS = {4: 65947, 8: 65725, 16: 65599, 32: 65533, 64: 65379, 128: 65139, 256: 64491}

LIBRARIES = (
    "rnsdask",
    "numpy",
    "dask",
    "zarr",
    "gmpy2",
    "python-flint",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "cupy",
)


def moduli_set(name: str) -> rd.ModuliSet:
    """``"64"``: the set of 64 moduli of Table 2; ``"2048b"``: the fewest moduli of 32 bits for 2048 bits."""
    if name.endswith("b"):
        return rd.ModuliSet.for_bits(int(name[:-1]))
    return rd.ModuliSet.consecutive_odd(TABLE2_STARTS[int(name)], int(name))


# ---- timing ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Seconds of each timed call."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the timed calls."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """(greatest - least) / median."""
        return (max(self.seconds) - min(self.seconds)) / self.median

    def row(self) -> dict[str, Any]:
        """The columns of a result that say how long it took."""
        return {
            "ms": 1e3 * self.median,
            "least_ms": 1e3 * min(self.seconds),
            "spread": self.spread,
            "calls": len(self.seconds),
        }


def time_calls(
    function: Callable[[], Any],
    repeat: int,
    budget: float = float("inf"),
    clock: Callable[..., float] | None = None,
) -> Timing:
    """Time calls after one that warms up; `clock` measures one call, by default on the wall clock."""
    clock = clock or wall_seconds
    return time_in_turn({"": lambda: clock(function)}, repeat, budget)[""]


def time_in_turn(
    measures: dict[str, Callable[[], float]], repeat: int, budget: float = float("inf")
) -> dict[str, Timing]:
    """Time several calls in turn, so that other load meets all alike; each measures itself, in seconds.

    All are called once to warm up. Once `budget` seconds are spent no further call is made; warm-ups that
    spend them all count as the timed calls.
    """
    start = time.perf_counter()
    warm_ups = {name: measure() for name, measure in measures.items()}
    seconds: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeat):
        if time.perf_counter() - start >= budget:
            break
        for name, measure in measures.items():
            seconds[name].append(measure())
    return {name: Timing(tuple(times or [warm_ups[name]])) for name, times in seconds.items()}


def with_new_arrays(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Call a function with arrays of the same words, of which no bound was measured before."""
    made = [rd.RNSArray(x.words, x.system) if isinstance(x, rd.RNSArray) else x for x in operands]
    return function(*made, **options)


def wall_seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def waited_seconds(function: Callable[[], Any]) -> float:
    """Wall-clock seconds of a call until the GPU has done all that it asked for."""
    import cupy

    start = time.perf_counter()
    function()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


def kernel_seconds(function: Callable[[], Any], owner: Any = None) -> float:
    """Seconds of the kernels that a call launches, between CUDA events around each of them.

    They are launched by `launch` of `owner`, by default the package's. What CuPy itself launches is left out.
    """
    import cupy

    from rnsdask.backend.cuda import launching

    owner = owner or launching
    launch, events = owner.launch, []

    def recorded(*arguments: Any, **options: Any) -> Any:
        pair = cupy.cuda.Event(), cupy.cuda.Event()
        pair[0].record()
        result = launch(*arguments, **options)
        pair[1].record()
        events.append(pair)
        return result

    owner.launch = recorded
    try:
        function()
    finally:
        owner.launch = launch
    cupy.cuda.Device().synchronize()
    return sum(cupy.cuda.get_elapsed_time(*pair) for pair in events) / 1e3


class Copy:
    """The limit of what reads and writes: `launch` copies an array to one of its size that exists already."""

    def __init__(self, source: Any) -> None:
        self._source, self._target = source, np.empty_like(source)

    def launch(self) -> None:
        self._target[...] = self._source

    def __call__(self) -> None:
        self.launch()  # as kernel_seconds has replaced it


def kernel_and_call(kernel: Timing, call: Timing) -> dict[str, Any]:
    """The columns of a result that say how long kernels took, and the whole call with its synchronisation."""
    return {
        "kernel_ms": 1e3 * kernel.median,
        "kernel_spread": kernel.spread,
        "call_ms": 1e3 * call.median,
        "call_spread": call.spread,
        "calls": len(call.seconds),
    }


def auxiliary_bytes(function: Callable[[], Any], gpu: bool) -> tuple[Any, int]:
    """A call's result, and the most bytes that it holds beside its arguments.

    On a GPU what CuPy allocates, on the CPU what Python and NumPy do; the kernels themselves allocate none.
    """
    if gpu:
        import cupy

        class Peak(cupy.cuda.MemoryHook):
            name = "peak"
            live = most = 0

            def malloc_postprocess(self, **allocation: Any) -> None:
                self.live += allocation["mem_size"]
                self.most = max(self.most, self.live)

            def free_postprocess(self, **allocation: Any) -> None:
                self.live -= allocation["mem_size"]

        with Peak() as peak:
            result = function()
        return result, peak.most
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def random_on_gpu(
    moduli: rd.ModuliSet | WideModuli, count: int, seed: int = 1, dtype: type[np.unsignedinteger] = np.uint32
) -> Any:
    """Random residues of `count` numbers, a CuPy array of shape (n, count); the same in every run."""
    import cupy

    residues = cupy.empty((len(moduli), count), dtype=dtype)
    generator = cupy.random.default_rng(seed)
    for row, m in zip(residues, moduli, strict=True):
        for start in range(0, count, 2**26):
            part = row[start : start + 2**26]
            part[...] = generator.random(part.size) * m  # below m: the greatest double is 1 - 2**-53
    return residues


def random_on_cpu(
    moduli: rd.ModuliSet | WideModuli, count: int, seed: int = 1, dtype: type[np.unsignedinteger] = np.uint32
) -> np.ndarray:
    """Random residues as a NumPy array."""
    generator = np.random.default_rng(seed)
    residues = np.empty((len(moduli), count), dtype=dtype)
    for row, m in zip(residues, moduli, strict=True):
        row[...] = generator.integers(0, m, count, dtype=np.uint64)
    return residues


# ---- kernels that are no part of the product ---------------------------------------------------------------


def compile_for_cpu(source: Path, folder: Path, *options: str) -> ctypes.CDLL:
    """Compile a C++ source for this machine's processor, with CXX or c++, into a library in `folder`."""
    library = folder / f"{source.stem}{len(list(folder.iterdir()))}.so"
    flags = ["-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=off", "-shared", "-fPIC"]
    command = [
        os.environ.get("CXX", "c++"),
        *flags,
        *options,
        *(f"-I{folder}" for folder in header_directories()),
    ]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def compile_for_gpu(source: Path, *options: str) -> Any:
    """Compile a CUDA source for the current GPU, by NVRTC."""
    import cupy

    return cupy.RawModule(code=inline(source), options=(*NVRTC_OPTIONS, *options), backend="nvrtc")


# ---- record ------------------------------------------------------------------------------------------------


def environment(gpu: bool) -> dict[str, Any]:
    """Machine and software of a measurement: processors, driver, versions, date, commit; no host name.

    "load" is how many programs wanted to run, on average over the last minute, this one included.
    """
    facts: dict[str, Any] = {
        "cpu": cpu_name(),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
    for library in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            facts[library] = importlib.metadata.version(library)
    if gpu:
        facts |= gpu_facts()
    facts["date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    facts["commit"] = commit()
    with contextlib.suppress(OSError):
        facts["load"] = round(os.getloadavg()[0], 1)
    return facts


def cpu_name() -> str:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor() or platform.machine()


def gpu_facts() -> dict[str, Any]:
    import cupy

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    facts = {
        "gpu": properties["name"].decode(),
        "gpu_memory_GiB": round(properties["totalGlobalMem"] / GIB, 1),
        "cuda_driver": runtime.driverGetVersion(),
        "cuda_runtime": runtime.runtimeGetVersion(),
    }
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        facts["driver"] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return facts


def commit() -> str:
    """The commit of the sources, with a plus sign if files differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


# ---- output ------------------------------------------------------------------------------------------------


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Make the parser of a benchmark's arguments, which has ``--json FILE`` as all have."""
    text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=text)
    parser.add_argument("--json", type=Path)
    return parser


def write_results(path: Path | None, gpu: bool, rows: list[dict[str, Any]], **more: Any) -> None:
    """Write the record of the machine and the rows as JSON, if there is a file to write."""
    if path is None:
        return
    result = {"machine": environment(gpu), "warm_ups": WARM_UPS, "rows": rows, **more}
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def tables_of(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table, in the order of their first rows; the name is empty where rows have none."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        tables.setdefault(row.get("table", ""), []).append({k: v for k, v in row.items() if k != "table"})
    return tables


def cell(value: Any) -> str:
    """A value as a table shows it: four significant digits of a fraction, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"
    return str(value)


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    """The names of all columns, in the order in which they come first."""
    return list(dict.fromkeys(name for row in rows for name in row))


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print each table with aligned columns, under its name if it has one."""
    for name, table in tables_of(rows).items():
        if name:
            print(f"\n{name}")
        columns = columns_of(table)
        lines = [columns, *([cell(row.get(column)) for column in columns] for row in table)]
        widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
        for texts in lines:
            print("  ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True)), flush=True)


def markdown(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of a table of Markdown."""
    columns = columns_of(rows)
    lines = [columns, ["---:"] * len(columns), *([cell(row.get(c)) for c in columns] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]
