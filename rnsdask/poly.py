"""Polynomials as arrays of coefficients along the last axis, ascending from degree 0, exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core import rows
from rnsdask.core.moduli import as_integer
from rnsdask.core.public import unknown_name
from rnsdask.core.ways import must
from rnsdask.lazy.convolve import convolve
from rnsdask.lazy.fields import check_elements
from rnsdask.lazy.operands import N
from rnsdask.lazy.planning import explain
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
    """Multiply polynomials: convolve their coefficients, as :func:`.convolve` with ``"full"``.

    Parameters
    ----------
    f, g : RNSArray, IntervalRNSArray, FieldArray, list of int, or int
        At least one array; shapes (..., A) and (..., B). Leading axes are of many polynomials, and broadcast.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to coefficients out of range, as in :func:`.convolve`.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray, shape (..., A + B - 1)
        Lazy if an operand is. With ``"flag"`` a pair, as from :func:`.convolve`.

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
    """Divide polynomials with remainder: ``f = q g + r``, where r has a lower degree than g.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast. Over the integers divisors have the leading
        coefficient 1 or -1.

    Returns
    -------
    q : FieldArray or object array, shape (..., A)
        As long as `f`, because a divisor may have a lower degree than its length shows, which may differ from
        field to field. Python ints of any size for integers.
    r : FieldArray or object array, shape (..., max(C - 1, 1))
        Both are lazy if an operand is.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0, in a field or over the integers; it names the divisor's index and the prime. On
        Dask when it is computed.
    NumberError
        If a divisor over the integers has another leading coefficient. It names the divisor's index, and is a
        ValueError.
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
    """Find greatest common divisors, monic in each field, or over the integers.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast.

    Returns
    -------
    FieldArray, shape (..., max(A, C))
        Degrees may differ from field to field; coefficients above them are 0. It is 0 if both polynomials
        are. Lazy if an operand is.
    object array, shape (..., max(A, C))
        For integers: Python ints with a positive leading coefficient. It is the product of a primitive
        greatest common divisor over the rationals and the greatest common divisor of all coefficients of
        both.

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
    """Evaluate polynomials at points, in each field or over the integers.

    Parameters
    ----------
    f : FieldArray, RNSArray or IntervalRNSArray, shape (..., A)
        Coefficients, ascending.
    points : array of the same kind, shape (..., P)
        The other axes broadcast: all polynomials may share one array of points.

    Returns
    -------
    FieldArray or object array, shape (..., P)
        Python ints of any size for integers. Lazy if an operand is.

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
    """Find the polynomials of degree below N with given values at N points, in each field.

    Parameters
    ----------
    points, values : FieldArray, RNSArray or IntervalRNSArray, shape (..., N)
        Of one kind. The other axes broadcast: all polynomials may share one array of points.

    Returns
    -------
    FieldArray, shape (..., N)
        Coefficients, ascending. Lazy if an operand is.
    numerators, denominators : object arrays, shapes (..., N) and (...)
        For integers: Python ints, whose quotients are the coefficients. Each polynomial has one denominator,
        the least positive one. Lazy if an operand is.

    Raises
    ------
    ValueError
        If two points of a polynomial are equal, in a field or over the integers; it names the index of the
        first and the prime. On Dask when it is computed.
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
    """Find rational functions with given values at N points, in each field.

    Parameters
    ----------
    points, values : FieldArray, shape (..., N)
        The other axes broadcast: all functions may share one array of points.
    numerator_degree, denominator_degree : int, optional
        Greatest degrees. Their sum is below N, so that there is at most one function. If one is missing, it
        is as large as the points allow; if both are missing, they are about equal.
    confirm : int, optional
        Least number of points beyond those that the degrees need. The default is 0 with both degrees, else 1.
        All points are used: with k further points, a function of higher degrees passes by chance in about one
        of p**k cases, modulo a prime p.

    Returns
    -------
    numerators : FieldArray, shape (..., numerator_degree + 1)
    denominators : FieldArray, shape (..., denominator_degree + 1)
        Coefficients, ascending. Numerator and denominator have no common factor, and the denominator is
        monic; degrees may differ from field to field. Lazy if an operand is.

    Raises
    ------
    NumberError
        If no function of these degrees has the values; it names the index and the prime, and is a ValueError.
        On Dask when it is computed.
    ValueError
        If two points of a function are equal in a field, degrees or `confirm` are negative, or there are too
        few points; otherwise as in :func:`evaluate`.
    TypeError
        If the operands are not FieldArrays.

    Examples
    --------
    >>> import rnsdask as rd
    >>> F = rd.PrimeFields([2147483647, 2147483629])
    >>> x = rd.from_ints(range(5), F)
    >>> p, q = rd.poly.rational_interpolate(x, (x * 3 + 1) / (x + 7))
    >>> p.tolist(), q.tolist()
    ([1, 3, 0], [7, 1])

    :func:`.rational_reconstruct` turns coefficients modulo several primes into fractions.
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
    """Return the degrees of numerators and denominators that `count` points allow, less confirming ones."""
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
    """Compute resultants of polynomials, exactly: 0 if the two have a common factor.

    For degrees m and n it is the determinant of the Sylvester matrix of m + n rows. For leading coefficients
    c and d, that is ``c**n * d**m`` times the product of all differences of a root of `f` and one of `g`.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast. The last nonzero coefficient determines the degree,
        separately in each field. The resultant of a constant c and a polynomial of degree n is ``c**n``; of
        two constants it is 1. It is 0 if a polynomial is 0.
    variables : {1, 2}
        With 2, for integers only, `f` and `g` are polynomials in x and y, shapes (..., M, A) and (..., K, C):
        the element (i, j) is the coefficient of ``y**i * x**j``. The resultant with respect to y is a
        polynomial in x: y is eliminated. Degrees in y are over the integers.

    Returns
    -------
    int, FieldArray or object array, shape (...)
        For one pair an integer; for FieldArrays it is from 0 to M - 1, with the resultants modulo the primes
        as residues. For a batch a FieldArray, or for integers a NumPy array of Python ints of any size. Lazy
        if an operand is.
    object array, shape (..., (K - 1) (A - 1) + (M - 1) (C - 1) + 1)
        With two variables: coefficients in x, ascending, as Python ints. The last ones are 0 if the degree is
        lower than the shapes allow.

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
    """Compute discriminants of polynomials, exactly: 0 if a polynomial has a double root.

    For the degree m and the leading coefficient c it is ``(-1)**(m * (m - 1) / 2) / c`` times the resultant
    of the polynomial and its derivative, which counts as of degree m - 1 modulo all primes: ``c**(2 * m -
    2)`` times the product of the squares of all differences of roots. A constant has the discriminant 0.

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


_ELSEWHERE = {
    "factor": "python-flint has it: flint.fmpz_poly(f.to_ints().tolist()).factor()",
    "roots": "python-flint has it: flint.fmpz_poly(f.to_ints().tolist()).complex_roots()",
    **{"add": "f + g of equal lengths adds", "mul": "multiply is meant"},
    **{"eval": "evaluate is meant", "polyval": "evaluate is meant"},
}
"""Answers to names that other packages have: the name here, or who has it."""

if not TYPE_CHECKING:  # to which each name would be one

    def __getattr__(name: str) -> Any:
        raise unknown_name("rd.poly", name, __all__, _ELSEWHERE.get(name))


def __dir__() -> list[str]:
    return __all__


globals().update((name, explain(globals()[name])) for name in __all__)
