"""The chains of docs/chains.md: exact answers, go on where they were cut off, and notice what has changed."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from forks import Commands
from strategies import slow

DOCUMENT = Path(__file__).resolve().parents[1] / "docs/chains.md"
NUMBERS = [(i * i * 123456789) % 2**60 for i in range(300)]
STORES = ("numbers.zarr", "wide.zarr", "cubes.zarr")


def run(*command: str, status: int = 0) -> str:
    """Run a command; return what it prints, and what it says of an error."""
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, check=False, **how)
    assert done.returncode == status, (command, done.stdout)
    return str(done.stdout)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands) -> None:
    """A folder with the files that the document shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", commands.path)
    blocks = re.findall(
        r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert [language for language, _ in blocks] == ["sh", "make", "python"]
    for name, (_, text) in zip(("chain", "Makefile", "Snakefile"), blocks, strict=True):
        Path(name).write_text(text.replace(" --scheduler-file cluster.json", ""))
        Path(name).chmod(0o755)
    Path("numbers.txt").write_text("".join(f"{number}\n" for number in NUMBERS))


def interrupt(path: str) -> None:
    """Leave a store as a job that was killed leaves it."""
    file, job = Path(path, "zarr.json"), Path(path, "rnsdask-job.json")
    document = json.loads(file.read_text())
    document["attributes"]["rnsdask"] |= {"complete": False, "recipe": json.loads(job.read_text())["job"]}
    file.write_text(json.dumps(document))
    job.unlink()


def written(*paths: str) -> dict[str, int]:
    files = (file for path in paths for file in Path(path).rglob("*") if file.is_file())
    return {str(file): file.stat().st_mtime_ns for file in files}


def change(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


def cubes() -> list[int]:
    return [int(line) for line in Path("cubes.txt").read_text().split()]


def test_the_chain_of_the_shell() -> None:
    run("./chain")
    assert cubes() == [number**3 for number in NUMBERS]
    before, chunk = written(*STORES), "cubes.zarr/c/0/0"
    interrupt("cubes.zarr")
    Path("cubes.txt").unlink()
    told = run("./chain")
    assert told.count("complete already, by this very job; nothing to do\n") == 2
    assert "cubes.zarr: 300 values" in told
    assert cubes() == [number**3 for number in NUMBERS]
    after = written(*STORES)
    assert [path for path in before if before[path] != after[path]] == [
        path for path in before if path.startswith("cubes.zarr/") and path != chunk
    ]
    change("chain", "--bits 200", "--bits 300")
    assert "wide.zarr: it is complete, but of another job: " in run("./chain", status=1)
    Path("numbers.txt").write_text("7\n8\n")
    message = run("./chain", status=1)
    assert re.fullmatch(
        r"rnsdask: error: .*numbers.zarr: it is complete, but .*; replace it with --overwrite\n", message
    )
    assert written(*STORES) == after


class Engine(NamedTuple):
    """A program that runs the rules of a file."""

    file: str
    command: tuple[str, ...]
    unlock: tuple[str, ...] = ("true",)

    def run(self) -> int:
        """Run all rules; return the exit status, after the commands that an engine left behind have ended."""
        start = ["sh", "-c", 'echo $$ > engine; exec "$@"', "sh", *self.command]
        how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        status = subprocess.run(start, check=False, **how).returncode
        if status == -signal.SIGKILL:
            run(*self.unlock)
        return status


def installed(engine: Engine, *marks: pytest.MarkDecorator) -> Any:
    program = engine.command[0]
    missing = pytest.mark.skipif(not shutil.which(program), reason=f"no {program}")
    return pytest.param(engine, id=program, marks=(missing, *marks))


SNAKEMAKE = ("snakemake", "--cores", "1", "--rerun-incomplete")
each_engine = pytest.mark.parametrize(
    "engine",
    [
        installed(Engine("Makefile", ("make", "-s"))),
        installed(
            Engine(
                "Snakefile",
                (*SNAKEMAKE, "--quiet", "all", "--scheduler", "greedy"),
                ("snakemake", "--unlock"),
            ),
            pytest.mark.slow,  # as it starts
        ),
    ],
)

STEPS = ("import", "extend", "eval", "export")  # the command of each rule
FAULTS = ["exit 3", "kill -KILL $$", "kill -TERM $$"]
"""Shell code that a command runs before its work, which it then begins unless it has ended."""
FAULTS_OF_ENGINES = ["kill -KILL $(cat engine)", "kill -TERM $(cat engine)"]
if "RNSDASK_FAULT_RUNS" in os.environ:
    FAULTS += [f'"$real" "$@"; {fault}' for fault in FAULTS]
    FAULTS_OF_ENGINES += [f'"$real" "$@"; {fault}; exit 0' for fault in FAULTS_OF_ENGINES]
    FAULTS_OF_ENGINES += [f"{fault}; exit 3" for fault in FAULTS_OF_ENGINES[:2]]

FAULTY = """#!/bin/sh
real={real}
if [ -e fault ] && grep -q "^$1:" fault; then
    fault="$(cut -d : -f 2- fault)"
    rm fault
    eval "$fault"
fi
exec "$real" "$@"
"""


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `rnsdask` fail once where the file `fault` says so."""
    program = tmp_path / "bin/rnsdask"
    program.parent.mkdir()
    program.write_text(FAULTY.format(real=shutil.which("rnsdask")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


def run_with_fault(engine: Engine, step: str, fault: str) -> int:
    Path("fault").write_text(f"{step}:{fault}")
    status = engine.run()
    assert not Path("fault").exists(), f"{step} was left out"
    return status


@each_engine
@pytest.mark.usefixtures("faulty")
def test_chains_make_anew_what_has_changed(engine: Engine) -> None:
    """Numbers, then an option and an expression whose rules fail at first."""
    assert engine.run() == 0
    assert cubes() == [number**3 for number in NUMBERS]
    Path("numbers.txt").write_text("7\n8\n")
    assert engine.run() == 0
    assert cubes() == [343, 512]
    kept = written("numbers.zarr")
    change(engine.file, "--bits 200", "--bits 300")
    assert run_with_fault(engine, "extend", "exit 3")
    change(engine.file, "x*x*x", "x*x")
    assert run_with_fault(engine, "eval", "exit 3")
    assert engine.run() == 0
    assert json.loads(run("rnsdask", "info", "wide.zarr", "--json"))["bits"] > 300
    assert (cubes(), written("numbers.zarr")) == ([49, 64], kept)


@each_engine
@pytest.mark.parametrize("of_engine", [False, *slow(True)], ids=["a rule", "the engine"])
@pytest.mark.usefixtures("faulty")
def test_chains_go_on_after_a_fault_of(engine: Engine, of_engine: bool, rng: np.random.Generator) -> None:
    """A run begins with what a fault at one rule has left, and ends with a fault at the next."""
    assert engine.run() == 0
    for fault in FAULTS_OF_ENGINES if of_engine else FAULTS:
        numbers = rng.integers(2**60, size=5).tolist()
        Path("numbers.txt").write_text("".join(f"{number}\n" for number in numbers))
        right = [number**3 for number in numbers]
        for step in STEPS:
            status = run_with_fault(engine, step, fault)
            # An engine that waits for the last command may end as if nothing had happened.
            assert status or (of_engine and cubes() == right)
        assert engine.run() == 0
        assert cubes() == right
