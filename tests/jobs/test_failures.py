"""Jobs while workers, schedulers, disks and files fail: the exact answer, or one line.

RNSDASK_FAULT_RUNS sets how often all kinds of jobs are run with workers that are killed; without it, some
kinds are, once.
"""

import errno
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import forking
import numpy as np
import pytest
import zarr
from commands import call, contents, fail, succeed, without_dashboard, without_measures
from distributed import Client, LocalCluster

import rnsdask as rd
from rnsdask import store
from rnsdask.backend import naming_gpu_memory
from rnsdask.cluster import connecting, failures
from rnsdask.cluster import workers as cluster_workers
from rnsdask.core.errors import (
    CorruptChunkError,
    GPUMemoryError,
    JobError,
    RNSOverflowError,
    StoreAccessError,
    StoreError,
)
from rnsdask.jobs import checkpoint, run, transform
from rnsdask.jobs.checkpoint import REDUCTIONS, Checkpoint, job_of_reduction
from rnsdask.lazy.tree import combine_each, pieces_of

RUNS = int(os.environ.get("RNSDASK_FAULT_RUNS", "1"))
COMMAND = [sys.executable, "-c", "from rnsdask.cli import main; main(prog_name='rnsdask')"]
DASK = "from dask.__main__ import main; main()"
SCHEDULER_LOST = r"the Dask scheduler tcp://\S* has gone, or does not answer any more"
RANDOM = ["--count", "12800", "--bits", "100", "--chunk", "128", "--seed", "3"]  # 100 chunks
SLOW = """
import builtins
import os
import signal
import time
import rnsdask.store as store

class UnreadableError(Exception):
    def __reduce__(self):
        return getattr, (builtins, "only_workers_know_this", *self.args)

builtins.only_workers_know_this = UnreadableError()

def slow(function):
    def slowed(about, *args):
        time.sleep(0.05)
        path = str(getattr(about, "path", ""))
        if path.endswith("deadly.zarr"):
            os.kill(os.getpid(), signal.SIGKILL)
        if path.endswith("unreadable.zarr"):
            raise UnreadableError
        return function(about, *args)
    slowed.is_slow = True
    return slowed

if not hasattr(store.read_chunk, "is_slow"):  # Dask loads this more than once
    store.read_chunk = slow(store.read_chunk)
    store.StoreWriter.write_chunk = slow(store.StoreWriter.write_chunk)
"""


