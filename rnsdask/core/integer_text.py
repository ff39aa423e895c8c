"""Reading integers from text and binary streams, and writing them, in bounded memory.

Text
    One integer a line, decimal or hexadecimal (``0x``), with an optional sign, and nothing else on the line.
    Lines end in LF or CRLF; the last one need not. So line ``k`` (from 1) is the integer of index ``k - 1``.
Binary
    Records of a fixed width in bytes, little-endian, unsigned or two's complement, without a header.

What does not fit in a stream is an `InputError` that names the stream and the line, or the index and byte.
"""

import operator
import os
import re
import stat
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, SupportsIndex

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, JobError, abbreviate

_INTEGER = re.compile(rb"([+-]?)(?:([0-9]+)|0[xX]([0-9a-fA-F]+))")

# Of a file of moduli, which may be a device or a pipe without an end.
_LONGEST_MODULI_LINE = 4096
_MOST_MODULI_LINES = 2**20

_SHOWN = 40  # characters of a bad line that an error message repeats


def remaining_bytes(stream: BinaryIO) -> int | None:
    """Return how many bytes a regular file still holds, or None for a pipe or any other stream."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # a stream in memory has no file descriptor
        return None
    return max(0, status.st_size - stream.tell()) if stat.S_ISREG(status.st_mode) else None


class TextReader:
    """Integers of a text stream, a batch at a time.

    Parameters
    ----------
    stream : binary stream
        What is read. It must have ``readline``.
    name : str
        The stream's name in error messages.
    lowest, highest : int
        The values allowed, both included.

    Attributes
    ----------
    count : int
        Integers read so far.
    bound : int
        The largest absolute value among them.
    bytes_read : int
        Bytes taken from the stream.
    """

    def __init__(self, stream: BinaryIO, name: str, lowest: int, highest: int) -> None:
        self._name = name
        self._lowest, self._highest = lowest, highest
        longest = max(abs(lowest), abs(highest))
        self._limit = max(gmpy2.mpz(longest).num_digits(10), len(f"0x{longest:x}")) + 1  # the sign
        # Two characters more for CRLF. A longer line is cut there: an endless one is never held in memory.
        self._lines = iter(partial(stream.readline, self._limit + 2), b"")
        self.count = self.bound = self.bytes_read = 0

    def read(self, count: int) -> list[Any]:
        """Return the next ``count`` integers (`gmpy2.mpz`), fewer at the end of the stream, [] after it.

        Raises
        ------
        InputError
            If a line is not an integer, or not one between ``lowest`` and ``highest``.
        """
        lines = list(islice(self._lines, count))
        values = [self._parse(line, self.count + position) for position, line in enumerate(lines, 1)]
        if values:
            smallest, largest = min(values), max(values)
            if smallest < self._lowest or largest > self._highest:
                position, value = _first_outside(values, self._lowest, self._highest)
                what = _out_of_range(value, self._lowest, self._highest)
                raise InputError(f"{self._name}:{self.count + position + 1}: {what}")
            self.bound = max(self.bound, int(largest), -int(smallest))
        self.count += len(values)
        self.bytes_read += sum(map(len, lines))
        return values

    def _parse(self, line: bytes, number: int) -> Any:
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > self._limit:
            raise InputError(
                f"{self._name}:{number}: the line has more than {self._limit} characters, longer than any "
                f"integer from {abbreviate(self._lowest)} to {abbreviate(self._highest)}"
            )
        # Most lines are digits, and bytes.isdigit (ASCII only) is several times faster than the pattern.
        value = gmpy2.mpz(line, 10) if line.removeprefix(b"-").isdigit() else _integer(line)
        if value is None:
            raise InputError(f"{self._name}:{number}: {_not_an_integer(line)}")
        return value


class BinaryReader:
    """Integers of a stream of fixed-width records, a batch at a time, as 32-bit limbs.

    Parameters
    ----------
    stream : binary stream
        What is read.
    name : str
        The stream's name in error messages.
    width : int
        Bytes of a record, at least 1.
    signed : bool
        Whether records are two's complement.
    lowest, highest : int
        The values allowed, both included.

    Raises
    ------
    InputError
        If the stream is a file whose size is not a multiple of `width`.

    Attributes
    ----------
    count, bound, bytes_read : int
        As those of `TextReader`.
    """

    def __init__(
        self, stream: BinaryIO, name: str, width: int, lowest: int, highest: int, *, signed: bool
    ) -> None:
        self._stream, self._name = stream, name
        self._width, self._signed = width, signed
        self._lowest, self._highest = lowest, highest
        self.count = self.bound = self.bytes_read = 0
        size = remaining_bytes(stream)
        if size is not None and size % width:
            raise InputError(self._trailing(size))

    def read(self, count: int) -> NDArray[np.uint32]:
        """Return the next ``count`` integers, fewer at the end of the stream, none after it.

        Returns
        -------
        limbs : uint32 array of shape (integers, ceil(width / 4))
            Little-endian limbs, in two's complement when the records are signed.

        Raises
        ------
        InputError
            If an integer is not between ``lowest`` and ``highest``, or the stream ends within a record.
        """
        data = self._stream.read(count * self._width)
        if len(data) % self._width:
            raise InputError(self._trailing(self.bytes_read + len(data)))
        limbs = _records_to_limbs(data, self._width, self._signed)
        if len(limbs):
            smallest = _extreme(limbs, self._signed, largest=False)
            largest = _extreme(limbs, self._signed, largest=True)
            if smallest < self._lowest or largest > self._highest:
                raise InputError(self._first_out_of_range(limbs))
            self.bound = max(self.bound, largest, -smallest)
        self.count += len(limbs)
        self.bytes_read += len(data)
        return limbs

    def _trailing(self, size: int) -> str:
        return (
            f"{self._name}: its size of {size} bytes is not a multiple of the width of {self._width}: "
            f"{size % self._width} bytes remain after the last whole integer"
        )

    def _first_out_of_range(self, limbs: NDArray[np.uint32]) -> str:
        values = (_limbs_to_int(row, self._signed) for row in limbs)
        row, value = _first_outside(values, self._lowest, self._highest)
        where = f"{self._name}: index {self.count + row} (byte {self.bytes_read + row * self._width})"
        return f"{where}: {_out_of_range(value, self._lowest, self._highest)}"


def read_moduli(stream: BinaryIO, name: str) -> list[int]:
    """Read a file of moduli: one integer a line; blank lines and what follows a ``#`` do not count.

    Raises
    ------
    InputError
        If a line is not an integer, or there is none, or there are too many. Whether they form a moduli set
        is not checked here.
    """
    moduli = []
    lines = iter(partial(stream.readline, _LONGEST_MODULI_LINE + 1), b"")
    for number, line in enumerate(lines, 1):
        if number > _MOST_MODULI_LINES:
            raise InputError(f"{name}: it has more than {_MOST_MODULI_LINES} lines")
        text = line.partition(b"#")[0].strip()
        value = _integer(text) if len(text) <= _SHOWN else None  # 2**32 has ten digits
        if text and value is None:
            raise InputError(f"{name}:{number}: {_not_an_integer(text)}")
        if len(line) > _LONGEST_MODULI_LINE:
            raise InputError(f"{name}:{number}: the line has more than {_LONGEST_MODULI_LINE} characters")
        if value is not None:
            moduli.append(int(value))
    if not moduli:
        raise InputError(f"{name}: holds no modulus; one integer a line was expected")
    return moduli


def to_decimal(value: SupportsIndex) -> str:
    """Write an integer of any length in decimal.

    Python's own ``str`` refuses those of more than 4300 digits unless told otherwise
    (``sys.set_int_max_str_digits``), and takes a time that grows with the square of their number.

    Parameters
    ----------
    value : int
        Any type of integer; a lazy one is computed.

    Raises
    ------
    TypeError
        If it is no integer.
    """
    return str(gmpy2.mpz(operator.index(value)).digits(10))


def text_lines(values: Iterable[int], *, hexadecimal: bool = False) -> bytes:
    """Write integers one a line, in decimal or as ``0x...`` (a negative one as ``-0x...``)."""
    digits = map(hex, values) if hexadecimal else map(to_decimal, values)
    return "".join(f"{text}\n" for text in digits).encode("ascii")


def binary_records(limbs: NDArray[np.uint32], width: int, *, signed: bool, first_index: int = 0) -> bytes:
    """Write integers as little-endian records of ``width`` bytes.

    Parameters
    ----------
    limbs : uint32 array of shape (integers, limbs)
        Little-endian limbs, in two's complement when signed.
    width : int
        Bytes of a record.
    signed : bool
        Whether limbs and records are two's complement.
    first_index : int
        The index of the first integer, for the error message.

    Raises
    ------
    JobError
        If an integer does not fit into ``width`` bytes; it names the first one's index and value.
    """
    octets = np.ascontiguousarray(limbs, dtype="<u4").view(np.uint8)
    given = octets.shape[1]
    fill = _sign_bytes(octets[:, min(width, given) - 1], signed)
    lost = (octets[:, width:] != fill[:, None]).any(axis=1)
    if lost.any():
        row = int(lost.argmax())
        value = abbreviate(_limbs_to_int(limbs[row], signed))
        raise JobError(f"index {first_index + row}: {value} does not fit into {width} bytes")
    if width <= given:
        return octets[:, :width].tobytes()
    padding = np.broadcast_to(fill[:, None], (len(octets), width - given))
    return np.concatenate([octets, padding], axis=1).tobytes()


def _integer(text: bytes) -> Any:
    """Return the integer that the text is, or None."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, decimal, hexadecimal = match.groups()
    magnitude = gmpy2.mpz(hexadecimal, 16) if decimal is None else gmpy2.mpz(decimal, 10)
    return -magnitude if sign == b"-" else magnitude


