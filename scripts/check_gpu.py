"""Compares jobs on GPUs with the same on the CPU, bit for bit, in processes that start cold, many times.

    python scripts/check_gpu.py starts --count 1000          threads that all use the GPU for the first time
    python scripts/check_gpu.py jobs --repeat 5 --gpus 1,2     whole commands that read stores, and write some

A process that has used its GPU already finds kernels, tables and memory ready: faults of the first use show
in new processes only. "starts" computes lazy arrays of CuPy's chunks, small and large, on 8 to 32 threads,
and compares every number with what NumPy's chunks give. "jobs" runs every command that can use a GPU on the
threads of one process and on workers, and compares what it prints and each byte that it writes with a run on
the CPU. --parallel runs that many processes at a time.

Prints a line for each that differs or fails, then how many of how many did; the exit status is 1 if any did.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import hashlib
import json
import math
import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np
from benchmarking import random_on_cpu

import rnsdask as rd
from rnsdask.core.layout import CHUNK_MULTIPLE

TIMEOUT = 300  # seconds a process
PROGRESS = 20  # processes between two lines


# ---- cold starts -------------------------------------------------------------------------------------------

SETS = {
    "8 moduli": rd.ModuliSet.for_bits(256),
    "33 moduli": rd.ModuliSet.for_bits(1030),
    "unsorted": rd.ModuliSet([2**32, 3, 65521, 4294967291, 7, 2**16 + 1]),
    "300 moduli": rd.ModuliSet.for_bits(9000),
}
CHUNKS = (CHUNK_MULTIPLE, 16 * CHUNK_MULTIPLE, 512 * CHUNK_MULTIPLE)
RESIDUES = 2**21  # of an operand, at most
THREADS = (8, 16, 32)


def computations(x: rd.RNSArray, y: rd.RNSArray) -> dict[str, Any]:
    """Arrays of words and reductions, lazy if the operands are."""
    half, other = x // 2, y // 2
    parts = {
        "quotient": half.residues,
        "checked sum": (half + other).residues,
        "flags": rd.add(x, y, overflow="flag")[1],
        "remainder": (x % 1000003).residues,
        "order": x < y,
        "greater": rd.maximum(x, y).residues,
        "maximum": x.max(),
        "sum": y.sum(),
        "place": y.argmin(),
        "greatest": x.topk(3),
        "running maximum": y.cummax().residues,
        "maxima of groups": rd.group_reduce(x, np.arange(x.size) % 97, "max")[1].residues,
        "sums of groups": rd.group_reduce(x // x.size, np.arange(x.size) % 97, "sum")[1].residues,
        "intervals": rd.add(*map(rd.IntervalRNSArray.from_rns, (half // 2, other // 2))).residues,
    }
    with rd.errstate(overflow="wrap"):
        wrapped = {
            "sum of two": x + y,
            "difference": x - y,
            "product": x * y,
            "multiple": x * 3,
            "power": y**5,
            "fused sum": rd.fma(x, y, x),
            "fused difference": rd.mulsub(x, y, y, half),
        }
    return parts | {name: array.residues for name, array in wrapped.items()}


def start(seed: int) -> list[str]:
    """Compute everything at once in this process, and name what differs from NumPy's results."""
    rng = np.random.default_rng(seed)
    name, threads = str(rng.choice(list(SETS))), int(rng.choice(THREADS))
    moduli = SETS[name]
    most = RESIDUES // len(moduli)
    chunk = int(rng.choice([chunk for chunk in CHUNKS if 2 * chunk <= most]))
    count = min(int(rng.integers(2, 25)), most // chunk) * chunk - int(rng.integers(0, 4))
    where = f"seed {seed}: {name}, {count} numbers, chunks of {chunk}, {threads} threads"
    residues = [random_on_cpu(moduli, count, seed=seed * 2 + k) for k in range(2)]
    lazy = list(computations(*(rd.from_residues(chunks_on_gpu(r, chunk), moduli) for r in residues)).items())
    rng.shuffle(lazy)
    found = dask.compute(*(array for _, array in lazy), scheduler="threads", num_workers=threads)
    with patch("rnsdask.backend.has_gpu", return_value=False):  # or reductions would take it
        expected = computations(*(rd.from_residues(r, moduli) for r in residues))
    problems = []
    for (name, _), result in zip(lazy, map(to_host, found), strict=True):
        if wrong := np.count_nonzero(result != to_host(expected[name])):
            problems.append(f"{where}: {name}: {wrong} words of {result.size} differ")
    return problems


def chunks_on_gpu(residues: np.ndarray, chunk: int) -> da.Array:
    import cupy

    chunks = da.from_array(residues, chunks=(-1, chunk), name=False)
    # Each chunk is copied by the task that needs it first, on whatever thread that runs.
    meta = cupy.empty((0, 0), dtype=np.uint32)
    moved: da.Array = chunks.map_blocks(cupy.asarray, dtype=np.uint32, meta=meta)
    return moved


def to_host(result: Any) -> np.ndarray:
    return np.asarray(result.get() if hasattr(result, "get") else result)


def check_starts(args: argparse.Namespace) -> Iterator[list[str]]:
    """Start many new processes, and yield the failures of each."""
    first = args.seed if args.seed is not None else secrets.randbits(32)
    print(f"seeds {first} to {first + args.count - 1}", flush=True)
    with ThreadPoolExecutor(args.parallel) as pool:
        yield from pool.map(cold_start, range(first, first + args.count))


def cold_start(seed: int) -> list[str]:
    status, printed, errors = run([sys.executable, __file__, "start", str(seed)])
    return printed.splitlines() if status in (0, 1) and not errors else [f"seed {seed}: {last_line(errors)}"]


def run(command: list[str], folder: Path | None = None, **environment: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": TIMEOUT, "check": False}
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, **options)
    except subprocess.TimeoutExpired:
        return -1, "", f"no end after {TIMEOUT} s"
    return done.returncode, done.stdout, done.stderr


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


# ---- whole commands ----------------------------------------------------------------------------------------

OUTPUT = "OUTPUT"

JOBS = {
    "subtract": f"eval 'x - y' x=x y=y -o {OUTPUT} --overflow wrap",
    "multiply": f"eval 'x*y' x=x y=y -o {OUTPUT} --overflow wrap",
    "chain": f"eval 'x - y + y*0' x=x y=y -o {OUTPUT} --overflow wrap",
    "fma": f"eval 'x*y + x' x=x y=y -o {OUTPUT} --overflow wrap",
    "mulsub": f"eval 'x*y - y*x' x=x y=y -o {OUTPUT} --overflow wrap",
    "mask": f"eval 'x + y' x=x y=y -o {OUTPUT} --mask {OUTPUT}.mask --overflow flag",
    "quotient": f"eval 'x // 1000003' x=x -o {OUTPUT}",
    "remainder": f"eval 'x % 65537' x=x -o {OUTPUT}",
    "reduced": "eval 'x - y' x=x y=y --max --sum --argmin --overflow wrap",
    "counted": "eval 'x < y' x=x y=y --count",
    "cummax": f"cummax x -o {OUTPUT}",
    "cummin": f"cummin y -o {OUTPUT}",
    "cumsum": f"cumsum small -o {OUTPUT}",
    "max": "max x",
    "min": "min y",
    "sum": "sum x",
    "extend": f"extend x -o {OUTPUT} --bits 4096",
    "to intervals": f"convert x -o {OUTPUT} --to interval",
    "from intervals": f"convert group -o {OUTPUT} --to rns --unsigned",
    "product": "prod x --overflow flag",
    "max of a group": "max group",
    "sum of a group": "sum group",
    "groups": "compare group group",
    "topk": "topk 7 x",
    "compare": "compare x y",
}
"""Commands over many numbers, which bench_jobs.py times."""

SMALL_JOBS = {
    "gcd": "gcd x",
    "stats": "stats x",
    "histogram": "hist y",
    "sort": f"sort y -o {OUTPUT}",
    "transform": f"ntt squares -o {OUTPUT} --axis 0",
    "cyclic product": f"convolve squares squares -o {OUTPUT} --axis 0 --mode cyclic",
    "determinants": f"det squares -o {OUTPUT}",
    "ranks": "rank squares",
    "characteristic polynomials": f"charpoly squares -o {OUTPUT}",
    "solutions": f"solve squares squares -o {OUTPUT}",
    "determinants of integers": "det integers",
    "ranks of integers": "rank integers",
    "characteristic polynomials of integers": f"charpoly integers -o {OUTPUT}",
    "solutions of integers": f"solve integers integers -o {OUTPUT} --denominators {OUTPUT}.d --any",
    "powers": f"powmod keys 65537 {2**511 - 187} -o {OUTPUT}",
    "common factors": f"batchgcd keys -o {OUTPUT}",
}
"""Commands over some matrices, limbs, and others."""

ALL_JOBS = JOBS | SMALL_JOBS
MOST_ROWS, MOST_ROWS_OF_INTEGERS, MOST_KEYS = 192, 48, 20_000
MEASURES = ("seconds", "retries", "backend")

Outcome = dict[str, Any]


def make_stores(
    folder: Path, numbers: int, bits: int, chunk: int | None, jobs: Iterable[str] = ALL_JOBS.values()
) -> None:
    """Make the stores that jobs name: random numbers, some whose running sums are in the range, others."""
    # By their moduli: numbers that are told their bits have a bound, and no sum would be out of range.
    moduli = folder / "moduli.txt"
    moduli.write_text("".join(f"{m}\n" for m in rd.ModuliSet.for_bits(bits)))
    side = min(MOST_ROWS, max(1, math.isqrt(numbers // 8)))
    keys = min(numbers, MOST_KEYS)
    half, most, fields = -(-side // 2), min(side, MOST_ROWS_OF_INTEGERS), "--bits 256 --ntt-length 16"
    options = f"--count {numbers} --moduli {moduli}" + (f" --chunk {chunk}" if chunk else "")
    commands = {
        "x": f"random x {options} --seed 5",
        "y": f"random y {options} --seed 6",
        "small": "eval 'x >> 64' x=x -o small --backend cpu",
        "group": "convert x -o group --to interval --backend cpu",
        "squares": f"random squares --shape 8,{side},{side} --chunk 2,{half},{side} {fields} --seed 7",
        "integers": f"random integers --shape 4,{most},{most} --chunk 1,{most},{most} --bits 64 --seed 8",
        "keys": f"random keys --count {keys} --positional --bits 512 --chunk 1000 --seed 9",
    }
    named = {"x", *(word.partition("=")[2] or word for job in jobs for word in shlex.split(job))}
    lines = [
        f"main({shlex.split(command)}, standalone_mode=False)"
        for store, command in commands.items()
        if store in named
    ]
    program = "\n".join(["from rnsdask.cli import main", *lines])
    status, _, errors = run([sys.executable, "-c", program], folder)
    if status != 0:
        sys.exit(f"error: stores cannot be made: {last_line(errors)}")


def rnsdask(command: str, folder: Path, *options: str, **environment: str) -> tuple[int, str, str]:
    program = [sys.executable, "-c", "from rnsdask.cli import main; main()"]
    return run([*program, *shlex.split(command), *options, "--no-progress"], folder, **environment)


def without_measures(described: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key not in MEASURES}


def outcome(job: str, folder: Path, name: str, *options: str, **environment: str) -> Outcome:
    """Output of a job, and the hash of each file but metadata that it writes."""
    command = ALL_JOBS[job].replace(OUTPUT, name)
    status, printed, errors = rnsdask(command, folder, *options, "--json", **environment)
    if not printed:
        return {"error": last_line(errors), "status": status}
    found: Outcome = json.loads(printed, object_hook=without_measures)
    found = json.loads(json.dumps(found).replace(name, OUTPUT))
    # Not by f"{name}*": the name of a job beside this one may begin with this one's.
    for written in (*folder.glob(name), *folder.glob(f"{name}.*")):
        files = (path for path in sorted(written.rglob("*")) if path.is_file() and path.suffix != ".json")
        for path in files:
            place = str(path.relative_to(folder)).replace(name, OUTPUT, 1)
            found[place] = hashlib.sha256(path.read_bytes()).hexdigest()
        shutil.rmtree(written)
    return found | {"status": status}


def difference(job: str, expected: Outcome, found: Outcome) -> str:
    if "error" in found:
        return f"{job}: {found['error']}"
    names = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
    files = [name for name in names if "/" in name]
    others = [
        f"{name}: {found.get(name)!s:.40} for {expected.get(name)!s:.40}" for name in names if "/" not in name
    ]
    return f"{job}: {'; '.join([f'{len(files)} chunks differ'] * bool(files) + others)}"


def check_jobs(args: argparse.Namespace) -> Iterator[list[str]]:
    """Run many jobs, and yield the failures of each."""
    jobs = args.jobs or list(ALL_JOBS)
    gpus = args.gpus.split(",")
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(args.parallel) as pool:
        folder = Path(temporary)
        make_stores(folder, args.numbers, args.bits, args.chunk)

        def on_cpu(job: str) -> Outcome:
            return outcome(job, folder, f"cpu-{job.replace(' ', '-')}", "--backend", "cpu")

        def on_gpu(number: int, job: str, options: tuple[str, ...]) -> list[str]:
            found = outcome(job, folder, f"gpu-{number:06}", *options)
            same = found == expected[job]
            return [] if same else [f"{' '.join(options)}: {difference(job, expected[job], found)}"]

        expected = dict(zip(jobs, pool.map(on_cpu, jobs), strict=True))
        if failed := [job for job in jobs if "error" in expected[job]]:
            sys.exit(f"error: on the CPU: {failed[0]}: {expected[failed[0]]['error']}")
        ways = [("--backend", "cuda"), *(("--gpus", count) for count in gpus)]
        runs = [(job, way) for _ in range(args.repeat) for job in jobs for way in ways]
        yield from pool.map(lambda numbered: on_gpu(numbered[0], *numbered[1]), enumerate(runs))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    starts = commands.add_parser("starts")
    starts.add_argument("--count", type=int, default=100)
    starts.add_argument("--seed", type=int, help="of the first process; the others count on")
    one = commands.add_parser("start")
    one.add_argument("seed", type=int)
    jobs = commands.add_parser("jobs")
    jobs.add_argument("jobs", nargs="*", choices=[[], *ALL_JOBS], metavar="JOB", help=", ".join(ALL_JOBS))
    jobs.add_argument("--repeat", type=int, default=1)
    jobs.add_argument("--numbers", type=int, default=1_000_000)
    jobs.add_argument("--bits", type=int, default=2048)
    jobs.add_argument("--chunk", type=int, help="numbers; by default as many as a command chooses")
    jobs.add_argument("--gpus", default="all", help="comma-separated: on so many GPUs each, or all")
    for group in (starts, jobs):
        group.add_argument("--parallel", type=int, default=4)
    args = parser.parse_args()
    if args.command == "start":
        problems = start(args.seed)
        print(*problems, sep="\n", end="\n" if problems else "")
        return bool(problems)
    begun = time.perf_counter()
    done = wrong = 0
    for problems in {"starts": check_starts, "jobs": check_jobs}[args.command](args):
        done, wrong = done + 1, wrong + bool(problems)
        for problem in problems:
            print(problem, flush=True)
        if done % PROGRESS == 0:
            print(f"{done} {args.command} done, {wrong} of them wrong", flush=True)
    print(f"{wrong} of {done} {args.command} went wrong, in {time.perf_counter() - begun:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
