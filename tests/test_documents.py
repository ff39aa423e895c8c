"""The documents name files that exist, and show code that runs."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from forks import Commands
from pages import CODE, run_code

import rnsdask as rd

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
PACKAGES = "|".join(path.parent.name for path in ROOT.glob("rnsdask/*/__init__.py"))

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:rnsdask|kernels|scripts|tests|docs|pipelines|deploy|\.ci)/[\w./*-]*)")
ANCHOR = re.compile(r"\]\(([\w./-]*\.md)?#([^)]*)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
EXAMPLE = re.compile(r"^\| [^|]+ \| `(?P<code>[^|]+)` \| `(?P<value>[^|]+)` \|", re.MULTILINE)
IN_PACKAGE = re.compile(rf"`((?:{PACKAGES})/[\w./-]*)`")  # as DEVELOPING.md calls a file of rnsdask/


WITH_CODE = sorted(
    str(page.relative_to(ROOT))
    for page in DOCUMENTS
    if CODE.search(page.read_text(encoding="utf-8"))
    and page.name != "jobs.md"  # tests/test_first_jobs.py runs it
)


def named_files(document: Path) -> Iterator[tuple[Path, str]]:
    """Folder and path, or pattern, of each file that a document names or links to."""
    text = document.read_text(encoding="utf-8")
    yield from ((document.parent, path) for path in LINK.findall(text))
    yield from ((ROOT, path) for path in PATH.findall(text))
    yield from ((ROOT / "rnsdask", path) for path in IN_PACKAGE.findall(text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_documents_name_exist(document: Path) -> None:
    missing = [path for folder, path in named_files(document) if not any(folder.glob(path.rstrip("/")))]
    assert not missing, f"{document.relative_to(ROOT)} names {missing}"


def anchor(heading: str) -> str:
    """Return the end of a link to a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_headings_that_documents_link_to_exist(document: Path) -> None:
    for path, wanted in ANCHOR.findall(document.read_text(encoding="utf-8")):
        page = document.parent / path if path else document
        headings = map(anchor, HEADING.findall(page.read_text(encoding="utf-8")))
        assert wanted in headings, f"{document.relative_to(ROOT)} links to {path}#{wanted}"


def session_of(page: str) -> dict[str, Any]:
    """Run all code of a page, and compare the results that it shows."""
    return run_code((ROOT / page).read_text(encoding="utf-8"), page)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page == "docs/clusters.md" else [])  # starts several
        for page in WITH_CODE
    ],
)
def test_code_of_documents_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write stores
    session = session_of(page)
    for value in [*session.values()]:
        if isinstance(value, Client | LocalCluster):  # which later tests would compute on
            value.close()


def test_commands_of_the_tutorial_print_what_stands_below_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands
) -> None:
    monkeypatch.setenv("PATH", commands.path)
    page = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    sessions = "".join(re.findall(r"^```console\n(\$ (?!pip).*?)^```", page, re.MULTILINE | re.DOTALL))
    for session in sessions.removeprefix("$ ").split("\n$ "):
        command, *shown = session.rstrip("\n").split("\n")
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        assert without_times(done.stdout) == without_times("\n".join(shown)), command


def without_times(output: str) -> list[str]:
    """Words of an output, without the figures in parentheses."""
    return re.sub(r"\([^)]*\d[^)]*\)", "", output).split()


def plain(value: Any) -> Any:
    """Numbers of arrays as lists, as the tables of examples show them."""
    if hasattr(value, "to_ints"):
        value = value.to_ints()
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def test_examples_in_tables_give_what_stands_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = "docs/how-do-i.md"
    session = session_of(page)
    examples = [
        (example["code"], example["value"]) for example in EXAMPLE.finditer((ROOT / page).read_text())
    ]
    assert len(examples) > 80
    wrong = [
        (code, value, given)
        for code, value in examples
        if (given := repr(plain(eval(code, session)))) != value
    ]
    assert not wrong


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.rst"))
    listed = {
        (module, name)
        for module, names in re.findall(
            r"currentmodule:: (\S+)(.*?)(?=\.\. currentmodule|\Z)", pages, re.DOTALL
        )
        for name in re.findall(r"^   (\w+)$", names, re.MULTILINE)
    }
    stub = (ROOT / "rnsdask/__init__.pyi").read_text(encoding="utf-8")
    public = {("rnsdask", name) for name in re.findall(r" as (\w+)$", stub, re.MULTILINE)}
    public -= {
        ("rnsdask", name) for name in ("linalg", "poly", "sparse", "typing", "__version__")
    }  # of modules come what they hold
    public |= {
        (module.__name__, name)
        for module in (rd.linalg, rd.poly, rd.sparse, rd.typing)
        for name in module.__all__
    }
    assert listed == public


def test_the_patterns_find_names() -> None:
    found = {path for _, path in named_files(ROOT / "DEVELOPING.md")}
    assert {"scripts/bench_*.py", "lazy/tree.py", "tests/test_architecture.py"} <= found
