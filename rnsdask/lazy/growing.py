"""Extension of operands before an operation, so that all results are in range (``overflow="extend"``).

Bounds alone decide: the range of the results follows from the known ranges of the operands, in Python ints.
The operands take the fewest moduli that hold it, so that the operation needs no checks.
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
from rnsdask.lazy.inputs import convert_any, is_on_disk
from rnsdask.lazy.operands import Numbers, Operand, bring_to_system, is_lazy_integer, known_of
from rnsdask.rns.system import check_length


def extend_operands(
    result: Callable[..., Range], overflow: str | None, *operands: Operand
) -> tuple[tuple[Any, ...], str | None]:
    """Return an operation's operands, extended if results extend, and its mode of overflow.

    `result` computes the range of the results from the operands' ranges. RNSOverflowError if results may be
    too long for any moduli set.
    """
    system, mode = plan.extend(result, overflow, tuple(map(known_of, operands)))
    return operands if system is None else bring_to_system(operands, system), mode


def extends(overflow: str | None, *arrays: Any) -> bool:
    """Whether results of an operation on arrays of numbers take more moduli as needed."""
    return plan.extends(overflow, *(array.system for array in arrays))


def grows(*arrays: Any) -> bool:
    """Whether results of an operation without a mode of overflow take more moduli: if all systems grow."""
    return plan.all_grow(*(array.system for array in arrays))


# ---- ranges of results ------------------------------------------------------------------------------------


def range_of_products(a: Range, b: Range) -> Range:
    """Range of products, limited in length."""
    check_length(max(_bits(a) + _bits(b) - 1, 1))
    return ranges.multiply(a, b)


def range_of_sums(a: Range, terms: int) -> Range:
    """Range of sums of up to `terms` numbers."""
    return min(0, a[0] * terms), max(0, a[1] * terms)


def range_of_powers(base: Range, most: int) -> Range:
    """Range of powers by exponents from 0 to `most`."""
    magnitude = max(map(abs, base))
    if magnitude < 2 or most < 1:
        return min(base[0], 0), 1
    check_length(most * (magnitude.bit_length() - 1) + 1)
    highest = magnitude**most
    return (-highest if base[0] < 0 else 0), highest


def range_of_power(base: Range, exponent: int) -> Range:
    """Range of powers by one exponent, limited in length."""
    magnitude = max(map(abs, base))
    if magnitude > 1:
        check_length(exponent * (magnitude.bit_length() - 1) + 1)
    return ranges.power_by(base, exponent)


def greatest_exponent(exponents: Any) -> int:
    """Return the greatest of an array of exponents, which must be in memory; 0 if it is empty."""
    exponents = convert_any(exponents)
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
    """Check a number of bits for shifts to the left."""
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
    """Common number system of operands, as ``numpy.result_type`` finds a common type.

    Parameters
    ----------
    *operands : array of numbers, number system, or int
        At least one array or system. An integer may be lazy, such as ``y.max()`` of a lazy array.

    Returns
    -------
    NumberSystem
        Without a bound. It holds the operands' numbers and the integers themselves; results of operations may
        extend it (docs/growing.md).

        - If all systems grow, it has the fewest moduli that hold the known ranges of their numbers and the
          integers, at least as many as the longest set. It is signed if a system is or an integer is
          negative.
        - If one does not grow, it is the result: operands that grow are converted to its moduli, and a number
          that does not fit is an RNSOverflowError.
        - If several do not grow, they must have the same moduli. If some are signed, a signed one is the
          result, provided that bounds prove that it holds the others' numbers.
        - Systems of other kinds must all be the same.

    Raises
    ------
    TypeError
        If no operand is an array or a system, systems are of several kinds, or an operand is anything else.
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
        if isinstance(integer, int):  # a lazy integer is checked when it is computed
            found.column(integer)
    return found
