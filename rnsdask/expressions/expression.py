"""Expressions over arrays of numbers, such as ``a*b + c``: text in, lazy arrays out."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.arrays.interval_rns_array import IntervalRNSArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.core.operations import LONG_PRODUCT, LONG_ROWS
from rnsdask.core.overflow import errstate
from rnsdask.core.rows import ROWS, compare
from rnsdask.core.ways import Kind, Message, Way, with_ways
from rnsdask.expressions.functions import BOOLEANS, FORMS, NUMBERS, SIGNS
from rnsdask.expressions.syntax import Expression
from rnsdask.expressions.walk import Key, walk
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.indexing import select
from rnsdask.lazy.integer_operands import as_numbers, numbers_of
from rnsdask.lazy.operands import compute_lengths, find_lengths


@dataclass(frozen=True)
class Evaluation:
    """The value of an expression, with the mask of its overflows.

    Attributes
    ----------
    value : RNSArray, IntervalRNSArray, or Boolean or integer array
        Lazy if an operand is.
    mask : Boolean array or None
        With ``overflow="flag"``: where the exact result of an operation was out of range; its shape
        broadcasts to that of `value`. None if no operation can overflow.
    words : int
        Words for each number of `value`, if an operation of the expression makes it: 0 of an operand.
    peak : int
        Most words for each number that are alive at one time while the expression is computed, beside its
        operands: intermediate results, however wide, and what the operations themselves hold.
    passes : float
        Passes of all operations together, as :class:`.Footprint` has them.
    """

    value: Any
    mask: Any = None
    words: int = 0
    peak: int = 0
    passes: float = 0


def evaluate(expression: Expression, operands: Mapping[str, Any], overflow: str = "raise") -> Evaluation:
    """Apply the operations of an expression to arrays.

    ``a*b + c``, ``c + a*b``, ``a*b + c*d``, ``a*b - c``, ``c - a*b`` and ``a*b - c*d`` are one operation each
    (`fma`, `muladd`, `mulsub`) where the arrays have it, so only their result must be in range, not the
    products. Every other intermediate result counts.

    Names stand for arrays of numbers, Boolean arrays, arrays of small integers (signs), and evaluations of
    other expressions, whose masks join the result's. ExpressionError if one stands for nothing, the
    expression holds anything else than operations of this package, or operands do not fit one another. If
    arrays are lazy, nothing has been computed.
    """
    values = {
        name: Evaluation(value.value, value.mask) if isinstance(value, Evaluation) else Evaluation(value)
        for name, value in operands.items()
    }
    value = walk(expression, values, _Arrays(values, overflow))
    if isinstance(value, int):
        raise expression.error(expression.body, "it has no array, only integers")
    return value


class _Arrays:
    """Values that are arrays, with the masks of their overflows."""

    def __init__(self, operands: Mapping[str, Evaluation], overflow: str) -> None:
        arrays = (operand.value for operand in operands.values())
        self.numbers: list[Any] = [array for array in arrays if isinstance(array, NumberArray)]
        self.overflow = overflow

    def kind(self, value: Evaluation) -> str:
        if isinstance(value.value, NumberArray):
            return NUMBERS
        return BOOLEANS if value.value.dtype == np.bool_ else SIGNS

    def fuses(self, name: str) -> bool:
        if name == "mulsub" and any(array.system.value_range[1] < 1 for array in self.numbers):
            return False  # 1, a factor of it here, is not in the range of -1 and 0
        try:
            entry_of(ROWS[name], *self.numbers)
        except TypeError:
            return False
        return True

    def apply(self, name: str, *values: int | Evaluation) -> Evaluation:
        masks = [v.mask for v in values if isinstance(v, Evaluation) and v.mask is not None]
        if name == "matmul" and masks:
            # A mask of an operand says nothing about single sums of its products.
            raise ValueError("with overflow flagged, operands of @ must be names")
        form, arrays = FORMS[name], [v.value if isinstance(v, Evaluation) else v for v in values]
        if name == "where" and self.numbers and all(isinstance(choice, int) for choice in arrays[1:]):
            arrays[1] = as_numbers([arrays[1]], self.numbers[0])  # the kind of the other arrays
        if "number" in form.arguments:
            arrays = self.as_numbers(arrays, needed=name not in _OF_SIGNS)
        try:
            with errstate(overflow=self.overflow):
                result = form.of_arrays(*arrays)
        except (TypeError, AttributeError) as error:
            are_intervals = any(isinstance(array, IntervalRNSArray) for array in arrays)
            if not are_intervals or "; " in str(error):  # what names a way out already
                raise
            way = Message(Way.RESIDUES_ALONE, " makes ", Kind("RNSArray", "a"), " of it")
            raise TypeError(with_ways(error, way)) from error
        if isinstance(result, tuple):
            result, mask = result
            masks.append(mask)
        mask = reduce(operator.or_, masks) if masks else None
        made = [v for v in values if isinstance(v, Evaluation)]
        passes = form.footprint.passes + sum(v.passes for v in made)
        return Evaluation(result, mask, *_memory(name, result, made), passes)

    def as_numbers(self, arrays: list[Any], needed: bool) -> list[Any]:
        """Convert small integers to the system of the numbers among the arrays, or to some if `needed`."""
        small = [not isinstance(array, int | NumberArray) and array.dtype != np.bool_ for array in arrays]
        likes = [array for array in arrays if isinstance(array, NumberArray)] or (
            self.numbers if needed else []
        )
        if not any(small) or not (likes or needed):
            return arrays
        if not likes:
            raise TypeError("arrays of signs alone have no moduli set: an array of numbers is needed too")
        return [
            numbers_of(array, likes[0]) if is_small else array
            for array, is_small in zip(arrays, small, strict=True)
        ]

    def select(self, value: Evaluation, key: Key) -> Evaluation:
        array, mask = value.value, value.mask
        key = _leaving_an_axis(key, array.shape)
        if mask is not None:
            broadcast = da.broadcast_to if isinstance(mask, da.Array) else np.broadcast_to
            mask = select(broadcast(mask, array.shape)[None], key)[0]
        part = array[key] if isinstance(array, NumberArray) else select(array[None], key)[0]
        words = _words_of(part)
        return Evaluation(part, mask, words, max(value.peak, value.words + words), value.passes)

    def choose(self, value: Evaluation, condition: Evaluation) -> Evaluation:
        if value.mask is not None or condition.mask is not None:
            raise ValueError("with overflow flagged, a selection by a condition is of names")
        array, where = value.value, condition.value
        if array.shape != where.shape:
            raise ValueError(
                f"a condition must have the shape of the array, {array.shape}, got {where.shape}"
            )
        words = _words_of(array)
        part = array[where]
        if isinstance(part, NumberArray):
            find_lengths(part)
        else:
            part = compute_lengths(part)
        made = [value, condition]
        peak = max(words + one.words + one.peak for one in made)
        return Evaluation(part, None, words, peak, sum(one.passes for one in made))


def _words_of(value: Any) -> int:
    """Words of 32 bits for each number of an array; one of Booleans or of signs."""
    return value.system.words32 if isinstance(value, NumberArray) else 1


def _memory(name: str, result: Any, arguments: list[Evaluation]) -> tuple[int, int]:
    """Words for each number of a step's result, and the most that are alive until it is made.

    The arguments are made one after the other, in any order; all are alive while the step is computed.
    """
    words, waiting = _words_of(result), sum(argument.words for argument in arguments)
    rows = max([words, *(_words_of(argument.value) for argument in arguments)])
    steps = [FORMS[name].footprint]
    if rows > LONG_ROWS and name in _PRODUCTS:
        steps.append(LONG_PRODUCT)
    held = sum(step.arrays * rows + step.words for step in steps)
    before = (argument.peak + waiting - argument.words for argument in arguments)
    return words, max([waiting + words + held, *before])


_PRODUCTS = ("multiply", "fma", "muladd", "mulsub", "power", "matmul")

# Small integers are compared as they are.
_OF_SIGNS = tuple(compare.numpy)


def _leaving_an_axis(key: Key, shape: tuple[int, ...]) -> Key:
    """Make the index of one number one of an array of one axis; IndexError as NumPy raises it."""
    if np.broadcast_to(np.int8(0), shape)[key].ndim or not shape:
        return key
    last = max(place for place, item in enumerate(key) if isinstance(item, int))
    index = int(key[last])  # type: ignore[arg-type]
    return (*key[:last], slice(index, index + 1 or None), *key[last + 1 :])
