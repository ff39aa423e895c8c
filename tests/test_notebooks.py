"""The notebooks run from their first cell to the last, and keep what they show."""

import json
import re
from functools import cache
from pathlib import Path
from textwrap import dedent

import nbformat
import pytest
import run_notebooks
from forks import Commands
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
LONGEST_LINE = 160  # characters, beyond which a page of the site scrolls far
MOST_BYTES = 150_000  # of a notebook with its pictures, so that the repository stays small
OF_ONE_RUN = [
    re.compile(r"\([^()]*\bs\b[^()]*\)"),  # "(0.35 s, 79.4 MB/s)"
    re.compile(r"\n(?=  \d[\d.]* [kMG]?B of )"),  # a line that is cut where the time before it is long
]
OF_ONE_MACHINE = re.compile(
    r"/home/|/root/|/tmp/|/usr/|/work/|site-packages"
    r"|localhost|tcp://\d|127\.0\.0\.1:(?!8787/status)"
    r"|\b20\d\d-\d\d-\d\d"
)
WHAT_VARIES = {
    "chain": [
        r"exit status -9\n[1-9]\d of 100 chunks\n",
        r"cubes\.zarr: the store is incomplete, .* goes on with --resume, .*\n",
        r"cubes\.zarr: 1000000 values, .*; [1-9]\d chunks kept, 0 damaged ones written again\n"
        r"left\.zarr: 1000000 integers, .*\nsums\.zarr: .*\nright\.zarr: .*\n"
        r"left\.zarr against right\.zarr: 1000000 integers\n0 less, 1000000 equal, 0 greater\n\n",
    ],
    "cluster": [
        r"\d{1,2} of 250 are right\nThe first of the others: -?\d+ instead of -?\d+\n",
        r"all are multiples of 2\^31: True\ngreatest magnitude: 2\^[67]\d\.\d\n"
        r"Hadamard's bound: 2\^80\.0\nmean square: [01]\.\d{3} times 32!\n",
        r"( ?\d+  \d{18,25}  = 2\^31 \* \d{9,15}\n){10}",
        r"<Figure size .* with 1 Axes>",
    ],
    "gpu": [r"(GPUs do|No GPU here, .* the CPU does) the work\.\n", r"[\d,]+ candidates a second\n"],
    "tour": [r"\(1, (?!1\.0\b).*\)"],
}
"""Patterns of the texts of the cells that are tagged `varies`, in their order."""

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@cache
def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: NotebookNode) -> str:
    """Text that a cell shows, without the figures of one run."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    text = "\n".join(texts)
    for pattern in OF_ONE_RUN:
        text = pattern.sub("", text)
    return text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem == "tour" else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
)
def test_notebooks_run_and_show_what_they_keep(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands
) -> None:
    class ClientWithCommands(NotebookClient):
        def execute(self, env: dict[str, str]) -> NotebookNode:
            return super().execute(env=env | {"PATH": commands.path})

    monkeypatch.setattr(run_notebooks, "NotebookClient", ClientWithCommands)
    kept, executed = read(path), run_notebooks.execute(path, tmp_path)
    for before, after in zip(code_cells(kept), code_cells(executed), strict=True):
        if "varies" not in before.metadata.get("tags", []):
            assert shown(after) == shown(before), f"run scripts/run_notebooks.py: {before.source}"
    assert_what_varies(path, executed)


@each_notebook
def test_outputs_that_vary_show_what_they_are_there_for(path: Path) -> None:
    assert_what_varies(path, read(path))


def assert_what_varies(path: Path, notebook: NotebookNode) -> None:
    cells = [cell for cell in code_cells(notebook) if "varies" in cell.metadata.get("tags", [])]
    for cell, pattern in zip(cells, WHAT_VARIES[path.stem], strict=True):
        assert re.fullmatch(pattern, shown(cell)), f"{shown(cell)}\nis shown by\n{cell.source}"


@each_notebook
def test_outputs_are_kept_and_small(path: Path) -> None:
    cells = code_cells(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < MOST_BYTES
    lines = [line for cell in cells for line in f"{cell.source}\n{shown(cell)}".splitlines()]
    assert not [line for line in lines if len(line) > LONGEST_LINE]


@each_notebook
def test_outputs_tell_nothing_of_a_machine(path: Path) -> None:
    notebook = read(path)
    assert notebook.metadata == run_notebooks.METADATA
    for cell in code_cells(notebook):
        assert set(cell.metadata) <= {"tags"}
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"
            assert not OF_ONE_MACHINE.search(json.dumps(output)), cell.source


@each_notebook
def test_links_of_notebooks_lead_to_files(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#:\s]+)\)", text)
    assert links
    assert not [link for link in links if not (path.parent / link).exists()]


def test_a_cell_that_fails_is_an_error(tmp_path: Path) -> None:
    wrong = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 + 1 == 3")])
    nbformat.write(wrong, tmp_path / "wrong.ipynb")
    with pytest.raises(CellExecutionError, match="AssertionError"):
        run_notebooks.execute(tmp_path / "wrong.ipynb", tmp_path)


def test_warnings_of_a_busy_machine_are_not_kept(tmp_path: Path) -> None:
    killing = "distributed.nanny - WARNING - Worker process still alive after 4.0 seconds, killing"
    code = f"""
        import sys, warnings
        warnings.warn("Port 8787 is already in use.\\nPerhaps you already have a cluster running?\\n"
                      "Hosting the HTTP server on port 1234 instead")
        print("{killing}", file=sys.stderr)
    """
    both = nbformat.v4.new_code_cell(dedent(code))
    one_more = nbformat.v4.new_code_cell(f"{dedent(code)}print('What a reader sees', file=sys.stderr)")
    nbformat.write(nbformat.v4.new_notebook(cells=[both, one_more]), tmp_path / "busy.ipynb")
    first, second = code_cells(run_notebooks.execute(tmp_path / "busy.ipynb", tmp_path))
    assert first.outputs == []
    assert [output.text for output in second.outputs] == ["What a reader sees\n"]
