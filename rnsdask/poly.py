"""Polynomials as arrays of coefficients along the last axis, that of degree 0 first, exact."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

import numpy as np

from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core import rows
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import must
from rnsdask.lazy.convolve import convolve
from rnsdask.lazy.fields import check_elements
from rnsdask.lazy.operands import N
from rnsdask.lazy.planning import explained
from rnsdask.lazy.polynomials import point_count, polynomials_alike
from rnsdask.lazy.power_series import compose, derivative, exp_series, inverse_series, log_series, power_mod
from rnsdask.lazy.widening import apply_to_arrays
from rnsdask.typing import Flag, Flagged, Integer, Integers, Overflow, PlainArray

__all__ = [
    "compose",
    "derivative",
    "discriminant",
    "divmod",
    "evaluate",
    "exp_series",
    "gcd",
    "interpolate",
    "inverse_series",
    "log_series",
    "multiply",
    "power_mod",
    "rational_interpolate",
    "resultant",
]


@overload
def multiply(f: N | Integers, g: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def multiply(f: N | Integers, g: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def multiply(f: N | Integers, g: N | Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Product of polynomials: the convolution of their coefficients, as :func:`.convolve` with ``"full"``.

    Parameters
    ----------
    f, g : RNSArray, IntervalRNSArray, FieldArray, list of int, or int
        At least one array, (..., A) and (..., B); the other axes are those of many polynomials, and
        broadcast.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to coefficients out of range, as in :func:`.convolve`.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray, shape (..., A + B - 1)
        Lazy if an operand is. With ``"flag"`` a pair, as of :func:`.convolve`.

    Raises
    ------
    RNSOverflowError, TypeError, ValueError
        As :func:`.convolve`.
    """
    mode: Any = overflow
    return convolve(f, g, overflow=mode)


