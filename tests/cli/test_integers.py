"""Counts and other integers are written alike in every option and argument that takes one."""

import click
import pytest
from commands import fail, succeed

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.cli.integers import INTEGER, read_integer

TEXTS = {
    "1000000": 10**6,
    "1_000_000": 10**6,
    "1e6": 10**6,
    "1E+6": 10**6,
    "1.5e6": 1500000,
    "12.50e2": 1250,
    "-3e2": -300,
    "2**20": 2**20,
    "-2**3": -8,
    "+7": 7,
    "0x1F": 31,
    "-0x10": -16,
    "007": 7,
    "9" * 5000: 10**5000 - 1,
    "1e5000": 10**5000,
    "2**1048575": 2**1048575,
}
OTHERS = [
    "",
    "x",
    "1.5",
    "1e-3",
    "1.25e1",
    "1e",
    "e5",
    "1__0",
    "_1",
    "1_",
    "2**-1",
    "2^20",
    "0x",
    "1 000",
    "1,000",
]
OTHERS += ["1e999999", "2**1048576", "10**999999999", "nan", "1e6.zarr", "٣", "1e6\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_integers(text: str) -> None:
    assert read_integer(text) == TEXTS[text]
    if abs(TEXTS[text]) < 10**100:
        assert INTEGER.convert(text, None, None) == TEXTS[text]
    else:
        with pytest.raises(click.BadParameter, match=r"\.\.\. has more than 100 digits"):
            INTEGER.convert(text, None, None)


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_integer(text: str) -> None:
    assert read_integer(text) is None
    with pytest.raises(click.BadParameter, match=r"is not an integer, such as 1000000, 1e6 or 2\*\*20"):
        INTEGER.convert(text, None, None)


def test_no_option_has_integers_of_its_own() -> None:
    """Click's own types read neither 1e6 nor 2**20."""
    types = (click.types.IntParamType, click.types.FloatParamType)
    assert isinstance(main, click.Group)
    found = [
        (name, param.name)
        for name, command in main.commands.items()
        for param in command.params
        if isinstance(param.type, types)
        and not getattr(param, "is_flag", False)
        and not getattr(param, "count", False)
    ]
    assert found == []


def test_counts_of_commands(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    succeed("random", "a.zarr", "--count", "1e3", "--bits", "2**6", "--chunk", "0x100", "--seed", "1_0")
    succeed("random", "b.zarr", "--count", "1000", "--bits", "64", "--chunk", "256", "--seed", "10")
    assert succeed("compare", "a.zarr", "b.zarr").splitlines()[1] == "0 less, 1000 equal, 0 greater"
    assert succeed("compare", "a.zarr", "2**99", status=1).splitlines()[1] == "1000 less, 0 equal, 0 greater"
    assert succeed("topk", "-1e1", "a.zarr") == succeed("topk", "-10", "b.zarr")
    assert len(succeed("head", "a.zarr", "-n", "1e2").splitlines()) == 100
    assert len(succeed("hist", "a.zarr", "--edges", "0,1e3,2**32,2**65").splitlines()) == 3
    succeed("reshape", "a.zarr", "-o", "c.zarr", "1e1,-1")
    succeed("rechunk", "c.zarr", "-o", "d.zarr", "--chunks", "5, 1e1")
    assert rd.open_zarr("d.zarr").shape == (10, 100)
    assert rd.open_zarr("d.zarr").words.chunksize[1:] == (5, 10)
    assert fail("head", "a.zarr", "-n", "0", status=2).startswith(
        "Invalid value for '-n': it must be at least 1, got 0"
    )
    assert "'1.5' is not an integer, such as" in fail("head", "a.zarr", "-n", "1.5", status=2)
