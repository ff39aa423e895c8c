"""Matrices of integers in Matrix Market files, dense or sparse, with integers of any size.

The format: R. Boisvert, R. Pozo, K. Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR
5935 (1996). SciPy's reader takes integers of 64 bits only.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, abbreviate
from rnsdask.core.number_system import NumberSystem
from rnsdask.io.integer_reading import BYTE_ORDER_MARK, TextReader
from rnsdask.io.line_forms import NumberRange, range_of_lines

_BANNER = b"%%matrixmarket"
_LONGEST_HEADER_LINE = 2**16
_BESIDE = 4096
"""Most characters of an entry's line in addition to its integer."""

BLOCK_BYTES = 2**20
"""Bytes of lines that are parsed at a time, except for the rest of the last line."""

_SHORT = 18
"""Most characters of an integer that surely fits 64 bits."""

_MOST_NUMBERS = 2**63 - 1
"""Most numbers of a matrix, as places are 64-bit integers."""

_SIGNS = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
"""Signs of the entries above the diagonal, by a file's symmetry."""

UNSIGNED = "unsigned-integer"
"""Field that SciPy writes for unsigned integers."""

PATTERN = "pattern"
"""Field of matrices whose entries are all 1."""

_NEGATIVE = "a skew-symmetric matrix has negative integers"

_Places = NDArray[np.int64]


def is_matrix_market(begin: bytes) -> bool:
    """Whether a file with these first bytes is a Matrix Market file."""
    return begin.removeprefix(BYTE_ORDER_MARK).lower().startswith(_BANNER)


