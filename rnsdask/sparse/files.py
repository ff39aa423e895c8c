"""Reading sparse matrices of integers from files: Matrix Market's, and LinBox's ``.sms``."""

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.places import local_path
from rnsdask.sparse.matrix import SparseMatrix, check_memory, check_shape, from_entries

_BANNER = "%%matrixmarket"
_SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Signs of the entries above the diagonal, by the symmetry that a file tells."""

_LONG = re.compile("[0-9]{19}")
"""Digits of numbers that 64 bits may not hold."""


_LONGEST_LINE = 2**24
"""Characters of a line: no number system holds longer integers."""

BLOCK_LINES, _BLOCK_CHARACTERS = 2**15, 2**20
"""Lines that are parsed at a time, and characters from which on there are no more."""

_ENTRY_BYTES = 96
"""Bytes of an entry that is read and not yet in a matrix, by estimate."""


def read(path: str | Path) -> SparseMatrix:
    """Read a sparse matrix of integers of any size from a Matrix Market or an ``.sms`` file.

    The file's first line says which it is; a name that ends in ``.gz`` is that of a compressed file. A
    Matrix Market file has the format ``coordinate``, the field ``integer``, ``unsigned-integer`` or
    ``pattern`` (all entries are 1) and the symmetry ``general``, ``symmetric`` or, of integers,
    ``skew-symmetric``; of the last two it has no entries above the diagonal. An ``.sms`` file begins with
    rows, columns and a letter, and ends with ``0 0 0``. It is read some lines at a time.

    Raises
    ------
    InputError
        If the file is in another format, its entries do not match its header, or two have one place.
    JobError
        If the matrix takes more memory than this process may use, by its shape or the entries read so far.
    ValueError
        If `path` is a URL, or neither a URL nor a path.
    OSError
        If it cannot be read.
    """
    with _opened(path) as (file, name):
        head = _head(file, name)
        return _matrix(_entries(file, head, name), head, name)


def measure(path: str | Path) -> tuple[tuple[int, int], int]:
    """Read the shape of a matrix in a file, and how many entries it has at most, by counting lines.

    Errors are those of :func:`read` about a file's header.
    """
    with _opened(path) as (file, name):
        head = _head(file, name)
        lines = sum(len(block) for _, block in _blocks(file, head.lines, name))
    return head.shape, lines * (2 if head.sign else 1)


@dataclass(frozen=True)
class _Head:
    """The first `lines` lines of a file: `count` entries follow, of `width` integers, or ``0 0 0`` ends them.

    `sign` is that of the entries above the diagonal of a symmetric matrix, else 0.
    """

    lines: int
    shape: tuple[int, int]
    count: int | None = None
    width: int = 3
    field: str = "integer"
    symmetry: str = "general"

    @property
    def sign(self) -> int:
        return _SIGNS[self.symmetry]


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[IO[str], Path]]:
    """Open a file, decompressed; errors of damaged data, and of memory, name it."""
    path = local_path(path, "path")
    how: dict[str, Any] = {"mode": "rt", "encoding": "utf-8-sig", "errors": "backslashreplace"}
    with gzip.open(path, **how) if path.suffix == ".gz" else path.open(**how) as file:
        try:
            yield file, path
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path}: {error}") from error
        except JobError as error:
            raise JobError(f"{path}: {error}") from None


def _head(file: IO[str], path: Path) -> _Head:
    """Read what comes before the entries; a shape that memory cannot hold is an error at once."""
    first = _line(file, 1, path)
    head = _market_head(file, first, path) if first.lower().startswith(_BANNER) else _sms_head(first, path)
    try:
        check_shape(head.shape)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    check_memory(head.shape, 0)
    return head


def _line(file: IO[str], number: int, path: Path) -> str:
    line = file.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise InputError(f"{path}:{number}: the line has more than {_LONGEST_LINE} characters")
    return line


def _market_head(file: IO[str], first: str, path: Path) -> _Head:
    words = first.lower().split()
    if len(words) != 5 or words[1:3] != ["matrix", "coordinate"] or words[4] not in _SIGNS:
        raise InputError(
            f"{path}: expected %%MatrixMarket matrix coordinate integer and general, symmetric or "
            f"skew-symmetric, got {first.strip()!r:.80}"
        )
    field, symmetry = words[3:]
    if field not in ("integer", "unsigned-integer", "pattern"):
        raise InputError(f"{path}: the field must be integer or pattern, got {field!r:.80}")
    if symmetry == "skew-symmetric" and field != "integer":
        raise InputError(f"{path}: a skew-symmetric matrix has negative integers, and the field is {field}")
    line, number = _line(file, 2, path), 2
    while line.startswith("%") or line.isspace():
        line, number = _line(file, number + 1, path), number + 1
    rows, columns, count = _header(line, 3, path)
    if symmetry != "general" and rows != columns:
        raise InputError(f"{path}: a {symmetry} matrix must be square, got {rows} x {columns}")
    return _Head(number, (rows, columns), count, 2 if field == "pattern" else 3, field, symmetry)


def _sms_head(first: str, path: Path) -> _Head:
    words = first.split()
    if len(words) != 3 or words[2].isdigit():
        raise InputError(
            f"{path}: expected %%MatrixMarket, or rows, columns and M as an .sms file begins, got "
            f"{first.strip()!r:.80}"
        )
    rows, columns = _header(" ".join(words[:2]), 2, path)
    return _Head(1, (rows, columns))


def _header(line: str, count: int, path: Path) -> list[int]:
    words = line.split()
    if len(words) != count or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"{path}: expected {count} lengths, got {line.strip()!r:.80}")
    return [min(int(gmpy2.mpz(word)), 2**63 - 1) for word in words]  # no file has as many


def _blocks(file: IO[str], before: int, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the lines after the first `before`, some at a time, each with the number of the first."""
    first = number = before + 1
    lines: list[str] = []
    length = 0
    while line := _line(file, number, path):
        lines.append(line)
        length, number = length + len(line), number + 1
        if len(lines) == BLOCK_LINES or length > _BLOCK_CHARACTERS:
            yield first, lines
            first, lines, length = number, [], 0
    yield first, lines


