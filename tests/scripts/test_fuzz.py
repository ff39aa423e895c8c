"""Differential testing of everything public, for a few seconds, and whether it finds what is wrong."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz
import numpy as np
import pytest
from conftest import SESSION_SEED, Processor
from fuzzing import runner
from fuzzing.checking import OPERATIONS
from oracles.integers import Range, product_of_all

import rnsdask as rd
from rnsdask.lazy import functions

SECONDS = 3
RESULTS = 10_000

CASES = 24
"""So few that check fewer results than a test asks for come about once in a million times."""


def test_everything_public(on_each_processor: Processor) -> None:
    seed = SESSION_SEED * 1000
    print(f"first seed {seed}")
    tally = runner.run(seed, SECONDS, on_each_processor.xp)
    while tally.failure is None and tally.results.total() <= RESULTS and tally.cases < CASES:
        tally.add(runner.run(seed + tally.cases, 0, on_each_processor.xp))  # a busy machine takes longer
    assert tally.failure is None, tally.failure
    assert tally.results.total() > RESULTS


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_checks_something(name: str) -> None:
    results = runner.Counter[str]()
    for seed in range(200):
        runner.run_case(runner.Case.drawn(seed), name, results)
        if results.total() > 0:
            return
    pytest.fail(f"{name!r} checked nothing in 200 cases")


def one_off_in(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation whose last result is wrong by one."""

    def wrong(a: Any, b: Any, **options: Any) -> Any:
        result = operation(a, b, overflow="wrap")
        last = np.zeros(result.shape, dtype=object)
        last.reshape(-1)[-1:] = 1
        return operation(result, rd.from_ints(last, a.moduli, a.signed, None), overflow="wrap")

    return wrong


def test_a_wrong_number_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rd, "add", one_off_in(functions.add))
    failures = [runner.run(seed, 0, only="add").failure for seed in range(40)]
    found = [failure for failure in failures if failure is not None]
    assert found
    assert all("MISMATCH in 'add', seed " in failure for failure in found)
    assert all("--only 'add'" in failure for failure in found)
    assert any("object of shape (1,)" in failure for failure in found)


def test_an_overflow_that_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rd, "fma", lambda a, b, c, **_: functions.fma(a, b, c, overflow="wrap"))
    failures = [runner.run(seed, 0, only="fma").failure for seed in range(40)]
    assert any(failure is not None and "no error for" in failure for failure in failures)


def test_an_error_of_an_operation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = next(kind for kind in rd.RNSArray.__mro__ if "is_even" in vars(kind))
    monkeypatch.delattr(owner, "is_even")
    failures = [runner.run(seed, 0, only="is_even").failure for seed in range(8)]
    assert any(failure is not None and "AttributeError" in failure for failure in failures)


def test_a_seed_repeats_its_case() -> None:
    first, second = (runner.Case.drawn(17) for _ in range(2))
    assert (first.moduli, first.system, first.shape) == (second.moduli, second.system, second.shape)
    for a, b in zip(first.operands, second.operands, strict=True):
        assert a.values.tolist() == b.values.tolist()
        assert (a.bound, a.layout, a.chunks) == (b.bound, b.layout, b.chunks)


def test_script(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "run_slice", broken_slice)
    assert fuzz.main(["--minutes", "0", "--seed", "5"]) == 1
    assert "a process died or hung, with a case of one of the seeds 5" in capfd.readouterr().err


def broken_slice(seed: int, seconds: float, backend: str, only: str | None, folder: str) -> None:
    (Path(folder) / "1").write_text(str(seed))
    os._exit(3)


def test_script_in_a_process_of_its_own() -> None:
    command = [sys.executable, fuzz.__file__, "--minutes", "0", "--seed", "5", "--only", "add"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("seed 5\n")
    assert " results of 1 cases in " in done.stdout


@pytest.mark.parametrize(
    ("system", "ends"), [("unsigned", (0, 14)), ("signed", (-7, 7)), ("interval", (-14, 14))]
)
def test_ranges_of_the_oracle(system: str, ends: tuple[int, int]) -> None:
    limits = Range.of(system, 15)
    assert (limits.lowest, limits.highest) == ends
    assert all(limits.wrap(v) == v for v in range(ends[0], ends[1] + 1))
    assert limits.wrap(ends[1] + 1) == (0 if system == "interval" else ends[0])
    assert product_of_all([ends[1], 2], limits) == (limits.wrap(2 * ends[1]), True)
    assert product_of_all([ends[1], 2, 0], limits) == (0, False)
