"""The documents name files that exist, and show code that runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

import rnsdask as rd

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
PACKAGES = "|".join(path.parent.name for path in ROOT.glob("rnsdask/*/__init__.py"))

WITH_CODE = [
    "bounds",
    "convolution",
    "fields",
    "inputs",
    "interval-rns",
    "linalg",
    "polynomials",
    "positional",
    "showing",
]

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:rnsdask|kernels|scripts|tests|docs|pipelines|\.ci)/[\w./*-]*)")
ANCHOR = re.compile(r"\]\(([\w./-]*\.md)?#([^)]*)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IN_PACKAGE = re.compile(rf"`((?:{PACKAGES})/[\w./-]*)`")  # as DEVELOPING.md calls a file of rnsdask/


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
    """What a link to a heading ends in, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_headings_that_documents_link_to_exist(document: Path) -> None:
    for path, wanted in ANCHOR.findall(document.read_text(encoding="utf-8")):
        page = document.parent / path if path else document
        headings = map(anchor, HEADING.findall(page.read_text(encoding="utf-8")))
        assert wanted in headings, f"{document.relative_to(ROOT)} links to {path}#{wanted}"


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in WITH_CODE)])
def test_code_of_documents_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write stores
    session: dict[str, Any] = {"dask": dask, "np": np, "rd": rd}
    blocks = CODE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), session)


def test_the_patterns_find_names() -> None:
    found = {path for _, path in named_files(ROOT / "DEVELOPING.md")}
    assert {"scripts/bench_*.py", "lazy/tree.py", "tests/test_architecture.py"} <= found
