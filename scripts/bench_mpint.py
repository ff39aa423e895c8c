"""Times additions of signed multiple-precision integers: the experiment of the addition paper.

    python scripts/bench_mpint.py gpu                      resident in GPU memory
    python scripts/bench_mpint.py cpu --threads 2          resident in host memory
    python scripts/bench_mpint.py gpu --count 1000         few numbers: where digits in parallel win

The datasets are those of K. Isupov and V. Knyazkov, "Efficient GPU Implementation of Multiple-Precision
Addition based on Residue Arithmetic" (2020): numbers from 0 to (M-1)/2, from (1-M)/2 to 0, and from (1-M)/2
to (M-1)/2, with the moduli sets of its Table IV, for 128 to 4096 bits. Algorithms 1 and 2 and the
digit-parallel one are rnsdask's, "automatic" is its own choice; "GNU MP" adds lists of gmpy2.mpz, in one
process and in one for each core.

Prints a table, with --json FILE the same figures as JSON, with --plot FOLDER plots like the paper's Figures 4
to 6 (they need matplotlib). A ratio is limit time / time, where the limit is to copy as many bytes as an
addition reads and writes, in the same run. On a GPU there are two: of the kernels alone, and of the whole
call with its synchronisation.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_reduce import kernel_seconds, machine, moduli_set, print_table, random_on_gpu, timed

import rnsdask as rd
from rnsdask.mpint import arith, convert, layout

DATASETS = ("non-negative", "non-positive", "mixed")
ALGORITHMS = {"algorithm 1": 1, "algorithm 2": 2, "digits": "digits", "automatic": None}
BITS_PER_MODULUS = 16


def columns_of_dataset(dataset: str, residues: Any, moduli: rd.ModuliSet) -> Any:
    """Numbers of a dataset from random residues, on their processor."""
    columns = convert.columns_of_residues(residues, moduli, signed=True)
    if dataset == "non-negative":
        return arith.absolute(columns, moduli)
    if dataset == "non-positive":
        return arith.negative(arith.absolute(columns, moduli), moduli)
    return columns


def moved_bytes(moduli: rd.ModuliSet, count: int) -> int:
    """Bytes that an addition reads and writes: two operands, a result, and its flag."""
    return count * (3 * 4 * layout.rows_of(moduli) + 1)


def row_of(what: str, dataset: str, n: int, count: int, **figures: Any) -> dict[str, Any]:
    return {"dataset": dataset, "n": n, "bits": BITS_PER_MODULUS * n, "what": what, "count": count, **figures}


def check_agreement(x: Any, y: Any, moduli: rd.ModuliSet) -> None:
    """Raise if the algorithms' results differ in a bit."""
    first, *others = (arith.apply("add", x, y, moduli, "raise", a) for a in ALGORITHMS.values())
    if not all(bool((first == other).all()) for other in others):
        raise AssertionError(f"the algorithms disagree for {moduli!r}")


# ---- GPU ---------------------------------------------------------------------------------------------------


def event_seconds(function: Callable[[], Any], repeat: int) -> float:
    """Median of the seconds that a call takes on the GPU, between CUDA events."""
    import cupy

    times = []
    for _ in range(repeat + 1):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        function()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return statistics.median(times[1:])


