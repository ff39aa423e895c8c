"""Text with spaces, compressed files and shapes, by the command line and against Python's own libraries."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from commands import fail, succeed
from documents import write_sealed

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.core.errors import InputError, JobError
from rnsdask.io.compression import compressing, decompressed, first_bytes
from rnsdask.io.integer_reading import BinaryReader, TextReader
from rnsdask.io.matrix_market import is_matrix_market
from rnsdask.jobs import exporting

VALUES = [k**7 for k in range(2000)]
TEXT = b"".join(b"%d\n" % v for v in VALUES)


def zstd() -> Any:
    return pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: bytes(zstd().compress(data)),
}
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: bytes(zstd().decompress(data)),
}
EACH = pytest.mark.parametrize("suffix", COMPRESS)


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def imported(*args: object, stdin: bytes | None = None) -> list[int]:
    arguments = ["import", *map(str, args), "--bits", "128", "--chunk", "512", "--overwrite"]
    result = CliRunner().invoke(main, arguments, input=stdin, prog_name="rnsdask")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    values: list[int] = rd.open_zarr("x.zarr").to_ints().tolist()
    return values


# ---- compression ------------------------------------------------------------------------------------------


@EACH
def test_compressed_files_go_in_and_out(suffix: str) -> None:
    compress, decompress = COMPRESS[suffix], DECOMPRESS[suffix]
    Path(f"n.txt{suffix}").write_bytes(compress(TEXT))
    assert imported(f"n.txt{suffix}", "x.zarr") == VALUES
    Path("n").write_bytes(compress(TEXT[:1000]) + compress(TEXT[1000:]))  # of any name, and in two parts
    assert imported("n", "x.zarr") == VALUES
    assert imported("-", "x.zarr", stdin=compress(TEXT)) == VALUES
    succeed("export", "x.zarr", f"out{suffix}")
    assert decompress(Path(f"out{suffix}").read_bytes()) == TEXT
    succeed("export", "x.zarr", f"again{suffix}")
    assert Path(f"again{suffix}").read_bytes() == Path(f"out{suffix}").read_bytes()
    succeed("export", "x.zarr", f"records{suffix}", "--binary", "16")
    assert decompress(Path(f"records{suffix}").read_bytes()) == b"".join(
        v.to_bytes(16, "little") for v in VALUES
    )
    assert imported(f"records{suffix}", "x.zarr", "--binary", "16") == VALUES


@EACH
def test_damaged_and_cut_files_are_errors(suffix: str) -> None:
    data = COMPRESS[suffix](TEXT * 20)
    middle = len(data) // 2
    damaged = data[:middle] + bytes(b ^ 0x55 for b in data[middle : middle + 40]) + data[middle + 40 :]
    second = bytes([data[0] ^ 1]) + data[1:]  # libraries take its first bytes for what may be ignored
    for bad in (
        *(data[:-5], data[:middle], damaged, data + b"garbage", data[:9]),
        *(data + second, data + damaged, data + data[:-5], data + data[:2]),
    ):
        Path("n").write_bytes(bad)
        message = fail("import", "n", "x.zarr", "--bits", 128, "--overwrite", "--no-progress")
        assert re.match("n: its compressed data are damaged or cut: |n:[0-9]+: ", message), message
    Path("n").write_bytes(COMPRESS[suffix](b"1\nx\n"))
    assert fail("import", "n", "x.zarr", "--bits", 8, "--overwrite").startswith("n:2: 'x' is not an integer")


def test_records_are_compressed_if_their_name_says_so() -> None:
    values = [int.from_bytes(b"\x1f\x8b\x08\x00", "little"), 5]  # begins as gzip does
    Path("n.bin").write_bytes(b"".join(v.to_bytes(4, "little") for v in values))
    assert imported("n.bin", "x.zarr", "--binary", "4") == values
    Path("n.gz").write_bytes(gzip.compress(b"12345678123"))
    assert "its size of 11 bytes is not a multiple" in fail(
        "import", "n.gz", "x.zarr", "--bits", 64, "--binary", 8, "--overwrite"
    )


@pytest.mark.parametrize("first", [1, 3, 8, 15])
@pytest.mark.parametrize("kind", ["text", "gzip", "matrix", "gzip of a matrix"])
def test_a_pipe_that_begins_slowly(kind: str, first: int) -> None:
    """The first bytes tell the form of a file, and need not come at once."""
    plain = b"%%MatrixMarket matrix array integer general\n2000 1\n" + TEXT if "matrix" in kind else TEXT
    data = gzip.compress(plain) if "gzip" in kind else plain
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb", buffering=0) as stream:
            stream.write(data[:first])
            time.sleep(0.05)
            stream.write(data[first:])

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        stream = decompressed(pipe, "n", by_content=True)
        assert is_matrix_market(first_bytes(stream)) == ("matrix" in kind)
        assert stream.read() == plain
    thread.join()


def test_memory_stays_bounded_whatever_is_compressed() -> None:
    bomb = bz2.compress(b"0" * 2**24)
    stream = decompressed(io.BytesIO(bomb), "n", by_content=True)
    assert stream.read(10) == b"0" * 10
    with pytest.raises(InputError, match="the line has more than"):
        TextReader(stream, "n", 0, 2**64).read(5)


def test_without_the_package_of_zstandard(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression", "compression.zstd", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"reading zstandard needs a package: pip install 'rnsdask\[zstd\]'"):
        decompressed(io.BytesIO(b"\x28\xb5\x2f\xfd"), "n", by_content=True)
    with (
        pytest.raises(JobError, match="writing zstandard needs a package"),
        compressing(io.BytesIO(), "n.zst"),
    ):
        pass


# ---- spaces -----------------------------------------------------------------------------------------------


def test_spaces_blank_lines_and_a_mark_are_taken_unless_strict() -> None:
    data = b"\xef\xbb\xbf 1\r\n\r\n\t0x10 \n\n  7"
    Path("n").write_bytes(data)
    assert imported("n", "x.zarr") == [1, 16, 7]
    for text, message in (
        (data, r"n:1: '.*1' is not an integer"),
        (b"1\n 2\n", "n:2: ' 2' is not an integer"),
        (b"1\n\n2\n", "n:2: empty line"),
        (b"1\n2 \n", "n:2: '2 ' is not an integer"),
    ):
        Path("n").write_bytes(text)
        assert re.match(message, fail("import", "n", "y.zarr", "--bits", 64, "--strict", "--overwrite"))
    Path("n").write_bytes(b"1\r\n2\r\n")
    assert imported("n", "x.zarr", "--strict") == [1, 2]
    Path("n").write_bytes(b" \n\n")
    assert "n: it is empty" in fail("import", "n", "y.zarr", "--bits", 64)
    assert "--strict is about text" in fail(
        "import", "n", "y.zarr", "--bits", 64, "--binary", 8, "--strict", status=2
    )


# ---- records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intervals", [False, True])
def test_wide_records_are_written_and_read_a_few_at_a_time(
    intervals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many numbers of the store a batch would have: all of these are 200 MB."""
    Path("n").write_bytes(TEXT)
    succeed("import", "n", "x.zarr", "--bits", 128)
    if intervals:
        succeed("convert", "x.zarr", "-o", "g.zarr", "--to", "interval")
    width, most = 100_000, []
    converted = exporting.binary_records

    def records(*args: Any, **options: Any) -> bytes:
        data = converted(*args, **options)
        most.append(len(data))
        return data

    monkeypatch.setattr(exporting, "binary_records", records)
    succeed("export", "g.zarr" if intervals else "x.zarr", "r", "--binary", width)
    assert sum(most) == len(VALUES) * width
    assert max(most) <= 2**21
    found: list[int] = []
    with Path("r").open("rb") as stream:
        reader = BinaryReader(stream, "r", 0, 2**128, width=width, signed=False)
        while batch := reader.read(len(VALUES)):
            assert len(batch) * width <= 2**21
            found += map(batch.value, range(len(batch)))
    assert found == VALUES


