"""Repeats the experiments of K. Isupov, Computation 9(2):9, 2021, with this package beside its methods.

    python scripts/papers/bench_paper.py            the CPU, one thread, 50,000 numbers; needs a C++ compiler
    python scripts/papers/bench_paper.py --gpu      the GPU, 5,000,000 numbers as in the paper

Prints Table 3 (time of MAX), Table 4 (auxiliary memory), Figure 5 (gains) and Figures 2 and 3 (refinement
steps) beside the paper's own figures; --json FILE writes them, --plots FOLDER draws them. Every baseline's
answer is compared with the package's before it is timed. On a GPU "ms" is the time of the kernels, "call_ms"
of the whole call, unless one call's kernels spend the budget. On the CPU the paper's methods, which are for
GPUs, are their scalar code in a plain loop, with directed rounding done in software, while this package's
loops are vectorised: their times there show that they work, not what the methods could do. "by_rnsdask" is a
time by this package's, "of_read" that of the plain read by it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

import argparse
import functools
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from benchmark_pages import save_plots
from benchmarking import (
    argument_parser,
    auxiliary_bytes,
    kernel_seconds,
    moduli_set,
    print_rows,
    random_on_cpu,
    random_on_gpu,
    time_calls,
    write_results,
)
from paper_baselines import ACCURACY, CpuBaselines, GpuBaselines, most_refinement_steps
from paper_report import DETAILS, REFINEMENT, paper_tables, plots

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.rns import evaluation, exact

RUNS = {
    "cpu": ("",),
    "gpu": ("--gpu --budget 0.5 --points 64",),
    "tiny": ("--count 500 --sets 4 --refinement-sets 4 --points 3 --repeat 1",),
    "tiny-gpu": ("--gpu --count 500 --sets 4 --refinement-sets 4 --points 3 --repeat 1",),
}

CPU_COUNT, GPU_COUNT = 50_000, 5_000_000


Baselines = Callable[[rd.ModuliSet], Any]


def compiler(gpu: bool, folder: Path) -> Baselines:
    """The baselines for a set, compiled once; libraries for the CPU go to `folder`."""
    return functools.cache(lambda moduli: GpuBaselines(moduli) if gpu else CpuBaselines(moduli, folder))


# ---- MAX ---------------------------------------------------------------------------------------------------


def bench_max(
    moduli: rd.ModuliSet, baselines: Baselines, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Time and auxiliary memory of each way to find the greatest of random numbers."""
    make = random_on_gpu if options.gpu else random_on_cpu
    residues = make(moduli, options.count)
    numbers = number_after_number(residues)
    x = rd.RNSArray(residues, rd.RNS(moduli))
    expected = x.reduce("max").value

    def value(index: int) -> int:
        return exact.value_of(residues[:, index].tolist(), moduli)

    paper = baselines(moduli)
    ways: dict[str, tuple[Callable[[], Any], Any]] = {
        "read": (lambda: kernels_of(residues).read_all(residues), None),
        "rnsdask": (lambda: x.reduce("max").value, None),
        "proposed": (lambda: value(paper.proposed(numbers)), paper),
        "proposed, interleaved": (lambda: value(paper.proposed(residues, interleaved=True)), paper),
        "naive": (lambda: value(paper.naive(numbers)), paper),
        "mixed-radix": (lambda: value(paper.mixed_radix(numbers)), paper),
    }
    rows = []
    for name, (call, owner) in ways.items():
        try:
            answer, memory = auxiliary_bytes(call, options.gpu)
            if name != "read" and answer != expected:
                raise AssertionError(f"{name}: not the maximum, for {len(moduli)} moduli")
            rows.append(measured(name, call, owner, residues, options) | {"auxiliary_MiB": memory / 2**20})
        except MemoryError:
            print(f"{name}, {len(moduli)} moduli: does not fit this machine's memory", flush=True)
    return rows


def number_after_number(residues: Any) -> Any:
    """Lay the residues of each number side by side."""
    return residues.T.copy(order="C")


