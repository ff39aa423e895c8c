"""Checks everything public against exact integers, on awkward inputs, for a time.

    python scripts/fuzz.py --minutes 10                     all operations, on the CPU, a process a core
    python scripts/fuzz.py --minutes 2 --backend cuda       the same with CuPy arrays, one process
    python scripts/fuzz.py --minutes 1 --only divide        one operation
    python scripts/fuzz.py --minutes 0 --seed 17            the one case of a seed

RNSArrays, IntervalRNSArrays, PositionalArrays and FieldArrays, eager and lazy, from one thread and from
several at the same time. Prints the seed that it starts from, how many numbers were checked, of which
operations, and how many a second. What is wrong is printed with the seed, the operation and the operands, as
few of them as still show it, and ends the run with exit status 1.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # which has the oracles
sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import faulthandler
import multiprocessing
import os
import secrets
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

SLICE_SECONDS = 10
"""A process works for so long on its own before it says what it has done."""

SEEDS_A_SLICE = 10**6

HANG_SECONDS = 300
"""A case that takes longer ends its process, with a traceback."""


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    seed = secrets.randbits(40) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = run_all(seed, options.minutes * 60, options.backend, options.only, folder)
    seconds = time.monotonic() - begin
    for name, count in sorted(tally.results.items(), key=lambda item: -item[1]):
        print(f"{count:>12,}  {name}")
    total = tally.results.total()
    print(
        f"{total:>12,}  results of {tally.cases:,} cases in {seconds:.0f} s, {total / seconds:,.0f} a second"
    )
    if tally.failure is not None:
        print(tally.failure, file=sys.stderr)
        return 1
    return 0


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    from fuzzing.checking import OPERATIONS
    from fuzzing.runner import OPERATION_MODULES  # noqa: F401  it registers the operations

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, required=True, help="how long; 0: one case")
    parser.add_argument("--seed", type=int, help="of the first case; without it a new one")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", choices=sorted(OPERATIONS), metavar="NAME", help="one operation")
    return parser.parse_args(arguments)


def run_all(seed: int, seconds: float, backend: str, only: str | None, folder: str) -> Any:
    """Run slices of time in processes until the time is over or something is wrong."""
    from fuzzing.runner import Tally

    count = 1 if backend == "cuda" or seconds == 0 else len(os.sched_getaffinity(0))
    tally, end, seeds = Tally(), time.monotonic() + seconds, iter(range(seed, seed + 2**62, SEEDS_A_SLICE))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, faulthandler.enable) as pool:

        def start() -> Future[Any]:
            length = min(SLICE_SECONDS, max(0.0, end - time.monotonic()))
            return pool.submit(run_slice, next(seeds), length, backend, only, folder)

        running = {start() for _ in range(count)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                tally.add(outcome(future, folder))
            is_over = time.monotonic() >= end or tally.failure is not None
            running |= set() if is_over else {start() for _ in done}
    return tally


def outcome(future: Future[Any], folder: str) -> Any:
    from fuzzing.runner import Tally

    try:
        return future.result()
    except BrokenProcessPool as error:
        seeds = ", ".join(path.read_text() for path in sorted(Path(folder).iterdir()))
        return Tally(failure=f"a process died or hung, with a case of one of the seeds {seeds}: {error}")


def run_slice(seed: int, seconds: float, backend: str, only: str | None, folder: str) -> Any:
    """Run cases in this process, which leaves the seed of the case it is at in a file."""
    from fuzzing.runner import run

    place = Path(folder) / str(os.getpid())

    def progress(case_seed: int) -> None:
        place.write_text(str(case_seed))
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)

    try:
        return run(seed, seconds, processor_of(backend), only, progress)
    finally:
        faulthandler.cancel_dump_traceback_later()


def processor_of(backend: str) -> Any:
    """The array module of a processor."""
    if backend == "cuda":
        import cupy

        return cupy
    import numpy

    return numpy


if __name__ == "__main__":
    sys.exit(main())
