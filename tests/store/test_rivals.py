"""Two processes that write one local store: what was there or was acknowledged stays, at any moment.

RNSDASK_FAULT_RUNS tries every job beside every other one, and so many rounds of loops; without it, another
one at each call, and one round.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from strategies import slow

PROGRAM = Path(__file__).parents[1] / "rivals.py"
ROUNDS = os.environ.get("RNSDASK_FAULT_RUNS")
RIVALS = ["append", "overwrite", "create", "resume", "fail", "remove"]


def faults(folder: Path, *arguments: object) -> str:
    program = [sys.executable, PROGRAM, *map(str, arguments)]
    run = subprocess.run(program, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("victim", slow(*RIVALS))
def test_a_writer_is_killed_or_waits_at_any_call(tmp_path: Path, victim: str) -> None:
    """Whatever another one does then; and a third one appends to what is there."""
    each = [] if ROUNDS else ["each"]
    assert faults(tmp_path, victim, *each, *RIVALS) == ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("append", "overwrite"),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in (("append", "append"), ("append", "fail"), ("overwrite", "overwrite"))
        ),
    ],
)
def test_two_writers_whose_renames_come_late(tmp_path: Path, first: str, second: str) -> None:
    """Acknowledged appends are stored once, in their order; those that have failed are not."""
    assert faults(tmp_path, "loop", first, second, 0.03, 1.5, ROUNDS or 1) == ""
