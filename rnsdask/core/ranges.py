"""Ranges of results: the lowest and the highest integer that an operation can give."""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import TypeAlias

from rnsdask.core import combinatorics
from rnsdask.core.operations import OPERATIONS, Operation

Range: TypeAlias = tuple[int, int]
"""Lowest and highest value; an integer is a range of one value."""

MAX_BITS = 2**20
"""Most bits of an integer, or of an end of a range, in an expression."""


def check_bits(bits: int) -> None:
    """Raise ValueError for an integer that would take too much memory and time."""
    if bits > MAX_BITS:
        raise ValueError(f"the integer would have more than {MAX_BITS} bits")


def range_of_bits(bits: int, signed: bool) -> Range:
    """Range of integers of a length in bits, in two's complement if signed: the sign is one of them."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def bits_of(value: int, signed: bool) -> int:
    """Fewest bits whose range, by :func:`range_of_bits`, has an integer; signed for a negative one."""
    return max((value if value >= 0 else ~value).bit_length(), 1) + (signed or value < 0)


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
    """Range of the products."""
    return _hull(*(x * y for x in a for y in b))


SUMS_OF_PRODUCTS: dict[str, Callable[..., Range]] = {
    name: partial(_sum_of_products, operation) for name, operation in OPERATIONS.items()
}
"""The element-wise operations by name."""


def negative(a: Range) -> Range:
    """Range of the opposite numbers."""
    return -a[1], -a[0]


def absolute(a: Range) -> Range:
    """Range of the absolute values."""
    return (0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def maximum(a: Range, b: Range) -> Range:
    """Range of the greater of two numbers."""
    return max(a[0], b[0]), max(a[1], b[1])


def minimum(a: Range, b: Range) -> Range:
    """Range of the lesser of two numbers."""
    return min(a[0], b[0]), min(a[1], b[1])


def clip(a: Range, low: Range, high: Range) -> Range:
    """Range of the values limited to an interval."""
    return minimum(maximum(a, low), high)


def hull(a: Range, b: Range) -> Range:
    """Least range that contains both."""
    return min(a[0], b[0]), max(a[1], b[1])


def where(_condition: Range, a: Range, b: Range) -> Range:
    """Range of the values that a condition selects."""
    return hull(a, b)


def floor_divide(a: Range, b: Range) -> Range:
    """Range of the quotients by nonzero divisors. Between the ends each is monotonic in both operands."""
    found = [x // y for part in _signed_parts(b) for x in a for y in part]
    return _hull(*found) if found else (0, 0)


def remainder(a: Range, b: Range) -> Range:
    """Range of the remainders: of the divisor's sign, and no further from 0 than a dividend of that sign."""
    found = [0]
    for low, high in _signed_parts(b):
        if low > 0:
            found.append(min(high - 1, a[1]) if a[0] >= 0 else high - 1)
        else:
            found.append(max(low + 1, a[0]) if a[1] <= 0 else low + 1)
    return _hull(*found)


def _signed_parts(b: Range) -> list[Range]:
    """Split a range into its parts below 0 and above 0."""
    parts = ((b[0], min(b[1], -1)), (max(b[0], 1), b[1]))
    return [(low, high) for low, high in parts if low <= high]


def power(a: Range, exponent: Range, modulus: Range | None = None) -> Range:
    """Range of the powers by an integer, or of their remainders modulo another one."""
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
    """Range of the powers by an integer >= 0."""
    if exponent and max(map(abs, a)) < 2:  # powers of -1, 0 and 1
        exponent = 2 - exponent % 2
    ends = sorted(end**exponent for end in a)
    # An even power of a range around 0 is least at 0.
    is_even = exponent > 0 and exponent % 2 == 0
    return (0 if is_even and a[0] <= 0 <= a[1] else ends[0]), ends[1]


def left_shift(a: Range, shift: Range) -> Range:
    """Range of the products with a power of 2."""
    check_bits(shift[0] + max(end.bit_length() for end in a))
    return a[0] << shift[0], a[1] << shift[0]


def right_shift(a: Range, shift: Range) -> Range:
    """Range of the quotients by a power of 2, rounded down."""
    return a[0] >> shift[0], a[1] >> shift[0]


def bitwise(a: Range, b: Range) -> Range:
    """Range of ``&``, ``|`` and ``^``: no more bits in two's complement than the operands have."""
    ends = (*a, *b)
    bits = max((end if end >= 0 else ~end).bit_length() for end in ends)
    return (-1 << bits if min(ends) < 0 else 0), (1 << bits) - 1


def invert(a: Range) -> Range:
    """Range of ``~a``."""
    return ~a[1], ~a[0]


def isqrt(a: Range) -> Range:
    """Range of the square roots of numbers >= 0, rounded down."""
    return math.isqrt(max(a[0], 0)), math.isqrt(max(a[1], 0))


def modular(*operands: Range) -> Range:
    """Range of the remainders by the last operand, which is positive."""
    return 0, max(operands[-1][1] - 1, 0)


def gcd(a: Range, b: Range) -> Range:
    """Range of the greatest common divisors; with 0 the other number's magnitude."""
    known = [abs(low) for low, high in (a, b) if low == high != 0]
    return 0, min(known) if known else max(map(abs, (*a, *b)))


def lcm(a: Range, b: Range) -> Range:
    """Range of the least common multiples."""
    return 0, absolute(a)[1] * absolute(b)[1]


def factorial(a: Range) -> Range:
    """Range of the factorials of numbers >= 0."""
    n = max(a[1], 0)
    return _up_to(combinatorics.bits_of_factorial(n), combinatorics.factorial, n)


def binomial(n: Range, k: Range) -> Range:
    """Range of the binomial coefficients: they grow with n, and with k up to the half of n."""
    most = max(n[1], 0)
    few = min(max(most // 2, k[0]), max(k[1], 0))
    few = min(few, max(most - few, 0))
    return _up_to(combinatorics.bits_of_binomial(most, few), combinatorics.binomial, most, few)


def primorial(a: Range) -> Range:
    """Range of the products of all primes up to a number."""
    n = max(a[1], 0)
    return _up_to(combinatorics.bits_of_primorial(n), combinatorics.primorial, n)


def _up_to(bits: float, function: Callable[..., int], *arguments: int) -> Range:
    """Range from 0 to a value of a length in bits, or to a value beyond all systems if it is too long."""
    return 0, function(*arguments) if bits <= combinatorics.LONGEST else 1 << combinatorics.LONGEST + 1


def matmul(a: Range, b: Range, terms: int) -> Range:
    """Range of the sums of `terms` products."""
    low, high = multiply(a, b)
    return terms * low, terms * high


def sign(a: Range) -> Range:
    """Range of the signs."""
    return (a[0] > 0) - (a[0] < 0), (a[1] > 0) - (a[1] < 0)


def bit_length(a: Range) -> Range:
    """Range of the lengths in bits."""
    low, high = absolute(a)
    return low.bit_length(), high.bit_length()


def bitwise_count(a: Range) -> Range:
    """Range of the counts of 1 bits of magnitudes."""
    return 0, absolute(a)[1].bit_length()


def truth(*_operands: Range) -> Range:
    """Range of the results of a comparison."""
    return 0, 1
