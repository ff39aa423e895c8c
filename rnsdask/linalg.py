"""Linear algebra of arrays of numbers, exact, with the names of NumPy's linalg."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, SupportsIndex, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.creation import from_ints
from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.fraction_files import read
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.rational_matrices import clear_denominators, is_rational
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core import rows
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import ModuliSet, as_bool, as_integer
from rnsdask.core.overflow import errstate, overflow_mode
from rnsdask.core.public import unknown_name
from rnsdask.core.rows import Row
from rnsdask.core.ways import Message, must
from rnsdask.lazy.elementwise import entry_of, has
from rnsdask.lazy.elimination import LU, RREF
from rnsdask.lazy.exact_elimination import RationalRREF
from rnsdask.lazy.fields import check_elements
from rnsdask.lazy.growing import extends
from rnsdask.lazy.matmul import identity_like, matmul
from rnsdask.lazy.planning import explain
from rnsdask.lazy.widening import apply_to_arrays, arrays_alike
from rnsdask.rns.system import RNS, check_length
from rnsdask.typing import Integer, Integers, Overflow, PlainArray, Rational, RationalMatrix

__all__ = [
    "charpoly",
    "det",
    "inv",
    "lu",
    "matrix_power",
    "nullspace",
    "permanent",
    "rank",
    "read",
    "rref",
    "solve",
]

A = TypeVar("A", bound=NumberArray)

P = ParamSpec("P")
R = TypeVar("R")

_MOST_BITS = 128
"""Most bits of an exponent for lazy arrays, whose graph has one or two products for each bit."""


@overload
def det(
    x: FieldArray, *, variables: SupportsIndex = 0, moduli: None = None, overwrite: bool = False
) -> Integer | FieldArray: ...
@overload
def det(
    x: IntegerArray, *, variables: SupportsIndex = 0, moduli: None = None
) -> Integer | PlainArray[np.object_]: ...
@overload
def det(x: IntegerArray, *, variables: SupportsIndex = 0, moduli: ModuliSet | RNS) -> RNSArray: ...
@overload
def det(
    x: RationalMatrix, *, variables: Literal[0] = 0, moduli: None = None
) -> Rational | PlainArray[np.object_]: ...
def det(
    x: FieldArray | IntegerArray | RationalMatrix,
    *,
    variables: SupportsIndex = 0,
    moduli: ModuliSet | RNS | None = None,
    overwrite: bool = False,
) -> Integer | Rational | FieldArray | PlainArray[np.object_] | RNSArray:
    """Compute determinants of square matrices, exactly, as ``numpy.linalg.det``.

    Parameters
    ----------
    x : FieldArray, RNSArray, IntervalRNSArray or matrix of fractions, shape (..., N, N)
        One matrix, or a stack of them. A matrix without rows has the determinant 1. Fractions are
        :class:`.Fractions`, or an object array or nested lists of ``fractions.Fraction`` and ints (also of
        gmpy2, FLINT or SymPy); lazy ones are computed.
    variables : {0, 1}
        With 1, elements are polynomials in one variable: `x` has the shape (..., N, N, D), with ascending
        coefficients along the last axis.
    moduli : ModuliSet or RNS, optional
        For integers: return an RNSArray of this set, signed, or of this system, on the processor of `x`. For
        one matrix it has one number.
    overwrite : bool
        For a FieldArray in memory: work where its words are, as ``overwrite_a`` of ``scipy.linalg``, rather
        than in a copy. Its words are undefined afterwards, and so are those of arrays that share them.

    Returns
    -------
    int, FieldArray or object array, shape (...)
        For one matrix an integer; for a FieldArray it is from 0 to M - 1, with the determinants modulo the
        primes as residues. For a stack a FieldArray, or for integers a NumPy array of Python ints. Lazy if
        `x` is. For fractions Fractions in their place.
    FieldArray or object array, shape (..., N (D - 1) + 1)
        For matrices of polynomials: the coefficients of their determinants, ascending.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers, or `moduli` are neither a set nor an RNS, or given for a
        FieldArray; with `overwrite`, if `x` is lazy, not a FieldArray, or of polynomials.
    ValueError
        If `x` has fewer than two axes, or a matrix is not square, or spans several chunks of a Dask array and
        is not over prime fields, or is of polynomials. For polynomials over fields, if a prime is below
        N (D - 1) + 1. With `overwrite`, if the words of `x` are read-only, or a view that is not contiguous.
    RNSOverflowError
        If a result is out of the range of `moduli`; it names the index. On Dask when it is computed.
    """
    count = as_integer(variables, "variables")
    if count not in (0, 1):
        raise ValueError(must("variables", f"be 0 or 1, got {abbreviate(count)}"))
    if is_rational(x):
        for name, value in (("variables=1", count), ("moduli", moduli), ("overwrite=True", overwrite)):
            _refuse_with_fractions("det", name, value)
        (scaled,), multipliers = clear_denominators("det", x)
        found = np.asarray(det(scaled), dtype=object)
        return _divided(found, np.asarray(np.multiply.reduce(multipliers, axis=-1), dtype=object))
    how: dict[str, Any] = {"moduli": _as_system("det", moduli), "overwrite": as_bool(overwrite, "overwrite")}
    return _apply(rows.det, x, variables=count, **how)


@overload
def permanent(x: FieldArray, *, moduli: None = None) -> Integer | FieldArray: ...
@overload
def permanent(x: IntegerArray, *, moduli: None = None) -> Integer | PlainArray[np.object_]: ...
@overload
def permanent(x: IntegerArray, *, moduli: ModuliSet | RNS) -> RNSArray: ...
def permanent(
    x: FieldArray | IntegerArray, *, moduli: ModuliSet | RNS | None = None
) -> Integer | FieldArray | PlainArray[np.object_] | RNSArray:
    """Compute permanents of square matrices, exactly: determinants in which no term changes its sign.

    Ryser's formula takes N 2**N products for each matrix, so that each row more doubles the time.

    Parameters
    ----------
    x : FieldArray, RNSArray or IntervalRNSArray, shape (..., N, N)
        One matrix, or a stack of them. A matrix without rows has the permanent 1.
    moduli : ModuliSet or RNS, optional
        As in :func:`det`.

    Returns
    -------
    int, FieldArray or object array, shape (...)
        As :func:`det` returns determinants.

    Raises
    ------
    TypeError, ValueError, RNSOverflowError
        As in :func:`det`; a matrix over prime fields must be one chunk, too.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.linalg.permanent(rd.ones((20, 20)))  # 20!
    2432902008176640000
    """
    return _apply(rows.permanent, x, moduli=_as_system("permanent", moduli))


@overload
def rank(x: FieldArray, *, overwrite: bool = False) -> PlainArray[np.int64]: ...
@overload
def rank(x: IntegerArray | RationalMatrix) -> Integer | PlainArray[np.int64]: ...
def rank(
    x: FieldArray | IntegerArray | RationalMatrix, *, overwrite: bool = False
) -> Integer | PlainArray[np.int64]:
    """Compute ranks of matrices.

    Parameters
    ----------
    x : FieldArray, RNSArray, IntervalRNSArray or matrix of fractions, shape (..., R, C)
        One matrix, or a stack of them.
    overwrite : bool
        As in :func:`det`.

    Returns
    -------
    array of int64
        For a FieldArray the ranks modulo each prime, shape (n, ...), with the axis of the primes first, as in
        words. For integers the ranks over the rationals, shape (...), or an int for one matrix. NumPy, CuPy
        or Dask.

    Raises
    ------
    TypeError, ValueError
        As :func:`det`; the matrices need not be square.
    """
    return _apply(rows.rank, _as_integers("rank", x), overwrite=as_bool(overwrite, "overwrite"))


@overload
def solve(
    a: FieldArray,
    b: FieldArray | Integers,
    *,
    unique: bool = True,
    modulo: None = None,
    moduli: None = None,
    overwrite: bool = False,
) -> FieldArray: ...
@overload
def solve(
    a: IntegerArray,
    b: IntegerArray | Integers,
    *,
    unique: bool = True,
    modulo: None = None,
    moduli: None = None,
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
@overload
def solve(
    a: IntegerArray,
    b: IntegerArray | Integers,
    *,
    unique: bool = True,
    modulo: None = None,
    moduli: ModuliSet | RNS,
) -> tuple[RNSArray, RNSArray]: ...
@overload
def solve(
    a: RationalMatrix,
    b: IntegerArray | Integers | RationalMatrix,
    *,
    unique: bool = True,
    modulo: None = None,
    moduli: None = None,
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
@overload
def solve(
    a: IntegerArray,
    b: IntegerArray | Integers,
    *,
    unique: Literal[True] = True,
    modulo: SupportsIndex | Iterable[SupportsIndex],
    moduli: None = None,
) -> PlainArray[np.object_]: ...
@overload
def solve(
    a: IntegerArray,
    b: IntegerArray | Integers,
    *,
    unique: Literal[True] = True,
    modulo: SupportsIndex | Iterable[SupportsIndex],
    moduli: ModuliSet | RNS,
) -> RNSArray: ...
def solve(
    a: FieldArray | IntegerArray | RationalMatrix,
    b: FieldArray | IntegerArray | Integers | RationalMatrix,
    *,
    unique: bool = True,
    modulo: SupportsIndex | Iterable[SupportsIndex] | None = None,
    moduli: ModuliSet | RNS | None = None,
    overwrite: bool = False,
) -> (
    FieldArray
    | RNSArray
    | PlainArray[np.object_]
    | tuple[PlainArray[np.object_], PlainArray[np.object_]]
    | tuple[RNSArray, RNSArray]
):
    """Solve ``a @ x == b`` exactly, as ``numpy.linalg.solve``.

    Parameters
    ----------
    a : FieldArray, RNSArray, IntervalRNSArray or matrix of fractions, shape (..., R, C)
        Square, unless `unique` is false. Fractions are as in :func:`det`.
    b : array of the same fields, or moduli set and range, or of fractions, shape (R,) or (..., R, K)
        One vector, or matrices, in any chunks. Leading axes broadcast.
    unique : bool
        Whether matrices must be square and regular, so that the solution is unique. If false, they may have
        any shape and rank. The solution then is 0 where :func:`rref` of `a` has no pivot; adding vectors of
        :func:`nullspace` gives all others. Pivots may differ from field to field, so that the solutions in
        several fields need not be residues of a rational one.
    modulo : int or iterable of int, optional
        For integers: solve modulo this integer, or modulo the product of these coprime integers. It is faster
        given all prime factors, each below 2**32.
    moduli : ModuliSet or RNS, optional
        As in :func:`det`, for numerators and denominators.
    overwrite : bool
        As in :func:`det`, for `a`, whose axes before the last two `b` then must not broadcast.

    Returns
    -------
    FieldArray, shape (..., C) or (..., C, K)
        For FieldArrays; lazy if an operand is.
    numerators, denominators : object arrays, shapes (..., C) or (..., C, K), and (...)
        For integers: Python ints, whose quotients are the solutions. Each matrix has one denominator, the
        least positive one. Lazy if an operand is.
    object array, shape (..., C) or (..., C, K)
        With `modulo`, Python ints from 0 to the modulus - 1.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, or singular modulo a prime; without `unique`, if equations have no solution;
        with `modulo`, if a determinant and the modulus have a common divisor, which it names. It names the
        matrix's index and the prime. On Dask when it is computed.
    TypeError
        If an operand is not an array of numbers, operands are of several kinds or on different processors, or
        `modulo` is given for a FieldArray or without `unique`, or `overwrite` without `unique` or as in
        :func:`det`.
    ValueError
        As in :func:`det`, or if fields, moduli sets or shapes do not fit, or factors of a modulus are not
        coprime.

    Examples
    --------
    >>> import rnsdask as rd
    >>> a = rd.from_ints([[2, 4, 1], [1, 2, 3]])
    >>> numerators, denominator = rd.linalg.solve(a, [5, 5], unique=False)
    >>> numerators.tolist(), int(denominator)
    ([2, 0, 1], 1)
    """
    if modulo is not None and not unique:
        raise TypeError("solve takes modulo= for square matrices only, without unique=False")
    if is_rational(a) or is_rational(b):
        for name, value in (("modulo", modulo), ("overwrite=True", overwrite)):
            _refuse_with_fractions("solve", name, value)
        (a, b), _ = clear_denominators("solve", a, b)
    how: dict[str, Any] = {"modulo": _as_factors(modulo), "moduli": _as_system("solve", moduli)}
    how["overwrite"] = as_bool(overwrite, "overwrite")
    return _apply(rows.solve, a, b, unique=bool(unique), **how)


@overload
def inv(
    x: FieldArray, *, modulo: None = None, moduli: None = None, overwrite: bool = False
) -> FieldArray: ...
@overload
def inv(
    x: IntegerArray, *, modulo: None = None, moduli: None = None
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
@overload
def inv(x: IntegerArray, *, modulo: None = None, moduli: ModuliSet | RNS) -> tuple[RNSArray, RNSArray]: ...
@overload
def inv(
    x: RationalMatrix, *, modulo: None = None, moduli: None = None
) -> tuple[PlainArray[np.object_], PlainArray[np.object_]]: ...
@overload
def inv(
    x: IntegerArray, *, modulo: SupportsIndex | Iterable[SupportsIndex], moduli: None = None
) -> PlainArray[np.object_]: ...
@overload
def inv(
    x: IntegerArray, *, modulo: SupportsIndex | Iterable[SupportsIndex], moduli: ModuliSet | RNS
) -> RNSArray: ...
def inv(
    x: FieldArray | IntegerArray | RationalMatrix,
    *,
    modulo: SupportsIndex | Iterable[SupportsIndex] | None = None,
    moduli: ModuliSet | RNS | None = None,
    overwrite: bool = False,
) -> (
    FieldArray
    | RNSArray
    | PlainArray[np.object_]
    | tuple[PlainArray[np.object_], PlainArray[np.object_]]
    | tuple[RNSArray, RNSArray]
):
    """Invert square matrices exactly, as ``numpy.linalg.inv``.

    Parameters
    ----------
    x : FieldArray, RNSArray, IntervalRNSArray or matrix of fractions, shape (..., N, N)
        One matrix, or a stack of them. Fractions are as in :func:`det`.
    modulo, moduli
        As in :func:`solve`.
    overwrite : bool
        As in :func:`det`; the result takes the place of `x`.

    Returns
    -------
    FieldArray, shape (..., N, N)
        For a FieldArray; lazy if it is.
    numerators, denominators : object arrays, shapes (..., N, N) and (...)
        For integers, as :func:`solve` returns solutions.
    object array, shape (..., N, N)
        With `modulo`, Python ints from 0 to the modulus - 1.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        As in :func:`solve`.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.linalg.inv(rd.from_ints([[2, 1], [7, 3]]), modulo=100).tolist()
    [[97, 1], [7, 98]]
    """
    if is_rational(x):
        for name, value in (("modulo", modulo), ("overwrite=True", overwrite)):
            _refuse_with_fractions("inv", name, value)
        (x,), multipliers = clear_denominators("inv", x)
        if x.ndim > 1 and x.shape[-2] == x.shape[-1]:
            multiplied = multipliers[..., None] * np.eye(x.shape[-1], dtype=object)
            return solve(x, from_ints(multiplied), moduli=moduli)
    how: dict[str, Any] = {"modulo": _as_factors(modulo), "moduli": _as_system("inv", moduli)}
    return _apply(rows.inv, x, overwrite=as_bool(overwrite, "overwrite"), **how)


def _as_integers(name: str, x: Any) -> Any:
    """Multiply rows of a matrix of fractions by their denominators; other operands stay as they are."""
    return clear_denominators(name, x)[0][0] if is_rational(x) else x


def _refuse_with_fractions(name: str, option: str, value: object) -> None:
    """Raise TypeError for an option that was given and that matrices of fractions do not have."""
    if value:
        raise TypeError(
            f"{name} of fractions takes no {option}; rd.from_ints of rows without denominators does"
        )


def _divided(above: NDArray[np.object_], below: NDArray[np.object_]) -> Any:
    """Fractions of integers over integers of one shape; without axes a single Fraction."""
    found = np.empty(above.shape, dtype=object)
    for index in np.ndindex(above.shape):
        found[index] = Fraction(int(above[index]), int(below[index]))
    return found if found.ndim else found.item()


def _as_factors(modulo: SupportsIndex | Iterable[SupportsIndex] | None) -> tuple[int, ...] | None:
    """Return coprime factors, at least 2, of the modulus; ValueError for other factors."""
    if modulo is None:
        return None
    values = modulo if isinstance(modulo, Iterable) else [modulo]
    factors = tuple(as_integer(value, "modulo") for value in values)
    if not factors or min(factors) < 2:
        raise ValueError(must("modulo", f"be at least 2, got {abbreviate(min(factors, default=1))}"))
    product = 1
    for factor in factors:
        if (common := math.gcd(product, factor)) != 1:
            raise ValueError(
                Message(
                    "factors of ",
                    must(
                        "modulo",
                        f"be coprime, got {abbreviate(factor)}, which shares {abbreviate(common)} with those "
                        "before it; a single integer need not be factored",
                    ),
                )
            )
        product *= factor
    return factors


@overload
def rref(x: FieldArray, *, overwrite: bool = False) -> RREF: ...
@overload
def rref(x: IntegerArray | RationalMatrix) -> RationalRREF: ...
def rref(x: FieldArray | IntegerArray | RationalMatrix, *, overwrite: bool = False) -> RREF | RationalRREF:
    """Bring matrices to reduced row echelon form, exactly: pivots are 1, the rest of their columns 0.

    Parameters
    ----------
    x : FieldArray, RNSArray, IntervalRNSArray or matrix of fractions, shape (..., R, C)
        One matrix, or a stack of them, of any rank and shape.
    overwrite : bool
        As in :func:`det`; the result takes the place of `x`.

    Returns
    -------
    matrix : FieldArray, shape (..., R, C)
        For a FieldArray: the form in each field. Each field has its own pivots, which differ where a prime
        divides a minor; then no single matrix over the rationals has these residues.
    numerators, denominators : object arrays, shapes (..., R, C) and (...)
        For integers: the form over the rationals, with the least positive denominator of each matrix.
    pivots : array of int64, shape (n, ..., min(R, C)), for integers (..., min(R, C))
        Columns of the pivots, ascending, and -1 beyond the rank. For a FieldArray the axis of the primes
        comes first. NumPy, CuPy or Dask.

    The result is a named tuple of two or three items, lazy if `x` is.

    Raises
    ------
    TypeError, ValueError
        As :func:`det`; the matrices need not be square.

    Examples
    --------
    >>> import rnsdask as rd
    >>> a = [[1, 2, 3], [3, 6, 2]]
    >>> matrix, pivots = rd.linalg.rref(rd.from_ints(a, rd.PrimeFields([7, 11])))
    >>> matrix.residues.tolist()
    [[[1, 2, 3], [0, 0, 0]], [[1, 2, 0], [0, 0, 1]]]
    >>> pivots.tolist()
    [[0, -1], [0, 2]]
    >>> rd.linalg.rref(rd.from_ints(a)).pivots.tolist()
    [0, 2]
    """
    form: Any = _apply(rows.rref, _as_integers("rref", x), overwrite=as_bool(overwrite, "overwrite"))
    return form


@overload
def nullspace(x: FieldArray, *, moduli: None = None) -> FieldArray: ...
@overload
def nullspace(x: IntegerArray | RationalMatrix, *, moduli: None = None) -> PlainArray[np.object_]: ...
@overload
def nullspace(x: IntegerArray | RationalMatrix, *, moduli: ModuliSet | RNS) -> RNSArray: ...
def nullspace(
    x: FieldArray | IntegerArray | RationalMatrix, *, moduli: ModuliSet | RNS | None = None
) -> FieldArray | PlainArray[np.object_] | RNSArray:
    """Bases of the solutions of ``A @ v == 0``, in each field or over the rationals, as matrices' columns.

    Parameters
    ----------
    x : FieldArray, RNSArray, IntervalRNSArray or matrix of fractions, shape (..., R, C)
        One matrix, or a stack of them. All must have the same rank, in each field (:func:`rank`).
    moduli : ModuliSet or RNS, optional
        As in :func:`det`.

    Returns
    -------
    FieldArray or object array, shape (..., C, C - rank)
        Let column j of A be the k-th one that depends on the columns before it. Column k of the basis has its
        last nonzero element at index j, and 0 at the indices of all other dependent columns. In fields this
        element is 1. For integers it is the least positive one that makes the vector integral: the elements,
        Python ints, have no common factor. The columns are a basis over the rationals; some integer solutions
        may not be integer combinations of them. The basis of a lazy array is lazy, but the ranks, which
        decide the shape, are computed at once.

    Raises
    ------
    TypeError, ValueError
        As :func:`det`; the matrices need not be square. ValueError if ranks differ; it names two.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.linalg.nullspace(rd.from_ints([[2, 3, 4]])).T.tolist()
    [[-3, 2, 0], [-2, 0, 1]]
    """
    return _apply(rows.nullspace, _as_integers("nullspace", x), moduli=_as_system("nullspace", moduli))


@overload
def charpoly(x: FieldArray, *, moduli: None = None) -> FieldArray: ...
@overload
def charpoly(x: IntegerArray, *, moduli: None = None) -> PlainArray[np.object_]: ...
@overload
def charpoly(x: IntegerArray, *, moduli: ModuliSet | RNS) -> RNSArray: ...
def charpoly(
    x: FieldArray | IntegerArray, *, moduli: ModuliSet | RNS | None = None
) -> FieldArray | PlainArray[np.object_] | RNSArray:
    """Compute characteristic polynomials det(z - A) of square matrices, exactly.

    Matrices are brought to Hessenberg form, where the polynomials of the leading submatrices obey a
    recurrence (H. Cohen, "A Course in Computational Algebraic Number Theory", Algorithm 2.2.9).

    Parameters
    ----------
    x : FieldArray, RNSArray or IntervalRNSArray, shape (..., N, N)
        One matrix, or a stack of them.
    moduli : ModuliSet or RNS, optional
        As in :func:`det`.

    Returns
    -------
    FieldArray or object array, shape (..., N + 1)
        Coefficients, ascending: index k belongs to z**k, and the last is 1. Python ints for integers. Lazy if
        `x` is.

    Raises
    ------
    TypeError, ValueError
        As in :func:`det`.
    """
    return _apply(rows.charpoly, x, moduli=_as_system("charpoly", moduli))


def lu(x: Any, *, overwrite: bool = False) -> LU:
    """Factor matrices as ``A = P @ L @ U``, with row exchanges, in each field, as ``scipy.linalg.lu``.

    Parameters
    ----------
    x : FieldArray, shape (..., R, C)
        One matrix, or a stack of them, of any rank and shape. Let K be the lesser of R and C.
    overwrite : bool
        As in :func:`det`; L, or U where C is greater than R, takes the place of `x`.

    Returns
    -------
    P : FieldArray, shape (..., R, R)
        Permutation matrices. They differ from field to field: each row has a single 1 in each field.
    L : FieldArray, shape (..., R, K)
        1 on the diagonal, 0 above it; below it too in columns from the rank on.
    U : FieldArray, shape (..., K, C)
        Row echelon forms: the first nonzero of a row is further to the right than in the row before, and rows
        from the rank on are 0.

    All are lazy if `x` is. The pivot is the first nonzero element of a column, so that factors do not depend
    on the processor or chunks.

    Raises
    ------
    TypeError, ValueError
        As in :func:`det`; the matrices need not be square.
    """
    check_elements("lu", x)
    found: LU = _apply(rows.lu, x, overwrite=as_bool(overwrite, "overwrite"))
    return found


def _apply(row: Row[P, R], *operands: P.args, **options: P.kwargs) -> R:
    """Apply a row of whole arrays to operands, at least one of which is an array of numbers."""
    taking = row if options.get("modulo") is None else rows.residues_modulo  # fields lack this row
    return apply_to_arrays(row.name, row, *arrays_alike(row.name, *operands, row=taking), **options)


def _as_system(name: str, moduli: ModuliSet | RNS | None) -> RNS | None:
    """Return the system requested for integers; TypeError if `moduli` are neither a set nor an RNS."""
    system = RNS(moduli, signed=True) if isinstance(moduli, ModuliSet) else moduli
    if system is not None and not isinstance(system, RNS):
        raise TypeError(f"{name} takes a ModuliSet or an RNS, got moduli={moduli!r}")
    return system


def matrix_power(x: A, k: SupportsIndex, *, overflow: Overflow | None = None) -> A:
    """Raise square matrices to a power, the product of `k` factors `x`, as ``numpy.linalg.matrix_power``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or FieldArray, shape (..., N, N)
        One matrix, or a stack of them.
    k : int
        Exponent; with 0 the results are identity matrices. A FieldArray also takes negative ones: then the
        factors are :func:`.inv` of `x`.
    overflow : {"raise", "wrap", "extend"}, optional
        What happens to results out of range, as in :func:`.matmul`. The default is the mode set by
        :func:`.errstate`, else ``"extend"`` for arrays whose range grows and ``"raise"`` for others. With
        ``"raise"`` intermediate powers of repeated squaring must be in range too. An IntervalRNSArray takes
        only ``"raise"``, because magnitudes wrap and signs do not. A FieldArray does not take it.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray, shape (..., N, N)
        Lazy if `x` is, with the bound that the bound of `x` implies.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a result or an intermediate power is out of range; on Dask when it is computed.
    numpy.linalg.LinAlgError
        If `k` is negative and a matrix is singular modulo a prime; on Dask when it is computed.
    TypeError
        If `x` is not such an array, or `k` not an integer.
    ValueError
        If the matrices are not square, a length is unknown, `k` is negative and `x` is not a FieldArray, `x`
        is lazy and `k` has more than 128 bits, or `overflow` is ``"flag"``, because flags of intermediate
        powers would not apply to results.
    """
    exponent, mode = _checked_power(x, k, overflow)
    if exponent < 0:
        x, exponent = _apply(rows.inv, x), -exponent
    if exponent == 0:
        if mode == "raise" and x.system.value_range[1] < 1:
            raise x.system.overflow_error(1, 0)
        return identity_like(x)
    if mode == "extend":
        system: Any = x.system
        terms, magnitude = x.shape[-1], system.known_magnitude
        check_length((exponent - 1) * (terms.bit_length() - 1) + exponent * (magnitude.bit_length() - 1))
    square, result = x, cast(Any, None)
    with errstate(overflow=mode):  # elements of fields ignore it
        while True:
            exponent, bit = divmod(exponent, 2)
            if bit:
                result = square if result is None else matmul(result, square)
            if not exponent:
                return result
            square = matmul(square, square)


def _checked_power(x: Any, k: SupportsIndex, overflow: str | None) -> tuple[int, str]:
    """Return the exponent and the mode of overflow, checked for `x`."""
    entry_of(rows.matmul, x, name="matrix_power")
    exponent = as_integer(k, "k")
    mode = "extend" if extends(overflow, x) else overflow_mode(overflow, x.system)
    x._find_lengths()
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, got shape {x.shape}")
    if exponent < 0 and not has(rows.divide_by, x):
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
    if mode == "wrap" and has(rows.narrowed, x):
        raise ValueError(
            'matrix_power of an IntervalRNSArray takes overflow="raise", got "wrap": signs of powers in '
            "between that wrap say nothing about results; to_rns() makes an RNSArray"
        )
    return exponent, mode


_FLINTS = "python-flint has it: flint.fmpz_mat(x.to_ints().tolist()).{}()"
_ELSEWHERE = {
    **{"smith_form": _FLINTS.format("snf"), "snf": _FLINTS.format("snf")},
    **{"hermite_form": _FLINTS.format("hnf"), "hnf": _FLINTS.format("hnf"), "lll": _FLINTS.format("lll")},
    **dict.fromkeys(("eig", "eigh", "eigvals", "eigvalsh"), "eigenvalues are the zeros of charpoly(x)"),
    **dict.fromkeys(("lstsq", "pinv"), "solve(x.T @ x, x.T @ b) gives least squares, exactly"),
    **dict.fromkeys(("cholesky", "norm", "qr", "svd"), "its results are not rational"),
    **{"matrix_rank": "rank is meant", "null_space": "nullspace is meant", "matmul": "rd.matmul is meant"},
}
"""Names that other packages have in theirs."""

if not TYPE_CHECKING:  # to which each name would be one

    def __getattr__(name: str) -> Any:
        raise unknown_name("rd.linalg", name, __all__, _ELSEWHERE.get(name))


def __dir__() -> list[str]:
    return __all__


globals().update((name, explain(globals()[name])) for name in __all__)
