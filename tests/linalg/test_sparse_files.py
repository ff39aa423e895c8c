"""Files of sparse matrices: Matrix Market's and LinBox's .sms."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import rnsdask as rd
from rnsdask.core.errors import InputError, JobError
from rnsdask.io import matrix_market
from rnsdask.sparse import files, matrix

FIELDS = rd.PrimeFields([2**31 - 1, 4294967291])
MARKET = "%%MatrixMarket matrix coordinate integer general\n"


def numbers(path: Path) -> list[list[int]]:
    found = rd.sparse.read(path).to_dense(FIELDS).lift(signed=True).to_ints()
    return np.asarray(found).tolist()


def written(folder: Path, text: str, name: str = "a.mtx") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MARKET + "% a comment\n\n2 3 2\n1 1 5\n2 3 -7\n", [[5, 0, 0], [0, 0, -7]]),
        (MARKET + "1 2 1\n1 2 100000000000000000000\n", [[0, 10**20]]),
        (MARKET.replace("general", "symmetric") + "2 2 2\n1 1 4\n2 1 3\n", [[4, 3], [3, 0]]),
        (MARKET.replace("general", "skew-symmetric") + "2 2 1\n2 1 3\n", [[0, -3], [3, 0]]),
        (MARKET.replace("integer", "pattern") + "2 2 2\n1 2\n2 1\n", [[0, 1], [1, 0]]),
        (MARKET + "2 1 0\n", [[0], [0]]),
        (MARKET + "1 1 1\n01 +1 -007 % seven\n", [[-7]]),
        (MARKET + "1 2 2\n1 1 -9223372036854775808\n1 2 -9223372036854775808\n", [[-(2**63), -(2**63)]]),
        (
            MARKET.replace("general", "skew-symmetric") + "2 2 1\n2 1 -9223372036854775808\n",
            [[0, 2**63], [-(2**63), 0]],
        ),
        (MARKET + "1 1 1\n1 1 " + "9" * 5000 + "\n", [[10**5000 - 1]]),
        (MARKET.replace("integer", "unsigned-integer") + "1 1 1\n1 1 18446744073709551615\n", [[2**64 - 1]]),
        ("2 3 M\n1 1 5\n2 3 -7\n0 0 0\n", [[5, 0, 0], [0, 0, -7]]),
        ("1 1 M\n0 0 0\n", [[0]]),
    ],
)
def test_files(text: str, expected: list[list[int]], tmp_path: Path) -> None:
    modulus = FIELDS.moduli.product
    expected = [[(v + modulus // 2) % modulus - modulus // 2 for v in row] for row in expected]
    assert numbers(written(tmp_path, text)) == expected
    with gzip.open(tmp_path / "a.mtx.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    assert numbers(tmp_path / "a.mtx.gz") == expected


def test_what_scipy_writes(tmp_path: Path, rng: np.random.Generator) -> None:
    values = rng.integers(-5, 6, (6, 6)) * (rng.random((6, 6)) < 0.4)
    for dense in (values, values + values.T, values - values.T):
        scipy.io.mmwrite(tmp_path / "a.mtx", scipy.sparse.coo_array(dense))
        assert numbers(tmp_path / "a.mtx") == dense.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected %%MatrixMarket, or rows, columns and M"),
        ("1 2 3\n", "expected %%MatrixMarket, or rows"),
        (
            MARKET.replace("coordinate", "array") + "1 1\n5\n",
            "mtx:1: the format must be coordinate, got 'array'",
        ),
        (
            MARKET.replace("integer", "real") + "1 1 1\n1 1 5.0\n",
            "mtx:1: the field must be integer or unsigned-integer or pattern, got 'real'",
        ),
        (MARKET + "1 1\n", "mtx:2: expected the numbers of rows, columns and entries, got '1 1'"),
        (MARKET, "mtx:2: expected the numbers of rows, columns and entries, got ''"),
        (MARKET + "2 2 2\n1 1 5\n", "the header announces 2 entries, the file holds 1"),
        (MARKET + "2 2 1\n1 1 x\n", r"mtx: entry 1: 'x' is not an integer"),
        (MARKET + "% a\n2 2 1\n\n1 1 1_0\n", r"mtx: entry 1: '1_0' is not an integer"),
        (MARKET + "2 2 1\n1 1 1.0\n", "entry 1: '1.0' is not an integer"),
        (MARKET + "2 2 1\n1 1 \u0663\n", "entry 1: '\u0663' is not an integer"),
        (MARKET + "2 2 1\n1 1\n", "mtx:3: expected a row, a column and an integer, got '1 1'"),
        (MARKET + "2 2 1\n0 1 5\n", "entry 1: its row '0' is not from 1 to 2"),
        (
            MARKET + "2 2 2\n1 1 1\n1 100000000000000000000 5\n",
            "entry 2: its column '100000000000000000000' is not from 1 to 2",
        ),
        (MARKET + "\u00b2 2 0\n", "mtx:2: expected the numbers of rows, columns and entries"),
        (MARKET + "2 " + "9" * 5000 + " 0\n", "rows and columns must be from 0 to"),
        (
            MARKET + "2 2 " + "9" * 5000 + "\n",
            r"a general matrix of shape \(2, 2\) has at most 4 entries, got 0x31e20801036510f3\.\.\.",
        ),
        (
            MARKET.replace("general", "symmetric") + "2 2 2\n2 1 5\n1 2 5\n",
            "entry 2: those of a symmetric matrix must be below the diagonal or on it, got row 1, column 2",
        ),
        (
            MARKET.replace("general", "skew-symmetric") + "2 2 1\n1 1 5\n",
            "entry 1: those of a skew-symmetric matrix must be below the diagonal, got row 1, column 1",
        ),
        (
            MARKET.replace("integer general", "pattern skew-symmetric") + "2 2 1\n2 1\n",
            "has negative integers",
        ),
        (
            MARKET.replace("integer", "unsigned-integer") + "2 2 1\n2 1 -5\n",
            "entry 1: -5 is negative, and the field is unsigned-integer",
        ),
        (
            MARKET.replace("general", "symmetric") + "2 3 0\n",
            r"a symmetric matrix must be square, got shape \(2, 3\)",
        ),
        (MARKET + "2 2 1\n1 1 5\n1 2 5\n", "the header announces 1 entries, the file holds more"),
        (
            MARKET + "2 2 3\n1 2 5\n2 1 3\n1 2 6\n",
            "it has two entries of row 1, column 2, and no format says",
        ),
        (MARKET + "2 2 2\n2 1 5\n2 1 0\n", "it has two entries of row 2, column 1"),
        (
            MARKET.replace("integer", "pattern").replace("general", "symmetric") + "2 2 2\n2 1\n2 1\n",
            "it has two entries of row 2, column 1",
        ),
        ("2 2 M\n1 2 5\n1 2 -5\n0 0 0\n", "it has two entries of row 1, column 2"),
        ("2 2 M\n1 1 5\n", "ends with the line 0 0 0"),
        ("2 2 M\n1 1 1/2\n0 0 0\n", "entry 1: '1/2' is not an integer"),
        ("2 2 M\n0 0 0\n1 1 5\n0 0 0\n", "ends with the line 0 0 0"),
    ],
)
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(rd.InputError, match=message) as raised:
        rd.sparse.read(path)
    assert str(path) in str(raised.value)


def test_truncated_streams(tmp_path: Path) -> None:
    whole = gzip.compress((MARKET + "2 2 1\n1 1 5\n").encode())
    for data in (whole[:-6], whole[:20] + bytes(30), b"no gzip"):
        (tmp_path / "a.mtx.gz").write_bytes(data)
        with pytest.raises(rd.InputError, match=r"a\.mtx\.gz"):
            rd.sparse.read(tmp_path / "a.mtx.gz")


def test_a_byte_order_mark_and_comments_in_any_encoding(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + MARKET.encode() + b"% M\xe4rz\n1 1 1\n1 1 5\n"
    for name, data in (("a.mtx", text), ("a.mtx.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(data)
        assert numbers(tmp_path / name) == [[5]]


# ---- memory -----------------------------------------------------------------------------------------------


def bounded(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    """Let the process use so many bytes, as it believes."""
    monkeypatch.setattr(matrix, "process_limit", lambda: nbytes)
    monkeypatch.setattr(matrix, "FITS_EVERYWHERE", 0)


@pytest.mark.parametrize("shape", ["2000000000 2000000000", "2000000000 1"])
def test_a_shape_that_memory_cannot_hold(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error before anything is allocated."""
    bounded(monkeypatch, 2**33)
    sides = tuple(map(int, shape.split()))
    message = (
        rf"a sparse matrix of shape \({sides[0]}, {sides[1]}\) with \d entries takes 48 GB, and this process"
    )
    tracemalloc.start()
    try:
        for text in (f"{shape} M\n1 1 1\n0 0 0\n", f"{MARKET}{shape} 1\n1 1 1\n"):
            path = written(tmp_path, text)
            for read in (rd.sparse.read, files.measure):
                with pytest.raises(JobError, match=rf"a\.mtx: {message} may use 8\.59 GB"):
                    read(path)
        with pytest.raises(JobError, match=message):
            rd.sparse.from_entries([0], [0], [1], sides)
        wide = rd.sparse.from_entries([0], [0], [1], (1, 2 * 10**9))
        with pytest.raises(JobError, match=r"shape \(2000000000, 1\) with 1 entries takes 48 GB"):
            wide.T  # noqa: B018
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_memory_of_reading_is_within_its_estimate(
    symmetry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrices that are taken fit, and those that are refused leave less room than they need."""
    count, side = 30_000, 20_000
    monkeypatch.setattr(matrix_market, "BLOCK_BYTES", 2**13)
    rng = np.random.default_rng()
    rows = np.sort(rng.choice(side * side, count, replace=False))
    rows, columns = np.divmod(rows, side)
    if symmetry == "symmetric":
        rows, columns = np.maximum(rows, columns), np.minimum(rows, columns)
        rows, columns = np.unique(np.stack([rows, columns]), axis=1)
    entries = "\n".join(f"{i + 1} {j + 1} {i - j}" for i, j in zip(rows, columns, strict=True))
    text = f"{MARKET.replace('general', symmetry)}{side} {side} {len(rows)}\n{entries}\n"
    path = written(tmp_path, text)
    shape, most = files.measure(path)
    assert shape == (side, side)
    assert len(rows) <= most <= 2 * len(rows)
    rd.sparse.read(path)
    tracemalloc.start()
    try:
        rd.sparse.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    with monkeypatch.context() as patch:
        bounded(patch, peak)
        with pytest.raises(JobError, match="a sparse matrix of shape"):
            rd.sparse.read(path)
    bounded(monkeypatch, 2 * peak)
    assert rd.sparse.read(path).shape == shape


@pytest.mark.parametrize("piece", ["7", " ", "%", "1 1 1\n"])
def test_compressed_files_are_read_within_bounds(
    piece: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of some kilobytes that holds one line of 32 MB, or entries without an end."""
    bounded(monkeypatch, 2**24)
    monkeypatch.setattr(matrix_market, "BLOCK_BYTES", 2**13)
    is_long = len(piece) == 1
    with gzip.open(tmp_path / "a.sms.gz", "wt", compresslevel=1) as file:
        file.write("3 3 M\n")
        for _ in range(32):
            file.write(piece * (2**20 if is_long else 2**13))
    long = r"a\.sms\.gz:2: the line has more than 16777216 characters"
    tracemalloc.start()
    try:
        with pytest.raises((InputError, JobError), match=long if is_long else "a sparse matrix of shape"):
            rd.sparse.read(tmp_path / "a.sms.gz")
        assert tracemalloc.get_traced_memory()[1] < (2**26 if is_long else 2**24)
    finally:
        tracemalloc.stop()
