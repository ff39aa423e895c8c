"""Integers as text: parsing one, reading a file of moduli, and writing an integer of any length."""

import operator
import re
from functools import partial
from typing import Any, BinaryIO, SupportsIndex

import gmpy2

from rnsdask.core.errors import InputError, brief
from rnsdask.core.file_formats import format_of_begin

_INTEGER = re.compile(rb"([+-]?)(?:([0-9]+)|0[xX]([0-9a-fA-F]+))")

# A file of moduli may be a device or a pipe that never ends.
_LONGEST_MODULI_LINE = 4096
_MOST_MODULI_LINES = 2**20

_SHOWN = 40  # characters of a bad line that an error message repeats


def read_moduli(stream: BinaryIO, name: str) -> list[int]:
    """Read a file of moduli: one integer a line; blank lines and text after a ``#`` are ignored.

    InputError if a line is not an integer, or there are no moduli or too many. Whether they form a moduli set
    is not checked here.
    """
    moduli = []
    lines = iter(partial(stream.readline, _LONGEST_MODULI_LINE + 1), b"")
    for number, line in enumerate(lines, 1):
        if number > _MOST_MODULI_LINES:
            raise InputError(f"{name}: it has more than {_MOST_MODULI_LINES} lines")
        if number == 1 and (kind := format_of_begin(line)):
            raise InputError(f"{name}: its first bytes are those of {kind}, not of text, one integer a line")
        text = line.partition(b"#")[0].strip()
        value = parse_integer(text) if len(text) <= _SHOWN else None  # 2**32 has ten digits
        if text and value is None:
            raise InputError(f"{name}:{number}: {not_an_integer(text)}")
        if len(line) > _LONGEST_MODULI_LINE:
            raise InputError(f"{name}:{number}: the line has more than {_LONGEST_MODULI_LINE} characters")
        if value is not None:
            moduli.append(int(value))
    if not moduli:
        raise InputError(f"{name}: holds no modulus; one integer a line was expected")
    return moduli


def to_decimal(value: SupportsIndex) -> str:
    """Write an integer of any length and type in decimal; a lazy one is computed.

    Python's own ``str`` refuses more than 4300 digits (unless ``sys.set_int_max_str_digits`` allows them),
    and takes time quadratic in the number of digits.
    """
    try:
        integer = operator.index(value)
    except TypeError:
        raise TypeError(
            f"to_decimal takes an integer, got {brief(value)} of type {type(value).__name__}"
        ) from None
    return str(gmpy2.mpz(integer).digits(10))


def brief_decimal(value: int, longest: int = 20, kept: int = 5) -> tuple[str, int | None]:
    """Write an integer in decimal, or only its first and last digits if it is long.

    The digits in the middle are not computed: this is quick for any length. Return text such as
    ``"27404…01306"`` and the number of digits, 87, or None if the text is complete. An integer of at most
    `longest` digits is written completely; a longer one shows its first and last `kept` digits, at most half
    of `longest`.
    """
    magnitude = abs(gmpy2.mpz(value))
    sign = "-" if value < 0 else ""
    count = magnitude.num_digits(10)  # may be 1 too many
    if count <= longest:
        return f"{sign}{magnitude.digits(10)}", None
    head = magnitude // gmpy2.mpz(10) ** (count - kept)
    if head < 10 ** (kept - 1):
        count -= 1
        if count <= longest:
            return f"{sign}{magnitude.digits(10)}", None
        head = magnitude // gmpy2.mpz(10) ** (count - kept)
    return f"{sign}{head}…{magnitude % 10**kept:0{kept}d}", count


def number_text(value: int) -> str:
    """Write a number within a message: ``27404…01306 (87 digits)`` if it is long."""
    text, count = brief_decimal(value)
    return text if count is None else f"{text} ({count} digits)"


def parse_integer(text: bytes) -> Any:
    """Parse an integer, decimal or hexadecimal after ``0x``: a `gmpy2.mpz`, or None for any other text."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, decimal, hexadecimal = match.groups()
    magnitude = gmpy2.mpz(hexadecimal, 16) if decimal is None else gmpy2.mpz(decimal, 10)
    return -magnitude if sign == b"-" else magnitude


def not_an_integer(line: bytes) -> str:
    """Describe a line that is not an integer, for an error message."""
    if not line:
        return "empty line; every line must hold one integer"
    shown = line[:_SHOWN].decode("utf-8", "backslashreplace")
    dots = "..." if len(line) > _SHOWN else ""
    return f"{shown!r}{dots} is not an integer (decimal, or hexadecimal after 0x)"
