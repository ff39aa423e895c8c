"""What the workers of a cluster run: it must be what this process runs, or no answer can be trusted."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dask.base import get_scheduler

from rnsdask._version import __version__
from rnsdask.cluster.scheduler import workers_of
from rnsdask.core.errors import JobError, SchedulerLostError
from rnsdask.core.messages import listed
from rnsdask.store.attributes import FORMAT

if TYPE_CHECKING:
    from distributed import Client

CHECK_SECONDS = 60.0
"""How long a worker may take to say what it runs: it may have to import everything first."""

_checked: "WeakKeyDictionary[Client, frozenset[tuple[str, str]]]" = WeakKeyDictionary()
"""The worker processes that a client's cluster had when they were checked, and nothing was wrong."""

_DEATH_SECONDS = 10.0
"""How long a scheduler may take to see that a worker has died, once that cannot be reached."""

_POLL_SECONDS = 0.1

_GONE = object()

_SCHEDULER = "the scheduler"


def check_workers(client: "Client") -> None:
    """Check that the scheduler and every worker have this version of the package and of the store format.

    They are asked on their event loops, so those that are busy computing answer too. A worker that is gone
    by then is not missed.

    Raises
    ------
    JobError
        If one of them does not have the package, has another version of it or of the store format, or does
        not answer. The message names the addresses and the versions.
    """
    workers = workers_of(client)
    addresses = [_SCHEDULER, *sorted(workers)]
    answers = ask_workers(client, _versions(), addresses)
    problems: dict[str, Iterable[str]] = {}
    for address in addresses:
        if problem := _problem_of(answers.get(address)):
            problems[problem] = [*problems.get(problem, ()), address]
    if problems:
        present = {_SCHEDULER, *workers_of(client)}
        problems = {
            problem: here for problem, where in problems.items() if (here := present.intersection(where))
        }
    if problems:
        found = "; ".join(f"{listed(where)}: {problem}" for problem, where in sorted(problems.items()))
        raise JobError(f"the job runs rnsdask {__version__} (store format {FORMAT}), but {found}")
    _checked[client] = _processes(workers)


@contextmanager
def checked_workers(scheduler: Any = None) -> Iterator[None]:
    """Check the workers of the cluster on which Dask computes in this context, if it does on one.

    If all of them were checked before, that costs one question to the scheduler.

    Parameters
    ----------
    scheduler
        As ``compute`` of a Dask collection takes it.

    Raises
    ------
    JobError
        As :func:`check_workers`, also if what fails in this context may do so for that reason.
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
        # These name what is wrong with what the user gave, or with files.
        if not isinstance(error, ValueError | OSError) and client.status == "running":
            with suppress(SchedulerLostError):
                check_workers(client)
        raise


def _processes(workers: Mapping[str, Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """Name the processes of workers: the folder is each one's own, an address may be used again."""
    return frozenset((address, worker["local_directory"]) for address, worker in workers.items())


def _versions() -> Callable[[], tuple[str, int]]:
    """The question, as a function that pickle sends whole: a worker may lack this module."""

    def versions() -> tuple[str, int]:
        from importlib import import_module

        version = import_module("rnsdask._version").__version__
        return version, import_module("rnsdask.store.metadata").FORMAT

    return versions


def ask_workers(client: "Client", function: Callable[[], Any], addresses: Iterable[str]) -> dict[str, Any]:
    """Call a function on the event loops of workers, and of the scheduler if that is among the addresses.

    Returns
    -------
    dict
        What it returned or raised, by the address; nothing of those that took more than `CHECK_SECONDS`, nor
        of those that left the cluster meanwhile.
    """
    answers: dict[str, Any] = client.sync(_ask_each, client, function, list(addresses))
    return answers


async def _ask_each(client: "Client", function: Callable[[], Any], addresses: list[str]) -> dict[str, Any]:
    asked = {address: asyncio.ensure_future(_ask(client, function, address)) for address in addresses}
    _, late = await asyncio.wait(asked.values(), timeout=CHECK_SECONDS)
    for task in late:
        task.cancel()
    answers = {a: task.exception() or task.result() for a, task in asked.items() if task not in late}
    return {address: answer for address, answer in answers.items() if answer is not _GONE}


async def _ask(client: "Client", function: Callable[[], Any], address: str) -> Any:
    if address == _SCHEDULER:
        return await client.run_on_scheduler(function, asynchronous=True)
    options: dict[str, Any] = {"workers": [address], "on_error": "return", "asynchronous": True}
    questions: Any = client.scheduler
    started = time.monotonic()
    while True:
        answer = (await client.run(function, **options)).get(address)
        if not isinstance(answer, OSError):
            return answer
        # Asked first, for it may have taken long to find out that the worker cannot be reached.
        if not await questions.ncores(workers=[address]):
            return _GONE
        # A worker that has just died is still listed for a moment.
        if time.monotonic() - started > _DEATH_SECONDS:
            return answer
        await asyncio.sleep(_POLL_SECONDS)


def _problem_of(answer: Any) -> str | None:
    """What is wrong with a worker by its answer; None if nothing is."""
    if answer is None:
        return f"no answer for {CHECK_SECONDS:g} s"
    if isinstance(answer, ModuleNotFoundError) and answer.name == "rnsdask":
        return "the package rnsdask is not installed"
    if isinstance(answer, BaseException):
        return f"rnsdask cannot be imported: {type(answer).__name__}: {answer}"
    version, number = answer
    if (version, number) == (__version__, FORMAT):
        return None
    return f"rnsdask {version} (store format {number})"
