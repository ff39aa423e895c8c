"""The pipelines against slow and obvious computations of the same."""

import runpy
from pathlib import Path
from typing import Any

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
