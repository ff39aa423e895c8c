"""Help texts fit a terminal of 80 columns, have all options in groups, and examples that are true."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
from commands import call, succeed

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.cli.examples import EXAMPLES

COMMANDS = sorted(main.commands)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_each_command_has_a_line_in_a_group() -> None:
    printed = succeed("--help")
    assert max(map(len, printed.splitlines())) <= 80
    assert "..." not in printed.replace("[ARGS]...", "")
    groups = re.findall(r"\n([A-Z].*):\n((?:  .*\n)+)", printed)
    assert [name for name, _ in groups] == [
        "Make", "Look", "Compute", "Matrices and polynomials", "Convert", "Install", "Options",
    ]  # fmt: skip
    lines = [line for _, text in groups[:-1] for line in text.splitlines()]
    assert sorted(line.split()[0] for line in lines) == COMMANDS
    assert all(re.match(r"  [a-z]+ +[A-Z].*\.$", line) for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name: str) -> None:
    printed = succeed(name, "--help")
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert printed.isascii()
    assert "\x1b" not in printed
    headings = [line for line in lines if re.match(r"[A-Z].*:$", line)]
    assert headings[0] == "Example:"
    assert headings[-1] == "Other:"
    assert len(set(headings)) == len(headings)
    assert lines.index("Example:") < 32
    command = main.commands[name]
    for option in command.params:
        if isinstance(option, click.Option):
            names = rf"  (-\S+ )*{option.opts[-1]}(?![\w-])"
            assert len([line for line in lines[lines.index("Example:") :] if re.match(names, line)]) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stores that examples read."""
    folder = tmp_path_factory.mktemp("examples")
    moduli = rd.ModuliSet.for_bits(128)
    signed: dict[str, Any] = {
        "a": [3, 1, 4, 1, 5, 9],
        "b": [2, 7, 1, 8, 2, 8],
        "m": [[2, 1], [1, 3]],
        "w": [[1, 2, 3], [2, 4, 7]],
        "v": [1, 1],
        "p": [-1, 0, 1],
        "q": [-2, 1],
    }
    for name, values in signed.items():
        rd.from_ints(values, moduli, True).to_zarr(folder / f"{name}.zarr")
    rd.from_ints([2**k for k in range(100)], moduli).to_zarr(folder / "x.zarr")
    rd.from_ints([1, 2, 3, 4], rd.PrimeFields([17, 97])).to_zarr(folder / "f.zarr")
    (folder / "parity.txt").write_text("odd\nodd\neven\nodd\nodd\nodd\n")
    (folder / "b000041.txt").write_text("# Partitions of n.\n0 1\n1 1\n2 2\n3 3\n4 5\n")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_true(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "40")  # of bars
    assert f"$ rnsdask {name} " in EXAMPLES[name]
    printed: list[str] = []
    lines = EXAMPLES[name].strip().splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("$ "):
            printed = _printed(line.removeprefix("$ "))
        elif not (line.startswith("# ") and after.startswith("$ ")):
            words = line.partition("...")[0].split()
            assert printed.pop(0).split()[: len(words)] == words


def _printed(line: str) -> list[str]:
    """Lines that a command prints; a pipe and quotes are as in the shell."""
    import shlex

    first, *rest = shlex.split(line.partition(" | ")[0])
    if first == "printf":
        Path("numbers.txt").write_text("12\n34\n5600000000000000000000\n")
        return []
    assert first == "rnsdask"
    result = call(*rest)
    assert result.stderr == ""
    assert result.exit_code == (rest[0] == "compare")
    lines = [text.replace("█", "#").replace("▌", "") for text in result.stdout.splitlines()]
    return [text for text in lines if "| grep" not in line or line.split()[-1] in text]
