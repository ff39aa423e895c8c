"""Reading sparse matrices of integers from files: Matrix Market's, and LinBox's ``.sms``."""

import gzip
import re
import zlib
from pathlib import Path
from typing import IO, Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, abbreviate
from rnsdask.core.places import local_path
from rnsdask.sparse.matrix import SparseMatrix, from_entries

_BANNER = "%%matrixmarket"
_SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Signs of the entries above the diagonal, by the symmetry that a file tells."""

_LONG = re.compile("[0-9]{19}")
"""Digits of numbers that 64 bits may not hold."""


def read(path: str | Path) -> SparseMatrix:
    """Read a sparse matrix of integers of any size from a Matrix Market or an ``.sms`` file.

    The file's first line says which it is; a name that ends in ``.gz`` is that of a compressed file. A
    Matrix Market file has the format ``coordinate``, the field ``integer``, ``unsigned-integer`` or
    ``pattern`` (all entries are 1) and the symmetry ``general``, ``symmetric`` or, of integers,
    ``skew-symmetric``; of the last two it has no entries above the diagonal. An ``.sms`` file begins with
    rows, columns and a letter, and ends with ``0 0 0``. Entries of one place are added.

    Raises
    ------
    InputError
        If the file is in another format, or its entries do not match its header.
    ValueError
        If `path` is a URL, or neither a URL nor a path.
    OSError
        If it cannot be read.
    """
    path = local_path(path, "path")
    how: dict[str, Any] = {"mode": "rt", "encoding": "utf-8-sig", "errors": "backslashreplace"}
    with gzip.open(path, **how) if path.suffix == ".gz" else path.open(**how) as file:
        try:
            first = file.readline()
            is_market = first.lower().startswith(_BANNER)
            return _read_market(file, first, path) if is_market else _read_sms(file, first, path)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path}: {error}") from error


def _read_market(file: IO[str], first: str, path: Path) -> SparseMatrix:
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
    line, number = file.readline(), 2
    while line.startswith("%") or line.isspace():
        line, number = file.readline(), number + 1
    rows, columns, count = _header(line, 3, path)
    entries = _entries(file, number, 2 if field == "pattern" else 3, path)
    if len(entries) != count:
        raise InputError(f"{path}: the header tells of {count} entries, and there are {len(entries)}")
    if field == "unsigned-integer":
        _check(entries[:, 2] >= 0, entries, f"is negative, and the field is {field}", path)
    if sign := _SIGNS[symmetry]:
        if rows != columns:
            raise InputError(f"{path}: a {symmetry} matrix must be square, got {rows} x {columns}")
        if sign > 0:
            _check(
                entries[:, 0] >= entries[:, 1], entries, "is above the diagonal of a symmetric matrix", path
            )
        else:
            what = "is not below the diagonal of a skew-symmetric matrix"
            _check(entries[:, 0] > entries[:, 1], entries, what, path)
        turned = entries[entries[:, 0] != entries[:, 1]][:, [1, 0, 2]]
        turned[:, 2] *= sign
        entries = np.concatenate([entries, turned])
    return _matrix(entries, (rows, columns), path)


def _read_sms(file: IO[str], first: str, path: Path) -> SparseMatrix:
    words = first.split()
    if len(words) != 3 or words[2].isdigit():
        raise InputError(
            f"{path}: expected %%MatrixMarket, or rows, columns and M as an .sms file begins, got "
            f"{first.strip()!r:.80}"
        )
    rows, columns = _header(" ".join(words[:2]), 2, path)
    entries = _entries(file, 1, 3, path)
    ends = (entries == 0).all(axis=1).nonzero()[0]
    if len(ends) != 1 or ends[0] != len(entries) - 1:
        raise InputError(f"{path}: an .sms file ends with the line 0 0 0, which must be there once")
    return _matrix(entries[:-1], (rows, columns), path)


def _header(line: str, count: int, path: Path) -> list[int]:
    words = line.split()
    if len(words) != count or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"{path}: expected {count} lengths, got {line.strip()!r:.80}")
    return [min(int(gmpy2.mpz(word)), 2**63 - 1) for word in words]  # no file has as many


def _entries(file: IO[str], before: int, width: int, path: Path) -> NDArray[Any]:
    """Numbers (entries, 3) of the lines after the first `before`, int64 or, if one may not fit, objects."""
    pattern = re.compile(rf"\s*[+-]?[0-9]+(\s+[+-]?[0-9]+){{{width - 1}}}\s*(%.*)?", re.ASCII | re.DOTALL)
    lines = []
    for number, line in enumerate(file, before + 1):
        if pattern.fullmatch(line):
            lines.append(line)
        elif line.strip() and not line.lstrip().startswith("%"):
            raise InputError(f"{path}:{number}: expected {width} integers, got {line.strip()!r:.80}")
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


def _matrix(entries: NDArray[Any], shape: tuple[int, int], path: Path) -> SparseMatrix:
    for axis, (name, length) in enumerate(zip(("row", "column"), shape, strict=True)):
        places = entries[:, axis]
        _check((places >= 1) & (places <= length), entries, f"has a {name} out of the {length} {name}s", path)
    places = entries[:, :2].astype(np.int64) - 1
    try:
        return from_entries(places[:, 0], places[:, 1], entries[:, 2], shape)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _check(is_right: NDArray[Any], entries: NDArray[Any], what: str, path: Path) -> None:
    """Raise InputError that shows the first wrong entry."""
    if not is_right.all():
        k = int(np.argmin(is_right.astype(bool)))
        row, column, value = (abbreviate(int(v)) for v in entries[k])
        raise InputError(f"{path}: entry {k + 1}, {row} {column} {value}, {what}")
