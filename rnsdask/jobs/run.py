"""Running the pieces of a job on threads or on a cluster, with retries after transient errors.

A job is a list of pieces: independent lazy computations with small results. Finished results are handed over
at once, so that they can be kept. Dask itself moves the work of a dead worker to another; this module adds
what Dask leaves to its user: which errors are worth a retry, and when to give up waiting.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import dask
from dask import threaded
from dask.base import compute, tokenize
from dask.callbacks import Callback
from dask.delayed import Delayed
from dask.system import CPU_COUNT

from rnsdask.cluster.connecting import WORKERS_SECONDS
from rnsdask.cluster.failures import can_pass
from rnsdask.cluster.workers import ask, check_connected
from rnsdask.core.errors import JobError
from rnsdask.jobs.progress import Meter

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 3
"""Default number of retries of a piece, without ``--retries`` or Dask's setting ``rnsdask.retries``."""

PAUSE_SECONDS = 1.0
"""Seconds before pieces are retried, so that a transient fault can pass."""

_WATCH_SECONDS = 1.0
_POLL_SECONDS = 0.01

_PIECES = 1024

# Dask warns of graphs above 10 MB, because arrays may hide in them. These have a few hundred bytes a chunk.
_GRAPH_WARNING = "1 GB"

Done = Callable[[int, Any], object]
"""Callback for a finished piece: its number and its result."""


@contextmanager
def with_retries(retries: int | None) -> Iterator[None]:
    """Set the number of retries of the pieces of jobs in this context; None leaves it as it is.

    A cluster started in the context tolerates as many deaths of workers at a piece.
    """
    if retries is None:
        yield
        return
    with dask.config.set({"rnsdask.retries": retries, "distributed.scheduler.allowed-failures": retries}):
        yield