def measured(
    name: str, call: Callable[[], Any], owner: Any, residues: Any, options: argparse.Namespace
) -> dict[str, Any]:
    row = {"table": DETAILS, "n": len(residues), "numbers": residues.shape[1], "what": name}
    timed = functools.partial(time_calls, call, options.repeat, options.budget)
    if options.gpu:
        kernels = timed(clock=functools.partial(kernel_seconds, owner=owner))
        row |= kernels.row()
        # Of calls that last, one is enough: what is beside their kernels is nothing then.
        row["call_ms"] = None if kernels.median > options.budget else 1e3 * timed().median
    else:
        row |= timed().row()
    return row


def with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each way's time by the package's, and the plain read's time by it."""
    times = {row["what"]: row["ms"] for row in rows}
    return [
        row | {"by_rnsdask": row["ms"] / times["rnsdask"], "of_read": times["read"] / row["ms"]}
        for row in rows
    ]


# ---- refinement steps --------------------------------------------------------------------------------------


def bench_refinement(
    moduli: rd.ModuliSet, baselines: Baselines, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Steps for powers of two, from 1 on, so that the interval's relative width is at most 1e-7."""
    exponents = list(range(0, moduli.bits - 1, -(-(moduli.bits - 1) // options.points)))
    residues = np.array([[pow(2, e, m) for e in exponents] for m in moduli], dtype=np.uint32)
    counts: dict[str, list[int]] = {}
    paper, own = baselines(moduli), residues
    if options.gpu:
        import cupy

        own = cupy.asarray(residues)
    counts["original"] = paper.refinement_steps(own, improved=False).tolist()
    counts["improved"] = paper.refinement_steps(own, improved=True).tolist()
    counts["floating-point"] = evaluation.refinement_steps(own, rd.RNS(moduli), ACCURACY).tolist()
    for bits in (96, 128):
        counts[f"fixed-point, F={bits}"] = [
            fixed_point_steps(residues[:, k : k + 1], moduli, bits) for k in range(len(exponents))
        ]
    columns = zip(exponents, *counts.values(), strict=True)
    most = most_refinement_steps(moduli)
    return [
        {"table": REFINEMENT, "n": len(moduli), "log2_X": e, **dict(zip(counts, steps, strict=True))}
        | {"theorem_1": most if e == 0 else None}
        for e, *steps in columns
    ]


def fixed_point_steps(residues: np.ndarray, moduli: rd.ModuliSet, bits: int) -> int:
    """Steps of the fixed-point evaluation of one number; each shifts by as much as the upper bound allows."""
    steps = scale = 0
    while True:
        bounds = evaluation.fixed_point_interval(residues, moduli, bits, scale)
        low, upp = (sum(int(w) << 32 * k for k, w in enumerate(b[:, 0])) for b in (bounds.low, bounds.upp))
        if upp - low <= ACCURACY * low:
            return steps
        scale += bits - 1 - upp.bit_length()
        steps += 1


def compile_all(baselines: Baselines, names: list[str]) -> None:
    """Compile the baselines for all sets at the same time, for each takes seconds."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: baselines(moduli_set(name)).compile(), dict.fromkeys(names)))


def bench(baselines: Baselines, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if options.gpu:
        compile_all(baselines, [*options.sets.split(","), *options.refinement_sets.split(",")])
    for n in options.sets.split(","):
        rows += with_ratios(bench_max(moduli_set(n), baselines, options))
        if options.gpu:
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()
    for n in options.refinement_sets.split(","):
        rows += bench_refinement(moduli_set(n), baselines, options)
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="the GPU instead of the CPU")
    parser.add_argument("--count", type=int, help="how many numbers")
    parser.add_argument("--sets", default="4,8,16,32,64,128,256", help="sizes of Table 2's sets")
    parser.add_argument("--refinement-sets", default="8,32,64,256", help="the same for Figures 2 and 3")
    parser.add_argument("--points", type=int, default=128, help="powers of two of each of these")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for the calls of one timing")
    parser.add_argument("--plots", type=Path, help="folder for the plots; needs matplotlib")
    options = parser.parse_args()
    options.count = options.count or (GPU_COUNT if options.gpu else CPU_COUNT)
    with tempfile.TemporaryDirectory() as folder:
        rows = bench(compiler(options.gpu, Path(folder)), options)
    print_rows(paper_tables(rows))
    write_results(options.json, options.gpu, rows)
    if options.plots:
        save_plots(plots(rows), options.plots)


if __name__ == "__main__":
    main()