@pytest.mark.parametrize("width", [1, 3, 8, 13])
@pytest.mark.parametrize("to", [None, "interval", "positional"])
def test_big_endian_records_go_in_and_out(width: int, to: str | None) -> None:
    most = 2 ** min(8 * width - 1, 70)
    values = [0, 1, -1, most - 1, -most, *(k * most // 301 for k in range(300))]
    for order in ("big", "little"):
        records = b"".join(v.to_bytes(width, order, signed=True) for v in values)  # type: ignore[arg-type]
        Path("n.bin").write_bytes(records)
        how = ["--binary", width, "--byte-order", order]
        if order == "little":
            how = how[:2]
        succeed("import", "n.bin", "x.zarr", "--bits", 72, "--signed", "--chunk", 128, "--overwrite", *how)
        assert rd.open_zarr("x.zarr").to_ints().tolist() == values
        source = "x.zarr"
        if to:
            bits = ["--bits", 72] if to == "positional" else []
            succeed("convert", "x.zarr", "-o", "y.zarr", "--to", to, "--overwrite", *bits)
            source = "y.zarr"
        succeed("export", source, "out.bin", "--overwrite", *how)
        assert Path("out.bin").read_bytes() == records


def test_big_endian_records_that_are_refused() -> None:
    Path("n.bin").write_bytes(bytes(8) + bytes(7) + b"\xff" + b"\xff" + bytes(7))
    how = ["--binary", 8, "--byte-order", "big"]
    message = fail("import", "n.bin", "x.zarr", "--bits", 8, *how)
    assert re.match(r"n.bin: index 2 \(byte 16\): 18374686479671623680 is not in the range", message), message
    assert "--byte-order needs --binary" in fail(
        "import", "n.bin", "y.zarr", "--bits", 64, "--byte-order", "big", status=2
    )
    assert "Invalid value for '--byte-order'" in fail(
        "import", "n.bin", "y.zarr", "--bits", 64, "--binary", 8, "--byte-order", "middle", status=2
    )
    Path("n").write_text("1\n256\n")
    succeed("import", "n", "z.zarr", "--bits", 64)
    assert "--byte-order needs --binary" in fail("export", "z.zarr", "o", "--byte-order", "big", status=2)
    message = fail("export", "z.zarr", "o", "--binary", 1, "--byte-order", "big")
    assert message == "index 1: 256 does not fit into 1 bytes"


# ---- shapes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2000,), (4, 500), (500, 4), (2, 5, 200), (1, 2000), (2000, 1)])
@pytest.mark.parametrize("chunk", ["auto", 128, 1024])
def test_shapes(shape: tuple[int, ...], chunk: Any) -> None:
    Path("n").write_bytes(TEXT)
    options = [] if chunk == "auto" else ["--chunk", chunk]
    succeed("import", "n", "x.zarr", "--bits", 128, "--shape", ",".join(map(str, shape)), *options)
    x = rd.open_zarr("x.zarr")
    assert x.to_ints().tolist() == np.array(VALUES, dtype=object).reshape(shape).tolist()
    if chunk != "auto":
        assert np.prod(x.residues.chunksize[1:]) <= chunk
    succeed("export", "x.zarr", "out")
    assert Path("out").read_bytes() == TEXT


def test_arrays_without_numbers_or_axes() -> None:
    for array in (np.zeros((3, 0), int), np.array(7)):
        np.save("a.npy", array)
        message = fail("import", "a.npy", "x.zarr", status=1)
        assert f"a.npy: its array has shape {array.shape}" in message
        assert "--shape 1" in message or array.ndim
    succeed("import", "a.npy", "x.zarr", "--shape", 1)
    assert rd.open_zarr("x.zarr").to_ints().tolist() == [7]


def test_lengths_are_written_as_other_integers() -> None:
    succeed("random", "x.zarr", "--shape", "2**2, 1e1,0x3", "--bits", 64, "--seed", 1)
    assert rd.open_zarr("x.zarr").shape == (4, 10, 3)


def test_shapes_that_are_refused() -> None:
    Path("n").write_bytes(TEXT)
    how = ["--bits", 128, "--overwrite", "--no-progress", "--shape"]
    for shape, status, message in (
        ("2,3", 1, r"n: shape \(2, 3\) takes 6 integers, it holds more"),
        ("3,700", 1, r"n: shape \(3, 700\) takes 2100 integers, it holds 2000"),
        ("0,5", 2, "at least one number along each axis"),
        ("2;3", 2, "--shape must be lengths with commas"),
        ("-2,3", 2, "--shape must be lengths with commas"),
        ("", 2, "--shape must be lengths with commas"),
    ):
        assert re.search(message, fail("import", "n", "x.zarr", *how, shape, status=status))
        with pytest.raises(rd.StoreError):
            rd.open_zarr("x.zarr")


def test_chunks_that_are_no_consecutive_integers_are_refused() -> None:
    Path("n").write_bytes(TEXT)
    how = ["import", "n", "x.zarr", "--bits", 128, "--shape", "4,500", "--chunk"]
    message = r"chunks of shape \(2, 100\) are not consecutive parts of an array of shape \(4, 500\)"
    assert re.search(message, fail(*how, "2,100", status=2))
    assert not Path("x.zarr").exists()
    succeed(*how, "1,100")
    assert rd.open_zarr("x.zarr").to_ints().ravel().tolist() == VALUES


def test_one_chunk_of_all_integers() -> None:
    Path("n").write_bytes(TEXT)
    succeed("import", "n", "x.zarr", "--bits", 128, "--shape", "4,500", "--chunk", -1)
    x = rd.open_zarr("x.zarr")
    assert x.chunks == ((4,), (500,))
    assert x.to_ints().ravel().tolist() == VALUES


def interrupt_after(count: int, path: str) -> None:
    """Make a store one whose writing was interrupted after so many chunks."""
    document = json.loads(Path(path, "zarr.json").read_text())
    document["attributes"]["rnsdask"]["complete"] = False
    write_sealed(Path(path), document)
    for file in sorted(file for file in Path(path, "c").rglob("*") if file.is_file())[count:]:
        file.unlink()


def test_a_shaped_import_goes_on() -> None:
    lines = TEXT.splitlines(keepends=True)
    how = ["--bits", 128, "--shape", "10,200", "--chunk", 400, "--no-progress"]
    Path("n").write_bytes(b"".join([*lines[:1500], b"x\n", *lines[1501:]]))
    assert "n:1501: 'x'" in fail("import", "n", "x.zarr", *how)
    assert not Path("x.zarr").exists()  # another run would meet the same line
    Path("n").write_bytes(TEXT)
    succeed("import", "n", "x.zarr", *how)
    interrupt_after(3, "x.zarr")
    assert re.search(
        r"x.zarr: it cannot be resumed: its shape: \(10, 200\); the job has no shape; "
        r"replace it with --overwrite$",
        fail("import", "n", "x.zarr", "--bits", 128, "--resume"),
    )
    assert "3 chunks kept" in succeed("import", "n", "x.zarr", *how, "--resume")
    assert rd.open_zarr("x.zarr").to_ints().ravel().tolist() == VALUES
