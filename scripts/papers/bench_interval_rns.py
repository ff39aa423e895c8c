"""Times additions of signed multiple-precision integers: the experiment of the addition paper.

    python scripts/papers/bench_interval_rns.py gpu                 resident in GPU memory
    python scripts/papers/bench_interval_rns.py cpu --threads 2     resident in host memory
    python scripts/papers/bench_interval_rns.py gpu --count 1000    few numbers: where digits in parallel win

The datasets are those of K. Isupov and V. Knyazkov, "Efficient GPU Implementation of Multiple-Precision
Addition based on Residue Arithmetic" (2020): numbers from 0 to (M-1)/2, from (1-M)/2 to 0, and from (1-M)/2
to (M-1)/2, with the moduli sets of its Table IV, for 128 to 4096 bits. Algorithms 1 and 2 and the
digit-parallel one are rnsdask's, "automatic" is its own choice; "GNU MP" adds lists of gmpy2.mpz, in one
process and in one for each core.

Prints the additions a second of each dataset as in the paper's Figures 4 to 6, and the times of each way;
--json FILE writes them, --plots FOLDER draws them. A ratio is limit time / time, where the limit "copy" is to
copy as many bytes as an addition reads and writes, in the same run. On a GPU there are two: of the kernels
alone, between CUDA events, and of the whole call with its synchronisation. "reference_ms" is the time that
the paper authors' own library took on an H200 for 1,000,000 numbers by their Algorithm 2, "reference_factor"
that time by the kernels'.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from benchmark_pages import save_plots
from benchmarking import (
    Copy,
    Timing,
    argument_parser,
    kernel_and_call,
    kernel_seconds,
    moduli_set,
    print_rows,
    random_on_cpu,
    random_on_gpu,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)
from interval_rns_report import BITS_PER_MODULUS, DATASETS, DETAILS, interval_rns_tables, plots

import rnsdask as rd
from rnsdask.interval_rns import arithmetic, convert, layout

RUNS = {
    "cpu": ("cpu --count 100000 --gmp-count 50000 --repeat 5",),
    "gpu": ("gpu --gmp-count 100000 --repeat 5",),
    "tiny": ("cpu --count 100 --sets 8 --datasets mixed --repeat 1 --threads 2",),
    "tiny-gpu": ("gpu --count 100 --sets 8,32 --repeat 1 --threads 2",),
}

ALGORITHMS = {"algorithm 1": 1, "algorithm 2": 2, "digits": "digits", "automatic": None}

# Milliseconds of 1,000,000 additions of mixed signs, by number of moduli.
REFERENCE_MS = {8: 0.272, 32: 0.752, 64: 1.380, 128: 3.664, 256: 7.360}
REFERENCE_OF = ("algorithm 2", "mixed", 1_000_000)


def columns_of_dataset(dataset: str, residues: Any, moduli: rd.ModuliSet) -> Any:
    """Numbers of a dataset from random residues, on their processor."""
    columns = convert.columns_of_residues(residues, rd.RNS(moduli, signed=True))
    if dataset == "non-negative":
        return arithmetic.absolute(columns, moduli)
    if dataset == "non-positive":
        return arithmetic.negative(arithmetic.absolute(columns, moduli), moduli)
    return columns


def moved_bytes(moduli: rd.ModuliSet, count: int) -> int:
    """Bytes that an addition reads and writes: two operands, a result, and its flag."""
    return count * (3 * 4 * layout.rows_of(moduli) + 1)


def row_of(what: str, dataset: str, n: int, count: int, **figures: Any) -> dict[str, Any]:
    facts = {"table": DETAILS, "dataset": dataset, "n": n, "bits": BITS_PER_MODULUS * n, "what": what}
    return {**facts, "count": count, **figures}


def check_agreement(x: Any, y: Any, moduli: rd.ModuliSet) -> None:
    """Raise if the algorithms' results differ in a bit."""
    first, *others = (arithmetic.apply("add", x, y, moduli, "raise", a) for a in ALGORITHMS.values())
    if not all(bool((first == other).all()) for other in others):
        raise AssertionError(f"the algorithms disagree for {moduli!r}")


# ---- GPU ---------------------------------------------------------------------------------------------------


