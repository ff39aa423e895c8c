"""Powers of square matrices, by repeated squaring."""

from typing import Any, SupportsIndex

from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.interval_rns_array import IntervalRNSArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.lazy.elimination import inv
from rnsdask.lazy.growing import extends
from rnsdask.lazy.matmul import identity_like, matmul
from rnsdask.rns.promotion import check_length

_MOST_BITS = 128
"""Longest exponent of lazy arrays, whose graph has one or two products for each of its bits."""


def matrix_power(x: Any, k: SupportsIndex, *, overflow: str | None = None) -> Any:
    """Power of square matrices, the product of `k` factors `x`, as ``numpy.linalg.matrix_power``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or FieldArray, shape (..., N, N)
        One matrix, or a stack of them.
    k : int
        How many factors; with 0 the results are identity matrices. Negative only of a FieldArray: then the
        factors are :func:`.inv` of `x`.
    overflow : {"raise", "wrap", "extend"}, optional
        What happens to results out of range, as in :func:`.matmul`; without it, what :func:`.errstate` set,
        else ``"extend"`` for arrays whose range grows, ``"raise"`` for others. With ``"raise"`` the powers
        that repeated squaring passes must be in range too. For an IntervalRNSArray that is the only one, for
        magnitudes wrap and signs do not. Of a FieldArray it is not taken.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray, shape (..., N, N)
        Lazy if `x` is, with the bound that follows.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a result or a power in between is out of range; on Dask when it is computed.
    numpy.linalg.LinAlgError
        If `k` is negative and a matrix singular modulo a prime; on Dask when it is computed.
    TypeError
        If `x` is no such array, or `k` no integer.
    ValueError
        If the matrices are not square, a length is unknown, `k` is negative and `x` no FieldArray, `x` is
        lazy and `k` has more than 128 bits, or `overflow` is ``"flag"``, for what is flagged in between says
        nothing about results.
    """
    exponent, mode = _checked(x, k, overflow)
    if exponent < 0:
        x, exponent = inv(x), -exponent
    if exponent == 0:
        if mode == "raise" and x.system.value_range[1] < 1:
            raise x.system.overflow_error(1, 0)
        return identity_like(x)
    if mode == "extend":
        terms, magnitude = x.shape[-1], x.system.known_magnitude
        check_length((exponent - 1) * (terms.bit_length() - 1) + exponent * (magnitude.bit_length() - 1))
    square, result = x, None
    while True:
        exponent, bit = divmod(exponent, 2)
        if bit:
            result = square if result is None else matmul(result, square, overflow=mode)
        if not exponent:
            return result
        square = matmul(square, square, overflow=mode)


def _checked(x: Any, k: SupportsIndex, overflow: str | None) -> tuple[int, str | None]:
    """The exponent, and what happens to results out of range; an error where there is no such power."""
    if not isinstance(x, RNSArray | IntervalRNSArray | FieldArray):
        raise TypeError(
            f"matrix_power takes an RNSArray, an IntervalRNSArray or a FieldArray, got {type(x).__name__}"
        )
    exponent = as_integer(k, "k")
    of_fields = isinstance(x, FieldArray)
    if of_fields:
        overflow_mode(overflow, x.system)
    mode = None
    if not of_fields:
        mode = "extend" if extends(overflow, x) else overflow_mode(overflow, x.system)
    x._find_lengths()
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, got shape {x.shape}")
    if exponent < 0 and not of_fields:
        raise ValueError(
            f"k must not be negative, for only a FieldArray has inverses, got {abbreviate(exponent)}"
        )
    if x.__dask_graph__() is not None and exponent.bit_length() > _MOST_BITS:
        raise ValueError(
            f"k of a lazy array has at most {_MOST_BITS} bits, for each is a product in the graph, got "
            f"{abbreviate(exponent)}; x.compute() takes any"
        )
    if mode == "flag":
        raise ValueError(
            'matrix_power takes overflow="raise" or "wrap", got "flag"; matmul flags one product'
        )
    if mode == "wrap" and isinstance(x, IntervalRNSArray):
        raise ValueError(
            'matrix_power of an IntervalRNSArray takes overflow="raise", got "wrap": signs of powers in '
            "between that wrap say nothing about results; to_rns() makes an RNSArray"
        )
    return exponent, mode
