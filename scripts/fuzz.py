"""Checks the laws of the tests in cases that are drawn, with great shapes and any moduli, for a time.

    python scripts/fuzz.py --minutes 10                     all laws, on the CPU, a process a core
    python scripts/fuzz.py --minutes 2 --backend cuda       the same with CuPy arrays, one process
    python scripts/fuzz.py --minutes 1 --only overflow      one law
    python scripts/fuzz.py --minutes 0 --seed 17            the one case of a seed

The laws are those of `tests/laws`, of every number system, eager and lazy, from one thread and from several
at the same time. Prints the seed that it starts from, how many numbers were compared, by which laws, and how
many a second. What is wrong is printed with the seed, the law and the operands, as few of them as still show
it, and ends the run with exit status 1.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # PYTHONSAFEPATH leaves it out

import argparse
import faulthandler
import itertools
import multiprocessing
import os
import secrets
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from random import Random
from typing import Any

SLICE_SECONDS = 10
"""Seconds that a process works on its own before it says what it has done."""

SEEDS_A_SLICE = 10**6

HANG_SECONDS = 300
"""A case that takes longer ends its process, with a traceback."""

LAWS_A_CASE = 12
THREADS = 8
THREADED = 6
"""In one case of this many, laws are checked in threads at the same time, on the same arrays."""

ALONE = {"nothing_is_computed_before_it_is_asked_for"}
"""Laws that configure the whole process."""

SHRINK_SECONDS = 20


@dataclass
class Tally:
    """Numbers compared, by law, and the first failure's report."""

    results: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    failure: str | None = None

    def add(self, other: "Tally") -> None:
        self.results += other.results
        self.cases += other.cases
        self.failure = self.failure or other.failure


class LawError(Exception):
    """A law that does not hold in a case."""

    def __init__(self, law: str, case: Any, threaded: bool) -> None:
        super().__init__(law, threaded)
        self.law, self.case, self.threaded = law, case, threaded


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
    import laws

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = sorted((*laws.LAWS, *laws.SUBJECTS))
    parser.add_argument("--minutes", type=float, required=True, help="how long; 0: one case")
    parser.add_argument("--seed", type=int, help="of the first case; without it a new one")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", choices=names, metavar="LAW", help="one law")
    return parser.parse_args(arguments)


# ---- processes ---------------------------------------------------------------------------------------------


def run_all(seed: int, seconds: float, backend: str, only: str | None, folder: str) -> Tally:
    """Run slices of time in processes until the time is over or something is wrong."""
    count = 1 if backend == "cuda" or seconds == 0 else len(os.sched_getaffinity(0))
    tally, end, seeds = Tally(), time.monotonic() + seconds, iter(range(seed, seed + 2**62, SEEDS_A_SLICE))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, faulthandler.enable) as pool:

        def start() -> Future[Tally]:
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


def outcome(future: Future[Tally], folder: str) -> Tally:
    try:
        return future.result()
    except BrokenProcessPool as error:
        seeds = ", ".join(path.read_text() for path in sorted(Path(folder).iterdir()))
        return Tally(failure=f"a process died or hung, with a case of one of the seeds {seeds}: {error}")


def run_slice(seed: int, seconds: float, backend: str, only: str | None, folder: str) -> Tally:
    """Run cases in this process, which leaves the seed of the case it is at in a file."""
    place = Path(folder) / str(os.getpid())

    def progress(case_seed: int) -> None:
        place.write_text(str(case_seed))
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)

    try:
        return run(seed, seconds, processor_of(backend), only, progress)
    finally:
        faulthandler.cancel_dump_traceback_later()


def processor_of(backend: str) -> Any:
    """The processor of a backend, as laws take it."""
    from conftest import Processor

    if backend == "cuda":
        import cupy

        return Processor(backend, cupy)
    import numpy as np

    return Processor(backend, np)


# ---- cases -------------------------------------------------------------------------------------------------


