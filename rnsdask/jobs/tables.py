"""Reading and writing integers in NumPy files and in columns of Parquet files."""

import io
import math
import tokenize
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.tables import (
    arrow_array,
    arrow_type,
    machine_type,
    parquet_errors,
    parquet_writer,
    pyarrow_for,
    text_array,
)
from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import Message, Setting
from rnsdask.io.integer_reading import Batch, BinaryReader, IntegerReader
from rnsdask.jobs.compute import Advance, map_ahead
from rnsdask.rns.values import flat_integers, range_of_arrow

COLUMN = "value"
"""Default name of a table's column."""

ROW_GROUP_BYTES = 2**25
"""Bytes in memory at which numbers are written as a row group."""

_MOST_ROWS = 2**14
"""Rows of a table that are read at a time; as Python ints they take a few megabytes."""


class NumpyReader(BinaryReader):
    """The integers of a NumPy file (.npy) of an integer type, in C order.

    The header is read at once. A file in Fortran order is read into memory. Without `lowest` and `highest`,
    all values of the type are allowed. InputError if the header is damaged, names another type, or does not
    match the file's length.
    """

    def __init__(
        self, stream: BinaryIO, name: str, lowest: int | None = None, highest: int | None = None
    ) -> None:
        shape, is_fortran, self._dtype = read_numpy_header(stream, name)
        if self._dtype.kind not in "iu":
            raise InputError(
                f"{name}: its NumPy array is of type {self._dtype}; import reads integers of 8 to 64 bits"
            )
        limits = np.iinfo(self._dtype)
        super().__init__(
            stream,
            name,
            int(limits.min) if lowest is None else lowest,
            int(limits.max) if highest is None else highest,
            width=self._dtype.itemsize,
            signed=self._dtype.kind == "i",
            byteorder="big" if self._dtype.str.startswith(">") else "little",
        )
        self.shape, self._is_fortran = shape, is_fortran and len(shape) > 1
        self._size = math.prod(shape) * self._dtype.itemsize
        self.held = 2 * self._size if self._is_fortran else 0

    def read(self, count: int) -> Batch:
        """Return the next integers: :meth:`.IntegerReader.read`."""
        if self._is_fortran:
            self._is_fortran = False
            data = self._stream.read(self._size)
            if len(data) < self._size:
                raise InputError(f"{self.name}: its header tells of {self._size} bytes, it holds {len(data)}")
            array = np.frombuffer(data, self._dtype).reshape(self.shape, order="F")
            self._stream = io.BytesIO(array.tobytes())
        return super().read(count)

    def _place(self, row: int) -> str:
        return f"{self.name}: index {self.count + row}"


_NUMPY_VERSIONS = ((1, 0), (2, 0), (3, 0))
"""Existing versions of the format of NumPy files."""

_DAMAGE = (ValueError, EOFError, SyntaxError, tokenize.TokenError, TypeError, RecursionError, MemoryError)
"""Errors that NumPy's parser raises for arbitrary bytes as a header."""


