"""Questions to a cluster: which workers it has, which rnsdask they run, and which chunks their GPUs hold.

No question waits for ever: a scheduler may be frozen, not only gone.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dask.base import get_scheduler
from dask.core import flatten

from rnsdask._version import __version__
from rnsdask.core.errors import JobError, SchedulerLostError, WorkerVersionError
from rnsdask.core.messages import list_some

if TYPE_CHECKING:
    import dask.array as da
    from distributed import Client, Worker

SILENCE_SECONDS = 300.0
"""Time that a scheduler may leave a question unanswered before it is given up.

One that is only busy answers nothing meanwhile: with the graph of a job over 100,000 chunks for 20 s, and on
an overloaded host for more than a minute. Dask gives a worker up after as long a time.
"""


def ask(client: "Client", question: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of a client that asks its scheduler, such as ``client.nthreads``.

    SchedulerLostError if the scheduler is gone, or does not answer within `SILENCE_SECONDS`.
    """

    async def answer() -> Any:
        return await question(*args, **kwargs)

    check_connected(client)
    try:
        return client.sync(answer, callback_timeout=SILENCE_SECONDS)
    except OSError as error:
        raise _lost(client) from error


def check_connected(client: "Client") -> None:
    """Raise SchedulerLostError if the client has no connection to its scheduler."""
    if client.status != "running":
        raise _lost(client)


def workers_of(client: "Client") -> dict[str, dict[str, Any]]:
    """Return what the scheduler says of each worker, by the address."""
    workers: dict[str, dict[str, Any]] = identity(client, n_workers=-1)["workers"]
    return workers


def identity(client: "Client", n_workers: int = 0) -> dict[str, Any]:
    """Return the scheduler's description of itself and of up to `n_workers` workers (-1: all)."""
    scheduler: Any = client.scheduler
    found: dict[str, Any] = ask(client, scheduler.identity, n_workers=n_workers)
    return found


def _lost(client: "Client") -> SchedulerLostError:
    address = getattr(client.scheduler, "address", "")
    return SchedulerLostError(f"the Dask scheduler {address} has gone, or does not answer any more")


# ---- versions ---------------------------------------------------------------------------------------------

_checked: "WeakKeyDictionary[Client, frozenset[tuple[str, str]]]" = WeakKeyDictionary()
"""The worker processes that a client's cluster had when they were checked, and nothing was wrong."""


def check_workers(client: "Client") -> None:
    """Raise WorkerVersionError unless the scheduler and every worker have this version of the package.

    They are asked on their event loops, so those that are busy computing answer too. A worker that is gone by
    then is not missed.
    """
    version = _version_question()
    workers = workers_of(client)
    answers = ask_workers(client, version, workers)
    try:
        answers["the scheduler"] = ask(client, client.run_on_scheduler, version)
    except SchedulerLostError:
        raise
    except Exception as error:  # of any type, as the scheduler raised it
        answers["the scheduler"] = error
    others: dict[str, list[str]] = {}
    for address, answer in answers.items():
        if answer != __version__:
            others.setdefault(_told(answer), []).append(address)
    if others:
        found = "; ".join(f"{list_some(where)}: {what}" for what, where in sorted(others.items()))
        raise WorkerVersionError(f"the job runs rnsdask {__version__}, but {found}")
    _checked[client] = _processes(workers)


async def check_scheduler(worker: "Worker") -> None:
    """Check in a worker, before it joins, that its scheduler has the same version, or raise JobError."""
    from distributed import Client

    address = worker.scheduler.address
    how: dict[str, Any] = {"asynchronous": True, "set_as_default": False, "security": worker.security}
    try:
        async with Client(address, **how) as client:
            answer = await client.run_on_scheduler(_version_question())
    except OSError as error:
        raise JobError(f"the scheduler {address} does not answer: {error}") from error
    except Exception as error:  # of any type, as the scheduler raised it
        answer = error
    if answer != __version__:
        told = f"this worker has rnsdask {__version__}, and the scheduler {address}: {_told(answer)}"
        raise JobError(told)


