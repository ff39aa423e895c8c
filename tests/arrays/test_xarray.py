"""Arrays of numbers in xarray: the table of docs/xarray.md, for every kind of array, lazy and in memory.

What is right is said by xarray itself, with NumPy's arrays of Python ints in the place of numbers.
"""

import pickle
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from strategies import slow

import rnsdask as rd

xr = pytest.importorskip("xarray")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "xarray.md"
MODULI = rd.ModuliSet([251, 253, 255, 256])
FIELDS = rd.PrimeFields([7, 11])
FERMAT = rd.FermatField(2**28 + 2**22, 16)
VALUES = np.array([[12, 5, 30], [24, 9, 3]], dtype=object)
COLUMNS = {"rns": 0, "interval": 0, "positional": 0, "fields": 2, "fermat": 2}
KINDS = [f"{kind}{lazy}" for kind in COLUMNS for lazy in ("", " lazy")]
QUICK_KINDS = ["rns", "positional lazy", "interval lazy", "fermat", "fields lazy"]


def make(kind: str) -> Any:
    x: Any = rd.from_ints(VALUES, MODULI, signed=True, chunks=None)
    if "interval" in kind:
        x = rd.IntervalRNSArray.from_rns(x)
    elif "positional" in kind:
        x = x.to_positional(40)
    elif "fields" in kind:
        x = rd.from_ints(VALUES, FIELDS, chunks=None)
    elif "fermat" in kind:
        x = rd.from_ints(VALUES, FERMAT, chunks=None)
    return x.rechunk((2, 2)) if "lazy" in kind else x


