"""Ctrl-C: the first one ends a command in an orderly way, but soon, and the second one at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

GRACE_SECONDS = 1.0
"""After which the process ends although something is still being tidied up."""

STATUS = 130

_MESSAGE = b"rnsdask: error: interrupted\n"
_SHOW_CURSOR = b"\x1b[?25h"  # a bar that could not end itself has hidden it


class Interruption:
    """What becomes of this process when it is interrupted.

    Python would wait for all threads, so for the chunks that they compute, and a second Ctrl-C meanwhile
    would tear the interpreter down under them. So the process ends itself (``os._exit``). Files that are
    written have a name of their own until they are whole, and workers see that their client has gone.
    """

    def __init__(self) -> None:
        self._untold = [_MESSAGE]  # taken by one thread only: pop is atomic
        self._over = False

    def end(self) -> NoReturn:
        """End the process with one line on standard error, unless that is told already."""
        with suppress(IndexError, OSError):
            cursor = _SHOW_CURSOR if os.isatty(2) else b""
            os.write(2, cursor + self._untold.pop())
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


def is_program(args: list[str]) -> bool:
    """Whether these are the arguments that this process was started with, rather than those of a call."""
    return bool(args) and sys.argv[-len(args) :] == args
