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
    path.write_text(text, encoding="utf-8")
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
        (MARKET + "1 1 1\n01 +1 -007 % seven\n", [[-7]]),
        (MARKET + "1 2 2\n1 1 -9223372036854775808\n1 1 -9223372036854775808\n", [[-(2**64), 0]]),
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
