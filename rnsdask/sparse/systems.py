"""Solutions, minimal polynomials, ranks and determinants of sparse matrices, lazy on Dask where wanted."""

from collections.abc import Callable
from typing import Any, SupportsIndex

import dask.array as da
import numpy as np
from dask.delayed import delayed

from rnsdask.arrays.field_array import FieldArray
from rnsdask.backend import Array, empty_like_chunks, to_backend
from rnsdask.core.moduli import ModuliSet, as_integer, unchecked_set
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy.chunks import rechunked
from rnsdask.sparse import wiedemann
from rnsdask.sparse.matrix import SparseMatrix, vectors_of

PRIMES_OF_TASK = 16
"""Primes of a task of lazy solutions, if nothing else is said: their words are one line of memory."""


def solve(
    a: SparseMatrix, b: FieldArray, *, chunks: SupportsIndex | None = None, seed: SupportsIndex = 0
) -> FieldArray:
    """A solution x of ``a @ x == b`` modulo each prime, checked by substitution.

    By Wiedemann's algorithm: some 3 N products of the matrix with a vector for N rows; twice as many where
    the matrix is singular or not square. That a regular matrix has only this solution is not proved by it; of
    others it is one of many, which depends on `seed`.

    Parameters
    ----------
    a : SparseMatrix, shape (R, C)
        Of any shape and rank.
    b : FieldArray of PrimeFields, shape (R,) or (R, K)
        One vector, or a block of them, on the CPU or a GPU.
    chunks : int, optional
        Primes of a task: then the result is lazy. Without it, 16 for lazy vectors, which also have a task for
        each of their chunks.
    seed : int, optional
        What random vectors follow from, not negative.

    Returns
    -------
    FieldArray, shape (C,) or (C, K)

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is no solution modulo a prime, which is proved by a vector y with ``y @ a == 0`` and ``y @ b
        != 0``; or neither is found, as may be where the matrix is singular or not square and a prime small.
        It names the prime. For a lazy result, when it is computed.
    TypeError, ValueError
        If operands are something else, or shapes or fields do not fit.
    """
    _check_matrix(a)
    if not isinstance(b, FieldArray) or not isinstance(b.system, PrimeFields):
        raise TypeError(f"b must be a FieldArray of PrimeFields, got {type(b).__name__}")
    moduli, words = a.check_fields(b.system).moduli, vectors_of(b, a.shape[0], "b")
    number, size = _as_seed(seed), _as_chunks(chunks)
    is_vector = words.ndim == 2
    words = words[..., None] if is_vector else words
    if size is None and not isinstance(words, da.Array):
        found = wiedemann.solve(a, words, moduli, number)
    else:
        size = size or PRIMES_OF_TASK
        lazy = words if isinstance(words, da.Array) else da.from_array(words)
        blocks = rechunked(lazy, {0: size, 1: -1})
        matrix = delayed(a, pure=True)
        parts = []
        for start, row in zip(
            range(0, len(moduli), size), blocks.to_delayed(optimize_graph=False)[:, 0], strict=True
        ):
            some = unchecked_set(list(moduli)[start : start + size])
            made = [
                _lazy(wiedemann.solve, (len(some), a.shape[1], width), words, matrix, block, some, number)
                for block, width in zip(row, blocks.chunks[2], strict=True)
            ]
            parts.append(da.concatenate(made, axis=2))
        found = da.concatenate(parts)
    return FieldArray(found[..., 0] if is_vector else found, b.system)


def minpoly(
    a: SparseMatrix,
    fields: PrimeFields,
    *,
    chunks: SupportsIndex | None = None,
    backend: str = "cpu",
    seed: SupportsIndex = 0,
) -> FieldArray:
    """Minimal polynomial of a square matrix modulo each prime, of any size, by Wiedemann's algorithm.

    Its degree is never too great. That it is the minimal polynomial has a probability of error below 2**-64:
    it is tried with random vectors.

    Parameters
    ----------
    a : SparseMatrix, shape (N, N)
    fields : PrimeFields
        The primes; of a matrix of elements its own.
    chunks : int, optional
        Primes of a task: then the result is lazy.
    backend : {"cpu", "cuda", "auto"}, optional
        The processor.
    seed : int, optional
        What random vectors follow from, not negative.

    Returns
    -------
    FieldArray, shape (N + 1,)
        Coefficients, ascending; the leading one is 1, and those above it are 0, for degrees may differ from
        prime to prime.

    Raises
    ------
    TypeError, ValueError
        If operands are something else, the matrix is not square, or fields do not fit.
    """
    length = _square("minpoly", a)
    found = _by_primes(
        wiedemann.minimal_polynomials, a, fields, (length + 1,), np.uint32, chunks, backend, seed
    )
    return FieldArray(found, fields)


