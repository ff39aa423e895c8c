"""Polynomials as arrays of coefficients along the last axis, that of degree 0 first, exact."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

import numpy as np

from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import exact_polynomials, integer_polynomials, polynomials
from rnsdask.lazy.convolve import convolve
from rnsdask.lazy.fields import check_fields, of_fields
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.integer_polynomials import by_kind
from rnsdask.lazy.operands import N
from rnsdask.lazy.planning import explained
from rnsdask.lazy.polynomials import checked_operands
from rnsdask.lazy.power_series import compose, derivative, exp_series, inverse_series, log_series, power_mod
from rnsdask.lazy.widening import of_residues
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
    q, r = by_kind("divmod", polynomials.divided, integer_polynomials.divided, f, g)
    return q, r


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
    return by_kind("gcd", polynomials.common_divisor, integer_polynomials.common_divisor, f, g)


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
    return by_kind("evaluate", polynomials.evaluate, integer_polynomials.evaluate, f, points)


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
    return by_kind("interpolate", polynomials.interpolate, integer_polynomials.interpolate, points, values)


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
    options = {
        name: None if value is None else as_integer(value, name)
        for name, value in (
            ("numerator_degree", numerator_degree),
            ("denominator_degree", denominator_degree),
            ("confirm", confirm),
        )
    }
    points, values = with_arrays(points, values)
    points, values = checked_operands("rational_interpolate", points, values)
    check_fields("rational_interpolate", points)
    return polynomials.rational_interpolate(points, values, *options.values())


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
        raise ValueError(f"variables must be 1 or 2, got {count}")
    f, g = with_arrays(f, g)
    f, g = checked_operands("resultant", f, g, axes=count)
    if of_fields(f):
        if count == 2:
            raise TypeError("resultant takes integers in two variables, got elements of fields")
        return polynomials.resultant(f, g)
    function = exact_polynomials.resultant if count == 1 else exact_polynomials.bivariate_resultant
    return of_residues("resultant", function, f, g)


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
    checked_operands("discriminant", f)
    if of_fields(f):
        return polynomials.discriminant(f)
    return of_residues("discriminant", exact_polynomials.discriminant, f)


globals().update((name, explained(globals()[name])) for name in __all__)
