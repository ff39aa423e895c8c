"""CUDA kernels that run on the host, under sanitizers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "emulate_kernels.py"


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_kernels_agree_with_the_cpus() -> None:
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    command = [sys.executable, str(SCRIPT), "powers", "transposition"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "transposition: 4 results agree",
        "montgomery_powers: 4 results agree",
    ]