@pytest.fixture(scope="module")
def slow_module(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that makes reading and writing a chunk take long enough to be interrupted; or worse, by name."""
    file = tmp_path_factory.mktemp("preload") / "slow.py"
    file.write_text(SLOW)
    return str(file)


class Workers:
    """Three worker processes that are started again when they die; and all anew, where Dask gave two up."""

    def __init__(self, preload: str) -> None:
        self._preload = preload
        self._cluster: LocalCluster | None = None

    def ready(self) -> LocalCluster:
        if self._cluster is not None:
            with suppress(AssertionError):
                wait_until(lambda: len(self.alive()) > 1, 30)
                return self._cluster
            self.close()
        options: dict[str, Any] = {"processes": True, "dashboard_address": ":0", "preload": [self._preload]}
        with dask.config.set({"distributed.scheduler.allowed-failures": 20}):
            self._cluster = LocalCluster(n_workers=3, threads_per_worker=1, **options)
        return self._cluster

    def alive(self) -> list[int]:
        """Process ids of the workers that work: Dask does not start one again that dies while it starts."""
        assert self._cluster is not None
        known = set(self._cluster.scheduler.workers)
        nannies = [n for n in self._cluster.workers.values() if n.worker_address in known and n.process]
        return [n.process.pid for n in nannies if n.status.name == n.process.status.name == "running"]

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()


@pytest.fixture(scope="module")
def all_workers(slow_module: str) -> Iterator[Workers]:
    running = Workers(slow_module)
    with forking.forked_workers():
        yield running
        running.close()


@pytest.fixture
def workers(all_workers: Workers) -> LocalCluster:
    return all_workers.ready()


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(transform, "default_chunk", lambda _rows: 8)  # several passes


def answer(operation: str, path: str, *options: object) -> dict[str, Any]:
    found = json.loads(succeed(operation, path, "--json", *options))
    return {name: found.get(name) for name in ("value", "index", "count", "exact_fallbacks", "backend")}


def wait_until(condition: Callable[[], Any], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited for {seconds} s"
        time.sleep(0.02)


# ---- Workers that die -------------------------------------------------------------------------------------


class Killer(threading.Thread):
    """Kills workers at random moments, all but one at most, until it is stopped."""

    def __init__(self, workers: Workers, seed: int) -> None:
        super().__init__(daemon=True)
        self._workers, self._random, self._stopped = workers, random.Random(seed), threading.Event()
        self.killed: set[int] = set()

    def run(self) -> None:
        while not self._stopped.wait(self._random.uniform(0.0, 5.0)):
            # Dask takes a while to see that one is dead.
            alive = [pid for pid in self._workers.alive() if pid not in self.killed]
            most = len(alive) - 1
            for pid in self._random.sample(alive, self._random.randint(1, most)) if most > 0 else ():
                self.killed.add(pid)
                os.kill(pid, signal.SIGKILL)

    def __enter__(self) -> "Killer":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        self.join()


EXPRESSION = ["eval", "3*x - y", "x=x.zarr", "y=y.zarr", "--overflow", "flag"]
WRITTEN = ["-o", "out.zarr"]
OUTPUTS = ["out.zarr", "mask.zarr"]
FEW = ["--count", "3840", *RANDOM[2:]]  # 30 chunks
JOBS: dict[str, list[str]] = {
    **{operation: [operation, "x.zarr"] for operation in ("max", "min", "sum", "bound")},
    "exact fallbacks": ["max", "close.zarr"],
    "checkpoint": ["sum", "x.zarr", "--checkpoint", "kept"],
    "verify": ["verify", "x.zarr"],
    "topk": ["topk", "5", "x.zarr"],
    "compare": ["compare", "x.zarr", "y.zarr"],
    "reductions": [*EXPRESSION, "--max", "--min", "--sum", "--argmax", "--argmin"],
    "count": ["eval", "x < y", "x=x.zarr", "y=y.zarr", "--count"],
    "random": ["random", "out.zarr", *FEW],
    "values and mask": [*EXPRESSION, *WRITTEN, "--mask", "mask.zarr"],
    "bool": ["eval", "x < y", "x=x.zarr", "y=y.zarr", *WRITTEN],
    "resume": ["eval", "x - x % 2", "x=x.zarr", *WRITTEN, "--resume"],
    "cumsum": ["cumsum", "small.zarr", "-o", "out.zarr"],
    "cummax": ["cummax", "x.zarr", "-o", "out.zarr"],
    "extend": ["extend", "x.zarr", "-o", "out.zarr", "--bits", "200"],
    "convert": ["convert", "x.zarr", "-o", "out.zarr", "--to", "interval"],
    "concat": ["concat", "x.zarr", "y.zarr", "-o", "out.zarr"],
    "slice": ["slice", "x.zarr", "-o", "out.zarr", "::-1"],
    "rechunk": ["rechunk", "x.zarr", "-o", "out.zarr", "--chunks", "384"],
    "prod": ["prod", "x.zarr", "--overflow", "flag"],
    "ntt": ["ntt", "f.zarr", "-o", "out.zarr", "--negacyclic"],
}

SOME = [
    "exact fallbacks",
    "checkpoint",
    "verify",
    "topk",
    "reductions",
    "values and mask",
    "resume",
    "cumsum",
]
KINDS = list(JOBS) if "RNSDASK_FAULT_RUNS" in os.environ else SOME


@pytest.fixture(scope="module")
def operands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stores that the jobs read."""
    folder = tmp_path_factory.mktemp("operands")
    with chdir(folder):
        succeed("random", "x.zarr", *FEW)
        succeed("random", "y.zarr", *FEW[:-1], 4)
        succeed("eval", "x >> 20", "x=x.zarr", "-o", "small.zarr")
        succeed("eval", "x % 2 + 2**99", "x=x.zarr", "-o", "close.zarr")
        elements = rd.from_ints(np.arange(64) ** 2, rd.PrimeFields([257, 2**32 - 2**20 + 1]), chunks=8)
        elements.to_zarr("f.zarr")
    return folder


def printed_and_written(args: list[str], *place: str) -> tuple[int, dict[str, Any], Any]:
    """Exit status of a job, what it prints but for its time, and what it writes."""
    result = call(*args, "--json", *place)
    assert without_dashboard(result.stderr) == "", (args, result.output, result.exception)
    return result.exit_code, without_measures(json.loads(result.stdout)), outputs()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(RUNS))
def test_killed_workers_change_nothing(all_workers: Workers, operands: Path, seed: int) -> None:
    for file in operands.iterdir():
        Path(file.name).symlink_to(file)
    found = {}
    all_workers.ready()
    with Killer(all_workers, seed) as killer:
        for kind in random.Random(seed).sample(KINDS, len(KINDS)):
            prepare(kind)
            place = ["--scheduler", all_workers.ready().scheduler_address]
            found[kind] = printed_and_written(JOBS[kind], *place)
    print(f"{len(killer.killed)} workers killed")  # shown with -s, and when this fails
    for kind, (status, printed, written) in found.items():
        if kind == "resume":
            assert (printed["chunks_kept"], printed["chunks_rewritten"]) == (16, 0)
            printed["chunks_kept"] = 0
        assert (status, printed, written) == alone(kind), kind


def prepare(kind: str) -> None:
    """Prepare the files that a job finds: none of earlier jobs, or those that it is to continue."""
    for path in (*OUTPUTS, "kept"):
        shutil.rmtree(path, ignore_errors=True)
    if kind == "resume":
        succeed(*JOBS[kind][:-1])
        set_incomplete("out.zarr")
        for i in range(3, 30, 2):
            chunk_files("out.zarr")[i].unlink()


