"""Output of --json: integers of any size are texts of digits, counts and measures are numbers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import zarr
from commands import call

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.cli.reductions import REDUCTIONS

MODULI = rd.ModuliSet.for_bits(256)
VALUES = [2**200 + 1, -(2**70), 2**53 + 1, 0, 5, -7]

TEXTS = {
    "value", "values", "min", "max", "sum", "mean", "edges", "numerators", "denominators",
    "bound", "product", "moduli", "source", "radix", "seed",
}  # fmt: skip
NUMBERS = {
    "count", "counts", "less", "equal", "greater", "first_difference", "index", "indices", "k", "flagged",
    "bit_lengths", "shape", "chunks", "n_chunks", "n_moduli", "chunks_kept", "chunks_rewritten", "passes",
    "axis", "digits", "limbs", "bits", "bytes", "bytes_read", "bytes_written", "exact_fallbacks",
    "seconds", "retries", "cores", "threads", "free_bytes", "open_files",
}  # fmt: skip

COMMANDS = {
    "moduli": "--bits 100",
    "import": "numbers.txt new.zarr --bits 256 --signed",
    "random": "new.zarr --bits 256 --count 9",
    "info": "x.zarr",
    "info of re-encoded residues": "wide.zarr",
    "info of a Fermat field": "fermat.zarr",
    "info of limbs": "limbs.zarr",
    "head": "x.zarr",
    "stats": "x.zarr",
    "hist": "x.zarr --bins 2",
    "verify": "x.zarr",
    "doctor": "x.zarr",
    "export": "x.zarr out.txt",
    **{command.name: "x.zarr" for command in REDUCTIONS},
    "prod": "y.zarr --overflow flag",
    "topk": "2 x.zarr",
    "group": "x.zarr --by labels.txt",
    "compare": "x.zarr y.zarr --all",
    "eval": "x+y x=x.zarr y=y.zarr -o new.zarr --max --argmax --extend",
    "eval of a comparison": "x<y x=x.zarr y=y.zarr --count",
    "filter": "x.zarr x>1 -o new.zarr",
    "where": "mask.zarr",
    "sort": "x.zarr new.zarr",
    "cumsum": "x.zarr new.zarr",
    "cummax": "x.zarr new.zarr",
    "cummin": "x.zarr new.zarr",
    "extend": "x.zarr new.zarr --bits 300",
    "shrink": "x.zarr new.zarr --bits 256",
    "convert": "x.zarr new.zarr --to interval",
    "concat": "x.zarr y.zarr -o new.zarr",
    "slice": "x.zarr new.zarr :2",
    "rechunk": "x.zarr new.zarr --chunks 2",
    "reshape": "x.zarr new.zarr 2,3",
    "convolve": "x.zarr y.zarr -o new.zarr",
    "powmod": "limbs.zarr 3 101 -o new.zarr",
    "batchgcd": "limbs.zarr -o new.zarr",
    "ntt": "field.zarr -o new.zarr",
    "det": "m.zarr",
    "det of fields": "fields.zarr",
    "rank": "m.zarr",
    "charpoly": "m.zarr",
    "rref": "m.zarr",
    "nullspace": "m.zarr",
    "solve": "m.zarr v.zarr",
    "resultant": "x.zarr y.zarr",
    "kernels": "list",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    primes = rd.PrimeFields([17, 97])
    arrays = {
        "x": rd.from_ints(VALUES, MODULI, True),
        "y": rd.from_ints([3, 2**60, 1, 2, 1, 1], MODULI, True),
        "m": rd.from_ints([[2**60, 1], [3, 2**61]], MODULI, True),
        "v": rd.from_ints([1, 2**62], MODULI, True),
        "limbs": rd.from_ints([1, 2**80], rd.Positional(128)),
        "field": rd.from_ints([1, 2, 3, 4], primes),
        "fields": rd.from_ints([[1, 2], [3, 4]], primes),
        "fermat": rd.from_ints([1, 2**100], rd.FermatField(2**63 + 2**34, 8)),
        "wide": rd.from_residues(np.array([[1], [2]]), [2**61 - 1, 2**62 - 57]),
    }
    for name, array in arrays.items():
        array.to_zarr(folder / f"{name}.zarr")
    zarr.save_array(folder / "mask.zarr", np.array([True, False, True]))
    (folder / "labels.txt").write_text("".join(f"{'ab'[i % 2]}\n" for i in range(len(VALUES))))
    (folder / "numbers.txt").write_text("".join(f"{value}\n" for value in VALUES))
    return folder


def leaves(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """The name of the field, and the value, of all that is neither a list nor an object."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, field if field == "bit_lengths" else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, field)
    else:
        yield field, value


def test_all_commands_with_json_are_here() -> None:
    assert isinstance(main, click.Group)
    names = {
        name for name, command in main.commands.items() if any("--json" in p.opts for p in command.params)
    }
    assert {command.split()[0] for command in COMMANDS} == names


@pytest.mark.parametrize("command", COMMANDS)
def test_integers_are_texts_and_counts_are_numbers(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words = [command.split()[0], *COMMANDS[command].replace("new.zarr", f"{command}.zarr").split(), "--json"]
    result = call(*words)
    assert result.exit_code == (command == "compare"), result.output
    assert result.stdout.count("\n") == 1
    for field, value in leaves(json.loads(result.stdout)):
        if field in TEXTS:
            assert value is None or value.lstrip("-").replace(".", "", field == "mean").isdecimal(), (
                field,
                value,
            )
        elif isinstance(value, int | float) and not isinstance(value, bool):
            assert field in NUMBERS, (field, value)
            assert value < 2**53
        elif isinstance(value, str):
            assert not value.lstrip("-").isdecimal(), (field, value)


def test_integers_are_exact(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert json.loads(call("head", "x.zarr", "--json").stdout)["values"] == list(map(str, VALUES))
    assert json.loads(call("moduli", "--bits", 256, "--json").stdout)["moduli"] == list(map(str, MODULI))
    wide = json.loads(call("info", "wide.zarr", "--json").stdout)
    assert wide["source"] == [str(2**61 - 1), str(2**62 - 57)]
    seed = json.loads(call("random", "r.zarr", "--bits", 64, "--count", 3, "--json").stdout)["seed"]
    call("random", "again.zarr", "--bits", 64, "--count", 3, "--seed", seed)
    assert call("compare", "r.zarr", "again.zarr").exit_code == 0