@overload
def divmod(f: FieldArray, g: FieldArray | Integers) -> tuple[FieldArray, FieldArray]: ...
@overload
def divmod(
    f: IntegerArray, g: IntegerArray | Integers
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
def divmod(
    f: FieldArray | IntegerArray, g: FieldArray | IntegerArray | Integers
) -> tuple[FieldArray, FieldArray] | tuple[PlainArray[np.object_], PlainArray[np.object_]]:
    """Quotients and remainders: ``f = q g + r``, where the degree of r is below that of g.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast. Divisors of integers have the leading coefficient
        1 or -1.

    Returns
    -------
    q : FieldArray or object array, shape (..., A)
        As long as `f`, for a divisor may have a lower degree than its length says, and another one in each
        field. For integers Python ints of any size.
    r : FieldArray or object array, shape (..., max(C - 1, 1))
        Both are lazy if an operand is.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0, in a field or over the integers; it names its index and the prime. On Dask when it
        is computed.
    NumberError
        If a divisor of integers has another leading coefficient; it names its index. It is a ValueError.
    TypeError
        If the operands are not such arrays, or on different processors.
    ValueError
        If fields or shapes do not fit, or there are no coefficients.
    """
    return apply_to_arrays("divmod", rows.poly_divmod, *polynomials_alike("divmod", f, g))


@overload
def gcd(f: FieldArray, g: FieldArray | Integers) -> FieldArray: ...
@overload
def gcd(f: IntegerArray, g: IntegerArray | Integers) -> PlainArray[np.object_]: ...
def gcd(
    f: FieldArray | IntegerArray, g: FieldArray | IntegerArray | Integers
) -> FieldArray | PlainArray[np.object_]:
    """Greatest common divisors in each field, with the leading coefficient 1, or over the integers.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast.

    Returns
    -------
    FieldArray, shape (..., max(A, C))
        Degrees differ from field to field; coefficients above them are 0. It is 0 for two polynomials 0. Lazy
        if an operand is.
    object array, shape (..., max(A, C))
        For integers: Python ints, the leading coefficient above 0. The content, the greatest common divisor
        of all coefficients, is that of the contents of both; without it, it is a divisor over the rationals.

    Raises
    ------
    TypeError, ValueError
        As in :func:`divmod`.
    """
    return apply_to_arrays("gcd", rows.poly_gcd, *polynomials_alike("gcd", f, g))


@overload
def evaluate(f: FieldArray, points: FieldArray | Integers) -> FieldArray: ...
@overload
def evaluate(f: IntegerArray, points: IntegerArray | Integers) -> PlainArray[np.object_]: ...
def evaluate(
    f: FieldArray | IntegerArray, points: FieldArray | IntegerArray | Integers
) -> FieldArray | PlainArray[np.object_]:
    """Values of polynomials at points, in each field or over the integers.

    Parameters
    ----------
    f : FieldArray, RNSArray or IntervalRNSArray, shape (..., A)
        Coefficients, ascending.
    points : array of the same kind, shape (..., P)
        The other axes broadcast with those of `f`: one array of points serves for all polynomials.

    Returns
    -------
    FieldArray or object array, shape (..., P)
        For integers Python ints of any size. Lazy if an operand is.

    Raises
    ------
    TypeError
        If the operands are not such arrays, or on different processors.
    ValueError
        If fields or shapes do not fit, or there are no coefficients or points.
    """
    return apply_to_arrays("evaluate", rows.evaluate, *polynomials_alike("evaluate", f, points))


@overload
def interpolate(points: FieldArray, values: FieldArray | Integers) -> FieldArray: ...
@overload
def interpolate(
    points: IntegerArray, values: IntegerArray | Integers
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
def interpolate(
    points: FieldArray | IntegerArray, values: FieldArray | IntegerArray | Integers
) -> FieldArray | tuple[PlainArray[np.object_], PlainArray[np.object_]]:
    """The polynomials of degree below N with given values at N points, in each field.

    Parameters
    ----------
    points, values : FieldArray, RNSArray or IntervalRNSArray, shape (..., N)
        Of one kind. The other axes broadcast: one array of points serves for all polynomials.

    Returns
    -------
    FieldArray, shape (..., N)
        Coefficients, ascending. Lazy if an operand is.
    numerators, denominators : object arrays, shapes (..., N) and (...)
        For integers: Python ints, whose quotients are the coefficients. Each polynomial has one denominator,
        the least, positive. Lazy if an operand is.

    Raises
    ------
    ValueError
        If two points of a polynomial are equal, in a field or over the integers; it names the index of the
        first that is, and the prime. On Dask when it is computed.
    TypeError, ValueError
        As in :func:`evaluate`.
    """
    operands = polynomials_alike("interpolate", points, values)
    return apply_to_arrays("interpolate", rows.interpolate, *operands)


def rational_interpolate(
    points: FieldArray | Integers,
    values: FieldArray | Integers,
    *,
    numerator_degree: SupportsIndex | None = None,
    denominator_degree: SupportsIndex | None = None,
    confirm: SupportsIndex | None = None,
) -> tuple[FieldArray, FieldArray]:
    """Rational functions with given values at N points, in each field.

    Parameters
    ----------
    points, values : FieldArray, shape (..., N)
        The other axes broadcast: one array of points serves for all functions.
    numerator_degree, denominator_degree : int, optional
        No degree is greater; together they are below N, and there is one function at most. Without one of
        them it is as great as the points allow, and without both they are alike.
    confirm : int, optional
        How many more points than the degrees need there are at least: without both degrees 1, which is the
        default, else 0. All points are used, so a function that is none of these degrees passes by chance
        about once in as many cases as the primes to the power of the further points.

    Returns
    -------
    numerators : FieldArray, shape (..., numerator_degree + 1)
    denominators : FieldArray, shape (..., denominator_degree + 1)
        Coefficients, ascending. The two of a function have no common factor, and the denominator the leading
        coefficient 1; degrees may differ from field to field. Lazy if an operand is.

    Raises
    ------
    NumberError
        If no function of these degrees has the values; it names the index and the prime, and is a ValueError.
        On Dask when it is computed.
    ValueError
        If two points of a function are equal in a field, degrees or `confirm` are negative, or there are too
        few points; as of :func:`evaluate`.
    TypeError
        If the operands are no FieldArrays.

    Examples
    --------
    >>> import rnsdask as rd
    >>> F = rd.PrimeFields([2147483647, 2147483629])
    >>> x = rd.from_ints(range(5), F, chunks=None)
    >>> p, q = rd.poly.rational_interpolate(x, (x * 3 + 1) / (x + 7))
    >>> p.tolist(), q.tolist()
    ([1, 3, 0], [7, 1])

    Coefficients modulo several primes are fractions by :func:`.rational_reconstruct`.
    """
    numerator, denominator, extra = (
        None if value is None else as_integer(value, name)
        for name, value in (
            ("numerator_degree", numerator_degree),
            ("denominator_degree", denominator_degree),
            ("confirm", confirm),
        )
    )
    points, values = polynomials_alike("rational_interpolate", points, values)
    check_elements("rational_interpolate", points)
    count = point_count("rational_interpolate", points, values)
    degrees = _degrees(count, numerator, denominator, extra)
    return apply_to_arrays("rational_interpolate", rows.rational_interpolate, points, values, degrees=degrees)


def _degrees(
    count: int, numerator: int | None, denominator: int | None, confirm: int | None
) -> tuple[int, int]:
    """Degrees of numerators and denominators that points allow, where some of them confirm the function."""
    for name, value in (("numerator_degree", numerator), ("denominator_degree", denominator)):
        if value is not None and value < 0:
            raise ValueError(must(name, f"be at least 0, got {value}"))
    given = [degree for degree in (numerator, denominator) if degree is not None]
    extra = int(len(given) < 2) if confirm is None else confirm
    if extra < 0:
        raise ValueError(f"confirm must be at least 0, got {extra}")
    left = count - 1 - extra - sum(given)
    if left < 0:
        known = " and ".join(map(str, given)) or 0
        raise ValueError(
            f"degrees of {known} take {sum(given) + 1} points, and {extra} more to confirm, got {count}"
        )
    if numerator is None:
        numerator = (left + 1) // 2 if denominator is None else left
        left -= numerator
    return numerator, left if denominator is None else denominator


@overload
def resultant(
    f: FieldArray, g: FieldArray | Integers, *, variables: SupportsIndex = 1
) -> Integer | FieldArray: ...
@overload
def resultant(
    f: IntegerArray, g: IntegerArray | Integers, *, variables: SupportsIndex = 1
) -> Integer | PlainArray[np.object_]: ...
def resultant(
    f: FieldArray | IntegerArray, g: FieldArray | IntegerArray | Integers, *, variables: SupportsIndex = 1
) -> Integer | FieldArray | PlainArray[np.object_]:
    """Resultants of polynomials, exact: 0 where two have a common factor.

    With degrees m and n it is the determinant of Sylvester's matrix of m + n rows, that is
    ``c**n * d**m`` times the product of all differences of a root of `f` and one of `g`, for leading
    coefficients c and d.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast. The degree of a polynomial is that of its last
        coefficient which is not 0, in each field its own. The resultant of a constant c and a polynomial of
        degree n is ``c**n``, that of two constants 1, and where one polynomial is 0 it is 0.
    variables : {1, 2}
        With 2, of integers only, `f` and `g` are polynomials in x and y, shapes (..., M, A) and (..., K, C):
        that at (i, j) is the coefficient of ``y**i * x**j``. The resultant with respect to y is a polynomial
        in x: y is eliminated. Degrees in y are those over the integers.

    Returns
    -------
    int, FieldArray or object array, shape (...)
        Of one pair an integer. For FieldArrays the integer from 0 to M - 1 that stands for the resultants
        modulo the primes; for a batch a FieldArray. For integers the resultants as Python ints, of any size;
        of a batch in a NumPy array. Lazy if an operand is.
    object array, shape (..., (K - 1) (A - 1) + (M - 1) (C - 1) + 1)
        With two variables: coefficients in x, ascending, as Python ints. The last ones are 0 where the degree
        is lower than shapes allow.

    Raises
    ------
    TypeError
        If the operands are not such arrays, or of several kinds or on different processors.
    ValueError
        If fields, moduli sets or shapes do not fit, there are no coefficients, or `variables` is not 1 or 2.
    """
    count = as_integer(variables, "variables")
    if count not in (1, 2):
        raise ValueError(must("variables", f"be 1 or 2, got {count}"))
    operands = polynomials_alike("resultant", f, g, axes=count)
    return apply_to_arrays("resultant", rows.resultant, *operands, variables=count)


@overload
def discriminant(f: FieldArray) -> Integer | FieldArray: ...
@overload
def discriminant(f: IntegerArray) -> Integer | PlainArray[np.object_]: ...
def discriminant(f: FieldArray | IntegerArray) -> Integer | FieldArray | PlainArray[np.object_]:
    """Discriminants of polynomials, exact: 0 where one has a root twice.

    For the degree m and the leading coefficient c it is ``(-1)**(m * (m - 1) / 2) / c`` times the resultant
    of the polynomial and its derivative, which is taken to be of degree m - 1 modulo all primes:
    ``c**(2 * m - 2)`` times the product of the squares of all differences of roots. That of a constant is 0.

    Parameters
    ----------
    f : FieldArray, RNSArray or IntervalRNSArray, shape (..., A)
        Coefficients, ascending.

    Returns
    -------
    int, FieldArray or object array, shape (...)
        As :func:`resultant` with one variable.

    Raises
    ------
    TypeError, ValueError
        As in :func:`resultant`.
    """
    return apply_to_arrays("discriminant", rows.discriminant, *polynomials_alike("discriminant", f))


globals().update((name, explained(globals()[name])) for name in __all__)
