"""The operations of expressions by name: what each does to arrays, and to ranges."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.arrays.number_array import NumberArray
from rnsdask.core import ranges, rows
from rnsdask.core.operations import OPERATIONS, STEP, Footprint
from rnsdask.core.ranges import Range
from rnsdask.core.rows import ROWS, Row
from rnsdask.lazy import functions, modular, number_theory
from rnsdask.lazy.planning import elemwise
from rnsdask.rns.compare import RELATIONS

NUMBERS, SIGNS, BOOLEANS = "an array of numbers", "an array of signs", "a Boolean array"
"""The kinds of arrays in an expression, as messages call them; signs are any small integers."""


@dataclass(frozen=True)
class Form:
    """An operation, or a function.

    Attributes
    ----------
    arguments : tuple of {"number", "integer", "Boolean"}
        What it takes; a number is an array or an integer.
    of_arrays : callable
        Applied to arrays and integers.
    of_ranges : callable
        Applied to the ranges of its arguments; the range of its results.
    result : str
        The kind of array that it gives.
    least : int
        How many arguments it takes at least; without it all.
    counted : int
        How many of the first arguments must be in the range of the moduli set, also if they are integers; a
        divisor need not. Without it all.
    footprint : Footprint
        Memory that a task of it takes.
    """

    arguments: tuple[str, ...]
    of_arrays: Callable[..., Any]
    of_ranges: Callable[..., Range]
    result: str = NUMBERS
    least: int | None = None
    counted: int | None = None
    footprint: Footprint = STEP


def _logic(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Combine two Boolean arrays, whose chunks may be on different processors."""
    if isinstance(x, da.Array) or isinstance(y, da.Array):
        return elemwise(partial(_on_one_processor, operation), x, y, dtype=np.bool_)
    return operation(x, y)


def _on_one_processor(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    # A comparison that needs no residues, and a mask from a store, give NumPy's chunks on every processor.
    like = y if isinstance(x, np.ndarray) else x
    return operation(np.asarray(x, like=like), np.asarray(y, like=like))


def _relation(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Compare numbers, or small integers where neither operand has a number system."""
    if isinstance(x, NumberArray) or isinstance(y, NumberArray):
        return operation(x, y)
    return _logic(operation, *map(_wide, (x, y)))


def _wide(small: Any) -> Any:
    """Convert small integers to int64, and a Python int beyond its range to the end that is nearer."""
    ends = np.iinfo(np.int64)
    return np.array(min(max(small, ends.min), ends.max)) if isinstance(small, int) else small.astype(np.int64)


def _is_even(x: Any) -> Any:
    return x.is_even()


def _matmul(x: Any, y: Any) -> Any:
    # Of two vectors the sum of the products is an array of one number, not a Python int.
    are_vectors = all(isinstance(array, NumberArray) and array.ndim == 1 for array in (x, y))
    return _as_row(x) @ y if are_vectors else x @ y


def _as_row(vector: NumberArray) -> NumberArray:
    return type(vector)(vector.words[:, None, :], vector.system)


_INTEGER_SECOND = ("number", "integer")
_FIRST = 1
_NONE = 0

_KINDS = {None: NUMBERS, np.dtype(np.bool_): BOOLEANS, np.dtype(np.int8): SIGNS, np.dtype(np.int64): SIGNS}


def _of_row(row: Row[..., Any], of_arrays: Callable[..., Any], counted: int | None = None) -> Form:
    """The form of a row: numbers as arguments, and what the row says of the results."""
    assert row.result is not None
    arguments = ("number",) * row.arity
    return Form(arguments, of_arrays, row.result, _KINDS[row.gives], None, counted, row.footprint)


_DIVISION: dict[str, Any] = {"counted": _FIRST, "footprint": rows.floor_divide.footprint}
_POWER: dict[str, Any] = {"counted": _FIRST, "footprint": rows.power.footprint}
_SHIFT: dict[str, Any] = {"counted": _FIRST, "footprint": rows.left_shift.footprint}

_OPERATORS = {
    "floor_divide": Form(("number",) * 2, operator.floordiv, ranges.floor_divide, **_DIVISION),
    "remainder": Form(("number",) * 2, operator.mod, ranges.remainder, **_DIVISION),
    "power": Form(_INTEGER_SECOND, operator.pow, ranges.power, **_POWER),
    "left_shift": Form(_INTEGER_SECOND, operator.lshift, ranges.left_shift, **_SHIFT),
    "right_shift": Form(_INTEGER_SECOND, operator.rshift, ranges.right_shift, **_SHIFT),
    "matmul": Form(("number",) * 2, _matmul, ranges.matmul, footprint=rows.matmul.footprint),
    **{
        name: Form(
            ("number",) * 2, partial(_relation, RELATIONS[sign]), ranges.truth, BOOLEANS, counted=_NONE
        )
        for name, sign in rows.compare.numpy.items()
    },
    **{
        row.name: _of_row(row, getattr(functions, row.name))
        for row in (rows.bitwise_and, rows.bitwise_or, rows.bitwise_xor)
    },
    "invert": _of_row(rows.invert, operator.invert),
    **{
        f"logical_{name}": Form(
            ("Boolean",) * 2, partial(_logic, logic), ranges.truth, BOOLEANS, counted=_NONE
        )
        for name, logic in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor))
    },
    "logical_not": Form(("Boolean",), operator.invert, ranges.truth, BOOLEANS, counted=_NONE),
}

FUNCTIONS = {
    **{name: _of_row(ROWS[name], getattr(functions, name)) for name in OPERATIONS},
    "negative": _of_row(rows.negative, functions.negative),
    "abs": _of_row(rows.absolute, functions.absolute),
    "maximum": Form(("number",) * 2, functions.maximum, ranges.maximum),
    "minimum": Form(("number",) * 2, functions.minimum, ranges.minimum),
    "clip": Form(("number",) * 3, functions.clip, ranges.clip),
    "pow": Form(("number", "integer", "integer"), pow, ranges.power, least=2, **_POWER),
    "where": Form(("Boolean", "number", "number"), functions.where, ranges.where),
    "sign": _of_row(rows.sign, functions.sign),
    "is_even": _of_row(rows.is_even, _is_even),
    "gcd": _of_row(rows.gcd, number_theory.gcd),
    "lcm": _of_row(rows.lcm, number_theory.lcm),
    **{
        row.name: _of_row(row, getattr(number_theory, row.name))
        for row in (rows.isqrt, rows.factorial, rows.binomial, rows.primorial)
    },
    **{
        row.name: _of_row(row, getattr(modular, row.name), _FIRST)
        for row in (rows.mod_add, rows.mod_subtract, rows.mod_multiply, rows.mod_power, rows.mod_inverse)
    },
    "bitwise_count": _of_row(rows.bitwise_count, functions.bitwise_count),
    "bit_length": _of_row(rows.bit_length, number_theory.bit_length),
}
"""The functions by their names in an expression."""

FORMS = {**_OPERATORS, **FUNCTIONS}
"""All operations; operators have the names that NumPy gives them."""

EXTREMA = {"max": "maximum", "min": "minimum"}
"""Functions of any number of arguments, and those of two that they are made of."""
