"""Runs the pieces of a job, on threads or on a cluster, and again where an error may pass.

A job is a list of pieces: independent lazy computations with small results. What is finished is handed over
at once, so that it can be kept. Dask itself gives the work of a worker that died to another one; this module
adds what Dask leaves to its user: which errors are worth another try, and when to give up waiting.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
from dask import threaded
from dask.base import compute
from dask.callbacks import Callback
from dask.delayed import Delayed

from rnsdask.cluster import connecting
from rnsdask.cluster.failures import can_pass
from rnsdask.cluster.scheduler import ask, check_connected, within_limit
from rnsdask.core.errors import JobError
from rnsdask.jobs.progress import Meter, TaskCounter, following
from rnsdask.lazy.write import own_threads

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 3
"""How many more times a piece is tried, unless ``--retries`` or Dask's setting ``rnsdask.retries`` says."""

PAUSE_SECONDS = 1.0
"""Before pieces are tried again: time for what went wrong to pass."""

_WATCH_SECONDS = 1.0
_POLL_SECONDS = 0.01
_RELEASE_SECONDS = 5.0

_PIECES = 1024

# Dask warns of graphs above 10 MB, where arrays hide in them. These have a few hundred bytes a chunk.
_GRAPH_WARNING = "1 GB"

Done = Callable[[int, Any], object]
"""Told the number of a piece, and its result, once it is finished."""


@contextmanager
def with_retries(retries: int | None) -> Iterator[None]:
    """Set how many more times the pieces of jobs in this context are tried; None leaves it as it is.

    A cluster that is started in the context lets as many workers die at a piece.
    """
    if retries is None:
        yield
        return
    with dask.config.set({"rnsdask.retries": retries, "distributed.scheduler.allowed-failures": retries}):
        yield


def groups_of(count: int) -> list[range]:
    """Divide so many small tasks, in their order, into pieces: enough of them to lose little with one."""
    size = max(1, -(-count // _PIECES))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def run(
    pieces: Sequence[Any],
    client: "Client | None" = None,
    done: Done = lambda _i, _result: None,
    meter: Meter | None = None,
) -> int:
    """Compute all pieces, in any order.

    Parameters
    ----------
    pieces : sequence of Dask collections
        What they share is computed once. Each may be computed more than once, also twice at the same time.
    client : distributed.Client, optional
        Without one, the threads of this process compute.
    done : callable
        Called in this thread for each piece, once.
    meter : Meter, optional
        Told of the tasks that are finished.

    Returns
    -------
    int
        How many pieces were tried again.

    Raises
    ------
    Exception
        What a piece raised, if it cannot pass or is still there after all retries.
    JobError
        If the cluster has gone.
    """
    remaining = dict(enumerate(pieces))
    retries, tried_again = _retries(), 0

    def finish(i: int, result: Any) -> None:
        del remaining[i]
        done(i, result)

    compute_left = _on_threads if client is None else partial(_on_cluster, client)
    for tries_left in range(retries, -1, -1):
        failed = compute_left(dict(remaining), finish, meter)
        if not remaining:
            return tried_again
        for error in failed:
            if not (tries_left and can_pass(error)):
                raise error
        tried_again += len(failed)
        time.sleep(PAUSE_SECONDS)
    raise AssertionError("the last round raises")


def _retries() -> int:
    retries = dask.config.get("rnsdask.retries", RETRIES)
    if not isinstance(retries, int) or retries < 0:
        raise ValueError(f"the setting rnsdask.retries must be a non-negative integer, got {retries!r}")
    return retries


# ---- Threads ----------------------------------------------------------------------------------------------


def _on_threads(pieces: dict[int, Any], finish: Done, meter: Meter | None) -> list[Exception]:
    """Compute pieces up to the first error; give that error."""
    # The result of a Delayed is known as soon as its task is done, that of another collection at the end.
    keys = {piece.key: i for i, piece in pieces.items() if isinstance(piece, Delayed)}

    def on_task(key: Any, result: Any, *_others: Any) -> None:
        if key in keys:
            finish(keys.pop(key), result)

    try:
        with ExitStack() as stack:
            stack.enter_context(Callback(posttask=on_task))
            if meter is not None:
                stack.enter_context(TaskCounter(meter))
            results = _computed(list(pieces.values()), stack.enter_context(own_threads()))
    except Exception as error:
        return [error]
    for (i, piece), result in zip(pieces.items(), results, strict=True):
        if not isinstance(piece, Delayed):
            finish(i, result)
    return []


def _computed(pieces: list[Any], pool: Executor) -> Sequence[Any]:
    """Compute pieces as Dask's ``compute`` does, on the threads of a pool."""
    if pieces and all(isinstance(piece, Delayed) and piece.dask is pieces[0].dask for piece in pieces):
        # Their graph is optimised as a whole, which Dask would do again, and longer than small tasks take.
        results: Sequence[Any] = threaded.get(pieces[0].dask, [piece.key for piece in pieces], pool=pool)
    else:
        # By the function: looking up its name imports all of Dask.distributed.
        results = compute(*pieces, scheduler=threaded.get, pool=pool)
    return results


# ---- A cluster --------------------------------------------------------------------------------------------


def _on_cluster(
    client: "Client", pieces: dict[int, Any], finish: Done, meter: Meter | None
) -> list[Exception]:
    """Compute pieces up to an error that cannot pass, or to the end; give the errors."""
    failed = []
    for i, result, error in outcomes(client, pieces, meter):
        if error is None:
            finish(i, result)
            continue
        failed.append(error)
        if not can_pass(error):
            break
    return failed


def outcomes(
    client: "Client", pieces: dict[int, Any], meter: Meter | None = None
) -> Iterator[tuple[int, Any, Exception | None]]:
    """Numbers of pieces with their results, or errors, as they are finished on a cluster.

    Raises
    ------
    SchedulerLostError
        If the scheduler has gone, or is silent.
    JobError
        If the cluster has no workers for some time, or a piece fails with an error that cannot be sent.
    """
    from distributed import as_completed

    watch = _Watch(client)
    futures: list[Future[Any]] = []
    stack = ExitStack()
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _GRAPH_WARNING}):
            futures = client.compute(list(pieces.values()))
        if meter is not None:
            stack.enter_context(following(futures, client, meter))
        numbers = dict(zip((future.key for future in futures), pieces, strict=True))
        completed = as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
        while not completed.is_empty():
            if not completed.has_ready():
                watch.look(futures)
                time.sleep(_POLL_SECONDS)
                continue
            for future, result in completed.next_batch(block=False):
                if future.status == "finished":
                    yield numbers[future.key], result, None
                elif future.status == "error":
                    yield numbers[future.key], None, _readable(client, future.key, result[1])
                else:
                    watch.explain_cancellation()
    finally:
        stack.close()
        if client.status == "running":
            with suppress(Exception):  # what ended the job is what matters
                _let_go(client, futures)


