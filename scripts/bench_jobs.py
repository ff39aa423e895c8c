"""Times whole commands on one GPU and on the CPU of the same host, each in a process that starts cold.

    python scripts/bench_jobs.py                        every command on 0.78 GB
    python scripts/bench_jobs.py max chain --gpus 1,2   two of those of check_gpu.py, also on two GPUs
    python scripts/bench_jobs.py --steady               the jobs alone, in one process, in a tenth of the time
    python scripts/bench_jobs.py det powmod --steady --gpus 1,2 --no-cpu   GPUs alone

Stores are local, and in the page cache once the first run has read them. Runs on the processors take turns.
Of each command the least of all runs: the wall time of its process (cpu_s, gpu1_s), and that of its job
alone, without the start of Python, Dask and CUDA (cpu_job_s, gpu1_job_s). "of cpu" is cpu_job_s by
gpu1_job_s; with --no-cpu, "of gpu1" is that of the first number of GPUs by another's. The time to the first
launch of a kernel is that of the first run, whose kernels are not compiled yet, and the least of the others.

With --steady, this process runs all commands, each once on the first --numbers before it is timed: then
libraries are imported, the GPU has its context and memory, kernels are compiled, and the seconds are those of
the job. More than one GPU are those of one cluster for all commands.

Prints a table, and with --json FILE the same figures as JSON.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import contextlib
import functools
import io
import json
import math
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarking import argument_parser, cell, print_rows, write_results
from check_gpu import JOBS, OUTPUT, last_line, make_stores, rnsdask, run

import rnsdask as rd
from rnsdask.cli import main as rnsdask_command
from rnsdask.cluster.connecting import connect

MORE_JOBS = {
    "bound": "bound x",
    "shrink": f"shrink small -o {OUTPUT} --bits 1990",
    "convolve": f"convolve factors factors -o {OUTPUT}",
    "ntt": f"ntt field -o {OUTPUT}",
    "det": "det matrices",
    "charpoly": f"charpoly matrices -o {OUTPUT}",
    "powmod": f"powmod limbs {2**255 - 21} {2**255 - 19} -o {OUTPUT}",  # inverses modulo a prime
}

LINE = 2**14  # elements that are transformed together
FACTORS = 2**14  # numbers that are convolved
SIDE = 2**10  # rows of a matrix

STAMP = "RNSDASK_FIRST_LAUNCH"
CACHE = "compiled"  # folder of a command's kernels

# Runs a command, and writes into a file when it launched its first kernel, if it does.
PROGRAM = f"""
import importlib.abc, importlib.util, os, sys, time

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "rnsdask.backend.cuda.launching":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            launch = module.launch
            def first(*arguments, **options):
                module.launch = launch
                result = launch(*arguments, **options)
                with open(os.environ["{STAMP}"], "w") as file:
                    file.write(repr(time.time()))
                return result
            module.launch = first
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
from rnsdask.cli import main
main()
"""

RUNS = {
    "cpu": ("max sum compare topk chain cummax convolve --gpus= --repeat 1",),
    "gpu": ("max sum compare topk chain cummax convolve --repeat 1",),
    "tiny": (
        "max --gpus= --numbers 3000 --bits 256 --repeat 1",
        "compare chain det charpoly powmod --gpus= --numbers 3000 --bits 256 --repeat 1 --steady",
    ),
    "tiny-gpu": ("max chain --numbers 30000 --bits 256 --repeat 1",),
}


Way = Callable[[str, Path], dict[str, Any]]
"""Runs a command in a folder, and tells what it took."""


def make_more_stores(folder: Path, numbers: int, bits: int, jobs: list[str]) -> None:
    """Make the stores that jobs name: those of check_gpu.py, factors of products in the range, and others."""
    make_stores(folder, numbers, bits, None, [{**JOBS, **MORE_JOBS}[job] for job in jobs])
    if "convolve" in jobs:
        command = f"random factors --count {FACTORS} --bits {bits} --max-bits {bits // 2 - 16} --seed 7"
        status, _, errors = rnsdask(command, folder)
        if status != 0:
            sys.exit(f"error: {command}: {last_line(errors)}")
    if "ntt" in jobs:
        fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(bits, LINE))
        rd.random(fields, (max(1, numbers // LINE), LINE), seed=8, chunks="auto").to_zarr(folder / "field")
    if {"det", "charpoly"} & set(jobs):
        side = min(SIDE, math.isqrt(numbers))
        fields = rd.PrimeFields(rd.ModuliSet.ntt_primes(bits, 2))
        rd.random(fields, (numbers // side**2, side, side), seed=9, chunks="auto").to_zarr(
            folder / "matrices"
        )
    if "powmod" in jobs:
        rd.random(rd.Positional(bits), numbers, seed=10, chunks="auto").to_zarr(folder / "limbs")


def timed(options: tuple[str, ...], command: str, folder: Path) -> dict[str, Any]:
    """Seconds of a process, of its job, and until its first kernel was launched."""
    output, stamp = folder / "written", folder / "stamp"
    arguments = shlex.split(command.replace(OUTPUT, output.name))
    program = [sys.executable, "-c", PROGRAM, *arguments, *options, "--no-progress", "--json"]
    environment = {STAMP: str(stamp), "CUPY_CACHE_DIR": str(folder / CACHE)}
    begun, start = time.time(), time.perf_counter()
    status, printed, errors = run(program, folder, **environment)
    seconds = time.perf_counter() - start
    first = float(stamp.read_text()) - begun if stamp.exists() else None
    stamp.unlink(missing_ok=True)
    for path in folder.glob(f"{output.name}*"):
        shutil.rmtree(path)
    if not printed:
        raise SystemExit(f"error: {command} {' '.join(options)}: {last_line(errors)} (status {status})")
    return {"s": seconds, "job_s": json.loads(printed)["seconds"], "first_s": first}


def timed_here(options: tuple[str, ...], client: Any, command: str, folder: Path) -> dict[str, Any]:
    """Seconds of a job of this process, on a client's cluster if there is one."""
    output, printed = folder / "written", io.StringIO()
    arguments = shlex.split(command.replace(OUTPUT, output.name))
    where = contextlib.nullcontext() if client is None else client.as_current()
    with where, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        rnsdask_command([*arguments, *options, "--no-progress", "--json"], standalone_mode=False)
    for path in folder.glob(f"{output.name}*"):
        shutil.rmtree(path)
    return {"job_s": json.loads(printed.getvalue())["seconds"]}


