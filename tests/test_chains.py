"""The chains of docs/chains.md: they give exact answers, and go on where they were cut off."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = Path(__file__).resolve().parents[1] / "docs/chains.md"
NUMBERS = [(i * i * 123456789) % 2**60 for i in range(300)]
BIN = Path(sys.executable).parent


def run(*command: str) -> str:
    """Run a command that must succeed; return what it prints."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    done = subprocess.run(command, env={**os.environ, "PATH": path}, **how)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return str(done.stdout)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the document shows, in which its chain of the shell has run."""
    if not (BIN / "rnsdask").exists():
        pytest.skip("the command rnsdask is not beside this Python")
    folder = tmp_path_factory.mktemp("chain")
    blocks = re.findall(
        r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert [language for language, _ in blocks] == ["sh", "sh", "make", "python"]
    for name, (_, text) in zip(("step", "chain", "Makefile", "Snakefile"), blocks, strict=True):
        (folder / name).write_text(text.replace(" --scheduler-file cluster.json", ""))
        (folder / name).chmod(0o755)
    (folder / "numbers.txt").write_text("".join(f"{number}\n" for number in NUMBERS))
    with chdir(folder):
        run("./chain")
    return folder


@pytest.fixture(autouse=True)
def in_a_copy(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(finished, tmp_path / "copy")  # with the times of its files
    monkeypatch.chdir(tmp_path / "copy")


def interrupt(path: str) -> None:
    """Leave a store as a job that was killed leaves it."""
    file = Path(path, "zarr.json")
    document = json.loads(file.read_text())
    attribute = document["attributes"]["rnsdask"]
    attribute["complete"] = False
    file.write_text(json.dumps(document))


def written(path: str) -> dict[str, int]:
    return {str(file): file.stat().st_mtime_ns for file in Path(path).rglob("*") if file.is_file()}


def cubes() -> list[int]:
    return [int(line) for line in Path("cubes.txt").read_text().split()]


COMMANDS = [
    pytest.param(["./chain"], id="shell"),
    pytest.param(
        ["make", "-s"], id="make", marks=pytest.mark.skipif(not shutil.which("make"), reason="no make")
    ),
    pytest.param(
        ["snakemake", "--cores", "1", "--quiet", "all", "export"],
        id="snakemake",
        marks=pytest.mark.skipif(not shutil.which("snakemake"), reason="no snakemake"),
    ),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_chain_goes_on_where_it_was_cut_off(command: list[str]) -> None:
    assert cubes() == [number**3 for number in NUMBERS]
    kept = {path: written(path) for path in ("numbers.zarr", "wide.zarr")}
    chunk = Path("cubes.zarr/c/0/0")
    expected, chunk_time = chunk.read_bytes(), chunk.stat().st_mtime_ns
    # As if the last step had been killed: chunks are whole, but the store is not, and nothing was made of it.
    interrupt("cubes.zarr")
    Path("cubes.txt").unlink()
    run(*command)
    assert cubes() == [number**3 for number in NUMBERS]
    assert (chunk.read_bytes(), chunk.stat().st_mtime_ns) == (expected, chunk_time)
    assert kept == {path: written(path) for path in kept}


def test_a_step_begins_anew_when_an_input_is_newer() -> None:
    Path("numbers.txt").write_text("7\n8\n")
    command = ["import", "numbers.txt", "numbers.zarr", "--bits", "64"]
    assert run("./step", "numbers.zarr", "numbers.txt", "--", *command).startswith("numbers.zarr: 2 integers")
    assert run("./step", "numbers.zarr", "numbers.txt", "--", *command) == ""


def numbers_of(path: str) -> list[int]:
    return [int(line) for line in run("rnsdask", "export", path, "-").split()]


def test_a_step_begins_anew_when_its_command_changes() -> None:
    """Its words count, and where each ends: also spaces, quotes, and what the shell would expand."""
    step = ["./step", "r.zarr", "--", "random", "r.zarr", "--bits", "64", "--seed", "7", "--count"]
    assert run(*step, "10").startswith("r.zarr: 10 random")
    assert run(*step, "10") == ""
    assert run(*step, "20").startswith("r.zarr: 20 random")
    assert len(numbers_of("r.zarr")) == 20
    assert run(*step, "20") == ""
    evaluate = ["./step", "e.zarr", "numbers.zarr", "--", "eval"]
    for expression in ("where(x < 5, x, 5)", "where(x < 5, x,  5)"):
        command = [*evaluate, expression, "x=numbers.zarr", "-o", "e.zarr"]
        assert run(*command).startswith("e.zarr: 300 ")
        assert run(*command) == ""
    assert numbers_of("e.zarr") == [min(number, 5) for number in NUMBERS]


def test_a_step_whose_command_changed_after_an_interruption() -> None:
    """What another command has begun is not resumed; what is whole but of unknown command is made anew."""
    step = ["./step", "r.zarr", "--", "random", "r.zarr", "--bits", "64", "--seed", "7", "--count"]
    run(*step, "10")
    interrupt("r.zarr")
    assert run(*step, "20").startswith("r.zarr: 20 random")
    interrupt("r.zarr")
    assert "1 chunk kept" in run(*step, "20")
    # As if killed before the command is written, and while the old store is removed.
    Path("r.zarr.step").unlink()
    Path("r.zarr.old").mkdir()
    assert run(*step, "30").startswith("r.zarr: 30 random")
    assert sorted(path.name for path in Path().glob("r.zarr*")) == ["r.zarr", "r.zarr.step"]
    assert len(numbers_of("r.zarr")) == 30


def test_a_step_removes_nothing_but_stores() -> None:
    Path("mine.zarr").mkdir()
    Path("mine.zarr/file").write_text("precious")
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    command = [
        "./step",
        "mine.zarr",
        "numbers.txt",
        "--",
        "import",
        "numbers.txt",
        "mine.zarr",
        "--bits",
        "64",
    ]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, check=False)
    assert done.returncode
    assert Path("mine.zarr/file").read_text() == "precious"
