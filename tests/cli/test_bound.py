"""The command ``bound``."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import fail, succeed, without_measures
from strategies import BOTH_RANGES, MODULI_SETS

import rnsdask as rd
from rnsdask import store

MODULI = MODULI_SETS["top"]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def as_json(*args: object) -> dict[str, Any]:
    return dict(json.loads(succeed(*args, "--json")))


def write(values: list[int], bound: int | None = None, path: str = "x.zarr", signed: bool = False) -> None:
    """Write a store with any bound, right or wrong."""
    x = rd.from_ints(values, MODULI, signed, chunks=128)
    x.with_bound(bound, trusted=True).to_zarr(path)


@BOTH_RANGES
def test_bound(signed: bool) -> None:
    values = [5] * 500 + [-(2**70) if signed else 2**70, 3]
    write(values, signed=signed)
    expected = {"op": "bound", "store": "x.zarr", "bits": 71, "value": str(2**71 - 1), "count": 502}
    found = without_measures(as_json("bound", "x.zarr", "--backend", "cpu"))
    nbytes = store.open_info("x.zarr").nbytes
    assert found == {**expected, "backend": "cpu", "exact_fallbacks": 0, "bytes_read": nbytes}
    heading, value, work = succeed("bound", "x.zarr", "--backend", "cpu").splitlines()
    assert (heading, value) == ("bound of 502 integers, 71 bits:", str(2**71 - 1))
    assert work.startswith("(")
    assert "exact" not in work


def test_bound_of_zeros_and_of_no_numbers() -> None:
    write([0] * 300)
    assert (as_json("bound", "x.zarr")["value"], as_json("bound", "x.zarr")["bits"]) == ("0", 0)
    store.create("none.zarr", rd.RNS(MODULI), (0,)).finish()
    assert as_json("bound", "none.zarr")["value"] == "0"


def test_bound_is_measured_whatever_the_store_states() -> None:
    write([1000] * 300, bound=2**100)
    assert as_json("bound", "x.zarr")["value"] == "1023"
    write([1000] * 300, bound=1000, path="exact.zarr")
    assert as_json("bound", "exact.zarr")["value"] == "1023"
    write([1000] * 300, bound=511, path="wrong.zarr")
    path = Path("wrong.zarr").resolve()
    message = f"{path}: its bound has 9 bits, but a number in it of 10 bits is greater in magnitude"
    assert fail("bound", "wrong.zarr") == message


def test_bound_continues_from_a_checkpoint() -> None:
    write(list(range(2000)))
    found = as_json("bound", "x.zarr", "--checkpoint", "kept")
    again = as_json("bound", "x.zarr", "--checkpoint", "kept")
    assert found["value"] == again["value"] == "2047"
    assert "its operation is 'bound'" in fail("sum", "x.zarr", "--checkpoint", "kept")


def test_bound_refuses() -> None:
    assert "there is no such store" in fail("bound", "x.zarr")
    store.create("x.zarr", rd.RNS(MODULI), (500,), chunks=128)
    assert "the store is incomplete" in fail("bound", "x.zarr")
