"""Operands extended before an operation, so that no result is out of range (``overflow="extend"``).

Bounds alone decide: the range of the results follows from the known ranges of the operands, in Python ints.
The operands take the fewest moduli that hold it, and the operation then has nothing to check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import dask.array as da
import numpy as np

from rnsdask.core import ranges
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ranges import Range
from rnsdask.lazy import plan
from rnsdask.lazy.inputs import is_on_disk, of_any_library
from rnsdask.lazy.operands import Numbers, Operand, brought, is_lazy_integer, known_of
from rnsdask.rns.system import check_length


def grown(
    result: Callable[..., Range], overflow: str | None, *operands: Operand
) -> tuple[tuple[Any, ...], str | None]:
    """Operands of an operation, and its mode of overflow; where results extend, both as it then takes them.

    `result` tells the range of the results from those of the operands. RNSOverflowError if they may be longer
    than any moduli set holds.
    """
    system, mode = plan.extended(result, overflow, tuple(map(known_of, operands)))
    return operands if system is None else brought(operands, system), mode


def extends(overflow: str | None, *arrays: Any) -> bool:
    """Whether results of an operation on arrays of numbers take more moduli where they need them."""
    return plan.extends(overflow, *(array.system for array in arrays))


def grows(*arrays: Any) -> bool:
    """Whether results of an operation that takes no mode of overflow take more moduli: those of all grow."""
    return plan.grow(*(array.system for array in arrays))


# ---- ranges of results ------------------------------------------------------------------------------------


def of_products(a: Range, b: Range) -> Range:
    """Range of products, of bounded length."""
    check_length(max(_bits(a) + _bits(b) - 1, 1))
    return ranges.multiply(a, b)


def of_sums(a: Range, terms: int) -> Range:
    """Range of sums of up to a number of terms."""
    return min(0, a[0] * terms), max(0, a[1] * terms)


def of_powers(base: Range, most: int) -> Range:
    """Range of powers by exponents from 0 to the greatest."""
    magnitude = max(map(abs, base))
    if magnitude < 2 or most < 1:
        return min(base[0], 0), 1
    check_length(most * (magnitude.bit_length() - 1) + 1)
    highest = magnitude**most
    return (-highest if base[0] < 0 else 0), highest


def of_power(base: Range, exponent: int) -> Range:
    """Range of powers by one exponent, of bounded length."""
    magnitude = max(map(abs, base))
    if magnitude > 1:
        check_length(exponent * (magnitude.bit_length() - 1) + 1)
    return ranges.power_by(base, exponent)


def greatest_exponent(exponents: Any) -> int:
    """The greatest of an array of exponents, which must be in memory; 0 of none."""
    exponents = of_any_library(exponents)
    array = exponents if hasattr(exponents, "dtype") else np.asarray(exponents)
    if array.dtype.kind not in "iu":
        raise TypeError(f"exponents must be integers of a machine type, got {array.dtype}")
    if isinstance(array, da.Array) or is_on_disk(array):
        raise ValueError(
            "powers by exponents that are not computed yet have no bound to extend by; compute() them first, "
            'or give overflow="raise"'
        )
    return int(array.max()) if array.size else 0


def check_shift(bits: Any) -> None:
    """Check a number of bits by which results are to be shifted to the left."""
    if is_lazy_integer(bits):
        raise ValueError(
            "a shift by bits that are not computed yet has no bound to extend by; compute() them first, or "
            'give overflow="raise"'
        )
    check_length(as_integer(bits, "shift"))


def _bits(a: Range) -> int:
    return max(end.bit_length() for end in a)


# ---- systems of operands ----------------------------------------------------------------------------------


def result_system(*operands: Numbers | NumberSystem | SupportsIndex) -> NumberSystem:
    """The number system in which operands meet, as ``numpy.result_type`` tells a common type.

    Parameters
    ----------
    *operands : array of numbers, number system, or int
        At least one is an array or a system. An integer may be lazy, such as ``y.max()`` of a lazy array.

    Returns
    -------
    NumberSystem
        Without a bound. It has the operands' numbers and the integers themselves; results of operations may
        extend it (docs/growing.md).

        - Systems that grow meet in the fewest moduli that hold what is known of their numbers and the
          integers, at least as many as the longest set has; signed if one is, or an integer is negative.
        - Where one does not grow, it is the result: operands that grow are brought to its moduli, and a
          number that does not fit is an RNSOverflowError.
        - Several that do not grow have the same moduli. If one is signed and another not, the signed one is
          the result, provided that bounds show that it holds the numbers of the others.
        - Other systems are the result if all are the same.

    Raises
    ------
    TypeError
        If no operand is an array or a system, they are of several kinds, or one is anything else.
    ValueError
        If there is no such system, or an integer is out of the range of one that does not grow.
    """
    known = tuple([x if isinstance(x, NumberSystem) else known_of(x) for x in operands])
    systems = plan.systems_of(known)
    if not systems:
        raise TypeError("result_system takes at least one array of numbers or number system, got none")
    kinds = sorted({type(system).__name__ for system in systems})
    if len(kinds) > 1:
        raise TypeError(f"numbers of {' and '.join(kinds)} do not mix")
    found: NumberSystem = plan.common_system(known).with_bound(None)
    for integer in known:
        if isinstance(integer, int):  # one that is lazy is checked when it is computed
            found.column(integer)
    return found
