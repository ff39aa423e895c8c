"""Labels in files: columns of Parquet, CSV or TSV, fields of JSON lines, NumPy arrays, or lines of text."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rnsdask.core.errors import InputError, brief
from rnsdask.core.file_formats import (
    CSV,
    NUMPY,
    PARQUET,
    TEXTS,
    format_of_begin,
    format_of_name,
    is_json_lines,
)
from rnsdask.core.ways import Message
from rnsdask.io.arrow import pyarrow_for
from rnsdask.io.compression import decompressed, first_bytes
from rnsdask.io.parquet import column_of, parquet_errors

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
"""Text that is an integer whose text it is, unlike ``007``."""

_LONGEST_INTEGER = 4000
"""Most characters of a label that is read as an integer, within the limit of Python's ``int``."""

_DELIMITERS = ",;\t"


def read_labels(path: Path, column: str | None) -> Any:
    """Read labels from a file: a column of Arrow, a NumPy array, or a list of texts, integers or tuples.

    `column` is a name, or a number from 1; with a name, the first line of CSV has the names. InputError for a
    label that is missing, a column that is not there, or a damaged file.
    """
    name = str(path)
    with path.open("rb") as raw, decompressed(raw, name, by_content=True) as stream:
        kind = format_of_begin(first_bytes(stream)) or format_of_name(name)
        if kind == PARQUET:
            return _of_parquet(stream, name, column)
        if kind == NUMPY:
            _check_no_column(name, column, kind)
            return _of_numpy(stream, name)
        if kind not in (None, *TEXTS.values()):
            raise InputError(f"{name}: labels come from Parquet, CSV, JSON lines, NumPy or text, got {kind}")
        if is_json_lines(name):
            return list(_of_json(stream, name, column))
        if kind in (CSV, TEXTS[".tsv"]):
            return _integers_or_texts(list(_of_csv(stream, name, column)))
        _check_no_column(name, column, kind or "a text file")
        return _integers_or_texts(list(_of_lines(stream, name)))


def _check_no_column(name: str, column: str | None, kind: str) -> None:
    if column is not None:
        raise InputError(f"{name}: {kind} has no columns, got column {column!r:.80}")


def _of_parquet(stream: BinaryIO, name: str, column: str | None) -> Any:
    try:
        pyarrow = pyarrow_for("reading Parquet")
    except ImportError as error:
        raise InputError(Message(f"{name}: ", error)) from None
    with parquet_errors(name), pyarrow.parquet.ParquetFile(pyarrow.BufferReader(stream.read())) as file:
        chosen = column_of(name, file.schema_arrow.names, column, "FILE:COLUMN")
        return file.read(columns=[chosen]).column(chosen)


def _of_numpy(stream: BinaryIO, name: str) -> Any:
    try:
        return np.load(io.BytesIO(stream.read()), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{name}: it is no NumPy file (.npy) of labels, or damaged: {error}") from None


def _text_of(stream: BinaryIO, name: str) -> io.StringIO:
    try:
        return io.StringIO(stream.read().decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: it is no UTF-8 text: {error.reason} at byte {error.start}") from None


def _of_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    for number, line in enumerate(_text_of(stream, name).read().splitlines(), 1):
        if not line:
            raise InputError(f"{name}:{number}: the label is empty")
        yield line


def _of_csv(stream: BinaryIO, name: str, column: str | None) -> Iterator[str]:
    text = _text_of(stream, name)
    first = text.readline()
    text.seek(0)
    reader = csv.reader(text, delimiter=max(_DELIMITERS, key=first.count), strict=True)
    place: int | None = None
    try:
        for row in reader:
            if not row:
                continue
            if place is None:
                place, is_named = _column_of_row(name, row, column)
                if is_named:
                    continue
            if len(row) <= place or not row[place]:
                raise InputError(f"{name}:{reader.line_num}: the label in column {place + 1} is missing")
            yield row[place]
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num}: {error}") from None


def _column_of_row(name: str, row: list[str], column: str | None) -> tuple[int, bool]:
    """Return the place of a column, from the first row, and whether that has names."""
    if column is None:
        if len(row) == 1:
            return 0, False
    elif row.count(column) == 1:
        return row.index(column), True
    elif column.isdecimal() and 1 <= int(column[:9]) <= len(row):
        return int(column) - 1, False
    problem = "it has several columns" if column is None else f"it has no column {column!r:.80}, or several"
    raise InputError(f"{name}: {problem}; FILE:COLUMN chooses one of {brief(row)}")


_JSON_TYPES: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", str: "text"}


def _type_of_json(value: Any) -> tuple[str, ...]:
    """Type of a label in JSON, or types of its parts: of several, 1 and true would be one label."""
    return tuple(
        _JSON_TYPES.get(type(part), "an array") for part in (value if isinstance(value, list) else [value])
    )


def _of_json(stream: BinaryIO, name: str, column: str | None) -> Iterator[Any]:
    first: tuple[str, ...] | None = None
    for number, line in enumerate(_text_of(stream, name).read().split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InputError(f"{name}:{number}: it is no JSON: {error}") from None
        if column is not None:
            if not isinstance(value, dict) or column not in value:
                raise InputError(f"{name}:{number}: the object has no field {column!r:.80}")
            value = value[column]
        if value is None or isinstance(value, dict):
            kind = "missing" if value is None else "an object; FILE:FIELD chooses one of its fields"
            raise InputError(f"{name}:{number}: the label is {kind}")
        first = first or _type_of_json(value)
        if (found := _type_of_json(value)) != first:
            one, others = map(", ".join, (found, first))
            raise InputError(f"{name}:{number}: the label is {one}, and the labels before are {others}")
        yield tuple(value) if isinstance(value, list) else value


def _integers_or_texts(texts: list[str]) -> list[Any]:
    """Convert texts to integers if all are integers as Python writes them."""
    if all(len(text) < _LONGEST_INTEGER and _INTEGER.fullmatch(text) for text in texts):
        return list(map(int, texts))
    return texts
