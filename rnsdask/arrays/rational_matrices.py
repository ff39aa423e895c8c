"""Matrices of fractions as operands of linear algebra, and files of their entries."""

import gzip
import json
import numbers
import operator
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.creation import from_ints
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.reconstruction import Fractions
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.cluster.limits import process_limit
from rnsdask.core.errors import InputError, JobError, brief, with_article
from rnsdask.core.integer_text import parse_integer
from rnsdask.core.places import local_path
from rnsdask.core.ways import must
from rnsdask.typing import RationalMatrix

_Entry: TypeAlias = tuple[tuple[int, int], Fraction]

_POSITION = re.compile(r"\(?\s*(\d{1,18})\s*,\s*(\d{1,18})\s*\)?", re.ASCII)
_ITEM_BYTES = 16
"""Bytes of an item of two arrays of objects; 0 and 1 are the same object in all of them."""


# ---- operands ---------------------------------------------------------------------------------------------


def is_rational(x: object) -> TypeGuard[RationalMatrix]:
    """Whether an operand is a matrix of fractions, rather than an array of numbers or integers alone."""
    if isinstance(x, Fractions):
        return True
    if isinstance(x, NumberArray) or not isinstance(x, np.ndarray | Sequence) or isinstance(x, str | bytes):
        return False
    return any(map(_is_fraction, x.flat if isinstance(x, np.ndarray) and x.dtype == object else _items(x)))


def clear_denominators(name: str, *operands: Any) -> tuple[tuple[RNSArray, ...], NDArray[np.object_]]:
    """Multiply each row of matrices side by side by its least common denominator.

    Ranks, echelon forms, null vectors and solutions stay the same. An operand of one axis is a column.

    Returns
    -------
    RNSArrays of the operands' shapes
        In memory.
    object array of int, shape (..., R)
        The multipliers of rows.

    Raises
    ------
    TypeError
        If an operand holds anything but integers and fractions; it names the first such item.
    ValueError
        If lists have no shape, or a denominator is 0 or has another shape than its matrix.
    """
    parts = [_over_denominators(name, x) for x in operands]
    columns = [tuple(part[:, None] if part.ndim == 1 else part for part in pair) for pair in parts]
    multipliers = [np.lcm.reduce(below, axis=-1, initial=1) for _, below in columns]
    try:
        multiplier = reduce(np.lcm, multipliers)
        scaled = [above * (multiplier[..., None] // below) for above, below in columns]
    except ValueError:  # rows that do not fit, of which the function itself speaks
        scaled, multiplier = [above for above, _ in columns], multipliers[0]
    whole = [
        items if above.ndim > 1 else items[..., 0] for items, (above, _) in zip(scaled, parts, strict=True)
    ]
    return tuple(from_ints(items, chunks=None) for items in whole), multiplier


def _is_fraction(item: object) -> bool:
    """Whether it is a number with a denominator, of Python, gmpy2, FLINT or SymPy."""
    return hasattr(item, "denominator") and not isinstance(item, numbers.Integral)


def _items(x: Iterable[Any]) -> Iterable[Any]:
    """Items of nested lists."""
    return (leaf for item in x for leaf in (_items(item) if isinstance(item, list | tuple) else (item,)))


def _over_denominators(name: str, x: Any) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Numerators of a matrix and, of the same shape, positive denominators."""
    if not isinstance(x, Fractions):
        return _parts_of(name, x)
    above, below = (_parts_of(name, part)[0] for part in (x.numerators, x.denominators))
    if below.ndim not in (0, above.ndim):
        raise ValueError(
            f"{name} takes one denominator, or denominators that broadcast to shape {above.shape}, got shape "
            f"{below.shape}; denominators[..., None] are those of rows"
        )
    below = np.broadcast_to(below, above.shape)
    if not below.all():
        index = tuple(map(int, np.argwhere(below == 0)[0]))
        raise ValueError(must("denominators", f"not be 0, got 0 at index {index}"))
    return np.where(below < 0, -above, above), np.abs(below)


def _parts_of(name: str, x: Any) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Numerators and denominators of integers and fractions; lazy ones are computed."""
    if isinstance(x, NumberArray) and not isinstance(x, IntegerArray):
        raise TypeError(
            f"{name} of fractions takes arrays of integers beside them, got {with_article(type(x))}; in "
            "fields fractions are rd.from_ints(numerators, fields) / rd.from_ints(denominators, fields)"
        )
    in_memory = x.compute() if hasattr(x, "compute") else x
    items = x.to_ints() if isinstance(x, NumberArray) else np.array(in_memory, dtype=object)
    above, below = np.empty_like(items), np.empty_like(items)
    for index, item in np.ndenumerate(items):
        try:
            above[index], below[index] = int(item.numerator), int(item.denominator)
        except AttributeError:
            if not hasattr(item, "__index__"):
                raise TypeError(
                    f"{name} takes integers and fractions, got {brief(item)} at index {index}"
                ) from None
            above[index], below[index] = operator.index(item), 1
    return above, below


# ---- files ------------------------------------------------------------------------------------------------


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