def groups_of(count: int) -> list[range]:
    """Divide `count` small tasks, in order, into pieces that are small enough to lose little with one."""
    size = max(1, -(-count // _PIECES))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def run(
    pieces: Sequence[Any],
    client: "Client | None" = None,
    done: Done = lambda _i, _result: None,
    meter: Meter | None = None,
) -> int:
    """Compute all pieces, in any order; return the number of retries.

    Shared work and equal pieces are computed once, but a piece may be repeated, even twice at the same time.
    `done` is called in this thread, once for each piece. `meter` counts finished tasks; on a cluster,
    distinct pieces. Raises the error of a piece if it is permanent or persists after all retries, and
    JobError if the cluster is lost.
    """
    retries = dask.config.get("rnsdask.retries", RETRIES)
    if not isinstance(retries, int) or retries < 0:
        raise ValueError(f"the setting rnsdask.retries must be a non-negative integer, got {retries!r}")
    meter = meter or Meter("job")
    # Equal pieces have one key in Dask, and so one task and one future.
    equal: dict[str, list[int]] = {}
    for i, piece in enumerate(pieces):
        equal.setdefault(tokenize(piece), []).append(i)
    numbers = {same[0]: same for same in equal.values()}

    def finish(first: int, result: Any) -> None:
        for i in numbers[first]:
            done(i, result)

    remaining, again = {first: pieces[first] for first in numbers}, 0
    for tries_left in range(retries, -1, -1):
        if client is not None:
            error = _run_on_cluster(client, remaining, len(numbers), finish, meter)
        else:
            error = None
            try:
                _run_on_threads(remaining, finish, meter)
            except Exception as raised:
                error = raised
        if error is None:
            break
        if not tries_left or not can_pass(error):
            raise error
        # On a cluster, all other pieces are finished by now.
        again += 1 if client is None else len(remaining)
        time.sleep(PAUSE_SECONDS)
    return again


def _run_on_threads(remaining: dict[int, Any], done: Done, meter: Meter) -> None:
    """Compute pieces, and remove the finished ones; after an error, wait for running tasks."""
    left = list(remaining.items())
    pieces = [piece for _, piece in left]
    # A Delayed's result is known as soon as its task is done, another collection's at the end.
    numbers = {piece.key: i for i, piece in remaining.items() if isinstance(piece, Delayed)}

    def finish(i: int, result: Any) -> None:
        del remaining[i]
        done(i, result)

    def count_tasks(_graph: Any, state: Any) -> None:
        meter.update(0, sum(len(state[kind]) for kind in ("ready", "waiting")))

    def end_task(key: Any, result: Any, *_others: Any) -> None:
        meter.advance()
        if key in numbers:
            finish(numbers.pop(key), result)

    threads = dask.config.get("num_workers", None) or CPU_COUNT
    with ThreadPoolExecutor(threads) as pool, Callback(start_state=count_tasks, posttask=end_task):
        if pieces and all(isinstance(piece, Delayed) and piece.dask is pieces[0].dask for piece in pieces):
            # The graph is optimized as a whole; optimizing again may take longer than the tasks.
            results: Sequence[Any] = threaded.get(pieces[0].dask, [piece.key for piece in pieces], pool=pool)
        else:
            # Passed as a function, because looking up its name imports all of Dask.distributed.
            results = compute(*pieces, scheduler=threaded.get, pool=pool)
    for (i, piece), result in zip(left, results, strict=True):
        if not isinstance(piece, Delayed):
            finish(i, result)


def _run_on_cluster(
    client: "Client", remaining: dict[int, Any], count: int, done: Done, meter: Meter
) -> Exception | None:
    """Compute pieces, and remove the finished ones; return a transient error once all others are done."""
    from distributed import as_completed

    failed = None
    with _computing(client, remaining) as numbers:
        completed = as_completed(numbers, loop=client.loop, with_results=True, raise_errors=False)
        for batch in _batches(client, completed):
            for future, result in batch:
                # The status may have changed since: a worker that dies loses results that are here already.
                if future.status != "error" and not isinstance(result, CancelledError):
                    i = numbers[future]
                    del remaining[i]
                    meter.update(count - len(remaining), count)
                    done(i, result)
                    continue
                failed = _error_of(client, future, result)
                if not can_pass(failed):
                    raise failed
        if failed is not None:
            _forget(client, numbers)
    return failed


def _forget(client: "Client", futures: Iterable["Future[Any]"]) -> None:
    """Release futures, so that their tasks are recomputed when they are submitted again.

    Dask's own ``Client.retry`` fails if the failed task is not a future's own but one that it depends on.
    """
    for future in futures:
        future.release()
    ask(client, client.nthreads)  # answered after all are released


@contextmanager
def _computing(client: "Client", pieces: Mapping[int, Any]) -> Iterator[dict["Future[Any]", int]]:
    """Start to compute pieces, yield their numbers by future, and finally cancel the unfinished ones."""
    futures: list[Future[Any]] = []
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _GRAPH_WARNING}):
            futures = client.compute(list(pieces.values()))
        yield dict(zip(futures, pieces, strict=True))
    finally:
        if client.status == "running":
            with suppress(Exception):  # the error that ended the job takes precedence
                client.cancel([future for future in futures if not future.done()])


def _batches(client: "Client", completed: Any) -> Iterator[list[tuple["Future[Any]", Any]]]:
    """Yield futures with results or errors as they finish.

    SchedulerLostError if the scheduler is gone or silent; JobError if there are no workers for some time.
    """
    last_look = last_worker = time.monotonic()
    while not completed.is_empty():
        if completed.has_ready():
            yield completed.next_batch(block=False)
            continue
        check_connected(client)
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - last_look < _WATCH_SECONDS:
            continue
        workers = ask(client, client.nthreads)
        last_look = time.monotonic()
        if workers:
            last_worker = last_look
        elif last_look - last_worker > WORKERS_SECONDS:
            raise JobError(f"the Dask cluster has lost all its workers, and had none for {WORKERS_SECONDS} s")


def _error_of(client: "Client", future: "Future[Any]", result: Any) -> Exception:
    """Return the error of a piece; Dask gives the bytes of one that cannot be unpickled here."""
    if future.status != "error":
        check_connected(client)
        return JobError("the job was cancelled on the Dask cluster")
    error: Exception = result[1]
    if type(error) is Exception and error.args and isinstance(error.args[0], bytes | bytearray):
        return JobError(
            "a piece of the job failed with an error that cannot be read here; the workers' logs have it"
        )
    return error
