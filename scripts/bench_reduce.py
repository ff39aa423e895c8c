"""Times MAX, MIN and SUM beside the limit of the same run: reading the same bytes and nothing else.

    python scripts/bench_reduce.py gpu --gib 16            arrays resident in GPU memory
    python scripts/bench_reduce.py cpu --gib 1             arrays resident in host memory
    python scripts/bench_reduce.py zarr --gib 4            a store in the page cache, with peak memory

Prints a table, and with --json FILE the same figures as JSON. A ratio is limit time / product time, so 1 is
the speed of a plain read. On a GPU there are two: of the kernels alone, and of the whole call with its
synchronisation.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import numpy as np

import rnsdask as rd
from rnsdask.backend import kernels_of

# First moduli of the sets of Table 2 in K. Isupov, Computation 9 (2021).
TABLE2_STARTS = {4: 65947, 8: 65725, 16: 65599, 32: 65533, 64: 65379, 128: 65139, 256: 64491}
OPERATIONS = ("max", "min", "sum")
GIB = 2**30


def moduli_set(name: str) -> rd.ModuliSet:
    """``"64"``: the set of 64 moduli of Table 2; ``"2048b"``: the fewest moduli of 32 bits for 2048 bits."""
    if name.endswith("b"):
        return rd.ModuliSet.for_bits(int(name[:-1]))
    return rd.ModuliSet.consecutive_odd(TABLE2_STARTS[int(name)], int(name))


def timed(function: Callable[[], Any], repeat: int) -> list[float]:
    """Seconds of each call, after one that warms up."""
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times


# ---- GPU ---------------------------------------------------------------------------------------------------


def kernel_seconds(function: Callable[[], Any]) -> float:
    """Seconds of the kernels that a call launches, between CUDA events around each of them."""
    import cupy

    from rnsdask.backend import cuda

    launch, events = cuda.launch, []

    def recorded(*arguments: Any, **options: Any) -> Any:
        pair = cupy.cuda.Event(), cupy.cuda.Event()
        pair[0].record()
        result = launch(*arguments, **options)
        pair[1].record()
        events.append(pair)
        return result

    cuda.launch = recorded
    try:
        function()
    finally:
        cuda.launch = launch
    cupy.cuda.Device().synchronize()
    return sum(cupy.cuda.get_elapsed_time(*pair) for pair in events) / 1e3


def random_on_gpu(moduli: rd.ModuliSet, count: int) -> Any:
    import cupy

    residues = cupy.empty((len(moduli), count), dtype=cupy.uint32)
    generator = cupy.random.default_rng(1)
    for row, m in zip(residues, moduli, strict=True):
        for start in range(0, count, 2**26):
            part = row[start : start + 2**26]
            part[...] = generator.random(part.size) * m  # below m, for a double has more bits than m
    return residues


def bench_gpu(moduli: rd.ModuliSet, gib: float, repeat: int) -> list[dict[str, Any]]:
    residues = random_on_gpu(moduli, int(gib * GIB) // (4 * len(moduli)) // 128 * 128)
    x = rd.RNSArray(residues, moduli)
    calls = {"read": lambda: kernels_of(residues).read_all(residues)}
    calls |= {op: lambda op=op: x.reduce(op) for op in OPERATIONS}
    rows, limit = [], {}
    for name, call in calls.items():
        wall = statistics.median(timed(call, repeat))
        kernel = statistics.median(kernel_seconds(call) for _ in range(repeat))
        limit = limit or {"wall": wall, "kernel": kernel}
        rows.append(
            {
                "what": name,
                "n": len(moduli),
                "bytes": residues.nbytes,
                "kernel_ms": 1e3 * kernel,
                "call_ms": 1e3 * wall,
                "gb_per_s": residues.nbytes / kernel / 1e9,
                "kernel_ratio": limit["kernel"] / kernel,
                "call_ratio": limit["wall"] / wall,
            }
        )
    return rows


# ---- CPU ---------------------------------------------------------------------------------------------------


def bench_cpu(moduli: rd.ModuliSet, gib: float, repeat: int, threads: int) -> list[dict[str, Any]]:
    count = int(gib * GIB) // (4 * len(moduli))
    with dask.config.set(scheduler="threads", num_workers=threads):
        chunk = max(128, count // (8 * threads) // 128 * 128)
        x = rd.random(moduli, count, seed=1, chunks=chunk).persist()
        blocks = list(dask.compute(*x.residues.to_delayed().flat))
        with ThreadPoolExecutor(threads) as pool:
            reads: dict[str, Callable[[], Any]] = {
                "read": lambda: list(pool.map(lambda b: kernels_of(b).read_all(b), blocks)),
                "numpy.sum": lambda: list(pool.map(lambda b: b.sum(dtype=np.uint64), blocks)),
            }
            jobs = {op: lambda op=op: x.reduce(op).compute() for op in OPERATIONS}
            times = {name: timed(call, repeat) for name, call in (reads | jobs).items()}
    limit = statistics.median(times["read"])
    return [
        {
            "what": name,
            "n": len(moduli),
            "threads": threads,
            "bytes": x.nbytes,
            "ms": 1e3 * statistics.median(seconds),
            "gb_per_s": x.nbytes / statistics.median(seconds) / 1e9,
            "ratio": limit / statistics.median(seconds),
        }
        for name, seconds in times.items()
    ]


# ---- Zarr --------------------------------------------------------------------------------------------------


def read_files(files: list[Path], threads: int) -> float:
    """Seconds to read files whole, as plainly as Python can, with so many threads."""

    def read(path: Path) -> int:
        return len(path.read_bytes())

    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        sum(pool.map(read, files))
        return time.perf_counter() - start


# Run in a process of its own, so that its peak memory is the job's.
JOB = """
import json, resource, sys, time
import dask, rnsdask as rd
path, operation, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
with dask.config.set(scheduler="threads", num_workers=threads):
    x = rd.open_zarr(path)
    start = time.perf_counter()
    result = x.reduce(operation, backend="cpu").compute()
    seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def run_job(path: Path, operation: str, threads: int) -> dict[str, Any]:
    command = [sys.executable, "-c", JOB, str(path), operation, str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench_zarr(
    moduli: rd.ModuliSet, gib: float, repeat: int, threads: int, folder: Path
) -> list[dict[str, Any]]:
    path = folder / f"n{len(moduli)}.zarr"
    x = rd.random(moduli, int(gib * GIB) // (4 * len(moduli)), seed=1)
    with dask.config.set(scheduler="threads", num_workers=threads):
        x.to_zarr(path)
    chunk_bytes = 4 * len(moduli) * x.chunks[0][0]
    files = [f for f in path.rglob("*") if f.is_file() and f.name != "zarr.json"]
    allowed = (threads + 1) * 2.5 * chunk_bytes + 400e6
    read_files(files, threads)
    rows = []
    for operation in OPERATIONS:
        # Taken in turn, so that the machine's other load meets both alike.
        pairs = [(read_files(files, threads), run_job(path, operation, threads)) for _ in range(repeat)]
        limit = statistics.median(read for read, _ in pairs)
        seconds = statistics.median(job["seconds"] for _, job in pairs)
        rows.append(
            {
                "what": operation,
                "n": len(moduli),
                "threads": threads,
                "bytes": x.nbytes,
                "files_s": limit,
                "job_s": seconds,
                "job/files": seconds / limit,
                "peak_MB": max(job["peak"] for _, job in pairs) / 1e6,
                "allowed_MB": allowed / 1e6,
            }
        )
    shutil.rmtree(path)
    return rows


# ---- output ------------------------------------------------------------------------------------------------


def machine(kind: str) -> dict[str, Any]:
    """What the figures were measured on."""
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "rnsdask": rd.__version__,
    }
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts["cpu"] = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    if kind == "gpu":
        import cupy

        facts["gpu"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        facts["cuda_driver"] = cupy.cuda.runtime.driverGetVersion()
    return facts


def print_table(rows: list[dict[str, Any]]) -> None:
    def text(value: Any) -> str:
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    names = list(rows[0])
    widths = [max(len(name), *(len(text(row[name])) for row in rows)) for name in names]
    for cells in (names, *([text(row[name]) for name in names] for row in rows)):
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("gpu", "cpu", "zarr"))
    parser.add_argument("--sets", default="8,32,64,128,256", help="sizes of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--gib", type=float, default=1.0, help="size of each array")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, help="where the store goes; default a temporary folder")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        moduli = moduli_set(name)
        if options.kind == "gpu":
            rows += bench_gpu(moduli, options.gib, options.repeat)
        elif options.kind == "cpu":
            rows += bench_cpu(moduli, options.gib, options.repeat, options.threads)
        else:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                rows += bench_zarr(moduli, options.gib, options.repeat, options.threads, Path(folder))
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(options.kind), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
