"""Parquet files: reading the integers of a column, and writing them."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from rnsdask.core.errors import InputError, JobError, brief
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import Message, Setting
from rnsdask.io.arrow import arrow_array, arrow_type, pyarrow_for, text_array
from rnsdask.io.integer_reading import IntegerReader
from rnsdask.io.numpy_files import Mapped
from rnsdask.rns.values import check_bits, flat_integers, range_of_arrow

COLUMN = "value"
"""Name of the column of a table that has no other."""

ROW_GROUP_BYTES = 2**25
"""Bytes in memory from which on numbers are written as a row group."""

_MOST_ROWS = 2**14
"""Rows of a table that are read at a time: as Python ints they take some megabytes."""


@contextmanager
def parquet_errors(path: str) -> Iterator[None]:
    """Turn an error of pyarrow about a file's content into an InputError that names the file."""
    pyarrow = pyarrow_for("reading Parquet")
    try:
        yield
    except NotImplementedError as error:  # such as of integers of 128 bits, which polars writes
        way = "write such columns as decimals of scale 0, or as text"
        raise InputError(f"{path}: pyarrow does not read this Parquet file: {error}; {way}") from None
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # the last of columns' names
        if getattr(error, "errno", None) is not None:  # of the operating system
            raise
        raise InputError(f"{path}: it is no Parquet file, or damaged: {error}") from None


class _Values:
    """Some integers of a column, as :func:`.flat_integers` gives them."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def value(self, row: int) -> int:
        """The integer of a row."""
        return int(self._values[row])

    def extreme(self, *, largest: bool) -> int:
        """The largest or the smallest of at least one integer."""
        if isinstance(self._values, list):
            return int(max(self._values) if largest else min(self._values))
        return int(self._values.max() if largest else self._values.min())

    def to_words(self, system: NumberSystem) -> NDArray[Any]:
        """Their words in a system, (rows, integers)."""
        words: NDArray[Any] = system.encode(self._values)
        return words


class ParquetReader(IntegerReader):
    """The integers of a column of a Parquet file, whose row groups are read one after the other.

    The stream must be seekable. `column` is its name, or its number from 1; without it, it is the only one,
    or that of the name "value". With a `scale`, decimals become integers of units of ``10**-scale``. Any
    integer is allowed without limits. InputError without pyarrow, or if the file is not a Parquet file or has
    no such column of integers.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        column: str | None = None,
        lowest: int | None = None,
        highest: int | None = None,
        scale: int | None = None,
    ) -> None:
        ends: tuple[Any, Any] = (
            -math.inf if lowest is None else lowest,
            math.inf if highest is None else highest,
        )
        super().__init__(stream, name, *ends, signed=True)
        try:
            pyarrow = pyarrow_for("reading Parquet")
        except ImportError as error:
            raise InputError(Message(f"{name}: ", error)) from None
        with parquet_errors(name):
            self._file = pyarrow.parquet.ParquetFile(stream)
        schema = self._file.schema_arrow
        self._column = column_of(name, schema.names, column)
        try:
            range_of_arrow(schema.field(schema.names.index(self._column)).type, scale)
        except TypeError as error:
            raise InputError(Message(f"{name}: column {self._column!r:.80}: ", error)) from None
        self._scale = scale
        self._batches = self._file.iter_batches(_MOST_ROWS, columns=[self._column])
        self._rest: Any = ()

    def read(self, count: int) -> Any:
        """Return the next integers: :meth:`.IntegerReader.read`."""
        while not len(self._rest):
            with parquet_errors(self.name):
                batch = next(self._batches, None)
            if batch is None:
                return _Values([])
            self._rest = batch.column(0)
        part, self._rest = self._rest[:count], self._rest[count:]
        try:
            values, _ = flat_integers(part, self._scale)
        except ValueError:
            raise self._first_wrong(part.to_pylist()) from None
        return self._accept(_Values(values), part.nbytes)  # type: ignore[arg-type]

    def _first_wrong(self, values: list[Any]) -> InputError:
        """The error of the first value that is missing, or a text that is no integer."""
        for row, value in enumerate(values):
            if value is None:
                return InputError(f"{self._place(row)}: the value is missing")
            if isinstance(value, Decimal):  # an integer of the column's units
                continue
            text = str(value).strip().encode("utf-8", "surrogatepass")
            if parse_integer(text) is None:
                return InputError(f"{self._place(row)}: {not_an_integer(text)}")
        raise AssertionError("all values are integers")

    def _place(self, row: int) -> str:
        return f"{self.name}: column {self._column!r:.80}, row {self.count + row + 1}"


