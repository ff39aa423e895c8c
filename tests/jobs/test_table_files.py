"""Integers of stores in NumPy, Parquet and CSV files: export writes what the name says."""

import gzip
import json
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import fail, succeed

import rnsdask as rd
from rnsdask.io import parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")

WIDE = rd.ModuliSet.for_bits(600)


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def stored(kind: str, values: list[Any], signed: bool = True, chunks: Any = 128) -> str:
    system: Any = {
        "rns": rd.RNS(WIDE, signed),
        "bounded": None,
        "interval": rd.IntervalRNS(WIDE),
        "positional": rd.Positional(600, signed=signed),
    }[kind]
    rd.from_ints(values, system).to_zarr("x.zarr", chunks=chunks, overwrite=True)
    return "x.zarr"


KINDS = pytest.mark.parametrize("kind", ["rns", "bounded", "interval", "positional"])
LONG = [(-1) ** k * k**7 for k in range(300)]
"""Numbers of several chunks, and of several batches of long ones."""


# ---- NumPy files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (LONG, np.int64),
        ([2**63 - 1, -(2**63)], np.int64),
        ([1, *[0] * 200, 2**63, 2**64 - 1], np.uint64),  # which only the second chunk tells
        ([0], np.int64),
    ],
)
@KINDS
def test_numpy_files(kind: str, values: list[int], dtype: Any) -> None:
    store = stored(kind, values, signed=min(values) < 0)
    printed = succeed("export", store, "x.npy", "--json")
    found = np.load("x.npy")
    assert (found.dtype, found.tolist(), found.flags.c_contiguous) == (dtype, values, True)
    assert json.loads(printed)["bytes_written"] == Path("x.npy").stat().st_size
    assert rd.from_ints(found).to_ints().tolist() == values


def test_numpy_files_of_several_axes() -> None:
    values = np.arange(600).reshape(3, 10, 20)
    store = stored("bounded", values.tolist(), chunks=(1, 10, 20))
    succeed("export", store, "x.npy")
    assert np.array_equal(np.load("x.npy"), values)
    store = stored("bounded", values.tolist(), chunks=(3, 10, 5))
    assert "rnsdask rechunk" in fail("export", store, "x.npy", "--overwrite")
    assert np.array_equal(np.load("x.npy"), values)


@KINDS
def test_numbers_that_no_numpy_file_holds(kind: str) -> None:
    store = stored(kind, [*[5] * 200, 2**64, 7])
    message = fail("export", store, "x.npy")
    assert message == (
        "index 200: 0x10000000000000000 (65 bits), which neither int64 nor uint64 of a NumPy file holds; a "
        "file named .parquet, .csv or .txt takes integers of any size"
    )
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr"]
    store = stored(kind, [-(2**63) - 1])
    assert "index 0: -9223372036854775809, which neither" in fail("export", store, "x.npy")
    for values in ([-1, 2**63], [-1, *[0] * 200, 2**63]):  # in one batch, and in two chunks
        message = fail("export", stored(kind, values), "x.npy")
        assert message.startswith("the integers go from -1 to 9223372036854775808, which neither int64 nor")


def test_comparisons_and_signs() -> None:
    store = stored("rns", LONG)
    succeed("eval", "a < 5", f"a={store}", "-o", "less.zarr")
    succeed("eval", "sign(a)", f"a={store}", "-o", "sign.zarr")
    for name, expected in (
        ("less.zarr", [int(v < 5) for v in LONG]),
        ("sign.zarr", [(v > 0) - (v < 0) for v in LONG]),
    ):
        succeed("export", name, "y.npy", "--overwrite")
        assert np.load("y.npy").tolist() == expected
        succeed("export", name, "y.parquet", "--overwrite")
        assert pq.read_table("y.parquet")["value"].to_pylist() == expected


# ---- Parquet files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (LONG, pa.int64()),
        ([2**63, 0], pa.uint64()),
        ([10**37, -(10**37)], pa.decimal128(38, 0)),
        ([10**70] * 300, pa.decimal256(76, 0)),
        ([-(10**150), 5, 0] * 100, pa.large_string()),
    ],
)
def test_parquet_files(values: list[int], column: Any) -> None:
    store = stored("bounded", values)
    printed = json.loads(succeed("export", store, "x.parquet", "--json"))
    assert (printed["count"], printed["bytes_written"]) == (len(values), Path("x.parquet").stat().st_size)
    found = pq.read_table("x.parquet")
    assert (found.column_names, found["value"].type) == (["value"], column)
    assert [int(value) for value in found["value"].to_pylist()] == values
    again = rd.read_parquet("x.parquet", "value", rd.RNS(WIDE, True))
    assert again.to_ints().tolist() == values


