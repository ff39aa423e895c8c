"""How far a job is: a bar in a terminal or a notebook, plain lines elsewhere, events in the job's log."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from dask.callbacks import Callback

from rnsdask.core.messages import tell
from rnsdask.jobs.log import record

if TYPE_CHECKING:
    from rich.console import Console

LINE_SECONDS = 10.0
"""Time between two plain lines, and between two events in the log."""

_NOTEBOOK_SECONDS = 0.5
_FEED_AFTER = 0.2
_FEED_INTERVAL = "100ms"
_FEED_SECONDS = 1.0


class Meter:
    """What is done of a job, and how fast it goes.

    Parameters
    ----------
    label : str
        The job's name.
    total : int or None
        How many units there are to do, of whatever is counted; None if nobody knows yet.
    numbers, nbytes : int
        Numbers and bytes that all units together stand for; 0 if that is not known.
    """

    def __init__(self, label: str, total: int | None, numbers: int, nbytes: int) -> None:
        self.label = label
        self.done, self.total = 0, total
        self.started = time.perf_counter()
        self._numbers, self._nbytes = numbers, nbytes

    def advance(self, units: int = 1) -> None:
        """So many more units are done."""
        self.done += units

    def update(self, done: int, total: int) -> None:
        """So many units are done, of a total found out or changed meanwhile."""
        self.done, self.total = done, total

    @property
    def fraction(self) -> float | None:
        """Part of the job that is done, from 0 to 1; None if the total is not known."""
        return None if self.total is None else self.done / self.total if self.total else 1.0

    def state(self) -> dict[str, Any]:
        """What is done, how fast, and the seconds that are left at this rate: only what is known."""
        seconds = time.perf_counter() - self.started
        state: dict[str, Any] = {"job": self.label, "done": self.done, "seconds": seconds}
        if self.fraction is None:
            return {**state, "units_per_second": self.done / max(seconds, 1e-9)}
        state.update(total=self.total, fraction=self.fraction)
        for name, amount in (("numbers", self._numbers), ("bytes", self._nbytes)):
            if amount:
                state[f"{name}_per_second"] = self.fraction * amount / max(seconds, 1e-9)
        if self.done:
            state["seconds_left"] = seconds * (1 / self.fraction - 1)
        return state

    def rates(self) -> str:
        """The rates, for people."""
        state = self.state()
        rates = []
        if "numbers_per_second" in state:
            rates.append(f"{state['numbers_per_second']:.3g} numbers/s")
        if "bytes_per_second" in state:
            rates.append(f"{state['bytes_per_second'] / 1e9:.3g} GB/s")
        if not rates and "units_per_second" in state:
            rates.append(f"{state['units_per_second']:.3g}/s")
        return ", ".join(rates)

    def line(self) -> str:
        """Everything on one line."""
        state = self.state()
        parts = [f"{self.done} done" if self.fraction is None else f"{100 * self.fraction:.1f} % done"]
        parts += [rates] if (rates := self.rates()) else []
        parts.append(f"{state['seconds']:.1f} s")
        if self.done != self.total and "seconds_left" in state:
            parts.append(f"{state['seconds_left']:.0f} s left")
        return f"{self.label}: {', '.join(parts)}"


@contextmanager
def metered(
    label: str, total: int | None = None, *, numbers: int = 0, nbytes: int = 0, shown: bool = False
) -> Iterator[Meter]:
    """Measure a job's progress, and show it on standard error if `shown` says so.

    A terminal and a notebook get a bar, anything else a line from time to time and one at the end. The log
    of the job gets an event as often. Parameters are those of :class:`Meter`.
    """
    meter = Meter(label, total, numbers, nbytes)
    with ExitStack() as stack:
        live = shown and stack.enter_context(_live(meter))
        report = partial(_report, meter, plain=shown and not live)
        stack.enter_context(_every(LINE_SECONDS, report))
        yield meter
    report()


def _report(meter: Meter, plain: bool) -> None:
    record("progress", **meter.state())
    if plain:
        tell(meter.line())


@contextmanager
def _every(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """Act from a thread of its own: a task may take longer than the time between two reports."""
    stop = threading.Event()

    def act() -> None:
        while not stop.wait(seconds):
            action()

    thread = threading.Thread(target=act, name="rnsdask-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _live(meter: Meter) -> Iterator[bool]:
    """Show a bar where one can be shown, and tell whether it can."""
    from rich.console import Console

    console = Console(file=sys.stderr)
    with ExitStack() as stack:
        if notebook := _in_notebook():
            stack.enter_context(_notebook_bar(meter))
        elif console.is_terminal:
            stack.enter_context(_terminal_bar(meter, console))
        yield notebook or console.is_terminal


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


@contextmanager
def _notebook_bar(meter: Meter) -> Iterator[None]:
    """Show a bar as HTML in the output of a cell, and leave it there.

    Other than widgets, it needs no further package, and is kept when the notebook is saved.
    """
    from IPython.display import display

    def content() -> dict[str, str]:
        line = meter.line()
        value = "" if meter.fraction is None else f' value="{meter.fraction:.4f}"'
        return {"text/plain": line, "text/html": f"<progress{value}></progress> {escape(line)}"}

    shown = display(content(), raw=True, display_id=True)

    def update() -> None:
        shown.update(content(), raw=True)

    try:
        with _every(_NOTEBOOK_SECONDS, update):
            yield
    finally:
        update()


@contextmanager
def _terminal_bar(meter: Meter, console: "Console") -> Iterator[None]:
    from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TimeRemainingColumn
    from rich.text import Text

    class Rates(ProgressColumn):
        def render(self, task: Any) -> Text:  # noqa: ARG002  (there is one task, the meter's)
            return Text(meter.rates())

    class Bar(Progress):
        def get_renderables(self) -> Any:
            # The bar draws itself from a thread of its own; this is when it learns how far the job is.
            for task in self.tasks:
                self.update(task.id, completed=meter.done, total=meter.total)
            return super().get_renderables()

    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), Rates(), TimeRemainingColumn())
    with Bar(*columns, console=console, refresh_per_second=4) as bar:
        bar.add_task(meter.label, total=meter.total)
        yield


class TaskCounter(Callback):
    """Tells a meter of the tasks that Dask runs on the threads of this process."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._meter = meter

    def _start_state(self, _graph: Any, state: Any) -> None:
        tasks = sum(len(state[kind]) for kind in ("ready", "waiting", "running", "finished"))
        self._meter.update(len(state["finished"]), tasks)

    def _posttask(self, *_: Any) -> None:
        self._meter.advance()


