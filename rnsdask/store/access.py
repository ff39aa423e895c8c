"""One form of access errors, whatever library reports them."""

import errno
import re

from rnsdask.core.errors import StoreAccessError
from rnsdask.core.messages import HIDDEN, redact

# By name, because the libraries need not be installed; a class includes its subclasses.
_PASSING = {
    "ClientConnectionError",  # aiohttp: a connection refused or broken
    "ClientPayloadError",  # aiohttp: an answer that was cut off
    "ConnectionError",  # botocore: no connection
    "HTTPClientError",  # botocore: a connection broken, or no answer in time
    "ResponseStreamingError",  # botocore: an answer that was cut off
    "IncompleteReadError",  # botocore
    "TransportError",  # google.auth: no connection to where tokens come from
    "GenericError",  # obstore: after its own retries
}
_FORBIDDEN = {
    "PermissionDeniedError",  # obstore
    "UnauthenticatedError",  # obstore
    "NoCredentialsError",  # botocore
    "DefaultCredentialsError",  # google.auth
    "RefreshError",  # google.auth
}

# In addition to 500 and above: request timeout, too early, too many requests.
_PASSING_STATUS = {408, 425, 429}
_LASTING_STATUS = {501: errno.ENOSYS, 505: errno.ENOSYS}
_STATUS = {401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 405: errno.EACCES, 410: errno.ENOENT}

_STATUS_OF_OBSTORE = re.compile(r"status code: ([45]\d\d)\b")

# A path without its protocol, as libraries report it.
_PASSWORD = re.compile(r"[^\s\"'<>/@:]+:[^\s\"'<>@]+@")

_LONGEST = 300
"""Most characters of another library's message that are shown."""


def access_error(what: str, error: Exception) -> StoreAccessError:
    """Make the error of a failed access, with a text such as ``s3://b/x: it cannot be read``.

    Its ``errno`` is the operating system's, or one with the same meaning, so that
    :func:`rnsdask.cluster.failures.can_pass` decides about a retry for every library alike.
    """
    return StoreAccessError(f"{what}: {_message(error)}", _number(error))


def _number(error: Exception) -> int | None:
    names = {base.__name__ for base in type(error).__mro__}
    status = _status(error)
    if status is not None:
        passing = status in _PASSING_STATUS or status >= 500
        return _LASTING_STATUS.get(status, errno.EIO) if passing else _STATUS.get(status, errno.EINVAL)
    if isinstance(error, PermissionError) or names & _FORBIDDEN:
        return errno.EACCES
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT
    if isinstance(error, OSError):
        return error.errno
    return errno.EIO if names & _PASSING else errno.EINVAL


def _status(error: Exception) -> int | None:
    """Status of an HTTP response: from aiohttp, gcsfs (it may be text) or obstore (in its text)."""
    for name in ("status", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int | str) and str(value).isdecimal() and 400 <= int(value) < 600:
            return int(value)
    found = _STATUS_OF_OBSTORE.search(str(error)) if type(error).__name__ == "GenericError" else None
    return int(found[1]) if found else None


def _message(error: Exception) -> str:
    kind = type(error).__name__
    status, reason = _status(error), getattr(error, "message", "")
    if status is not None:
        return f"HTTP status {status}" + (f" ({redact(str(reason))})" if reason else "")
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    first = next((line.strip() for line in redact(text).splitlines() if line.strip()), "")
    first = _PASSWORD.sub(f"{HIDDEN}@", first)
    shown = first if len(first) <= _LONGEST else f"{first[:_LONGEST]}..."
    if isinstance(error, OSError):
        return shown or kind
    return f"{kind}: {shown}" if shown else kind