def alone(kind: str) -> tuple[int, dict[str, Any], Any]:
    """Run a job from its beginning in one process; return its result."""
    for path in (*OUTPUTS, "kept"):
        shutil.rmtree(path, ignore_errors=True)
    return printed_and_written([arg for arg in JOBS[kind] if arg != "--resume"])


def test_work_that_kills_its_workers(workers: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("random", "deadly.zarr", "--count", 1, "--bits", 64, "--seed", 3)
    monkeypatch.setattr(workers.scheduler, "allowed_failures", 1)
    message = fail("max", "deadly.zarr", "--scheduler", workers.scheduler_address, "--retries", 0)
    assert re.fullmatch(r"2 workers died at the same piece of work, the last of them tcp://.*", message)


def test_an_error_that_cannot_be_read_here(workers: LocalCluster) -> None:
    succeed("random", "unreadable.zarr", *FEW)
    message = fail("max", "unreadable.zarr", "--scheduler", workers.scheduler_address)
    assert message.startswith(
        "a piece of the job failed with an error that cannot be read here; the workers'"
    )


class Place:
    """A scheduler and workers, each a process that can be killed, and none started again."""

    def __init__(self, slow_module: str) -> None:
        self._options = ["--no-dashboard", "--no-nanny", "--nthreads", "1", "--preload", slow_module]
        self.file = Path("scheduler.json").absolute()
        host = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"]
        self.scheduler = forking.start(DASK, "scheduler", "--scheduler-file", str(self.file), *host)
        wait_until(lambda: self.file.exists() and self.file.read_text().rstrip().endswith("}"))
        self.worker = forking.start(DASK, "worker", "--scheduler-file", str(self.file), *self._options)

    def start_job(self, *args: str) -> subprocess.Popen[bytes]:
        place = ["--scheduler-file", str(self.file)]
        return subprocess.Popen([*COMMAND, *args, *place], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_error: object) -> None:
        for process in (self.worker, self.scheduler):
            process.kill()  # also one that is stopped
            process.join()


def kept_pieces() -> int:
    return len(list(Path("kept").glob("piece-*.json")))


@pytest.mark.parametrize("what", [pytest.param("scheduler", marks=pytest.mark.slow), "interruption"])
def test_end_of_a_job_on_a_cluster(slow_module: str, what: str) -> None:
    succeed("random", "x.zarr", *RANDOM)
    with Place(slow_module) as place:
        process = place.start_job("sum", "x.zarr", "--checkpoint", "kept")
        wait_until(lambda: kept_pieces() > 3 or process.poll() is not None)
        if what == "scheduler":
            place.scheduler.kill()
        else:
            process.send_signal(signal.SIGINT)
        stdout, errors = process.communicate()
        stderr = without_dashboard(errors.decode())
    assert stdout == b""
    if what == "scheduler":
        assert process.returncode == 1
        assert re.fullmatch(rf"rnsdask: error: {SCHEDULER_LOST}\n", stderr), stderr
    else:
        assert process.returncode == 130
        way_on = f"sum x.zarr --checkpoint kept --scheduler-file {place.file}"
        assert stderr == f"rnsdask: error: interrupted; to go on: rnsdask {way_on}\n"
    assert 3 < kept_pieces() < 100
    assert answer("sum", "x.zarr", "--checkpoint", "kept") == answer("sum", "x.zarr")


@pytest.mark.parametrize("what", ["no worker", "frozen scheduler"])
def test_waiting_has_an_end(slow_module: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("random", "x.zarr", *RANDOM)
    # A question may be under way when the scheduler freezes: it waits as long as was right when it was asked.
    monkeypatch.setattr(cluster_workers, "SILENCE_SECONDS", 30)
    with Place(slow_module) as place:

        def stop() -> None:
            wait_until(lambda: kept_pieces() > 3)
            if what == "no worker":
                monkeypatch.setattr(run, "WORKERS_SECONDS", 1)
                place.worker.kill()
            else:
                monkeypatch.setattr(cluster_workers, "SILENCE_SECONDS", 1)
                os.kill(place.scheduler.pid, signal.SIGSTOP)

        command = ["sum", "x.zarr", "--scheduler-file", place.file]
        stopper = threading.Thread(target=stop)
        stopper.start()
        message = fail(*command, "--checkpoint", "kept", "--report", "report.html")
        stopper.join()
        if what == "no worker":
            assert message == "the Dask cluster has lost all its workers, and had none for 1 s"
        else:
            assert re.fullmatch(SCHEDULER_LOST, message)
            monkeypatch.setattr(connecting, "CONNECT_SECONDS", 1)
            assert re.match(r"no Dask scheduler answers at tcp://.*: ", fail(*command))


# ---- What is tried again ----------------------------------------------------------------------------------


def flaky(monkeypatch: pytest.MonkeyPatch, errors: list[Exception]) -> None:
    """Let the reading of a chunk fail with each of the errors."""
    read = store.read_chunk

    def read_chunk(info: store.StoreInfo, index: tuple[int, ...]) -> Any:
        if index == (5,) and errors:
            raise errors.pop()
        return read(info, index)

    monkeypatch.setattr(store, "read_chunk", read_chunk)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_errors_that_pass(monkeypatch: pytest.MonkeyPatch, retries: int) -> None:
    succeed("random", "x.zarr", *RANDOM)
    expected = answer("sum", "x.zarr")
    transient = [StoreAccessError("x: I/O", errno.EIO), MemoryError(), ConnectionError("gone")]
    flaky(monkeypatch, transient[:retries])
    assert answer("sum", "x.zarr", "--retries", retries) == expected
    flaky(monkeypatch, [StoreAccessError("x.zarr: I/O error", errno.EIO)] * (retries + 1))
    assert fail("sum", "x.zarr", "--retries", retries) == "x.zarr: I/O error"


def fail_once(i: int, file: str) -> int:
    if i == 1 and not Path(file).exists():
        Path(file).touch()
        raise OSError(errno.EIO, "once")
    return i


def test_a_piece_is_tried_again_at_once_on_a_cluster(
    workers: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0.0)
    results: list[int] = []
    with connecting.connect(workers.scheduler_address) as client:
        for attempt in range(5):
            file = str(tmp_path / f"failed-{attempt}")
            pieces = [dask.delayed(fail_once, pure=False)(i, file) for i in range(4)]
            assert run.run(pieces, client, lambda _i, result: results.append(result)) == 1
    assert sorted(results) == sorted(5 * [0, 1, 2, 3])


@pytest.mark.parametrize(
    "error",
    [
        CorruptChunkError("corrupt"),
        RNSOverflowError(0, 9, 8, False, False),
        StoreError("wrong"),
        StoreAccessError("full", errno.ENOSPC),
        PermissionError(errno.EACCES, "Permission denied", "x"),
        ValueError("v"),
        KeyError("k"),
    ],
)
def test_errors_that_stay_are_not_tried_again(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    succeed("random", "x.zarr", *RANDOM)
    left = [error] * 5
    flaky(monkeypatch, left)
    fail("sum", "x.zarr")
    assert len(left) == 4


def test_errors_survive_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(StoreAccessError.of("x: y", OSError(errno.ENOSPC, "No space left"))))
    assert (str(error), error.errno) == ("x: y: No space left", errno.ENOSPC)
    assert not failures.can_pass(error)


def test_finished_pieces_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def piece(i: int) -> int:
        calls.append(i)
        if i == 3 and calls.count(3) < 3:
            raise OSError("once more")
        return i

    done: list[tuple[int, int]] = []
    tasks = [dask.delayed(piece, pure=False)(i) for i in range(10)]
    with dask.config.set(num_workers=1):
        assert run.run(tasks, None, lambda i, result: done.append((i, result))) == 2
    assert sorted(done) == [(i, i) for i in range(10)]
    assert calls.count(3) == 3
    assert all(calls.count(i) == 1 for i in range(10) if i != 3)


def test_no_pieces() -> None:
    assert run.run([]) == 0


def test_finished_pieces_of_one_graph_are_not_computed_again() -> None:
    calls: list[int] = []

    def read(block: Any, block_info: Any = None) -> Any:
        number = block_info[0]["chunk-location"][0]
        calls.append(number)
        if number == 9 and calls.count(9) < 3:
            raise OSError(errno.EIO, "Input/output error")
        return block

    blocks = da.arange(10, chunks=1).map_blocks(read, dtype=int, meta=np.empty(0, int))
    groups = combine_each(blocks, [range(0, 4), range(4, 8), range(8, 10)], sum)
    pieces = pieces_of(groups)
    assert all(piece.dask is pieces[0].dask for piece in pieces)
    done: dict[int, int] = {}
    with dask.config.set(num_workers=1):
        assert run.run(pieces, None, lambda i, result: done.update({i: int(result[0])})) == 2
    assert done == {0: 6, 1: 22, 2: 17}
    assert all(calls.count(i) == 1 for i in range(8))
    assert calls.count(9) == 3


def test_equal_pieces_are_computed_once_and_all_handed_over() -> None:
    """Pieces of graphs of their own and of one graph; on a cluster equal ones are one future."""
    calls: list[int] = []

    def count(value: int) -> int:
        calls.append(value)
        if len(calls) == 1:
            raise OSError("once more")
        return 10 * value

    blocks = da.arange(3, chunks=1)
    first, second = pieces_of(blocks[:1], blocks[:1])
    call = dask.delayed(count, pure=True)
    cases: list[tuple[list[Any], list[int]]] = [
        ([call(7, dask_key_name="seven"), call(8), call(7, dask_key_name="seven")], [70, 80, 70]),
        ([first, second], [0, 0]),
        ([blocks.sum(), blocks.max(), blocks.sum()], [3, 2, 3]),
    ]
    with Client(processes=False, dashboard_address=None) as client:
        for where in (None, client):
            for pieces, values in cases:
                done: list[tuple[int, int]] = []
                run.run(pieces, where, lambda i, result, to=done: to.append((i, int(np.squeeze(result)))))
                assert sorted(done) == list(enumerate(values))
    assert calls.count(7) <= 3


def test_a_result_that_is_here_stays_when_its_worker_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the arrival of a result and the look at its future, the worker that held it may be killed."""
    monkeypatch.setattr(distributed.Future, "status", "lost")
    done: dict[int, int] = {}
    with Client(processes=False, dashboard_address=None) as client:
        run.run([dask.delayed(abs)(-i) for i in range(5)], client, lambda i, result: done.update({i: result}))
    assert done == {i: i for i in range(5)}


def test_bad_setting_of_retries() -> None:
    with dask.config.set({"rnsdask.retries": -1}), pytest.raises(ValueError, match="non-negative"):
        run.run([dask.delayed(1)])


# ---- Checkpoints ------------------------------------------------------------------------------------------


def make_checkpoint(operation: str = "max") -> dict[str, Any]:
    succeed("random", "x.zarr", *RANDOM)
    return answer(operation, "x.zarr", "--checkpoint", "kept")


@pytest.mark.parametrize("operation", ["max", "sum"])
def test_a_checkpoint_is_continued(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    expected = make_checkpoint(operation)
    assert kept_pieces() == 100
    for i in range(0, 100, 7):
        Path(f"kept/piece-{i:05}.json").unlink()
    read: list[tuple[int, ...]] = []
    original = store.read_chunk
    monkeypatch.setattr(
        store, "read_chunk", lambda info, index: (read.append(index), original(info, index))[1]
    )
    assert answer(operation, "x.zarr", "--checkpoint", "kept") == expected == answer(operation, "x.zarr")
    assert sorted(read[: len(range(0, 100, 7))]) == [(i,) for i in range(0, 100, 7)]


def test_a_checkpoint_of_something_else_is_refused() -> None:
    make_checkpoint()
    assert "its operation is 'max', this job's 'sum'" in fail("sum", "x.zarr", "--checkpoint", "kept")
    succeed("random", "y.zarr", *RANDOM, "--overwrite")  # the same numbers elsewhere
    succeed("max", "y.zarr", "--checkpoint", "kept")
    zarr.open_array("x.zarr", mode="r+")[:, 17 * 128] = 1
    assert "x.zarr: 1 chunk differs" in fail("max", "x.zarr", "--checkpoint", "kept")
    succeed("random", "x.zarr", *RANDOM, "--signed", "--overwrite")
    assert "x.zarr: its number system: RNS(" in fail("max", "x.zarr", "--checkpoint", "kept")
    Path("folder").mkdir()
    Path("folder/file").write_text("mine")
    assert "it is not a checkpoint" in fail("max", "x.zarr", "--checkpoint", "folder")
    assert "Not a directory" in fail("max", "x.zarr", "--checkpoint", "folder/file/x")


def test_a_damaged_checkpoint_is_not_trusted() -> None:
    expected = make_checkpoint()
    file, job = Path("kept/piece-00003.json"), Path("kept/job.json")
    whole, right = file.read_bytes(), job.read_bytes()
    for content in (b"", b"{}", b"[]", b"\xff\x00", b'{"value": "0x1"}'):
        file.write_bytes(content)
        assert answer("max", "x.zarr", "--checkpoint", "kept") == expected, content
        assert file.read_bytes() == whole, content
        job.write_bytes(content)
        assert "damaged" in fail("max", "x.zarr", "--checkpoint", "kept"), content
        job.write_bytes(right)
    shutil.copy("kept/piece-00004.json", file)  # whole, and of another piece
    assert answer("max", "x.zarr", "--checkpoint", "kept") == expected


def test_every_byte_of_a_checkpoint_counts() -> None:
    expected = make_checkpoint()
    file = Path("kept/piece-00003.json")
    whole = file.read_bytes()
    info, groups = store.open_info("x.zarr"), run.groups_of(100)
    job = job_of_reduction(info, "max", groups)
    right = Checkpoint(Path("kept"), job, REDUCTIONS).load()
    for i in range(10, 100):  # so that the others are quick to read
        Path(f"kept/piece-{i:05}.json").unlink()
    for position in range(len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        found = Checkpoint(Path("kept"), job, REDUCTIONS).load()
        assert found.get(3, right[3]) == right[3], position
    assert answer("max", "x.zarr", "--checkpoint", "kept") == expected


# ---- Jobs that are killed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(RUNS))
@pytest.mark.parametrize("command", ["import", "sum", "eval"])
def test_a_killed_job_continues(command: str, seed: int, slow_module: str) -> None:
    rnd = random.Random(seed)
    Path("numbers").write_text("".join(f"{rnd.getrandbits(90)}\n" for _ in range(2000)))
    options = ["--bits", "100", "--chunk", "128"]
    args = {
        "import": ["import", "numbers", "x.zarr", *options],
        "sum": ["sum", "s.zarr", "--checkpoint", "kept"],
        "eval": ["eval", "3*s", "s=s.zarr", "-o", "x.zarr", "--overflow", "flag", "--mask", "mask.zarr"],
    }[command]
    succeed("random", "s.zarr", "--count", "2000", "--seed", "3", *options)
    script = f"exec(open({slow_module!r}).read()); {COMMAND[2]}"
    process = forking.start(script, *args)
    chunks = Path("x.zarr.partial/c/0")
    some = rnd.randint(0, 10)
    wait_until(lambda: len(list(chunks.glob("*"))) + kept_pieces() >= some or process.exitcode == 0)
    time.sleep(rnd.uniform(0.0, 0.1))
    process.kill()
    process.join()
    if command == "sum":
        assert answer("sum", "s.zarr", "--checkpoint", "kept") == answer("sum", "s.zarr")
        return
    succeed(*args, "--resume")
    killed = contents("x.zarr"), contents("mask.zarr")
    succeed(*args, "--overwrite")
    assert killed == (contents("x.zarr"), contents("mask.zarr"))


def test_a_resumed_job_reads_what_is_there() -> None:
    succeed("random", "x.zarr", *RANDOM)
    expected = contents("x.zarr")
    document = json.loads(Path("x.zarr/zarr.json").read_text())
    document["attributes"]["rnsdask"]["complete"] = False
    Path("x.zarr/zarr.json").write_text(json.dumps(document))
    chunk = Path("x.zarr/c/0/7")
    damaged = bytearray(chunk.read_bytes())
    damaged[100] ^= 4
    chunk.write_bytes(damaged)
    Path("x.zarr/c/0/8").unlink()
    Path("x.zarr/c/0/9").write_bytes(b"short")
    Path("x.zarr/.partial").mkdir()
    Path("x.zarr/.partial/9.0abc.partial").write_bytes(b"left behind")
    done = json.loads(succeed("random", "x.zarr", *RANDOM, "--resume", "--json"))
    assert (done["chunks_kept"], done["chunks_rewritten"]) == (97, 1)
    assert contents("x.zarr") == expected


INTERRUPTED = {
    "mask": ["eval", "2**30*x", "x=x.zarr", "-o", "out.zarr", "--overflow", "flag", "--mask", "mask.zarr"],
    "int8": ["eval", "sign(x - 2**99)", "x=x.zarr", "-o", "out.zarr", "--overflow", "wrap"],
    "cumsum": ["cumsum", "small.zarr", "-o", "out.zarr"],
}


def uninterrupted(kind: str) -> tuple[dict[str, Any], Any]:
    """Run a job; return what it prints and writes."""
    succeed("random", "x.zarr", *RANDOM)
    if kind == "cumsum":
        succeed("eval", "x >> 20", "x=x.zarr", "-o", "small.zarr")
    printed = json.loads(succeed(*INTERRUPTED[kind], "--json"))
    assert (printed["chunks_kept"], printed["chunks_rewritten"]) == (0, 0)
    return printed, outputs()


def outputs() -> Any:
    return [contents(path) for path in OUTPUTS]


def set_incomplete(path: str) -> None:
    file = Path(path, "zarr.json")
    document = json.loads(file.read_text())
    for attribute in document["attributes"].values():
        attribute["complete"] = False
    file.write_text(json.dumps(document))


def chunk_files(path: str) -> dict[int, Path]:
    return {int(file.name): file for file in Path(path, "c").rglob("*") if file.is_file()}


def flip(file: Path) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[100] ^= 1
    file.write_bytes(damaged)


@pytest.mark.parametrize("kind", INTERRUPTED)
def test_an_interrupted_job_continues(kind: str) -> None:
    printed, expected = uninterrupted(kind)
    set_incomplete("out.zarr")
    chunks = chunk_files("out.zarr")
    flip(chunks[7])
    chunks[8].unlink()
    Path("out.zarr/.partial").mkdir()
    Path("out.zarr/.partial/9.0abc.partial").write_bytes(b"left behind")
    kept, rewritten = 98, 1
    if kind == "mask":
        set_incomplete("mask.zarr")
        masks = chunk_files("mask.zarr")
        flip(masks[0])
        masks[1].unlink()
        masks[2].write_bytes(b"")
        masks[7].unlink()
        kept, rewritten = 95, 3
    untouched = {i: file.stat().st_mtime_ns for i, file in chunks.items() if i not in (0, 1, 2, 7, 8)}
    found = json.loads(succeed(*INTERRUPTED[kind], "--resume", "--json"))
    assert (found["chunks_kept"], found["chunks_rewritten"]) == (kept, rewritten)
    assert found.get("flagged") == printed.get("flagged")
    assert outputs() == expected
    assert all(chunks[i].stat().st_mtime_ns == written for i, written in untouched.items())
    assert "out.zarr: complete already" in succeed(*INTERRUPTED[kind], "--resume")
    assert outputs() == expected
    set_incomplete("out.zarr")
    flip(chunks[0])
    assert "99 chunks kept, 1 damaged one written again" in succeed(*INTERRUPTED[kind], "--resume")
    assert outputs() == expected


@pytest.mark.slow
def test_states_of_an_interrupted_mask() -> None:
    printed, expected = uninterrupted("mask")
    for state in ("no mask", "no mask's chunks", "complete mask", "nothing"):
        set_incomplete("out.zarr")
        if state == "no mask":
            shutil.rmtree("mask.zarr")
        elif state == "no mask's chunks":
            set_incomplete("mask.zarr")
            shutil.rmtree("mask.zarr/c")
        elif state == "nothing":
            shutil.rmtree("out.zarr/c")
        found = json.loads(succeed(*INTERRUPTED["mask"], "--resume", "--json"))
        assert found["chunks_kept"] == (100 if state == "complete mask" else 0), state
        assert found["flagged"] == printed["flagged"] > 0, state
        assert outputs() == expected, state


def test_what_cannot_be_resumed() -> None:
    other = ["--bits", "100", "--chunk", "128", "--count", "500", "--seed", "3"]
    uninterrupted("mask")
    succeed("random", "y.zarr", *RANDOM[:-1], 4)
    succeed("random", "few.zarr", *other)
    succeed("random", "signed.zarr", *RANDOM, "--signed")
    succeed("random", "wide.zarr", *RANDOM[:2], "--bits", "200", *RANDOM[4:])
    succeed("random", "long.zarr", *RANDOM[:4], "--chunk", "256", "--seed", 3)
    succeed("eval", "x < y", "x=x.zarr", "y=y.zarr", "-o", "bool.zarr")
    set_incomplete("out.zarr")
    set_incomplete("bool.zarr")
    place = ["-o", "out.zarr", "--resume"]
    before = outputs()
    for name, text in {"few": "shape", "signed": "signed", "wide": "moduli", "long": "chunks"}.items():
        for job_of in (["eval", "x", f"x={name}.zarr", *place], ["cummax", f"{name}.zarr", *place]):
            message = fail(*job_of)
            assert f"out.zarr: it cannot be resumed: its {text}: " in message, job_of
    assert "it cannot be resumed: its bound: None; of the job: 9" in fail(
        "eval", "x % 10", "x=x.zarr", *place
    )
    assert outputs() == before
    plain = ["-o", "bool.zarr", "--resume"]
    for text, name in {"x < 9": "few", "x < 10": "long", "sign(x)": "x"}.items():
        wrong = {"few": "shape", "long": "chunks", "x": "dtype"}[name]
        assert f"it cannot be resumed: its {wrong}: " in fail("eval", text, f"x={name}.zarr", *plain)
    assert "holds other numbers" in fail("eval", "x > y", "x=x.zarr", "y=y.zarr", *plain)
    assert "holds other numbers" in fail("eval", "2**31*x", "x=x.zarr", "--overflow", "wrap", *place)
    assert "it is complete, but of another job" in fail("eval", "x<9", "x=x.zarr", "-o", "y.zarr", "--resume")
    mask = ["--overflow", "flag", "--mask", "y.zarr"]
    assert "y.zarr: it is complete, but of another job" in fail("eval", "2**30*x", "x=x.zarr", *place, *mask)
    set_incomplete("y.zarr")
    assert "no array that rnsdask wrote" in fail("eval", "2**30*x", "x=x.zarr", *place, *mask)
    assert "is read from" in fail("eval", "x < 9", "x=x.zarr", "-o", "x.zarr", "--resume")


# ---- Disks ------------------------------------------------------------------------------------------------


WRITING = {
    "random": ["random", "y.zarr", *RANDOM],
    "import": ["import", "n.txt", "y.zarr", "--bits", "64", "--chunk", "128"],
    "cumsum": ["cumsum", "x.zarr", "-o", "y.zarr"],
    "eval": ["eval", "x // 2", "x=x.zarr", "-o", "y.zarr"],
    "comparison": ["eval", "x > 2", "x=x.zarr", "-o", "y.zarr"],
}


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job removes what it has begun, with --resume too, and leaves what it has found and added to."""
    Path("n.txt").write_text("".join(f"{i}\n" for i in range(1000)))
    rd.from_ints(range(1000), rd.ModuliSet.for_bits(64), chunks=128).to_zarr("x.zarr")
    replace, left = Path.replace, [0]
    error = [errno.ENOSPC]

    def full(self: Path, target: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(error[0], os.strerror(error[0]), str(self))
        return replace(self, target)

    def chunks_left() -> int:
        return len([path for path in Path("y.zarr.partial/c").rglob("*") if path.is_file()])

    with monkeypatch.context() as patched, dask.config.set(num_workers=1):
        patched.setattr(Path, "replace", full)
        for options in ([], ["--resume"], ["--resume", "--overwrite"]):
            left[0] = 4
            message = fail(*WRITING[name], *options)
            assert re.search(r"y\.zarr.*: No space left on device", message)
            assert {path.name for path in Path().iterdir()} == {"n.txt", "x.zarr"}
        left[0], error[0] = 4, errno.EACCES  # an error that leaves the store
        fail(*WRITING[name])
        found = chunks_left()
        assert found > 0
        left[0], error[0] = 4, errno.ENOSPC
        message = fail(*WRITING[name], "--resume")
        assert re.search(r"y\.zarr.*: No space left on device", message)
        assert chunks_left() > found
    succeed(*WRITING[name], "--resume")


@pytest.mark.parametrize("limit", [100, 1000, 1500])
def test_files_that_may_not_grow(limit: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))  # Python ignores the signal
    try:
        message = fail("random", "x.zarr", *RANDOM)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert re.fullmatch(r".*x\.zarr.*: File too large", message)
    succeed("random", "x.zarr", *RANDOM, "--resume")
    assert json.loads(succeed("verify", "x.zarr", "--json"))["problems"] == []


def test_a_full_disk_under_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "kept/piece")

    succeed("random", "x.zarr", *RANDOM)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "new_file", full)
        assert "the checkpoint cannot be used: No space left" in fail("max", "x.zarr", "--checkpoint", "kept")


