"""Matrix Market files of integers, imported: against the matrix that the text was made of."""

import gzip
import io
import random
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from commands import fail, succeed
from strategies import slow

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.io.matrix_market import MatrixMarketReader
from rnsdask.rns.system import RNS
from rnsdask.store import StoreWriter

pytestmark = pytest.mark.usefixtures("in_empty_folder")


def matrix(rows: int, columns: int, symmetry: str, filled: float, seed: int) -> Any:
    """Numbers of 300 bits, both signs; so many of them are not 0."""
    source = random.Random(seed)
    dense = np.zeros((rows, columns), dtype=object)
    for i in range(rows):
        for j in range(columns):
            value = source.randint(-(2**300), 2**300) if source.random() < filled else 0
            if symmetry != "general" and j > i:
                continue
            dense[i, j] = value
            if symmetry == "symmetric":
                dense[j, i] = value
            elif symmetry == "skew-symmetric":
                dense[i, j], dense[j, i] = (value, -value) if i != j else (0, 0)
    return dense


def text_of(dense: Any, layout: str, symmetry: str, seed: int = 1) -> bytes:
    """The file, sparse entries in any order, with comments and blank lines."""
    rows, columns = dense.shape
    places = [
        (i, j)
        for j in range(columns)
        for i in range(rows)
        if symmetry == "general" or i > j or (i == j and symmetry == "symmetric")
    ]
    head = f"%%MatrixMarket Matrix {layout} INTEGER {symmetry}\n% a comment\n%\n\n"
    if layout == "array":
        lines = [f"{dense[place]}" for place in places]
        return (head + f"{rows} {columns}\n" + "\n".join(lines) + "\n").encode()
    places = [place for place in places if dense[place]]
    random.Random(seed).shuffle(places)
    lines = [f"  {i + 1}\t{j + 1} {dense[i, j]}\r" for i, j in places]
    return (head + f"{rows} {columns} {len(lines)}\n" + "\n\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("layout", ["array", "coordinate"])
@pytest.mark.parametrize(
    ("symmetry", "shape"),
    [
        *(("general", shape) for shape in ((1, 1), (7, 7), (150, 150), (3, 40), (40, 3))),
        *((symmetry, (n, n)) for symmetry in ("symmetric", "skew-symmetric") for n in (1, 7)),
        ("symmetric", (150, 150)),
        pytest.param("skew-symmetric", (150, 150), marks=pytest.mark.slow),
    ],
)
def test_matrices(layout: str, symmetry: str, shape: tuple[int, int]) -> None:
    some = max(2, shape[0] * shape[1] // 9)
    for filled, chunk in ((1.0, "auto"), (0.1, some), (0.0, "auto")):
        dense = matrix(*shape, symmetry, filled, seed=shape[0])
        Path("m.mtx").write_bytes(text_of(dense, layout, symmetry))
        out = succeed("import", "m.mtx", "m.zarr", "--bits", 310, "--signed", "--chunk", chunk, "--overwrite")
        assert f"{dense.size} integer" in out
        x = rd.open_zarr("m.zarr")
        assert x.shape == shape
        assert (x.to_ints() == dense).all()
        assert x.bound == max(abs(value) for value in dense.flat)


def test_compressed_and_from_standard_input() -> None:
    dense = matrix(20, 30, "general", 0.5, seed=1)
    data = text_of(dense, "coordinate", "general")
    Path("m.mtx.gz").write_bytes(gzip.compress(data))
    succeed("import", "m.mtx.gz", "m.zarr", "--bits", 310, "--signed", "--shape", "20,30")
    assert (rd.open_zarr("m.zarr").to_ints() == dense).all()
    how = ["import", "-", "n.zarr", "--bits", "310", "--signed"]
    assert CliRunner().invoke(main, how, input=data).exit_code == 0
    assert (rd.open_zarr("n.zarr").to_ints() == dense).all()


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("banner", [b"%%matrixmarket", b"%%MATRIXMARKET", b"%%MatrixMarket"])
def test_banners_and_comments_of_other_programs(banner: bytes, mark: bytes) -> None:
    """A BOM, any case, the field that SciPy writes of unsigned integers, comments among entries and last."""
    for end in (b"\n", b"\r\n"):
        lines = [
            banner + b" matrix coordinate unsigned-integer general", b"% made by a program", b"", b" % 9 9 9",
            b"2 3 2", b"% entries", b"2 3 18446744073709551615", b"", b"  %% one more", b"1 1 7", b"%",
        ]  # fmt: skip
        Path("m").write_bytes(mark + end.join(lines) + end)
        for signed in ([], ["--signed"]):
            succeed("import", "m", "m.zarr", "--bits", 66, "--overwrite", *signed)
            assert rd.open_zarr("m.zarr").to_ints().tolist() == [[7, 0, 0], [0, 0, 2**64 - 1]]


def test_an_import_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = abs(matrix(30, 20, "general", 1.0, seed=2))
    Path("m").write_bytes(text_of(dense, "array", "general"))
    how = ["import", "m", "m.zarr", "--bits", 310, "--chunk", 100, "--no-progress"]
    write = StoreWriter.write_chunk

    def write_three(self: StoreWriter, index: tuple[int, ...], residues: Any) -> None:
        if index[0] == 3:
            raise OSError("no space left")
        write(self, index, residues)

    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "write_chunk", write_three)
        assert "no space left" in fail(*how)
    assert "3 chunks kept" in succeed(*how, "--resume")
    assert (rd.open_zarr("m.zarr").to_ints() == dense).all()


@pytest.mark.parametrize("symmetry", ["general", *slow("symmetric")])
def test_memory_of_entries(symmetry: str) -> None:
    """Bytes by `held`, from which the plan of an import follows."""
    side = 200 if symmetry == "general" else 280
    text = text_of(matrix(side, side, symmetry, 1.0, seed=1), "coordinate", symmetry)
    system = RNS(rd.ModuliSet.for_bits(31 * 200), signed=True)
    reader = MatrixMarketReader(io.BytesIO(text), "m", system)
    tracemalloc.start()
    try:
        reader.read(1)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held <= 1.1 * reader.held
    assert peak <= 2.4 * reader.held


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%%MatrixMarket matrix array integer\n", r"m:1: a Matrix Market file begins"),
        ("%%MatrixMarket vector array integer general\n", r"m:1: a Matrix Market file begins"),
        ("%%MatrixMarkets matrix array integer general\n1 1\n5\n", r"m:1: a Matrix Market file begins"),
        ("%%MatrixMarket matrix dense integer general\n", r"format must be coordinate or array, got 'dense'"),
        *(
            (
                f"%%MatrixMarket matrix coordinate {field} general\n",
                rf"m:1: the field must be integer or unsigned-integer, got '{field}'",
            )
            for field in ("real", "double", "complex", "pattern")
        ),
        ("{unsigned}2 1\n5\n-6\n", r"m: entry 2: -6 is negative, and the field is unsigned-integer"),
        (
            "%%MatrixMarket matrix array unsigned-integer skew-symmetric\n2 2\n1\n",
            r"m:1: a skew-symmetric matrix has negative integers, and the field is unsigned-integer",
        ),
        ("{array}" + "%" * 70000 + "\n1 1\n5\n", r"m:2: the line has more than 65536 characters"),
        (
            "{sparse}9223372036854775808 1 1\n1 1 5\n",
            r"m:2: a matrix must have fewer than 2\*\*63 numbers, got shape \(9223372036854775808, 1\)",
        ),
        (
            "{sparse}5000000000 5000000000 1\n1 1 5\n",
            r"m:2: a matrix must have fewer than 2\*\*63 numbers, got shape \(5000000000, 5000000000\)",
        ),
        ("{array}3 " + "9" * 5000 + "\n", r"m:2: a matrix must have fewer than 2\*\*63 numbers, got shape"),
        (
            "{sparse}2 2 99999999999999999999\n1 1 5\n",
            r"m:2: a general matrix of shape \(2, 2\) has at most 4 entries, got 0x56bc75e2d630f",
        ),
        (
            "%%MatrixMarket matrix coordinate integer symmetric\n3 3 7\n",
            r"m:2: a symmetric matrix of shape \(3, 3\) has at most 6 entries, got 7",
        ),
        ("%%MatrixMarket matrix array integer hermitian\n", r"the symmetry must be general or symmetric or"),
        ("{array}%\n", r"m:3: expected the numbers of rows and columns, got ''"),
        ("{array}2 x\n", r"m:2: expected the numbers of rows and columns, got '2 x'"),
        ("{array}2 2 4\n", r"m:2: expected the numbers of rows and columns, got '2 2 4'"),
        ("{sparse}2 2\n", r"m:2: expected the numbers of rows, columns and entries, got '2 2'"),
        ("{array}0 2\n", r"m:2: a matrix must have at least one number, got shape \(0, 2\)"),
        ("{array}2 1\n5\n", r"m: the header announces 2 entries, the file holds 1"),
        ("{array}2 1\n5\n6\n\n7\n", r"m: the header announces 2 entries, the file holds more"),
        ("{array}2 1\n5\n6 7\n", r"m:4: expected an integer, got '6 7'"),
        ("{array}2 1\n5\n6.5\n", r"m: entry 2: '6.5' is not an integer"),
        ("{array}2 1\n5\n-6\n", r"m: entry 2: -6 is not in the range of 0 to .* \(--signed allows negative"),
        ("{array}2 1\n5\n" + "9" * 5000 + "\n", r"m:4: the line has more than 4118 characters"),
        ("{sparse}2 2 1\n1 1\n", r"m:3: expected a row, a column and an integer, got '1 1'"),
        ("{sparse}2 2 1\n1 1 5 6\n", r"m:3: expected a row, a column and an integer, got '1 1 5 6'"),
        ("{sparse}2 3 1\n3 1 5\n", r"m: entry 1: its row '3' is not from 1 to 2"),
        ("{sparse}2 3 2\n2 3 5\n2 4 5\n", r"m: entry 2: its column '4' is not from 1 to 3"),
        ("{sparse}2 3 1\n0 1 5\n", r"its row '0' is not from 1 to 2"),
        ("{sparse}2 3 1\n-1 1 5\n", r"its row '-1' is not from 1 to 2"),
        ("{sparse}2 3 1\n1.0 1 5\n", r"its row '1.0' is not from 1 to 2"),
        ("{sparse}2 3 1\n" + "9" * 30 + " 1 5\n", r"its row '9999"),
        ("{sparse}2 3 2\n1 2 5\n1 2 0\n", r"m: it has two entries of row 1, column 2"),
        (
            "%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n1 2 5\n",
            r"m: entry 1: those of a symmetric matrix must be below the diagonal or on it, got row 1, col",
        ),
        ("%%MatrixMarket matrix array integer symmetric\n2 3\n", r"a symmetric matrix must be square"),
        ("%%MatrixMarket matrix array integer skew-symmetric\n2 2\n1\n", r"which need a signed array"),
    ],
)
def test_files_that_are_refused(text: str, message: str) -> None:
    banner = "%%MatrixMarket matrix {} {} general\n"
    kinds = {
        "array": banner.format("array", "integer"),
        "sparse": banner.format("coordinate", "integer"),
        "unsigned": banner.format("array", "unsigned-integer"),
    }
    Path("m").write_text(text.format(**kinds))
    signed = ["--signed"] if "unsigned-integer" in message else []
    assert re.search(message, fail("import", "m", "m.zarr", "--bits", 64, "--no-progress", *signed))
    with pytest.raises(rd.StoreError):
        rd.open_zarr("m.zarr")


def test_the_diagonal_of_a_skew_symmetric_matrix_is_no_entry() -> None:
    Path("m").write_text("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n1 1 0\n")
    message = fail("import", "m", "m.zarr", "--bits", 64, "--signed")
    assert "those of a skew-symmetric matrix must be below the diagonal, got row 1, column 1" in message


def test_options_that_do_not_fit() -> None:
    Path("m").write_text("%%MatrixMarket matrix array integer general\n2 1\n5\n6\n")
    how = ("import", "m", "m.zarr", "--bits", 64)
    assert "of shape (2, 1)" in fail(*how, "--shape", "1,2", status=2)
    assert "--strict is about text, and m is a Matrix Market file" in fail(*how, "--strict", status=2)
