"""Computing for a job, on threads or on a cluster, with progress: Dask collections, and many calls."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from dask.delayed import delayed
from dask.system import CPU_COUNT

from rnsdask.core.errors import JobError, NumberError, RNSOverflowError
from rnsdask.core.ways import Message
from rnsdask.jobs.cost import count_retries
from rnsdask.jobs.log import record
from rnsdask.jobs.progress import metered
from rnsdask.jobs.run import Done, groups_of, run

if TYPE_CHECKING:
    from distributed import Client

Advance = Callable[[int], object]
"""Callback for progress: the amount done since its last call, in bytes, numbers or chunks."""

_MOST_AHEAD = 4
"""Threads that convert batches, for each thread that reads or writes them."""


def compute(
    collection: Any,
    client: "Client | None" = None,
    *,
    progress: bool = False,
    label: str = "compute",
    numbers: int = 0,
    nbytes: int = 0,
    done: Done = lambda _i, _result: None,
) -> Any:
    """Compute a Dask collection, or a list of them together, so that what they share is computed once.

    With a client, it runs on the cluster. Progress on stderr is optional: `label` names the job, and
    `numbers` and `nbytes` are its amounts. Each collection of a list is a piece of the job
    (:func:`.run.run`); `done` is called with the number and the result of each finished one.
    """
    pieces = collection if isinstance(collection, list) else [collection]
    results: list[Any] = [None] * len(pieces)

    def finish(i: int, result: Any) -> None:
        results[i] = result
        done(i, result)

    with metered(label, numbers=numbers, nbytes=nbytes, shown=progress) as meter:
        if retried := run(pieces, client, finish, meter):
            record("retries", job=label, pieces=retried)
            count_retries(retried)
    return results if isinstance(collection, list) else results[0]


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Turn the error of a number or matrix, which names only an index, into a JobError that names `what`."""
    try:
        yield
    except (RNSOverflowError, ZeroDivisionError, NumberError, np.linalg.LinAlgError) as error:
        raise JobError(Message(f"{what}: ", error)) from error


# ---- many calls of a function -----------------------------------------------------------------------------


@contextmanager
def mapping(
    client: "Client | None", advance: Advance = lambda _: None, *, threads: int | None = None
) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a parallel ``map``, which returns results in the order of the items.

    Without a client it has so many threads, by default as Dask has them.
    """
    if client is not None:
        yield partial(_map_on_cluster, client, advance)
        return
    with _threads(threads or dask.config.get("num_workers", None) or CPU_COUNT) as pool:

        def mapped(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            for result in pool.map(function, items):
                advance(1)
                yield result

        yield mapped


@contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Lend threads; after an error, calls that have not begun are cancelled."""
    with ThreadPoolExecutor(count) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def map_ahead(
    function: Callable[[Any], Any], items: Iterable[Any], threads: int | None = None
) -> Iterator[Any]:
    """Apply a function to items on threads, with results in order and few items in memory at a time.

    On one thread, one result is made or waits while the caller has another.
    """
    threads = threads or min(dask.config.get("num_workers", None) or CPU_COUNT, _MOST_AHEAD)
    begun: deque[Future[Any]] = deque()
    with _threads(threads) as pool:
        for item in items:
            begun.append(pool.submit(function, item))
            if len(begun) > threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def _map_on_cluster(
    client: "Client", advance: Advance, function: Callable[..., Any], items: Iterable[Any]
) -> list[Any]:
    listed = list(items)
    call = delayed(_map_list, pure=False, traverse=False)
    pieces = [call(function, listed[group.start : group.stop]) for group in groups_of(len(listed))]
    found = compute(pieces, client, label="verify", done=lambda _i, results: advance(len(results)))
    return list(chain.from_iterable(found))


def _map_list(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [function(item) for item in items]
