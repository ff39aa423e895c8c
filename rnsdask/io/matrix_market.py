"""Reading integer matrices of Matrix Market files, dense or sparse, with integers of any size.

The format: R. Boisvert, R. Pozo, K. Remington, "The Matrix Market Exchange Formats: Initial Design", NISTIR
5935 (1996). SciPy's reader takes integers of 64 bits only.
"""

import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, abbreviate
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.number_system import NumberSystem
from rnsdask.fields.system import PrimeFields
from rnsdask.io.integer_reading import BYTE_ORDER_MARK, TextReader
from rnsdask.io.line_forms import NumberRange, range_of_lines
from rnsdask.sparse.files import two_entries

_BANNER = b"%%matrixmarket"
_LONGEST_HEADER_LINE = 2**16
_BESIDE = 4096
"""Characters that the line of an entry may have besides those of its integer."""
_LINES = 2**14
"""Lines that are parsed at a time."""

_MOST_NUMBERS = 2**63 - 1
"""Numbers of a matrix, whose places are 64-bit integers."""

_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_UNSIGNED = "unsigned-integer"
"""The field that SciPy writes of unsigned integers."""

_NEGATIVE = "a skew-symmetric matrix has negative integers"

_Places = NDArray[np.int64]


def is_matrix_market(begin: bytes) -> bool:
    """Whether a file with these first bytes is one of Matrix Market."""
    return begin.removeprefix(BYTE_ORDER_MARK).lower().startswith(_BANNER)


class Numbers:
    """`count` consecutive numbers of a matrix, of which those at some places are stored; others are 0."""

    def __init__(self, count: int, places: _Places, words: NDArray[np.uint32]) -> None:
        self._count, self._places, self._words = count, places, words

    def __len__(self) -> int:
        return self._count

    def to_words(self, _system: object) -> NDArray[np.uint32]:
        """All of them, of shape (rows, integers)."""
        dense = np.zeros((len(self._words), self._count), dtype=RESIDUE_DTYPE)
        dense[:, self._places] = self._words
        return dense


