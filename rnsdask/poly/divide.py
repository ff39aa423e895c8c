"""Division of polynomials over fields, and their greatest common divisors."""

from typing import Any

from rnsdask.lazy import polynomials
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.poly.operands import check_fields


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
    check_fields("divmod", f, g)
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
    check_fields("gcd", f, g)
    return polynomials.common_divisor(f, g)
