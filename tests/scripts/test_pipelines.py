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
