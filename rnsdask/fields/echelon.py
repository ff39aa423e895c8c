"""Reduced row echelon forms of chunks of matrices over prime fields and over the rationals. No Dask in here.

A chunk is (n, *batch, rows, columns), in any layout; it is not changed, unless a function may `overwrite` it.
Forms and their pivots are unique; over the rationals they are proved (docs/exact-linalg.md).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, Moduli, assign, kernels_of, to_backend
from rnsdask.core import rows
from rnsdask.core.place import ALONE, Place
from rnsdask.core.wide_moduli import moduli_at
from rnsdask.fields import elimination
from rnsdask.fields.determinant_bounds import magnitude_of
from rnsdask.fields.exact_solutions import solutions as exact_solutions
from rnsdask.fields.system import fields_of
from rnsdask.fields.triangles import identity
from rnsdask.fields.wide_elimination import solve_upper
from rnsdask.rns.lift import count_beyond, modulo_primes, parts_of, primes
from rnsdask.rns.system import RNS

NO_PIVOT, WIDE_NO_PIVOT = np.uint32(2**32 - 1), np.uint64(2**64 - 1)
"""Pivot column that packed forms give to a row without a pivot; as a signed word it is -1."""

# Words of a matrix from which on matrices whose pivots differ are reduced in place, one by one.
GREAT_WORDS = 2**18

# Free columns are reduced in copies of a quarter of all words, or of 64 MiB.
PARTS, LEAST_PART = 4, 2**24

# Words that are rearranged at a time: 64 MiB.
BAND_WORDS = 2**24

NO_SOLUTION = "makes equations without a solution"


# ---- over prime fields ------------------------------------------------------------------------------------


def packed_forms(words: Array, moduli: Moduli) -> Array:
    """Reduced row echelon forms (n, *batch, rows, columns + 1); the last column holds the pivots' columns."""
    columns = words.shape[-1]
    packed = np.empty_like(words, shape=(*words.shape[:-1], columns + 1), order="C")
    form, pivots = forms(words, moduli)
    if words.size:
        assign(packed.reshape(-1, columns + 1)[:, :columns], form.reshape(-1, columns))
    last = np.full(words.shape[:-1], NO_PIVOT if words.dtype == np.uint32 else WIDE_NO_PIVOT)
    last[..., : pivots.shape[-1]] = pivots.astype(words.dtype)
    assign(packed.reshape(-1, columns + 1)[:, columns:], np.asarray(last.reshape(-1, 1), like=packed))
    return packed


def forms(words: Array, moduli: Moduli, *, overwrite: bool = False) -> tuple[Array, NDArray[np.int64]]:
    """Reduced row echelon forms (n, *batch, rows, columns), and pivots' columns (n, *batch, K) in NumPy.

    K is the lesser of rows and columns; rows without a pivot have -1. Forms are made where the elimination
    leaves factors: all that a matrix takes beside that is a part of its free columns.
    """
    rows, columns = words.shape[-2:]
    shape = *words.shape[:-2], min(rows, columns)
    if 0 in words.shape:
        form = np.zeros_like(words, shape=words.shape, order="C")
        return form, np.full(shape, -1, dtype=np.int64)
    found = elimination.echelon(words, moduli, columns, overwrite=overwrite)
    pivots = to_backend(found.pivots, "cpu").astype(np.int64)
    n, count = pivots.shape[:2]
    if (pivots == pivots[:1, :1]).all():
        _reduce_alike(found.words, pivots[0, 0], moduli)
    elif rows * columns >= GREAT_WORDS:
        for i, b in np.ndindex(n, count):
            one = found.words[i : i + 1, b : b + 1]
            _reduce_alike(one, pivots[i, b], moduli_at(moduli, [i]))
    else:
        _reduce(found, pivots, moduli)
    return found.words.reshape(words.shape), pivots.reshape(shape)


def _reduce(found: elimination.Echelon, pivots: NDArray[np.int64], moduli: Moduli) -> None:
    """Reduce echelon forms of small matrices, whose pivots differ."""
    x, least = found.words, pivots.shape[-1]
    first, (rows, columns) = _leading_pivots(pivots), x.shape[-2:]
    reduced = _reduced_rows(found, moduli, slice(first, columns))
    x[...] = 0
    x.reshape(-1, rows * columns)[:, : first * (columns + 1) : columns + 1] = 1
    x[:, :, :least, first:] = reduced


