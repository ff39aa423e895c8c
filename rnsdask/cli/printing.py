"""Output of commands: no control characters, no secrets, and errors that name the output."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from rnsdask.cli.wording import in_options
from rnsdask.core.files import naming_file
from rnsdask.core.messages import QUIET, escape, redact, redact_fields, tell
from rnsdask.core.messages import size_text as size_text
from rnsdask.core.places import local_path

if TYPE_CHECKING:
    from rich.table import Table

    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.writing import Transfer
    from rnsdask.store import Output


class CommandError(click.ClickException):
    """A failed job."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(in_options(message))

    def show(self, file: Any = None) -> None:  # noqa: ARG002  (standard error, as every message of a command)
        """Print the message as one line."""
        tell("rnsdask: error: " + " ".join(self.format_message().split()))


class ReaderGoneError(CommandError):
    """Silent error for a pipe without a reader as standard output, with the status of SIGPIPE in shells."""

    exit_code = 141

    def show(self, file: Any = None) -> None:
        """Print nothing."""


def echo(*lines: str, err: bool = False) -> None:
    """Print lines on standard output, or on standard error, whose own errors are ignored."""
    if err:
        for line in lines:
            tell(line)
        return
    with output_errors():
        click.echo("\n".join(escape(redact(line)) for line in lines))


def remember_quiet(ctx: click.Context, _param: click.Parameter, quiet: bool) -> None:
    """Remember ``--quiet`` until the command ends, for :func:`remark` and :func:`.note`."""
    ctx.call_on_close(partial(QUIET.reset, QUIET.set(quiet)))


def remark(*lines: str) -> None:
    """Print lines that are no result, such as what was written and how long it took, unless ``--quiet``."""
    if not QUIET.get():
        echo(*lines)


def answer(what: str, text: str) -> None:
    """Print a number, or with ``--quiet`` its digits alone, after a line that says what it is."""
    remark(f"{what}:")
    echo(number_text(text))


SHOWN_DIGITS = 60
"""Most digits of a number that a terminal shows in full."""

_BRIEF_DIGITS = 15
"""Most digits of a number that is shown in full where several share a line of a terminal."""

_DIGITS = "rnsdask.digits"

_NUMBER = re.compile(r"([0-9]+)(\.[0-9]+)?")


def remember_digits(ctx: click.Context, _param: click.Parameter, digits: int | str | None) -> None:
    """Remember ``--digits`` for :func:`number_text`."""
    ctx.meta[_DIGITS] = digits


