"""Arrays of values that eval writes, such as comparisons and signs: described and exported; and intervals."""

import json
import re
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import fail, succeed

import rnsdask as rd

MS = rd.ModuliSet.for_bits(150)
# Limbs of magnitudes that end in zeros carry when they are negated.
VALUES = [
    *(sign * value for value in (0, 1, 2**32, 2**64, 2**96 - 1, 2**149, 5 * 2**31) for sign in (1, -1)),
    *((-1) ** i * i**17 for i in range(400)),
]
LARGE = [MS.product - 1, 1 - MS.product, MS.product // 2, -(2**159)]  # beyond a signed store of the moduli


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, and with a comparison and the signs of its numbers."""
    folder = tmp_path_factory.mktemp("made")
    with chdir(folder):
        rd.from_ints(VALUES, MS, True, chunks=128).to_zarr("x.zarr")
        succeed("eval", "x < 5", "x=x.zarr", "-o", "less.zarr")
        succeed("eval", "sign(x)", "x=x.zarr", "-o", "sign.zarr")
    return folder


@pytest.fixture(autouse=True)
def stores(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def sign(value: int) -> int:
    return (value > 0) - (value < 0)


def test_comparisons_and_signs_are_described() -> None:
    found = json.loads(succeed("info", "less.zarr", "--json"))
    count = len(VALUES)
    assert re.fullmatch("[0-9a-f]{64}", found.pop("job"))
    assert found == {
        "op": "info",
        "group": "values",
        "store": str(Path("less.zarr").absolute()),
        "dtype": "bool",
        "count": count,
        "shape": [count],
        "chunks": [128],
        "n_chunks": 4,
        "bytes": count,
        "codecs": ["bytes", "crc32c"],
        "complete": True,
    }
    lines = succeed("info", "sign.zarr").splitlines()
    assert lines[1] == f"values     {count} of int8: integers, no store of residues"
    assert lines[-2] == "complete   yes"
    file = Path("sign.zarr/zarr.json")
    file.write_text(re.sub(r'"complete":\s*true', '"complete": false', file.read_text()))
    assert succeed("info", "sign.zarr").splitlines()[-1] == "complete   no"
    assert "the array is incomplete" in fail("export", "sign.zarr", "-")


def test_comparisons_and_signs_are_exported() -> None:
    less = [int(value < 5) for value in VALUES]
    signs = [sign(value) for value in VALUES]
    for path, values in (("less.zarr", less), ("sign.zarr", signs)):
        assert succeed("export", path, "-") == "".join(f"{value}\n" for value in values)
        succeed("export", path, "out.bin", "--binary", 2)
        assert np.fromfile("out.bin", dtype="<i2").tolist() == values
        Path("out.bin").unlink()
    text = {0: "0x0\n", 1: "0x1\n", -1: "-0x1\n"}
    assert succeed("export", "sign.zarr", "-", "--hex") == "".join(text[value] for value in signs)
    found = json.loads(succeed("export", "less.zarr", "less.txt", "--json"))
    assert (found["op"], found["store"], found["output"]) == ("export", "less.zarr", "less.txt")
    assert (found["count"], found["bytes_read"], found["bytes_written"]) == (
        len(less),
        len(less),
        2 * len(less),
    )
    assert "it exists; replace it with --overwrite" in fail("export", "less.zarr", "less.txt")
    Path("less.zarr/c/2").unlink()
    assert "less.zarr: chunk c/2" in fail("export", "less.zarr", "less.txt", "--overwrite")
    assert Path("less.txt").read_text() == "".join(f"{value}\n" for value in less)


def test_comparisons_of_two_axes() -> None:
    table = np.array(VALUES[:384], dtype=object).reshape(3, 128)
    rd.from_ints(table, MS, True, chunks=(1, 128)).to_zarr("table.zarr")
    succeed("eval", "x >= 0", "x=table.zarr", "-o", "mask.zarr")
    expected = "".join(f"{int(value >= 0)}\n" for value in VALUES[:384])
    assert succeed("export", "mask.zarr", "-") == expected
    rd.from_ints(np.tile(table, (1, 2)), MS, True, chunks=(3, 128)).to_zarr("wide.zarr")
    succeed("eval", "x >= 0", "x=wide.zarr", "-o", "apart.zarr")
    assert "are not consecutive parts of the array" in fail("export", "apart.zarr", "-")


def test_an_empty_comparison() -> None:
    succeed("slice", "x.zarr", "-o", "empty.zarr", "0:0")
    succeed("eval", "x < 5", "x=empty.zarr", "-o", "none.zarr")
    assert succeed("export", "none.zarr", "-") == ""
    assert json.loads(succeed("info", "none.zarr", "--json"))["count"] == 0


@pytest.mark.parametrize("form", [[], ["--hex"], ["--binary", 21]])
def test_intervals_are_exported(form: list[Any]) -> None:
    values = VALUES + LARGE
    rd.IntervalRNSArray.from_ints(values, MS, chunks=128).to_zarr("g.zarr")
    succeed("export", "g.zarr", "out", *form)
    if form[:1] == ["--binary"]:
        expected = b"".join(value.to_bytes(21, "little", signed=True) for value in values)
    else:
        expected = "".join(f"{value:#x}\n" if form else f"{value}\n" for value in values).encode()
    assert Path("out").read_bytes() == expected
    if form[:1] == ["--binary"]:
        place = next(i for i, value in enumerate(values) if not -(2**79) <= value < 2**79)
        message = fail("export", "g.zarr", "short", "--binary", 10)
        assert re.match(rf"index {place}: .* does not fit into 10 bytes", message)
        assert not Path("short").exists()


def test_long_values_are_exported_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.rns.blocks.BATCH_RESIDUES", 100)
    assert succeed("export", "sign.zarr", "-") == "".join(f"{sign(value)}\n" for value in VALUES)
