"""Solutions, minimal polynomials, ranks and determinants of sparse matrices, optionally lazy on Dask."""

from collections.abc import Callable
from typing import Any, SupportsIndex

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.delayed import delayed

from rnsdask.arrays.field_array import FieldArray
from rnsdask.backend import Array, empty_like_chunks, to_backend
from rnsdask.backend.protocol import Moduli
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import Kind, Message, must
from rnsdask.core.wide_moduli import moduli_at
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy.call import Call
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.map import array_of_tasks, keys_of
from rnsdask.sparse import wiedemann
from rnsdask.sparse.matrix import SparseMatrix, has_sparse_products, vectors_of
from rnsdask.typing import Integer, PlainArray

PRIMES_OF_TASK = 16
"""Default number of primes in a task of lazy solutions: their words are one line of memory."""


def solve(
    a: SparseMatrix, b: FieldArray, *, chunks: SupportsIndex | None = None, seed: SupportsIndex = 0
) -> FieldArray:
    """Find a solution x of ``a @ x == b`` modulo each prime, and check it by substitution.

    Wiedemann's algorithm takes about 3 N products of the matrix with a vector for N rows, and twice as many
    if the matrix is singular or not square. It does not prove that a solution is unique; if there are
    several, `seed` decides which one it finds. Modulo small primes it may find neither a solution nor a proof
    that there are no solutions. Then the matrix is eliminated, if it takes up to 64 MiB (4096 rows and
    columns) modulo a prime, including right-hand sides.

    Parameters
    ----------
    a : SparseMatrix, shape (R, C)
        Of any shape and rank.
    b : FieldArray of PrimeFields, shape (R,) or (R, K)
        One vector, or a block of them, on the CPU or a GPU.
    chunks : int, optional
        Number of primes in a task, for a lazy result. For lazy vectors the default is 16, and each of their
        chunks has tasks of its own.
    seed : int, optional
        Seed of the random vectors, not negative.

    Returns
    -------
    FieldArray, shape (C,) or (C, K)

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is proved that there is no solution modulo a prime: by a vector y with ``y @ a == 0`` and ``y @
        b != 0``, or by elimination. It names the prime, and for a block the vector. For a lazy result when it
        is computed.
    NumberError
        If it finds neither a solution nor a proof, which may happen if a matrix above 64 MiB is singular or
        not square and a prime is small. It names the prime, and is a ValueError. For a lazy result when it is
        computed.
    TypeError, ValueError
        If operands are of other types, or shapes or fields do not fit.
    """
    _check_matrix(a)
    if not has_sparse_products(b):
        rule = Message("be ", Kind("FieldArray", "a"), " of PrimeFields, got ", Kind.of(type(b)))
        raise TypeError(must("b", rule))
    moduli, words = a.check_fields(b.system).moduli, vectors_of(b, a.shape[0], "b")
    number, size = _as_seed(seed), _as_chunks(chunks)
    is_vector = words.ndim == 2
    words = words[..., None] if is_vector else words
    if size is None and not isinstance(words, da.Array):
        found = wiedemann.solve(a, words, moduli, number, None if is_vector else 0)
    else:
        found = _solve_lazily(a, words, moduli, number, size or PRIMES_OF_TASK, is_vector)
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

    Its degree is never too large. It is checked with random vectors: the probability that it is not the
    minimal polynomial is below 2**-64.

    Parameters
    ----------
    a : SparseMatrix, shape (N, N)
    fields : PrimeFields
        The primes; for a matrix of elements its own fields.
    chunks : int, optional
        Number of primes in a task, for a lazy result.
    backend : {"cpu", "cuda", "auto"}, optional
        The processor.
    seed : int, optional
        Seed of the random vectors, not negative.

    Returns
    -------
    FieldArray, shape (N + 1,)
        Coefficients, ascending; the leading one is 1, followed by zeros, because degrees may differ from
        prime to prime.

    Raises
    ------
    TypeError, ValueError
        If operands are of other types, the matrix is not square, or fields do not fit.
    """
    length = _square("minpoly", a)
    found = _apply_by_primes(
        wiedemann.minimal_polynomials, a, fields, (length + 1,), None, chunks, backend, seed
    )
    return FieldArray(found, fields)


def det(
    a: SparseMatrix,
    fields: PrimeFields,
    *,
    chunks: SupportsIndex | None = None,
    backend: str = "cpu",
    seed: SupportsIndex = 0,
) -> Integer:
    """Determinant of a square matrix modulo each prime, proved, by Wiedemann's algorithm.

    The result is right whatever vectors are drawn. It is 1 for a matrix without rows. If random vectors fail
    modulo a small prime, matrices of up to 64 MiB (4096 rows) modulo a prime are eliminated.

    Parameters
    ----------
    a, fields, chunks, backend, seed
        As in :func:`minpoly`.

    Returns
    -------
    int
        The integer from 0 to M - 1 with the determinants as residues, as in :func:`.linalg.det`; with
        `chunks` a lazy integer.

    Raises
    ------
    NumberError
        If a prime is too small for the algorithm, which draws a few times, and the matrix too large for
        elimination. It names the prime, and is a ValueError.
    TypeError, ValueError
        As in :func:`minpoly`.
    """
    _square("det", a)
    found = _apply_by_primes(wiedemann.determinants, a, fields, (), None, chunks, backend, seed)
    value: Any = FieldArray(found[:, None], fields)[0]
    determinant: Integer = value
    return determinant


def rank(
    a: SparseMatrix,
    fields: PrimeFields,
    *,
    chunks: SupportsIndex | None = None,
    backend: str = "cpu",
    seed: SupportsIndex = 0,
) -> PlainArray[np.int64]:
    """Rank modulo each prime: never too large, and too small with low probability.

    Let N be the lesser of the numbers of rows and columns. A rank of N is proved, and so is a rank modulo a
    prime p below 8 N, which elimination finds. Any other rank is the greatest of several independent trials.
    If a trial is too small with probability 4 N / p at most, all are with less than 2**-30. The former is an
    estimate: the proved bound is of order N**2 / p (L. Chen and others, "Efficient matrix preconditioners for
    black box linear algebra", Linear Algebra and its Applications 343-344, 2002). :func:`.linalg.rank` of
    ``a.to_dense(fields)`` is proved.

    Parameters
    ----------
    a : SparseMatrix, shape (R, C)
        Of any shape.
    fields, chunks, backend, seed
        As in :func:`minpoly`.

    Returns
    -------
    array of int64, shape (n,)
        On NumPy, or with `chunks` on Dask.

    Raises
    ------
    NumberError
        If a prime is below 8 N, and the matrix above 64 MiB (4096 rows and columns) modulo a prime. It is a
        ValueError.
    TypeError, ValueError
        If operands are of other types, or fields do not fit.
    """
    _check_matrix(a)
    ranks: PlainArray[np.int64] = _apply_by_primes(
        wiedemann.ranks, a, fields, (), np.int64, chunks, backend, seed
    )
    return ranks


def _apply_by_primes(
    function: Callable[..., Any],
    a: SparseMatrix,
    fields: PrimeFields,
    shape: tuple[int, ...],
    dtype: type | None,
    chunks: SupportsIndex | None,
    backend: str,
    seed: SupportsIndex,
) -> Any:
    """Apply a function to a matrix modulo primes, with results (n, *shape); with `chunks` in tasks.

    Results are of a type, by default that of the fields' words.
    """
    moduli, size, number = a.check_fields(fields).moduli, _as_chunks(chunks), _as_seed(seed)
    if size is None:
        return _run_on(function, a, moduli, backend, number)
    matrix, parts = delayed(a, pure=True), []
    for start in range(0, len(moduli), size):
        some = moduli_at(moduli, range(len(moduli))[start : start + size])
        task = delayed(_run_on, pure=True)(function, matrix, some, backend, number)
        parts.append(da.from_delayed(task, (len(some), *shape), dtype or fields.word_dtype))
    return da.concatenate(parts)


def _run_on(function: Callable[..., Any], a: SparseMatrix, moduli: Moduli, backend: str, seed: int) -> Array:
    found: Array = function(a, moduli, to_backend(np.zeros(1, np.uint32), backend), seed)
    return found


def _solve_lazily(
    a: SparseMatrix, words: Any, moduli: Moduli, seed: int, size: int, is_vector: bool
) -> da.Array:
    """Solve in tasks of `size` primes and one chunk of vectors; they also run if solutions are empty."""
    lazy = words if isinstance(words, da.Array) else da.from_array(words)
    blocks, matrix = rechunk(lazy, {0: size, 1: -1}), a.as_chunk()
    (box,) = keys_of(matrix)
    starts = np.cumsum([0, *blocks.chunks[2]]).tolist()
    tasks = {}
    for (i, _, k), key in zip(np.ndindex(blocks.numblocks), keys_of(blocks), strict=True):
        some = moduli_at(moduli, range(len(moduli))[size * i : size * (i + 1)])
        how = {"moduli": some, "seed": seed, "first": None if is_vector else starts[k]}
        tasks[i, 0, k] = (Call(_solve_block, how), key, box)
    name = f"rns-sparse-solve-{tokenize(matrix.name, blocks.name, moduli, seed, size, is_vector)}"
    chunks = (blocks.chunks[0], (a.shape[1],), blocks.chunks[2])
    meta = empty_like_chunks(meta_from_array(words), 3, words.dtype)
    return array_of_tasks(name, tasks, chunks, meta, blocks, matrix)


def _solve_block(block: Array, box: Any, *, moduli: Moduli, seed: int, first: int | None) -> Array:
    return wiedemann.solve(box.item(), block, moduli, seed, first)


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
        raise ValueError(must("chunks", f"be at least 1 prime, got {size}"))
    return size


def _as_seed(seed: SupportsIndex) -> int:
    number = as_integer(seed, "seed")
    if number < 0:
        raise ValueError(must("seed", f"not be negative, got {number}"))
    return number
