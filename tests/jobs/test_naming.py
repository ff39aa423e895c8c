"""Errors of jobs about a number that has no result."""

import re
from pathlib import Path

import pytest
from commands import fail

import rnsdask as rd
from rnsdask.core.errors import JobError, NumberError, RNSOverflowError, StoreError
from rnsdask.jobs.compute import naming


@pytest.mark.parametrize(
    "error",
    [NumberError("it has none"), ZeroDivisionError("it is 0"), RNSOverflowError(3, 65, 64, False, False)],
)
def test_errors_of_numbers_are_named(error: Exception) -> None:
    with pytest.raises(JobError) as caught, naming("max of x.zarr"):
        raise error
    assert str(caught.value) == f"max of x.zarr: {error}"
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [ValueError("a fault"), StoreError("x.zarr: gone"), TypeError("a fault")])
def test_others_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, naming("max of x.zarr"):
        raise error
    assert caught.value is error


def test_commands_name_what_has_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints([9, 4, -1], rd.Positional(64, signed=True)).to_zarr("p.zarr")
    error = fail("eval", "isqrt(x)", "x=p.zarr", "-o", "q.zarr")
    assert error.startswith("expression 'isqrt(x)': the number at flat index 2 is negative"), error
    rd.from_ints([9, 4, 6], rd.ModuliSet.for_bits(64)).to_zarr("x.zarr")
    error = fail("eval", "pow(x, -1, 10)", "x=x.zarr", "-o", "r.zarr")
    assert re.match("expression .*: the number at flat index 1 is not invertible modulo 10", error), error
