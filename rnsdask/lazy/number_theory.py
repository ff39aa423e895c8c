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
        At least one array; two must be of one kind, as in :func:`.add`.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range. The default is the mode set by :func:`.errstate`, else
        ``"extend"`` for arrays whose range grows and ``"raise"`` for others. Only the magnitude of a signed
        range's lowest number can be out of range.

    Returns
    -------
    array like the operands
        Never negative; ``gcd(0, x)`` is ``abs(x)``. Lazy if an operand is. With ``"flag"`` a pair, as for a
        sum.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, or `overflow` is not a mode.
    """
    found: N | Flagged[N] = apply(rows.gcd, a, b, overflow=overflow)
    return found


@overload
def lcm(a: N | Integers, b: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def lcm(a: N | Integers, b: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def lcm(a: N | Integers, b: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Least common multiple of two numbers, as :func:`gcd` and ``numpy.lcm``: at least 0, 0 if one is 0."""
    found: N | Flagged[N] = apply(rows.lcm, a, b, overflow=overflow)
    return found


def isqrt(x: N) -> N:
    """Square root of each number, rounded down, as ``math.isqrt``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers.

    Returns
    -------
    array like `x`
        With the same range; lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is not an array of integers.
    ValueError
        If a number is negative. It names the flat index of the first one, in its chunk; for a Dask array when
        it is computed.
    """
    found: N = apply(rows.isqrt, x)
    return found


def bit_length(x: Numbers) -> PlainArray[np.int64]:
    """Length in bits of each number's magnitude, as Python's ``int.bit_length``: 0 for 0.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers.

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