def _reduce_alike(x: Array, pivots: NDArray[np.int64], moduli: Moduli) -> None:
    """Reduce echelon forms (n, B, rows, columns) that all have these pivots, -1 for a row without one.

    With the columns of pivots first, a form begins with an upper triangle.
    """
    n, count, rows, columns = x.shape
    at = pivots[pivots >= 0]
    free, rank = np.setdiff1d(np.arange(columns), at), len(at)
    form, is_leading = x[:, :, :rank], rank == 0 or at[-1] == rank - 1
    if not is_leading:
        order = np.asarray(np.concatenate([at, free]), like=x)
        for band, _ in _bands(form):
            band[...] = band.take(order, axis=-1)
    if rank and len(free):
        _reduce_free(form, at, free, moduli)
    x[:, :, rank:] = 0
    if is_leading:
        form[..., :rank] = 0
        # By slices: indices of CuPy's arrays are not to be trusted beyond 2**31.
        x.reshape(n * count, rows * columns)[:, : rank * (columns + 1) : columns + 1] = 1
        return
    to = np.asarray(free, like=x)
    for band, first in _bands(form):
        solved = band[..., rank:].copy()
        band[...] = 0
        band[..., to] = solved
        own = np.arange(band.shape[2], like=x)
        band[:, :, own, np.asarray(at[first : first + len(own)], like=x)] = 1