@contextmanager
def following(futures: Any, client: Any, meter: Meter) -> Iterator[None]:
    """Tell a meter of the tasks that a cluster runs for a future, or a list of them.

    The scheduler sends their number a few times a second, of jobs that take so long. A feed that breaks off
    leaves the meter where it is; whether the job goes on is not for it to say. That all is done, the futures
    tell.
    """
    from distributed.diagnostics.progressbar import ProgressBar

    followed = futures if isinstance(futures, list) else [futures]
    heard, ended = asyncio.Event(), asyncio.Event()

    class Feed(ProgressBar):
        def _draw_bar(self, remaining: int, all: int, **_: Any) -> None:  # noqa: A002  (the names are Dask's)
            heard.set()
            meter.update(all - remaining, all)

    async def follow() -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), _FEED_AFTER)
            return
        feed: Any = Feed(followed, client.scheduler.address, _FEED_INTERVAL)  # type: ignore[no-untyped-call]
        listening = asyncio.create_task(feed.listen())
        listening.add_done_callback(lambda _: heard.set())
        try:
            # Before the futures are released: the scheduler would look for their tasks as long as it lives.
            await heard.wait()
            await ended.wait()
        finally:  # also of one that was silent for too long
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    loop = client.loop.asyncio_loop
    following = asyncio.run_coroutine_threadsafe(follow(), loop)
    try:
        yield
    finally:
        with suppress(Exception):  # the scheduler may be gone, and the loop too
            loop.call_soon_threadsafe(ended.set)
            following.result(timeout=_FEED_SECONDS)
        following.cancel()
    if all(future.status == "finished" for future in followed):
        units = meter.total or len(followed)
        meter.update(units, units)