def least(runs: list[dict[str, Any]], name: str) -> float | None:
    found = [one[name] for one in runs if one[name] is not None]
    return min(found) if found else None


@contextlib.contextmanager
def all_ways(gpus: list[str], steady: bool, cpu: bool) -> Iterator[dict[str, Way]]:
    """The ways to run commands, by the processor: the CPU where it is asked for, and so many GPUs."""
    on_gpus = {f"gpu{n}": ("--gpus", n, "--backend", "cuda") for n in gpus}
    options = ({"cpu": ("--backend", "cpu")} if cpu else {}) | on_gpus
    with contextlib.ExitStack() as stack:
        if not steady:
            yield {name: functools.partial(timed, given) for name, given in options.items()}
            return
        ways: dict[str, Way] = {}
        for name, given in options.items():
            client = None
            if name not in ("cpu", "gpu1"):
                client = stack.enter_context(connect(gpus=int(name.removeprefix("gpu"))))
                client.wait_for_workers(int(name.removeprefix("gpu")))
            ways[name] = functools.partial(timed_here, given if client is None else given[2:], client)
        yield ways


def row_of(job: str, folder: Path, ways: dict[str, Way], repeat: int, warm_up: bool) -> dict[str, Any]:
    """Times a command each way, in turn; the first run, which warms up, is told apart."""
    command = {**JOBS, **MORE_JOBS}[job]
    shutil.rmtree(folder / CACHE, ignore_errors=True)
    first = {name: way(command, folder) for name, way in ways.items()} if warm_up else {}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, way in ways.items():
            runs[name].append(way(command, folder))
    row: dict[str, Any] = {"command": job}
    for name in ways:
        row |= {f"{name}_{time}": least(runs[name], time) for time in ("s", "job_s") if time in runs[name][0]}
    base, *others = ways
    for name in others:
        row[f"{name} of {base}"] = row[f"{base}_job_s"] / row[f"{name}_job_s"]
        if "first_s" in runs[name][0]:
            row |= {f"{name}_cold_s": first[name]["s"], f"{name}_cold_first_s": first[name]["first_s"]}
            row[f"{name}_first_s"] = least(runs[name], "first_s")
    return row


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join([*JOBS, *MORE_JOBS]))
    parser.add_argument("--numbers", default="3000000", help="comma-separated: every command on so many each")
    parser.add_argument("--bits", type=int, default=2048)
    parser.add_argument("--gpus", default="1", help="comma-separated: on so many GPUs each; empty: none")
    parser.add_argument("--no-cpu", dest="cpu", action="store_false", help="on GPUs alone")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each after the first")
    parser.add_argument("--steady", action="store_true", help="all in this process")
    parser.add_argument("--folder", type=Path, help="where stores go; default a temporary folder")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    gpus = args.gpus.split(",") if args.gpus else []
    if not (args.cpu or gpus):
        parser.error("--no-cpu leaves nothing to run on without --gpus")
    jobs = args.jobs or [*JOBS, *MORE_JOBS]
    sizes = list(map(int, args.numbers.split(",")))
    with all_ways(gpus, args.steady, args.cpu) as ways:
        for numbers in sizes:
            with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
                make_more_stores(Path(temporary), numbers, args.bits, jobs)
                for job in jobs:
                    warm_up = not args.steady or numbers == sizes[0]
                    row = row_of(job, Path(temporary), ways, args.repeat, warm_up)
                    rows.append({"numbers": numbers, **row})
                    print(" ".join(f"{name}={cell(value)}" for name, value in rows[-1].items()), flush=True)
                    write_results(args.json, bool(gpus), rows)  # after each, for they take long
    print_rows(rows)


if __name__ == "__main__":
    main()
