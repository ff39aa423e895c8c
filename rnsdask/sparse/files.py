"""Sparse matrices of integers read from files of Matrix Market and from LinBox's ``.sms`` files."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.core.places import local_path
from rnsdask.core.ways import Message
from rnsdask.io.integer_reading import BYTE_ORDER_MARK
from rnsdask.io.matrix_market import (
    PATTERN,
    UNSIGNED,
    Entries,
    Head,
    MatrixFile,
    check_single,
    is_matrix_market,
    short_integers,
)
from rnsdask.sparse.matrix import SparseMatrix, check_memory, check_shape, from_entries

_LONGEST_LINE = 2**24
"""Most characters of a line: no number system holds longer integers."""

_ENTRY_BYTES = 96
"""Estimated bytes of an entry that is read and not yet in a matrix."""

_END = [b"0", b"0", b"0"]
"""Words of the last line of an ``.sms`` file."""


def read(path: str | Path) -> SparseMatrix:
    """Read a sparse matrix of integers of any size from a Matrix Market or an ``.sms`` file.

    The file's first line shows the format; a name that ends in ``.gz`` means a compressed file. A Matrix
    Market file has the format ``coordinate``, the field ``integer``, ``unsigned-integer`` or ``pattern`` (all
    entries are 1) and the symmetry ``general``, ``symmetric`` or, for integers, ``skew-symmetric``; with the
    last two, it has no entries above the diagonal. An ``.sms`` file begins with rows, columns and a letter,
    and ends with ``0 0 0``. Files are read a few lines at a time.

    Raises
    ------
    InputError
        If the file is in another format, its entries do not match its header, or two have the same position.
    JobError
        If the shape or the entries read so far take more memory than this process may use.
    ValueError
        If `path` is a URL, or neither a URL nor a path.
    OSError
        If the file cannot be read.
    """
    with _open(path) as file:
        return _matrix(file)


def measure(path: str | Path) -> tuple[tuple[int, int], int]:
    """Read the shape of a matrix in a file, and count lines for an upper bound of its entries.

    Errors are as in :func:`read` for a file's header.
    """
    with _open(path) as file:
        return file.head.shape, file.count_lines() * (2 if file.head.sign else 1)


class _SmsFile(MatrixFile):
    """A file of LinBox's, whose header does not say how many entries follow."""

    def _read_head(self, *_: object) -> Head:
        line = self._next_line(_LONGEST_LINE)
        words = line.removeprefix(BYTE_ORDER_MARK).split()
        if len(words) != 3 or words[2].isdigit():
            begin = repr(line.strip()[:80].decode("utf-8", "backslashreplace"))
            raise self.error(
                f"expected %%MatrixMarket, or rows, columns and M as an .sms file begins, got {begin}"
            )
        rows, columns = self.lengths(b" ".join(words[:2]), 2, "rows and columns")
        return Head((rows, columns), None)

    def _tokens(self) -> Iterator[list[bytes]]:
        ends = 0
        for tokens in super()._tokens():
            rows = tokens[::3]
            end = 3 * rows.index(b"0") if b"0" in rows else len(tokens)
            is_end = tokens[end : end + 3] == _END
            if ends or (is_end and end + 3 < len(tokens)):
                break
            ends += is_end
            if found := tokens[:end] if is_end else tokens:
                yield found
        else:
            if ends:
                return
        raise InputError(f"{self.name}: an .sms file ends with the line 0 0 0, which must be there once")


@contextmanager
def _open(path: str | Path) -> Iterator[MatrixFile]:
    """Open a file, decompressed, and read its head; errors of damaged data, and of memory, name the file.

    A shape too large for memory is an error at once.
    """
    path = local_path(path, "path")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        try:
            file = _file(cast("BinaryIO", stream), str(path))
            check_memory(file.head.shape, 0)
            yield file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(Message(f"{path}: ", error)) from error
        except JobError as error:
            raise JobError(Message(f"{path}: ", error)) from None


def _file(stream: BinaryIO, name: str) -> MatrixFile:
    begin = stream.read(32)
    stream.seek(0)
    kind = MatrixFile if is_matrix_market(begin) else _SmsFile
    fields = ("integer", UNSIGNED, PATTERN)
    file = kind(stream, name, formats=("coordinate",), fields=fields, longest=_LONGEST_LINE)
    try:
        check_shape(file.head.shape)
    except ValueError as error:
        raise InputError(Message(f"{name}: ", error)) from None
    return file


def _matrix(file: MatrixFile) -> SparseMatrix:
    """Make the matrix of all entries and their mirror images.

    JobError as soon as memory could not hold the matrix of the entries read.
    """
    head, parts = file.head, [(np.empty(0, np.int64),) * 3]
    count = held = 0
    for entries in file.entries():
        values = _values(file, entries)
        parts.append((entries.rows, entries.columns, values))
        count += len(values)
        held += _ENTRY_BYTES * len(values)
        held += sum(map(len, entries.texts)) if values.dtype == object else 0
        check_memory(head.shape, count * (2 if head.sign else 1), held)
    rows, columns, values = (np.concatenate(some) for some in zip(*parts, strict=True))
    check_single(file.name, np.sort(rows * head.shape[1] + columns), head.shape[1])
    if head.sign:
        other = rows != columns
        values = np.concatenate([values, values[other] * head.sign])
        rows, columns = np.concatenate([rows, columns[other]]), np.concatenate([columns, rows[other]])
    return from_entries(rows, columns, values, head.shape)


def _values(file: MatrixFile, entries: Entries) -> NDArray[Any]:
    """Read the integers of entries: int64 or, if one may not fit, objects."""
    texts = entries.texts
    values: NDArray[Any] | None = short_integers(texts)
    if values is None:
        values = np.empty(len(texts), dtype=object)
        for k, text in enumerate(texts):
            if (value := parse_integer(text)) is None:
                raise file.error_of_entry(entries.before + k, not_an_integer(text))
            values[k] = int(value)
    if file.head.field == UNSIGNED and len(wrong := np.flatnonzero(values < 0)):
        k = int(wrong[0])
        problem = f"{abbreviate(int(values[k]))} is negative, and the field is {UNSIGNED}"
        raise file.error_of_entry(entries.before + k, problem)
    return values
