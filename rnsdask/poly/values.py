"""Values of polynomials at points, and polynomials of values."""

from typing import Any

from rnsdask.lazy import integer_polynomials, polynomials
from rnsdask.lazy.integer_polynomials import by_kind


def evaluate(f: Any, points: Any) -> Any:
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
        Of integers Python ints of any size. Lazy if an operand is.

    Raises
    ------
    TypeError
        If the operands are no such arrays, or on different processors.
    ValueError
        If fields or shapes do not fit, or there are no coefficients or points.
    """
    return by_kind("evaluate", polynomials.evaluate, integer_polynomials.evaluate, f, points)


def interpolate(points: Any, values: Any) -> Any:
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
        Of integers: Python ints, of which the quotients are the coefficients. Each polynomial has one
        denominator, the least, positive. Lazy if an operand is.

    Raises
    ------
    ValueError
        If two points of a polynomial are equal, in a field or over the integers; it names the index of the
        first that is, and the prime. On Dask when it is computed.
    TypeError, ValueError
        As of :func:`evaluate`.
    """
    return by_kind("interpolate", polynomials.interpolate, integer_polynomials.interpolate, points, values)
