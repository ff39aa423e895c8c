"""Completion in the shell: click's own, of commands, options, choices and paths."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rnsdask.cli import main

PROGRAM = Path(sys.executable).parent / "rnsdask"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the command rnsdask is not beside this Python")


def printed(**environment: str) -> str:
    done = subprocess.run(
        [PROGRAM], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout


def completed(line: str) -> list[str]:
    """Words that bash offers to complete the last word of a line."""
    words = str(len(line.split(" ")) - 1)
    found = printed(_RNSDASK_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=words)
    return found.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str) -> None:
    script = printed(_RNSDASK_COMPLETE=f"{shell}_source")
    assert f"_RNSDASK_COMPLETE={shell}_complete" in script
    assert "rnsdask" in script


def test_commands_options_choices_and_paths() -> None:
    assert completed("rnsdask ") == sorted(f"plain,{name}" for name in main.commands)
    assert completed("rnsdask ex") == ["plain,export", "plain,extend"]
    assert "plain,--overwrite" in completed("rnsdask slice --o")
    assert completed("rnsdask convert --to ") == [
        "plain,interval",
        "plain,rns",
        "plain,positional",
        "plain,field",
    ]
    for line in ("max x", "slice x", "slice a -o x", "concat a b x", "concat -o x", "compare x", "cumsum x"):
        assert completed(f"rnsdask {line}") == ["file,x"], line
