"""Readers of the integers of an input, by its kind and the form that it was told to have."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from rnsdask.core.file_formats import MATRIX_MARKET, NUMPY, PARQUET, RECORDS, TEXT
from rnsdask.fields.system import PrimeFields
from rnsdask.jobs.integer_reading import BinaryReader, IntegerReader, Readable, TextReader
from rnsdask.jobs.integers import IntegerSource, System
from rnsdask.jobs.line_forms import plain_lines
from rnsdask.jobs.matrix_market import MatrixMarketReader, range_of_matrix
from rnsdask.jobs.number_range import NumberRange, range_of_lines
from rnsdask.jobs.table_reading import NumpyReader, ParquetReader
from rnsdask.rns.blocks import BATCH_INTEGERS

_Advance = Callable[[int], object]


@dataclass(frozen=True)
class InputForm:
    """How an input has its integers.

    Attributes
    ----------
    kind : str
        Text, records, or a format of :mod:`.file_formats`.
    column : str, optional
        The column of text, as :func:`.plain_lines` takes it, or of a Parquet file.
    hexadecimal, strict : bool
        Whether text is hexadecimal also without ``0x``, and whether only integers and ends of lines are
        allowed.
    records : dict
        Width and byte order of records.
    signed : bool
        Whether records are in two's complement.
    """

    kind: str
    column: str | None = None
    hexadecimal: bool = False
    strict: bool = False
    records: dict[str, Any] = field(default_factory=dict)
    signed: bool = False

    @property
    def has_plain_bytes(self) -> bool:
        """Whether the bytes that its reader counts are those of the input."""
        return self.kind != PARQUET and self.column is None and not self.hexadecimal

    def needs_range(self, system: System | None) -> bool:
        """Whether integers can be read into a system only when their range is known."""
        return system is None or (isinstance(system, PrimeFields) and self.kind in (TEXT, MATRIX_MARKET))

    def range_of(self, stream: Any, name: str, advance: _Advance = lambda _: None) -> NumberRange:
        """Read all integers, and return their range.

        Parameters
        ----------
        advance : callable
            Told how many more bytes are read.

        Raises
        ------
        InputError
            If the input is not of its kind; what is wrong with a line of text is left to who reads it.
        """
        if self.kind == TEXT:
            return range_of_lines(self._lines(stream, name), name, advance=advance)
        if self.kind == MATRIX_MARKET:
            return range_of_matrix(stream, name, advance)
        reader = self._reader_of_table(stream, name, (None, None))
        before = 0
        while len(reader.read(BATCH_INTEGERS)):
            advance(reader.bytes_read - before)
            before = reader.bytes_read
        return NumberRange(reader.least, reader.greatest)

    def reader(
        self, stream: Any, name: str, system: System, found: NumberRange | None = None
    ) -> IntegerSource:
        """Return what reads the integers that a system allows; `found` is their range, where it is known."""
        limits: tuple[Any, Any] = system.value_range
        if isinstance(system, PrimeFields):  # any integer stands for an element
            limits = (None, None) if found is None else (found.lowest, found.highest)
        if self.kind == MATRIX_MARKET:
            return MatrixMarketReader(stream, name, system, limits)
        if self.kind != TEXT:
            return self._reader_of_table(stream, name, limits)
        longest = 0 if found is None else found.longest
        return TextReader(self._lines(stream, name), name, *limits, strict=self.strict, longest=longest)

    def _lines(self, stream: BinaryIO, name: str) -> Readable:
        how: dict[str, Any] = {"column": self.column, "hexadecimal": self.hexadecimal}
        return plain_lines(stream, name, has_comments=not self.strict, **how)

    def _reader_of_table(self, stream: BinaryIO, name: str, limits: tuple[Any, Any]) -> IntegerReader:
        """Return what reads an input that is no text, with limits or None."""
        if self.kind == NUMPY:
            return NumpyReader(stream, name, *limits)
        if self.kind == PARQUET:
            return ParquetReader(stream, name, self.column, *limits)
        assert self.kind == RECORDS
        most = 256 ** self.records["width"]
        lowest, highest = (-most, most) if limits[0] is None else limits
        how: dict[str, Any] = {"lowest": lowest, "highest": highest, "signed": self.signed}
        return BinaryReader(stream, name, **how, **self.records)
