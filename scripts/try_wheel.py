"""Tries the rnsdask that is installed: first cells of a notebook, commands, and what the wheel must contain.

    python scripts/try_wheel.py notebooks/tour.ipynb

Run it away from the checkout, in an environment that has rnsdask[plot] and nothing else; an error ends it.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

CELLS = 6  # of code: imports, an array, a slice, a sum, a comparison, different values
COMMAND = Path(sysconfig.get_path("scripts")) / "rnsdask"


def first_cells(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, object] = {}
    begin = time.perf_counter()
    for cell in cells[:CELLS]:
        *lines, last = "".join(cell["source"]).splitlines()
        exec("\n".join(lines), namespace)
        try:
            value = eval(last, namespace)
        except SyntaxError:  # a statement
            exec(last, namespace)
        else:
            if value is not None:
                print(value)
    print(f"{CELLS} cells in {time.perf_counter() - begin:.1f} s")


def run(*arguments: str) -> str:
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"rnsdask {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def commands() -> None:
    assert version("rnsdask") in run("--version")
    values = [3**k for k in range(300)]
    with tempfile.TemporaryDirectory() as folder:
        text, store = Path(folder, "powers.txt"), str(Path(folder, "powers.zarr"))
        text.write_text("\n".join(map(str, values)))
        run("import", str(text), store, "--bits", "512", "--no-progress")
        found = json.loads(run("sum", store, "--json", "--no-progress"))
        assert str(sum(values)) in json.dumps(found), found
    print("a store made and summed")


def contents() -> None:
    import rnsdask

    kernels = Path(rnsdask.__file__).parent / "kernels"
    for kind in ("cuda/*.cu", "include/rns/*.cuh"):
        assert list(kernels.glob(kind)), f"the wheel has no kernels/{kind}"
    print(f"{len(list(kernels.rglob('*.cu*')))} sources for NVRTC")


if __name__ == "__main__":
    print(f"rnsdask {version('rnsdask')}, Python {sys.version.split()[0]}")
    contents()
    first_cells(Path(sys.argv[1]))
    commands()
