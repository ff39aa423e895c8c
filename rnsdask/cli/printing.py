"""What commands print: nothing that a terminal obeys, no secrets, and errors of the output by its name."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from rnsdask.cli.wording import in_options
from rnsdask.core.messages import redacted, tell, visible


class CommandError(click.ClickException):
    """A failed job."""

    exit_code = 1

    def show(self, file: Any = None) -> None:  # noqa: ARG002  (standard error, as every message of a command)
        """Print the message as one line."""
        tell("rnsdask: error: " + " ".join(in_options(self.format_message()).split()))


class ReaderGoneError(CommandError):
    """Standard output is a pipe that nobody reads: quiet, with the status that shells give SIGPIPE."""

    exit_code = 141

    def show(self, file: Any = None) -> None:
        """Say nothing."""


def echo(*lines: str, err: bool = False) -> None:
    """Print lines on standard output, or on standard error, where they may be lost.

    Raises
    ------
    CommandError
        If standard output cannot be written.
    """
    if err:
        for line in lines:
            tell(line)
        return
    with output_errors():
        click.echo("\n".join(visible(redacted(line)) for line in lines))


@contextmanager
def output_errors() -> Iterator[None]:
    """Have an OSError, which only standard output can cause in the context, be a CommandError."""
    try:
        yield
    except BrokenPipeError:
        _forget_output()
        raise ReaderGoneError("nobody reads standard output any more") from None
    except OSError as error:
        _forget_output()
        raise CommandError(f"standard output cannot be written: {error.strerror or error}") from None


def _forget_output() -> None:
    """Let what is still in the buffer go nowhere, or Python would try again at its end, and complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_output() -> None:
    """Raise CommandError if standard output was closed when the process started."""
    if sys.stdout is None:
        raise CommandError("standard output is closed")


class _Lenient:
    """Standard error whose own errors, of a full disk or a terminal that is gone, end no job."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what can be written."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush it."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_streams() -> None:
    """Make the standard streams of this process safe to use, whatever they are.

    Where one is closed, its number would be the next file's: what a library prints would go into a store.
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