def _not_an_integer(line: bytes) -> str:
    if not line:
        return "empty line; every line must hold one integer"
    shown = line[:_SHOWN].decode("utf-8", "backslashreplace")
    dots = "..." if len(line) > _SHOWN else ""
    return f"{shown!r}{dots} is not an integer (decimal, or hexadecimal after 0x)"


def _out_of_range(value: int, lowest: int, highest: int) -> str:
    hint = " (negative integers need a signed array)" if value < 0 == lowest else ""
    return f"{abbreviate(value)} is not in the range of {abbreviate(lowest)} to {abbreviate(highest)}{hint}"


def _first_outside(values: Iterable[int], lowest: int, highest: int) -> tuple[int, int]:
    """Return the position and the value of the first integer outside the range; there must be one."""
    return next((i, value) for i, value in enumerate(values) if not lowest <= value <= highest)


def _records_to_limbs(data: bytes, width: int, signed: bool) -> NDArray[np.uint32]:
    """Cut a stream's bytes into records, each widened to a whole number of limbs."""
    octets = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
    if width % 4:
        widened = np.empty((len(octets), width + -width % 4), dtype=np.uint8)
        widened[:, :width] = octets
        widened[:, width:] = _sign_bytes(octets[:, -1], signed)[:, None]
        octets = widened
    return octets.view("<u4").astype(np.uint32, copy=False)


def _sign_bytes(top: NDArray[np.uint8], signed: bool) -> NDArray[np.uint8]:
    """Return the byte that extends each integer, from its most significant byte."""
    return np.where(top >= 128, np.uint8(255), np.uint8(0)) if signed else np.zeros_like(top)


def _limbs_to_int(limbs: NDArray[np.uint32], signed: bool) -> int:
    return int.from_bytes(limbs.astype("<u4").tobytes(), "little", signed=signed)


def _extreme(limbs: NDArray[np.uint32], signed: bool, *, largest: bool) -> int:
    """Return the largest or the smallest of at least one integer."""
    # From the top limb down, keep the rows that lead; seldom more than one is left after the first.
    rows: slice | NDArray[np.intp] = slice(None)
    for limb in reversed(range(limbs.shape[1])):
        column: NDArray[Any] = limbs[rows, limb]
        if signed and limb == limbs.shape[1] - 1:
            column = column.view(np.int32)
        leading = np.flatnonzero(column == (column.max() if largest else column.min()))
        rows = leading if isinstance(rows, slice) else rows[leading]
        if len(rows) == 1:
            break
    assert not isinstance(rows, slice)
    return _limbs_to_int(limbs[rows[0]], signed)
