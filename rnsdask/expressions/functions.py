"""The operations of expressions by name: what each does to arrays, and to ranges."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.arrays.number_array import NumberArray
from rnsdask.core import ranges
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.ranges import Range
from rnsdask.lazy import functions, modular, number_theory
from rnsdask.lazy.planning import elemwise

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
    """

    arguments: tuple[str, ...]
    of_arrays: Callable[..., Any]
    of_ranges: Callable[..., Range]
    result: str = NUMBERS
    least: int | None = None
    counted: int | None = None


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
    """Compare numbers; or small integers, of which no array of numbers tells a system."""
    if isinstance(x, NumberArray) or isinstance(y, NumberArray):
        return operation(x, y)
    return _logic(operation, *map(_wide, (x, y)))


def _wide(small: Any) -> Any:
    """Small integers as int64; a Python int beyond all of them as the nearest that is."""
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

_OPERATORS = {
    "floor_divide": Form(("number",) * 2, operator.floordiv, ranges.floor_divide, counted=_FIRST),
    "remainder": Form(("number",) * 2, operator.mod, ranges.remainder, counted=_FIRST),
    "power": Form(_INTEGER_SECOND, operator.pow, ranges.power, counted=_FIRST),
    "left_shift": Form(_INTEGER_SECOND, operator.lshift, ranges.left_shift, counted=_FIRST),
    "right_shift": Form(_INTEGER_SECOND, operator.rshift, ranges.right_shift, counted=_FIRST),
    "matmul": Form(("number",) * 2, _matmul, ranges.matmul),
    **{
        name: Form(("number",) * 2, partial(_relation, relation), ranges.truth, BOOLEANS, counted=_NONE)
        for name, relation in (
            *(("less", operator.lt), ("less_equal", operator.le), ("greater", operator.gt)),
            *(("greater_equal", operator.ge), ("equal", operator.eq), ("not_equal", operator.ne)),
        )
    },
    **{
        name: Form(("number",) * 2, getattr(functions, name), ranges.bitwise)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    },
    "invert": Form(("number",), operator.invert, ranges.invert),
    **{
        f"logical_{name}": Form(
            ("Boolean",) * 2, partial(_logic, logic), ranges.truth, BOOLEANS, counted=_NONE
        )
        for name, logic in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor))
    },
    "logical_not": Form(("Boolean",), operator.invert, ranges.truth, BOOLEANS, counted=_NONE),
}

FUNCTIONS = {
    **{
        name: Form(("number",) * operation.arity, getattr(functions, name), ranges.SUMS_OF_PRODUCTS[name])
        for name, operation in OPERATIONS.items()
    },
    "negative": Form(("number",), functions.negative, ranges.negative),
    "abs": Form(("number",), functions.absolute, ranges.absolute),
    "maximum": Form(("number",) * 2, functions.maximum, ranges.maximum),
    "minimum": Form(("number",) * 2, functions.minimum, ranges.minimum),
    "clip": Form(("number",) * 3, functions.clip, ranges.clip),
    "pow": Form(("number", "integer", "integer"), pow, ranges.power, least=2, counted=_FIRST),
    "where": Form(("Boolean", "number", "number"), functions.where, ranges.where),
    "sign": Form(("number",), functions.sign, ranges.sign, SIGNS),
    "is_even": Form(("number",), _is_even, ranges.truth, BOOLEANS),
    "gcd": Form(("number",) * 2, number_theory.gcd, ranges.gcd),
    "lcm": Form(("number",) * 2, number_theory.lcm, ranges.lcm),
    "isqrt": Form(("number",), number_theory.isqrt, ranges.isqrt),
    **{
        name: Form(("number",) * arity, getattr(modular, name), ranges.modular, counted=_FIRST)
        for name, arity in (
            *(("mod_add", 3), ("mod_subtract", 3), ("mod_multiply", 3), ("mod_power", 3)),
            ("mod_inverse", 2),
        )
    },
    "bitwise_count": Form(("number",), functions.bitwise_count, ranges.bitwise_count, SIGNS),
    "bit_length": Form(("number",), number_theory.bit_length, ranges.bit_length, SIGNS),
}
"""The functions by their names in an expression."""

FORMS = {**_OPERATORS, **FUNCTIONS}
"""All operations; operators have the names that NumPy gives them."""

EXTREMA = {"max": "maximum", "min": "minimum"}
"""Functions of any number of arguments, and those of two that they are made of."""
