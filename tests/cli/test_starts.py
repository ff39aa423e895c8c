"""Modules that a command imports: what it does not need costs its user time at each start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rnsdask as rd

SLOW = {"cupy", "distributed", "matplotlib", "pandas", "scipy", "xarray"}
"""Libraries that take a tenth of a second or more to import; dask.array imports those that are installed."""

PROGRAM = """
import json, sys
from rnsdask.cli import main
main(sys.argv[1:], prog_name="rnsdask", standalone_mode=False)
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(*args: str, folder: Path) -> set[str]:
    """Names of the modules that a process has imported at the end of a command."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(json.loads(found.stderr.splitlines()[-1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("starts")
    rd.from_ints([3, -5, 2**70], chunks=2).to_zarr(path / "a.zarr")
    return path


@pytest.mark.parametrize("args", [["--help"], ["max", "--help"], ["--version"]])
def test_help_imports_no_array(args: list[str], folder: Path) -> None:
    assert not imported_by(*args, folder=folder) & {"numpy", "zarr", "dask", *SLOW}


@pytest.mark.parametrize("command", ["info", "verify", "head"])
def test_commands_that_are_not_lazy_import_no_lazy_arrays(command: str, folder: Path) -> None:
    assert not imported_by(command, "a.zarr", folder=folder) & {"dask.array", *SLOW}


@pytest.mark.parametrize("command", ["max", "sum", "stats"])
def test_reductions_on_threads_import_no_cluster(command: str, folder: Path) -> None:
    assert not imported_by(command, "a.zarr", folder=folder) & {"distributed", "matplotlib"}
