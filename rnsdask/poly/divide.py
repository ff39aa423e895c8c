"""Division of polynomials, and their greatest common divisors."""

from typing import Any

from rnsdask.lazy import integer_polynomials, polynomials
from rnsdask.lazy.integer_polynomials import by_kind


def divmod(f: Any, g: Any) -> tuple[Any, Any]:  # noqa: A001  (the name that users look for)
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
        field. Of integers Python ints of any size.
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
        If the operands are no such arrays, or on different processors.
    ValueError
        If fields or shapes do not fit, or there are no coefficients.
    """
    q, r = by_kind("divmod", polynomials.divided, integer_polynomials.divided, f, g)
    return q, r


def gcd(f: Any, g: Any) -> Any:
    """Greatest common divisors in each field, with the leading coefficient 1, or over the integers.

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast.

    Returns
    -------
    FieldArray, shape (..., max(A, C))
        Degrees differ from field to field; coefficients above them are 0. Of two polynomials 0 it is 0. Lazy
        if an operand is.
    object array, shape (..., max(A, C))
        Of integers: Python ints, the leading coefficient above 0. The content, the greatest common divisor
        of all coefficients, is that of the contents of both; without it, it is a divisor over the rationals.

    Raises
    ------
    TypeError, ValueError
        As of :func:`divmod`.
    """
    return by_kind("gcd", polynomials.common_divisor, integer_polynomials.common_divisor, f, g)
