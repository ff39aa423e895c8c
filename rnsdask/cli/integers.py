"""Integers on the command line: ``1000000``, ``1_000_000``, ``1e6``, ``2**20`` or ``0x100000``."""

import re
from typing import Any

import click

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_PLAIN = re.compile(rf"[+-]?(?:0[xX](?P<hex>[0-9a-fA-F]+)|{_DIGITS})")
_SCIENTIFIC = re.compile(
    rf"(?P<whole>[+-]?{_DIGITS})(?:\.(?P<decimals>[0-9]*))?[eE]\+?(?P<exponent>[0-9]{{1,6}})"
)
_POWER = re.compile(rf"(?P<sign>[+-]?)(?P<base>{_DIGITS})\*\*(?P<exponent>[0-9]{{1,7}})")

_MOST_BITS = 2**20
"""Most bits of an integer with an exponent, as in expressions, so that no typing error fills the memory."""

_LONGEST_OPTION = 10**100
"""Bound of the magnitudes of options, such as counts, bits and seeds, so that a message can repeat them."""

_FORMS = "an integer, such as 1000000, 1e6 or 2**20"


def read_integer(text: str) -> int | None:
    """Parse an integer, also with an exponent; None for other text, such as a path."""
    if found := _PLAIN.fullmatch(text):
        return _plain(text, found["hex"])
    if found := _SCIENTIFIC.fullmatch(text):
        decimals = (found["decimals"] or "").rstrip("0")
        zeros = int(found["exponent"]) - len(decimals)
        return _times_power(_plain(found["whole"] + decimals, None), 10, zeros)
    if found := _POWER.fullmatch(text):
        power = _times_power(1, _plain(found["base"], None), int(found["exponent"]))
        return -power if power is not None and found["sign"] == "-" else power
    return None


def _plain(text: str, hexadecimal: str | None) -> int:
    digits, base = (text.lstrip("+-").replace("_", ""), 10) if hexadecimal is None else (hexadecimal, 16)
    sign = -1 if text.startswith("-") else 1
    if len(digits) < 4000:  # Python refuses more than 4300
        return sign * int(digits, base)
    import gmpy2

    return sign * int(gmpy2.mpz(digits, base))


def _times_power(value: int, base: int, exponent: int) -> int | None:
    """Product of a value and a power; None if it is not an integer, or too long."""
    if exponent < 0 or value.bit_length() + base.bit_length() * exponent > 2 * _MOST_BITS:
        return None
    product = value * base**exponent
    return product if product.bit_length() <= _MOST_BITS else None


class Integer(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click alone
    """Type of an option or argument that is an integer, from `lowest` to `highest` if given."""

    name = "integer"

    def __init__(self, lowest: int | None = None, highest: int | None = None) -> None:
        self._lowest, self._highest = lowest, highest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the integer."""
        number = value if isinstance(value, int) else read_integer(value)
        if number is None:
            self.fail(f"{value!r:.60} is not {_FORMS}", param, ctx)
        if abs(number) >= _LONGEST_OPTION:
            self.fail(f"{value!s:.20}... has more than 100 digits", param, ctx)
        if self._lowest is not None and number < self._lowest:
            self.fail(f"it must be at least {self._lowest}, got {value!s:.60}", param, ctx)
        if self._highest is not None and number > self._highest:
            self.fail(f"it must be at most {self._highest}, got {value!s:.60}", param, ctx)
        return number


INTEGER = Integer()
POSITIVE = Integer(1)
NOT_NEGATIVE = Integer(0)
