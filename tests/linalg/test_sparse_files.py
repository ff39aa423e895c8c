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
        (MARKET.replace("coordinate", "array") + "1 1\n5\n", "expected %%MatrixMarket matrix coordinate"),
        (
            MARKET.replace("integer", "real") + "1 1 1\n1 1 5.0\n",
            "field must be integer or pattern, got 'real'",
        ),
        (MARKET + "1 1\n", "expected 3 lengths, got '1 1'"),
        (MARKET, "expected 3 lengths, got ''"),
        (MARKET + "2 2 2\n1 1 5\n", "header tells of 2 entries, and there are 1"),
        (MARKET + "2 2 1\n1 1 x\n", r"mtx:3: expected 3 integers, got '1 1 x'"),
        (MARKET + "% a\n2 2 1\n\n1 1 1_0\n", r"mtx:5: expected 3 integers, got '1 1 1_0'"),
        (MARKET + "2 2 1\n1 1 1.0\n", "expected 3 integers"),
        (MARKET + "2 2 1\n1 1 \u0663\n", "expected 3 integers"),
        (MARKET + "2 2 1\n1 1\n", "expected 3 integers, got '1 1'"),
        (MARKET + "2 2 1\n0 1 5\n", "entry 1, 0 1 5, has a row out of the 2 rows"),
        (
            MARKET + "2 2 2\n1 1 1\n1 100000000000000000000 5\n",
            "entry 2, .* has a column out of the 2 columns",
        ),
        (MARKET + "\u00b2 2 0\n", "expected 3 lengths"),
        (MARKET + "2 " + "9" * 5000 + " 0\n", "rows and columns must be from 0 to"),
        (
            MARKET + "2 2 " + "9" * 5000 + "\n",
            "the header tells of 9223372036854775807 entries, and there are 0",
        ),
        (
            MARKET.replace("general", "symmetric") + "2 2 2\n2 1 5\n1 2 5\n",
            "entry 2, 1 2 5, is above the diagonal",
        ),
        (
            MARKET.replace("general", "skew-symmetric") + "2 2 1\n1 1 5\n",
            "entry 1, 1 1 5, is not below the diag",
        ),
        (
            MARKET.replace("integer general", "pattern skew-symmetric") + "2 2 1\n2 1\n",
            "has negative integers",
        ),
        (MARKET.replace("integer", "unsigned-integer") + "2 2 1\n2 1 -5\n", "entry 1, 2 1 -5, is negative"),
        (MARKET.replace("general", "symmetric") + "2 3 0\n", "a symmetric matrix must be square, got 2 x 3"),
        (MARKET + "2 2 1\n1 1 5\n1 2 5\n", "header tells of 1 entries, and there are more"),
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
        ("2 2 M\n1 1 1/2\n0 0 0\n", "expected 3 integers"),
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
    monkeypatch.setattr(files, "BLOCK_LINES", 512)
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
    monkeypatch.setattr(files, "BLOCK_LINES", 512)
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
