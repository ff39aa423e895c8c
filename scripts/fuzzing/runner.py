"""Runs cases for a time, counts what they check, and makes of a mismatch a report that repeats it."""

import importlib
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing.case import Case
from fuzzing.checking import OPERATIONS, Operation, shown

OPERATION_MODULES = (
    "elementwise",
    "elementary",
    "reductions",
    "ordering",
    "matrices",
    "conversion",
    "indexing",
    "shapes",
    "structure",
    "expressions",
    "limbs",
    "fields",
    "linear_algebra",
    "polynomials",
    "series",
    "sparse",
    "pipelines",
    "files",
)

for _module in OPERATION_MODULES:
    importlib.import_module(f"fuzzing.{_module}")

OPERATIONS_A_CASE = 12
THREADS = 8

# In one case of so many, operations run in threads at the same time, on the same arrays.
_THREADED = 6

_SHRINK_SECONDS = 20


@dataclass
class Tally:
    """Results checked, by operation, and the first failure's report."""

    results: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    failure: str | None = None

    def add(self, other: "Tally") -> None:
        self.results += other.results
        self.cases += other.cases
        self.failure = self.failure or other.failure


class CaseError(Exception):
    """An operation of a case that is wrong, or ended in an error that it must not have."""

    def __init__(self, case: Case, operation: Operation, threaded: bool) -> None:
        super().__init__(case, operation, threaded)
        self.case, self.operation, self.threaded = case, operation, threaded


def run(
    seed: int,
    seconds: float,
    processor: Any = np,
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
            run_case(Case.drawn(case_seed, processor), only, tally.results)
        except CaseError as failure:
            tally.failure = report(failure)
        tally.cases += 1
    return tally


def run_case(case: Case, only: str | None, results: Counter[str]) -> None:
    """Run some operations of a case, or only one; raises `CaseError`."""
    rng = Random(f"{case.seed}/operations")
    fitting = [one for one in OPERATIONS.values() if case.system in one.systems]
    is_threaded = rng.randrange(_THREADED) == 0
    chosen = [rng.choice(fitting) for _ in range(OPERATIONS_A_CASE)]
    if only is not None:
        chosen = [one for one in fitting if one.name == only] * (THREADS if is_threaded else 1)
    if is_threaded:
        run_in_threads(case, chosen, results)
        return
    for operation in dict.fromkeys(chosen):
        results[operation.name] += checked(case, operation)


def run_in_threads(case: Case, chosen: list[Operation], results: Counter[str]) -> None:
    """Run operations of one case at the same time: they share its arrays and, cold or not, all constants."""
    case.arrays  # noqa: B018  made once, before the threads
    barrier = threading.Barrier(min(THREADS, len(chosen)) or 1)

    def check(operation: Operation, is_first: bool) -> int:
        if is_first:
            barrier.wait(timeout=60)
        return checked(sharing(case), operation, threaded=True)

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(check, one, i < barrier.parties) for i, one in enumerate(chosen)]
    for operation, future in zip(chosen, futures, strict=True):
        results[operation.name] += future.result()


def sharing(case: Case) -> Case:
    """A case with the same arrays, and its own notes."""
    same = Case(case.seed, case.system, case.moduli, case.processor, case.is_lazy, case.operands)
    same.arrays = case.arrays
    return same


def checked(case: Case, operation: Operation, threaded: bool = False) -> int:
    case.used.clear()
    try:
        return operation.check(case, Random(f"{case.seed}/{operation.name}"))
    except Exception as error:  # whatever is raised and not expected is a finding
        raise CaseError(case, operation, threaded) from error


# ---- reports -----------------------------------------------------------------------------------------------


def report(failure: CaseError) -> str:
    """Describe a failure: what is wrong, its smallest operands, and the command that repeats it."""
    case, operation, small = failure.case, failure.operation, smallest(failure)
    lines = [
        f"MISMATCH in {operation.name!r}, seed {case.seed}" + (", in threads" if failure.threaded else ""),
        f"    python scripts/fuzz.py --minutes 0 --seed {case.seed} --only {operation.name!r}",
        f"  {_what_happened(failure)}",
    ]
    if small is not failure:
        lines += ["with fewer numbers:", f"  {_what_happened(small)}"]
    return "\n".join((*lines, *_operands(small.case)))


def smallest(failure: CaseError) -> CaseError:
    """Halve a case as long as it fails; the least one that did."""
    end = time.monotonic() + _SHRINK_SECONDS
    found = True
    while found:
        found = False
        for case in failure.case.smaller():
            if time.monotonic() > end:
                return failure
            try:
                checked(case, failure.operation)
            except CaseError as smaller:
                failure, found = smaller, True
                break
    return failure


def _what_happened(failure: CaseError) -> str:
    error = failure.__cause__
    assert error is not None
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:2000]}"


def _operands(case: Case) -> list[str]:
    """Describe the operands of the case and of the operation that failed."""
    kind = "lazy" if case.is_lazy else "eager"
    arrays = (
        f"array {i}: {one.layout}, chunks {one.chunks}, bound {shown(one.bound)[:60]}"
        for i, one in enumerate(case.operands)
    )
    used = (f"{name}: {shown(value)}" for name, value in case.used.items())
    moduli = f"{len(case.moduli)} moduli {case.moduli.moduli!r:.200}"
    return [f"  {part}" for part in (f"{case.system}, {kind}, {moduli}", *arrays, *used)]
