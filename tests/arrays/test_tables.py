"""Tables in and out: decimals with fractions as scaled integers, text of some bits, Arrow's protocol."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rnsdask as rd

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")

AMOUNTS = [Decimal("1.50"), Decimal("-0.05"), Decimal("12345678901234567890.12"), Decimal("0")]
CENTS = [150, -5, 1234567890123456789012, 0]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 2), pa.decimal256(50, 2), pa.decimal128(30, 2)], ids=str)
def test_decimals_with_a_scale(kind: Any) -> None:
    values = pa.array(AMOUNTS, kind)
    columns = [
        values,
        pa.chunked_array([values[:1], values[1:1], values[1:]]),
        pd.Series(values, dtype=pd.ArrowDtype(kind)),
    ]
    for column in columns:
        assert rd.from_ints(column, scale=2).tolist() == CENTS
        assert rd.from_ints(column, scale=5).tolist() == [1000 * v for v in CENTS]
        with pytest.raises(
            TypeError, match=r"has 2 digits after the point; scale=2 reads them as integers of units of 10"
        ):
            rd.from_ints(column)
        with pytest.raises(TypeError, match=r"scale must be from 2 to 1002 .* got 1; scale=2 reads them"):
            rd.from_ints(column, scale=1)
    assert rd.from_ints(pa.array([Decimal(7)], pa.decimal128(5, 0)), scale=1).tolist() == [70]
    assert rd.from_ints(pa.array([Decimal(700)], pa.decimal128(5, -2)), scale=0).tolist() == [700]


def test_a_scale_is_for_decimals() -> None:
    for values in ([1], pd.Series([1]), pa.array([1]), pa.array(["1"])):
        with pytest.raises(TypeError, match="scale=2 is for decimals"):
            rd.from_ints(values, scale=2)
    with pytest.raises(TypeError, match="scale"):
        rd.from_ints(pa.array(AMOUNTS), scale=0.5)  # type: ignore[call-overload]


def test_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    text = ["5", "-6", str(2**90), "0x10"]
    table = pa.table({"wei": pa.array(AMOUNTS, pa.decimal128(38, 2)), "text": text, "n": [1, -2, 3, 4]})
    parquet.write_table(table, file, row_group_size=3)
    x = rd.read_parquet(file, "wei", scale=2)
    assert (x.tolist(), x.signed, x.bound) == (CENTS, True, 10**38 - 1)
    assert rd.read_parquet(file, "wei", scale=4, bits=200).tolist() == [100 * v for v in CENTS]
    assert rd.read_parquet(file, "text", bits=100, signed=True).tolist() == [5, -6, 2**90, 16]
    y = rd.read_parquet(file, "n", bits=100)
    assert (y.tolist(), y.signed, y.moduli) == ([1, -2, 3, 4], True, rd.ModuliSet.for_bits(100))
    errors: list[tuple[type[Exception], str, dict[str, Any], str]] = [
        (TypeError, "wei", {}, "column 'wei': .*; scale=2 reads them as integers of units of 10"),
        (TypeError, "wei", {"scale": 1}, "column 'wei': scale must be from 2 to 1002"),
        (
            TypeError,
            "text",
            {"scale": 1, "bits": 9},
            "scale=1 is for decimals, got Arrow's type string",
        ),
        (ValueError, "text", {}, "column 'text' is text, .*: give their length, such as bits=256, or moduli"),
        (TypeError, "text", {"bits": 9, "moduli": rd.ModuliSet([5, 7])}, "give either bits or moduli"),
        (
            rd.InputError,
            "text",
            {"bits": 100},
            "value -6 at position 1 is outside the unsigned",
        ),
    ]
    for kind, column, options, message in errors:
        with pytest.raises(kind, match=message):
            rd.read_parquet(file, column, **options).to_ints()


class Exporter:
    """An array as a library sees it that reads by Arrow's protocol alone."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._x.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("chunks", [None, 2])
def test_arrow_protocol(chunks: int | None) -> None:
    for values in ([1, -2, 3], [2**64 - 1, 0], [2**100, -5], [2**300]):
        x = rd.from_ints(values, chunks=chunks)
        found = pa.array(Exporter(x))
        assert (found.type, [int(v) for v in found.to_pylist()]) == (x.to_arrow().type, values)


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    x = rd.from_ints([5, 2**70])
    assert [int(v) for v in pl.Series("x", x).to_list()] == [5, 2**70]
    assert rd.from_ints(pl.Series(AMOUNTS), scale=2).tolist() == CENTS
    groups, sums = rd.group_reduce(x, pl.Series(["a", "a"]), "sum")
    assert (groups.tolist(), sums.tolist()) == (["a"], [5 + 2**70])