@pytest.mark.parametrize("kind", ["interval", "positional"])
def test_parquet_files_of_wide_systems(kind: str) -> None:
    succeed("export", stored(kind, LONG), "x.PQ")
    found = pq.read_table("x.PQ")["value"]
    assert (found.type, [int(v) for v in found.to_pylist()]) == (pa.large_string(), LONG)


def test_missing_decimals_are_named_by_their_row() -> None:
    units = pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(10, 2))
    pq.write_table(pa.table({"a": units}), "a.parquet")
    text = fail("import", "a.parquet", "x.zarr", "--column", "a", "--scale", "2")
    assert "a.parquet: column 'a', row 3: the value is missing" in text


def test_row_groups_are_written_as_they_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 1000)
    store = stored("bounded", LONG)
    succeed("export", store, "x.parquet")
    file = pq.ParquetFile("x.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [128, 128, 44]
    assert file.read()["value"].to_pylist() == LONG


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = fail("export", stored("rns", [1]), "x.parquet")
    assert message == "writing Parquet needs pyarrow: pip install 'rnsdask[parquet]'"
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr"]


# ---- CSV files --------------------------------------------------------------------------------------------


@KINDS
def test_csv_files(kind: str) -> None:
    values = [*LONG, 10**150]
    store = stored(kind, values)
    printed = json.loads(succeed("export", store, "x.csv", "--json"))
    assert printed["bytes_written"] == Path("x.csv").stat().st_size
    assert Path("x.csv").read_text() == "".join(f"{line}\n" for line in ("value", *values))
    frame = pd.read_csv("x.csv", dtype=str)
    assert rd.from_ints(frame["value"]).to_ints().tolist() == values
    succeed("import", "x.csv", "y.zarr", "--bits", 600, "--signed")
    assert rd.open_zarr("y.zarr").to_ints().tolist() == values
    succeed("export", store, "x.csv.gz")
    assert gzip.decompress(Path("x.csv.gz").read_bytes()) == Path("x.csv").read_bytes()
    succeed("import", "x.csv.gz", "z.zarr", "--bits", 600, "--signed")
    assert rd.open_zarr("z.zarr").to_ints().tolist() == values


@pytest.mark.parametrize("text", ["value\n5\n6\n", "value\r\n5\r\n6\r\n", "\ufeffvalue\n5\n6\n", "5\n6\n"])
def test_headers_of_csv_files(text: str) -> None:
    Path("n.csv").write_bytes(text.encode())
    succeed("import", "n.csv", "y.zarr", "--bits", 8)
    assert rd.open_zarr("y.zarr").to_ints().tolist() == [5, 6]


def test_lines_after_a_header_keep_their_numbers() -> None:
    Path("n.csv").write_text("value\n5\nsix\n")
    assert fail("import", "n.csv", "y.zarr", "--bits", 8).startswith("n.csv:3: 'six' is not an integer")
    Path("n.csv").write_text("value\n")
    assert "n.csv: it is empty" in fail("import", "n.csv", "y.zarr", "--bits", 8)
    Path("n.csv").write_text("5\nvalue\n")
    assert fail("import", "n.csv", "y.zarr", "--bits", 8).startswith("n.csv:2: 'value' is not an integer")
    Path("n.csv").write_text("value\n5\n")
    assert "n.csv:1: " in fail("import", "n.csv", "y.zarr", "--bits", 8, "--strict")


def test_a_header_that_comes_in_pieces() -> None:
    import io

    from rnsdask.io.integer_reading import TextReader

    class Slow(io.RawIOBase):
        data = b"value\n5\n6\n"

        def read(self, _size: int = -1, /) -> bytes:
            piece, self.data = self.data[:1], self.data[1:]
            return piece

    reader = TextReader(Slow(), "n", 0, 255)  # type: ignore[arg-type]
    batch = reader.read(10)
    assert ([batch.value(0), batch.value(1)], reader.bytes_read) == ([5, 6], 10)


# ---- names that contradict the options --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.npy", "x.parquet", "x.csv"])
def test_hexadecimal_text_and_records_have_other_names(name: str) -> None:
    store = stored("rns", [1])
    for form in (["--hex"], ["--binary", 8]):
        message = fail("export", store, name, *form, status=2)
        assert message.startswith(f"{name}: its name is that of ")
        assert "without --hex and --binary" in message


@pytest.mark.parametrize("name", ["x.npy.gz", "x.parquet.xz"])
def test_tables_are_not_compressed(name: str) -> None:
    message = fail("export", stored("rns", [1]), name, status=2)
    assert "not compressed, it is written as its name says" in message
    assert not Path(name).exists()


def test_a_pipe_cannot_have_its_header_written_again() -> None:
    import os

    store = stored("positional", [2**63], signed=False)
    os.mkfifo("x.npy")
    reader = threading.Thread(target=lambda: Path("x.npy").read_bytes())
    reader.start()
    message = fail("export", store, "x.npy")
    reader.join()
    assert "uint64" in message
    assert "pipe" in message
