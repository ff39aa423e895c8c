"""Progress of a job: rich's bar on standard error, and events in the job's log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rnsdask.jobs.log import record

EVENT_SECONDS = 10.0
"""Seconds between two events in the log."""


class Meter:
    """Count of a job's finished units, of `total` if known, and their rate.

    `numbers` and `nbytes` are the amounts of all units together; 0 if unknown. `bar` is rich's.
    """

    def __init__(
        self, label: str, total: int | None = None, numbers: int = 0, nbytes: int = 0, bar: Any = None
    ) -> None:
        self.label, self.done, self.total = label, 0, total
        self._numbers, self._nbytes = numbers, nbytes
        self._started = self._recorded = time.perf_counter()
        self._bar = bar
        self._task = bar and bar.add_task(label, total=total, rates="")

    def advance(self, units: int = 1) -> None:
        """Count more units as done."""
        self.update(self.done + units, self.total)

    def update(self, done: int, total: int | None) -> None:
        """Set the number of finished units, and a total that has become known or changed."""
        self.done, self.total = done, total
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, rates=self.rates())
        if time.perf_counter() - self._recorded > EVENT_SECONDS:
            self.record()

    def state(self) -> dict[str, Any]:
        """Return the progress, the rate, and the remaining seconds at this rate, as far as known."""
        seconds = max(time.perf_counter() - self._started, 1e-9)
        state: dict[str, Any] = {"job": self.label, "done": self.done, "seconds": seconds}
        if self.total is None:
            return {**state, "units_per_second": self.done / seconds}
        fraction = self.done / self.total if self.total else 1.0
        state.update(total=self.total, fraction=fraction)
        for name, amount in (("numbers", self._numbers), ("bytes", self._nbytes)):
            if amount:
                state[f"{name}_per_second"] = fraction * amount / seconds
        if self.done:
            state["seconds_left"] = seconds * (1 / fraction - 1)
        return state

    def rates(self) -> str:
        """Format the rates for people."""
        state = self.state()
        rates = [f"{rate:.3g} numbers/s"] if (rate := state.get("numbers_per_second")) else []
        rates += [f"{rate / 1e9:.3g} GB/s"] if (rate := state.get("bytes_per_second")) else []
        return ", ".join(rates)

    def record(self) -> None:
        """Record the state in the job's log."""
        self._recorded = time.perf_counter()
        record("progress", **self.state())


@contextmanager
def metered(
    label: str, total: int | None = None, *, numbers: int = 0, nbytes: int = 0, shown: bool = False
) -> Iterator[Meter]:
    """Measure a job's progress for its log, and show it on standard error if `shown`.

    A terminal or a notebook gets a bar, anything else the bar's last state. Parameters as in :class:`Meter`.
    """
    if not shown:
        meter = Meter(label, total, numbers, nbytes)
        yield meter
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        rates = TextColumn("{task.fields[rates]}")
        columns = ("{task.description}", BarColumn(), TaskProgressColumn(), rates, TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
            meter = Meter(label, total, numbers, nbytes, bar)
            yield meter
    meter.record()
