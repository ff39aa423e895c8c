"""Questions to the scheduler of a cluster, none of which waits for ever: it may be frozen, not only gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rnsdask.core.errors import SchedulerLostError

if TYPE_CHECKING:
    from distributed import Client

SILENCE_SECONDS = 300.0
"""Time that a scheduler may leave a question unanswered before it is given up.

One that is only busy answers nothing meanwhile: with the graph of a job over 100,000 chunks for 20 s, and on
an overloaded host for more than a minute. Dask gives a worker up after as long a time.
"""


def ask(client: "Client", question: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of a client that asks its scheduler, such as ``client.nthreads``.

    Raises
    ------
    SchedulerLostError
        If the scheduler is gone, or does not answer within `SILENCE_SECONDS`.
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
    """Return what the scheduler says of itself, and of so many workers (-1: all)."""
    scheduler: Any = client.scheduler
    found: dict[str, Any] = ask(client, scheduler.identity, n_workers=n_workers)
    return found


def _lost(client: "Client") -> SchedulerLostError:
    address = getattr(client.scheduler, "address", "")
    return SchedulerLostError(f"the Dask scheduler {address} has gone, or does not answer any more")