def test_a_store_that_turns_unreadable(workers: LocalCluster) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    succeed("random", "x.zarr", *RANDOM)
    Path("x.zarr/c/0/50").chmod(0)
    for place in ([], ["--scheduler", workers.scheduler_address]):
        assert re.search(r"c/0/50 cannot be read: Permission denied$", fail("max", "x.zarr", *place))


def test_a_chunk_that_is_removed_meanwhile(workers: LocalCluster) -> None:
    succeed("random", "x.zarr", *RANDOM)

    def remove() -> None:
        wait_until(lambda: kept_pieces() > 3)
        Path("x.zarr/c/0/99").unlink(missing_ok=True)

    thread = threading.Thread(target=remove)
    thread.start()
    result = call("max", "x.zarr", "--scheduler", workers.scheduler_address, "--checkpoint", "kept")
    thread.join()
    assert result.exit_code == 0 or result.stderr.endswith("chunk c/0/99 is missing\n")
    assert "chunk c/0/99 is missing" in fail("max", "x.zarr", "--scheduler", workers.scheduler_address)


# ---- Damage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["flip", "cut"])
def test_metadata_damaged_byte_by_byte(change: str) -> None:
    ms = rd.ModuliSet([97, 101, 4294967291])
    rd.random(ms, 300, chunks=128).to_zarr("x.zarr")
    expected = rd.open_zarr("x.zarr").max().compute()
    file = Path("x.zarr/zarr.json")
    whole = file.read_bytes()
    answers = 0
    for i in range(len(whole)):
        end = b"" if change == "cut" else bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1 :]
        file.write_bytes(whole[:i] + end)
        with suppress(StoreError):
            found = rd.open_zarr("x.zarr").max().compute()
            answers += 1
            assert found == expected, i
    assert 0 <= answers < len(whole)


