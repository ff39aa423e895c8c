"""A tiny run of each benchmark, so that none rots."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.mark.parametrize("kind", ["cpu", "zarr", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_bench_reduce(kind: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    command = [sys.executable, str(SCRIPTS / "bench_reduce.py"), kind, "--gib", "0.002", "--sets", "8,64b"]
    command += ["--repeat", "1", "--threads", "2", "--folder", str(tmp_path), "--json", str(result)]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = json.loads(result.read_text())["rows"]
    assert len(table.splitlines()) == 1 + len(rows)
    assert {row["n"] for row in rows} == {8, 3}
    assert {"max", "min", "sum"} <= {row["what"] for row in rows}
    assert json.loads(result.read_text())["machine"]["rnsdask"]


@pytest.mark.parametrize("kind", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_bench_arith(kind: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    command = [sys.executable, str(SCRIPTS / "bench_arith.py"), kind, "--gib", "0.0002", "--sets", "8,320b"]
    command += ["--division-gib", "0.0002", "--repeat", "1", "--json", str(result)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    groups = json.loads(result.read_text())["groups"]
    assert set(groups) == {"elementwise", "checked", "comparison", "division", "scan"}
    for rows in groups.values():
        assert {row["n"] for row in rows} == {8, 11}
        assert all(value > 0 for row in rows for value in row.values() if isinstance(value, float))


@pytest.mark.parametrize("kind", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_bench_mpint(kind: str, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    command = [sys.executable, str(SCRIPTS / "bench_mpint.py"), kind, "--count", "2000", "--sets", "8,32"]
    command += ["--repeat", "1", "--threads", "2", "--json", str(result)]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = json.loads(result.read_text())["rows"]
    assert len(table.splitlines()) == 1 + len(rows)
    assert {row["dataset"] for row in rows} == {"non-negative", "non-positive", "mixed"}
    assert {row["bits"] for row in rows} == {128, 512}
    assert {row["what"] for row in rows} == {"algorithm 1", "algorithm 2", "digits", "automatic", "GNU MP"}
    assert all(row["additions_per_s"] > 0 for row in rows)