def read_numpy_header(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a NumPy file: its shape, whether it is in Fortran order, and its type.

    InputError if it is damaged, or of a version that does not exist.
    """
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _NUMPY_VERSIONS:
            major, minor = version
            raise InputError(f"{name}: its NumPy file is of version {major}.{minor}; import reads 1.0 to 3.0")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2
        with warnings.catch_warnings(action="ignore"):  # from Python's parser, which reads arbitrary bytes
            shape, is_fortran, kind = read(stream)
        if any(length < 0 for length in shape):
            raise ValueError(f"it has shape {shape}")
    except InputError:
        raise
    except _DAMAGE as error:
        problem = str(error).partition("\n")[0]
        raise InputError(f"{name}: the header of its NumPy file is damaged: {problem}") from None
    return tuple(map(int, shape)), is_fortran, kind


def _read_header_2(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_2_0(stream)


class _Values:
    """Some integers of a column, as :func:`.flat_integers` returns them."""

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

    def to_words(self, system: NumberSystem) -> NDArray[np.uint32]:
        """Convert to words of a system, (rows, integers)."""
        words: NDArray[np.uint32] = system.encode(self._values)
        return words


class ParquetReader(IntegerReader):
    """The integers of a column of a Parquet file, whose row groups are read one after the other.

    The stream must be seekable. `column` is the column's name, or its number from 1; by default, it is the
    only one, or the one named "value". Without limits, any integer is allowed. InputError without pyarrow, or
    if the file is not a Parquet file or has no such column of integers.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        column: str | None = None,
        lowest: int | None = None,
        highest: int | None = None,
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
        self._column = _column_of(name, schema.names, column)
        try:
            range_of_arrow(schema.field(schema.names.index(self._column)).type)
        except TypeError as error:
            raise InputError(Message(f"{name}: column {self._column!r:.80}: ", error)) from None
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
            values, _ = flat_integers(part)
        except ValueError:
            raise self._first_wrong(part.to_pylist()) from None
        return self._accept(_Values(values), part.nbytes)  # type: ignore[arg-type]

    def _first_wrong(self, values: list[Any]) -> InputError:
        """Error of the first value that is missing, or text that is not an integer."""
        for row, value in enumerate(values):
            if value is None:
                return InputError(f"{self._place(row)}: the value is missing")
            text = str(value).strip().encode("utf-8", "surrogatepass")
            if parse_integer(text) is None:
                return InputError(f"{self._place(row)}: {not_an_integer(text)}")
        raise AssertionError("all values are integers")

    def _place(self, row: int) -> str:
        return f"{self.name}: column {self._column!r:.80}, row {self.count + row + 1}"


def _column_of(name: str, names: list[str], column: str | None) -> str:
    """Name of the requested column, given by name or number."""
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
    raise InputError(
        Message(f"{name}: ", problem, Message("; ", Setting("column"), f" chooses one of {shown}"))
    )


# ---- Writing ----------------------------------------------------------------------------------------------


def write_numpy(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    integers: Callable[[Any], list[int]],
    shape: Sequence[int],
    limits: tuple[int, int],
    advance: Advance = lambda _: None,
) -> tuple[int, int]:
    """Write integers as a NumPy file: of int64, or of uint64 where that holds all of them and int64 does not.

    The lowest 64 bits are the same in both types, so the header can be rewritten at the end. `batches` are
    nonempty batches of numbers in C order, each with the index of its first; `integers` converts a batch, and
    `limits` is the known range. Return the numbers of integers and of bytes written. JobError if neither type
    holds all integers; or if the type depends on their values, and the stream is a pipe.
    """

    def converted(batch: tuple[int, Any]) -> tuple[int, int, int, bytes]:
        first, ints = batch[0], integers(batch[1])
        lowest, highest = min(ints), max(ints)
        kind = machine_type(lowest, highest)
        if kind is None:
            _refuse_wide(first, ints)
        return len(ints), lowest, highest, np.array(ints, dtype=kind).astype(f"<{kind.str[1:]}").tobytes()

    guess = machine_type(*limits) or np.dtype(np.int64)
    lowest = highest = done = 0
    written = _write_header(stream, guess, shape)
    for count, low, high, data in map_ahead(converted, batches):
        stream.write(data)
        done, written = done + count, written + len(data)
        lowest, highest = min(lowest, low), max(highest, high)
        advance(count)
    kind = machine_type(lowest, highest)
    if kind is None:
        raise JobError(
            f"the integers go from {abbreviate(lowest)} to {abbreviate(highest)}, which {_NEITHER}; {_WAY}"
        )
    if machine_type(*limits) is None and kind != guess:
        if not stream.seekable():
            raise JobError(
                f"the integers take uint64, as only the last of them tells; a pipe cannot say so; {_WAY}"
            )
        stream.seek(0)
        _write_header(stream, kind, shape)
    stream.flush()
    return done, written


_NEITHER = "neither int64 nor uint64 of a NumPy file holds"
_WAY = "a file named .parquet, .csv or .txt takes integers of any size"


def _refuse_wide(first: int, ints: Sequence[int]) -> NoReturn:
    """Raise JobError for integers that have no common type of 64 bits."""
    for index, value in enumerate(ints, first):
        if machine_type(value, value) is None:
            raise JobError(f"index {index}: {abbreviate(value)}, which {_NEITHER}; {_WAY}")
    raise JobError(
        f"the integers go from {abbreviate(min(ints))} to {abbreviate(max(ints))}, which {_NEITHER}; {_WAY}"
    )


def _write_header(stream: BinaryIO, kind: np.dtype[Any], shape: Sequence[int]) -> int:
    """Write the header of a NumPy file, and return its length, which is the same for both types."""
    header = {"descr": f"<{kind.str[1:]}", "fortran_order": False, "shape": tuple(shape)}
    counting = _Counting(stream)
    np.lib.format.write_array_header_1_0(counting, header)
    return counting.written


class _Counting:
    """A stream that counts the bytes written to another stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.written = stream, 0

    def write(self, data: bytes) -> int:
        self.written += len(data)
        return self._stream.write(data)


def write_parquet(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    integers: Callable[[Any], list[int]],
    lines: Callable[[Any], memoryview],
    limits: tuple[int, int],
    advance: Advance = lambda _: None,
) -> tuple[int, int]:
    """Write integers as the column of a Parquet file, of a type that holds the limits.

    Parameters and results are as in :func:`write_numpy`; `lines` converts a batch to lines of decimal text.
    JobError without pyarrow.
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
        for array in map_ahead(converted, batches):
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
