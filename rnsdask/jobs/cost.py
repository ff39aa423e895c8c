"""Seconds and retries of a job, for its summary."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

from rnsdask.jobs.log import record


@dataclass
class Cost:
    """Wall time of a job in seconds, without starting or connecting to a cluster, and its retried pieces."""

    seconds: float = 0.0
    retries: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes by their names."""
        return asdict(self)

    def record(self, op: str, count: int, nbytes: int, **fields: Any) -> None:
        """Record the job's end in its log: numbers, bytes, and their rates."""
        rate = nbytes / max(self.seconds, 1e-9)
        record("summary", op=op, count=count, bytes=nbytes, bytes_per_second=rate, **self.as_dict(), **fields)


_running: ContextVar[Cost | None] = ContextVar("rnsdask.cost", default=None)


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the job that runs in this context; its seconds are filled in at the end."""
    cost = Cost()
    outer = _running.set(cost)
    started = time.perf_counter()
    try:
        yield cost
    finally:
        _running.reset(outer)
    cost.seconds = time.perf_counter() - started


def count_retries(count: int) -> None:
    """Add to the retried pieces of the job of this context."""
    cost = _running.get()
    if cost is not None:
        cost.retries += count
