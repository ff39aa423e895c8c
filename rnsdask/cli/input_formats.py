"""Refusals of files that are not of the format that a command was told to read."""

from pathlib import PurePath

from rnsdask.core.errors import InputError
from rnsdask.core.file_formats import (
    COMPRESSED,
    MATRIX_MARKET,
    NUMPY,
    PARQUET,
    RECORDS,
    TEXT,
    TEXTS,
    ZIP,
    format_of_begin,
    format_of_name,
    renamed,
    uncompressed,
)
from rnsdask.jobs.matrix_market import is_matrix_market

_READ = "import without --binary reads it"
_WAYS = {
    NUMPY: _READ,
    ZIP: "in Python, from_ints takes integers that NumPy has loaded",
    PARQUET: _READ,
    MATRIX_MARKET: _READ,
}
_OTHER_WAY = "write its integers as text, one a line"


def kind_of_input(begin: bytes, name: str, *, as_records: bool) -> str:
    """Return what kind of integers an input has, by its first bytes.

    Parameters
    ----------
    as_records : bool
        Whether it is to be read as records without a header.

    Raises
    ------
    InputError
        If it is of a format that import does not read, or not as it is told to.
    """
    if as_records:
        _check_records(begin, name)
        return RECORDS
    if is_matrix_market(begin):
        return MATRIX_MARKET
    kind = format_of_begin(begin)
    if kind in (None, NUMPY, PARQUET):
        return kind or TEXT
    way = _WAYS.get(kind, _OTHER_WAY)
    raise InputError(f"{name}: its first bytes are those of {kind}, which import does not read; {way}")


def _check_records(begin: bytes, name: str) -> None:
    """Raise InputError if a file that is to be read as records without a header is of another format."""
    if kind := format_of_begin(begin, of_records=True):
        way = _WAYS.get(kind, _OTHER_WAY)
        if kind in (f"data compressed by {by}" for by in COMPRESSED.values()):
            suffix = next(suffix for suffix, by in COMPRESSED.items() if kind.endswith(by))
            way = f"name it so that it ends in {suffix}, or decompress it"
        problem = f"its first bytes are those of {kind}, and --binary reads records without a header"
        raise InputError(f"{name}: {problem}; {way}")
    if kind := format_of_name(name):
        ending = PurePath(uncompressed(name).lower()).suffix
        way = "import without --binary reads text; " if ending in TEXTS else ""
        way += f"if it holds such records, name it otherwise, such as {renamed(name, '.bin')}"
        raise InputError(f"{name}: its name is that of {kind}, not of records without a header; {way}")
