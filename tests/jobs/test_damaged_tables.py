"""NumPy and Parquet files of any bytes, and pipes that no disk keeps: one line that names the file."""

import io
import json
import os
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import call, fail, succeed

import rnsdask as rd
from rnsdask.cli import importing
from rnsdask.core.errors import InputError
from rnsdask.io.numpy_files import read_numpy_header

pytestmark = pytest.mark.usefixtures("in_empty_folder")

INT128 = Path(__file__).parents[1] / "data" / "polars-int128.parquet"
"""A column of two 128-bit integers, written by polars 2.1."""


def npy(header: str, version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text + bytes(96)


def header(**changes: Any) -> str:
    return repr({"descr": "<i8", "fortran_order": False, "shape": (3, 4), **changes})


# ---- NumPy files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(header()[:-3]), "the header of its NumPy file is damaged: "),
        (npy(header().replace("(3", "((3")), "the header of its NumPy file is damaged: "),
        (npy("'''" + header()), "the header of its NumPy file is damaged: "),
        (npy("[" * 5000), "the header of its NumPy file is damaged: "),
        (npy(header(shape=(-3, 4))), r"the header of its NumPy file is damaged: it has shape \(-3, 4\)"),
        (npy(header(shape=(-3, -4))), r"the header of its NumPy file is damaged: it has shape \(-3, -4\)"),
        (npy(header(), b"\x09\x00"), r"its NumPy file is of version 9\.0; import reads 1\.0 to 3\.0"),
        (npy(header(), b"\x01\x05"), r"its NumPy file is of version 1\.5; import reads 1\.0 to 3\.0"),
    ],
)
def test_headers_that_are_refused(data: bytes, message: str) -> None:
    Path("n.npy").write_bytes(data)
    Path("m").write_text("7\n11\n13\n")
    for more in ([], ["--shape", "3,4"], ["--bits", 64], ["--residues", "--moduli", "m"]):
        found = fail("import", "n.npy", "x.zarr", *more)
        assert re.match(rf"n\.npy: {message}", found), found


@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00", b"\x03\x00"])
def test_versions_that_there_are(version: bytes) -> None:
    Path("n.npy").write_bytes(npy(header(), version))
    succeed("import", "n.npy", "x.zarr")
    assert rd.open_zarr("x.zarr").shape == (3, 4)


def test_headers_of_any_bytes() -> None:
    """Whatever the header holds, it is read or it is one line."""
    rng, good = Random(), npy(header())
    bytes_of_headers = b"\x00\x01\x02\t'\"()[]{}:,\\#\n -+*5aTF\xff"
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.choice([1, 2, 5])):
            data[rng.randrange(6, len(good) - 96)] = rng.choice(bytes_of_headers)
        shape: tuple[int, ...] = ()
        error = ""
        try:
            shape, _, _ = read_numpy_header(io.BytesIO(bytes(data)), "n")
        except InputError as raised:
            error = str(raised)
        assert re.fullmatch("(n: .*)?", error), data
        assert all(type(length) is int and length >= 0 for length in shape), data


def test_files_of_residues_that_are_none() -> None:
    Path("m").write_text("7\n11\n13\n")
    np.savez("n.npz", np.arange(3))
    how = ("x.zarr", "--residues", "--moduli", "m")
    assert "n.npz: it is an archive of NumPy files" in fail("import", "n.npz", *how)
    Path("n.npy").write_bytes(npy(header())[:-50])
    assert fail("import", "n.npy", *how).startswith("n.npy: it is no NumPy file (.npy) of integers, or cut")
    Path("n.npy").write_bytes(b"no array")
    assert fail("import", "n.npy", *how).startswith("n.npy: it is no NumPy file (.npy) of integers")


# ---- Parquet files ----------------------------------------------------------------------------------------


def test_integers_of_128_bits_in_parquet() -> None:
    """They are pyarrow's to read, which says that it does not."""
    pytest.importorskip("pyarrow")
    shutil.copy(INT128, "n.parquet")
    message = (
        "n.parquet: pyarrow does not read this Parquet file: Integers with more than 64 bits not "
        "implemented; write such columns as decimals of scale 0, or as text"
    )
    assert fail("import", "n.parquet", "x.zarr") == message
    with pytest.raises(InputError, match=r"n\.parquet: pyarrow does not read this Parquet file: Integers"):
        rd.read_parquet("n.parquet", "value")


def test_parquet_files_of_any_bytes() -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"value": list(range(2000))}), "good", use_dictionary=False)
    good, rng = Path("good").read_bytes(), Random()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.choice([1, 3])):
            # Without its first 5 bytes it is no Parquet file to `import`, but text.
            data[rng.randrange(5, len(good) - 4)] = rng.randrange(256)
        Path("n").write_bytes(data)
        error = ""
        try:
            rd.read_parquet("n", "value").to_ints()
        except InputError as raised:
            error = str(raised)
        assert re.fullmatch("(.*n: .*)?", error, re.DOTALL), data
        result = call("import", "n", "x.zarr", "--overwrite", "--bits", 64, "--signed")
        assert re.fullmatch(r"(rnsdask: error: n: .*\n)?", result.stderr), data


# ---- decimals of polars -----------------------------------------------------------------------------------


class Series:
    """A Series of decimals with the attributes that polars gives it; its items are Decimals."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.dtype = SimpleNamespace(scale=array.type.scale, precision=array.type.precision)

    def __iter__(self) -> Any:
        return iter(self._array.to_pylist())

    def to_arrow(self) -> Any:
        return self._array


def test_decimals_of_polars() -> None:
    from decimal import Decimal

    pa = pytest.importorskip("pyarrow")
    values = [10**30, -7, 0]
    column = pa.array(map(Decimal, values), pa.decimal128(38, 0))
    for array in (column, pa.chunked_array([column[:1], column[1:]])):
        assert rd.from_ints(Series(array)).to_ints().tolist() == values
    with pytest.raises(TypeError, match=r"be integers, and Arrow's type decimal128\(38, 1\) has 1 "):
        rd.from_ints(Series(pa.array([Decimal("0.5")], pa.decimal128(38, 1))))
    with pytest.raises(ValueError, match="position 1 is missing"):
        rd.from_ints(Series(pa.array([Decimal(1), None], pa.decimal128(38, 0))))


# ---- pipes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 2**21])
def test_a_disk_that_cannot_keep_what_a_pipe_gives(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> Any:
        return Path("/dev/full").open("r+b", buffering=0)

    monkeypatch.setattr(importing, "TemporaryFile", full)
    os.mkfifo("pipe")

    def write() -> None:
        with suppress(BrokenPipeError):
            Path("pipe").write_bytes(b"7\n" * size)

    writer = threading.Thread(target=write)
    writer.start()
    message = fail("import", "pipe", "x.zarr")
    writer.join()
    assert message == f"{Path().absolute()}: what the pipe gives: No space left on device"


# ---- zeros ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", ["2 2 0\n", "2 2 1\n2 1 0\n"])
def test_a_skew_symmetric_matrix_of_zeros(entries: str) -> None:
    Path("m").write_text(f"%%MatrixMarket matrix coordinate integer skew-symmetric\n{entries}")
    for options in ([], ["--bits", 64], ["--positional"], ["--bits", 64, "--signed"], ["--primes", "97"]):
        succeed("import", "m", "x.zarr", "--overwrite", *options)
        assert rd.open_zarr("x.zarr").to_ints().tolist() == [[0, 0], [0, 0]]
    printed = json.loads(succeed("import", "m", "x.zarr", "--overwrite", "--json"))
    assert printed["signed"] is False