def tables() -> dict[str, list[tuple[str, list[str]]]]:
    """The calls of each table, with their verdicts."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        heading = line.removeprefix("### ") if line.startswith("### ") else heading
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 5:
            calls = re.findall(r"`([^`]+)`", cells[0])
            found.setdefault(heading, []).extend((call, cells[1:]) for call in calls)
    return found


TABLES = tables()


def named(data: Any) -> Any:
    return xr.DataArray(data, dims=("r", "k"), coords={"k": [10, 20, 30]}, name="a")


def evaluate(call: str, data: Any, folder: Path) -> Any:
    names = {
        **{"xr": xr, "np": np, "rd": np if data is VALUES else rd, "da": da, "dask": dask, "pickle": pickle},
        **{"d": named(data), "path": str(folder / "store")},
        **{"points": xr.DataArray([0, 1], dims="p"), "others": xr.DataArray([2, 0], dims="p")},
        **{
            "groups": xr.DataArray([0, 0, 1], dims="k", name="g"),
            "weights": xr.DataArray([1, 2, 3], dims="k"),
        },
        **{"coefficients": xr.DataArray([1, 2], dims="degree", coords={"degree": [0, 1]})},
    }
    with dask.config.set(scheduler="sync"):
        found = eval(call, names)
        if isinstance(found, xr.Dataset):
            found = found["a"]
        if isinstance(found, xr.DataArray):
            found = found.compute() if data is VALUES else found
    return found


def verdict(found: Any, x: Any) -> str:
    data = found.data if isinstance(found, xr.DataArray) else found
    if type(data) is type(x):
        return "numbers"
    if isinstance(found, xr.DataArray) and found.ndim == 0:
        return "a number"
    if isinstance(data, str | bool | np.bool_):
        return "plain"
    return "integers" if getattr(data, "dtype", np.dtype(object)).kind == "O" else "plain"


def values(found: Any) -> Any:
    with dask.config.set(scheduler="sync"):
        return np.asarray(found, dtype=object).tolist()


def flat(found: Any) -> list[Any]:
    return [value for part in found for value in flat(part)] if isinstance(found, list) else [found]


@cache
def expected_of(call: str) -> list[Any]:
    return flat(values(evaluate(call, VALUES, Path())))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kind", [*QUICK_KINDS, *slow(*(kind for kind in KINDS if kind not in QUICK_KINDS))])
@pytest.mark.parametrize("heading", TABLES)
def test_the_table_of_the_documents(heading: str, kind: str, tmp_path: Path) -> None:
    x = make(kind)
    for call, verdicts in TABLES[heading]:
        expected = verdicts[COLUMNS[kind.removesuffix(" lazy")] + ("lazy" in kind)]
        try:
            found = evaluate(call, x, tmp_path)
            listed = values(found)  # what raises when it is computed does so here
        except (TypeError, ValueError, AttributeError, NotImplementedError, ImportError, OSError) as error:
            if expected != "error":
                pytest.fail(f"{call}: {error!r}")
            continue
        assert verdict(found, x) == expected, call
        if isinstance(found, str):
            continue
        pairs = zip(flat(listed), expected_of(call), strict=True)
        modulus = {"fields": FIELDS.moduli.product, "fermat": (2**28 + 2**22) ** 16 + 1}.get(kind.split()[0])
        for got, right in pairs:
            if isinstance(got, Fraction):
                assert float(got) == pytest.approx(right), call
            elif modulus and isinstance(got, int) and not isinstance(got, bool) and "rolling" not in call:
                assert (got - round(right)) % modulus == 0, call
            else:
                assert got == right or (got != got and right != right), call


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["rns", "interval", "positional"])
@pytest.mark.parametrize("bits", [62, 63, 64, 200])
def test_sums_beyond_64_bits_are_those_of_python_ints(bits: int, kind: str) -> None:
    numbers = np.array([[2**bits - 3 - k, -(2**bits) + 5 * k] for k in range(6)], dtype=object)
    x: Any = rd.from_ints(numbers, chunks=None)
    if kind == "interval":
        x = rd.from_ints(numbers, rd.IntervalRNS(rd.ModuliSet.for_bits(bits + 8)), chunks=None)
    elif kind == "positional":
        x = rd.from_ints(numbers, rd.Positional(bits + 8, signed=True), chunks=None)
    rows = numbers.tolist()
    windows = [rows[max(0, k - 1) : k + 1] for k in range(6)]
    centred = [[[0, 0], rows[0]], *([rows[k - 1], rows[k]] for k in range(1, 6))]
    columns = [list(column) for column in zip(*rows, strict=True)]
    calls = {
        "pad(r=1, constant_values=0).sum('r')": [sum(c) for c in columns],
        "pad(r=1, mode='reflect').sum('r')": [sum(c) + c[1] + c[4] for c in columns],
        "rolling(r=2, min_periods=1).sum()": [[sum(c) for c in zip(*w, strict=True)] for w in windows],
        "rolling(r=2, center=True).construct('w', fill_value=0).sum('w')": [
            [sum(c) for c in zip(*w, strict=True)] for w in centred
        ],
        "cumulative('r').sum()": [[sum(c[: k + 1]) for c in columns] for k in range(6)],
        "cumulative('r').max()": [[max(c[: k + 1]) for c in columns] for k in range(6)],
    }
    d = xr.DataArray(x, dims=("r", "k"))
    for call, expected in calls.items():
        assert values(eval(f"d.{call}", {"d": d})) == expected, call


def test_the_tables_are_there() -> None:
    assert len(TABLES) == 14
    assert sum(map(len, TABLES.values())) > 120


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize(
    "kind", ["rns lazy", "interval", "positional", *slow("rns", "interval lazy", "positional lazy")]
)
@pytest.mark.filterwarnings("ignore:Behaviour of argmin/argmax:FutureWarning")
def test_places_of_extremes_along_any_axes(kind: str, name: str) -> None:
    """One index, or as xarray gives them for several axes a dict of indices."""
    values = np.stack([VALUES, VALUES[::-1] - 2])
    dims = ("a", "r", "k")
    x = make(kind)
    d = xr.DataArray(rd.stack([x, x[::-1] - 2]), dims=dims)
    expected = xr.DataArray(values.astype(np.int64), dims=dims)
    for dim in (None, ..., "k", "a", ["k"], ["r", "k"], ["k", "a"], ["a", "r", "k"]):
        for how in ({}, {"skipna": False}, {"keep_attrs": True}):
            found, right = (getattr(array, name)(dim, **how) for array in (d, expected))
            assert isinstance(found, dict) == isinstance(right, dict)
            if not isinstance(right, dict):
                found, right = {"": found}, {"": right}
            assert list(found) == list(right)
            for key, places in right.items():
                assert found[key].dims == places.dims
                assert np.array_equal(np.asarray(found[key].compute().values, np.int64), places.values)
    places = getattr(d, name)(...)
    assert int(d.isel(places).compute().item()) == (values.max() if name == "argmax" else values.min())