def det(
    a: SparseMatrix,
    fields: PrimeFields,
    *,
    chunks: SupportsIndex | None = None,
    backend: str = "cpu",
    seed: SupportsIndex = 0,
) -> Any:
    """Determinant of a square matrix modulo each prime, proved, by Wiedemann's algorithm.

    Whatever vectors were drawn, what is returned is the determinant. That of no rows is 1.

    Parameters
    ----------
    a, fields, chunks, backend, seed
        As in :func:`minpoly`.

    Returns
    -------
    int
        That from 0 to M - 1 which stands for the determinants, as of :func:`.linalg.det`; with `chunks` a
        lazy integer.

    Raises
    ------
    NumberError
        If a prime is too small for the algorithm, which draws a few times; it is named. It is a ValueError.
    TypeError, ValueError
        As in :func:`minpoly`.
    """
    _square("det", a)
    found = _by_primes(wiedemann.determinants, a, fields, (), np.uint32, chunks, backend, seed)
    return FieldArray(found[:, None], fields)[0]


def rank(
    a: SparseMatrix,
    fields: PrimeFields,
    *,
    chunks: SupportsIndex | None = None,
    backend: str = "cpu",
    seed: SupportsIndex = 0,
) -> Any:
    """Rank modulo each prime, never too great, and too small with little probability.

    A rank that is the number of rows or columns is proved. Another one is the greatest of so many independent
    trials that all are too small less often than once in 2**30, if one is with probability 4 N / p at most,
    for N rows or columns, whichever are fewer. That much is an estimate: what is proved is of order N**2 / p
    (L. Chen and others, "Efficient matrix preconditioners for black box linear algebra", Linear Algebra and
    its Applications 343-344, 2002). :func:`.linalg.rank` of ``a.to_dense(fields)`` is proved.

    Parameters
    ----------
    a : SparseMatrix, shape (R, C)
        Of any shape.
    fields, chunks, backend, seed
        As in :func:`minpoly`.

    Returns
    -------
    array of int64, shape (n,)
        NumPy, or with `chunks` Dask.

    Raises
    ------
    NumberError
        If a prime is below 8 N. It is a ValueError.
    TypeError, ValueError
        If operands are something else, or fields do not fit.
    """
    _check_matrix(a)
    return _by_primes(wiedemann.ranks, a, fields, (), np.int64, chunks, backend, seed)


def _by_primes(
    function: Callable[..., Any],
    a: SparseMatrix,
    fields: PrimeFields,
    shape: tuple[int, ...],
    dtype: type,
    chunks: SupportsIndex | None,
    backend: str,
    seed: SupportsIndex,
) -> Any:
    """Apply a function to a matrix modulo primes, for (n, *shape); with `chunks` in tasks."""
    moduli, size, number = a.check_fields(fields).moduli, _as_chunks(chunks), _as_seed(seed)
    if size is None:
        return _on(function, a, moduli, backend, number)
    matrix, parts = delayed(a, pure=True), []
    for start in range(0, len(moduli), size):
        some = unchecked_set(list(moduli)[start : start + size])
        task = delayed(_on, pure=True)(function, matrix, some, backend, number)
        parts.append(da.from_delayed(task, (len(some), *shape), dtype))
    return da.concatenate(parts)


def _on(function: Callable[..., Any], a: SparseMatrix, moduli: ModuliSet, backend: str, seed: int) -> Array:
    found: Array = function(a, moduli, to_backend(np.zeros(1, np.uint32), backend), seed)
    return found


def _lazy(function: Callable[..., Any], shape: tuple[int, ...], like: Any, *arguments: Any) -> da.Array:
    meta = empty_like_chunks(getattr(like, "_meta", like), len(shape), np.uint32)
    made: da.Array = da.from_delayed(delayed(function, pure=True)(*arguments), shape, meta=meta)
    return made


def _check_matrix(a: Any) -> None:
    if not isinstance(a, SparseMatrix):
        raise TypeError(f"a must be a SparseMatrix, got {type(a).__name__}; rd.sparse.from_scipy makes one")


def _square(name: str, a: Any) -> int:
    _check_matrix(a)
    rows, columns = a.shape
    if rows != columns:
        raise ValueError(f"{name} takes square matrices, got shape {a.shape}")
    return int(rows)


def _as_chunks(chunks: SupportsIndex | None) -> int | None:
    if chunks is None:
        return None
    size = as_integer(chunks, "chunks")
    if size < 1:
        raise ValueError(f"chunks must be at least 1 prime, got {size}")
    return size


def _as_seed(seed: SupportsIndex) -> int:
    number = as_integer(seed, "seed")
    if number < 0:
        raise ValueError(f"seed must not be negative, got {number}")
    return number
