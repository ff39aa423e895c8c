"""Polynomials as arrays of coefficients along the last axis, that of degree 0 first, exact."""

from typing import Any

from rnsdask.core.moduli import as_integer
from rnsdask.lazy import exact_polynomials, polynomials
from rnsdask.lazy.convolve import convolve
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.planning import explained
from rnsdask.lazy.polynomials import checked_operands
from rnsdask.lazy.widening import of_residues

__all__ = ["discriminant", "divmod", "evaluate", "gcd", "interpolate", "multiply", "resultant"]


def multiply(f: Any, g: Any, *, overflow: str | None = None) -> Any:
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
    return convolve(f, g, overflow=overflow)


def divmod(f: Any, g: Any) -> tuple[Any, Any]:  # noqa: A001  (the name that users look for)
    """Quotients and remainders: ``f = q g + r``, where the degree of r is below that of g.

    Parameters
    ----------
    f, g : FieldArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast.

    Returns
    -------
    q : FieldArray, shape (..., A)
        As long as `f`, for a divisor may have a lower degree than its length says, and another one in each
        field.
    r : FieldArray, shape (..., max(C - 1, 1))
        Both are lazy if an operand is.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0 in a field; it names its index and the prime. On Dask when it is computed.
    TypeError
        If the operands are no such arrays, or on different processors.
    ValueError
        If fields or shapes do not fit, or there are no coefficients.
    """
    f, g = with_arrays(f, g)
    _check_fields("divmod", f, g)
    return polynomials.divided(f, g)


def gcd(f: Any, g: Any) -> Any:
    """Greatest common divisors in each field, with the leading coefficient 1.

    Parameters
    ----------
    f, g : FieldArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast.

    Returns
    -------
    FieldArray, shape (..., max(A, C))
        Degrees differ from field to field; coefficients above them are 0. Of two polynomials 0 it is 0. Lazy
        if an operand is.

    Raises
    ------
    TypeError, ValueError
        As of :func:`divmod`.
    """
    f, g = with_arrays(f, g)
    _check_fields("gcd", f, g)
    return polynomials.common_divisor(f, g)


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
    _check_fields("evaluate", f, points)
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
    _check_fields("interpolate", points, values)
    return polynomials.interpolate(points, values)


def resultant(f: Any, g: Any, *, variables: int = 1) -> Any:
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
        Of one pair an integer. Of FieldArrays that from 0 to M - 1 which stands for the resultants, and of a
        batch a FieldArray. Of integers the resultants as Python ints, of any size; of a batch in a NumPy
        array. Lazy if an operand is.
    object array, shape (..., (K - 1) (A - 1) + (M - 1) (C - 1) + 1)
        With two variables: coefficients in x, ascending, as Python ints. The last ones are 0 where the degree
        is lower than shapes allow.

    Raises
    ------
    TypeError
        If the operands are no such arrays, or of several kinds or on different processors.
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


def discriminant(f: Any) -> Any:
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
        As of :func:`resultant`.
    """
    checked_operands("discriminant", f)
    if of_fields(f):
        return polynomials.discriminant(f)
    return of_residues("discriminant", exact_polynomials.discriminant, f)


def _check_fields(name: str, *arrays: Any) -> None:
    """Raise TypeError or ValueError unless arrays have polynomials over the same fields."""
    checked_operands(name, *arrays)
    for x in arrays:
        if not of_fields(x):
            kind = type(x).__name__
            raise TypeError(
                f"{name} takes FieldArrays, got {kind}; rd.FieldArray.from_rns(x, fields) makes one of "
                "integers"
            )


globals().update((name, explained(globals()[name])) for name in __all__)
