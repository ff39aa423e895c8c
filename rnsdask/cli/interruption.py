"""Ctrl-C: the first one ends a command in an orderly way, but soon, and the second one at once."""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

GRACE_SECONDS = 1.0
"""After which the process ends although something is still being tidied up."""

STATUS = 130

_MESSAGE = b"rnsdask: error: interrupted"
_SHOW_CURSOR = b"\x1b[?25h"  # a bar that could not end itself has hidden it


class Interruption:
    """What becomes of this process when it is interrupted.

    Python would wait for all threads, so for the chunks that they compute, and a second Ctrl-C meanwhile
    would tear the interpreter down under them. So the process ends itself (``os._exit``). Files that are
    written have a name of their own until they are whole, and workers see that their client has gone.

    Parameters
    ----------
    way_on
        Gives the command that goes on; an empty text if there is none.
    """

    def __init__(self, way_on: Callable[[], str] = str) -> None:
        self._way_on = way_on
        self._untold = [_MESSAGE]  # taken by one thread only: pop is atomic
        self._over = False

    def end(self) -> NoReturn:
        """End the process with one line on standard error, unless that is told already."""
        with suppress(IndexError, OSError):
            cursor = _SHOW_CURSOR if os.isatty(2) else b""
            message = self._untold.pop()
            with suppress(Exception):
                if command := self._way_on():
                    message += b"; to go on: " + os.fsencode(command)
            os.write(2, cursor + message + b"\n")
        os._exit(STATUS)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Have Ctrl-C raise KeyboardInterrupt once, and end the process soon after, or at once after that.

        Nothing changes outside of the main thread, and where Ctrl-C is ignored, as in the background.
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
        threading.Thread(target=self._watch, args=(watched,), name="rnsdask-interrupt", daemon=True).start()
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        except KeyboardInterrupt:
            self.end()
        finally:
            self._over = True  # what is left is Python's own end

    def _interrupted(self, *_: Any) -> None:
        if self._over:
            self.end()
        self._over = True
        raise KeyboardInterrupt

    def _watch(self, descriptor: int) -> None:
        while signal.SIGINT not in os.read(descriptor, 1):
            pass
        time.sleep(GRACE_SECONDS)
        self.end()


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
    """Whether these are the arguments that this process was started with, rather than those of a call."""
    return bool(args) and sys.argv[-len(args) :] == args
