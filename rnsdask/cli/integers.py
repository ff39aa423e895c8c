"""Integers as options take them: in decimal, with ``_`` between digits, or like ``1e6``."""

import re
from typing import Any

import click

_DECIMAL = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_POWER = re.compile(r"([+-]?[0-9]+)(?:\.([0-9]+))?[eE]\+?([0-9]{1,3})")
_MOST_DIGITS = 1000


class Integer(click.ParamType):
    """An exact integer: what is no integer, such as ``1.5`` or ``1e-3``, is refused."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the integer."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if _DECIMAL.fullmatch(text) and len(text) <= _MOST_DIGITS:
            return int(text)
        if found := _POWER.fullmatch(text):
            whole, decimals, exponent = found[1], found[2] or "", int(found[3])
            if len(decimals) <= exponent <= _MOST_DIGITS:
                return int(whole + decimals) * 10 ** (exponent - len(decimals))
        self.fail(f"{text!r:.60} is not an integer, such as 1000000, 1_000_000 or 1e6", param, ctx)


INTEGER = Integer()
