"""Power series, and powers and compositions of polynomials, for every system that has the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from rnsdask.cluster.limits import check_bytes
from rnsdask.core import rows
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.rows import Row
from rnsdask.lazy import functions
from rnsdask.lazy.operands import N
from rnsdask.lazy.polynomials import polynomials_alike
from rnsdask.lazy.widening import apply_to_arrays
from rnsdask.typing import Flag, Flagged, Integers, Overflow, PlainArray

if TYPE_CHECKING:
    from rnsdask.arrays.field_array import FieldArray
    from rnsdask.arrays.integer_array import IntegerArray


@overload
def derivative(f: N, *, overflow: Overflow | None = None) -> N: ...
@overload
def derivative(f: N, *, overflow: Flag) -> Flagged[N]: ...
def derivative(f: N, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Differentiate polynomials.

    Parameters
    ----------
    f : FieldArray, RNSArray, IntervalRNSArray or PositionalArray, shape (..., A)
        Coefficients, ascending.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As in :func:`.multiply`; coefficient k is multiplied by k.

    Returns
    -------
    array of the same kind, shape (..., max(A - 1, 1))
        Lazy if `f` is.

    Raises
    ------
    RNSOverflowError, TypeError, ValueError
        As in :func:`.multiply`; ValueError if there are no coefficients.
    """
    (coefficients,) = polynomials_alike("derivative", f)
    mode: Any = overflow
    length = coefficients.shape[-1]
    if length == 1:
        return functions.multiply(coefficients, 0, overflow=mode)
    return functions.multiply(coefficients[..., 1:], list(range(1, length)), overflow=mode)


@overload
def inverse_series(f: FieldArray, length: SupportsIndex | None = None) -> FieldArray: ...
@overload
def inverse_series(f: IntegerArray, length: SupportsIndex | None = None) -> PlainArray[np.object_]: ...
def inverse_series(
    f: FieldArray | IntegerArray, length: SupportsIndex | None = None
) -> FieldArray | PlainArray[np.object_]:
    """Invert power series: the first coefficients of 1 / f.

    Parameters
    ----------
    f : FieldArray, RNSArray or IntervalRNSArray, shape (..., A)
        Coefficients, ascending; later ones are 0.
    length : int, optional
        Number of coefficients; by default A.

    Returns
    -------
    FieldArray, shape (..., length)
        For a FieldArray; lazy if it is.
    object array, shape (..., length)
        For integers: Python ints of any size. Lazy if `f` is.

    Raises
    ------
    ZeroDivisionError
        If a constant term is 0 in a field; it names the index and the prime. On Dask when it is computed.
    NumberError
        If an integer constant term is neither 1 nor -1: the inverse would not have integer coefficients. It
        is a ValueError. On Dask when it is computed.
    TypeError, ValueError
        If `f` is not such an array, has no coefficients, or `length` is less than 1.

    Notes
    -----
    Inverses of series with integer coefficients up to A have coefficients up to ``(1 + A)**(length - 1)``;
    this determines the number of primes used. If you know a better bound, `PrimeFields` of fewer primes and
    ``lift(signed=True)`` are faster.
    """
    return _of_series(rows.inverse_series, f, length)


