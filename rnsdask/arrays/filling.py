"""Arrays that a few integers describe, with NumPy's names: zeros, ones, full, arange, linspace, eye."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from dask.base import tokenize
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays.creation import Chunks, check_in_memory, from_ints
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.ways import must
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.chunks import as_lazy, normalize_chunks
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import N, Numbers, ends_of, find_lengths, is_lazy_integer, lazy_column
from rnsdask.typing import PlainArray, Shape, SystemOf

Kind = TypeVar("Kind", bound=np.generic)
A = TypeVar("A", bound=NumberArray)
"""Array class of the number system that a function is given."""


@overload
def full(
    shape: Shape,
    fill_value: SupportsIndex,
    moduli: SystemOf[A],
    *,
    bits: None = None,
    chunks: Chunks | None = None,
) -> A: ...
@overload
def full(
    shape: Shape,
    fill_value: SupportsIndex,
    moduli: ModuliSet | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def full(
    shape: Shape,
    fill_value: SupportsIndex,
    moduli: ModuliSet | SystemOf[A] | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of one number, as ``numpy.full``.

    Parameters
    ----------
    shape : int or sequence of int
        The lengths of the axes, at least one.
    fill_value : int
        The number.
    moduli : ModuliSet or number system, optional
        As in :func:`.from_ints`. Without it and without `bits`, the range grows.
    bits : int, optional
        As in :func:`.from_ints`.
    chunks : "auto", int, tuple, mapping, or str, optional
        As in :func:`.from_ints`. An array in memory is a view of one number.

    Returns
    -------
    RNSArray, or the class of the system

    Raises
    ------
    TypeError
        If the number or a length is not an integer, or `bits` and `moduli` are both given.
    ValueError
        If the number is out of range, a length is negative, there are no axes, or `chunks` do not fit.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.full((2, 2), 10**30).sum()
    4000000000000000000000000000000
    """
    sizes, one = _lengths(shape), _of_ends(as_integer(fill_value, "fill_value"), moduli=moduli, bits=bits)
    column = one.words.reshape(len(one.words), *(1,) * len(sizes))
    whole = len(column), *sizes
    if chunks is None:
        words: Any = np.broadcast_to(column, whole)
    else:
        lengths = normalize_chunks(chunks, sizes, one.system.words32)
        words = shapes.fill_chunks(as_lazy(column), column, whole, ((len(column),), *lengths))
    made: RNSArray | A = _array(words, one.system)
    return made


