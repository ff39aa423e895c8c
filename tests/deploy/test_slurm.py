"""Job scripts of ``deploy/slurm``, run by bash with stand-ins of SLURM's commands."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from forks import Commands

import rnsdask as rd

SCRIPTS = Path(__file__).resolve().parents[2] / "deploy" / "slurm"

PROGRAMS = {
    # What it is given, without its own options.
    "srun": 'echo "$@" >>"$FOLDER/srun"\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"',
    "scontrol": 'echo "$@" >>"$FOLDER/scontrol"',
}


class Batch:
    """A folder with a store of known numbers, and the environment of a job of SLURM."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        programs = folder / "programs"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/bash\n{text}\n")
            (programs / name).chmod(0o755)
        job = {
            "SLURM_JOB_ID": "7",
            "SLURM_SUBMIT_DIR": str(folder),
            "SLURM_CPUS_PER_TASK": "1",
            "SLURM_JOB_NUM_NODES": "1",
        }
        self.environment = os.environ | job | {"PATH": f"{programs}{os.pathsep}{path}", "FOLDER": str(folder)}

    def start(self, script: str, *args: str, **variables: str) -> "subprocess.Popen[str]":
        """Start a job script, as a shell that alone gets SLURM's signals."""
        streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = self.environment | variables
        command = ["bash", str(SCRIPTS / script), *args]
        return subprocess.Popen(command, cwd=self.folder, env=environment, **streams)

    def run(self, script: str, *args: str, status: int = 0, **variables: str) -> str:
        """Run a job script to its end, and return what it prints."""
        job = self.start(script, *args, **variables)
        printed, errors = job.communicate(timeout=300)
        assert job.returncode == status, printed + errors
        return printed if status == 0 else errors

    def asked(self, program: str) -> str:
        """Return the words that a program of SLURM was called with, a line for each call."""
        file = self.folder / program
        return file.read_text() if file.exists() else ""


@pytest.fixture
def batch(tmp_path: Path, commands: Commands) -> Batch:
    return Batch(tmp_path, commands.path)


def make_store(folder: Path, count: int) -> None:
    rd.from_ints(range(count), rd.ModuliSet.for_bits(128), chunks=128).to_zarr(
        folder / "x.zarr", overwrite=True
    )


def test_a_command_on_one_host(batch: Batch) -> None:
    """Without a GPU it must say so, and the job end with its status."""
    make_store(batch.folder, 1000)
    told = batch.run("gpus.sbatch", "max", "x.zarr", status=1)
    assert "1 GPU was asked for, and this host has 0" in told
    assert batch.asked("srun") == "--ntasks=1 --cpus-per-task=1 rnsdask max x.zarr --gpus all\n"


@pytest.mark.slow
def test_a_command_on_many_hosts(batch: Batch) -> None:
    make_store(batch.folder, 1000)
    printed = batch.run("cluster.sbatch", "sum", "x.zarr", "--json")
    assert json.loads(printed)["value"] == str(sum(range(1000)))
    assert not list(batch.folder.glob("scheduler-*.json"))
    words = batch.asked("srun").split()
    assert words[:5] == ["--cpus-per-task=1", "dask", "worker", "--nthreads", "1"]
    assert words[-2:] == ["--preload", "rnsdask.worker"]


def test_a_job_that_its_time_limit_ends_is_queued_again_and_goes_on(batch: Batch) -> None:
    command = ["eval", "x**3 + 1", "x=x.zarr", "-o", "y.zarr", "--resume", "--json", "--no-progress"]
    chunks = 512
    while True:  # until the signal comes before the end
        make_store(batch.folder, 128 * chunks)
        job = batch.start("resume.sbatch", *command, DASK_NUM_WORKERS="1")
        while job.poll() is None and len(chunks_in(batch.folder / "y.zarr.partial")) < 2:
            time.sleep(0.005)
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=300)
        if batch.asked("scontrol"):
            break
        assert chunks < 10_000
        chunks *= 4
        shutil.rmtree(batch.folder / "y.zarr")
    assert job.returncode == 0
    assert batch.asked("scontrol") == "requeue 7\n"
    kept = chunks_in(batch.folder / "y.zarr.partial")
    assert 2 <= len(kept) < chunks
    batch.run("resume.sbatch", *command)
    assert batch.asked("scontrol") == "requeue 7\n"
    written = chunks_in(batch.folder / "y.zarr")
    assert len(written) == chunks
    assert kept.items() <= written.items()
    assert rd.open_zarr(batch.folder / "y.zarr").to_ints().tolist() == [n**3 + 1 for n in range(128 * chunks)]


def chunks_in(store: Path) -> dict[str, int]:
    """Paths of a store's chunks, and when each was written, in ns."""
    files = (file for file in (store / "c").rglob("*") if file.is_file())
    return {str(file.relative_to(store)): file.stat().st_mtime_ns for file in files}


def test_a_job_that_fails_is_not_queued_again(batch: Batch) -> None:
    told = batch.run("resume.sbatch", "sum", "missing.zarr", "--checkpoint", "kept", status=1)
    assert "missing.zarr" in told
    told = batch.run("resume.sbatch", "sum", "x.zarr", status=2)
    assert "without --resume or --checkpoint DIR" in told
    assert not batch.asked("scontrol")
