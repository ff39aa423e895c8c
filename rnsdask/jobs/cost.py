"""What a job took: seconds, retries, and how near its rate came to that of its own reads alone."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
from dask.system import CPU_COUNT

from rnsdask.cluster.scheduler import workers_of
from rnsdask.cluster.workers import ask_workers
from rnsdask.jobs.log import record
from rnsdask.store.statistics import ReadStatistics, read_so_far

if TYPE_CHECKING:
    from distributed import Client

_Readers = dict[str, tuple[int, ReadStatistics]]
"""Of each process that runs tasks, by its token: its threads, and what they have read so far."""


@dataclass
class Cost:
    """What a job took; all but the retries is known when it is done.

    Attributes
    ----------
    seconds : float
        Wall time, without the time to start a cluster or to connect to it.
    retries : int
        How often a piece of the job was run again.
    read_limit : float or None
        Bytes a second that the threads would have read of the job's stores had each of them done nothing but
        read, as fast as it did in this job. None if nothing was read of a store, or it is not known: workers
        came or went.
    of_read_limit : float or None
        The part of that rate that the job reached, from 0 to 1. That is the part of the threads' time that
        they spent in reading.
    """

    seconds: float = 0.0
    retries: int = 0
    read_limit: float | None = None
    of_read_limit: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes by their names."""
        return asdict(self)

    def record(self, op: str, count: int, nbytes: int, **fields: Any) -> None:
        """Record the job's end in its log: of how many numbers and bytes, and how fast."""
        rate = nbytes / max(self.seconds, 1e-9)
        record("summary", op=op, count=count, bytes=nbytes, bytes_per_second=rate, **self.as_dict(), **fields)


_running: ContextVar[Cost | None] = ContextVar("rnsdask.cost", default=None)


@contextmanager
def measured(client: "Client | None" = None, paths: Iterable[str] = ()) -> Iterator[Cost]:
    """Measure the job that is run in this context.

    Parameters
    ----------
    paths : iterable of str
        The stores that it reads, as :class:`.StoreInfo` names them.

    Yields
    ------
    Cost
        Filled in at the end, unless the job fails.
    """
    cost, paths = Cost(), tuple(paths)
    before = _readers(client, paths)
    outer = _running.set(cost)
    started = time.perf_counter()
    try:
        yield cost
    finally:
        _running.reset(outer)
    cost.seconds = time.perf_counter() - started
    after = _readers(client, paths)
    if before is not None and after is not None:
        _compare_rates(cost, before, after)


def count_retries(count: int) -> None:
    """Count pieces that the job of this context has run again."""
    cost = _running.get()
    if cost is not None:
        cost.retries += count


def _readers(client: "Client | None", paths: tuple[str, ...]) -> _Readers | None:
    """Those of a job; None if it reads no stores, or one of them does not answer."""
    if not paths:
        return None
    if client is None:
        process, read = read_so_far(paths)
        return {process: (dask.config.get("num_workers", None) or CPU_COUNT, read)}
    readers: _Readers = {}
    try:
        workers = {address: worker["nthreads"] for address, worker in workers_of(client).items()}
        answers = ask_workers(client, partial(read_so_far, paths), workers)
    except Exception:  # the job says itself what is wrong with its cluster
        return None
    for address, threads in workers.items():
        answer = answers.get(address)
        if answer is None or isinstance(answer, Exception):
            return None
        process, read = answer
        # Workers may share a process, and then what it has read.
        others = readers[process][0] if process in readers else 0
        readers[process] = others + threads, read
    return readers


def _compare_rates(cost: Cost, before: _Readers, after: _Readers) -> None:
    """Set the rates of a cost, if the same threads were there all the time, and read something."""
    threads_before, threads = ({p: count for p, (count, _) in r.items()} for r in (before, after))
    if threads_before != threads:
        return
    limit, nbytes = 0.0, 0
    for process, (_, read) in after.items():
        done = read - before[process][1]
        if done.chunks:
            # No more threads than there were chunks could have read.
            limit += min(threads[process], done.chunks) * done.nbytes / max(done.seconds, 1e-9)
            nbytes += done.nbytes
    if limit:
        cost.read_limit = limit
        cost.of_read_limit = nbytes / max(cost.seconds, 1e-9) / limit
