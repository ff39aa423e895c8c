"""Files of other formats are refused by name or first bytes, where they would be read or written wrongly."""

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from commands import fail, succeed

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.core.file_formats import format_of_begin

pytestmark = pytest.mark.usefixtures("in_empty_folder")


def saved(function: Any, *args: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    function(stream, *args, **options)
    return stream.getvalue()


NUMBERS = np.arange(96, dtype=np.int64)
NPY = saved(np.save, NUMBERS)
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(88)
MATRIX = b"%%MatrixMarket matrix array integer general\n1 1\n55\n"
FILES = {
    "a NumPy file": NPY,
    "a zip archive": saved(np.savez, a=NUMBERS),
    "an HDF5 file": HDF5,
    "a Parquet file": b"PAR1\x15\x04\x150" + bytes(64) + b"PAR1",
    "an Arrow file": b"ARROW1\x00\x00" + bytes(64),
}
COMPRESSED = {"gzip": gzip.compress(NPY), "bzip2": bz2.compress(NPY), "xz": lzma.compress(NPY)}


def padded(data: bytes) -> bytes:
    """The data with as many bytes as whole records of 8 bytes have."""
    return data + bytes(-len(data) % 8)


# ---- import -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_other_formats_are_neither_text_nor_records(kind: str, packed: bool) -> None:
    data = padded(FILES[kind])
    source = "n.gz" if packed else "n"
    Path(source).write_bytes(gzip.compress(data) if packed else data)
    message = fail("import", source, "x.zarr", "--bits", 64, "--binary", 8)
    assert message.startswith(f"{source}: its first bytes are those of {kind}")
    if kind != "a NumPy file":
        message = fail("import", source, "x.zarr", "--bits", 64)
        assert message.startswith(f"{source}: it{'' if kind == 'a Parquet file' else 's first bytes are'}")
    assert not Path("x.zarr").exists()


def test_standard_input_is_looked_at_too() -> None:
    how = ["import", "-", "x.zarr", "--bits", "64", "--binary", "8"]
    result = CliRunner().invoke(main, how, input=NPY)
    assert result.exit_code == 1
    assert "<stdin>: its first bytes are those of a NumPy file" in result.stderr
    assert "import without --binary reads it" in result.stderr


def test_parquet_of_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for values in ([], [1, 2, 3]):
        pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), "n")
        assert format_of_begin(Path("n").read_bytes()[:32]) == "a Parquet file"
        assert "import without --binary reads it" in fail("import", "n", "x.zarr", "--binary", 1, "--bits", 9)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_records_that_are_compressed_without_saying_so(kind: str) -> None:
    Path("n.bin").write_bytes(padded(COMPRESSED[kind]))
    message = fail("import", "n.bin", "x.zarr", "--bits", 64, "--binary", 8)
    assert message.startswith(f"n.bin: its first bytes are those of data compressed by {kind}")
    assert "name it" in message


def test_a_matrix_is_no_records() -> None:
    Path("m").write_bytes(padded(MATRIX))
    message = fail("import", "m", "x.zarr", "--bits", 64, "--binary", 8)
    assert message.startswith("m: its first bytes are those of a Matrix Market file")
    assert "without --binary" in message


@pytest.mark.parametrize(
    "name", ["n.npy", "n.NPZ", "n.parquet", "n.h5", "n.txt", "n.csv", "n.mtx", "n.json", "n.txt.gz"]
)
def test_records_whose_name_is_another_formats(name: str) -> None:
    data = NUMBERS.tobytes()
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    message = fail("import", name, "x.zarr", "--bits", 64, "--binary", 8)
    assert message.startswith(f"{name}: its name is that of ")
    assert "n.bin" in message
    assert not Path("x.zarr").exists()


def test_records_and_text_of_other_names_are_read() -> None:
    for name in ("n", "n.bin", "n.dat", "n.v1.2"):
        Path(name).write_bytes(NUMBERS.tobytes())
        succeed("import", name, "x.zarr", "--bits", 64, "--binary", 8, "--overwrite")
        assert rd.open_zarr("x.zarr").to_ints().tolist() == NUMBERS.tolist()
    Path("n.csv").write_text("5\n-6\n")
    succeed("import", "n.csv", "x.zarr", "--bits", 64, "--signed", "--overwrite")
    assert rd.open_zarr("x.zarr").to_ints().tolist() == [5, -6]


