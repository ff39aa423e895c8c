"""Files of sparse matrices: Matrix Market's and LinBox's .sms."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import rnsdask as rd

FIELDS = rd.PrimeFields([2**31 - 1, 4294967291])
MARKET = "%%MatrixMarket matrix coordinate integer general\n"


def numbers(path: Path) -> list[list[int]]:
    found = rd.sparse.read(path).to_dense(FIELDS).lift(signed=True).to_ints()
    return np.asarray(found).tolist()


def written(folder: Path, text: str, name: str = "a.mtx") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MARKET + "% a comment\n\n2 3 2\n1 1 5\n2 3 -7\n", [[5, 0, 0], [0, 0, -7]]),
        (MARKET + "2 2 3\n1 1 5\n2 1 3\n1 1 6\n", [[11, 0], [3, 0]]),
        (MARKET + "1 2 1\n1 2 100000000000000000000\n", [[0, 10**20]]),
        (MARKET.replace("general", "symmetric") + "2 2 2\n1 1 4\n2 1 3\n", [[4, 3], [3, 0]]),
        (MARKET.replace("general", "skew-symmetric") + "2 2 1\n2 1 3\n", [[0, -3], [3, 0]]),
        (MARKET.replace("integer", "pattern") + "2 2 2\n1 2\n2 1\n", [[0, 1], [1, 0]]),
        (MARKET + "2 1 0\n", [[0], [0]]),
        ("2 3 M\n1 1 5\n2 3 -7\n0 0 0\n", [[5, 0, 0], [0, 0, -7]]),
        ("1 1 M\n0 0 0\n", [[0]]),
    ],
)
def test_files(text: str, expected: list[list[int]], tmp_path: Path) -> None:
    modulus = FIELDS.moduli.product
    expected = [[(v + modulus // 2) % modulus - modulus // 2 for v in row] for row in expected]
    assert numbers(written(tmp_path, text)) == expected
    with gzip.open(tmp_path / "a.mtx.gz", "wt") as file:
        file.write(text)
    assert numbers(tmp_path / "a.mtx.gz") == expected


def test_what_scipy_writes(tmp_path: Path, rng: np.random.Generator) -> None:
    values = rng.integers(-5, 6, (6, 6)) * (rng.random((6, 6)) < 0.4)
    for matrix in (values, values + values.T, values - values.T):
        scipy.io.mmwrite(tmp_path / "a.mtx", scipy.sparse.coo_array(matrix))
        assert numbers(tmp_path / "a.mtx") == matrix.tolist()


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
        (MARKET + "2 2 1\n1 1 x\n", "entries are integers"),
        (MARKET + "2 2 1\n1 1\n", "an entry has 3 integers, got 2"),
        (MARKET + "2 2 1\n0 1 5\n", r"rows\[0\] is -1, out of the 2 rows of shape \(in the file"),
        (MARKET + "2 2 1\n1 100000000000000000000 5\n", "in the file, places are from 1"),
        (MARKET.replace("general", "symmetric") + "2 3 0\n", "a symmetric matrix must be square, got 2 x 3"),
        ("2 2 M\n1 1 5\n", "ends with the line 0 0 0"),
        ("2 2 M\n1 1 1/2\n0 0 0\n", "entries are integers"),
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
    for data in (whole[:-6], b"no gzip"):
        (tmp_path / "a.mtx.gz").write_bytes(data)
        with pytest.raises(rd.InputError, match=r"a\.mtx\.gz"):
            rd.sparse.read(tmp_path / "a.mtx.gz")
