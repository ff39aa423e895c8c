"""What happens in a job, as events of Python's logging, and a file of them with one JSON object a line."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rnsdask._version import __version__

_logger = logging.getLogger("rnsdask.job")

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
def json_log(path: str | None, **fields: Any) -> Iterator[None]:
    """Write the events of a job to a file, from ``start`` (with these fields) to ``end``.

    Parameters
    ----------
    path : str or None
        The file, which is replaced; None for no log.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    if path is None:
        yield
        return
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(_JsonLines())
    handler.addFilter(lambda entry: entry.name == _logger.name or entry.levelno >= logging.WARNING)
    loggers = [_logger, *map(logging.getLogger, _OTHERS)]
    level = _logger.level
    for logger in loggers:
        logger.addHandler(handler)
    _logger.setLevel(logging.INFO)
    started = time.perf_counter()
    record("start", version=__version__, **fields)
    try:
        yield
    except BaseException as error:
        _end("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", started, error=str(error))
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
        return json.dumps({**head, **fields}, default=str)
