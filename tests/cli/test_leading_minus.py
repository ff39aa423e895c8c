"""Words of a command line that begin with a minus: expressions and numbers, told from options."""

import re
import shutil
from pathlib import Path

import pytest
from commands import call, fail, succeed, values_in

import rnsdask as rd

MS = rd.ModuliSet.for_bits(256)
A = [3, -5, 0, 7, -(2**90), 12]
H = [1, 2, -3, 2**70, 5, -6]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two stores of residues and one of limbs."""
    folder = tmp_path_factory.mktemp("made")
    for name, values in (("a", A), ("h", H)):
        rd.from_ints(values, MS, True, chunks=4).to_zarr(folder / f"{name}.zarr")
    rd.from_ints(A, rd.Positional(256, True)).to_zarr(folder / "limbs.zarr")
    return folder


@pytest.fixture(autouse=True)
def stores(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("-a", [-a for a in A]),
        ("-a**2", [-(a**2) for a in A]),
        ("-a*h", [-a * h for a, h in zip(A, H, strict=True)]),
        ("(-h)", [-h for h in H]),
        ("-h*2 + a", [-h * 2 + a for a, h in zip(A, H, strict=True)]),
        ("--a", A),
        ("--a-h", [a - h for a, h in zip(A, H, strict=True)]),
        ("- a", [-a for a in A]),
        ("-(a + h)", [-(a + h) for a, h in zip(A, H, strict=True)]),
        ("-abs(a)", [-abs(a) for a in A]),
        ("-3*a", [-3 * a for a in A]),
        ("-0x1F + a", [-31 + a for a in A]),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_expressions(expression: str, expected: list[int], is_first: bool) -> None:
    places = [f"{name}={name}.zarr" for name in ("a", "h") if re.search(rf"\b{name}\b", expression)]
    words, output = [expression, *places], ["-o", "out.zarr"]
    succeed("eval", *(words + output if is_first else output + words))
    assert values_in("out.zarr") == expected


def test_expressions_are_told_as_they_are_given() -> None:
    assert "'-a *'" in fail("eval", "-a *", "a=a.zarr", "--max", status=2)
    assert "'-a' is not NAME=STORE" in fail("eval", "a", "a=a.zarr", "-a", "--max", status=2)
    assert succeed("eval", "-a", "a=a.zarr", "--max", "--overflow", "wrap").split()[-1]


@pytest.mark.parametrize(
    "args",
    [
        ["eval", "-x", "a", "a=a.zarr", "--max"],
        ["eval", "--nothing", "a", "a=a.zarr", "--max"],
        ["eval", "--nothing=a", "a", "a=a.zarr", "--max"],
        ["eval", "a", "a=a.zarr", "--maxx"],
        ["eval", "-e", "s = a", "a=a.zarr", "-a", "--max", "s"],
        ["topk", "3", "a.zarr", "--nothing"],
        ["topk", "--nothing", "a.zarr"],
        ["topk", "-k3", "a.zarr"],
        ["compare", "a.zarr", "--nothing"],
        ["compare", "a.zarr", "h.zarr", "-x"],
        ["slice", "a.zarr", "-o", "out.zarr", "-x"],
        ["reshape", "a.zarr", "-o", "out.zarr", "--shape"],
        ["powmod", "limbs.zarr", "-x", "101", "-o", "out.zarr"],
        ["powmod", "limbs.zarr", "3", "101", "-o", "out.zarr", "--nothing"],
        ["max", "--nothing", "a.zarr"],
    ],
)
def test_unknown_options_are_told(args: list[str]) -> None:
    assert fail(*args, status=2).startswith("No such option")


def test_numbers() -> None:
    least = sorted(range(6), key=A.__getitem__)[:2]
    assert succeed("topk", "-2", "a.zarr") == "".join(f"{i}\t{A[i]}\n" for i in least)
    succeed("slice", "a.zarr", "-o", "out.zarr", "-2:")
    assert values_in("out.zarr") == A[-2:]
    succeed("slice", "a.zarr", "-o", "out.zarr", "-(4):-1", "--overwrite")
    assert values_in("out.zarr") == A[-4:-1]
    succeed("reshape", "a.zarr", "-o", "out.zarr", "-1,3", "--overwrite")
    assert rd.open_zarr("out.zarr").shape == (2, 3)
    compared = call("compare", "a.zarr", "-5")
    assert (compared.exit_code, compared.stderr) == (1, "")
    compared = call("compare", "a.zarr", "-0xe0")
    assert (compared.exit_code, compared.stderr) == (1, "")
    rd.from_ints([3, 5, 7], rd.Positional(64)).to_zarr("odd.zarr")
    succeed("powmod", "odd.zarr", "-0xe", "-o", "powers.zarr", "101")
    assert values_in("powers.zarr") == [pow(x, -14, 101) for x in (3, 5, 7)]


def test_values_of_options_and_what_follows_two_dashes() -> None:
    rd.from_ints(A, MS, True).to_zarr("-a.zarr")
    succeed("eval", "-o", "-out.zarr", "-a", "a=-a.zarr")
    assert values_in("./-out.zarr") == [-a for a in A]
    succeed("slice", "-o", "-b.zarr", "--", "-a.zarr", "-1:")
    assert values_in("./-b.zarr") == A[-1:]
    succeed("concat", "--axis", "-1", "-o", "c.zarr", "a.zarr", "h.zarr")
    assert values_in("c.zarr") == A + H
