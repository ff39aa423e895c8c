"""Values of polynomials at points, and polynomials of values."""

from typing import Any

from rnsdask.lazy import polynomials
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.poly.operands import check_fields


def evaluate(f: Any, points: Any) -> Any:
    """Values of polynomials at points, in each field.

    Parameters
    ----------
    f : FieldArray, shape (..., A)
        Coefficients, ascending.
    points : FieldArray of the same fields, shape (..., P)
        The other axes broadcast with those of `f`: one array of points serves for all polynomials.

    Returns
    -------
    FieldArray, shape (..., P)
        Lazy if an operand is.

    Raises
    ------
    TypeError
        If the operands are no FieldArrays, or on different processors.
    ValueError
        If fields or shapes do not fit, or there are no coefficients or points.
    """
    f, points = with_arrays(f, points)
    check_fields("evaluate", f, points)
    return polynomials.evaluate(f, points)


def interpolate(points: Any, values: Any) -> Any:
    """The polynomials of degree below N with given values at N points, in each field.

    Parameters
    ----------
    points, values : FieldArray of the same fields, shape (..., N)
        The other axes broadcast: one array of points serves for all polynomials.

    Returns
    -------
    FieldArray, shape (..., N)
        Coefficients, ascending. Lazy if an operand is.

    Raises
    ------
    ValueError
        If two points of a polynomial are equal in a field; it names the index of the first that is, and the
        prime. On Dask when it is computed.
    TypeError, ValueError
        As of :func:`evaluate`.
    """
    points, values = with_arrays(points, values)
    check_fields("interpolate", points, values)
    return polynomials.interpolate(points, values)