def _reduce_free(form: Array, at: NDArray[np.int64], free: NDArray[np.int64], moduli: Moduli) -> None:
    """Reduce the free columns of echelon forms (n, B, rank, columns), which are the last ones."""
    n, count, rank, columns = form.shape
    upper, right = form[..., :rank], form[..., rank:]
    width = max(form.size // PARTS, LEAST_PART) // (n * count * rank) + 1
    rows = np.asarray(at, like=form)[:, None]
    for start in range(0, columns - rank, width):
        part = right[..., start : start + width].copy()
        if free[start] < at[-1]:  # factors may stand left of a pivot
            part *= np.asarray(free[start : start + width], like=form) > rows
        kernels_of(part).solve_upper(upper, part, moduli, part)
        assign(right[..., start : start + width], part)


def _bands(x: Array) -> Iterator[tuple[Array, int]]:
    """Yield some rows of matrices (n, B, rows, columns) at a time, and the number of the first."""
    length = max(1, BAND_WORDS // max(1, x.size // x.shape[2])) if x.size else 1
    for first in range(0, x.shape[2], length):
        yield x[:, :, first : first + length], first


def _leading_pivots(pivots: NDArray[np.integer]) -> int:
    """First columns that have pivots in all matrices of (n, B, K); reduced, they are an identity matrix's."""
    is_leading = np.logical_and.accumulate(pivots == np.arange(pivots.shape[-1]), axis=-1)
    return int(is_leading.sum(axis=-1).min())


def _reduced_rows(found: elimination.Echelon, moduli: Moduli, wanted: slice) -> Array:
    """Wanted columns of the reduced rows (n, B, K, wanted) of echelon forms with K places for pivots.

    The rank may differ from matrix to matrix, and from prime to prime: rows without a pivot are 0.
    """
    pivots = to_backend(found.pivots, "cpu").astype(np.int64)
    has_pivot, (count, width) = pivots >= 0, (pivots.shape[-1], found.words.shape[-1])
    there, rows = partial(np.asarray, like=found.words), found.words[:, :, :count]
    if (pivots == np.arange(count)).all():  # then factors are below the diagonal, which is not read
        return _solve_upper(rows[..., :count], rows[..., wanted], moduli)
    begins = there(np.where(has_pivot, pivots, width))[..., None]

    def without_factors(x: Array, places: Array) -> Array:
        return np.where(places >= begins, x, np.uint32(0))

    at = there(np.maximum(pivots, 0))[:, :, None]
    upper = without_factors(np.take_along_axis(rows, at, axis=-1), at)
    if not has_pivot.all():
        upper = np.where(there(has_pivot)[:, :, None], upper, identity(count, found.words))
    right = without_factors(rows[..., wanted], np.arange(width, like=found.words)[wanted])
    return _solve_upper(upper, right, moduli)


def _solve_upper(upper: Array, right: Array, moduli: Moduli) -> Array:
    out = np.empty_like(right, order="C")
    solve_upper(upper, right, moduli, out)
    return out


def any_solutions(words: Array, columns: int, moduli: Moduli, place: Place) -> Array:
    """Solve A x = b for chunks [A b]: (n, *batch, columns, K), 0 where A's form has no pivot.

    LinAlgError if equations have no solution modulo a prime, naming the matrix' index in the array and the
    prime.
    """
    *outer, rows, width = words.shape
    out = np.zeros_like(words, shape=(*outer, columns, width - columns), order="C")
    if rows == 0 or math.prod(outer) == 0:
        return out
    found = elimination.echelon(words, moduli, columns)
    left_over = np.arange(rows, like=words) >= found.ranks[..., None]
    fails = ((found.words[..., columns:] != 0) & left_over[..., None]).any(axis=(-2, -1))
    elimination.check_regular(~fails.reshape(outer), moduli, place, NO_SOLUTION)
    if 0 in out.shape:
        return out
    n, matrices = found.pivots.shape[:2]
    if rows * width >= GREAT_WORDS:
        pivots, parts = (
            to_backend(found.pivots, "cpu").astype(np.int64),
            out.reshape(n, matrices, columns, -1),
        )
        for i, b in np.ndindex(n, matrices):
            one, at = (slice(i, i + 1), slice(b, b + 1)), pivots[i, b]
            _place_solution(found.words[one], at[at >= 0], moduli_at(moduli, [i]), parts[one])
        return out
    at = np.where(found.pivots >= 0, found.pivots, columns).astype(np.int64)
    # An extra row receives the values of all rows without a pivot, which are 0.
    placed = np.zeros_like(words, shape=(n, matrices, columns + 1, width - columns), order="C")
    i, b = (np.arange(length, like=words) for length in (n, matrices))
    placed[i[:, None, None], b[:, None], at] = _reduced_rows(found, moduli, slice(columns, None))
    return placed[:, :, :columns].reshape(out.shape)


def _place_solution(x: Array, at: NDArray[np.int64], moduli: Moduli, out: Array) -> None:
    """Place the solution by the echelon form [A b] (1, 1, rows, width) of one great matrix, which it changes.

    Columns of pivots are brought to the left, where they are an upper triangle.
    """
    rank, columns = len(at), out.shape[2]
    form = x[:, :, :rank]
    if rank and at[-1] != rank - 1:
        order = np.asarray(at, like=x)
        for band, _ in _bands(form):
            band[..., :rank] = band.take(order, axis=-1)
    right = form[..., columns:].copy()
    solve_upper(form[..., :rank], right, moduli, right)
    for start, stop in _runs(at):
        column = int(at[start])
        out[:, :, column : column + stop - start] = right[:, :, start:stop]


# ---- null vectors -----------------------------------------------------------------------------------------


def nullspaces(words: Array, moduli: Moduli, rank: int) -> Array:
    """Bases (n, *batch, columns, columns - rank) of the nullspaces of matrices that all have one rank."""
    return null_vectors(*forms(words, moduli), moduli, rank)


def null_vectors(form: Array, pivots: NDArray[np.int64], moduli: Moduli, rank: int) -> Array:
    """Bases (n, *batch, columns, columns - rank) of nullspaces, given :func:`forms` of one rank.

    Each column without a pivot gives the solution that is 1 there and 0 in the other such columns.
    """
    *outer, rows, columns = form.shape
    shape = len(form), math.prod(outer[1:])
    out = np.zeros_like(form, shape=(*shape, columns, columns - rank), order="C")
    if out.size:
        reduced = form.reshape(*shape, rows, columns)[:, :, :rank]
        at = pivots.reshape(*shape, pivots.shape[-1])[..., :rank]
        if (at == at[:1, :1]).all():
            _place_alike(reduced, at[0, 0], moduli, out)
        elif rows * columns >= GREAT_WORDS:
            for i, b in np.ndindex(*shape):
                one = (slice(i, i + 1), slice(b, b + 1))
                _place_alike(reduced[one], at[i, b], moduli_at(moduli, [i]), out[one])
        else:
            _place_each(reduced, at, moduli, out)
    return out.reshape(*outer, columns, columns - rank)


def _place_alike(reduced: Array, at: NDArray[np.int64], moduli: Moduli, out: Array) -> None:
    """Place null vectors of reduced rows (n, B, rank, columns) that all have these pivots.

    By slices and few rows at a time: indices of CuPy's arrays are not to be trusted beyond 2**31.
    """
    n, count, columns, width = out.shape
    free = np.setdiff1d(np.arange(columns), at)
    for band, first in _bands(reduced):
        solved = band.take(np.asarray(free, like=band), axis=-1)
        for part, p in zip(solved, moduli, strict=True):
            part[...] = negative(part, p)
        own = at[first : first + band.shape[2]]
        for start, stop in _runs(own):
            column = int(own[start])
            out[:, :, column : column + stop - start] = solved[:, :, start:stop]
    flat = out.reshape(n * count, columns * width)
    for start, stop in _runs(free):
        begin = int(free[start]) * width + start
        flat[:, begin : begin + (stop - start - 1) * (width + 1) + 1 : width + 1] = 1


def _place_each(reduced: Array, at: NDArray[np.int64], moduli: Moduli, out: Array) -> None:
    """Place null vectors of small matrices, whose pivots (n, B, rank) differ."""
    count, columns, width = out.shape[1:]
    b, free = np.arange(count, like=out)[:, None], free_columns(at, columns)
    for i, p in enumerate(moduli):
        own, others = (np.asarray(numbers[i], like=out) for numbers in (at, free))
        out[i][b, own] = negative(np.take_along_axis(reduced[i], others[:, None], axis=-1), p)
        out[i][b, others] = identity(width, out)


def negative(values: Array, p: int) -> Array:
    """Elements modulo p whose sums with the given ones are 0."""
    return np.where(values == 0, values, values.dtype.type(p) - values)


def free_columns(pivots: NDArray[np.integer], columns: int) -> NDArray[np.int64]:
    """Columns without a pivot (..., columns - rank), ascending, given those that have one (..., rank)."""
    is_free = np.ones((*pivots.shape[:-1], columns), dtype=np.bool_)
    np.put_along_axis(is_free, pivots.astype(np.int64), values=False, axis=-1)
    return is_free.nonzero()[-1].reshape(*pivots.shape[:-1], columns - pivots.shape[-1])


def _runs(numbers: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Places where ascending numbers begin to go on without a gap, and where they stop."""
    gaps = np.flatnonzero(np.diff(numbers) != 1) + 1
    return pairwise((0, *gaps.tolist(), len(numbers))) if len(numbers) else iter(())


# ---- over the rationals -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """Reduced row echelon form of one matrix over the rationals: columns with pivots, and free columns.

    `numerators` (rank, len(free)) are the elements in the free columns times their least common
    `denominator`.
    """

    pivots: list[int]
    free: list[int]
    numerators: NDArray[np.object_]
    denominator: int


def form_of(matrix: Array, system: RNS) -> Form:
    """Compute the form of one matrix (n, rows, columns).

    Pivots modulo a prime name rows and columns whose minor is not 0. In these rows, the free columns are
    expressed by the pivots' columns. If the expressions hold in all rows, the rank is right; if no column
    depends on one to its right, so are the pivots. Otherwise the prime divided a minor, and the next prime is
    tried.
    """
    columns = matrix.shape[-1]
    if 0 in matrix.shape:
        return Form([], list(range(columns)), np.zeros((0, columns), dtype=object), 1)
    start = 0
    while True:
        prime = primes(start, 1)
        rows, pivots = elimination.pivots(modulo_primes(matrix, system, prime), prime)
        free = sorted(set(range(columns)) - set(pivots))
        numerators, denominator = _solve_free(matrix, rows, pivots, free, system)
        before = np.array(free, dtype=np.int64) < np.array(pivots, dtype=np.int64)[:, None]
        if not numerators[before].any():
            others = sorted(set(range(matrix.shape[-2])) - set(rows))
            if _holds(matrix[:, others], pivots, free, numerators, denominator, system):
                return Form(pivots, free, numerators, denominator)
        start += 1


def _solve_free(
    matrix: Array, rows: list[int], pivots: list[int], free: list[int], system: RNS
) -> tuple[NDArray[np.object_], int]:
    """Express free columns by the pivots' columns, in some rows: numerators (rank, free), a denominator."""
    if not rows or not free:
        return np.zeros((len(rows), len(free)), dtype=object), 1
    chosen = matrix[:, rows]
    packed = exact_solutions(chosen[:, :, pivots + free], system, ALONE)[0]
    return packed[: len(rows)], packed[len(rows), 0]


def _holds(
    words: Array,
    pivots: list[int],
    free: list[int],
    numerators: NDArray[np.object_],
    denominator: int,
    system: RNS,
) -> bool:
    """Check modulo enough primes that the free columns' expressions hold in rows (n, rows, columns)."""
    if 0 in words.shape or not free:
        return True
    greatest = max(map(abs, numerators.reshape(-1).tolist()), default=0)
    bound = magnitude_of(words, system) * (len(pivots) * greatest + denominator)
    for start, size in parts_of(words, 0, count_beyond(bound)):
        part = primes(start, size)
        fields, residues = fields_of(part), modulo_primes(words, system, part)
        column = np.asarray(fields.column(denominator, 2), like=words)
        expected = fields.apply(rows.multiply, residues[..., free], column)
        if pivots:
            factors = np.asarray(fields.encode(numerators), like=words)
            expected = fields.apply(
                rows.subtract, expected, fields.apply(rows.multiply_matrices, residues[..., pivots], factors)
            )
        if expected.any():
            return False
    return True


def _pack(words: Array, system: RNS, shape: tuple[int, int], write: Any) -> NDArray[np.object_]:
    """Array (1, *batch, *shape) of Python ints, zeros where `write` puts nothing from the matrix' form."""
    batch = words.shape[1:-2]
    packed = np.zeros((*batch, *shape), dtype=object)
    for index in np.ndindex(*batch):
        write(packed[index], form_of(words[(slice(None), *index)], system), index)
    return packed[None]


def rational_forms(words: Array, *, system: RNS) -> NDArray[np.object_]:
    """Forms (1, *batch, rows + 1, columns + 1): numerators, at the right pivots, below a denominator."""
    rows, columns = words.shape[-2:]

    def write(out: NDArray[np.object_], form: Form, _: tuple[int, ...]) -> None:
        rank = len(form.pivots)
        out[range(rank), form.pivots] = form.denominator
        out[:rank, form.free] = form.numerators
        out[:rank, columns], out[rank:rows, columns] = form.pivots, -1
        out[rows, 0] = form.denominator

    return _pack(words, system, (rows + 1, columns + 1), write)


def rational_nullspaces(words: Array, *, system: RNS, rank: int) -> NDArray[np.object_]:
    """Bases (1, *batch, columns, columns - rank) of the solutions of A x = 0, in lowest terms."""
    columns = words.shape[-1]

    def write(out: NDArray[np.object_], form: Form, _: tuple[int, ...]) -> None:
        for k, column in enumerate(form.free):
            common = math.gcd(form.denominator, *form.numerators[:, k].tolist())
            out[column, k] = form.denominator // common
            out[form.pivots, k] = -form.numerators[:, k] // common

    return _pack(words, system, (columns, columns - rank), write)


def rational_solutions(words: Array, *, system: RNS, columns: int, place: Place) -> NDArray[np.object_]:
    """Solve A x = b for chunks [A b]: (1, *batch, columns + 1, K), 0 where A's form has no pivot.

    The last row begins with the denominators; without right-hand sides there is one column. LinAlgError if
    equations have no solution, naming the matrix' index in the array.
    """
    width, batch = words.shape[-1] - columns, words.shape[1:-2]

    def write(out: NDArray[np.object_], form: Form, index: tuple[int, ...]) -> None:
        if form.pivots and form.pivots[-1] >= columns:
            flat = int(np.ravel_multi_index(index, batch)) if batch else 0
            raise np.linalg.LinAlgError(f"{elimination.matrix_at(flat, batch, place)} {NO_SOLUTION}")
        numerators = form.numerators[:, len(form.free) - width :]
        common = math.gcd(form.denominator, *numerators.reshape(-1).tolist())
        out[form.pivots, :width] = numerators // common
        out[columns, 0] = form.denominator // common

    return _pack(words, system, (columns + 1, max(width, 1)), write)