@pytest.mark.parametrize("begin", [b"PK\x03\x04", b"PAR1", b"\x1f\x8b\x08", b"BZh9", b"\x28\xb5\x2f\xfd"])
def test_small_numbers_are_no_format(begin: bytes) -> None:
    for width in (4, 8):
        numbers = [begin, *(bytes([k]) for k in range(10))]
        for second in range(5):
            numbers[1] = bytes([second])
            data = b"".join(number.ljust(width, b"\0") for number in numbers)
            assert format_of_begin(data[:32], of_records=True) is None
    assert format_of_begin(gzip.compress(b""), of_records=True) == "data compressed by gzip"


def test_a_folder_is_no_file() -> None:
    rd.from_ints([1, 2]).to_zarr("x.zarr", chunks=128)
    for form in ([], ["--binary", 8]):
        message = fail("import", "x.zarr", "y.zarr", "--bits", 64, *form)
        assert message.startswith("x.zarr: it is a folder; ")
        assert "--residues" in message


def test_moduli_that_are_no_text() -> None:
    np.save("moduli.npy", np.array([7, 11]))
    Path("n").write_text("1\n")
    for how in (["import", "n", "x.zarr"], ["import", "--residues", "n", "x.zarr"]):
        message = fail(*how, "--moduli", "moduli.npy")
        assert (
            message
            == "moduli.npy: its first bytes are those of a NumPy file, not of text, one integer a line"
        )


# ---- export -----------------------------------------------------------------------------------------------

OTHERS = ["x.npz", "x.tsv", "x.json", "x.h5", "x.mtx", "y.zarr", "x.TSV", "x.npy.gz", "x.zip",
          "x.lz4", "x.arrow", "x.pkl", "x.mat", "x.xlsx"]  # fmt: skip


@pytest.fixture
def store() -> str:
    rd.from_ints([1, 2**40], rd.ModuliSet.for_bits(64), chunks=128).to_zarr("x.zarr")
    return "x.zarr"


@pytest.mark.parametrize("name", OTHERS)
def test_exports_under_names_of_other_formats(name: str, store: str) -> None:
    stem = name.split(".")[0]
    for form, what, other in (
        ([], "text", f"{stem}.txt"),
        (["--hex"], "text", f"{stem}.txt"),
        (["--binary", 8], "records", f"{stem}.bin"),
    ):
        message = fail("export", store, name, *form, status=2)
        assert message.startswith(f"{name}: its name is that of ")
        assert f"export writes {what}" in message
        assert other in message
        assert not Path(name).exists()


@pytest.mark.parametrize("name", ["x.txt", "x.npz", "x.parquet", "x.csv", "y.zarr"])
def test_residues_under_names_of_other_formats(name: str, store: str) -> None:
    message = fail("export", "--residues", store, name, status=2)
    assert message.startswith(f"{name}: its name is that of ")
    assert "x.npy" in message.replace("y.npy", "x.npy")
    assert not Path(name).exists()


def test_the_way_to_stores(store: str) -> None:
    assert "rnsdask rechunk" in fail("export", store, "y.zarr", status=2)


def test_names_that_suit(store: str) -> None:
    for name in ("out", "out.txt", "out.dat", "OUT.TXT", "numbers.v2", "-"):
        succeed("export", store, name)
    succeed("export", store, "OUT.GZ")
    assert gzip.decompress(Path("OUT.GZ").read_bytes()) == b"1\n1099511627776\n"
    for name in ("out.bin", "out.records"):
        succeed("export", store, name, "--binary", 8)
    succeed("export", "--residues", store, "r.NPY")
    assert np.load("r.NPY").shape[1] == 2
    assert "residues are written as a NumPy file" in fail("export", "--residues", store, "r.npy.gz", status=2)


# ---- stores -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["y.npy", "y.txt.gz"])
def test_stores_under_names_of_files(name: str, store: str) -> None:
    Path("n").write_text("1\n")
    for args in (
        ["import", "n", name, "--bits", 64],
        ["eval", "a+a", f"a={store}", "-o", name],
        ["extend", store, "-o", name, "--bits", 128],
        ["rechunk", store, "-o", name, "--chunks", 128],
        ["random", name, "--count", 5, "--bits", 64],
        ["cumsum", store, "-o", name],
    ):
        message = fail(*args, status=2)
        assert message.startswith(f"{name}: its name is that of "), args
        assert "y.zarr" in message
        assert not Path(name).exists()