_WAY = Setting("column")
"""The option that names a column, for messages."""


def column_of(name: str, names: list[str], column: str | None, way: Any = _WAY) -> str:
    """Return the name of the column that is asked for, by name or number; in errors by the way `way`."""
    if column is None:
        if len(names) == 1 or names.count(COLUMN) == 1:
            return names[0] if len(names) == 1 else COLUMN
        problem = "it has several columns"
    elif names.count(column) == 1:
        return column
    elif column.isdecimal() and column.isascii() and len(column) < 9 and 1 <= int(column) <= len(names):
        found = names[int(column) - 1]
        if names.count(found) == 1:
            return found
        problem = f"it has several columns {found!r:.80}"
    else:
        problem = f"it has no column {column!r:.80}, or several"
    shown = ", ".join(f"{text!r:.80}" for text in names[:20]) + (", ..." if len(names) > 20 else "")
    raise InputError(Message(f"{name}: ", problem, Message("; ", way, f" chooses one of {shown}")))


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file, with the file's size and time of modification when it was opened."""

    path: str
    number: int
    rows: int
    state: tuple[int, int]

    def read(
        self, column: str, system: NumberSystem, scale: int | None = None, bits: int | None = None
    ) -> NDArray[Any]:
        """Read the words (rows, N) of a column; InputError if the file was changed, or a number is wrong.

        With `bits`, numbers of more bits are wrong.
        """
        if _state(self.path) != self.state:
            raise InputError(f"{self.path}: it was changed since it was opened")
        pyarrow = pyarrow_for("reading Parquet")
        with parquet_errors(self.path), pyarrow.parquet.ParquetFile(self.path) as file:
            values = file.read_row_group(self.number, columns=[column]).column(0)
        try:
            flat, shape = flat_integers(values, scale)
            if bits is not None:
                check_bits(flat, shape, bits, system.is_signed)
            return system.encode(flat)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self.path}: row group {self.number}, column {column!r:.80}: {error}"
            ) from None


def _state(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


def open_column(path: str, column: str) -> tuple[Any, list[RowGroup]]:
    """Return the type of a column of a file, and the file's row groups."""
    pyarrow = pyarrow_for("reading Parquet")
    state = _state(path)
    with parquet_errors(path), pyarrow.parquet.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if schema.names.count(column) != 1:
        raise InputError(f"{path}: it has no column {column!r:.80}, or several; it has {brief(schema.names)}")
    return schema.field(column).type, [RowGroup(path, i, n, state) for i, n in enumerate(rows)]


# ---- Writing ----------------------------------------------------------------------------------------------


@contextmanager
def parquet_writer(stream: BinaryIO, column: str, kind: Any) -> Iterator[Callable[..., None]]:
    """Write a Parquet file of one column; yields a function that writes arrays as a row group."""
    pyarrow = pyarrow_for("to_parquet")
    schema = pyarrow.schema([pyarrow.field(column, kind, nullable=False)])
    with pyarrow.parquet.ParquetWriter(stream, schema) as writer:

        def write(*arrays: Any) -> None:
            values = pyarrow.chunked_array(arrays, kind)
            if len(values):
                writer.write_table(pyarrow.table([values], schema=schema), row_group_size=len(values))

        yield write


def write_parquet(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    integers: Callable[[Any], list[int]],
    lines: Callable[[Any], memoryview],
    limits: tuple[int, int],
    mapped: Mapped = map,
    advance: Callable[[int], object] = lambda _: None,
) -> tuple[int, int]:
    """Write integers as the column of a Parquet file, of a type that holds the limits.

    Parameters and results are those of :func:`write_numpy`; `lines` gives the numbers as lines of decimal
    text. JobError if there is no pyarrow.
    """
    try:
        pyarrow_for("writing Parquet")
    except ImportError as error:
        raise JobError(str(error)) from None
    kind = arrow_type(*limits)
    is_text = range_of_arrow(kind) is None
    held: list[Any] = []
    nbytes = done = 0

    def converted(batch: tuple[int, Any]) -> Any:
        first, numbers = batch
        return text_array(lines(numbers)) if is_text else arrow_array(integers(numbers), kind, first)

    with parquet_writer(stream, COLUMN, kind) as write:
        for array in mapped(converted, batches):
            held.append(array)
            nbytes, done = nbytes + array.nbytes, done + len(array)
            if nbytes >= ROW_GROUP_BYTES:
                write(*held)
                held.clear()
                nbytes = 0
            advance(len(array))
        write(*held)
    stream.flush()
    return done, stream.tell()
