"""What happens in a job, as events of Python's logging, and a file of them with one JSON object a line."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from rnsdask._version import __version__
from rnsdask.core.files import naming_file, private
from rnsdask.core.messages import redacted_fields, tell

_logger = logging.getLogger("rnsdask.jobs")

# Whose warnings belong to the log of a job: workers lost, memory short.
_OTHERS = ("distributed", "distributed.client")


def record(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Record an event of the job that is running, such as ``retry`` or ``progress``.

    Parameters
    ----------
    fields
        What JSON can hold; of anything else, its text is written.
    """
    extra = {"event": event, "fields": fields}
    if _logger.handlers:
        # To the file of this job in any case: commands turn logging off, for libraries log tracebacks.
        message, name = "%s %s", _logger.name
        _logger.handle(_logger.makeRecord(name, level, "", 0, message, (event, fields), None, extra=extra))
    else:
        _logger.log(level, "%s %s", event, fields, extra=extra)


@contextmanager
def json_log(path: str | None, worded: Callable[[str], str] = str, **fields: Any) -> Iterator[None]:
    """Write the events of a job to a file, from ``start`` (with these fields) to ``end``.

    Parameters
    ----------
    path : str or None
        The file, which is replaced; one that is made can be read by its owner alone. None for no log.
    worded : callable
        Turns the message of an error into the words of the caller.

    Raises
    ------
    OSError
        If the file cannot be written at the start. Later, that ends the log with a line on standard error,
        and not the job.
    """
    if path is None:
        yield
        return
    handler = _LogFile(path)
    handler.setFormatter(_JsonLines())
    handler.addFilter(lambda entry: entry.name == _logger.name or entry.levelno >= logging.WARNING)
    loggers = [_logger, *map(logging.getLogger, _OTHERS)]
    level = _logger.level
    for logger in loggers:
        logger.addHandler(handler)
    _logger.setLevel(logging.INFO)
    started = time.perf_counter()
    try:
        record("start", version=__version__, **fields)
        if handler.failure is not None:
            raise handler.failure
        handler.is_needed = False
        yield
    except BaseException as error:
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        _end(status, started, error=worded(str(error)))
        raise
    else:
        _end("done", started)
    finally:
        _logger.setLevel(level)
        for logger in loggers:
            logger.removeHandler(handler)
        handler.close()


def _end(status: str, started: float, **fields: Any) -> None:
    record("end", status=status, seconds=time.perf_counter() - started, **fields)


class _LogFile(logging.FileHandler):
    """The file of a log; what cannot be written ends the log, but no job.

    Attributes
    ----------
    failure : OSError or None
        Why the log has ended.
    is_needed : bool
        Whether its end is told as an error, so that it need not be told here.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.failure: OSError | None = None
        self.is_needed = True
        with naming_file(path):
            super().__init__(path, mode="w", encoding="utf-8")

    def _open(self) -> Any:
        return open(self.path, self.mode, encoding=self.encoding, opener=private)

    def emit(self, record: logging.LogRecord) -> None:
        """Write an event, unless the log has ended."""
        if self.failure is None:
            super().emit(record)

    def setLevel(self, level: int | str) -> None:  # noqa: N802  (logging's name)
        """Do nothing: a cluster in this process would silence the log with what is printed."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        """End the log where it could not be written."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self.failure = OSError(error.errno, error.strerror, self.path)
        if not self.is_needed:
            tell(f"rnsdask: warning: {self.path}: the log ends here: {error.strerror}")

    def close(self) -> None:
        """Close the file; what could not be written stays unwritten."""
        with suppress(OSError):
            super().close()


class _JsonLines(logging.Formatter):
    """An event, or a warning of another library, as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line, without its end."""
        head = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "event": getattr(record, "event", record.levelname.lower()),
        }
        fields = getattr(record, "fields", None)
        if fields is None:
            fields = {"logger": record.name, "message": record.getMessage()}
        return json.dumps(redacted_fields({**head, **fields}))
