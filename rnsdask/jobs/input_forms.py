"""Forms of inputs of integers: text, Matrix Market, NumPy, Parquet, records."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from numpy.typing import NDArray

from rnsdask.core.file_formats import MATRIX_MARKET, NUMPY, PARQUET, RECORDS, TEXT
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ranges import range_of_bits
from rnsdask.core.rows import compare
from rnsdask.io.integer_reading import BinaryReader, ByteOrder, IntegerReader, Readable, TextReader
from rnsdask.io.line_forms import NumberRange, plain_lines, range_of_lines
from rnsdask.io.matrix_market import MatrixMarketReader, range_of_matrix
from rnsdask.io.numpy_files import NumpyReader
from rnsdask.io.parquet import ParquetReader
from rnsdask.jobs.compute import Advance
from rnsdask.rns.blocks import BATCH_INTEGERS


class Integers(Protocol):
    """Some integers, such as a :class:`.Batch`."""

    def __len__(self) -> int: ...

    def to_words(self, system: NumberSystem, /) -> NDArray[Any]:
        """Convert them to words of a system, of shape (rows, integers)."""
        ...


class IntegerSource(Protocol):
    """A sequential source of integers, with the attributes of :class:`.IntegerReader`."""

    name: str
    held: int
    names: list[str]
    count: int
    bytes_read: int

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the array, or None if the source does not give it."""
        ...

    @property
    def nonzero(self) -> int | None:
        """Most integers that are not 0, or None if the source does not give it."""
        ...

    @property
    def bound(self) -> int:
        """The largest absolute value among the integers read so far."""
        ...

    def read(self, count: int) -> Integers:
        """Read the next integers."""
        ...


class InputForm(ABC):
    """Form of an input of integers; `kind` is text, records, or one of :mod:`.file_formats`."""

    kind: str

    @property
    def has_plain_bytes(self) -> bool:
        """Whether the bytes that its reader counts are the input's own."""
        return True

    def needs_range(self, system: NumberSystem | None) -> bool:
        """Whether the range of the integers must be known to read them into a system."""
        return system is None

    @abstractmethod
    def range_of(self, stream: Any, name: str, advance: Advance = lambda _: None) -> NumberRange:
        """Read all integers of a stream, called `name` in messages, and return their range.

        `advance` is called with the bytes read since its last call. InputError if the input is not of its
        kind; a wrong line of text is left to the reader.
        """

    @abstractmethod
    def reader(self, stream: Any, name: str, allowed: "Allowed") -> IntegerSource:
        """Return a reader of the integers that are allowed."""


@dataclass(frozen=True)
class Allowed:
    """Integers that an import takes.

    Attributes
    ----------
    system : NumberSystem
        Their number system.
    found : NumberRange, optional
        Their range, if it is known.
    bits : int, optional
        Length in bits that the user gives them, with the sign in a signed system; the system may hold more.
    """

    system: NumberSystem
    found: NumberRange | None = None
    bits: int | None = None

    @property
    def limits(self) -> tuple[Any, Any]:
        """Least and greatest integer; for elements, which take any, those found."""
        if is_of_elements(self.system):
            return (None, None) if self.found is None else (self.found.lowest, self.found.highest)
        return (
            self.system.value_range if self.bits is None else range_of_bits(self.bits, self.system.is_signed)
        )


