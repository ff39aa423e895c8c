"""The option ``--quiet``: results, warnings and errors alone are printed."""

from pathlib import Path

import pytest
from commands import as_json, call, fail, succeed

import rnsdask as rd
from rnsdask.cli import main

VALUES = [5, -3, 2**70, 0, 7, 12]


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(VALUES, chunks=2).to_zarr("x.zarr")
    rd.from_ints([1, 0, 2, 5], rd.PrimeFields([7])).reshape(2, 2).to_zarr("f.zarr")
    succeed("eval", "x > 5", "x=x.zarr", "-o", "m.zarr")
    Path("x.txt").write_text("1\n2\n")


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (("max", "x.zarr"), 2**70),
        (("min", "x.zarr"), -3),
        (("sum", "x.zarr"), sum(VALUES)),
        (("sum", "m.zarr"), 3),
        (("prod", "x.zarr"), 0),
        (("bound", "x.zarr"), 2**71 - 1),
        (("det", "f.zarr"), 5),
        (("eval", "x + 1", "x=x.zarr", "--sum"), sum(VALUES) + 6),
    ],
)
def test_values_are_printed_alone(args: tuple[str, ...], value: int) -> None:
    assert succeed(*args, "--quiet") == f"{value}\n"
    assert succeed(*args).count("\n") > 1 or args[0] == "det"


@pytest.mark.parametrize(
    "args",
    [
        ("import", "x.txt", "new.zarr", "--bits", "64"),
        ("random", "-n", "10", "--bits", "64", "-o", "new.zarr"),
        ("eval", "x * x", "x=x.zarr", "-o", "new.zarr"),
        ("sort", "x.zarr", "-o", "new.zarr"),
        ("cumsum", "x.zarr", "-o", "new.zarr"),
        ("filter", "x.zarr", "x > 5", "-o", "new.zarr"),
        ("rref", "f.zarr", "-o", "new.zarr"),
    ],
    ids=lambda args: args[0],
)
def test_commands_that_write_are_silent(args: tuple[str, ...]) -> None:
    assert succeed(*args, "-q") == ""
    assert rd.open_zarr("new.zarr").size
    if args[0] != "random":  # whose seed was drawn, and is another one
        assert succeed(*args, "-q", "--resume") == ""
    assert fail(*args, "-q").endswith("it exists; replace it with --overwrite")


def test_exports_verification_and_comparison_are_silent() -> None:
    assert succeed("export", "x.zarr", "x.csv", "-q") == ""
    assert succeed("verify", "x.zarr", "-q") == ""
    assert succeed("compare", "x.zarr", "x.zarr", "-q") == ""
    assert succeed("compare", "x.zarr", "5", "-q", status=1) == ""
    listed = succeed("compare", "x.zarr", "7", "--all", "-q", status=1)
    assert listed.splitlines() == [f"{i}\t{v}\t7" for i, v in enumerate(VALUES) if v != 7]
    assert succeed("compare", "f.zarr", "f.zarr", "-q") == ""
    assert succeed("export", "x.zarr", "-", "-q") == "".join(f"{v}\n" for v in VALUES)


def test_what_makes_a_result_another_one_is_still_said() -> None:
    rd.from_ints([2**60, 2**60], bits=64).to_zarr("long.zarr")
    printed = succeed("prod", "long.zarr", "--overflow", "flag", "-q")
    assert "out of range, modulo" in printed
    printed = succeed("eval", "x * x", "x=long.zarr", "--overflow", "flag", "-o", "new.zarr", "-q")
    assert "2 out of range, modulo M" in printed


def test_json_and_wrong_options_are_as_without_it() -> None:
    assert as_json("max", "x.zarr", "-q")["value"] == str(2**70)
    assert "no such store" in fail("max", "nothing.zarr", "-q")


def test_progress_is_shown_if_asked_for() -> None:
    result = call("max", "x.zarr", "-q", "--progress")
    assert result.stdout == f"{2**70}\n"
    assert "max" in result.stderr


def test_each_command_with_progress_has_it() -> None:
    for name, command in main.commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--progress" in options) == ("--quiet" in options), name
