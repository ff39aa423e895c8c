"""Files of the entries of a matrix of fractions, by their positions."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rnsdask.arrays.reconstruction import Fractions
from rnsdask.cluster.limits import process_limit
from rnsdask.core.errors import InputError, JobError, brief
from rnsdask.core.integer_text import parse_integer
from rnsdask.core.places import local_path

_Entry: TypeAlias = tuple[tuple[int, int], Fraction]

_POSITION = re.compile(r"\(?\s*(\d{1,18})\s*,\s*(\d{1,18})\s*\)?", re.ASCII)
_ITEM_BYTES = 16
"""Bytes of an item of two arrays of objects; 0 and 1 are the same object in all of them."""


def read(path: str | Path) -> Fractions:
    """Read a matrix of fractions from a file of the entries that differ from 0, counted from 0.

    Parameters
    ----------
    path : str or Path
        A JSON object of positions and fractions, ``{"(0, 2)": "-1/2", "(5, 3)": "7"}``, or text with a row, a
        column and a fraction a line, ``0 2 -1/2``, as linac writes them
        (https://gdelaurentis.github.io/linac). A name that ends in ``.gz`` means a compressed file.

    Returns
    -------
    Fractions
        Object arrays of Python ints, in lowest terms, of as many rows and columns as the greatest indices
        need. An entry that is 0 in the last row and column stands for a greater shape.

    Raises
    ------
    InputError
        If the file holds anything else, or two entries of one position; it names the line or the position.
    JobError
        If the matrix takes more memory than this process may use.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib, rnsdask as rd
    >>> _ = pathlib.Path("a.json").write_text('{"(0, 1)": "3/2", "(1, 0)": "-1"}')
    >>> a = rd.linalg.read("a.json")
    >>> a.numerators.tolist(), a.denominators.tolist()
    ([[0, 3], [-1, 0]], [[1, 2], [1, 1]])
    """
    file = local_path(path, "path")
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        text = data.decode()
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: it is no text: {error}") from None
    entries = dict(_entries_of_json(text, str(path)) if text.lstrip()[:1] == "{" else _lines(text, str(path)))
    return _matrix(entries, str(path))


def _entries_of_json(text: str, name: str) -> Iterator[_Entry]:
    try:
        pairs = json.loads(text, object_pairs_hook=list, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: it is no JSON: {error}") from None
    seen: set[tuple[int, int]] = set()
    for key, value in pairs:
        found = _POSITION.fullmatch(key)
        if found is None:
            raise InputError(f"{name}: expected a position as '(0, 2)', got {brief(key)}")
        position = int(found[1]), int(found[2])
        yield _entry(position, value, seen, f"{name}: {position}")


def _lines(text: str, name: str) -> Iterator[_Entry]:
    seen: set[tuple[int, int]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 3 or not all(re.fullmatch(r"\d{1,18}", word, re.ASCII) for word in words[:2]):
            raise InputError(f"{name}:{number}: expected a row, a column and a fraction, got {brief(line)}")
        yield _entry((int(words[0]), int(words[1])), words[2], seen, f"{name}:{number}")


def _entry(position: tuple[int, int], value: object, seen: set[tuple[int, int]], where: str) -> _Entry:
    """Check an entry; InputError if its position was seen, or its value is no fraction."""
    if position in seen:
        raise InputError(f"{where}: two entries have the position {position}")
    seen.add(position)
    above, slash, below = value.partition("/") if isinstance(value, str) else ("", "", "")
    numerator = parse_integer(above.encode())
    denominator = parse_integer(below.encode()) if slash else 1
    if numerator is None or not denominator:
        raise InputError(f"{where}: expected an integer or a fraction as -1/2, got {brief(value)}")
    return position, Fraction(int(numerator), int(denominator))


def _matrix(entries: Mapping[tuple[int, int], Fraction], name: str) -> Fractions:
    rows, columns = (max((position[k] for position in entries), default=-1) + 1 for k in range(2))
    need = _ITEM_BYTES * rows * columns
    if need > (limit := process_limit()):
        raise JobError(
            f"{name}: a matrix of shape {(rows, columns)} takes {need / 1e9:.3g} GB, and this process may "
            f"use {limit / 1e9:.3g} GB; rd.sparse.from_entries makes sparse matrices of integers"
        )
    above: Any = np.zeros((rows, columns), object)
    below: Any = np.ones((rows, columns), object)
    for position, value in entries.items():
        above[position], below[position] = value.numerator, value.denominator
    return Fractions(above, below)
