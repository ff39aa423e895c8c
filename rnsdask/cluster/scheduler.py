"""Questions to the scheduler of a cluster, none of which waits for ever: it may be frozen, not only gone."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any

from rnsdask.core.errors import SchedulerLostError

if TYPE_CHECKING:
    from distributed import Client

SILENCE_SECONDS = 300.0
"""How long a scheduler may leave a question unanswered before it is given up.

Long, for one that is only busy answers nothing meanwhile: with the graph of a job over 100,000 chunks for
20 s, and on an overloaded host for more than a minute. Dask gives a worker up after as long a time.
"""


def ask(client: "Client", question: str, **arguments: Any) -> Any:
    """Ask a client's scheduler one of the questions that it has handlers for.

    Raises
    ------
    SchedulerLostError
        If it is gone, or does not answer within `SILENCE_SECONDS`.
    """
    check_connected(client)
    try:
        return within_limit(client, getattr(client.scheduler, question), **arguments)
    except OSError as error:
        raise _lost(client) from error


def within_limit(client: "Client", function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a coroutine function that asks the scheduler on the event loop of the client.

    Raises
    ------
    SchedulerLostError
        If it takes more than `SILENCE_SECONDS`. What it raises itself comes as it is.
    """
    try:
        return client.sync(function, *args, callback_timeout=SILENCE_SECONDS, **kwargs)
    except TimeoutError as error:
        raise _lost(client) from error


def made_in_time(make: Callable[[], "Client"]) -> "Client":
    """Make a client in a thread that can be left: Dask waits for ever for a frozen scheduler's greeting.

    Raises
    ------
    TimeoutError
        If it takes more than `SILENCE_SECONDS`.
    """
    made: Future[Client] = Future()

    def run() -> None:
        try:
            client = make()
        except BaseException as error:
            if made.set_running_or_notify_cancel():
                made.set_exception(error)
            return
        if made.set_running_or_notify_cancel():
            made.set_result(client)
        else:
            client.close()

    Thread(target=run, name="rnsdask-connect", daemon=True).start()
    try:
        return made.result(SILENCE_SECONDS)
    except TimeoutError:
        if not made.cancel():
            return made.result()  # it came at the last moment, or is an error of the client's own
        raise TimeoutError(f"it is silent for {SILENCE_SECONDS:g} s") from None


def check_connected(client: "Client") -> None:
    """Raise SchedulerLostError if the client has no connection to its scheduler."""
    if client.status != "running":
        raise _lost(client)


def workers_of(client: "Client") -> dict[str, dict[str, Any]]:
    """What the scheduler says of each worker, by the address."""
    workers: dict[str, dict[str, Any]] = ask(client, "identity", n_workers=-1)["workers"]
    return workers


def _lost(client: "Client") -> SchedulerLostError:
    address = getattr(client.scheduler, "address", "")
    return SchedulerLostError(f"the Dask scheduler {address} has gone, or does not answer any more")
