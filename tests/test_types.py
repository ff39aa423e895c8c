"""Types of the public names, as mypy finds them in the installed package."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import contracts
import pytest

ROOT = Path(__file__).resolve().parents[1]

# Libraries in which no public name has a type: with them mypy takes four times as long.
UNSEEN = (
    *("bokeh", "distributed", "ipykernel", "IPython", "jupyter_client", "matplotlib", "narwhals", "pandas"),
    *("prompt_toolkit", "tornado", "xarray", "zarr", "zmq"),
)
CONFIG = f"""
[mypy]
strict = true
allow_untyped_calls = true
no_implicit_reexport = false
[mypy-{",".join(f"{library}.*" for library in UNSEEN)}]
follow_imports = skip
ignore_missing_imports = true
"""


def test_no_public_function_returns_any() -> None:
    assert list(contracts.public_functions_of_any(ROOT, contracts.trees(ROOT))) == []


@pytest.mark.slow
def test_types_of_public_names(tmp_path: Path) -> None:
    """The tour's calls have these types, and mypy has nothing to say about README and the first lesson."""
    pytest.importorskip("mypy")
    sources = {"typed_calls": (ROOT / "tests" / "typed_calls.py").read_text(encoding="utf-8")}
    for page in ("README", "docs/getting-started"):
        text = re.sub("^```.*$", "", (ROOT / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
        sources[Path(page).stem.replace("-", "_")] = "".join(
            example.source for example in doctest.DocTestParser().get_examples(text)
        )
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIG, encoding="utf-8")
    # In a folder of its own, where `rnsdask` is the installed package.
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary"]
    done = subprocess.run(
        [*command, *(f"{name}.py" for name in sources)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0