def number_text(text: str, *, brief: bool = False) -> str:
    """Format a number or a fraction; a long one is shown as its ends and its count of digits.

    ``--digits`` says what is long. Without it, all digits are shown unless standard output is a terminal.
    With `brief`, for several numbers on a line, fewer digits are shown, also beyond a terminal.
    """
    longest = click.get_current_context().meta.get(_DIGITS, "all")
    if longest is None:
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        longest = SHOWN_DIGITS if brief or is_terminal else "all"
    if longest == "all":
        return text
    longest = min(longest, _BRIEF_DIGITS) if brief else longest
    kept = max(longest // 3, 1)
    dots = "…" if _has_unicode() else "..."

    def abbreviated(digits: re.Match[str]) -> str:
        count = len(digits[1])
        if count <= max(longest, 2 * kept):
            return digits[0]
        ends = f"{digits[1][:kept]}{dots}{digits[1][-kept:]}"  # decimals add nothing
        return f"{ends} ({count} digits)" if brief or "/" in text else f"{ends}, {count} digits"

    return _NUMBER.sub(abbreviated, text)


def counted(count: int, things: str) -> str:
    """Format a count of things; `things` is a plural whose final s is dropped for one."""
    return f"{count} {things.removesuffix('s') if count == 1 else things}"


def bars(names: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Lines of names, counts and proportional bars, as wide as the terminal (80 without one)."""
    width = shutil.get_terminal_size().columns
    name_width, count_width = max(map(len, names)), max(len(str(count)) for count in counts)
    room = max(width - name_width - count_width - 3, 10)
    most = max(*counts, 1)
    block, end = ("█", "▌") if _has_unicode() else ("#", "")
    lines = []
    for name, count in zip(names, counts, strict=True):
        halves = -(-2 * room * count // most)  # rounded up, so that every nonzero count shows
        bar = block * (halves // 2) + (end if halves % 2 else "")
        lines.append(
            f"{name:>{name_width}}  {count:>{count_width}} {bar or (count and block) or ''}".rstrip()
        )
    return lines


def print_table(table: "Table") -> None:
    """Print a table of rich's on standard output, as wide as the terminal (80 columns without one)."""
    from rich.console import Console

    console = Console(width=shutil.get_terminal_size().columns)
    with output_errors(), console.capture() as captured:
        console.print(table)
    with output_errors():
        click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _has_unicode() -> bool:
    """Whether standard output takes any character."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return bool(encoding.lower().replace("-", "").startswith("utf"))


@contextmanager
def output_errors() -> Iterator[None]:
    """Turn an OSError of standard output into a CommandError."""
    try:
        yield
    except BrokenPipeError:
        _forget_output()
        raise ReaderGoneError("nobody reads standard output any more") from None
    except OSError as error:
        _forget_output()
        raise CommandError(f"standard output cannot be written: {error.strerror or error}") from None


def _forget_output() -> None:
    """Discard the buffered output, or Python would try again at its exit, and print an error."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_output() -> None:
    """Raise CommandError if standard output was closed when the process started."""
    if sys.stdout is None:
        raise CommandError("standard output is closed")


class _Lenient:
    """Standard error whose own errors, such as a full disk or a closed terminal, are ignored."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text; ignore errors."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream; ignore errors."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_streams() -> None:
    """Make the standard streams of this process safe to use.

    The number of a closed stream would be given to the next file, and a library's output would go into a
    store.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stderr is None:
        # print() would take None for standard output.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  (for ever)
    sys.stderr = _Lenient(sys.stderr)


@contextmanager
def open_input(path: str) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file, or standard input for ``-``; yield the stream and its name in messages."""
    if path != "-":
        with naming_file(path), local_path(path, "an input").open("rb") as stream:
            yield stream, path
    elif sys.stdin is None:
        raise CommandError("standard input is closed")
    else:
        yield sys.stdin.buffer, "<stdin>"


def cost_text(nbytes: int, cost: "Cost") -> str:
    """Format the time of a job, and its rate in bytes."""
    parts = [f"{cost.seconds:.3f} s", f"{size_text(nbytes / max(cost.seconds, 1e-9))}/s"]
    if cost.retries:
        parts.append("1 retry" if cost.retries == 1 else f"{cost.retries} retries")
    return ", ".join(parts)


_INTEGERS = frozenset(["bound", "moduli", "product", "radix", "seed", "source", "value", "values"])
"""Fields of integers of any size. Counts, measures, indices and shapes are JSON numbers."""


def print_json(fields: dict[str, Any]) -> None:
    """Print a JSON object on a line; integers of any size are texts, because most readers keep 53 bits."""
    texts = {name: _text(value) if name in _INTEGERS else value for name, value in fields.items()}
    echo(json.dumps(redact_fields(texts)))


def _text(value: Any) -> Any:
    """Convert an integer, or each one of a list, to decimal text; return anything else as it is."""
    from rnsdask.core.integer_text import to_decimal

    if isinstance(value, list | tuple):
        return list(map(_text, value))
    return to_decimal(value) if isinstance(value, int) else value


def is_done(operation: str, output: "Output", as_json: bool) -> bool:
    """Whether --resume finds the store of this very job complete; if so, print that."""
    from rnsdask.store import Decision

    if output.decide() is not Decision.DONE:
        return False
    tell_done(operation, {"output": str(output.path)}, as_json)
    return True


def tell_done(operation: str, paths: dict[str, str], as_json: bool) -> None:
    """Print that the job has already completed stores, given by their names in JSON."""
    if as_json:
        print_json({"op": operation, **paths, "already_complete": True})
        return
    for path in paths.values():
        remark(f"{path}: complete already, by this very job; nothing to do")


def tell_derived(
    operation: str,
    sources: Sequence[str],
    path: str,
    done: "Transfer",
    cost: "Cost",
    as_json: bool,
    *,
    what: str = "integers",
    read: str = "read",
    **fields: Any,
) -> None:
    """Print that a store was made from others; `fields` are only for JSON."""
    cost.record(operation, done.count, done.bytes_read)
    if as_json:
        named = {"store": sources[0]} if len(sources) == 1 else {"stores": list(sources)}
        print_json({"op": operation, **named, "output": path, **fields, **done.as_dict(), **cost.as_dict()})
        return
    work = f"{size_text(done.bytes_read)} {read} ({cost_text(done.bytes_read, cost)})"
    remark(f"{path}: {counted(done.count, what)}, {size_text(done.bytes_written)}; {work}{done.resumed_text}")
