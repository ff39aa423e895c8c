"""Ranges of results: the lowest and the highest integer that an operation can give."""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import TypeAlias

from rnsdask.core.operations import OPERATIONS, Operation

Range: TypeAlias = tuple[int, int]
"""The lowest and the highest value; an integer is a range of one."""

MAX_BITS = 2**20
"""Bits of an integer, or of the end of a range, that an operation in an expression may give."""


def check_bits(bits: int) -> None:
    """Raise ValueError for an integer that would take too much memory and time."""
    if bits > MAX_BITS:
        raise ValueError(f"the integer would have more than {MAX_BITS} bits")


def _hull(*values: int) -> Range:
    return min(values), max(values)


def _sum_of_products(operation: Operation, *operands: Range) -> Range:
    lowest = highest = 0
    for sign, factors in operation.terms:
        term = reduce(multiply, (operands[k] for k in factors))
        low, high = term if sign > 0 else negative(term)
        lowest, highest = lowest + low, highest + high
    return lowest, highest


def multiply(a: Range, b: Range) -> Range:
    """Products."""
    return _hull(*(x * y for x in a for y in b))


SUMS_OF_PRODUCTS: dict[str, Callable[..., Range]] = {
    name: partial(_sum_of_products, operation) for name, operation in OPERATIONS.items()
}
"""The element-wise operations by name."""


def negative(a: Range) -> Range:
    """Opposite numbers."""
    return -a[1], -a[0]


def absolute(a: Range) -> Range:
    """Absolute values."""
    return (0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def maximum(a: Range, b: Range) -> Range:
    """The greater of two."""
    return max(a[0], b[0]), max(a[1], b[1])


def minimum(a: Range, b: Range) -> Range:
    """The lesser of two."""
    return min(a[0], b[0]), min(a[1], b[1])


def clip(a: Range, low: Range, high: Range) -> Range:
    """Values between two others."""
    return minimum(maximum(a, low), high)


def hull(a: Range, b: Range) -> Range:
    """One or the other."""
    return min(a[0], b[0]), max(a[1], b[1])


def where(_condition: Range, a: Range, b: Range) -> Range:
    """One or the other, by a condition."""
    return hull(a, b)


def floor_divide(a: Range, b: Range) -> Range:
    """Quotients, by divisors other than 0. Between the ends each is monotonic in both operands."""
    found = [x // y for part in _signed_parts(b) for x in a for y in part]
    return _hull(*found) if found else (0, 0)


def remainder(a: Range, b: Range) -> Range:
    """Remainders, of the divisor's sign, and no further from 0 than a dividend of that sign."""
    found = [0]
    for low, high in _signed_parts(b):
        if low > 0:
            found.append(min(high - 1, a[1]) if a[0] >= 0 else high - 1)
        else:
            found.append(max(low + 1, a[0]) if a[1] <= 0 else low + 1)
    return _hull(*found)


def _signed_parts(b: Range) -> list[Range]:
    """The parts of a range below 0 and above 0."""
    parts = ((b[0], min(b[1], -1)), (max(b[0], 1), b[1]))
    return [(low, high) for low, high in parts if low <= high]


def power(a: Range, exponent: Range, modulus: Range | None = None) -> Range:
    """Powers by an integer, or their remainders by another one."""
    if modulus is not None:
        m = modulus[0]
        return _hull(0, m - 1 if m > 0 else m + 1)
    k = exponent[0]
    if k < 0:
        raise ValueError("the exponent of a power must not be negative")
    if max(map(abs, a)) > 1:
        check_bits(k * max(end.bit_length() for end in a))
    return power_by(a, k)


def power_by(a: Range, exponent: int) -> Range:
    """Powers by an integer that is not negative."""
    if exponent and max(map(abs, a)) < 2:  # of -1, 0 and 1
        exponent = 2 - exponent % 2
    ends = sorted(end**exponent for end in a)
    # An even power of a range around 0 has its least value there.
    is_even = exponent > 0 and exponent % 2 == 0
    return (0 if is_even and a[0] <= 0 <= a[1] else ends[0]), ends[1]


def left_shift(a: Range, shift: Range) -> Range:
    """Products with a power of 2."""
    check_bits(shift[0] + max(end.bit_length() for end in a))
    return a[0] << shift[0], a[1] << shift[0]


def right_shift(a: Range, shift: Range) -> Range:
    """Quotients by a power of 2, rounded down."""
    return a[0] >> shift[0], a[1] >> shift[0]


def bitwise(a: Range, b: Range) -> Range:
    """``&``, ``|`` and ``^``: no more bits than the operands have in two's complement."""
    ends = (*a, *b)
    bits = max((end if end >= 0 else ~end).bit_length() for end in ends)
    return (-1 << bits if min(ends) < 0 else 0), (1 << bits) - 1


def invert(a: Range) -> Range:
    """``~``."""
    return ~a[1], ~a[0]


def isqrt(a: Range) -> Range:
    """Floors of square roots, of what is not negative."""
    return math.isqrt(max(a[0], 0)), math.isqrt(max(a[1], 0))


def modular(*operands: Range) -> Range:
    """Remainders by the last operand, which is positive."""
    return 0, max(operands[-1][1] - 1, 0)


def gcd(a: Range, b: Range) -> Range:
    """Greatest common divisors: of 0 and a number, its magnitude."""
    known = [abs(low) for low, high in (a, b) if low == high != 0]
    return 0, min(known) if known else max(map(abs, (*a, *b)))


def lcm(a: Range, b: Range) -> Range:
    """Least common multiples."""
    return 0, absolute(a)[1] * absolute(b)[1]


def matmul(a: Range, b: Range, terms: int) -> Range:
    """Range of sums of a number of products."""
    low, high = multiply(a, b)
    return terms * low, terms * high


def sign(a: Range) -> Range:
    """Signs."""
    return (a[0] > 0) - (a[0] < 0), (a[1] > 0) - (a[1] < 0)


def bit_length(a: Range) -> Range:
    """Lengths in bits."""
    low, high = absolute(a)
    return low.bit_length(), high.bit_length()


def bitwise_count(a: Range) -> Range:
    """Bits of magnitudes that are 1."""
    return 0, absolute(a)[1].bit_length()


def truth(*_operands: Range) -> Range:
    """Range of a comparison's result."""
    return 0, 1