class MatrixMarketReader:
    """The numbers of a matrix in C order, zeros where the file has no entry.

    The header is read at once, entries by the first :meth:`read`; then words of all of them are in memory.
    Attributes are those of :class:`.IntegerReader`; `held` counts the entries, which take twice as much while
    they are brought into order. Without limits, those of the system hold. InputError if the header is none,
    or of no integers, or of a matrix without numbers.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        system: NumberSystem,
        limits: tuple[int, int] | None = None,
    ) -> None:
        self._stream, self.name, self._system = stream, name, system
        self._limits = system.value_range if limits is None else limits
        self._line = 0
        self.names: list[str] = []
        self.shape: tuple[int, int]
        self.nonzero: int | None
        self.count = self.bound = self.bytes_read = 0
        self._sparse, self._field, self._symmetry = self._banner()
        self.shape, self._stored = self._size()
        column = system.rows * RESIDUE_DTYPE.itemsize + np.dtype(np.int64).itemsize
        self.nonzero = self._most = self._stored * (1 if self._symmetry == "general" else 2)
        self.held = self._most * column
        self._entries: tuple[_Places, NDArray[np.uint32]] | None = None

    @property
    def is_skew(self) -> bool:
        """Whether entries above the diagonal are the negatives of those below it."""
        return self._symmetry == "skew-symmetric"

    def read(self, count: int) -> Numbers:
        """Return the next numbers, at most `count`, and none only at the end of the matrix.

        InputError if the file holds something else than its header tells, or an integer out of range.
        """
        if self._entries is None:
            self._entries = self._read_entries()
        places, words = self._entries
        first, last = self.count, min(self.count + count, self.shape[0] * self.shape[1])
        begin, end = np.searchsorted(places, [first, last])
        self.count = last
        return Numbers(last - first, places[begin:end] - first, words[:, begin:end])

    # ---- The header ---------------------------------------------------------------------------------------

    def _header_line(self) -> bytes:
        line = self._stream.readline(_LONGEST_HEADER_LINE)
        self._line += 1
        self.bytes_read += len(line)
        if len(line) == _LONGEST_HEADER_LINE and not line.endswith(b"\n"):
            raise self._error(f"the line has more than {_LONGEST_HEADER_LINE} characters")
        return line

    def _error(self, problem: str) -> InputError:
        return InputError(f"{self.name}:{self._line}: {problem}")

    def _banner(self) -> tuple[bool, str, str]:
        """Read whether the matrix is sparse, its field and its symmetry."""
        line = self._header_line().removeprefix(BYTE_ORDER_MARK)
        words = line.decode("utf-8", "backslashreplace").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise self._error("a Matrix Market file begins %%MatrixMarket matrix FORMAT integer SYMMETRY")
        for what, given, known in (
            ("format", words[2], ("coordinate", "array")),
            ("field", words[3], ("integer", _UNSIGNED)),
            ("symmetry", words[4], _SYMMETRIES),
        ):
            if given not in known:
                raise self._error(f"the {what} must be {' or '.join(known)}, got {given!r:.80}")
        if words[3:] == [_UNSIGNED, "skew-symmetric"]:
            raise self._error(f"{_NEGATIVE}, and the field is {_UNSIGNED}")
        return words[2] == "coordinate", words[3], words[4]

    def _size(self) -> tuple[tuple[int, int], int]:
        """The shape, and how many entries the file has."""
        line = self._header_line()
        while line and _is_beside(line):
            line = self._header_line()
        words = line.split()
        if len(words) != 2 + self._sparse or not all(w.isdigit() for w in words):
            names = "rows, columns and entries" if self._sparse else "rows and columns"
            raise self._error(f"expected the numbers of {names}, got {_shown(line)}")
        rows, columns, *stored = (min(int(gmpy2.mpz(w)), 2**63) for w in words)
        texts = [w.decode() if len(w) < 40 else f"{w[:40].decode()}..." for w in words]
        shape = f"shape ({texts[0]}, {texts[1]})"
        if not rows or not columns:
            raise self._error(f"a matrix must have at least one number, got {shape}")
        if rows * columns > _MOST_NUMBERS:
            raise self._error(f"a matrix must have fewer than 2**63 numbers, got {shape}")
        if self._symmetry != "general" and rows != columns:
            raise self._error(f"a {self._symmetry} matrix must be square, got {shape}")
        most = rows * columns
        if self._symmetry != "general":
            most = rows * (rows + (1 if self._symmetry == "symmetric" else -1)) // 2
        if stored and stored[0] > most:
            raise self._error(
                f"a {self._symmetry} matrix of {shape} has at most {most} entries, got {texts[2]}"
            )
        return (rows, columns), stored[0] if stored else most

    # ---- Entries ------------------------------------------------------------------------------------------

    def _read_entries(self) -> tuple[_Places, NDArray[np.uint32]]:
        """Places of all entries in C order, ascending, and their words."""
        most = self._most
        # All at once: parts that are joined later would be one more copy.
        places, words = np.empty(most, np.int64), np.empty((self._system.rows, most), RESIDUE_DTYPE)
        done = filled = 0
        for tokens in self._tokens():
            for where, found in self._placed(tokens, done):
                end = filled + len(where)
                places[filled:end], words[:, filled:end] = where, found
                filled = end
            done += len(tokens) // (3 if self._sparse else 1)
        if done < self._stored:
            raise InputError(f"{self.name}: its header tells of {self._stored} entries, it holds {done}")
        return self._in_order(places[:filled], words[:, :filled])

    def _placed(self, tokens: list[bytes], done: int) -> Iterator[tuple[_Places, NDArray[np.uint32]]]:
        """Places and words of some entries, then of what they are mirrored to; `done` come before them."""
        rows, columns, texts = self._split(tokens, done)
        words = self._words_of(texts, done)
        yield rows * self.shape[1] + columns, words
        if self._symmetry != "general":
            other = rows != columns
            yield (columns * self.shape[1] + rows)[other], self._mirrored(words, texts, other, done)

    def _in_order(self, places: _Places, words: NDArray[np.uint32]) -> tuple[_Places, NDArray[np.uint32]]:
        order = np.argsort(places, kind="stable")
        places = places[order]
        if len(twice := np.flatnonzero(places[1:] == places[:-1])):
            raise two_entries(self.name, *divmod(int(places[twice[0]]), self.shape[1]))
        return places, words[:, order]

    def _tokens(self) -> Iterator[list[bytes]]:
        """The words of some lines at a time: as many in each line as there must be."""
        limit = _BESIDE + max(len(hex(end)) * 5 // 4 for end in self._limits)
        left, width = self._stored, 3 if self._sparse else 1
        while lines := list(islice(iter(partial(self._stream.readline, limit), b""), _LINES)):
            counts = [
                0 if b"%" in line and _is_beside(line) else len(line.split(None, width)) for line in lines
            ]
            for k, (line, count) in enumerate(zip(lines, counts, strict=True), self._line + 1):
                if count not in (0, width) or len(line) == limit:
                    wanted = "a row, a column and an integer" if self._sparse else "an integer"
                    raise InputError(f"{self.name}:{k}: expected {wanted}, got {_shown(line)}")
            self._line += len(lines)
            self.bytes_read += sum(map(len, lines))
            left -= sum(counts) // width
            if left < 0:
                raise InputError(f"{self.name}: its header tells of {self._stored} entries, it holds more")
            if any(counts):
                yield b"".join(line for line, count in zip(lines, counts, strict=True) if count).split()

    def _split(self, words: list[bytes], done: int) -> tuple[_Places, _Places, list[bytes]]:
        """Rows and columns of entries, from 0, and their integers; `done` come before them."""
        if self._sparse:
            rows, columns = (self._indices(words[k::3], done, k) for k in (0, 1))
            self._check_triangle(rows, columns, done)
            return rows, columns, words[2::3]
        number = np.arange(done, done + len(words), dtype=np.int64)
        if self._symmetry == "general":
            columns, rows = np.divmod(number, self.shape[0])
            return rows, columns, words
        # The entries on and below the diagonal, column by column.
        longest = self.shape[0] - (self._symmetry == "skew-symmetric")
        ends = np.cumsum(np.arange(longest, 0, -1, dtype=np.int64))
        columns = np.searchsorted(ends, number, side="right")
        return self.shape[0] - (ends[columns] - number), columns, words

    def _indices(self, words: list[bytes], done: int, axis: int) -> _Places:
        """Rows or columns from 0."""
        values = np.array([int(w) if w.isdigit() and len(w) < 16 else 0 for w in words], dtype=np.int64)
        if len(wrong := np.flatnonzero((values < 1) | (values > self.shape[axis]))):
            what, k = ("row", "column")[axis], int(wrong[0])
            place = f"entry {done + k + 1}: its {what} {_shown(words[k])}"
            raise InputError(f"{self.name}: {place} is not from 1 to {self.shape[axis]}")
        return values - 1

    def _check_triangle(self, rows: _Places, columns: _Places, done: int) -> None:
        if self._symmetry == "general":
            return
        is_skew = self._symmetry == "skew-symmetric"
        if len(wrong := np.flatnonzero(rows < columns + is_skew)):
            k = int(wrong[0])
            where = "below the diagonal" if is_skew else "below the diagonal or on it"
            raise InputError(
                f"{self.name}: entry {done + k + 1}: those of a {self._symmetry} matrix must be {where}, "
                f"got row {rows[k] + 1}, column {columns[k] + 1}"
            )

    def _mirrored(
        self, words: NDArray[np.uint32], texts: list[bytes], other: NDArray[np.bool_], done: int
    ) -> NDArray[np.uint32]:
        """Words of what is above the diagonal, of `other` entries."""
        if self._symmetry == "symmetric":
            return words[:, other]
        negated = [_negated(text) for text, is_other in zip(texts, other, strict=True) if is_other]
        return self._words_of(negated, done)

    def _words_of(self, texts: list[bytes], done: int) -> NDArray[np.uint32]:
        """Words of integers, whose range is checked, and that of what is mirrored of them."""
        lowest, highest = self._limits
        if self._symmetry == "skew-symmetric":
            lowest, highest = max(lowest, -highest), min(highest, -lowest)
        if self._field == _UNSIGNED:
            lowest = max(lowest, 0)
        stream = io.BytesIO(b"".join(text + b"\n" for text in texts))
        reader = _EntryReader(stream, self.name, lowest, highest, strict=True)
        reader.entries_before, reader.field, reader.is_skew = done, self._field, self.is_skew
        parts = [np.zeros((self._system.rows, 0), dtype=RESIDUE_DTYPE)]
        while batch := reader.read(len(texts)):
            parts.append(batch.to_words(self._system))
        self.bound = max(self.bound, reader.bound)
        return np.concatenate(parts, axis=1)


def range_of_matrix(
    stream: BinaryIO, name: str, advance: Callable[[int], object] = lambda _: None
) -> NumberRange:
    """Return the range of the integers of a Matrix Market file, those of its mirrored entries too."""
    is_skew = MatrixMarketReader(stream, name, PrimeFields([2])).is_skew
    found = range_of_lines(stream, name, last_word=True, advance=advance)
    if is_skew:
        found.add(-found.lowest)
        found.add(-found.highest)
    return found


class _EntryReader(TextReader):
    """Integers of entries, which errors count."""

    entries_before = 0
    field = ""
    is_skew = False

    def _place(self, row: int) -> str:
        return f"{self.name}: entry {self.entries_before + self.count + row + 1}"

    def _out_of_range(self, value: int) -> str:
        if value < 0 and self.field == _UNSIGNED:
            return f"{abbreviate(value)} is negative, and the field is {_UNSIGNED}"
        if self.is_skew and self._lowest == self._highest == 0:
            return f"{abbreviate(value)} is not 0; {_NEGATIVE}, which need a signed array"
        return super()._out_of_range(value)


def _is_beside(line: bytes) -> bool:
    """Whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith(b"%")


def _negated(text: bytes) -> bytes:
    return text[1:] if text.startswith(b"-") else b"-" + text.removeprefix(b"+")


def _shown(line: bytes) -> str:
    return repr(line.strip()[:80].decode("utf-8", "backslashreplace"))