def test_foreign_files_change_no_answer() -> None:
    succeed("random", "x.zarr", *RANDOM)
    succeed("random", "other.zarr", "--count", 512, "--bits", 200, "--chunk", 256, "--seed", 3)
    expected = answer("sum", "x.zarr")
    shutil.copy("other.zarr/c/0/1", "x.zarr/c/0/100")
    shutil.copy("other.zarr/c/0/1", "x.zarr/c/0/7.partial")
    Path("x.zarr/c/1").mkdir()
    Path("x.zarr/notes.txt").write_text("mine")
    assert answer("sum", "x.zarr") == expected
    assert len(json.loads(call("verify", "x.zarr", "--json").stdout)["problems"]) == 3
    shutil.copy("other.zarr/c/0/1", "x.zarr/c/0/7")
    assert re.search(r"chunk c/0/7 has \d+ bytes", fail("sum", "x.zarr"))


def test_a_full_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfMemoryError(MemoryError):
        pass

    OutOfMemoryError.__module__ = "cupy.cuda.memory"
    runtime = types.SimpleNamespace(memGetInfo=lambda: (5, 80), getDevice=lambda: 3)
    fake = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(GPUMemoryError) as caught, naming_gpu_memory():
        raise OutOfMemoryError("Out of memory allocating 9 bytes")
    message = failures.describe(pickle.loads(pickle.dumps(caught.value)))
    assert message.startswith(
        "GPU 3 has no memory left, 5 of its 80 bytes are free: Out of memory allocating 9"
    )
    assert failures.can_pass(caught.value)
    with pytest.raises(MemoryError, match="plain"), naming_gpu_memory():
        raise MemoryError("plain")


def test_cancelled_and_killed_are_one_line() -> None:
    from concurrent.futures import CancelledError

    from distributed.comm import CommClosedError

    assert failures.describe(CancelledError()) == "the job was cancelled on the Dask cluster"
    assert "connection to the Dask cluster was lost" in failures.describe(CommClosedError("x"))
    assert (
        failures.describe(OSError(errno.ENOSPC, "No space left on device", "f"))
        == "f: No space left on device"
    )
    assert "smaller chunks" in failures.describe(MemoryError("Out of memory allocating 5 bytes"))
    assert not failures.can_pass(JobError("gone"))
