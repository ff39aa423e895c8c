"""The laws in cases that are drawn, for a few seconds, and whether they find what is wrong."""

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
from oracles.integers import Range, product_of_all
from sample_arrays import CPU

import rnsdask as rd
from rnsdask.lazy import functions

SECONDS = 2


def test_some_cases(on_each_processor: Processor) -> None:
    seed = SESSION_SEED * 1000
    print(f"first seed {seed}")
    tally = fuzz.run(seed, SECONDS, on_each_processor)
    assert tally.failure is None, tally.failure


def one_off_in(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation whose last result is wrong by one."""

    def wrong(a: Any, b: Any, **options: Any) -> Any:
        result, *mask = [found] if isinstance(found := operation(a, b, **options), rd.RNSArray) else found
        last = np.zeros(result.shape, dtype=object)
        last.reshape(-1)[-1:] = 1
        result = operation(result, rd.from_ints(last, result.moduli, result.signed, None), overflow="wrap")
        return (result, *mask) if mask else result

    return wrong


def failures_of(law: str, seeds: range) -> list[str]:
    found = (fuzz.run(seed, 0, CPU, only=law).failure for seed in seeds)
    return [failure for failure in found if failure is not None]


def test_a_wrong_number_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rd, "add", one_off_in(functions.add))
    found = failures_of("overflow", range(10))
    assert found
    assert all("MISMATCH in 'overflow', seed " in failure for failure in found)
    assert all("--only overflow" in failure for failure in found)
    assert any("object of shape (1,)" in failure for failure in found)


def test_an_overflow_that_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(a: Any, b: Any, c: Any, **options: Any) -> Any:
        return functions.fma(a, b, c, overflow="flag" if options.get("overflow") == "flag" else "wrap")

    monkeypatch.setattr(rd, "fma", silent)
    assert any("no error for" in failure for failure in failures_of("overflow_of_fma", range(25)))


def test_an_error_of_an_operation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = next(kind for kind in rd.RNSArray.__mro__ if "is_even" in vars(kind))
    monkeypatch.delattr(owner, "is_even")
    found = failures_of("parity_is_the_last_bit", range(8))
    assert any("AttributeError" in failure for failure in found)


def test_a_seed_repeats_its_case(tmp_path: Path) -> None:
    first, second = (fuzz.Drawn(17, CPU, tmp_path, None) for _ in range(2))
    assert (first.system.value, first.names) == (second.system.value, second.names)
    for a, b, x, y in zip(first.pool, second.pool, first.arrays, second.arrays, strict=True):
        assert a.tolist() == b.tolist()
        assert (x.system, x.chunks) == (y.system, y.chunks) if first.is_lazy else x.system == y.system


def test_script(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "run_slice", broken_slice)
    assert fuzz.main(["--minutes", "0", "--seed", "5"]) == 1
    assert "a process died or hung, with a case of one of the seeds 5" in capfd.readouterr().err


def broken_slice(seed: int, seconds: float, backend: str, only: str | None, folder: str) -> None:
    (Path(folder) / "1").write_text(str(seed))
    os._exit(3)


@pytest.mark.slow
def test_script_starts_by_its_path() -> None:
    command = [sys.executable, fuzz.__file__, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--only LAW" in done.stdout


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
