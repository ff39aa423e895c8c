"""The pipelines against slow and obvious computations of the same."""

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"


def exact_determinant(matrix: list[list[int]]) -> int:
    """Bareiss' fraction-free elimination in Python integers."""
    rows = [row.copy() for row in matrix]
    sign, previous = 1, 1
    for k in range(len(rows) - 1):
        swap = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if swap is None:
            return 0
        if swap != k:
            rows[k], rows[swap] = rows[swap], rows[k]
            sign = -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // previous
        previous = rows[k][k]
    return sign * rows[-1][-1]


@pytest.fixture(scope="module")
def pipeline() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "determinants.py"))


@pytest.mark.parametrize(("size", "count"), [(1, 5), (2, 40), (5, 60), (16, 30)])
def test_determinants(pipeline: dict[str, Any], size: int, count: int, tmp_path: Path) -> None:
    expected = [exact_determinant(m.tolist()) for m in pipeline["sign_matrices"](size, count, 7, 0)]
    assert pipeline["determinants"](size, count, 7).to_ints().tolist() == expected
    for store in (None, str(tmp_path / "determinants.zarr")):
        assert pipeline["summary"](size, count, 7, store) == {
            "greatest": max(expected),
            "index": expected.index(max(expected)),
            "least": min(expected),
            "sum": sum(expected),
            "bound": pipeline["hadamard_bound"](size),
        }


def test_determinants_over_several_chunks(pipeline: dict[str, Any]) -> None:
    result = pipeline["summary"](4, 20_000, 1)
    assert result["greatest"] == 16  # Hadamard's maximum for 4 x 4, met by many of the sample
    assert result["least"] == -16


# ---- counting ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counting() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "counting.py"))


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_pascal(counting: dict[str, Any], rows: int) -> None:
    expected = [[math.comb(i + j, i) for j in range(rows)] for i in range(rows)]
    assert counting["pascal"](rows).to_ints().tolist() == expected


@pytest.mark.parametrize("coefficients", [[7], [0, 0, -1], [3**k * (-1) ** k for k in range(30)]])
def test_horner(counting: dict[str, Any], coefficients: list[int]) -> None:
    points = np.array([-1000, -1, 0, 1, 2, 999])
    expected = [sum(c * int(p) ** k for k, c in enumerate(coefficients)) for p in points]
    assert counting["horner"](coefficients, points).to_ints().tolist() == expected


def test_domino_tilings(counting: dict[str, Any]) -> None:
    fibonacci = [1, 1]
    for _ in range(99):
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert counting["domino_tilings"](2, 100) == fibonacci[100]
    assert counting["domino_tilings"](3, 3) == 0
    assert counting["domino_tilings"](8, 8) == 12_988_816  # Kasteleyn 1961


# ---- weak keys and encrypted sums --------------------------------------------------------------------------


def run(script: str, *arguments: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [script, *map(str, arguments)])
    runpy.run_path(str(PIPELINES / script), run_name="__main__")


def test_weak_rsa_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = tmp_path / "keys", "--size", 300, "--bits", 128, "--picture", tmp_path / "keys.svg"
    run("weak_rsa_keys.py", *arguments, monkeypatch=monkeypatch)
    assert "of 300 keys share a prime with another" in capsys.readouterr().out
    assert (tmp_path / "keys.svg").exists()
    for line in (tmp_path / "keys" / "report.txt").read_text().splitlines():
        index, p, q = line.split()
        keys = (tmp_path / "keys" / "keys.txt").read_text().split()
        assert int(p, 16) * int(q, 16) == int(keys[int(index)], 16)
        assert 1 < int(p, 16) < int(keys[int(index)], 16)


def test_keys_of_which_others_have_both_primes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "moduli.txt"
    file.write_text("".join(f"{n:x}\n" for n in (101 * 103, 103 * 107, 107 * 101, 109 * 113)))
    run("weak_rsa_keys.py", tmp_path / "keys", "--file", file, monkeypatch=monkeypatch)
    assert "3 of 4 keys" in capsys.readouterr().out
    found = [line.split()[1:] for line in (tmp_path / "keys" / "report.txt").read_text().splitlines()]
    assert [sorted(int(p, 16) for p in pair) for pair in found] == [[101, 103], [103, 107], [101, 107]]


def test_paillier_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("phe")
    for _ in range(2):  # the second time what is there
        run("paillier_sums.py", tmp_path, "--size", 20, "--bits", 256, monkeypatch=monkeypatch)
        assert "phe decrypts the sum of 20 numbers" in capsys.readouterr().out
