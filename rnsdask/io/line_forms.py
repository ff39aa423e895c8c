"""Text of integers in other forms than one a line, and the range of integers in text.

Text with comments, in columns, or hexadecimal without ``0x`` is converted to one integer a line, with the
same line numbers, for :class:`.TextReader`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import gmpy2

from rnsdask.core.errors import InputError, brief
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.core.ways import Message, Setting, Way, with_ways
from rnsdask.io.integer_reading import BYTE_ORDER_MARK, CSV_HEADER, Readable
from rnsdask.io.json_lines import json_fields

_PIECE = 2**18
_LONGEST_LINE = 2**26
"""Most characters of a line in columns, or of a quoted field of several lines, which is held in memory."""

_COMMENT = re.compile(rb"#[^\n]*")
_HEXADECIMAL = re.compile(rb"(?m)^([ \t]*[+-]?)(?:0[xX])?([0-9a-fA-F]+)(?=[ \t]*\r?$)")
_QUOTED = re.compile(rb'(?:^|(?<=[\t;,])) *"(?:[^"]|"")*"')
_OPEN = re.compile(rb'(?:^|[\t;,]) *"(?:[^"]|"")*$')
_MOST_LINES_OF_NAMES = 100
"""Most lines of the first record, all of which are parsed again with each new line."""

_SEPARATORS = (b"\t", b";", b",")

_NO_NAMES = {"na", "nan", "nat", "nil", "none", "null", "inf", "infinity", "true", "false"}
"""Words that programs write for missing or non-integer values, by their letters; also for ``\\N``."""

_WAY = Message(Setting("header", True), " says that the first line has names")

_RANGE_PIECE, _LONGEST_INTEGER = 2**20, 2**24
"""Bytes read at a time for a range; most characters of a line, as no number system holds longer integers."""

_PLAIN = b"0123456789-\n"
_LEADING_ZERO = re.compile(rb"^-?0[0-9]", re.MULTILINE)
_SPACES = b" \t\r"


def plain_lines(
    stream: BinaryIO,
    name: str,
    *,
    column: str | None = None,
    header: bool | None = None,
    hexadecimal: bool = False,
    strict: bool = False,
    names: list[str] | None = None,
    json: bool = False,
) -> Readable:
    """Return a stream of a text's integers, one a line, without comments; messages call the text `name`.

    `column` is the number of a column, from 1, or its name in the first line. The separator is the tab,
    semicolon or comma that is most frequent in the first line, outside of quotation marks; otherwise spaces.
    The first line is skipped as a header if `column` is a name or `header` is true; and if `header` is None,
    when nothing in it could be a value (:func:`could_be_names`). Its names are appended to `names`. With
    `hexadecimal`, digits need no ``0x``, and names may look like digits. With `strict`, nothing is skipped
    implicitly. Otherwise, text after ``#`` is removed; InputError for a comment line in columns that may be a
    row. With `json`, lines are JSON (:mod:`.json_lines`), and `column` is a field's name.
    """
    found: Readable = stream
    if json:
        found = Pieces(json_fields(whole_lines(stream, name), name, column))
    elif column is not None:
        how: dict[str, Any] = {"header": header, "hexadecimal": hexadecimal, "strict": strict}
        found = Pieces(_Column(stream, name, column, [] if names is None else names, **how))
    elif not strict:
        found = _WithoutComments(stream)
    return Pieces(_add_prefix(whole_lines(found, name))) if hexadecimal else found


def could_be_names(fields: list[bytes], index: int | None) -> bool:
    """Whether nothing in a first line could be a value of the column at an index.

    Names have a letter and no digit of any script, and are not words for missing values. An empty field could
    be a missing value of that column; `index` is None if the column is not known yet.
    """
    texts = [field.strip().decode("utf-8", "replace") for field in fields]
    return not any(
        _could_be_value(text) if text else index is None or k == index for k, text in enumerate(texts)
    )


def _could_be_value(text: str) -> bool:
    word = "".join(filter(str.isalpha, text)).casefold()
    return not word or word in _NO_NAMES or text == "\\N" or any(map(str.isnumeric, text))


class _WithoutComments:
    """A stream that drops the rest of a line from ``#`` on."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._is_inside = stream, False

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; nothing at the end."""
        while data := self._stream.read(size):
            if self._is_inside:
                end = data.find(b"\n")
                if end < 0:
                    continue
                data, self._is_inside = data[end:], False
            if b"#" in data:
                self._is_inside = b"#" in data[data.rfind(b"\n") + 1 :]
                data = _COMMENT.sub(b"", data)
            if data:
                return data
        return b""


class Pieces:
    """A stream of pieces of bytes; an error of a piece is raised after all earlier pieces are read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, _size: int, /) -> bytes:
        """Read the next piece that is not empty; nothing at the end."""
        return next(filter(None, self._pieces), b"")


