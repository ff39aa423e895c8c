"""The range of integers that are to be imported, and the number system that holds it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import gmpy2

from rnsdask.core.errors import InputError
from rnsdask.core.integer_text import parse_integer
from rnsdask.jobs.integer_reading import BYTE_ORDER_MARK, CSV_HEADER, Readable
from rnsdask.positional.system import Positional
from rnsdask.rns.promotion import least_system
from rnsdask.rns.system import RNS

_PIECE = 2**20
_LONGEST_LINE = 2**24
"""Characters of a line: no number system holds integers of more digits."""

_PLAIN = b"0123456789-\n"
_LEADING_ZERO = re.compile(rb"^-?0[0-9]", re.MULTILINE)
_SPACES = b" \t\r"


@dataclass
class NumberRange:
    """A range that some integers are in, and 0.

    Attributes
    ----------
    lowest, highest : int
        Its ends.
    longest : int
        Most characters of one of the integers, where they are text.
    """

    lowest: int = 0
    highest: int = 0
    longest: int = 0

    def add(self, value: int, length: int = 0) -> None:
        """Widen the range to an integer, written in so many characters."""
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)
        self.longest = max(self.longest, length)


def system_of_range(found: NumberRange, *, signed: bool, positional: bool = False) -> RNS | Positional:
    """Return the smallest number system that holds a range, signed if told or if there are negative numbers.

    Raises
    ------
    ValueError
        If no system holds integers of that length.
    """
    signed = signed or found.lowest < 0
    if positional:
        longest = max(found.highest.bit_length(), (~found.lowest).bit_length() if found.lowest else 0, 1)
        return Positional(longest + signed, signed)
    return least_system(found.lowest, found.highest, signed)


def range_of_lines(
    stream: Readable,
    name: str,
    *,
    last_word: bool = False,
    advance: Callable[[int], object] = lambda _: None,
) -> NumberRange:
    """Return the range of the integers of lines of text, up to the first line that is no integer.

    Whoever reads the stream again meets that line, and tells of it.

    Parameters
    ----------
    last_word : bool
        Whether lines have other words before an integer, and comments, as those of Matrix Market files after
        the line of their size.
    advance : callable
        Told how many more bytes are read.

    Raises
    ------
    InputError
        If a line is longer than any integer that can be stored.
    """
    found = NumberRange()
    add = _add_last_words if last_word else _add_lines
    rest, is_first = b"", True
    while piece := stream.read(_PIECE):
        advance(len(piece))
        text = rest + piece
        end = text.rfind(b"\n") + 1
        text, rest = text[:end], text[end:]
        if is_first and text:
            text, is_first = text.removeprefix(BYTE_ORDER_MARK), False
            text = text.replace(b"\r\n", b"\n").removeprefix(CSV_HEADER)
        if not add(found, text):
            return found
        if len(rest) > _LONGEST_LINE:
            raise InputError(
                f"{name}: a line has more than {_LONGEST_LINE} characters, more than any integer"
            )
    add(found, rest.removeprefix(BYTE_ORDER_MARK) if is_first else rest)
    return found


def _add_lines(found: NumberRange, text: bytes) -> bool:
    """Widen a range to the integers of whole lines; False if there is another line."""
    text = text.replace(b"\r\n", b"\n")
    if text.translate(None, _PLAIN) or _LEADING_ZERO.search(text):
        return _add_each(found, text.split(b"\n"))
    lines = text.split(b"\n")
    negative = [line for line in lines if line.startswith(b"-")] if b"-" in text else []
    if text.count(b"-") != len(negative) or b"-" in negative:
        return _add_each(found, lines)
    # Without leading zeros and other characters, text of one length is in the order of its numbers.
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