@dataclass(frozen=True)
class TextForm(InputForm):
    """Lines of text.

    Attributes
    ----------
    column : str, optional
        The column, as :func:`.plain_lines` takes it.
    header : bool, optional
        Whether the first line of text in columns has names; by default, the line itself decides.
    hexadecimal, strict : bool
        Whether text is hexadecimal also without ``0x``, and whether only integers and ends of lines are
        allowed.
    json : bool
        Whether lines are JSON, of which `column` names a field.
    """

    kind = TEXT
    column: str | None = None
    header: bool | None = None
    hexadecimal: bool = False
    strict: bool = False
    json: bool = False

    @property
    def has_plain_bytes(self) -> bool:
        """Whether lines are read as they are."""
        return self.column is None and not self.hexadecimal and not self.json

    def needs_range(self, system: NumberSystem | None) -> bool:
        """Whether lengths of integers must be known: those for elements may have any length."""
        return system is None or is_of_elements(system)

    def range_of(self, stream: Any, name: str, advance: Advance = lambda _: None) -> NumberRange:
        """Read all lines."""
        lines = self._lines(stream, name)
        return range_of_lines(lines, name, of_column=self._is_made, advance=advance)

    def reader(self, stream: Any, name: str, allowed: Allowed) -> IntegerSource:
        """Return a reader, which collects the names of columns."""
        names: list[str] = []
        lines, of_column = self._lines(stream, name, names), self._is_made
        longest = 0 if allowed.found is None else allowed.found.longest
        strict = self.strict and not of_column  # lines of a column are checked already
        how: dict[str, Any] = {"strict": strict, "longest": longest, "of_column": of_column}
        reader = TextReader(lines, name, *allowed.limits, **how)
        reader.names = names
        return reader

    @property
    def _is_made(self) -> bool:
        """Whether lines are fields of the input's lines."""
        return self.column is not None or self.json

    def _lines(self, stream: BinaryIO, name: str, names: list[str] | None = None) -> Readable:
        how: dict[str, Any] = {
            "column": self.column,
            "header": self.header,
            "names": names,
            "json": self.json,
        }
        return plain_lines(stream, name, hexadecimal=self.hexadecimal, strict=self.strict, **how)


class MatrixMarketForm(InputForm):
    """A Matrix Market file."""

    kind = MATRIX_MARKET

    def needs_range(self, system: NumberSystem | None) -> bool:
        """Whether lengths of integers must be known, as for text."""
        return system is None or is_of_elements(system)

    def range_of(self, stream: Any, name: str, advance: Advance = lambda _: None) -> NumberRange:
        """Read all entries."""
        return range_of_matrix(stream, name, advance)

    def reader(self, stream: Any, name: str, allowed: Allowed) -> IntegerSource:
        """Return a reader, which gives the shape."""
        return MatrixMarketReader(stream, name, allowed.system, allowed.limits)


class _BinaryForm(InputForm):
    """Integers in a binary form."""

    def range_of(self, stream: Any, name: str, advance: Advance = lambda _: None) -> NumberRange:
        """Read all integers."""
        reader = self._reader(stream, name, (None, None))
        before = 0
        while len(reader.read(BATCH_INTEGERS)):
            advance(reader.bytes_read - before)
            before = reader.bytes_read
        return NumberRange(reader.least, reader.greatest)

    def reader(self, stream: Any, name: str, allowed: Allowed) -> IntegerSource:
        """Return a reader with these limits."""
        return self._reader(stream, name, allowed.limits)

    @abstractmethod
    def _reader(self, stream: BinaryIO, name: str, limits: tuple[Any, Any]) -> IntegerReader:
        """Return a reader with limits or None."""


class NumpyForm(_BinaryForm):
    """A NumPy file."""

    kind = NUMPY

    def _reader(self, stream: BinaryIO, name: str, limits: tuple[Any, Any]) -> IntegerReader:
        return NumpyReader(stream, name, *limits)


@dataclass(frozen=True)
class ParquetForm(_BinaryForm):
    """A Parquet file, with a column by name or number, and the scale of its decimals."""

    kind = PARQUET
    column: str | None = None
    scale: int | None = None

    @property
    def has_plain_bytes(self) -> bool:
        """Return False: Parquet files are compressed."""
        return False

    def _reader(self, stream: BinaryIO, name: str, limits: tuple[Any, Any]) -> IntegerReader:
        return ParquetReader(stream, name, self.column, *limits, self.scale)


@dataclass(frozen=True)
class RecordForm(_BinaryForm):
    """Records of a fixed width in bytes, in two's complement if signed."""

    kind = RECORDS
    width: int
    byteorder: ByteOrder = "little"
    signed: bool = False

    def _reader(self, stream: BinaryIO, name: str, limits: tuple[Any, Any]) -> IntegerReader:
        most = 256**self.width
        lowest, highest = (-most, most) if limits[0] is None else limits
        how: dict[str, Any] = {"signed": self.signed, "width": self.width, "byteorder": self.byteorder}
        return BinaryReader(stream, name, lowest, highest, **how)


def is_of_elements(system: NumberSystem) -> bool:
    """Whether numbers of a system are elements, which any integer stands for, so that they have no order."""
    return compare.name not in system.table
