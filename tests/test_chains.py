"""The chains of docs/chains.md: exact answers, go on where they were cut off, and notice what has changed."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forks import Commands

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
    assert "wide.zarr: it is complete, but of another job (" in run("./chain", status=1)
    Path("numbers.txt").write_text("7\n8\n")
    message = run("./chain", status=1)
    assert re.fullmatch(
        r"rnsdask: error: .*numbers.zarr: it is complete, but .*; replace it with --overwrite\n", message
    )
    assert written(*STORES) == after


@pytest.mark.parametrize(
    ("command", "file"),
    [
        pytest.param(
            ["make", "-s"],
            "Makefile",
            id="make",
            marks=pytest.mark.skipif(not shutil.which("make"), reason="no make"),
        ),
        pytest.param(
            ["snakemake", "--cores", "1", "--quiet", "all", "export"],
            "Snakefile",
            id="snakemake",
            marks=pytest.mark.skipif(not shutil.which("snakemake"), reason="no snakemake"),
        ),
    ],
)
def test_chains_that_make_anew_what_has_changed(command: list[str], file: str) -> None:
    run(*command)
    assert cubes() == [number**3 for number in NUMBERS]
    Path("numbers.txt").write_text("7\n8\n")
    run(*command)
    assert cubes() == [343, 512]
    kept = written("numbers.zarr")
    change(file, "--bits 200", "--bits 300")
    run(*command)
    assert json.loads(run("rnsdask", "info", "wide.zarr", "--json"))["bits"] > 300
    assert (cubes(), written("numbers.zarr")) == ([343, 512], kept)
