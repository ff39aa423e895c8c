"""Integers of Python and of text from limbs and back."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import DecimalConstants


def _digits_are_known() -> bool:
    """Compare with Python's own bytes whether the extension knows how this Python holds an int."""
    layout = (int.__basicsize__ - object.__basicsize__, int.__itemsize__, sys.int_info.bits_per_digit)
    if layout != (8, 4, 30):
        return False
    powers = [2**bits - few for bits in (0, 1, 29, 30, 31, 59, 60, 61, 119, 120, 500) for few in (0, 1)]
    values = [*powers, *(-power for power in powers)]
    limbs = np.empty((len(values), 16), dtype=np.uint32)
    return (
        _cpu.ints_to_limbs(values, True, limbs) == len(values)
        and limbs.tobytes() == b"".join(value.to_bytes(64, "little", signed=True) for value in values)
        and _cpu.limbs_to_ints(limbs, True) == values
    )


KNOWS_DIGITS = _digits_are_known()  # else by int's own methods, at half the speed


def ints_to_limbs(values: list[Any], signed: bool, limbs: NDArray[np.uint32]) -> int:
    """Write Python ints as (N, L) limbs, in two's complement when `signed`.

    Returns the position of the first value that does not fit or has another type, and N if all do.
    """
    if KNOWS_DIGITS:
        position: int = _cpu.ints_to_limbs(values, signed, limbs)
        return position
    size = limbs.shape[1] * limbs.itemsize
    for i, value in enumerate(values):
        if type(value) is not int:
            return i
        try:
            limbs[i] = np.frombuffer(value.to_bytes(size, "little", signed=signed), limbs.dtype)
        except OverflowError:
            return i
    return len(values)


def limbs_to_ints(limbs: NDArray[np.uint32], signed: bool) -> list[int]:
    """Read (N, L) limbs, contiguous along L, as Python ints."""
    if KNOWS_DIGITS:
        values: list[int] = _cpu.limbs_to_ints(limbs, signed)
        return values
    return [int.from_bytes(number.tobytes(), "little", signed=signed) for number in limbs]


def greatest_magnitude(values: list[Any]) -> int | None:
    """The greatest magnitude of Python ints; None if there are no values, or some of another type."""
    if KNOWS_DIGITS:
        position: int = _cpu.greatest_magnitude(values)
        return None if position < 0 else abs(values[position])
    return max(map(abs, values)) if set(map(type, values)) == {int} else None


def parse_lines(
    text: bytes, start: int, longest: int, spaces: int, signed: bool, limbs: NDArray[np.uint32]
) -> tuple[int, int]:
    """Read lines of text, each an integer, into (N, L) limbs; in two's complement when `signed`.

    There may be as many as `spaces` spaces and tabs around an integer. Return how many were read, and where
    in the text they end: before the first line that does not end there, has more than `longest` characters,
    is no integer or does not fit into the limbs; or is a decimal one of thousands of digits.
    """
    rows, end = _cpu.parse_lines(text, start, longest, spaces, signed, limbs)
    return rows, end


def parse_decimal_lines(
    text: bytes, start: int, longest: int, spaces: int, signed: bool, limbs: NDArray[np.uint32]
) -> tuple[int, int]:
    """Parse decimal integers of any length into limbs in base 10**9, as :func:`parse_lines`.

    When `signed`, the last of L limbs is 1 for a negative number; it counts ``-10**(9 (L - 1))``.
    """
    rows, end = _cpu.parse_decimal_lines(text, start, longest, spaces, signed, limbs)
    return rows, end


def format_hexadecimal(limbs: NDArray[np.uint32], signed: bool) -> NDArray[np.uint8]:
    """Write (N, L) limbs, in two's complement when `signed`, as lines of text."""
    text = np.empty(len(limbs) * (8 * limbs.shape[1] + 4), dtype=np.uint8)
    return text[: _cpu.format_hexadecimal(limbs, signed, text)]


def format_decimal(limbs: NDArray[np.uint32], negative: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Write magnitudes, (N, L) limbs in base 10**9, with their signs as lines of text."""
    text = np.empty(len(limbs) * (9 * limbs.shape[1] + 2), dtype=np.uint8)
    return text[: _cpu.format_decimal(limbs, negative.view(np.uint8), text)]


def residues_to_decimal(
    residues: Array, constants: DecimalConstants
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """The numbers' magnitudes as (N, L) limbs in base 10**9, and which numbers are negative."""
    limbs = np.empty((residues.shape[1], len(constants.product)), dtype=np.uint32)
    negative = np.empty(len(limbs), dtype=np.bool_)
    tables = (constants.table, constants.last, constants.inverses, constants.product, constants.highest)
    _cpu.residues_to_decimal(residues, *tables, limbs, negative.view(np.uint8))
    return limbs, negative
