"""Linear algebra of arrays of numbers, exact, with the names of NumPy's linalg."""

from collections.abc import Callable
from typing import Any, SupportsIndex

from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.interval_rns_array import IntervalRNSArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.lazy import elimination, exact_elimination
from rnsdask.lazy.elementwise import check_one_kind
from rnsdask.lazy.elimination import lu, nullspace
from rnsdask.lazy.exact_elimination import residues_of_results
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.growing import extends
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.matmul import identity_like, matmul
from rnsdask.lazy.operands import find_lengths, is_number_array, made_alike
from rnsdask.lazy.planning import explained
from rnsdask.lazy.widening import of_residues
from rnsdask.rns.promotion import check_length
from rnsdask.rns.system import RNS

__all__ = ["charpoly", "det", "inv", "lu", "matrix_power", "nullspace", "rank", "solve"]

_MOST_BITS = 128
"""Longest exponent of a power of lazy arrays, whose graph has one or two products for each of its bits."""


def det(x: Any, *, moduli: ModuliSet | RNS | None = None) -> Any:
    """Determinants of square matrices, exact, as ``numpy.linalg.det``.

    Parameters
    ----------
    x : FieldArray, RNSArray or IntervalRNSArray, shape (..., N, N)
        One matrix, or a stack of them. The determinant of no rows is 1.
    moduli : ModuliSet or RNS, optional
        Of integers: the results are an RNSArray of this set, signed, or of this system, on the processor of
        `x`; of one matrix an array of one number.

    Returns
    -------
    int, FieldArray or object array, shape (...)
        Of one matrix an integer. Of a FieldArray that from 0 to M - 1 which stands for the determinants,
        and of a stack a FieldArray. Of integers the determinants as Python ints, of any size; of a stack in
        a NumPy array. Lazy if `x` is.

    Raises
    ------
    TypeError
        If `x` is no array of numbers, `moduli` neither a set nor an RNS, or given for a FieldArray.
    ValueError
        If it has fewer than two axes, matrices are not square, or are in several chunks of a Dask array.
    RNSOverflowError
        If a result is out of the range of `moduli`, with its index; on Dask when it is computed.
    """
    return _of_kind("det", elimination.det, exact_elimination.det, x, moduli=moduli)


def rank(x: Any) -> Any:
    """Ranks of matrices.

    Parameters
    ----------
    x : FieldArray, RNSArray or IntervalRNSArray, shape (..., R, C)
        One matrix, or a stack of them.

    Returns
    -------
    array of int64
        Of a FieldArray of shape (n, ...), ranks modulo each prime, with the axis of the primes first, as of
        words. Of integers the ranks over the rationals, of shape (...), of one matrix an int. NumPy, CuPy or
        Dask.

    Raises
    ------
    TypeError, ValueError
        As of :func:`det`; the matrices need not be square.
    """
    return _of_kind("rank", elimination.rank, exact_elimination.rank, x)


def solve(a: Any, b: Any, *, moduli: ModuliSet | RNS | None = None) -> Any:
    """Solutions x of ``a @ x == b`` for square matrices, exact, as ``numpy.linalg.solve``.

    Parameters
    ----------
    a : FieldArray, RNSArray or IntervalRNSArray, shape (..., N, N)
    b : array of the same fields, or moduli set and range, shape (N,) or (..., N, K)
        One vector, or matrices, in any chunks. The axes of the batch broadcast.
    moduli : ModuliSet or RNS, optional
        As of :func:`det`, of numerators and denominators.

    Returns
    -------
    FieldArray, shape (..., N) or (..., N, K)
        Of FieldArrays; lazy if an operand is.
    numerators, denominators : object arrays, shapes (..., N) or (..., N, K), and (...)
        Of integers: Python ints, of which the quotients are the solutions. Each matrix has one denominator,
        the least, positive. Lazy if an operand is.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, or singular modulo a prime; it names its index and the prime. On Dask when it
        is computed.
    TypeError
        If an operand is no array of numbers, or they are of several kinds or on different processors.
    ValueError
        As of :func:`det`; or if fields, moduli sets or shapes do not fit.
    """
    return _of_kind("solve", elimination.solve, exact_elimination.solve, a, b, moduli=moduli)


