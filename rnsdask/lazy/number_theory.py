"""Common divisors, multiples, square roots, factorials and lengths in bits, lazy on Dask."""

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


@overload
def factorial(x: N, *, overflow: Overflow | None = None) -> N: ...
@overload
def factorial(x: N, *, overflow: Flag) -> Flagged[N]: ...
def factorial(x: N, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Factorial of each number, as ``math.factorial``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers, at least 0.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As in :func:`gcd`.

    Returns
    -------
    array like `x`
        Lazy if `x` is. With ``"flag"`` a pair, as for a sum.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError
        If `x` is not an array of integers.
    ValueError
        If a number is negative, or its result would have more than 2**25 bits. It names the flat index of the
        first one, in its chunk; for a Dask array when it is computed.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.factorial(rd.array([5, 25])).tolist()
    [120, 15511210043330985984000000]
    """
    found: N | Flagged[N] = apply(rows.factorial, x, overflow=overflow)
    return found


@overload
def binomial(n: N | Integers, k: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def binomial(n: N | Integers, k: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def binomial(n: N | Integers, k: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Number of ways to choose k of n things, element by element, as ``math.comb``: 0 where k > n.

    Parameters
    ----------
    n, k : RNSArray, IntervalRNSArray, PositionalArray or int
        At least one array, whose numbers are at least 0; two must be of one kind, as in :func:`.add`.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As in :func:`gcd`.

    Returns
    -------
    array like the operands
        Lazy if an operand is. With ``"flag"`` a pair, as for a sum.

    Raises
    ------
    RNSOverflowError, TypeError, ValueError
        As :func:`factorial`, or if operands do not fit one another.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.binomial(100, rd.array([2, 50])).tolist()
    [4950, 100891344545564193334812497256]
    """
    found: N | Flagged[N] = apply(rows.binomial, n, k, overflow=overflow)
    return found


@overload
def primorial(x: N, *, overflow: Overflow | None = None) -> N: ...
@overload
def primorial(x: N, *, overflow: Flag) -> Flagged[N]: ...
def primorial(x: N, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Product of all primes up to each number, as :func:`factorial`; 1 for 0 and 1.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.primorial(rd.array([1, 10, 100])).tolist()
    [1, 210, 2305567963945518424753102147331756070]
    """
    found: N | Flagged[N] = apply(rows.primorial, x, overflow=overflow)
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
