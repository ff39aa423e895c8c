"""Versions of rnsdask that workers run: they must be this process's, or no answer can be trusted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dask.base import get_scheduler

from rnsdask._version import __version__
from rnsdask.cluster.scheduler import ask, workers_of
from rnsdask.core.errors import JobError, SchedulerLostError
from rnsdask.core.messages import listed

if TYPE_CHECKING:
    from distributed import Client

_checked: "WeakKeyDictionary[Client, frozenset[tuple[str, str]]]" = WeakKeyDictionary()
"""The worker processes that a client's cluster had when they were checked, and nothing was wrong."""


def check_workers(client: "Client") -> None:
    """Check that the scheduler and every worker have this version of the package.

    They are asked on their event loops, so those that are busy computing answer too. A worker that is gone
    by then is not missed.

    Raises
    ------
    JobError
        If one of them cannot import the package, or has another version of it. The message names the
        addresses and the versions.
    """

    def version() -> str:  # local, so that pickle sends it whole: a worker may lack this module
        from importlib import import_module

        found: str = import_module("rnsdask._version").__version__
        return found

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
            failed = isinstance(answer, Exception)
            what = f"rnsdask cannot be imported: {answer}" if failed else f"rnsdask {answer}"
            others.setdefault(what, []).append(address)
    if others:
        found = "; ".join(f"{listed(where)}: {what}" for what, where in sorted(others.items()))
        raise JobError(f"the job runs rnsdask {__version__}, but {found}")
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


def ask_workers(client: "Client", function: Callable[[], Any], addresses: Iterable[str]) -> dict[str, Any]:
    """Call a function on the event loops of workers; return what it returned or raised, by the address.

    Workers that cannot be reached are left out.
    """
    answers = ask(client, client.run, function, workers=list(addresses), on_error="return")
    return {address: answer for address, answer in answers.items() if not isinstance(answer, OSError)}
