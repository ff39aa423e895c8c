"""The pipelines against slow and obvious computations of the same."""

import math
import runpy
import sys
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest

import rnsdask as rd

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


# ---- series ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 6, 257, 5000])
def test_partition_numbers(size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "partition_numbers.py"))
    numbers = pipeline["partition_numbers"](tmp_path, size)
    expected = [int(flint.fmpz(n).partitions_p()) for n in range(size)]
    assert numbers.to_ints().tolist() == expected
    assert pipeline["check"](numbers)[0].endswith(f"ends in {str(expected[-1])[-10:]}")
    capsys.readouterr()
    stores = sorted(tmp_path.iterdir())
    written = [store.stat().st_mtime_ns for store in stores]
    removed = stores[0].rename(tmp_path / "removed")
    again = pipeline["partition_numbers"](tmp_path, size)
    assert f"in {len(stores)} stores, of which {len(stores) - 1} are there" in capsys.readouterr().out
    assert again.to_ints().tolist() == expected
    assert [store.stat().st_mtime_ns for store in stores[1:]] == written[1:]
    assert removed.exists()


def test_wrong_partition_numbers(tmp_path: Path) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "partition_numbers.py"))
    numbers = pipeline["partition_numbers"](tmp_path, 1000)
    wrong = rd.where(np.arange(1000) == 999, numbers + 385, numbers)  # a multiple of 5, 7 and 11
    for x, message in ((numbers + 1, "no multiple of 5, 7 or 11"), (wrong, "FLINT has another")):
        with pytest.raises(SystemExit, match=message):
            pipeline["check"](x)


@pytest.mark.parametrize("size", [1, 2, 6, 257, 5000])
def test_ramanujan_tau(size: int, tmp_path: Path) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "ramanujan_tau.py"))
    numbers = pipeline["tau"](tmp_path / "tau.zarr", size)
    found = numbers.to_ints().tolist()
    euler = flint.fmpz_poly(pipeline["jacobi_series"](size).tolist())
    power = flint.fmpz_poly([1])
    for _ in range(8):
        power = flint.fmpz_poly((power * euler).coeffs()[:size])
    assert found == [int(c) for c in power.coeffs()]
    assert found[:8] == [1, -24, 252, -1472, 4830, -6048, -16744, 84480][:size]  # OEIS A000594
    # tau is multiplicative, and tau(p^2) is tau(p)^2 - p^11.
    tau = dict(enumerate(found, 1))
    for m, n in ((2, 3), (4, 7), (9, 25), (32, 49), (63, 64)):
        if m * n <= size:
            assert tau[m * n] == tau[m] * tau[n]
    for p in (2, 3, 5, 67):
        if p * p <= size:
            assert tau[p * p] == tau[p] ** 2 - p**11
    assert pipeline["check"](numbers).endswith(f"n = 1 to {size}; 0 are 0")
    with pytest.raises(SystemExit, match="is not the sum of the 11th powers"):
        pipeline["check"](numbers + 1)


@pytest.mark.parametrize("name", ["partition_numbers", "ramanujan_tau"])
def test_pictures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    arguments = [f"{name}.py", str(tmp_path / "x.zarr"), "--size", "1000", "--picture", str(picture)]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(PIPELINES / f"{name}.py"), run_name="__main__")
    assert picture.stat().st_size > 10_000


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["partition_numbers", "tau"])
def test_series_on_a_gpu(name: str, tmp_path: Path) -> None:
    """The GPU's results are the CPU's."""
    script = {"tau": "ramanujan_tau"}.get(name, name)
    function = runpy.run_path(str(PIPELINES / f"{script}.py"))[name]
    found, expected = (function(tmp_path / f"{on_gpu}.zarr", 3000, None, on_gpu) for on_gpu in (True, False))
    assert found.to_ints().tolist() == expected.to_ints().tolist()
