"""Number systems of the tests' own, a value of six methods and a class, keep the laws of all systems."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import google_crc32c
import numpy as np
import pytest
from commands import as_json, call, contents, fail, succeed
from laws import LAWS, LAYOUTS, Case, System, check
from oracles.integers import Range
from sample_arrays import CPU, host
from toy_system import Excess, ExcessArray, Pair, PairArray

import rnsdask as rd
from rnsdask import store
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core.errors import CorruptChunkError, StoreError
from rnsdask.core.number_system import NumberSystem


def described(array_type: Any, kind: str) -> System:
    system = array_type.system_type()
    return System(
        name=str(system),
        limits=Range.of(kind, 2**64),
        array=lambda a, place: array_type(place(system.encode(a)), system),
        from_ints=lambda a: array_type(system.encode(a), system),
        is_defined=lambda x, a: bool((host(x.words) == system.encode(a)).all()),
    )


SYSTEMS = {"pairs": described(PairArray, "unsigned"), "excess": described(ExcessArray, "signed")}

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "law"), [(s, w) for s in SYSTEMS for w in LAWS])
def test_law(name: str, law: str, layout: str, rng: np.random.Generator, tmp_path: Path) -> None:
    folder: Callable[[], Path] = lambda: tmp_path  # noqa: E731
    check(law, Case(SYSTEMS[name], layout, CPU, Random(int(rng.integers(2**63))), folder))


def test_what_its_table_lacks_is_one_error() -> None:
    x = PairArray(Pair().encode([1, 2, 3]), Pair())
    for name, function in {
        "matmul": lambda: x @ x,
        "mod_add": lambda: rd.mod_add(x, x, 7),
        "inverse": lambda: rd.inverse(x),
    }.items():
        with pytest.raises(TypeError, match=f"{name} takes no PairArray: it has no such operation"):
            function()


# ---- stores and the command line ---------------------------------------------------------------------------

VALUES = [0, 1, 2**32, 2**64 - 1, 12345678901234567890]


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairArray:
    """The folder has a store of these numbers, ``x.zarr``."""
    monkeypatch.chdir(tmp_path)
    x = PairArray(Pair().encode(VALUES), Pair())
    x.to_zarr("x.zarr", chunks=3)
    return x


def test_a_store_names_its_system(pairs: PairArray) -> None:
    attribute = json.loads(Path("x.zarr/zarr.json").read_text())["attributes"]["rnsdask"]
    assert {name: attribute[name] for name in ("format", "system", "complete")} == {
        "format": 2,
        "system": "pairs",
        "complete": True,
    }
    y = ExcessArray(Excess(-5).encode([-5, 7]), Excess(-5))
    y.to_zarr("y.zarr")
    attribute = json.loads(Path("y.zarr/zarr.json").read_text())["attributes"]["rnsdask"]
    assert (attribute["system"], attribute["lowest"]) == ("toy_system.Excess", -5)
    again = rd.open_zarr("y.zarr")
    assert (type(again), again.system, again.to_ints().tolist()) == (ExcessArray, Excess(-5), [-5, 7])


def test_commands(pairs: PairArray) -> None:
    assert "integers   5\n" in succeed("info", "x.zarr")
    found = as_json("info", "x.zarr")
    assert (found["system"], found["count"], found["signed"]) == ("pairs", 5, False)
    assert [int(text) for text in as_json("head", "x.zarr", "-n", 3)["values"]] == VALUES[:3]
    assert "5 integers, whole and valid" in succeed("verify", "x.zarr")
    assert rd.open_zarr("x.zarr", part=2).to_ints().tolist() == VALUES
    assert int(as_json("sum", "x.zarr")["value"]) == sum(VALUES)
    assert int(as_json("max", "x.zarr")["value"]) == max(VALUES)
    succeed("sort", "x.zarr", "-o", "sorted.zarr")
    assert rd.open_zarr("sorted.zarr").to_ints().tolist() == sorted(VALUES)


def test_conversions(pairs: PairArray) -> None:
    succeed("convert", "x.zarr", "-o", "r.zarr", "--to", "rns")
    assert (type(rd.open_zarr("r.zarr")), rd.open_zarr("r.zarr").to_ints().tolist()) == (rd.RNSArray, VALUES)
    succeed("convert", "r.zarr", "-o", "again.zarr", "--to", "pairs")
    assert contents("again.zarr") == contents("x.zarr")
    succeed("convert", "x.zarr", "-o", "i.zarr", "--to", "interval")
    succeed("convert", "i.zarr", "-o", "p.zarr", "--to", "positional")
    succeed("convert", "p.zarr", "-o", "twice.zarr", "--to", "pairs")
    assert contents("twice.zarr") == contents("x.zarr")
    rd.from_ints([5, 2**64]).to_zarr("large.zarr")
    message = fail("convert", "large.zarr", "-o", "large-pairs.zarr", "--to", "pairs")
    assert "value 0x10000000000000000 (65 bits) at flat index 1 is outside the range" in message


def test_a_job_is_continued(pairs: PairArray) -> None:
    begun = rd.open_zarr("x.zarr").create_store("y.zarr", job=None)
    begun.write_chunk((0,), pairs.words[:, :3])
    with pytest.raises(StoreError, match="incomplete"):
        rd.open_zarr("y.zarr")
    again = store.resume("y.zarr")
    assert again.missing_chunks() == [(1,)]
    again.write_chunk((1,), pairs.words[:, 3:])
    again.finish()
    assert contents("y.zarr") == contents("x.zarr")


@dataclass(frozen=True, repr=False)
class Digits(NumberSystem):
    """Integers of some decimal digits, a word each, the highest first."""

    count: int

    @property
    def rows(self) -> int:
        return self.count

    @property
    def value_range(self) -> tuple[int, int]:
        return 0, 10**self.count - 1

    def encode(self, values: Any) -> np.ndarray:
        numbers = np.array(values, dtype=object)
        texts = [f"{v:0{self.count}}" for v in numbers.ravel().tolist()]
        if any(len(text) > self.count for text in texts):
            raise ValueError("a value is out of range")
        words = np.array([[int(c) for c in text] for text in texts], np.uint32).reshape(-1, self.count)
        return words.T.reshape(self.count, *numbers.shape)

    def decode(self, words: Any) -> np.ndarray:
        found = np.zeros(words.shape[1:], dtype=object)
        for row in words:
            found = 10 * found + row.astype(object)
        return found

    def __dask_tokenize__(self) -> Any:
        return "Digits", self.count

    def __str__(self) -> str:
        return f"{self.count} digits"


class DigitsArray(IntegerArray):
    """Numbers as decimal digits."""

    __slots__ = ()

    system_type = Digits


def test_words_of_no_number_are_found(pairs: PairArray) -> None:
    system = Digits(3)
    words = system.encode([[7, 999], [123, 0]])
    DigitsArray(words, system).to_zarr("d.zarr", chunks=(1, 2))
    assert rd.open_zarr("d.zarr").system == system
    writer = store.create("wrong.zarr", system, (2, 2), chunks=(1, 2))
    wrong = words.copy()
    wrong[1, 1, 1] = 10
    with pytest.raises(ValueError, match=r"number \(1, 1\) has the words \[0, 10, 0\], which no number has"):
        writer.write_chunk((1, 0), wrong[:, 1:])
    writer.write_chunk((0, 0), words[:, :1])
    writer.write_chunk((1, 0), words[:, 1:])
    writer.finish()
    file = Path("wrong.zarr/c/0/1/0")
    content = wrong[:, 1:].astype("<u4").tobytes()
    file.write_bytes(content + google_crc32c.value(content).to_bytes(4, "little"))
    with pytest.raises(CorruptChunkError, match=r"number \(1, 1\) has the words"):
        rd.open_zarr("wrong.zarr").compute()
    assert "chunk c/0/1/0: number (1, 1) has the words" in call("verify", "wrong.zarr").stdout


class Forgetful(Excess):
    """Numbers whose store does not say where they begin."""

    def stored_fields(self) -> dict[str, Any]:
        return {}


def test_a_system_that_is_not_stored_as_it_is(pairs: PairArray) -> None:
    with pytest.raises(TypeError, match=r"from -5\) cannot be stored: its fields .* from -92"):
        store.create("f.zarr", Forgetful(-5), (3,))
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["x.zarr"]


def test_systems_that_nobody_knows(pairs: PairArray) -> None:
    file = Path("x.zarr/zarr.json")
    file.write_text(file.read_text().replace('"pairs"', '"nobodys"'))
    message = fail("info", "x.zarr")
    assert "this process knows no number system 'nobodys'" in message
    assert "rnsdask.number_systems" in message
    with pytest.raises(StoreError, match="no number system 'nobodys'"):
        rd.open_zarr("x.zarr")


def test_a_store_without_its_fields(pairs: PairArray) -> None:
    ExcessArray(Excess(-5).encode([-5, 7]), Excess(-5)).to_zarr("y.zarr")
    file = Path("y.zarr/zarr.json")
    file.write_text(file.read_text().replace('"lowest"', '"loudest"'))
    with pytest.raises(StoreError, match=r"a system 'toy_system.Excess' has no loudest"):
        rd.open_zarr("y.zarr")
    file.write_text(file.read_text().replace('"loudest"', '"lowest"').replace("-5", "-6"))
    with pytest.raises(StoreError, match="is damaged: its checksum"):
        rd.open_zarr("y.zarr")


def test_other_processes_find_it_by_an_entry_point(pairs: PairArray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    command = [sys.executable, "-c", "from rnsdask.cli import main; main()", "head", "x.zarr"]
    Path("toys.py").write_text(Path(__file__).with_name("toy_system.py").read_text(encoding="utf-8"))
    unknown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert unknown.returncode == 1
    assert "no number system 'pairs'" in unknown.stderr
    installed = Path("toys-1.dist-info")
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[rnsdask.number_systems]\npairs = toys:PairArray\n")
    known = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [int(line.split()[1]) for line in known.stdout.splitlines()] == VALUES
