"""Reading integers from text and binary streams, in bounded memory, as limbs.

Text
    One integer a line, decimal or hexadecimal (``0x``), with an optional sign. Lines end in LF or CRLF; the
    last one need not. Spaces and tabs around an integer, blank lines, and a byte order mark before the first
    do not count, unless reading is strict: then line ``k`` (from 1) is the integer of index ``k - 1``.
Binary
    Records of a fixed width in bytes, little-endian or big-endian, unsigned or two's complement, without a
    header.

Wrong input is an `InputError` that names the stream and the line, or the index and byte.
"""

import os
import re
import stat
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, Protocol

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu import parse_decimal_lines, parse_lines
from rnsdask.constants import DECIMAL_DIGITS
from rnsdask.core import rows
from rnsdask.core.errors import InputError, abbreviate
from rnsdask.core.integer_text import not_an_integer, parse_integer, to_decimal
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.moduli import LIMB_BITS
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ranges import bits_of
from rnsdask.core.ways import Message, Setting, Way
from rnsdask.rns.blocks import BATCH_INTEGERS, BATCH_RESIDUES
from rnsdask.rns.decimal import decimal_to_ints
from rnsdask.rns.foreign import widened

ByteOrder = Literal["little", "big"]

_TEXT_BYTES = 2**18
"""Fewest bytes of text that are read from a stream at a time."""

_SPACES = b" \t"
_MOST_SPACES = 4096
"""Most characters of a line in addition to those of an integer."""

_FEW_ROWS = 512
"""Most integers whose limbs are compared several at a time; for more, one limb takes long enough."""

_SEPARATOR = re.compile(rb"[,;\t ]")
_DIGITS = re.compile(rb"[+-]?(?:0[xX][0-9a-fA-F]*|[0-9]*)")
_HEXADECIMAL = re.compile(rb"[ \t]*[+-]?0[xX][0-9a-fA-F]+[ \t]*\r?\n?")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""UTF-8 byte order mark, with which some text files begin."""

CSV_HEADER = b"value\n"
"""First line of a CSV file of integers, which names its column."""


class Readable(Protocol):
    """A stream of bytes, which may return more or fewer than requested, but nothing only at its end."""

    def read(self, size: int, /) -> bytes:
        """Read about `size` bytes; nothing only at the end."""
        ...


def remaining_bytes(stream: BinaryIO) -> int | None:
    """Return the number of unread bytes of a regular file; None for a pipe or any other stream."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # a stream in memory has no file descriptor
        return None
    return max(0, status.st_size - stream.tell()) if stat.S_ISREG(status.st_mode) else None


