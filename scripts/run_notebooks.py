"""Execute the notebooks in temporary folders, and keep their outputs without what belongs to one machine."""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
TIMEOUT = 300  # seconds for a cell: for hangs on a busy machine, since the longest cell takes 3 s
PORT_OF_DASHBOARD = re.compile(r"(?<=http://127\.0\.0\.1:)\d+(?=/status)")
WARNINGS_OF_A_BUSY_MACHINE = re.compile(
    r"^.* is already in use\.\nPerhaps .*\nHosting .*\n  .*\n"
    r"|^.* Worker process still alive after .*\n",
    re.MULTILINE,
)
"""Dask's, which a reader with a free port and a free processor does not see."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def execute(path: Path, folder: Path) -> NotebookNode:
    """Return a notebook with its outputs, executed in a folder by this interpreter.

    Commands beside the interpreter come first.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises an error, such as that of an assertion.
    """
    notebook = nbformat.read(path, as_version=4)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONSAFEPATH": "1",
        "IPYTHONDIR": str(folder / ".ipython"),
    }
    environment.pop("MPLBACKEND", None)
    client = NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return clean(notebook, folder)


def clean(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Remove times, versions, ports and the folder from a notebook."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.from_dict({"tags": cell.metadata.tags} if "tags" in cell.metadata else {})
        if cell.cell_type == "code":
            cell.outputs = clean_outputs(cell.outputs, folder)
    return notebook


def clean_outputs(outputs: list[NotebookNode], folder: Path) -> list[NotebookNode]:
    """Return the outputs of a cell, with one output for the pieces in which a stream came."""
    result: list[NotebookNode] = []
    for output in outputs:
        if output.output_type != "stream":
            output.metadata = nbformat.from_dict({})
        elif result and result[-1].get("name") == output.name:
            result[-1].text += output.text
            continue
        result.append(output)
    for output in result:
        if output.output_type == "stream":
            text = WARNINGS_OF_A_BUSY_MACHINE.sub("", output.text.replace(f"{folder.resolve()}/", ""))
            output.text = PORT_OF_DASHBOARD.sub("8787", text)
    return [output for output in result if output.get("text") != ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", nargs="*", type=Path, help="default: all of notebooks/")
    for path in parser.parse_args().notebook or sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        nbformat.write(notebook, path)
        print(path)


if __name__ == "__main__":
    main()