@overload
def log_series(f: FieldArray, length: SupportsIndex | None = None) -> FieldArray: ...
@overload
def log_series(
    f: IntegerArray, length: SupportsIndex | None = None
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
def log_series(
    f: FieldArray | IntegerArray, length: SupportsIndex | None = None
) -> FieldArray | tuple[PlainArray[np.object_], PlainArray[np.object_]]:
    """Compute logarithms of power series with constant term 1: the first coefficients.

    Parameters
    ----------
    f, length
        As in :func:`inverse_series`. Primes of fields must be at least `length`.

    Returns
    -------
    FieldArray, shape (..., length)
        For a FieldArray; lazy if it is.
    numerators, denominators : object arrays, shapes (..., length) and (...)
        For integers: Python ints, whose quotients are the coefficients. Each series has one denominator, the
        least positive one; it divides the least common multiple of 1 to length - 1.

    Raises
    ------
    NumberError
        If a constant term is not 1; it names the index. On Dask when it is computed.
    TypeError, ValueError
        As in :func:`inverse_series`; ValueError if a prime is less than `length`, because coefficient k is
        divided by k.
    """
    return _of_series(rows.log_series, f, length)


@overload
def exp_series(f: FieldArray, length: SupportsIndex | None = None) -> FieldArray: ...
@overload
def exp_series(
    f: IntegerArray, length: SupportsIndex | None = None
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
def exp_series(
    f: FieldArray | IntegerArray, length: SupportsIndex | None = None
) -> FieldArray | tuple[PlainArray[np.object_], PlainArray[np.object_]]:
    """Compute exponentials of power series with constant term 0: the first coefficients.

    Parameters
    ----------
    f, length
        As in :func:`log_series`.

    Returns
    -------
    FieldArray, shape (..., length)
        For a FieldArray; lazy if it is.
    numerators, denominators : object arrays, shapes (..., length) and (...)
        For integers, as from :func:`log_series`; a denominator divides the factorial of length - 1.

    Raises
    ------
    NumberError
        If a constant term is not 0; it names the index. On Dask when it is computed.
    TypeError, ValueError
        As in :func:`log_series`.
    """
    return _of_series(rows.exp_series, f, length)


@overload
def compose(f: FieldArray, g: FieldArray | Integers, length: SupportsIndex | None = None) -> FieldArray: ...
@overload
def compose(
    f: IntegerArray, g: IntegerArray | Integers, length: SupportsIndex | None = None
) -> PlainArray[np.object_]: ...
def compose(
    f: FieldArray | IntegerArray, g: FieldArray | IntegerArray | Integers, length: SupportsIndex | None = None
) -> FieldArray | PlainArray[np.object_]:
    """Compose polynomials: f(g(x)).

    Parameters
    ----------
    f, g : FieldArray, RNSArray or IntervalRNSArray, shapes (..., A) and (..., C)
        Coefficients, ascending. The other axes broadcast.
    length : int, optional
        Number of coefficients, from degree 0; by default all (A - 1) (C - 1) + 1.

    Returns
    -------
    FieldArray or object array, shape (..., length)
        Python ints of any size for integers. Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        As in :func:`inverse_series`, or if fields, moduli sets or shapes do not fit.
    """
    x, y = polynomials_alike("compose", f, g)
    full = (x.words.shape[-1] - 1) * (y.words.shape[-1] - 1) + 1
    return apply_to_arrays("compose", rows.compose, x, y, length=_checked_length(length, full))


@overload
def power_mod(
    f: FieldArray,
    exponent: SupportsIndex,
    g: FieldArray | Integers | None = None,
    *,
    length: SupportsIndex | None = None,
) -> FieldArray: ...
@overload
def power_mod(
    f: IntegerArray,
    exponent: SupportsIndex,
    g: IntegerArray | Integers | None = None,
    *,
    length: SupportsIndex | None = None,
) -> PlainArray[np.object_]: ...
def power_mod(
    f: FieldArray | IntegerArray,
    exponent: SupportsIndex,
    g: FieldArray | IntegerArray | Integers | None = None,
    *,
    length: SupportsIndex | None = None,
) -> FieldArray | PlainArray[np.object_]:
    """Raise polynomials to a power, modulo polynomials or as power series.

    Parameters
    ----------
    f : FieldArray, RNSArray or IntervalRNSArray, shape (..., A)
        Coefficients, ascending.
    exponent : int
        At least 0; f**0 is 1.
    g : array of the same kind, shape (..., C), optional
        The moduli; the other axes broadcast. Over the integers their leading coefficients are 1 or -1.
    length : int, optional
        Instead of `g`: the modulus is x**length.

    Returns
    -------
    FieldArray or object array, shape (..., max(C - 1, 1)) or (..., length)
        Python ints of any size for integers. Lazy if an operand is.

    Raises
    ------
    ZeroDivisionError
        If a modulus is 0 in a field; it names the index and the prime. On Dask when it is computed.
    NumberError
        If over the integers a leading coefficient of `g` is not 1 or -1, or results may have more than 2**25
        bits.
    TypeError, ValueError
        As in :func:`compose`, or unless exactly one of `g` and `length` is given, or if `exponent` is
        negative.
    """
    power = as_integer(exponent, "exponent")
    if power < 0:
        raise ValueError(
            f"exponent must be at least 0, got {abbreviate(power)}; inverse_series inverts a series"
        )
    if (g is None) == (length is None):
        raise ValueError("power_mod takes either a modulus g or a length")
    if g is None:
        (f,) = polynomials_alike("power_mod", f)
        count = _checked_length(length, 1)
        return apply_to_arrays("power_mod", rows.power_series, f, exponent=power, length=count)
    f, g = polynomials_alike("power_mod", f, g)
    return apply_to_arrays("power_mod", rows.power_mod, f, g, exponent=power)


def _of_series(row: Row[..., Any], f: Any, length: SupportsIndex | None) -> Any:
    """Apply a row of series, with `length` coefficients, by default the number that `f` has."""
    (f,) = polynomials_alike(row.name, f)
    return apply_to_arrays(row.name, row, f, length=_checked_length(length, f.words.shape[-1]))


def _checked_length(length: SupportsIndex | None, default: int) -> int:
    if length is None:
        return default
    count = as_integer(length, "length")
    if count < 1:
        raise ValueError(f"length must be at least 1, got {abbreviate(count)}")
    check_bytes(4 * count, f"a series of length {abbreviate(count)}")
    return count
