"""Modules that a command imports: what it does not need costs its user time at each start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rnsdask as rd

SLOW = {"cupy", "dask.array", "dask.dataframe", "distributed", "matplotlib", "pandas", "scipy", "xarray"}
"""Modules that take a tenth of a second or more to import; dask.array imports those that are installed."""

OF_CLUSTERS = {"distributed", "matplotlib"}

PROGRAM = """
import json, sys
from rnsdask.cli import main
forbidden, commands = map(json.loads, sys.argv[1:])
for command in commands:
    main(command.split(), prog_name="rnsdask", standalone_mode=False)
    if found := sorted(set(forbidden) & set(sys.modules)):
        sys.exit(f"rnsdask {command}: imports {found}")
"""

MODULI = rd.ModuliSet.for_bits(80)
SYSTEMS = {
    "residues": rd.RNS(MODULI, True, 2**70),
    "intervals": rd.IntervalRNS(MODULI),
    "limbs": rd.Positional(80, True),
    "fields": rd.PrimeFields([2**31 - 1]),
}


def errors(forbidden: set[str], commands: list[str], folder: Path) -> str:
    """Run commands one after another in a new process; return what it says of one that imports a module."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([*forbidden]), json.dumps(commands)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("starts")
    for name, system in SYSTEMS.items():
        rd.from_ints([3, 5, 2**70], system, chunks=2).to_zarr(path / f"{name}.zarr")
    return path


def test_a_module_that_is_imported_is_found(folder: Path) -> None:
    found = errors({"zarr"}, ["--version", "info residues.zarr"], folder)
    assert found == "rnsdask info residues.zarr: imports ['zarr']\n"


def test_help_imports_no_array(folder: Path) -> None:
    assert not errors({"numpy", "zarr", "dask", *SLOW}, ["--help", "max --help", "--version"], folder)


@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_that_read_or_reduce_a_store_make_no_dask_array(system: str, folder: Path) -> None:
    names = ["info", "verify", "head"]
    if system != "fields":
        names += ["max", "min", "sum", "gcd", "lcm", "bound", "stats"]
    assert not errors(SLOW, [f"{name} {system}.zarr" for name in names], folder)


def test_lazy_jobs_on_threads_import_no_cluster(folder: Path) -> None:
    commands = [
        "hist residues.zarr",
        "prod residues.zarr",
        "topk 2 residues.zarr",
        "compare residues.zarr residues.zarr",
    ]
    assert not errors(OF_CLUSTERS, commands, folder)
