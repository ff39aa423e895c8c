"""Reading sparse matrices of integers from files: Matrix Market's, and LinBox's ``.sms``."""

import gzip
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError
from rnsdask.sparse.matrix import SparseMatrix, from_entries

_BANNER = "%%matrixmarket"
_SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Signs of the entries above the diagonal, by the symmetry that a file tells."""


def read(path: str | Path) -> SparseMatrix:
    """Read a sparse matrix of integers of any size from a Matrix Market or an ``.sms`` file.

    The file's first line says which it is; a name that ends in ``.gz`` is that of a compressed file. A
    Matrix Market file has the format ``coordinate``, the field ``integer`` or ``pattern`` (all entries are 1)
    and the symmetry ``general``, ``symmetric`` or ``skew-symmetric``. An ``.sms`` file begins with rows,
    columns and a letter, and ends with ``0 0 0``. Entries of one place are added.

    Raises
    ------
    InputError
        If the file is none of these, or has something else than its header tells.
    """
    path = Path(path)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8-sig") as file:
        try:
            first = file.readline()
            is_market = first.lower().startswith(_BANNER)
            return _read_market(file, first, path) if is_market else _read_sms(file, first, path)
        except (EOFError, UnicodeDecodeError, gzip.BadGzipFile) as error:
            raise InputError(f"{path}: {error}") from error


def _read_market(file: IO[str], first: str, path: Path) -> SparseMatrix:
    words = first.lower().split()
    if len(words) != 5 or words[1:3] != ["matrix", "coordinate"] or words[4] not in _SIGNS:
        raise InputError(
            f"{path}: expected %%MatrixMarket matrix coordinate integer and general, symmetric or "
            f"skew-symmetric, got {first.strip()!r:.80}"
        )
    if words[3] not in ("integer", "unsigned-integer", "pattern"):
        raise InputError(f"{path}: the field must be integer or pattern, got {words[3]!r:.80}")
    line = file.readline()
    while line.startswith("%") or line.isspace():
        line = file.readline()
    rows, columns, count = _header(line, 3, path)
    entries = _entries(file, 2 if words[3] == "pattern" else 3, path)
    if len(entries) != count:
        raise InputError(f"{path}: the header tells of {count} entries, and there are {len(entries)}")
    sign = _SIGNS[words[4]]
    if sign:
        if rows != columns:
            raise InputError(f"{path}: a {words[4]} matrix must be square, got {rows} x {columns}")
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
    entries = _entries(file, 3, path)
    ends = (entries == 0).all(axis=1).nonzero()[0]
    if len(ends) != 1 or ends[0] != len(entries) - 1:
        raise InputError(f"{path}: an .sms file ends with the line 0 0 0, which must be there once")
    return _matrix(entries[:-1], (rows, columns), path)


def _header(line: str, count: int, path: Path) -> list[int]:
    words = line.split()
    if len(words) != count or not all(word.isdigit() for word in words):
        raise InputError(f"{path}: expected {count} lengths, got {line.strip()!r:.80}")
    return [int(word) for word in words]


def _entries(file: IO[str], width: int, path: Path) -> NDArray[Any]:
    """Numbers (entries, 3) of the rest of a file, int64 if they fit."""
    lines = file.readlines()
    if not any(line.strip() for line in lines):
        return np.empty((0, 3), np.int64)
    found: NDArray[Any]
    try:
        found = np.loadtxt(lines, np.int64, comments="%", ndmin=2)
    except (ValueError, OverflowError):
        try:
            found = np.loadtxt(lines, object, converters=int, comments="%", ndmin=2)
        except ValueError as error:
            raise InputError(f"{path}: {error}; entries are integers") from error
    if found.shape[1] != width:
        raise InputError(f"{path}: an entry has {width} integers, got {found.shape[1]}")
    if width == 2:
        found = np.concatenate([found, np.ones_like(found[:, :1])], axis=1)
    return found


def _matrix(entries: NDArray[Any], shape: tuple[int, int], path: Path) -> SparseMatrix:
    try:
        places = entries[:, :2].astype(np.int64) - 1
        return from_entries(places[:, 0], places[:, 1], entries[:, 2], shape)
    except (OverflowError, ValueError) as error:
        raise InputError(f"{path}: {error} (in the file, places are from 1)") from error
