"""Names of places, each read as a URL or a local path, or refused at once."""

import os
import re
from pathlib import Path
from typing import Any

from rnsdask.core.messages import redact

_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*::)*[a-z][a-z0-9+.-]*://", re.IGNORECASE)
"""Start of a URL, including one that fsspec chains, such as ``simplecache::s3://``."""

_OF_THIS_MACHINE = ("file://", "local://")

_SCHEMES = frozenset(
    ("s3", "s3a", "gs", "gcs", "az", "abfs", "http", "https", "ftp", "sftp", "file", "local", "memory")
)
"""Schemes after which a lone colon, as in ``s3:bucket/x.zarr``, is a slip in a URL, not part of a name."""


def is_url(text: str) -> bool:
    """Whether a place, as :func:`read_place` returns it, is a URL."""
    return _URL.match(text) is not None


def read_place(path: Any, what: str) -> str:
    """Return the URL, or the local path, that a str or path-like names; messages call it `what`.

    A local path is returned without ``file://``. Text that begins like a URL but is not one is refused, such
    as ``s3:/bucket/x``, which ``pathlib`` makes from ``s3://bucket/x``; a local file of that name is
    ``./s3:/bucket/x``. ``~`` is refused too: shells replace it, file systems do not.

    Raises
    ------
    TypeError
        If it is neither a str nor a path-like of one.
    ValueError
        If it is empty, holds a NUL character, or is neither a URL nor a local path. The message shows no
        secrets of a URL.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(text := os.fspath(path), str):
        raise TypeError(f"{what} must be a str or path-like, got {type(path).__name__}")
    prefix = next((begin for begin in _OF_THIS_MACHINE if text.startswith(begin)), "")
    text = text.removeprefix(prefix)
    if not prefix and is_url(text):
        return text
    if _is_like_url(text):
        way = "a URL has :// after its scheme, and is given as text, for pathlib makes one slash of two"
        raise ValueError(f"{redact(text)}: {what} is no URL: {way}; {_local_way(text)}")
    if not text:
        raise ValueError(f"{what} must not be empty")
    if "\0" in text:
        raise ValueError(f"{what} must not hold a NUL character, got {text!r:.80}")
    if os.path.expanduser(text) != text:  # noqa: PTH111  (a text, not a Path)
        raise ValueError(f"{text}: {what} begins with ~, which only shells replace; {_local_way(text)}")
    return text


def _is_like_url(text: str) -> bool:
    first = text.partition("/")[0]
    return first.endswith(":") or (":" in first and first.partition(":")[0].lower() in _SCHEMES)


def _local_way(text: str) -> str:
    return f"a local file or folder of that name is ./{redact(text)}"


def read_local(path: Any, what: str) -> str:
    """Return a path that must be local, as :func:`read_place`; ValueError for a URL."""
    text = read_place(path, what)
    if is_url(text):
        raise ValueError(f"{redact(text)}: {what} must be a path of this machine, not a URL")
    return text


def local_path(path: Any, what: str) -> Path:
    """Return a Path as :func:`read_local`. Keep the text for reading it again: a Path drops its ``./``."""
    return Path(read_local(path, what))
