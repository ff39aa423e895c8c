"""Python ints of any length in IPython and notebooks, where Python itself writes at most 4300 digits."""

import sys
from fractions import Fraction
from typing import Any

import numpy as np

from rnsdask.core.integer_text import number_text


def show_long_integers() -> None:
    """Register formatters that abbreviate integers which Python refuses to write, where IPython runs.

    In lists, tuples, dictionaries and arrays of objects too. All others it shows as before.
    """
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    if (shell := get_ipython()) is None:
        return
    formatter = shell.display_formatter.formatters["text/plain"]
    for kind in (int, Fraction, np.ndarray):
        formatter.for_type(kind, _print)


def _print(value: Any, printer: Any, _cycle: bool) -> None:
    """Print a value as IPython's pretty printers do."""
    try:
        text = repr(value)
    except ValueError:
        text = _abbreviated(value)
    printer.text(text)


def _abbreviated(value: Any) -> str:
    if isinstance(value, np.ndarray):
        items = np.array2string(
            value, separator=", ", prefix="array(", formatter={"all": _abbreviated}, threshold=_MOST_ITEMS
        )
        return f"array({items}, dtype={value.dtype})"
    if isinstance(value, int):
        return number_text(value)
    if isinstance(value, Fraction):
        return f"Fraction({number_text(value.numerator)}, {number_text(value.denominator)})"
    return f"{value!r}"


_MOST_ITEMS = 100
"""Items of an array of which a summary is not made."""
