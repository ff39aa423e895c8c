"""Commands as processes of their own, with the standard streams that a test wants, and without the start.

One process imports what commands need, and forks for each of them: so a whole command takes as long as its
work, not a second or two more. Run as a program, it does what it is asked on a socket.
"""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

SECONDS = 300
STREAMS = ("stdin", "stdout", "stderr")
PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({place!r})
    question = json.dumps([sys.argv[1:], os.getcwd(), {streams}, dict(os.environ)])
    socket.send_fds(server, [question.encode() + b"\\n"], [0, 1, 2])
    status, _ = json.loads(server.makefile().readline())
sys.exit(status)
"""
"""The program `rnsdask` for scripts, which starts in no time and has the work done by a fork."""


class Ended(NamedTuple):
    """Result of a command, with its peak memory; a stream that was not kept has no text."""

    status: int
    stdout: str
    stderr: str
    peak: int


class Commands:
    """Runs commands, with further variables of the environment."""

    def __init__(self, **variables: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._place = f"{self._folder.name}/socket"
        how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": os.environ | variables}
        self._process = subprocess.Popen([sys.executable, __file__, self._place], **how)
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the process that forks has ended"
        program = Path(self._folder.name, "bin", "rnsdask")
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=sys.executable, place=self._place, streams=list(STREAMS)))
        program.chmod(0o755)
        self.path = os.pathsep.join(
            [str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        )
        """What PATH must be for scripts to find `rnsdask`."""

    def run(self, *args: object, folder: Path, **streams: str | None) -> Ended:
        """Run a command in a folder.

        Each stream of `streams`, ``stdin``, ``stdout`` and ``stderr``, is a file's name, or None for a closed
        one. Without a word, input is empty and output is kept.
        """
        files = {"stdin": os.devnull, "stdout": "stdout", "stderr": "stderr", **streams}
        given = {name: folder / file for name, file in files.items() if file is not None}
        words = [os.fsdecode(os.fsencode(str(arg))) for arg in args]
        question = json.dumps([words, str(folder), list(given), None])
        with socket.socket(socket.AF_UNIX) as server, ExitStack() as opened:
            server.connect(self._place)
            modes = {name: "rb" if name == "stdin" else "wb" for name in given}
            numbers = [opened.enter_context(given[name].open(modes[name])).fileno() for name in given]
            socket.send_fds(server, [question.encode() + b"\n"], numbers)
            status, peak = json.loads(server.makefile().readline())
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
        self._folder.cleanup()


def _content(file: Path) -> str:
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    file.unlink(missing_ok=True)
    return text


class _Running(NamedTuple):
    """A command, and the client that waits for it, no longer than to an end."""

    process: int
    client: socket.socket
    end: float


def _serve(server: socket.socket) -> None:
    """Do what clients ask for until standard input ends, each command in a process of its own."""
    running: list[_Running] = []
    while True:
        clients = [command.client for command in running]
        ready = select.select([server, sys.stdin, *clients], [], [], 0.002 if running else None)[0]
        if sys.stdin in ready:
            return
        if server in ready:
            running.append(_started(server))
        running = [command for command in running if not _has_ended(command, command.client in ready)]


def _started(server: socket.socket) -> _Running:
    """Start the command that a client asks for."""
    client, _ = server.accept()
    question, numbers, *_ = socket.recv_fds(client, 2**16, len(STREAMS))
    while not question.endswith(b"\n"):
        question += client.recv(2**16)
    args, folder, streams, variables = json.loads(question)
    process = os.fork()
    if not process:
        server.close()
        client.close()
        _become_command(args, folder, dict(zip(streams, numbers, strict=True)), variables)
        _end_as_python(lambda: main(prog_name="rnsdask"))
    for number in numbers:
        os.close(number)
    return _Running(process, client, time.monotonic() + SECONDS)


def _has_ended(command: _Running, is_left: bool) -> bool:
    """Whether a command has ended, or was killed with its client or for its time; tell the client how.

    Its peak memory is not less than that of what it was forked from.
    """
    ended: tuple[int | str, int]
    process, status, usage = os.wait4(command.process, os.WNOHANG)
    if process:
        ended = os.waitstatus_to_exitcode(status), 1024 * usage.ru_maxrss
    elif is_left or time.monotonic() > command.end:
        os.kill(command.process, signal.SIGKILL)
        os.waitpid(command.process, 0)
        ended = f"it was killed, after {SECONDS} s or with its client", 0
    else:
        return False
    with suppress(BrokenPipeError):
        command.client.sendall(json.dumps(ended).encode() + b"\n")
    command.client.close()
    return True


def _become_command(
    args: list[str], folder: str, streams: dict[str, int], variables: dict[str, str] | None
) -> None:
    """Turn this process into a command that was just started."""
    os.chdir(folder)
    for number, name in enumerate(STREAMS):
        if name in streams:
            os.dup2(streams[name], number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
        else:
            os.close(number)
            setattr(sys, name, None)
    for number in streams.values():
        os.close(number)
    sys.argv = ["rnsdask", *args]
    if variables is not None:
        os.environ.clear()
        os.environ.update(variables)
        dask.config.refresh()


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


if __name__ == "__main__":
    # Nearly all that commands import.
    import gc

    import dask.array
    import distributed.system  # noqa: F401
    import fsspec.implementations.local  # noqa: F401
    import psutil  # noqa: F401

    import rnsdask.jobs.evaluation
    import rnsdask.jobs.exporting
    import rnsdask.jobs.memory_plan  # noqa: F401
    from rnsdask.cli import main

    gc.freeze()  # so that forks copy less
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen()
        print("ready", flush=True)
        _serve(listening)
