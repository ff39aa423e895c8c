"""Times MAX, MIN and SUM beside the limit of the same run: reading the same bytes and nothing else.

    python scripts/bench_reduce.py gpu --gib 16            arrays resident in GPU memory
    python scripts/bench_reduce.py cpu --gib 1             arrays resident in host memory
    python scripts/bench_reduce.py zarr --gib 4            a store in the page cache, with peak memory

Prints a table, and with --json FILE the same figures as JSON. A ratio is limit time / product time, so 1 is
the speed of a plain read. On a GPU there are two: of the kernels alone, and of the whole call with its
synchronisation.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import numpy as np
from benchmarking import (
    GIB,
    Timing,
    argument_parser,
    kernel_and_call,
    kernel_seconds,
    moduli_set,
    print_rows,
    random_on_gpu,
    time_calls,
    write_results,
)

import rnsdask as rd
from rnsdask.backend import kernels_of

OPERATIONS = ("max", "min", "sum")

RUNS = {
    "cpu": (
        "cpu --gib 0.5 --sets 8,64,256 --threads 1",
        "cpu --gib 0.5 --sets 8,64,256",
        "zarr --gib 1 --sets 64 --repeat 5",
    ),
    "gpu": ("gpu --gib 8",),
    "tiny": (
        "cpu --gib 0.0001 --sets 8,64b --repeat 1 --threads 2",
        "zarr --gib 0.0001 --sets 64b --repeat 1 --threads 2 --operations max",
    ),
    "tiny-gpu": ("gpu --gib 0.002 --sets 8,64b --repeat 1",),
}


# ---- GPU ---------------------------------------------------------------------------------------------------


def bench_gpu(moduli: rd.ModuliSet, gib: float, operations: list[str], repeat: int) -> list[dict[str, Any]]:
    residues = random_on_gpu(moduli, int(gib * GIB) // (4 * len(moduli)) // 128 * 128)
    x = rd.RNSArray(residues, rd.RNS(moduli))
    calls = {"read": lambda: kernels_of(residues).read_all(residues)}
    calls |= {op: lambda op=op: x.reduce(op) for op in operations}
    rows, limit = [], {}
    for name, call in calls.items():
        wall, kernel = time_calls(call, repeat), time_calls(call, repeat, clock=kernel_seconds)
        limit = limit or {"wall": wall.median, "kernel": kernel.median}
        rows.append(
            {
                "what": name,
                "n": len(moduli),
                "bytes": residues.nbytes,
                **kernel_and_call(kernel, wall),
                "gb_per_s": residues.nbytes / kernel.median / 1e9,
                "kernel_ratio": limit["kernel"] / kernel.median,
                "call_ratio": limit["wall"] / wall.median,
            }
        )
    return rows


# ---- CPU ---------------------------------------------------------------------------------------------------


def bench_cpu(
    moduli: rd.ModuliSet, gib: float, operations: list[str], repeat: int, threads: int
) -> list[dict[str, Any]]:
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
            jobs = {op: lambda op=op: x.reduce(op).compute() for op in operations}
            times = {name: time_calls(call, repeat) for name, call in (reads | jobs).items()}
    return [
        {
            "what": name,
            "n": len(moduli),
            "threads": threads,
            "bytes": x.nbytes,
            **timing.row(),
            "gb_per_s": x.nbytes / timing.median / 1e9,
            "ratio": times["read"].median / timing.median,
        }
        for name, timing in times.items()
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
    command = [sys.executable, "-P", "-c", JOB, str(path), operation, str(threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench_zarr(
    moduli: rd.ModuliSet, gib: float, operations: list[str], repeat: int, threads: int, folder: Path
) -> list[dict[str, Any]]:
    path = folder / f"n{len(moduli)}.zarr"
    x = rd.random(moduli, int(gib * GIB) // (4 * len(moduli)), seed=1, chunks="auto")
    with dask.config.set(scheduler="threads", num_workers=threads):
        x.to_zarr(path)
    chunk_bytes = 4 * len(moduli) * x.chunks[0][0]
    files = [f for f in path.rglob("*") if f.is_file() and f.name != "zarr.json"]
    allowed = (threads + 1) * 2.5 * chunk_bytes + 400e6
    read_files(files, threads)
    rows = []
    for operation in operations:
        # Taken in turn, so that the machine's other load meets both alike.
        pairs = [(read_files(files, threads), run_job(path, operation, threads)) for _ in range(repeat)]
        limit = statistics.median(read for read, _ in pairs)
        job_times = Timing(tuple(job["seconds"] for _, job in pairs))
        rows.append(
            {
                "what": operation,
                "n": len(moduli),
                "threads": threads,
                "bytes": x.nbytes,
                "files_s": limit,
                "job_s": job_times.median,
                "spread": job_times.spread,
                "calls": repeat,
                "job/files": job_times.median / limit,
                "peak_MB": max(job["peak"] for _, job in pairs) / 1e6,
                "allowed_MB": allowed / 1e6,
            }
        )
    shutil.rmtree(path)
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("gpu", "cpu", "zarr"))
    parser.add_argument("--sets", default="8,32,64,128,256", help="sizes of Table 2's sets, or e.g. 2048b")
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    parser.add_argument("--gib", type=float, default=1.0, help="size of each array")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, help="where the store goes; default a temporary folder")
    options = parser.parse_args()
    operations = options.operations.split(",")
    if unknown := set(operations) - set(OPERATIONS):
        parser.error(f"--operations must be of {', '.join(OPERATIONS)}, got {', '.join(sorted(unknown))}")
    rows: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        moduli = moduli_set(name)
        what = (moduli, options.gib, operations, options.repeat)
        if options.kind == "gpu":
            rows += bench_gpu(*what)
        elif options.kind == "cpu":
            rows += bench_cpu(*what, options.threads)
        else:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                rows += bench_zarr(*what, options.threads, Path(folder))
    print_rows(rows)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