def whole_lines(stream: Readable, name: str) -> Iterator[bytes]:
    """Pieces of a stream that end with a whole line, except for the last."""
    rest = b""
    while piece := stream.read(_PIECE):
        text = rest + piece
        end = text.rfind(b"\n") + 1
        if end:
            yield text[:end]
        rest = text[end:]
        if len(rest) > _LONGEST_LINE:
            raise InputError(f"{name}: a line has more than {_LONGEST_LINE} characters")
    if rest:
        yield rest


def _add_prefix(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield _HEXADECIMAL.sub(rb"\g<1>0x\g<2>", piece)


class _Column:
    """Iterator over the fields of one column of a text, each on its own line."""

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        column: str,
        names: list[str],
        *,
        header: bool | None,
        hexadecimal: bool,
        strict: bool,
    ) -> None:
        self._name, self._column, self._names = name, column, names
        self._header, self._hexadecimal, self._strict = header, hexadecimal, strict
        is_number = column.isdecimal() and column.isascii()
        self._number = int(column.lstrip("0")[:9] or 0) if is_number else None
        self._index: int | None = None
        self._columns = 0  # of the first record
        # Lines before the first record that begin with # and may be rows, by separator and number of columns.
        self._early: dict[tuple[bytes, int], int] = {}
        self._separator: bytes | None = None
        self._line = 0
        self._pieces = whole_lines(stream, name)
        self._record: list[bytes] = []  # lines of the current record, while a quotation mark is open
        self._is_open, self._length = False, 0
        self._error: InputError | None = None

    def __iter__(self) -> "_Column":
        return self

    def __next__(self) -> bytes:
        if self._error is not None:
            raise self._error
        piece = next(self._pieces, None)
        if piece is None:
            if self._is_open:
                raise self._not_closed()
            raise StopIteration
        if self._line == 0 and not self._strict:
            piece = piece.removeprefix(BYTE_ORDER_MARK)
        lines = piece.removesuffix(b"\n").split(b"\n")
        fields = self._quick(piece, lines)
        if fields is None:
            fields = []
            try:
                for line in lines:
                    fields += self._fields_of(line)
            except InputError as error:
                self._error = error
        return b"".join([field + b"\n" for field in fields])

    def _quick(self, text: bytes, lines: list[bytes]) -> list[bytes] | None:
        """Fields of lines without quotes or comments; None for other lines."""
        if self._index is None or self._is_open or b'"' in text or b"#" in text:
            return None
        if text.count(b"\r") != text.count(b"\r\n"):
            return None
        k, separator = self._index, self._separator
        try:
            whole = [line.split(separator, k + 1)[k].removesuffix(b"\r") for line in lines]
        except IndexError:
            return None
        fields = [field.strip() for field in whole]
        if not all(fields) or (self._strict and fields != whole):
            return None
        self._line += len(lines)
        return fields

    def _fields_of(self, line: bytes) -> list[bytes]:
        """Lines that replace a line: none while a quotation mark is open, then those of the whole record."""
        self._line += 1
        if not self._is_open:
            if self._strict:
                self._check_strictly(line)
            elif not line.strip():
                return [b""]
            elif line.lstrip().startswith(b"#"):
                self._check_comment(line)
                return [b""]
        self._record.append(line)
        if self._index is None:
            self._look_for_separator(b" ".join(self._record))
        elif self._separator is not None:
            self._is_open ^= bool(line.count(b'"') % 2)
        if self._is_open:
            self._length += len(line)
            if self._length > _LONGEST_LINE:
                raise self._not_closed()
            return []
        lines, self._record, self._length = self._record, [], 0
        return [*[b""] * (len(lines) - 1), self._field(b" ".join(lines))]

    def _look_for_separator(self, record: bytes) -> None:
        """Find the separator of the first record, as far as it is read, and whether it ends within quotes."""
        outside = _QUOTED.sub(b"", record)
        self._is_open = _OPEN.search(outside) is not None
        counts = {mark: outside.count(mark) for mark in _SEPARATORS}
        most = max(counts, key=counts.__getitem__)
        self._separator = most if counts[most] else None
        lines = len(self._record)
        if lines > _MOST_LINES_OF_NAMES or (lines > 1 and not self._is_open and self._separator is None):
            raise self._not_closed()  # unless columns are separated by spaces, without quotes

    def _check_strictly(self, line: bytes) -> None:
        if self._line == 1 and line.startswith(BYTE_ORDER_MARK):
            raise self._wrong(Message("a byte order mark is before the first field, ", Way.STRICT))
        if not line.strip():
            raise self._wrong(not_an_integer(b""))
        if line.lstrip().startswith(b"#"):
            raise self._wrong(Message("the line begins with #, as a comment, ", Way.STRICT))

    def _check_comment(self, line: bytes) -> None:
        """Refuse a line that begins with # and may be a row; before the first record, remember it."""
        if self._index is not None:
            if self._separator is not None and line.count(self._separator) + 1 == self._columns:
                raise self._maybe_row(self._line)
            return
        place = None if self._number is None else self._number - 1
        for mark in _SEPARATORS:
            fields = line.replace(b"#", b"", 1).split(mark)
            if len(fields) > 1 and (self._header or not could_be_names(fields, place)):
                self._early.setdefault((mark, len(fields)), self._line)

    def _check_early_comments(self) -> None:
        if self._separator is not None and (self._separator, self._columns) in self._early:
            raise self._maybe_row(self._early[self._separator, self._columns])
        self._early.clear()

    def _maybe_row(self, line: int) -> InputError:
        return InputError(
            f"{self._name}:{line}: the line begins with #, as a comment, and has {self._columns} columns, as "
            "the first line; put its first field into quotation marks, or remove the line"
        )

    def _not_closed(self) -> InputError:
        self._line -= len(self._record) - 1
        return self._wrong("a quotation mark is not closed")

    def _field(self, record: bytes) -> bytes:
        """Field of the column in a record; empty for the header."""
        record = record.strip(b"\r\n")
        outside = record if self._separator is None else b"".join(record.split(b'"')[::2])
        if b"\r" in outside:  # or "1,2\r3,4" would be a line of one number
            raise self._wrong("a carriage return is within the line; lines end in LF or CRLF")
        fields, is_first, is_named = self._split(record), self._index is None, False
        if is_first:
            self._columns = len(fields)
            self._check_early_comments()
            self._index, is_named = self._choose(fields)
        index = self._index
        assert index is not None
        if len(fields) <= index:
            raise self._wrong(self._lacking(fields, is_first))
        if is_named:
            self._names += _texts(fields)
            return b""
        field = fields[index] if self._strict else fields[index].partition(b"#")[0].strip()
        is_wrong = is_first and not self._is_integer(field)
        if is_wrong or (self._strict and field != field.strip()) or not field:
            problem = not_an_integer(field) if field else f"column {self._column} is empty"
            raise self._wrong(with_ways(problem, _WAY) if is_first and self._header is None else problem)
        return field

    def _is_integer(self, field: bytes) -> bool:
        if self._hexadecimal:
            return _HEXADECIMAL.fullmatch(field) is not None
        return parse_integer(field) is not None

    def _lacking(self, fields: list[bytes], is_first: bool) -> str:
        """Describe a line that lacks the column; a number may have been meant as a name."""
        assert self._index is not None
        columns = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        problem = f"the line has {columns}, column {self._column} is number {self._index + 1}"
        names = _texts(fields)
        if is_first and names.count(self._column) == 1:
            problem += f"; the one called {self._column!r:.80} is number {names.index(self._column) + 1}"
        return problem

    def _choose(self, fields: list[bytes]) -> tuple[int, bool]:
        """Find the index of the column from the first record, and whether that is a header."""
        if self._number == 0:
            raise InputError(f"{self._name}: columns are counted from 1, got column {self._column:.80}")
        if self._number is not None:
            index, is_named = self._number - 1, self._header
            if is_named is None:
                values = [*fields]
                values[index : index + 1] = [field.partition(b"#")[0] for field in fields[index : index + 1]]
                is_named = not self._hexadecimal and not self._strict and could_be_names(values, index)
            return index, is_named
        names = _texts(fields)
        if names.count(self._column) != 1:
            what = "no column is" if self._column not in names else "several columns are"
            raise self._wrong(f"{what} called {self._column!r:.80}; the first line has {brief(names)}")
        return names.index(self._column), True

    def _split(self, record: bytes) -> list[bytes]:
        if self._separator is None:
            return [field.strip(b'"') for field in record.split()]
        if b'"' not in record:
            fields = record.split(self._separator)
        else:  # at the separators outside of quotation marks
            parts = record.split(b'"')
            parts[::2] = [part.replace(self._separator, b"\n") for part in parts[::2]]
            fields = b'"'.join(parts).split(b"\n")
        return [self._unquoted(self._stripped(field)) for field in fields]

    def _stripped(self, field: bytes) -> bytes:
        return field if self._strict else field.strip()

    def _unquoted(self, field: bytes) -> bytes:
        if b'"' not in field:
            return field
        inner = field[1:-1].replace(b'""', b"")
        if len(field) < 2 or not field.startswith(b'"') or not field.endswith(b'"') or b'"' in inner:
            raise self._wrong(f"quotation marks are around whole fields, got {_shown(field)}")
        return self._stripped(field[1:-1].replace(b'""', b'"'))

    def _wrong(self, problem: str) -> InputError:
        return InputError(Message(f"{self._name}:{self._line}: ", problem))


