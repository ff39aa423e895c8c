"""Events of a job by Python's logging, and a file of them with one JSON object a line."""

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
from rnsdask.core.messages import redact_fields, tell

_logger = logging.getLogger("rnsdask.jobs")


def record(event: str, **fields: Any) -> None:
    """Record an event of the running job, such as ``progress``.

    Fields that JSON cannot hold become text, and secrets in URLs asterisks, because any handler may get them.
    """
    if _logger.handlers or _logger.isEnabledFor(logging.INFO):
        # By `handle`, because commands disable logging: libraries log tracebacks of errors that become one
        # line.
        content = redact_fields({"event": event, **fields})
        _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, "", 0, content, (), None))


@contextmanager
def json_log(path: str | None, worded: Callable[[str], str] = str, **fields: Any) -> Iterator[None]:
    """Write the events of a job to a file, from ``start`` (with these fields) to ``end``; None for no log.

    The file is replaced; a new one is readable only by its owner. `worded` turns the message of an error into
    the caller's words. A file that cannot be written is an OSError at the start; later it ends the log, with
    a line on standard error, but not the job.
    """
    if path is None:
        yield
        return
    with naming_file(path):
        stream = open(path, "w", encoding="utf-8", opener=private)  # noqa: SIM115  (closed below)
    handler = _LogFile(stream)
    _logger.addHandler(handler)
    started, outcome = time.perf_counter(), {"status": "done"}
    try:
        with naming_file(path):
            record("start", version=__version__, **fields)
        yield
    except BaseException as error:
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        outcome = {"status": status, "error": worded(str(error))}
        raise
    finally:
        record("end", seconds=time.perf_counter() - started, **outcome)
        _logger.removeHandler(handler)
        with suppress(OSError):
            stream.close()


class _LogFile(logging.StreamHandler):  # type: ignore[type-arg]
    """File of a log, which ends at the first failed write."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line, without its end."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat()
        return json.dumps({"time": moment, **record.msg})  # type: ignore[dict-item]

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        """End the log; at the start of the job, raise the error."""
        _logger.removeHandler(self)
        if record.msg["event"] == "start":  # type: ignore[index]
            raise
        tell(f"rnsdask: warning: {self.stream.name}: the log ends here: {_reason(sys.exc_info()[1])}")


def _reason(error: BaseException | None) -> str:
    return str(getattr(error, "strerror", None) or error)