@overload
def zeros(shape: Shape, moduli: SystemOf[A], *, bits: None = None, chunks: Chunks | None = None) -> A: ...
@overload
def zeros(
    shape: Shape,
    moduli: ModuliSet | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def zeros(
    shape: Shape,
    moduli: ModuliSet | SystemOf[A] | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of zeros, as :func:`full`."""
    options: Any = {"moduli": moduli, "bits": bits, "chunks": chunks}
    made: RNSArray | A = full(shape, 0, **options)
    return made


@overload
def ones(shape: Shape, moduli: SystemOf[A], *, bits: None = None, chunks: Chunks | None = None) -> A: ...
@overload
def ones(
    shape: Shape,
    moduli: ModuliSet | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def ones(
    shape: Shape,
    moduli: ModuliSet | SystemOf[A] | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of ones, as :func:`full`."""
    options: Any = {"moduli": moduli, "bits": bits, "chunks": chunks}
    made: RNSArray | A = full(shape, 1, **options)
    return made


# ---- sequences --------------------------------------------------------------------------------------------


@overload
def arange(
    start: SupportsIndex,
    stop: SupportsIndex | None = None,
    step: SupportsIndex = 1,
    *,
    moduli: SystemOf[A],
    bits: None = None,
    chunks: Chunks | None = None,
) -> A: ...
@overload
def arange(
    start: SupportsIndex,
    stop: SupportsIndex | None = None,
    step: SupportsIndex = 1,
    *,
    moduli: ModuliSet | None = None,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def arange(
    start: SupportsIndex,
    stop: SupportsIndex | None = None,
    step: SupportsIndex = 1,
    *,
    moduli: ModuliSet | SystemOf[A] | None = None,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of the integers of a ``range``, of any length in digits, as ``numpy.arange``.

    Parameters
    ----------
    start, stop, step : int
        As of Python's ``range``: ``arange(stop)`` begins with 0.
    moduli, bits, chunks
        As in :func:`full`.

    Returns
    -------
    RNSArray, or the class of the system, of one axis

    Raises
    ------
    TypeError
        If an argument is not an integer, or `bits` and `moduli` are both given.
    ValueError
        If `step` is 0, a number is out of range, or `chunks` do not fit.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.arange(10**30, 10**30 + 6, 2).tolist()
    [1000000000000000000000000000000, 1000000000000000000000000000002, 1000000000000000000000000000004]
    """
    first, last = (0, start) if stop is None else (start, stop)
    begin, end = as_integer(first, "start"), as_integer(last, "stop")
    stride = as_integer(step, "step")
    if not stride:
        raise ValueError(must("step", "not be 0"))
    count = max(0, -((begin - end) // stride))
    made: RNSArray | A = _progression(begin, stride, count, moduli, bits, chunks)
    return made


@overload
def linspace(
    start: SupportsIndex,
    stop: SupportsIndex,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    *,
    moduli: SystemOf[A],
    bits: None = None,
    chunks: Chunks | None = None,
) -> A: ...
@overload
def linspace(
    start: SupportsIndex,
    stop: SupportsIndex,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    *,
    moduli: ModuliSet | None = None,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def linspace(
    start: SupportsIndex,
    stop: SupportsIndex,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    *,
    moduli: ModuliSet | SystemOf[A] | None = None,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of evenly spaced integers, as ``numpy.linspace``.

    Parameters
    ----------
    start, stop : int
        The ends.
    num : int
        How many numbers.
    endpoint : bool
        Whether the last number is `stop`.
    moduli, bits, chunks
        As in :func:`full`.

    Returns
    -------
    RNSArray, or the class of the system, of one axis

    Raises
    ------
    TypeError
        As :func:`arange`.
    ValueError
        If the distance of neighbours is not an integer, `num` is negative, a number is out of range, or
        `chunks` do not fit.
    """
    begin, end, count = as_integer(start, "start"), as_integer(stop, "stop"), as_integer(num, "num")
    if count < 0:
        raise ValueError(must("num", f"not be negative, got {abbreviate(count)}"))
    step = Fraction(end - begin, max(count - bool(endpoint), 1))
    if step.denominator > 1 and count > 1:
        raise ValueError(
            f"linspace takes ends and a num whose distance is an integer, got {abbreviate(step.numerator)}/"
            f"{abbreviate(step.denominator)}; arange takes the distance"
        )
    made: RNSArray | A = _progression(begin, int(step), count, moduli, bits, chunks)
    return made


def _progression(begin: int, step: int, count: int, moduli: Any, bits: Any, chunks: Chunks | None) -> Any:
    ends = (begin, begin + (count - 1) * step) if count else ()
    system = _of_ends(*ends, moduli=moduli, bits=bits).system
    if chunks is None:
        check_in_memory((count,), system)
        return _array(_terms(system, begin, step, count), system)
    lengths = normalize_chunks(chunks, (count,), system.words32)
    described: dict[str, Any] = {"system": system, "begin": begin, "step": step}
    name = f"arange-{tokenize(described, lengths)}"
    words = map_chunks(
        _terms_of_chunk, rows=system.rows, chunks=lengths, located=True, name=name, **described
    )
    return _array(words, system)


def _terms_of_chunk(*, system: NumberSystem, begin: int, step: int, place: Place) -> NDArray[Any]:
    ((start, stop),) = place.location
    return _terms(system, begin + start * step, step, stop - start)


def _terms(system: NumberSystem, begin: int, step: int, count: int) -> NDArray[Any]:
    """Words of terms of an arithmetic progression."""
    end = begin + count * step
    is_short = max(abs(begin), abs(end), abs(step)) < 2**62
    terms: Any = (
        np.arange(begin, end, step) if is_short and step else [begin + k * step for k in range(count)]
    )
    words: NDArray[Any] = system.encode(terms)
    return words


# ---- matrices ---------------------------------------------------------------------------------------------


@overload
def eye(
    N: SupportsIndex,
    M: SupportsIndex | None = None,
    k: SupportsIndex = 0,
    *,
    moduli: SystemOf[A],
    bits: None = None,
    chunks: Chunks | None = None,
) -> A: ...
@overload
def eye(
    N: SupportsIndex,
    M: SupportsIndex | None = None,
    k: SupportsIndex = 0,
    *,
    moduli: ModuliSet | None = None,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def eye(
    N: SupportsIndex,
    M: SupportsIndex | None = None,
    k: SupportsIndex = 0,
    *,
    moduli: ModuliSet | SystemOf[A] | None = None,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make a matrix with ones on a diagonal and zeros elsewhere, as ``numpy.eye``.

    Parameters
    ----------
    N, M : int
        Rows and columns; without `M` as many as rows.
    k : int
        The diagonal: above the main one if positive, below if negative.
    moduli, bits, chunks
        As in :func:`full`.

    Returns
    -------
    RNSArray, or the class of the system, shape (N, M)

    Raises
    ------
    TypeError, ValueError
        As :func:`full`.

    Examples
    --------
    >>> import rnsdask as rd
    >>> rd.eye(2, 3).tolist()
    [[1, 0, 0], [0, 1, 0]]
    """
    rows, columns = sizes = _lengths((N, N if M is None else M))
    offset, system = as_integer(k, "k"), _of_ends(0, 1, moduli=moduli, bits=bits).system
    made: RNSArray | A
    if chunks is None:
        check_in_memory(sizes, system)
        made = _array(_diagonal(system, (rows, columns), offset), system)
        return made
    lengths = normalize_chunks(chunks, sizes, system.words32)
    described: dict[str, Any] = {"system": system, "offset": offset}
    name = f"eye-{tokenize(described, lengths)}"
    words = map_chunks(
        _diagonal_of_chunk, rows=system.rows, chunks=lengths, located=True, name=name, **described
    )
    made = _array(words, system)
    return made


@overload
def identity(
    n: SupportsIndex, moduli: SystemOf[A], *, bits: None = None, chunks: Chunks | None = None
) -> A: ...
@overload
def identity(
    n: SupportsIndex,
    moduli: ModuliSet | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def identity(
    n: SupportsIndex,
    moduli: ModuliSet | SystemOf[A] | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make a square matrix with ones on the main diagonal, as :func:`eye`."""
    options: Any = {"moduli": moduli, "bits": bits, "chunks": chunks}
    made: RNSArray | A = eye(n, **options)
    return made


def _diagonal_of_chunk(*, system: NumberSystem, offset: int, place: Place) -> NDArray[Any]:
    (top, bottom), (left, right) = place.location
    return _diagonal(system, (bottom - top, right - left), offset + top - left)


def _diagonal(system: NumberSystem, sizes: tuple[int, int], offset: int) -> NDArray[Any]:
    rows, columns = sizes
    offset = min(max(offset, -rows), columns)  # beyond these there is no one
    words: NDArray[Any] = system.encode(np.eye(rows, columns, offset, dtype=np.int8))
    return words.reshape(len(words), rows, columns)


# ---- common -----------------------------------------------------------------------------------------------


def _lengths(shape: Shape) -> tuple[int, ...]:
    """Return the lengths of axes; ValueError without axes, or if one is negative."""
    sizes = tuple(as_integer(s, "shape") for s in (shape if isinstance(shape, Sequence) else (shape,)))
    if not sizes or min(sizes) < 0:
        raise ValueError(must("shape", f"have axes, none of negative length, got {sizes}"))
    return sizes


def _of_ends(*ends: int, moduli: Any, bits: SupportsIndex | None) -> Any:
    """Return an array of the extreme numbers, in the system of all of them."""
    return from_ints(list(ends), moduli, bits=bits)


def _array(words: Any, system: Any) -> Any:
    return system.array_type(words, system)


# ---- like another array -----------------------------------------------------------------------------------


@overload
def full_like(x: N, fill_value: SupportsIndex, dtype: None = None) -> N: ...
@overload
def full_like(
    x: Numbers, fill_value: SupportsIndex, dtype: type[Kind] | np.dtype[Kind]
) -> PlainArray[Kind]: ...
@overload
def full_like(x: Numbers, fill_value: SupportsIndex, dtype: DTypeLike) -> PlainArray[np.generic]: ...
def full_like(x: N, fill_value: SupportsIndex, dtype: DTypeLike | None = None) -> N | PlainArray[np.generic]:
    """Make an array of one number in the shape of another array, as ``numpy.full_like``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array; its numbers are not read. Unknown lengths are computed.
    fill_value : int
        The number, in the array's range; it may be lazy, such as ``y.max()`` of a lazy array.
    dtype : optional
        Another type than object makes a plain array of it, with the same chunks.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Of the same system, on the same processor, lazy with the same chunks if `x` or the number is. Its
        bound is the number's magnitude, or None for a lazy number. In memory it is a view, which takes no
        memory.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers, or the number is not an integer.
    ValueError
        If the number is out of range; for a lazy number when the array is computed.
    """
    if not isinstance(x, NumberArray):
        raise TypeError(f"full_like takes an array of numbers, got {type(x).__name__}")
    find_lengths(x)
    if dtype is not None and np.dtype(dtype).kind != "O":
        like: Any = x.words
        plain: Any = np.full_like(like[0], fill_value, dtype=dtype)
        filled: PlainArray[np.generic] = plain
        return filled
    system: Any = x.system
    value = fill_value if is_lazy_integer(fill_value) else as_integer(fill_value, "fill_value")
    if ends := ends_of(value):
        system = system.for_range(min(ends), max(ends))
    bound = None
    if is_lazy_integer(value):
        words = shapes.fill(x.words, lazy_column(value, system, x.ndim))
    else:
        words, bound = shapes.fill(x.words, system.column(value, x.ndim)), abs(value)
    return type(x)(words, system.with_bound(bound))


@overload
def zeros_like(x: N, dtype: None = None) -> N: ...
@overload
def zeros_like(x: Numbers, dtype: type[Kind] | np.dtype[Kind]) -> PlainArray[Kind]: ...
@overload
def zeros_like(x: Numbers, dtype: DTypeLike) -> PlainArray[np.generic]: ...
def zeros_like(x: N, dtype: DTypeLike | None = None) -> N | PlainArray[np.generic]:
    """Make an array of zeros in the shape of another array, as :func:`full_like`."""
    found: N | PlainArray[Any] = full_like(x, 0, dtype)
    return found


@overload
def ones_like(x: N, dtype: None = None) -> N: ...
@overload
def ones_like(x: Numbers, dtype: type[Kind] | np.dtype[Kind]) -> PlainArray[Kind]: ...
@overload
def ones_like(x: Numbers, dtype: DTypeLike) -> PlainArray[np.generic]: ...
def ones_like(x: N, dtype: DTypeLike | None = None) -> N | PlainArray[np.generic]:
    """Make an array of ones in the shape of another array, as :func:`full_like`."""
    found: N | PlainArray[Any] = full_like(x, 1, dtype)
    return found