def bench_gpu(dataset: str, moduli: rd.ModuliSet, count: int, repeat: int) -> list[dict[str, Any]]:
    import cupy

    x, y = (columns_of_dataset(dataset, random_on_gpu(moduli, count, seed), moduli) for seed in (1, 2))
    check_agreement(x, y, moduli)
    copy = Copy(cupy.zeros(moved_bytes(moduli, count) // 8, dtype=cupy.uint32))
    measures: dict[Any, Callable[[], float]] = {
        ("kernel", "copy"): partial(kernel_seconds, copy, copy),
        ("call", "copy"): partial(waited_seconds, copy),
    }
    for what, algorithm in ALGORITHMS.items():
        call = partial(arithmetic.apply, "add", x, y, moduli, "raise", algorithm)
        measures["kernel", what] = partial(kernel_seconds, call)
        measures["call", what] = partial(waited_seconds, call)
    times = time_in_turn(measures, repeat)
    rows = []
    for what in ("copy", *ALGORITHMS):
        kernel, call = times["kernel", what], times["call", what]
        figures = kernel_and_call(kernel, call) | reference(what, dataset, len(moduli), count, kernel)
        figures["additions_per_s"] = count / kernel.median
        figures["kernel_ratio"] = times["kernel", "copy"].median / kernel.median
        figures["call_ratio"] = times["call", "copy"].median / call.median
        rows.append(row_of(what, dataset, len(moduli), count, **figures))
    cupy.get_default_memory_pool().free_all_blocks()
    return rows


def reference(what: str, dataset: str, n: int, count: int, kernel: Timing) -> dict[str, Any]:
    """The columns that compare with the authors' library, where its time is known."""
    if (what, dataset, count) != REFERENCE_OF or n not in REFERENCE_MS:
        return {}
    return {"reference_ms": REFERENCE_MS[n], "reference_factor": REFERENCE_MS[n] / (1e3 * kernel.median)}


# ---- CPU ---------------------------------------------------------------------------------------------------


def bench_cpu(
    dataset: str, moduli: rd.ModuliSet, count: int, repeat: int, threads: int
) -> list[dict[str, Any]]:
    x, y = (columns_of_dataset(dataset, random_on_cpu(moduli, count, seed), moduli) for seed in (1, 2))
    check_agreement(x, y, moduli)
    rows: list[dict[str, Any]] = []
    for workers in sorted({1, threads}):
        rows += bench_threads(dataset, x, y, moduli, repeat, workers)
    return rows


def bench_threads(
    dataset: str, x: Any, y: Any, moduli: rd.ModuliSet, repeat: int, workers: int
) -> list[dict[str, Any]]:
    """Each thread adds a part of the numbers."""
    count = x.shape[1]
    columns = zip(np.array_split(x, workers, 1), np.array_split(y, workers, 1), strict=True)
    pairs = [(np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in columns]
    words = moved_bytes(moduli, count) // 8 // workers
    copies = [Copy(np.zeros(words, dtype=np.uint32)) for _ in pairs]
    with ThreadPoolExecutor(workers) as pool:

        def copy() -> None:
            list(pool.map(Copy.launch, copies))

        def add(algorithm: Any) -> None:
            list(pool.map(lambda pair: arithmetic.apply("add", *pair, moduli, "raise", algorithm), pairs))

        calls = {"copy": copy} | {what: partial(add, algorithm) for what, algorithm in ALGORITHMS.items()}
        measures = {what: partial(wall_seconds, call) for what, call in calls.items()}
        times = time_in_turn(measures, repeat)
    return [
        row_of(
            what,
            dataset,
            len(moduli),
            count,
            threads=workers,
            **timing.row(),
            additions_per_s=count / timing.median,
            ratio=times["copy"].median / timing.median,
        )
        for what, timing in times.items()
    ]


# ---- GNU MP ------------------------------------------------------------------------------------------------


# Each worker is a process of its own, which tells when it is ready and then adds at every line it reads.
WORKER = """
import operator, sys, time
import gmpy2
dataset, product, count, seed = sys.argv[1], int(sys.argv[2], 16), int(sys.argv[3]), int(sys.argv[4])
state, half = gmpy2.random_state(seed), (product - 1) // 2
def number():
    value = gmpy2.mpz_random(state, half + 1)
    negative = dataset == "non-positive" or (dataset == "mixed" and gmpy2.mpz_random(state, 2))
    return -value if negative else value
x, y = ([number() for _ in range(count)] for _ in range(2))
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    z = list(map(operator.add, x, y))
    print(start, time.perf_counter(), flush=True)
    del z
"""


def time_gmp(dataset: str, product: int, count: int, repeat: int, workers: int) -> Timing:
    """Seconds from the first worker's start to the last one's end."""
    commands = ([dataset, hex(product), str(count), str(seed)] for seed in range(workers))
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", WORKER, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for process in processes:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("a GNU MP worker has failed")
    seconds = []
    for _ in range(repeat + 1):
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        spans = [tuple(map(float, process.stdout.readline().split())) for process in processes]
        seconds.append(max(end for _, end in spans) - min(start for start, _ in spans))
    for process in processes:
        process.communicate()
    return Timing(tuple(seconds[1:]))


def bench_gmp(
    dataset: str, moduli: rd.ModuliSet, count: int, repeat: int, threads: int
) -> list[dict[str, Any]]:
    rows = []
    for workers in sorted({1, threads}):
        part = -(-count // workers)
        timing, total = time_gmp(dataset, moduli.product, part, repeat, workers), part * workers
        figures = {"threads": workers, **timing.row(), "additions_per_s": total / timing.median}
        rows.append(row_of("GNU MP", dataset, len(moduli), total, **figures))
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("gpu", "cpu"))
    parser.add_argument("--sets", default="8,16,32,64,128,256", help="numbers of moduli")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--count", type=int, default=1_000_000, help="numbers of each array")
    parser.add_argument("--gmp-count", type=int, help="the same for GNU MP; 0 for none")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="besides one")
    parser.add_argument("--plots", type=Path, help="folder for the plots; needs matplotlib")
    options = parser.parse_args()
    gmp_count = options.count if options.gmp_count is None else options.gmp_count
    rows: list[dict[str, Any]] = []
    for dataset in options.datasets.split(","):
        if dataset not in DATASETS:
            parser.error(f"--datasets must be among {', '.join(DATASETS)}, got {dataset!r}")
        for name in options.sets.split(","):
            moduli = moduli_set(name)
            if options.kind == "gpu":
                rows += bench_gpu(dataset, moduli, options.count, options.repeat)
            else:
                rows += bench_cpu(dataset, moduli, options.count, options.repeat, options.threads)
            if gmp_count:
                rows += bench_gmp(dataset, moduli, gmp_count, options.repeat, options.threads)
    print_rows(interval_rns_tables(rows))
    write_results(options.json, options.kind == "gpu", rows)
    if options.plots:
        save_plots(plots(rows), options.plots)


if __name__ == "__main__":
    main()