def _let_go(client: "Client", futures: list["Future[Any]"]) -> None:
    """Have a client forget futures, and cancel those that are not done.

    Those that are done are not cancelled: the scheduler's word of it would come late, and end the same piece
    when it is tried again.
    """
    pending = [future for future in futures if not future.done()]
    if pending:
        client.cancel(pending)
    for future in futures:
        future.release()
    end = time.monotonic() + _RELEASE_SECONDS
    while any(future.key in client.futures for future in futures) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _readable(client: "Client", key: Any, error: Exception) -> Exception:
    """The error of a piece. Dask gives the bytes of one that cannot be unpickled in this process."""
    if type(error) is Exception and error.args and isinstance(error.args[0], bytes | bytearray):
        return _unreadable(client, key)
    return error


def _unreadable(client: "Client", key: Any) -> JobError:
    """Make the error of a piece whose own error cannot be had here, but for its text."""

    def text_of(dask_scheduler: Any) -> Any:
        task = dask_scheduler.tasks.get(key)
        failed = task and (task.exception_blame or task)
        return failed and failed.exception_text

    text = within_limit(client, client.run_on_scheduler, text_of)
    return JobError(f"a piece of the job failed with an error that cannot be read here: {text}")


class _Watch:
    """Sees whether there is still somebody to wait for."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._last_look = self._last_worker = time.monotonic()
        self._suspected: set[Any] = set()

    def look(self, futures: list["Future[Any]"]) -> None:
        """Raise JobError if the scheduler is silent, has had no workers for too long, or an error is lost."""
        check_connected(self._client)
        if time.monotonic() - self._last_look < _WATCH_SECONDS:
            return
        workers = ask(self._client, "ncores")
        states = ask(self._client, "get_task_status", keys=[future.key for future in futures])
        self._last_look = time.monotonic()
        if workers:
            self._last_worker = self._last_look
        elif self._last_look - self._last_worker > connecting.WORKERS_SECONDS:
            raise JobError(
                f"the Dask cluster has lost all its workers, and had none for {connecting.WORKERS_SECONDS} s"
            )

        self._look_for_lost_errors(futures, states)

    def _look_for_lost_errors(self, futures: list["Future[Any]"], states: dict[Any, Any]) -> None:
        """Raise JobError if a piece failed and its future is not told: its error could not be read here."""
        lost = {f.key for f in futures if f.status == "pending" and states.get(f.key) == "erred"}
        if lost & self._suspected:
            raise _unreadable(self._client, min(lost & self._suspected, key=str))
        self._suspected = lost

    def explain_cancellation(self) -> None:
        """Raise the JobError of a piece that was cancelled, not by this job."""
        check_connected(self._client)
        raise JobError("the job was cancelled on the Dask cluster")