def bench_gpu(dataset: str, moduli: rd.ModuliSet, count: int, repeat: int) -> list[dict[str, Any]]:
    import cupy

    def numbers(shift: int) -> Any:
        # random_on_gpu gives the same numbers each time, so that the second operand is another part of them.
        residues = random_on_gpu(moduli, 2 * count)[:, shift : shift + count]
        return columns_of_dataset(dataset, cupy.ascontiguousarray(residues), moduli)

    x, y = numbers(0), numbers(count)
    check_agreement(x, y, moduli)
    source = cupy.zeros(moved_bytes(moduli, count) // 8, dtype=cupy.uint32)
    target = cupy.empty_like(source)
    limit = event_seconds(lambda: cupy.copyto(target, source), repeat)
    rows = []
    for what, algorithm in ALGORITHMS.items():

        def call(algorithm: Any = algorithm) -> Any:
            result = arith.apply("add", x, y, moduli, "raise", algorithm)
            cupy.cuda.Device().synchronize()
            return result

        wall = statistics.median(timed(call, repeat))
        kernel = statistics.median(kernel_seconds(call) for _ in range(repeat))
        rows.append(
            row_of(
                what,
                dataset,
                len(moduli),
                count,
                ms=1e3 * wall,
                kernel_ms=1e3 * kernel,
                additions_per_s=count / kernel,
                ratio=limit / kernel,
                call_ratio=limit / wall,
            )
        )
    return rows


# ---- CPU ---------------------------------------------------------------------------------------------------


def bench_cpu(
    dataset: str, moduli: rd.ModuliSet, count: int, repeat: int, threads: int
) -> list[dict[str, Any]]:
    residues = [rd.random(moduli, count, seed=seed).residues.compute() for seed in (1, 2)]
    x, y = (columns_of_dataset(dataset, r, moduli) for r in residues)
    del residues
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
    targets = [np.empty(words, dtype=np.uint32) for _ in pairs]
    sources = [np.zeros(words, dtype=np.uint32) for _ in pairs]
    rows = []
    with ThreadPoolExecutor(workers) as pool:

        def add(algorithm: Any) -> None:
            list(pool.map(lambda pair: arith.apply("add", *pair, moduli, "raise", algorithm), pairs))

        limit = statistics.median(timed(lambda: list(pool.map(np.copyto, targets, sources)), repeat))
        for what, algorithm in ALGORITHMS.items():
            seconds = statistics.median(timed(partial(add, algorithm), repeat))
            figures = {"threads": workers, "ms": 1e3 * seconds, "additions_per_s": count / seconds}
            rows.append(row_of(what, dataset, len(moduli), count, **figures, ratio=limit / seconds))
    return rows


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


def gmp_seconds(dataset: str, product: int, count: int, repeat: int, workers: int) -> float:
    """Median of the seconds from the first worker's start to the last one's end."""
    commands = ([dataset, hex(product), str(count), str(seed)] for seed in range(workers))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *command],
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
    return statistics.median(seconds[1:])


def bench_gmp(
    dataset: str, moduli: rd.ModuliSet, count: int, repeat: int, threads: int
) -> list[dict[str, Any]]:
    rows = []
    for workers in sorted({1, threads}):
        part = -(-count // workers)
        seconds = gmp_seconds(dataset, moduli.product, part, repeat, workers)
        total = part * workers
        figures = {"threads": workers, "ms": 1e3 * seconds, "additions_per_s": total / seconds}
        rows.append(row_of("GNU MP", dataset, len(moduli), total, **figures))
    return rows


# ---- output ------------------------------------------------------------------------------------------------


def plot(rows: list[dict[str, Any]], folder: Path) -> None:
    """Additions a second over the precision, a figure for each dataset."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for number, dataset in enumerate(DATASETS, 1):
        chosen = [row for row in rows if row["dataset"] == dataset]
        if not chosen:
            continue
        figure, axes = pyplot.subplots()
        for what, threads in dict.fromkeys((row["what"], row.get("threads")) for row in chosen):
            line = [row for row in chosen if (row["what"], row.get("threads")) == (what, threads)]
            label = what if threads is None else f"{what}, {threads} core{'s' * (threads > 1)}"
            points = [(row["bits"], row["additions_per_s"]) for row in line]
            axes.plot(*zip(*points, strict=True), marker="o", label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("Precision in bits")
        axes.set_ylabel("Additions a second")
        axes.set_title(f"Dataset-{number}: {dataset} inputs")
        axes.legend()
        axes.grid(visible=True)
        figure.savefig(folder / f"dataset_{number}.png", dpi=150)
        pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("gpu", "cpu"))
    parser.add_argument("--sets", default="8,16,32,64,128,256", help="numbers of moduli")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--count", type=int, default=1_000_000, help="numbers of each array")
    parser.add_argument("--gmp-count", type=int, help="the same for GNU MP; 0 for none")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="besides one")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="folder for the plots")
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
    names = list(dict.fromkeys(name for row in rows for name in row))
    print_table([{name: row.get(name, "") for name in names} for row in rows])
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(options.kind), "rows": rows}, indent=1) + "\n")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
