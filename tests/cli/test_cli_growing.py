"""Commands of stores whose ranges grow: their results are those of Python's integers."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from commands import fail, succeed

import rnsdask as rd

A = [3, 2**31, 5, 2**32 - 1]
B = [-1, 2**70, 7, 2]


@pytest.fixture(autouse=True)
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(A, chunks=2).to_zarr("a.zarr")
    rd.from_ints(B, chunks=3).to_zarr("b.zarr")
    rd.from_ints([10, 20, 30, 40], bits=100, signed=True).to_zarr("fixed.zarr")


def numbers(path: str) -> Any:
    return rd.open_zarr(path).to_ints().tolist()


def test_stores_of_different_systems_meet() -> None:
    succeed("eval", "a*b - 2*a + sign(b)", "a=a.zarr", "b=b.zarr", "-o", "out.zarr")
    assert numbers("out.zarr") == [a * b - 2 * a + (b > 0) - (b < 0) for a, b in zip(A, B, strict=True)]
    assert rd.open_zarr("out.zarr").system.grows
    told = succeed("eval", "a*a*a - b", "a=a.zarr", "b=b.zarr", "--sum", "--json")
    assert str(sum(a**3 - b for a, b in zip(A, B, strict=True))) in told
    succeed("eval", "a < b", "a=a.zarr", "b=b.zarr", "--count")
    succeed("concat", "a.zarr", "b.zarr", "-o", "joined.zarr")
    assert numbers("joined.zarr") == A + B
    succeed("convolve", "a.zarr", "b.zarr", "-o", "product.zarr")
    assert numbers("product.zarr") == [
        sum(A[i] * B[k - i] for i in range(4) if 0 <= k - i < 4) for k in range(7)
    ]
    succeed("cumsum", "a.zarr", "-o", "sums.zarr")
    assert numbers("sums.zarr") == list(itertools.accumulate(A))
    assert json.loads(succeed("prod", "b.zarr", "--json"))["value"] == str(math.prod(B))
    assert "0 equal" in succeed("compare", "a.zarr", "b.zarr", status=1)


def test_fixed_stores_beside_those_that_grow() -> None:
    succeed("eval", "f + a", "a=a.zarr", "f=fixed.zarr", "-o", "out.zarr")
    assert numbers("out.zarr") == [f + a for f, a in zip([10, 20, 30, 40], A, strict=True)]
    assert not rd.open_zarr("out.zarr").system.grows
    assert "overflow" in fail("eval", "f*b*b", "b=b.zarr", "f=fixed.zarr", "--sum")
    succeed("eval", "a - 4", "a=a.zarr", "--extend", "-o", "less.zarr")
    assert numbers("less.zarr") == [a - 4 for a in A]


def test_overflow_of_stores_that_grow_where_told() -> None:
    assert "overflow" in fail("eval", "a - 4", "a=a.zarr", "--overflow", "raise", "--sum")
    assert "overflow" in fail("prod", "a.zarr", "--overflow", "raise")
    flagged = json.loads(succeed("eval", "a - 4", "a=a.zarr", "--overflow", "flag", "--sum", "--json"))
    assert "1" in json.dumps(flagged)


def test_info_says_that_a_store_grows() -> None:
    assert "grows" in succeed("info", "a.zarr")
    assert json.loads(succeed("info", "a.zarr", "--json"))["grows"] is True
    assert "grows" not in succeed("info", "fixed.zarr")
    assert succeed("verify", "a.zarr")