def run(
    seed: int,
    seconds: float,
    processor: Any,
    only: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Run the cases of `seed`, `seed` + 1 and so on until the time is over, at least one.

    `progress` is told each case's seed before it runs.
    """
    tally, end = Tally(), time.monotonic() + seconds
    while tally.failure is None and (tally.cases == 0 or time.monotonic() < end):
        case_seed = seed + tally.cases
        progress(case_seed)
        try:
            with tempfile.TemporaryDirectory() as folder:
                tally.results += Drawn(case_seed, processor, Path(folder), only).run()
        except LawError as failure:
            tally.failure = report(failure, case_seed)
        tally.cases += 1
    return tally


class Drawn:
    """A number system, arrays that laws share, and the laws, all drawn by a seed."""

    def __init__(self, seed: int, processor: Any, folder: Path, only: str | None) -> None:
        import laws
        from laws.case import KINDS
        from laws.systems import drawn_system

        random = Random(f"{seed}/case")
        kinds = laws.SUBJECTS[only][0] if only in laws.SUBJECTS else KINDS
        self.seed, self.processor, self.folder = seed, processor, folder
        self.system, self.is_lazy = drawn_system(random, kinds), random.random() < 0.3
        self.count = itertools.count()
        fitting = [name for name in laws.LAWS if name not in self.system.lacks]
        fitting += [name for name, (kinds, _) in laws.SUBJECTS.items() if self.system.kind in kinds]
        self.is_threaded = random.randrange(THREADED) == 0
        names = [random.choice(fitting) for _ in range(LAWS_A_CASE)]
        if self.is_threaded:
            names = [name for name in names if name not in ALONE]
        if only is not None:
            names = [only] * (THREADS if self.is_threaded else 1) if only in fitting else []
        self.names = names if self.is_threaded else list(dict.fromkeys(names))
        self.pool: list[Any] | None = None
        shared = self.case("arrays")
        self.pool, self.arrays = shared.pool, shared.arrays

    def case(self, name: str, pool: list[Any] | None = None, is_lazy: bool | None = None) -> Any:
        """The case of a law, of the shared arrays or of another pool."""
        from laws import Case

        lazily = self.is_lazy if is_lazy is None else is_lazy
        random = Random(f"{self.seed}/{name}")
        own = self.pool if pool is None else pool
        case = Case(self.system, "drawn", self.processor, random, self.new_folder, own, lazily, is_great=True)
        if pool is None and self.pool is not None:
            case.arrays = self.arrays
        return case

    def new_folder(self) -> Path:
        folder = self.folder / str(next(self.count))
        folder.mkdir()
        return folder

    def run(self) -> Counter[str]:
        """Numbers that each law has compared; raises `LawError`."""
        results = Counter[str]()
        if not self.is_threaded:
            for name in self.names:
                results[name] += self.checked(name, self.case(name))
            return results
        # At the same time: they share arrays and, cold or not, all constants.
        barrier = threading.Barrier(min(THREADS, len(self.names)) or 1)

        def check(name: str, is_first: bool) -> int:
            if is_first:
                barrier.wait(timeout=60)
            return self.checked(name, self.case(name))

        with ThreadPoolExecutor(THREADS) as pool:
            futures = [pool.submit(check, name, i < barrier.parties) for i, name in enumerate(self.names)]
        for name, future in zip(self.names, futures, strict=True):
            results[name] += future.result()
        return results

    def checked(self, name: str, case: Any) -> int:
        import laws
        import pytest

        try:
            return laws.check(name, case)
        except (Exception, pytest.fail.Exception) as error:  # whatever is not expected is a finding
            case.drawn = self
            raise LawError(name, case, self.is_threaded) from error


# ---- reports -----------------------------------------------------------------------------------------------


def report(failure: LawError, seed: int) -> str:
    """Describe a failure: what is wrong, its smallest operands, and the command that repeats it."""
    small = smallest(failure)
    lines = [
        f"MISMATCH in {failure.law!r}, seed {seed}" + (", in threads" if failure.threaded else ""),
        f"    python scripts/fuzz.py --minutes 0 --seed {seed} --only {failure.law}",
        f"  {_what_happened(failure)}",
    ]
    if small is not failure:
        lines += ["with fewer numbers:", f"  {_what_happened(small)}"]
    return "\n".join((*lines, *_operands(small.case)))


def smallest(failure: LawError) -> LawError:
    """Halve a case as long as it fails; the least one that did."""
    end, drawn = time.monotonic() + SHRINK_SECONDS, failure.case.drawn
    found = True
    while found:
        found = False
        for pool, is_lazy in failure.case.smaller():
            if time.monotonic() > end:
                return failure
            try:
                drawn.checked(failure.law, drawn.case(failure.law, pool, is_lazy))
            except LawError as smaller:
                failure, found = smaller, True
                break
    return failure


def _what_happened(failure: LawError) -> str:
    error = failure.__cause__
    assert error is not None
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:2000]}"


def _operands(case: Any) -> list[str]:
    """Describe the operands of the case and of the law that failed."""
    from laws.case import shown

    kind = "lazy" if case.is_lazy else "eager"
    system = f"{case.system.name}, {kind}, {case.system.value!r:.200}"
    used = (f"{name}: {shown(value)}" for name, value in case.used.items())
    arrays = (f"array {i}: {shown(values)}" for i, values in enumerate(case.pool))
    return [f"  {part}" for part in (system, *arrays, *used)]


if __name__ == "__main__":
    sys.exit(main())