def _version_question() -> Callable[[], str]:
    """Return a function that names the version of rnsdask where it is called."""

    def version() -> str:  # local, so that pickle sends it whole: who is asked may lack this module
        from importlib import import_module

        found: str = import_module("rnsdask").__version__
        return found

    return version


def _told(answer: object) -> str:
    """Describe the answer of a process that was asked for its version."""
    failed = isinstance(answer, Exception)
    return f"rnsdask cannot be imported: {answer}" if failed else f"rnsdask {answer}"


@contextmanager
def checked_workers(scheduler: Any = None) -> Iterator[None]:
    """Check the workers, if Dask computes on a cluster in this context.

    If all of them were checked before, that costs one question to the scheduler, which is as ``compute`` of a
    Dask collection takes it. WorkerVersionError as of :func:`check_workers`, also if what fails in this
    context may do so for that reason.
    """
    client = getattr(get_scheduler(scheduler=scheduler), "__self__", None)  # of its method `get`
    if client is None:
        yield
        return
    if not _processes(workers_of(client)) <= _checked.get(client, frozenset()):
        check_workers(client)
    with explained_by_workers(client):
        yield


@contextmanager
def explained_by_workers(client: "Client") -> Iterator[None]:
    """Name the worker if a job fails because one that joined later does not run the same rnsdask."""
    try:
        yield
    except SchedulerLostError:
        raise
    except Exception as error:
        # These errors name what is wrong with the user's input or with files.
        if not isinstance(error, ValueError | OSError) and client.status == "running":
            with suppress(SchedulerLostError):
                check_workers(client)
        raise


def _processes(workers: Mapping[str, Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """Name the processes of workers: the folder is each one's own, an address may be used again."""
    return frozenset((address, worker["local_directory"]) for address, worker in workers.items())


def ask_workers(client: "Client", function: Callable[[], Any], addresses: Iterable[str]) -> dict[str, Any]:
    """Call a function on the event loops of workers; return what it returned or raised, by the address.

    Workers that cannot be reached are left out.
    """
    answers = ask(client, client.run, function, workers=list(addresses), on_error="return")
    return {address: answer for address, answer in answers.items() if not isinstance(answer, OSError)}


# ---- chunks in the memory of GPUs -------------------------------------------------------------------------


def chunks_by_worker(words: "da.Array") -> list[list[int]] | None:
    """Group the chunks of an array, numbered in C order, by the workers whose GPUs hold them.

    None if that says nothing: if chunks are not computed yet, or not in a GPU's memory, or no two of them are
    on one worker.
    """
    futures = _futures_of(words)
    if len(futures) < 2 or not all(map(is_on_gpu, futures)):
        return None
    client = futures[0].client
    if client is None or client.asynchronous:  # of its event loop, which cannot wait
        return None
    try:
        holders = ask(client, client.who_has, futures)
    except SchedulerLostError:  # whoever computes the array is told
        return None
    groups: dict[str, list[int]] = {}
    for number, future in enumerate(futures):
        if not holders.get(future.key):
            return None
        worker = min(holders[future.key], key=lambda address: len(groups.get(address, ())))
        groups.setdefault(worker, []).append(number)
    return list(groups.values()) if len(groups) < len(futures) else None


def _futures_of(words: "da.Array") -> list[Any]:
    """Return the futures that an array's chunks are, as after ``persist``, in C order; else nothing."""
    if "distributed" not in sys.modules:
        return []
    from distributed import Future

    layer = getattr(words.dask, "layers", {}).get(words.name, {})
    chunks = [layer.get(key) for key in flatten(words.__dask_keys__())]
    return chunks if all(isinstance(chunk, Future) for chunk in chunks) else []


def is_on_gpu(future: Any) -> bool:
    """Return whether a chunk is known to be in the memory of a worker's GPU."""
    kind = future.type  # of the result, None until it is there
    return future.status == "finished" and getattr(kind, "__module__", "").partition(".")[0] == "cupy"
