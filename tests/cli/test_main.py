"""``python -m rnsdask``, the command line by the module's name."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import call


@pytest.mark.parametrize("args", [["--version"], ["max", "nothing.zarr"], ["max", "--nothing"], ["nothing"]])
def test_the_module_is_the_command(args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    found = subprocess.run([sys.executable, "-m", "rnsdask", *args], **how)
    wanted = call(*args)
    assert (found.returncode, found.stdout, found.stderr) == (wanted.exit_code, wanted.stdout, wanted.stderr)
