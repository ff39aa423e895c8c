"""Helpers that run commands and read their output."""

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.store.location import JOB_KEY

_MEASURES = ("seconds", "retries")

PYTHONS = re.compile(
    r"\b(x|rd|np)\.\w+\(|\b(to|from)_\w+\(|\b[a-z_]+=(True|False|None|\")|\b(RNS|IntervalRNS|Field|Positional)Array"
)
"""Words of Python in messages, which commands have words of their own for."""


def without_dashboard(errors: str) -> str:
    """Standard error without the line that a job on a cluster begins with."""
    return re.sub(r"\Adashboard: http://.*\n", "", errors)


def without_measures(printed: dict[str, Any]) -> dict[str, Any]:
    """Parse the output of ``--json``, without durations and other measures."""
    return {name: value for name, value in printed.items() if name not in _MEASURES}


def call(*args: object, stdin: bytes | None = None) -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(arg) for arg in args], input=stdin, prog_name="rnsdask")


def succeed(*args: object, stdin: bytes | None = None, status: int = 0) -> str:
    """Run a command that must say nothing on standard error; return its output."""
    result = call(*args, stdin=stdin)
    assert (result.exit_code, without_dashboard(result.stderr)) == (status, ""), result.output
    return str(result.stdout)


def as_json(*args: object, stdin: bytes | None = None, status: int = 0) -> dict[str, Any]:
    """Run a command that must say nothing on standard error; return the object that it prints."""
    output = succeed(*args, "--json", stdin=stdin, status=status)
    assert output.count("\n") == 1
    return dict(json.loads(output))


def fail(*args: object, stdin: bytes | None = None, status: int = 1) -> str:
    """Run a command that must end in one line on standard error; return its message."""
    result = call(*args, stdin=stdin)
    assert result.exit_code == status, result.output
    match = re.fullmatch(r"rnsdask: error: (.*)\n", without_dashboard(result.stderr))
    assert match, result.output
    assert not PYTHONS.search(re.sub(r"\bin Python, .*?(; |$)", "", match[1])), match[1]
    return match[1]


def values_in(path: str) -> list[int]:
    """Numbers of a store."""
    found: list[int] = rd.open_zarr(path).to_ints().tolist()
    return found


def contents(path: str) -> dict[str, bytes]:
    """All that readers of a store see: its files, but for the one that names the job."""
    files = (file for file in Path(path).rglob("*") if file.is_file() and file.name != JOB_KEY)
    return {str(file.relative_to(path)): file.read_bytes() for file in files}
