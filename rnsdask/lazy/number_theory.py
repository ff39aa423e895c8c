"""Common divisors, multiples, square roots and lengths in bits, lazy on Dask (:mod:`.rns.number_theory`)."""

from typing import Any

from rnsdask.core import rows
from rnsdask.lazy.elementwise import apply
from rnsdask.lazy.operands import Operand


def gcd(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
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
    return apply(rows.gcd, a, b, overflow=overflow)


def lcm(a: Operand, b: Operand, *, overflow: str | None = None) -> Any:
    """Least common multiple of two numbers, as :func:`gcd` and ``numpy.lcm``: at least 0, and 0 of a 0."""
    return apply(rows.lcm, a, b, overflow=overflow)


def isqrt(x: Operand) -> Any:
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
    return apply(rows.isqrt, x)


def bit_length(x: Operand) -> Any:
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
    return apply(rows.bit_length, x)