def _texts(fields: list[bytes]) -> list[str]:
    return [field.decode("utf-8", "backslashreplace") for field in fields]


def _shown(field: bytes) -> str:
    return repr(field[:40].decode("utf-8", "backslashreplace")) + "..." * (len(field) > 40)


# ---- The range of integers --------------------------------------------------------------------------------


@dataclass
class NumberRange:
    """Range of some integers and 0, and the most characters of one of them, if they are text."""

    lowest: int = 0
    highest: int = 0
    longest: int = 0

    def add(self, value: int, length: int = 0) -> None:
        """Widen the range to include an integer, and the greatest length to its number of characters."""
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)
        self.longest = max(self.longest, length)


def range_of_lines(
    stream: Readable,
    name: str,
    *,
    last_word: bool = False,
    of_column: bool = False,
    advance: Callable[[int], object] = lambda _: None,
) -> NumberRange:
    """Return the range of the integers of lines of text, up to the first line that is no integer.

    The next reader of the stream reports that line. With `last_word`, lines have other words before the
    integer, and comments, like Matrix Market files after the size line. Lines `of_column` have neither a byte
    order mark nor a name in front. `advance` is called with the number of bytes read since its last call.
    InputError if a line is longer than any integer that can be stored.
    """
    found = NumberRange()
    add = _add_last_words if last_word else _add_lines
    rest, is_first = b"", not of_column
    while piece := stream.read(_RANGE_PIECE):
        advance(len(piece))
        text = rest + piece
        end = text.rfind(b"\n") + 1
        text, rest = text[:end], text[end:]
        if is_first and text:
            text, is_first = text.removeprefix(BYTE_ORDER_MARK), False
            text = text.replace(b"\r\n", b"\n").removeprefix(CSV_HEADER)
        if not add(found, text):
            return found
        if len(rest) > _LONGEST_INTEGER:
            raise InputError(
                f"{name}: a line has more than {_LONGEST_INTEGER} characters, more than any integer"
            )
    add(found, rest.removeprefix(BYTE_ORDER_MARK) if is_first else rest)
    return found


