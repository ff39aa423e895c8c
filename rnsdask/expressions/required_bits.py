"""How many bits a chain of operations needs, from the bounds of its inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.moduli import as_integer
from rnsdask.core.ranges import Range, check_bits
from rnsdask.core.ways import must
from rnsdask.expressions.functions import FORMS, NUMBERS, SIGNS
from rnsdask.expressions.syntax import Expression, parse
from rnsdask.expressions.walk import Key, walk
from rnsdask.lazy.operands import broadcast_shape

Bound: TypeAlias = int | tuple[int, int] | RNSArray


def required_bits(expression: str, **bounds: Bound) -> int:
    """Bits of a moduli set whose range holds every step of a computation.

    Parameters
    ----------
    expression : str
        As the command ``eval`` takes it (docs/cli.md), so of names, integers, operators, slices and functions
        such as ``maximum``. It is parsed, never run as Python.
    **bounds : int, pair of ints, or RNSArray
        For each name the greatest value of an input that is not negative; or its lowest and its highest
        value; or an array, whose own bound counts (or its range). ``@`` needs arrays, for their shapes.

    Returns
    -------
    int
        For ``ModuliSet.for_bits(bits)``. If a value may be negative, that is to be a signed array, and the
        bits count the sign. Every intermediate result is counted as well, those of ``a*b`` in ``a*b + c``
        too; each name stands for any value of its bounds at each place where it occurs.

    Raises
    ------
    ValueError, TypeError
        If the expression has anything else in it, a name without a bound, or an operation that may give more
        than 2**20 bits; or a bound is not one.

    Examples
    --------
    >>> required_bits("a*b + c", a=2**100, b=2**100, c=(-5, 5))
    202
    """
    if not isinstance(expression, str):
        raise TypeError(must("expression", f"be a str, got {brief(expression)}"))
    known = {name: _known(name, bound) for name, bound in bounds.items()}
    return bits_of(range_of_steps({"": parse(expression)}, known, fused=False))


def bits_of(found: Range) -> int:
    """Bits of all integers of a range; with the sign, if one may be negative."""
    low, high = found
    if low >= 0:
        return max(1, high.bit_length())
    return 1 + max(high.bit_length(), (-low - 1).bit_length())


@dataclass(frozen=True)
class Known:
    """Range, kind (of `functions.py`) and shape, if it is known, of a value before it is computed."""

    range: Range
    shape: tuple[int, ...] | None = None
    kind: str = NUMBERS


def range_of_steps(
    expressions: Mapping[str, Expression],
    names: Mapping[str, Known],
    *,
    fused: bool = True,
    lowest: int | None = None,
) -> Range:
    """Least range known to hold all results, names and integers in expressions.

    Expressions may use those before them; `names` are what is known of all other names. With `fused` a sum
    of products is one step, as in :func:`.evaluate`. A result below `lowest` (0 for unsigned arrays) is an
    error, so that later steps never see one.
    """
    steps, known = _Steps(fused, lowest), dict(names)
    for name, expression in expressions.items():
        for used in expression.names:
            if used in known and known[used].kind == NUMBERS:
                steps.count(known[used].range)
        value = walk(expression, known, steps)
        if isinstance(value, int):
            value = Known((value, value))
            steps.count(value.range)
        known[name] = value
    return steps.low or 0, steps.high or 0


class _Steps:
    """Values known only by range and shape, and the range of all of them so far."""

    def __init__(self, fused: bool, lowest: int | None) -> None:
        self.fused = fused
        self.lowest = lowest
        self.low: int | None = None
        self.high: int | None = None

    def count(self, found: Range) -> None:
        self.low = found[0] if self.low is None else min(self.low, found[0])
        self.high = found[1] if self.high is None else max(self.high, found[1])

    def kind(self, value: Known) -> str:
        return value.kind

    def fuses(self, _name: str) -> bool:
        return self.fused

    def apply(self, name: str, *values: int | Known) -> Known:
        form = FORMS[name]
        ranges = [value.range if isinstance(value, Known) else (value, value) for value in values]
        arrays = [value for value in values if isinstance(value, Known)]
        shape: tuple[int, ...] | None
        if name == "matmul":
            terms, shape = _product(arrays)
            found = form.of_ranges(*ranges, terms)
        else:
            found, shape = form.of_ranges(*ranges), _common_shape(arrays)
        for value, operand in list(zip(values, ranges, strict=True))[: form.counted]:
            if not isinstance(value, Known) or value.kind == SIGNS:
                self.count(operand)
        if name == "left_shift":  # it is a product with an integer, which must be in range too
            self.count((0, 1 << ranges[1][0]))
        return self.result(name, found, shape)

    def result(self, name: str, found: Range, shape: tuple[int, ...] | None) -> Known:
        kind = FORMS[name].result
        if kind != NUMBERS:
            return Known(found, shape, kind)
        check_bits(max(end.bit_length() for end in found))
        if self.lowest is not None:
            found = max(found[0], self.lowest), max(found[1], self.lowest)
        self.count(found)
        return Known(found, shape)

    def select(self, value: Known, key: Key) -> Known:
        if value.shape is None:
            return value
        shape = np.broadcast_to(np.int8(0), value.shape)[key].shape
        return replace(value, shape=shape or (1,))

    def choose(self, value: Known, condition: Known) -> Known:  # noqa: ARG002  (how many is not known)
        return replace(value, shape=None)


def _known(name: str, bound: Bound) -> Known:
    if isinstance(bound, RNSArray):
        return Known(bound.system.known_range, bound.shape)
    ends = bound if isinstance(bound, tuple) else (0, bound)
    if len(ends) != 2:
        raise ValueError(
            f"bound of {name!r} must be an integer, or a lowest and a highest value, got {brief(bound)}"
        )
    lowest, highest = (as_integer(end, f"bound of {name!r}") for end in ends)
    if lowest > highest:
        raise ValueError(
            f"bound of {name!r}: the lowest value {abbreviate(lowest)} is above the highest "
            f"{abbreviate(highest)}"
        )
    return Known((lowest, highest))


def _common_shape(arrays: Sequence[Known]) -> tuple[int, ...] | None:
    shapes = [array.shape for array in arrays]
    known = [shape for shape in shapes if shape is not None]
    return broadcast_shape(known) if len(known) == len(shapes) else None


def _product(arrays: Sequence[Known]) -> tuple[int, tuple[int, ...]]:
    """The number of terms of each sum of a matrix product, and its shape."""
    if len(arrays) < 2:
        raise ValueError("both operands of a matrix product must be arrays")
    a, b = (array.shape for array in arrays)
    if a is None or b is None:
        raise ValueError(
            "the number of terms of @ is known from arrays only, not from bounds that are integers"
        )
    if not a or not b or a[-1] != b[max(len(b) - 2, 0)]:
        raise ValueError(f"shapes {a} and {b} do not match for a matrix product")
    stacked = broadcast_shape([a[:-2], b[:-2]])
    return a[-1], (*stacked, *a[-2:-1], *(b[-1:] if len(b) > 1 else ())) or (1,)