def inv(x: Any, *, moduli: ModuliSet | RNS | None = None) -> Any:
    """Inverses of square matrices, exact, as ``numpy.linalg.inv``.

    Parameters
    ----------
    x : FieldArray, RNSArray or IntervalRNSArray, shape (..., N, N)
        One matrix, or a stack of them.
    moduli : ModuliSet or RNS, optional
        As of :func:`solve`.

    Returns
    -------
    FieldArray, shape (..., N, N)
        Of a FieldArray; lazy if it is.
    numerators, denominators : object arrays, shapes (..., N, N) and (...)
        Of integers, as :func:`solve` gives solutions.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        As of :func:`solve`.
    """
    return _of_kind("inv", elimination.inv, exact_elimination.inv, x, moduli=moduli)


def charpoly(x: Any, *, moduli: ModuliSet | RNS | None = None) -> Any:
    """Characteristic polynomials det(z - A) of square matrices, exact.

    By similarity to Hessenberg form, of which the polynomials of the leading rows and columns follow one from
    another (H. Cohen, "A Course in Computational Algebraic Number Theory", Algorithm 2.2.9).

    Parameters
    ----------
    x : FieldArray, RNSArray or IntervalRNSArray, shape (..., N, N)
        One matrix, or a stack of them.
    moduli : ModuliSet or RNS, optional
        As of :func:`det`.

    Returns
    -------
    FieldArray or object array, shape (..., N + 1)
        Coefficients, ascending: that of z**k at k, the last one 1. Of integers Python ints. Lazy if `x` is.

    Raises
    ------
    TypeError, ValueError
        As of :func:`det`.
    """
    return _of_kind("charpoly", elimination.charpoly, exact_elimination.charpoly, x, moduli=moduli)


def _of_kind(
    name: str,
    fields: Callable[..., Any],
    integers: Callable[..., Any],
    *operands: Any,
    moduli: ModuliSet | RNS | None = None,
) -> Any:
    """Apply the function for the operands' kind of numbers; integer results may go under given moduli."""
    operands = with_arrays(*operands)
    for x in operands:
        if not is_number_array(x):
            kind = type(x).__name__
            raise TypeError(f"{name} takes arrays of numbers, got {kind}; rd.from_ints makes them")
    check_one_kind(*operands)
    operands = made_alike(*operands)
    system = RNS(moduli, signed=True) if isinstance(moduli, ModuliSet) else moduli
    if system is not None and (of_fields(operands[0]) or not isinstance(system, RNS)):
        whose = "of a FieldArray takes no moduli" if of_fields(operands[0]) else "takes a ModuliSet or an RNS"
        raise TypeError(f"{name} {whose}, got moduli={system!r}")
    if of_fields(operands[0]):
        return fields(*operands)
    find_lengths(*operands)  # which what they go through could not keep
    found = of_residues(name, integers, *operands)
    if system is None:
        return found
    results = found if isinstance(found, tuple) else (found,)
    words = (residues_of_results(values, system, operands[0].words) for values in results)
    arrays = tuple(RNSArray(of, system.with_bound(None)) for of in words)
    return arrays if isinstance(found, tuple) else arrays[0]


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
    exponent, mode = _checked_power(x, k, overflow)
    if exponent < 0:
        x, exponent = elimination.inv(x), -exponent
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


def _checked_power(x: Any, k: SupportsIndex, overflow: str | None) -> tuple[int, str | None]:
    """The exponent, and what happens to results out of range; an error where there is no such power."""
    if not isinstance(x, RNSArray | IntervalRNSArray | FieldArray):
        raise TypeError(
            f"matrix_power takes an RNSArray, an IntervalRNSArray or a FieldArray, got {type(x).__name__}"
        )
    exponent = as_integer(k, "k")
    is_of_fields = of_fields(x)
    if is_of_fields:
        overflow_mode(overflow, x.system)
    mode = None
    if not is_of_fields:
        mode = "extend" if extends(overflow, x) else overflow_mode(overflow, x.system)
    x._find_lengths()
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, got shape {x.shape}")
    if exponent < 0 and not is_of_fields:
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


globals().update((name, explained(globals()[name])) for name in __all__)