@dataclass(frozen=True)
class Batch:
    """Some integers of a stream: limbs of shape (integers, L), the least significant first.

    Limbs have 32 bits, in two's complement if `signed`; `decimal` limbs are in base 10**9 and ten's
    complement: the last one, 1 for a negative number, has the weight ``-10**(9 (L - 1))``.
    """

    limbs: NDArray[np.uint32]
    signed: bool
    decimal: bool = False

    def __len__(self) -> int:
        return len(self.limbs)

    def to_words(self, system: NumberSystem) -> NDArray[Any]:
        """Convert to words of a system, (rows, integers); ValueError if one is out of its range."""
        words: NDArray[Any]
        if self.decimal and rows.from_decimal.name not in system.table:
            return system.encode(decimal_to_ints(self.limbs, self.signed))
        if self.decimal:
            words = system.apply(rows.from_decimal, self.limbs, signed=self.signed)
            return words
        limbs, signed = self.limbs, self.signed
        if system.is_signed and not signed:
            limbs, signed = np.pad(limbs, ((0, 0), (0, 1))), True
        elif signed and rows.compare.name in system.table and not system.is_signed:
            if (limbs[:, -1] >> LIMB_BITS - 1).any():
                raise ValueError(f"a negative integer is out of the range of {system!r}")
            signed = False
        words = system.words_of_limbs(limbs, signed, int)
        return words

    def value(self, row: int) -> int:
        """Integer at a row, as a Python int."""
        if self.decimal:
            return decimal_to_ints(self.limbs[row : row + 1], self.signed)[0]
        return int.from_bytes(self.limbs[row].astype("<u4").tobytes(), "little", signed=self.signed)

    def extreme(self, *, largest: bool) -> int:
        """Largest or smallest integer of a nonempty batch."""
        rows: slice | NDArray[np.intp] = slice(None)
        count, above, width = *self.limbs.shape, 0
        # From the top limb down, keep the leading rows; usually a single one is left after the first limb.
        while above and count > 1:
            if width:  # skip limbs that are equal in all of a few rows, twice as many each time
                block = self.limbs[rows, max(0, above - width) : above]
                (different,) = (block != block[0]).any(axis=0).nonzero()
                if not different.size:
                    above, width = above - block.shape[1], 2 * width
                    continue
                above -= block.shape[1] - 1 - int(different[-1])
            above -= 1
            column: NDArray[Any] = self.limbs[rows, above]
            if self.signed and above == self.limbs.shape[1] - 1:
                column = column.view(np.int32) if not self.decimal else 1 - column
            leading = np.flatnonzero(column == (column.max() if largest else column.min()))
            width = int(len(leading) == count <= _FEW_ROWS)
            if len(leading) < count:
                rows, count = leading if isinstance(rows, slice) else rows[leading], len(leading)
        return self.value(0 if isinstance(rows, slice) else int(rows[0]))


class IntegerReader(ABC):
    """Reader of integers from `lowest` to `highest` from a stream, in batches of limbs.

    If the stream provides them, `shape` is the array's shape, and `nonzero` the most integers that are not 0.
    `held` is the memory in bytes that the stream takes in addition to batches. `names` are the fields of the
    first line, if it was skipped. So far `count` integers have been read, in `bytes_read` bytes; `least` and
    `greatest` are the extremes of these and 0.
    """

    def __init__(self, stream: Any, name: str, lowest: int, highest: int, signed: bool) -> None:
        self._stream, self.name = stream, name
        self.shape: tuple[int, ...] | None = None
        self.nonzero: int | None = None
        self.held = 0
        self.names: list[str] = []
        self._lowest, self._highest, self._signed = lowest, highest, signed
        self.count = self.least = self.greatest = self.bytes_read = 0

    @property
    def bound(self) -> int:
        """Largest absolute value of the integers read so far."""
        return max(self.greatest, -self.least)

    @abstractmethod
    def read(self, count: int) -> Batch:
        """Return the next integers, at most `count`; an empty batch only at the end of the stream.

        InputError for anything but integers, or an integer that is not between ``lowest`` and ``highest``.
        """

    @abstractmethod
    def _place(self, row: int) -> str:
        """Describe the place of an integer, `row` after those counted."""

    def _accept(self, batch: Batch, size: int) -> Batch:
        """Check the range of integers that took `size` bytes in the stream, and count them."""
        if len(batch):
            smallest, largest = batch.extreme(largest=False), batch.extreme(largest=True)
            if smallest < self._lowest or largest > self._highest:
                raise InputError(self._first_out_of_range(batch))
            self.least, self.greatest = min(self.least, smallest), max(self.greatest, largest)
        self.count += len(batch)
        self.bytes_read += size
        return batch

    def _first_out_of_range(self, batch: Batch) -> str:
        values = map(batch.value, range(len(batch)))
        row, value = next((i, value) for i, value in enumerate(values) if self._is_outside(value))
        return Message(f"{self._place(row)}: ", self._out_of_range(value))

    def _is_outside(self, value: int) -> bool:
        return not self._lowest <= value <= self._highest

    def _out_of_range(self, value: int) -> str:
        lowest, highest = abbreviate(self._lowest), abbreviate(self._highest)
        text = f"{abbreviate(value)} is not in the range of {lowest} to {highest}"
        return Message(text, self._way_out(value))

    def _way_out(self, value: int) -> str:
        """Way to hold an integer out of range, to be added to an error."""
        if value < 0 == self._lowest:
            return Message(" (", Way.SIGNED_ARRAY, ")")
        return Message("; ", Setting("bits", bits_of(value, self._lowest < 0)), " holds it")


