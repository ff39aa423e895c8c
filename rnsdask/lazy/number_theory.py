"""Common divisors, multiples, square roots and lengths in bits, lazy on Dask (:mod:`.rns.number_theory`)."""

from __future__ import annotations

from typing import overload

import numpy as np

from rnsdask.core import rows
from rnsdask.lazy.elementwise import apply
from rnsdask.lazy.operands import N, Numbers
from rnsdask.typing import Flag, Flagged, Integers, Overflow, PlainArray


@overload
def gcd(a: N | Integers, b: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def gcd(a: N | Integers, b: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def gcd(a: N | Integers, b: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Greatest common divisor of two numbers, element by element, as ``numpy.gcd``.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, PositionalArray or int
        At least one an array, both of one kind, as :func:`.add` takes them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range. By default the mode that :func:`.errstate` set, else
        ``"extend"`` for arrays whose range grows, ``"raise"`` for others. Only the magnitude of the lowest
        number of a signed range can be.

    Returns
    -------
    array like the operands
        At least 0; ``gcd(0, x)`` is ``abs(x)``. Lazy if an operand is. With ``"flag"`` a pair, as for a sum.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, or `overflow` is no mode.
    """
    found: N | Flagged[N] = apply(rows.gcd, a, b, overflow=overflow)
    return found


@overload
def lcm(a: N | Integers, b: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def lcm(a: N | Integers, b: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def lcm(a: N | Integers, b: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Least common multiple of two numbers, as :func:`gcd` and ``numpy.lcm``: at least 0, and 0 of a 0."""
    found: N | Flagged[N] = apply(rows.lcm, a, b, overflow=overflow)
    return found


def isqrt(x: N) -> N:
    """Floor of the square root of each number, as ``math.isqrt``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        An array.

    Returns
    -------
    array like `x`
        With the same range; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not an array of integers.
    ValueError
        If a number is negative, naming the flat index of the first, in its chunk; for a Dask array when it is
        computed.
    """
    found: N = apply(rows.isqrt, x)
    return found


def bit_length(x: Numbers) -> PlainArray[np.int64]:
    """Bits of each number's magnitude, as Python's ``int.bit_length``: 0 of 0.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        An array.

    Returns
    -------
    array of int64, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    """
    found: PlainArray[np.int64] = apply(rows.bit_length, x)
    return found
