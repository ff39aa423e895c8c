"""Refusals of files that are not of the format that a command was told to read."""

from pathlib import PurePath

from rnsdask.core.errors import InputError
from rnsdask.core.file_formats import (
    COMPRESSED,
    MATRIX_MARKET,
    NUMPY,
    PARQUET,
    TEXTS,
    ZIP,
    format_of_begin,
    format_of_name,
    renamed,
    uncompressed,
)

_WAYS = {
    NUMPY: "--residues reads residues; in Python, from_ints takes integers that NumPy has loaded",
    ZIP: "in Python, from_ints takes integers that NumPy has loaded",
    PARQUET: "in Python, read_parquet reads it",
    MATRIX_MARKET: "import without --binary reads it",
}
_OTHER_WAY = "write its integers as text, one a line"


def check_text(begin: bytes, name: str) -> None:
    """Raise InputError if a file that is to be read as text is of another format."""
    if kind := format_of_begin(begin):
        way = _WAYS.get(kind, _OTHER_WAY)
        raise InputError(f"{name}: its first bytes are those of {kind}, and import reads text; {way}")


def check_records(begin: bytes, name: str) -> None:
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