def _add_lines(found: NumberRange, text: bytes) -> bool:
    """Widen a range to the integers of whole lines; False if a line is not an integer."""
    text = text.replace(b"\r\n", b"\n")
    if text.translate(None, _PLAIN) or _LEADING_ZERO.search(text):
        return _add_each(found, text.split(b"\n"))
    lines = text.split(b"\n")
    negative = [line for line in lines if line.startswith(b"-")] if b"-" in text else []
    if text.count(b"-") != len(negative) or b"-" in negative:
        return _add_each(found, lines)
    # Without leading zeros and other characters, texts of one length sort like their numbers.
    for some in ([line for line in lines if not line.startswith(b"-")] if negative else lines, negative):
        length = max(map(len, some), default=0)
        if length:
            top = max(line for line in some if len(line) == length)
            found.add(int(gmpy2.mpz(top, 10)), length)
    return True


def _add_each(found: NumberRange, lines: list[bytes]) -> bool:
    for line in lines:
        if word := line.strip(_SPACES):
            value = parse_integer(word)
            if value is None:
                return False
            found.add(int(value), len(word))
    return True


def _add_last_words(found: NumberRange, text: bytes) -> bool:
    lines = (line for line in text.split(b"\n") if not line.lstrip().startswith(b"%"))
    return _add_each(found, [line.split()[-1] for line in lines if line.split()])