# ---- files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """Head of a file, before its entries.

    Attributes
    ----------
    shape : (int, int)
    count : int or None
        Entries in the file, which has none above the diagonal if it has a symmetry. None if the file marks
        their end.
    sparse : bool
        Whether entries come with their places.
    field, symmetry : str
        In Matrix Market's words.
    """

    shape: tuple[int, int]
    count: int | None
    sparse: bool = True
    field: str = "integer"
    symmetry: str = "general"

    @property
    def sign(self) -> int:
        """Sign with which entries below the diagonal are mirrored above it; 0 without symmetry."""
        return _SIGNS[self.symmetry]

    @property
    def wanted(self) -> tuple[str, ...]:
        """Words in the line of an entry."""
        places = ("a row", "a column") if self.sparse else ()
        return places if self.field == PATTERN else (*places, "an integer")


class Entries(NamedTuple):
    """Some entries of a file: rows and columns from 0, texts of integers, number of earlier entries."""

    rows: _Places
    columns: _Places
    texts: list[bytes]
    before: int

    @property
    def mirrored(self) -> NDArray[np.bool_]:
        """Mask of the entries off the diagonal."""
        mask: NDArray[np.bool_] = self.rows != self.columns
        return mask


class MatrixFile:
    """Reader of a matrix file: of the head at once, then of the entries in batches.

    `formats` and `fields` are the ones of Matrix Market that the caller accepts, and `longest` the most
    characters of an entry's line. InputError for any other head.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        *,
        formats: tuple[str, ...] = ("coordinate", "array"),
        fields: tuple[str, ...] = ("integer", UNSIGNED),
        longest: int = _BESIDE,
    ) -> None:
        self._stream, self.name, self._longest = stream, name, longest
        self._line = self.bytes_read = 0
        self.head = self._read_head(formats, fields)

    def _next_line(self, longest: int) -> bytes:
        line = self._stream.readline(longest + 1)
        self._line += 1
        self.bytes_read += len(line)
        if len(line) > longest:
            raise self._too_long(longest)
        return line

    def _too_long(self, longest: int) -> InputError:
        return self.error(f"the line has more than {longest} characters")

    def error(self, problem: str) -> InputError:
        """Make an error about the last line read."""
        return InputError(f"{self.name}:{self._line}: {problem}")

    # ---- The head -----------------------------------------------------------------------------------------

    def _read_head(self, formats: tuple[str, ...], fields: tuple[str, ...]) -> Head:
        line = self._next_line(_LONGEST_HEADER_LINE).removeprefix(BYTE_ORDER_MARK)
        words = line.decode("utf-8", "backslashreplace").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise self.error(f"a Matrix Market file begins %%MatrixMarket matrix FORMAT {fields[0]} SYMMETRY")
        for what, given, known in (
            ("format", words[2], formats),
            ("field", words[3], fields),
            ("symmetry", words[4], tuple(_SIGNS)),
        ):
            if given not in known:
                raise self.error(f"the {what} must be {' or '.join(known)}, got {given!r:.80}")
        if words[4] == "skew-symmetric" and words[3] != "integer":
            raise self.error(f"{_NEGATIVE}, and the field is {words[3]}")
        return self._size(words[2] == "coordinate", words[3], words[4])

    def _size(self, sparse: bool, field: str, symmetry: str) -> Head:
        line = self._next_line(_LONGEST_HEADER_LINE)
        while line and _is_beside(line):
            line = self._next_line(_LONGEST_HEADER_LINE)
        wanted = "rows, columns and entries" if sparse else "rows and columns"
        rows, columns, *stored = self.lengths(line, 2 + sparse, wanted)
        if symmetry != "general" and rows != columns:
            raise self.error(f"a {symmetry} matrix must be square, got shape ({rows}, {columns})")
        most = rows * columns
        if sign := _SIGNS[symmetry]:
            most = rows * (rows + sign) // 2
        if stored and stored[0] > most:
            raise self.error(
                f"a {symmetry} matrix of shape ({abbreviate(rows)}, {abbreviate(columns)}) has at most "
                f"{abbreviate(most)} entries, got {abbreviate(stored[0])}"
            )
        return Head((rows, columns), stored[0] if stored else most, sparse, field, symmetry)

    def lengths(self, line: bytes, count: int, wanted: str) -> list[int]:
        """Read the lengths in a line of the head."""
        words = line.split()
        if len(words) != count or not all(word.isdigit() for word in words):
            raise self.error(f"expected the numbers of {wanted}, got {_shown(line)}")
        return [int(gmpy2.mpz(word)) for word in words]

    # ---- Entries ------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entries]:
        """Iterate over the checked entries; InputError at the first wrong one, or if they end early."""
        done, width = 0, len(self.head.wanted)
        for tokens in self._tokens():
            yield self._split(tokens, done)
            done += len(tokens) // width
        if self.head.count is not None and done < self.head.count:
            announced = f"the header announces {abbreviate(self.head.count)} entries"
            raise InputError(f"{self.name}: {announced}, the file holds {done}")

    def _tokens(self) -> Iterator[list[bytes]]:
        """Iterate over batches of lines' words, with the words of an entry for each line."""
        wanted, done = self.head.wanted, 0
        for first, lines in self._blocks():
            if set(map(len, map(bytes.split, lines))) == {len(wanted)} and b"%" not in b"".join(lines):
                tokens = b"\n".join(lines).split()
            else:
                tokens = [word for k, line in enumerate(lines, first) for word in self._words(line, k)]
            done += len(tokens) // len(wanted)
            if self.head.count is not None and done > self.head.count:
                announced = f"the header announces {abbreviate(self.head.count)} entries"
                raise InputError(f"{self.name}: {announced}, the file holds more")
            if tokens:
                yield tokens

    def _words(self, line: bytes, number: int) -> list[bytes]:
        """Words of an entry's line; empty if it is blank or a comment."""
        words, wanted = line.partition(b"%")[0].split(), self.head.wanted
        if len(words) not in (0, len(wanted)):
            *some, last = wanted
            what = f"{', '.join(some)} and {last}" if some else last
            raise InputError(f"{self.name}:{number}: expected {what}, got {_shown(line)}")
        return words

    def _blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Iterate over batches of lines, each with the number of its first line."""
        while block := self._stream.read(BLOCK_BYTES):
            block += b"" if block.endswith(b"\n") else self._stream.readline(self._longest + 1)
            self.bytes_read += len(block)
            lines = block.removesuffix(b"\n").split(b"\n")
            first, lengths = self._line + 1, list(map(len, lines))
            if max(lengths) > self._longest:
                self._line = first + next(k for k, n in enumerate(lengths) if n > self._longest)
                raise self._too_long(self._longest)
            self._line += len(lines)
            yield first, lines

    def count_lines(self) -> int:
        """Count the lines after the head."""
        return sum(len(lines) for _, lines in self._blocks())

    def _split(self, words: list[bytes], done: int) -> Entries:
        """Rows, columns and texts of the entries after the first `done`."""
        head = self.head
        if head.sparse:
            width = len(head.wanted)
            rows, columns = (self._indices(words[k::width], done, k) for k in (0, 1))
            self._check_triangle(rows, columns, done)
            return Entries(rows, columns, words[2::3] if width == 3 else [b"1"] * len(rows), done)
        number = np.arange(done, done + len(words), dtype=np.int64)
        if not head.sign:
            columns, rows = np.divmod(number, head.shape[0])
            return Entries(rows, columns, words, done)
        # Entries on and below the diagonal, column by column.
        longest = head.shape[0] - (head.sign < 0)
        ends = np.cumsum(np.arange(longest, 0, -1, dtype=np.int64))
        columns = np.searchsorted(ends, number, side="right")
        return Entries(head.shape[0] - (ends[columns] - number), columns, words, done)

    def _indices(self, words: list[bytes], done: int, axis: int) -> _Places:
        """Rows (axis 0) or columns (axis 1) of entries, from 0."""
        length = self.head.shape[axis]
        if (values := short_integers(words)) is None:
            values = np.array([_place(w.removeprefix(b"+")) for w in words], np.int64)
        if len(wrong := np.flatnonzero((values < 1) | (values > length))):
            what, k = ("row", "column")[axis], int(wrong[0])
            raise self.error_of_entry(done + k, f"its {what} {_shown(words[k])} is not from 1 to {length}")
        return values - 1

    def error_of_entry(self, place: int, problem: str) -> InputError:
        """Make an error about an entry, counted from 0."""
        return InputError(f"{self.name}: entry {place + 1}: {problem}")

    def _check_triangle(self, rows: _Places, columns: _Places, done: int) -> None:
        if not (sign := self.head.sign):
            return
        if len(wrong := np.flatnonzero(rows < columns + (sign < 0))):
            k = int(wrong[0])
            where = "below the diagonal" if sign < 0 else "below the diagonal or on it"
            raise self.error_of_entry(
                done + k,
                f"those of a {self.head.symmetry} matrix must be {where}, got row {rows[k] + 1}, column "
                f"{columns[k] + 1}",
            )


def _place(word: bytes) -> int:
    """Row or column, from 1, that a word gives; 0 if it is invalid or beyond all matrices."""
    value = int(word) if word.isdigit() and len(word) < 20 else 0
    return value if value <= _MOST_NUMBERS else 0


def short_integers(words: list[bytes]) -> NDArray[np.int64] | None:
    """Convert decimal integers to 64 bits; None if a word is anything else, or might be too long."""
    if not words or max(map(len, words)) > _SHORT:
        return None
    text = b" ".join(words)
    signs = text.count(b"-")
    is_right = not text.translate(None, b"0123456789- ") and not text.endswith(b"-") and b"- " not in text
    if not is_right or (signs and (b" " + text).count(b" -") != signs):
        return None
    return np.fromstring(text, np.int64, sep=" ")


def check_single(name: str, places: _Places, columns: int) -> None:
    """Raise InputError if two entries are at one of the ascending places ``row * columns + column``.

    The format does not define them: SciPy adds them, other programs keep the last, or refuse them too.
    """
    if len(twice := np.flatnonzero(places[1:] == places[:-1])):
        row, column = divmod(int(places[twice[0]]), columns)
        raise InputError(
            f"{name}: it has two entries of row {row + 1}, column {column + 1}, and no format says whether "
            "they add up; in Python, rd.sparse.from_entries adds entries of one place"
        )


# ---- words ------------------------------------------------------------------------------------------------


class Numbers:
    """`count` consecutive numbers of a matrix: words at some places, and zeros elsewhere."""

    def __init__(self, count: int, places: _Places, words: NDArray[Any]) -> None:
        self._count, self._places, self._words = count, places, words

    def __len__(self) -> int:
        return self._count

    def to_words(self, _system: object) -> NDArray[Any]:
        """Words of all numbers, of shape (rows, integers)."""
        dense = np.zeros((len(self._words), self._count), dtype=self._words.dtype)
        dense[:, self._places] = self._words
        return dense


class MatrixMarketReader:
    """The numbers of a matrix in C order, zeros where the file has no entry.

    The header is read at once, the entries by the first :meth:`read`; then the words of all entries are in
    memory. Attributes are as in :class:`.IntegerReader`; `held` counts the entries, which take twice as much
    while they are sorted. Limits default to the system's. InputError if the header is wrong, or describes no
    integers or an empty matrix.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        system: NumberSystem,
        limits: tuple[int, int] | None = None,
    ) -> None:
        self.name, self._system = name, system
        self._limits = system.value_range if limits is None else limits
        longest = _BESIDE + max(len(hex(end)) * 5 // 4 for end in self._limits)
        self._file = MatrixFile(stream, name, longest=longest)
        self.names: list[str] = []
        self.shape = _checked_shape(self._file)
        self.nonzero: int | None
        self.count = self.bound = 0
        self.bytes_read = self._file.bytes_read
        column = system.rows * system.word_dtype.itemsize + np.dtype(np.int64).itemsize
        self.nonzero = self._most = (self._file.head.count or 0) * (2 if self._file.head.sign else 1)
        self.held = self._most * column
        self._entries: tuple[_Places, NDArray[Any]] | None = None

    def read(self, count: int) -> Numbers:
        """Return the next numbers, at most `count`; no numbers only at the end of the matrix.

        InputError if the file's entries do not match its header, or an integer is out of range.
        """
        if self._entries is None:
            self._entries = self._read_entries()
            self.bytes_read = self._file.bytes_read
        places, words = self._entries
        first, last = self.count, min(self.count + count, self.shape[0] * self.shape[1])
        begin, end = np.searchsorted(places, [first, last])
        self.count = last
        return Numbers(last - first, places[begin:end] - first, words[:, begin:end])

    def _read_entries(self) -> tuple[_Places, NDArray[Any]]:
        """Ascending places in C order of all entries, and their words."""
        most = self._most
        # All at once: joining parts would take another copy.
        places, words = np.empty(most, np.int64), np.empty((self._system.rows, most), self._system.word_dtype)
        filled = 0
        for entries in self._file.entries():
            for where, found in self._placed(entries):
                end = filled + len(where)
                places[filled:end], words[:, filled:end] = where, found
                filled = end
        order = np.argsort(places[:filled], kind="stable")
        places = places[:filled][order]
        check_single(self.name, places, self.shape[1])
        return places, words[:, :filled][:, order]

    def _placed(self, entries: Entries) -> Iterator[tuple[_Places, NDArray[Any]]]:
        """Places and words of some entries, then of their mirror images."""
        rows, columns, texts, done = entries
        words = self._words_of(texts, done)
        yield rows * self.shape[1] + columns, words
        if sign := self._file.head.sign:
            other = entries.mirrored
            if sign < 0:
                negated = [_negate(text) for text, is_other in zip(texts, other, strict=True) if is_other]
                words = self._words_of(negated, done)
            else:
                words = words[:, other]
            yield (columns * self.shape[1] + rows)[other], words

    def _words_of(self, texts: list[bytes], done: int) -> NDArray[Any]:
        """Words of integers, after a check of their range and of their mirror images' range."""
        (lowest, highest), head = self._limits, self._file.head
        if head.sign < 0:
            lowest, highest = max(lowest, -highest), min(highest, -lowest)
        if head.field == UNSIGNED:
            lowest = max(lowest, 0)
        stream = io.BytesIO(b"".join(text + b"\n" for text in texts))
        reader = _EntryReader(stream, self.name, lowest, highest, strict=True)
        reader.entries_before, reader.head = done, head
        parts = [np.zeros((self._system.rows, 0), dtype=self._system.word_dtype)]
        while batch := reader.read(len(texts)):
            parts.append(batch.to_words(self._system))
        self.bound = max(self.bound, reader.bound)
        return np.concatenate(parts, axis=1)


def _checked_shape(file: MatrixFile) -> tuple[int, int]:
    """Shape of a matrix, checked to fit a store."""
    rows, columns = file.head.shape
    shape = f"shape ({abbreviate(rows)}, {abbreviate(columns)})"
    if not rows or not columns:
        raise file.error(f"a matrix must have at least one number, got {shape}")
    if rows * columns > _MOST_NUMBERS:
        raise file.error(f"a matrix must have fewer than 2**63 numbers, got {shape}")
    return rows, columns


def range_of_matrix(
    stream: BinaryIO, name: str, advance: Callable[[int], object] = lambda _: None
) -> NumberRange:
    """Return the range of the integers of a Matrix Market file, including mirrored entries."""
    head = MatrixFile(stream, name).head
    found = range_of_lines(stream, name, last_word=True, advance=advance)
    if head.sign < 0:
        found.add(-found.lowest)
        found.add(-found.highest)
    return found


class _EntryReader(TextReader):
    """Reader of entries' integers, whose errors name the entry."""

    entries_before: int
    head: Head

    def _place(self, row: int) -> str:
        return f"{self.name}: entry {self.entries_before + self.count + row + 1}"

    def _out_of_range(self, value: int) -> str:
        if value < 0 and self.head.field == UNSIGNED:
            return f"{abbreviate(value)} is negative, and the field is {UNSIGNED}"
        if self.head.sign < 0 and self._lowest == self._highest == 0:
            return f"{abbreviate(value)} is not 0; {_NEGATIVE}, which need a signed array"
        return super()._out_of_range(value)


def _is_beside(line: bytes) -> bool:
    """Whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith(b"%")


def _negate(text: bytes) -> bytes:
    return text[1:] if text.startswith(b"-") else b"-" + text.removeprefix(b"+")


def _shown(line: bytes) -> str:
    return repr(line.strip()[:80].decode("utf-8", "backslashreplace"))
