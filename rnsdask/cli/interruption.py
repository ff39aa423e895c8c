"""Ctrl-C ends a command within a second, and says how to go on."""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

GRACE_SECONDS = 1.0
"""Time after which the process ends although something is still being tidied up."""

STATUS = 130

_SHOW_CURSOR = b"\x1b[?25h"  # a bar that could not end itself has hidden it


@contextmanager
def ending_soon(way_on: Callable[[], str]) -> Iterator[None]:
    """End the process at Ctrl-C, with one line on standard error and status 130.

    Python would wait for all threads, so for the chunks that they compute. So a thread ends the process by
    ``os._exit``. Files that are written have a name of their own until they are whole, and workers see that
    their client has gone. Nothing changes outside of the main thread, and where Ctrl-C is ignored, as in the
    background.

    Parameters
    ----------
    way_on
        Returns the command that goes on; an empty text if there is none.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    # The process that tidies up after this one and its workers would complain that it has to.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    watched, told = os.pipe()
    os.set_blocking(told, False)
    # Told by the system, not by Python, which would wait until the main thread has left a library.
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    is_tidy = threading.Event()

    def end() -> None:
        while signal.SIGINT not in os.read(watched, 1):
            pass
        is_tidy.wait(GRACE_SECONDS)
        message = _SHOW_CURSOR if os.isatty(2) else b""
        message += b"rnsdask: error: interrupted"
        with suppress(Exception):
            if command := way_on():
                message += b"; to go on: " + os.fsencode(command)
        with suppress(OSError):
            os.write(2, message + b"\n")
        os._exit(STATUS)

    threading.Thread(target=end, name="rnsdask-interrupt", daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        is_tidy.set()
        os.write(told, bytes([signal.SIGINT]))
        while True:
            with suppress(KeyboardInterrupt):
                time.sleep(GRACE_SECONDS)


def way_on(args: Sequence[str], params: Mapping[str, Any], drawn: int | None) -> str:
    """Write the command that goes on with an interrupted one; an empty text if there is none.

    Parameters
    ----------
    args, params
        The arguments of the program, and the options of the command that they mean.
    drawn
        The seed that was drawn for want of one.
    """
    from rnsdask.core.messages import redacted

    more: list[str] = []
    if "resume" in params and params.get("outputs", params.get("output", True)):
        more = [] if params["resume"] else ["--resume"]
        if "seed" in params and params["seed"] is None:
            if drawn is None:
                return ""
            more += ["--seed", str(drawn)]
    elif params.get("checkpoint") is None:
        return ""
    end = args.index("--") if "--" in args else len(args)
    text = shlex.join(["rnsdask", *args[:end], *more, *args[end:]])
    is_repeatable = "-" not in (params.get("source"), params.get("moduli_file"))
    return text if is_repeatable and "\n" not in text and redacted(text) == text else ""


def is_program(args: list[str]) -> bool:
    """Return whether these are the arguments that this process was started with, not those of a call."""
    return bool(args) and sys.argv[-len(args) :] == args