class TextReader(IntegerReader):
    """Reader of a text stream; limbs suffice for the range, and are signed if it has negative numbers.

    Limbs are decimal up to the first hexadecimal line. If `strict`, spaces, blank lines and a byte order mark
    are errors. An integer may have `longest` characters, including leading zeros, or more if the range needs
    them. Lines that are fields `of_column` have neither a byte order mark nor a name in front.
    """

    def __init__(
        self,
        stream: Readable,
        name: str,
        lowest: int,
        highest: int,
        *,
        strict: bool = False,
        longest: int = 0,
        of_column: bool = False,
    ) -> None:
        super().__init__(stream, name, lowest, highest, signed=lowest < 0)
        self._strict, self._of_column = strict, of_column
        self._decimal = True
        # Lines before the current batch, and the number of its integers before each blank line.
        self._lines, self._blank = 0, array("q")
        bits = max(highest.bit_length(), (~lowest).bit_length() if self._signed else 1) + self._signed
        self._binary_limbs = -(-bits // LIMB_BITS)
        greatest = max(abs(lowest), abs(highest))
        needed = max(gmpy2.mpz(greatest).num_digits(10), len(f"0x{greatest:x}")) + 1  # the sign
        self._limit = max(needed, longest)
        self._decimal_limbs = -(-self._limit // DECIMAL_DIGITS) + self._signed
        # Most characters of a line, with two more for CRLF.
        self._longest_line = self._limit + 2 + (0 if strict else _MOST_SPACES)
        self._is_at_start = not strict and not of_column
        self._text, self._start = b"", 0  # text read from the stream, and where its next line starts

    def read(self, count: int) -> Batch:
        """Return the next integers: :meth:`IntegerReader.read`."""
        decimal = self._decimal
        limbs = np.empty((count, self._decimal_limbs if decimal else self._binary_limbs), dtype=np.uint32)
        parse = parse_decimal_lines if decimal else parse_lines
        how = (self._limit, 0 if self._strict else _MOST_SPACES, self._signed)
        row = size = 0
        while True:
            rows, end = parse(self._text, self._start, *how, limbs[row:])
            row, size, self._start = row + rows, size + end - self._start, end
            if row < count and self._read_on():
                continue
            line = self._next_line() if row < count else b""
            if decimal and _HEXADECIMAL.fullmatch(line):
                self._decimal = False
                break
            if not line:
                break
            self._start += len(line)
            # A line that the kernel does not parse: blank, long, without an end, or wrong.
            if not self._strict and self._is_blank(line):
                self._blank.append(row)
                size += len(line)
                continue
            value, problem = self._parse(line)
            if problem:
                # The first bad line is reported.
                self._accept(Batch(limbs[:row], self._signed, decimal), size)
                raise InputError(Message(f"{self._place(0)}: ", problem))
            plain = (to_decimal(value) if decimal else hex(value)).encode("ascii")
            rows, _ = parse(plain + b"\n", 0, len(plain), 0, self._signed, limbs[row : row + 1])
            assert rows == 1
            row, size = row + 1, size + len(line)
        batch = self._accept(Batch(limbs[:row], self._signed, decimal), size)
        return batch if row or decimal == self._decimal else self.read(count)

    def _accept(self, batch: Batch, size: int) -> Batch:
        super()._accept(batch, size)
        self._lines += len(batch) + len(self._blank)
        del self._blank[:]
        return batch

    def _place(self, row: int) -> str:
        return f"{self.name}:{self._lines + row + 1 + bisect_right(self._blank, row)}"

    def _read_on(self) -> bool:
        """Read more of the stream if the next line may be longer than the rest of the text."""
        # A longer line is cut there, so that an endless one never fills the memory.
        if len(self._text) - self._start >= self._longest_line:
            return False
        more = self._stream.read(max(_TEXT_BYTES, self._longest_line))
        if more:
            self._text, self._start = self._text[self._start :] + more, 0
            if self._is_at_start:
                self._begin()
        return bool(more)

    def _begin(self) -> None:
        """Skip a byte order mark and a CSV file's header, which a read from a pipe may cut."""
        self._is_at_start = False
        for begin in (BYTE_ORDER_MARK, CSV_HEADER[:-1] + b"\r\n", CSV_HEADER):
            while (text := self._text[self._start :]) != begin and begin.startswith(text):
                more = self._stream.read(1)
                if not more:
                    return
                self._text += more
            if text.startswith(begin):
                self._start += len(begin)
                self.bytes_read += len(begin)
                if begin is not BYTE_ORDER_MARK:
                    self._lines += 1
                    self.names.append(CSV_HEADER.decode().strip())

    def _next_line(self) -> bytes:
        cut = self._start + self._longest_line
        end = self._text.find(b"\n", self._start, cut) + 1
        return self._text[self._start : end or cut]

    def _is_blank(self, line: bytes) -> bool:
        return not self._is_cut(line) and not line.removesuffix(b"\n").removesuffix(b"\r").strip(_SPACES)

    def _is_cut(self, line: bytes) -> bool:
        return len(line) == self._longest_line and not line.endswith(b"\n")

    def _parse(self, line: bytes) -> tuple[Any, str]:
        """Return the integer of a line, and what is wrong with it, if anything."""
        is_cut = self._is_cut(line)
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        line = line if self._strict else line.strip(_SPACES)
        value = parse_integer(line)
        if value is None and not (is_cut and _DIGITS.fullmatch(line)):
            is_first = self._lines + len(self._blank) == 0
            has_columns = not self._strict and not self._of_column and (is_first or _SEPARATOR.search(line))
            hint = (
                Message("; ", Setting("column"), " chooses a column, by its number or name")
                if has_columns
                else ""
            )
            return None, Message(not_an_integer(line), hint)
        if is_cut or len(line) > self._limit:
            lowest, highest = abbreviate(self._lowest), abbreviate(self._highest)
            limit = f"the line has more than {self._limit} characters"
            is_known = not is_cut and self._is_outside(value)
            way = self._way_out(int(value)) if is_known else ""
            return None, Message(f"{limit}, longer than any integer from {lowest} to {highest}", way)
        return value, self._out_of_range(int(value)) if self._is_outside(value) else ""


class BinaryReader(IntegerReader):
    """Reader of records of `width` bytes, into limbs of the same width.

    In the byte order ``"little"``, the first byte is the least significant. InputError if the stream is a
    file whose size is not a multiple of the width.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        lowest: int,
        highest: int,
        *,
        width: int,
        signed: bool,
        byteorder: ByteOrder = "little",
    ) -> None:
        super().__init__(stream, name, lowest, highest, signed)
        self._width, self._byteorder = width, byteorder
        self._most = max(BATCH_INTEGERS, BATCH_RESIDUES * RESIDUE_DTYPE.itemsize // width)
        size = remaining_bytes(stream)
        if size is not None and size % width:
            raise InputError(self._trailing(size))

    def read(self, count: int) -> Batch:
        """Return the next integers: :meth:`IntegerReader.read`; a stream must not end within a record."""
        data = self._stream.read(min(count, self._most) * self._width)
        if len(data) % self._width:
            raise InputError(self._trailing(self.bytes_read + len(data)))
        octets = np.frombuffer(data, dtype=np.uint8).reshape(-1, self._width)
        if self._byteorder == "big":
            octets = octets[:, ::-1]
        return self._accept(Batch(widened(octets, self._signed), self._signed), len(data))

    def _place(self, row: int) -> str:
        return f"{self.name}: index {self.count + row} (byte {self.bytes_read + row * self._width})"

    def _trailing(self, size: int) -> str:
        return (
            f"{self.name}: its size of {size} bytes is not a multiple of the width of {self._width}: "
            f"{size % self._width} bytes remain after the last whole integer"
        )
