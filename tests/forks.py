"""Commands as processes of their own, with the standard streams that a test wants, and without the start.

One process imports what commands need, and forks for each of them: so a whole command takes as long as its
work, not a second more. Run as a program, it reads a command a line and writes what became of it.
"""

import json
import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

SECONDS = 300


class Ended(NamedTuple):
    """Result of a command, with its peak memory; a stream that was not kept has no text."""

    status: int
    stdout: str
    stderr: str
    peak: int


class Commands:
    """Runs commands, one after the other, with further variables of the environment."""

    def __init__(self, **variables: str) -> None:
        how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": os.environ | variables}
        self._process = subprocess.Popen([sys.executable, __file__], text=True, **how)

    def run(self, *args: object, folder: Path, **streams: str | None) -> Ended:
        """Run a command in a folder.

        Each stream of `streams`, ``stdin``, ``stdout`` and ``stderr``, is a file's name, or None for a closed
        one. Without a word, input is empty and output is kept.
        """
        words = [os.fsdecode(os.fsencode(str(arg))) for arg in args]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([words, str(folder), streams]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        status, peak = json.loads(answer)
        return Ended(status, *(_content(folder / name) for name in ("stdout", "stderr")), peak)

    def run_on_terminal(self, *args: object, folder: Path, streams: Iterable[str]) -> tuple[Ended, str]:
        """Run a command with some of its streams on a terminal of 80 columns, and return what that shows."""
        terminal, child = pty.openpty()
        termios.tcsetwinsize(child, (24, 80))
        ended = self.run(*args, folder=folder, **dict.fromkeys(streams, os.ttyname(child)))
        os.close(child)
        shown = b""
        with os.fdopen(terminal, "rb", buffering=0) as screen, suppress(OSError):  # as Linux ends it
            while part := screen.read(65536):
                shown += part
        return ended, shown.decode().replace("\r\n", "\n")

    def end(self) -> None:
        """End the process that forks."""
        self._process.communicate(timeout=SECONDS)


def _content(file: Path) -> str:
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    file.unlink(missing_ok=True)
    return text


def _become_command(args: list[str], folder: str, streams: dict[str, str | None]) -> None:
    """Turn this process into a command that was just started."""
    os.chdir(folder)
    files = {"stdin": os.devnull, "stdout": "stdout", "stderr": "stderr", **streams}
    for number, (name, file) in enumerate(files.items()):
        os.close(number)
        if file is None:
            setattr(sys, name, None)
            continue
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        assert os.dup2(os.open(file, flags), number) == number
        setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    sys.argv = ["rnsdask", *args]


def _end_as_python(command: Callable[[], object]) -> NoReturn:
    """End this process as Python does after a command, but without tearing all modules down, for a second."""
    try:
        command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            status = 120
    os._exit(status)


def _status_of(child: int) -> tuple[int | str, int]:
    """How it ended, and the most bytes that it took: not less than what it was forked from."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), 1024 * usage.ru_maxrss
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return f"it ran for more than {SECONDS} s", 0


if __name__ == "__main__":
    # Nearly all that commands import.
    import dask.array  # noqa: F401
    import distributed.system  # noqa: F401
    import fsspec.implementations.local  # noqa: F401
    import psutil  # noqa: F401

    import rnsdask.jobs.evaluation
    import rnsdask.jobs.exporting
    import rnsdask.jobs.memory_plan  # noqa: F401
    from rnsdask.cli import main

    answers = os.fdopen(os.dup(1), "w")
    questions = os.fdopen(os.dup(0), "r")
    for line in questions:
        child = os.fork()
        if not child:
            os.set_inheritable(answers.fileno(), False)
            _become_command(*json.loads(line))
            _end_as_python(lambda: main(prog_name="rnsdask"))
        print(json.dumps(_status_of(child)), file=answers, flush=True)
