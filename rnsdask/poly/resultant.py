"""Resultants and discriminants of polynomials, of elements and of integers."""

from typing import Any

from rnsdask.core.moduli import as_integer
from rnsdask.lazy import exact_polynomials, polynomials
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.polynomials import checked_operands
from rnsdask.lazy.widening import of_residues


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
