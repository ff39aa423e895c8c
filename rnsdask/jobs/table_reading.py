"""Reading integers of NumPy files and of columns of Parquet files, in bounded memory."""

import io
import math
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.tables import pyarrow_for
from rnsdask.core.errors import InputError
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.fields.system import PrimeFields
from rnsdask.jobs.integer_reading import Batch, BinaryReader, IntegerReader
from rnsdask.jobs.table_writing import COLUMN
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS
from rnsdask.rns.values import flat_integers, range_of_arrow

_MOST_ROWS = 2**14
"""Rows of a table that are read at a time: as Python ints they take some megabytes."""


class NumpyReader(BinaryReader):
    """The integers of a NumPy file (.npy) of an integer type, in C order.

    The header is read at once. A file in Fortran order is read into memory.

    Parameters
    ----------
    stream : binary stream
        What is read.
    name : str
        The stream's name in error messages.
    lowest, highest : int, optional
        The values allowed, both included; without them, those of the type.

    Attributes
    ----------
    shape : tuple of int
        The shape of the array.
    held : int
        Bytes that the file takes in memory.

    Raises
    ------
    InputError
        If the header is damaged, or of another type, or the file is not of its length.
    """

    def __init__(
        self, stream: BinaryIO, name: str, lowest: int | None = None, highest: int | None = None
    ) -> None:
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2
            self.shape, self._is_fortran, self._dtype = read(stream)
        except (ValueError, EOFError) as error:
            raise InputError(f"{name}: the header of its NumPy file is damaged: {error}") from None
        if self._dtype.kind not in "iu":
            raise InputError(
                f"{name}: its NumPy array is of type {self._dtype}; import reads integers of 8 to 64 bits"
            )
        limits = np.iinfo(self._dtype)
        super().__init__(
            stream,
            name,
            self._dtype.itemsize,
            int(limits.min) if lowest is None else lowest,
            int(limits.max) if highest is None else highest,
            signed=self._dtype.kind == "i",
            byteorder="big" if self._dtype.str.startswith(">") else "little",
        )
        self._is_fortran &= len(self.shape) > 1
        size = math.prod(self.shape) * self._dtype.itemsize
        self.held = 2 * size if self._is_fortran else 0

    def read(self, count: int) -> Batch:
        """Return the next integers: :meth:`.IntegerReader.read`."""
        if self._is_fortran:
            self._is_fortran = False
            size = math.prod(self.shape) * self._dtype.itemsize
            data = self._stream.read(size)
            if len(data) < size:
                raise InputError(f"{self._name}: its header tells of {size} bytes, it holds {len(data)}")
            array = np.frombuffer(data, self._dtype).reshape(self.shape, order="F")
            self._stream = io.BytesIO(array.tobytes())
        return super().read(count)

    def _place(self, row: int) -> str:
        return f"{self._name}: index {self.count + row}"


def _read_header_2(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_2_0(stream)


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

    def to_words(self, system: RNS | Positional | PrimeFields) -> NDArray[np.uint32]:
        """Their words in a system, (rows, integers)."""
        words: NDArray[np.uint32] = system.encode(self._values)
        return words


class ParquetReader(IntegerReader):
    """The integers of a column of a Parquet file, whose row groups are read one after the other.

    Parameters
    ----------
    stream : binary stream
        What is read; it must be seekable.
    name : str
        The stream's name in error messages.
    column : str, optional
        The column's name, or its number from 1. Without it, the only one, or that of the name "value".
    lowest, highest : int, optional
        The values allowed, both included.

    Raises
    ------
    InputError
        If there is no pyarrow, the file is no Parquet file, or it has no such column of integers.
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
            raise InputError(f"{name}: {error}") from None
        try:
            self._file = pyarrow.parquet.ParquetFile(stream)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise InputError(f"{name}: it is no Parquet file: {error}") from None
        schema = self._file.schema_arrow
        self._column = _column_of(name, schema.names, column)
        try:
            range_of_arrow(schema.field(schema.names.index(self._column)).type)
        except TypeError as error:
            raise InputError(f"{name}: column {self._column!r:.80}: {error}") from None
        self._batches = self._file.iter_batches(_MOST_ROWS, columns=[self._column])
        self._rest: Any = ()

    def read(self, count: int) -> Any:
        """Return the next integers: :meth:`.IntegerReader.read`."""
        while not len(self._rest):
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
        """The error of the first value that is missing, or a text that is no integer."""
        for row, value in enumerate(values):
            if value is None:
                return InputError(f"{self._place(row)}: the value is missing")
            text = str(value).strip().encode("utf-8", "surrogatepass")
            if parse_integer(text) is None:
                return InputError(f"{self._place(row)}: {not_an_integer(text)}")
        raise AssertionError("all values are integers")

    def _place(self, row: int) -> str:
        return f"{self._name}: column {self._column!r:.80}, row {self.count + row + 1}"


def _column_of(name: str, names: list[str], column: str | None) -> str:
    """The name of the column that is asked for, by name or number."""
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
    raise InputError(f"{name}: {problem}; column= chooses one of {shown}")
