"""Messages for people, without secrets in URLs and without control characters."""

import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

HIDDEN = "***"

QUIET: ContextVar[bool] = ContextVar("rnsdask.quiet", default=False)
"""Whether :func:`note` prints nothing."""

_LISTED = 3

# Outside HTTP and FTP a name alone is not a secret: it may be a container, as in abfs://container@account/x.
# A colon before digits and a slash is a port's. An unquoted key of S3 may contain a slash. pathlib turns two
# slashes into one.
_NAME_OF_SERVER = re.compile(r"\b((?:https?|ftps?):/{1,2})[^\s\"'<>@/:]+@", re.IGNORECASE)
_PASSWORD = re.compile(
    r"\b([a-z][a-z0-9+.-]*:/{1,2})(?!\[)[^\s\"'<>@/:]*:(?!\d+/)[^\s\"'<>]*@", re.IGNORECASE
)

# Any parameter: services have their own names for signatures and tokens.
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*:/{1,2}[^\s\"'<>]+", re.IGNORECASE)
_VALUE = re.compile(r"([?&;#][^=?&;#\s]*=)[^?&;#\s]*[^?&;#\s:,.)]")


def redact(text: str) -> str:
    """Replace the secrets in all URLs of a text by asterisks.

    Secrets are the user and password before a server's name, and the values of all parameters.
    """
    if ":/" not in text:
        return text
    text = _PASSWORD.sub(rf"\1{HIDDEN}@", text)
    text = _NAME_OF_SERVER.sub(rf"\1{HIDDEN}@", text)
    return _URL.sub(lambda url: _VALUE.sub(rf"\1{HIDDEN}", url[0]), text)


def redact_fields(value: Any) -> Any:
    """Redact all texts in a value that JSON can hold; any other value becomes its redacted text."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(str(name)): redact_fields(field) for name, field in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_fields(item) for item in value]
    return value if isinstance(value, bool | int | float | None) else redact(str(value))


def escape(text: str) -> str:
    r"""Escape all unprintable characters of a text but tabs, as Python writes them: ``\x1b``.

    Names of files and contents of stores may hold anything: control characters that a terminal obeys, line
    ends, and bytes that are not text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def list_some(names: Iterable[str]) -> str:
    """List the first few of some names, in order, and the number of those left out."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(ordered[:_LISTED]) + more


def tell(line: str) -> None:
    """Print a line on standard error; if that cannot be written, the message is dropped."""
    with suppress(OSError):
        print(escape(redact(line)), file=sys.stderr)


def note(line: str) -> None:
    """Print a line as :func:`tell` does, unless :data:`QUIET`: what is neither a warning nor an error."""
    if not QUIET.get():
        tell(line)


def size_text(count: float) -> str:
    """Write a number of bytes with a unit, for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} TB"