def _entries(file: IO[str], head: _Head, path: Path) -> NDArray[Any]:
    """Numbers (entries, 3) of the lines after the header, int64 or, if one may not fit, objects.

    JobError as soon as memory could not hold the matrix of those read.
    """
    some = rf"(\s+[+-]?[0-9]+){{{head.width - 1}}}"
    pattern = re.compile(rf"\s*[+-]?[0-9]+{some}\s*(%.*)?", re.ASCII | re.DOTALL)
    parts = [np.empty((0, 3), np.int64)]
    count = held = 0
    for first, lines in _blocks(file, head.lines, path):
        for number, line in enumerate(lines, first):
            if not pattern.fullmatch(line) and line.strip() and not line.lstrip().startswith("%"):
                raise InputError(f"{path}:{number}: expected {head.width} integers, got {line.strip()!r:.80}")
        part = _parsed(lines, head.width)
        parts.append(part)
        count += len(part)
        held += _ENTRY_BYTES * len(part) + (sum(map(len, lines)) if part.dtype == object else 0)
        if head.count is not None and count > head.count:
            raise InputError(f"{path}: the header tells of {head.count} entries, and there are more")
        check_memory(head.shape, count * (2 if head.sign else 1), held)
    if head.count is not None and count != head.count:
        raise InputError(f"{path}: the header tells of {head.count} entries, and there are {count}")
    entries = np.concatenate(parts)
    if head.count is None:
        ends = (entries == 0).all(axis=1).nonzero()[0]
        if len(ends) != 1 or ends[0] != count - 1:
            raise InputError(f"{path}: an .sms file ends with the line 0 0 0, which must be there once")
        entries = entries[:-1]
    return entries


def _parsed(lines: list[str], width: int) -> NDArray[Any]:
    """Numbers (entries, 3) of lines that are right, some of which may be blank or comments."""
    lines = [line for line in lines if line.partition("%")[0].strip()]
    found: NDArray[Any]
    if not lines:
        return np.empty((0, 3), np.int64)
    if any(map(_LONG.search, lines)):
        words = (line.partition("%")[0].split() for line in lines)
        found = np.array([[int(gmpy2.mpz(word)) for word in of_line] for of_line in words], object)
    else:
        found = np.loadtxt(lines, np.int64, comments="%", ndmin=2)
    if width == 2:
        found = np.concatenate([found, np.ones_like(found[:, :1])], axis=1)
    return found


def _matrix(entries: NDArray[Any], head: _Head, path: Path) -> SparseMatrix:
    """Make the matrix of entries, which are checked, and of those that they are mirrored to."""
    if head.field == "unsigned-integer":
        _check(entries[:, 2] >= 0, entries, f"is negative, and the field is {head.field}", path)
    for axis, (name, length) in enumerate(zip(("row", "column"), head.shape, strict=True)):
        places = entries[:, axis]
        _check((places >= 1) & (places <= length), entries, f"has a {name} out of the {length} {name}s", path)
    places = entries[:, :2].astype(np.int64) - 1
    rows, columns, values = places[:, 0], places[:, 1], entries[:, 2]
    if head.sign > 0:
        _check(rows >= columns, entries, "is above the diagonal of a symmetric matrix", path)
    if head.sign < 0:
        _check(rows > columns, entries, "is not below the diagonal of a skew-symmetric matrix", path)
    _check_places(rows, columns, head.shape, path)
    if head.sign:
        other = rows != columns
        values = np.concatenate([values, values[other] * head.sign])
        rows, columns = np.concatenate([rows, columns[other]]), np.concatenate([columns, rows[other]])
    return from_entries(rows, columns, values, head.shape)


def _check_places(
    rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int], path: Path
) -> None:
    places = np.sort(rows * shape[1] + columns)
    if len(twice := np.flatnonzero(places[1:] == places[:-1])):
        raise two_entries(path, *divmod(int(places[twice[0]]), shape[1]))


def two_entries(name: object, row: int, column: int) -> InputError:
    """Make the error of a file with two entries of one row and column, counted from 0.

    Neither format says what they are: SciPy adds them, other programs keep the last, or refuse them too.
    """
    return InputError(
        f"{name}: it has two entries of row {row + 1}, column {column + 1}, and no format says whether they "
        "add up; in Python, rd.sparse.from_entries adds entries of one place"
    )


def _check(is_right: NDArray[Any], entries: NDArray[Any], what: str, path: Path) -> None:
    """Raise InputError that shows the first wrong entry."""
    if not is_right.all():
        k = int(np.argmin(is_right.astype(bool)))
        row, column, value = (abbreviate(int(v)) for v in entries[k])
        raise InputError(f"{path}: entry {k + 1}, {row} {column} {value}, {what}")
