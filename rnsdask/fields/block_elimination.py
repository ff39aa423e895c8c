"""Elimination in one matrix over prime fields by block columns, whose tasks exchange panels. No Dask in here.

A block column is (n, rows, columns); no function changes it. Block by block, a panel is factored in the rows
that have no pivot yet, and all block columns to its right are reduced by it. Rows are exchanged as in the
elimination of the whole matrix, so that factors and forms are the same. The number of pivots before a panel
differs from prime to prime; primes for which it is the same are reduced together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, Moduli, is_any, to_backend
from rnsdask.core import rows as operations
from rnsdask.core.place import Place
from rnsdask.core.wide_moduli import moduli_at
from rnsdask.fields import elimination
from rnsdask.fields.echelon import NO_SOLUTION, free_columns, negative
from rnsdask.fields.system import fields_of
from rnsdask.fields.triangles import inverse_of_lower, inverse_of_upper

Primes: TypeAlias = list[int] | slice
"""Positions of some primes; all of them are a slice, by which an array is a view."""


@dataclass(frozen=True)
class Found:
    """Pivots and row exchanges of the first block columns, modulo each prime, in NumPy.

    Attributes
    ----------
    ranks : array of int64, shape (n,)
        Pivots so far.
    products : array of the words, shape (n,)
        Products of the pivots, negative if the order is odd.
    pivots : array of int32, shape (n, min(rows, columns))
        The column of each row's pivot, -1 where there is none yet.
    order : array of int32, shape (n, rows)
        Which row of the matrix came to each place.
    """

    ranks: NDArray[np.int64]
    products: NDArray[Any]
    pivots: NDArray[np.int32]
    order: NDArray[np.int32]


@dataclass(frozen=True)
class Step:
    """Pivots of a block column modulo some primes, in rows from `start` on.

    Attributes
    ----------
    primes : list of int, or slice
        Positions of the g primes.
    start : int
        Pivots of the block columns before.
    pivots : array of int64, shape (g, count)
        Their columns in the block.
    products : array of the words, shape (g,)
        Their products, negative if the order is odd.
    order : array of int32, shape (g, rows - start), or None
        Which of the rows from `start` on came to each place; None if none was exchanged.
    words : array, shape (g, rows - start, columns)
        Echelon form of these rows, as of :meth:`.Kernels.eliminate`: rows begin with their factors.
    inverse : array, shape (g, count, count)
        Inverse of the triangle of the pivot rows' factors.
    above : array, shape (g, start, columns)
        The rows before, or none if the elimination drops them.
    """

    primes: Primes
    start: int
    pivots: Array
    products: Array
    order: Array | None
    words: Array
    inverse: Array
    above: Array

    @property
    def count(self) -> int:
        """Number of the pivots."""
        return int(self.pivots.shape[1])

    @property
    def stop(self) -> int:
        """Pivots of the block columns up to this one."""
        return self.start + self.count

    def rows(self) -> Array:
        """Rows of the pivots (g, count, columns), 0 where factors stand."""
        columns = np.arange(self.words.shape[-1], like=self.words)
        return np.where(columns >= self.pivots[..., None], self.words[:, : self.count], np.uint32(0))


@dataclass(frozen=True)
class Panel:
    """A block column whose pivots are found: about as many words as it has itself.

    Block columns lack their first `dropped` rows before they are reduced by it, and `drops` more after: those
    that have a pivot modulo each prime, where no one needs them any more.
    """

    steps: tuple[Step, ...]
    keeps: bool
    dropped: int
    drops: int


@dataclass(frozen=True)
class ReductionStep:
    """Factors by which a step reduces the rows below its pivots modulo some primes.

    `primes`, `start`, `inverse` and `order` are those of the :class:`Step`, `count` is the number of its
    pivots, and `below` (g, rows - start - count, count) has the factors of all rows that are not theirs.
    """

    primes: Primes
    start: int
    count: int
    order: Array | None
    inverse: Array
    below: Array


@dataclass(frozen=True)
class Reduction:
    """Factors that reduce the block columns to the right of a panel: no more words than one of those has.

    `keeps`, `dropped` and `drops` are those of the :class:`Panel`; steps without pivots are left out.
    """

    steps: tuple[ReductionStep, ...]
    keeps: bool
    dropped: int
    drops: int


@dataclass(frozen=True)
class UpperStep:
    """Upper triangle of a panel's pivots modulo some primes, in rows from `start` on.

    `inverse` (g, count, count) is that of the triangle, and `above` (g, start, count) has the rows before, in
    the pivots' columns.
    """

    primes: Primes
    start: int
    inverse: Array
    above: Array


Upper: TypeAlias = list[UpperStep]
"""Steps of the elimination upwards by one panel."""


def nothing_found(moduli: Moduli, rows: int, columns: int) -> Found:
    """Return the state before the first block column."""
    n, dtype = len(moduli), fields_of(moduli).word_dtype
    order = np.tile(np.arange(rows, dtype=np.int32), (n, 1))
    pivots = np.full((n, min(rows, columns)), -1, dtype=np.int32)
    return Found(np.zeros(n, dtype=np.int64), np.ones(n, dtype=dtype), pivots, order)


# ---- elimination downwards --------------------------------------------------------------------------------


def factor_panel(block: Array, found: Found, *, moduli: Moduli, keeps: bool) -> Panel:
    """Find the pivots of a block column that all panels before have reduced.

    Unless the panel `keeps` them, rows that have pivots are dropped.
    """
    dropped, steps = found.order.shape[1] - block.shape[1], []
    for start, primes in groups(found.ranks):
        rows, first = block[primes], start - dropped
        form = elimination.echelon(rows[:, first:], some_moduli(moduli, primes), block.shape[-1])
        above = rows[:, : first if keeps else 0]
        for count, members in groups(to_backend(form.ranks, "cpu")[:, 0]):
            part = within(primes, members)
            few = elimination.Echelon(*(getattr(form, each.name)[members] for each in fields(form)))
            steps.append(_step(part, start, count, few, above[members].copy(), some_moduli(moduli, part)))
    least = min(step.stop for step in steps)
    return Panel(tuple(steps), keeps, dropped, 0 if keeps else least - dropped)


def _step(
    primes: Primes, start: int, count: int, form: elimination.Echelon, above: Array, moduli: Moduli
) -> Step:
    """Make a step of echelon forms of stacks of one matrix, all of the rank `count`."""
    words, order = form.words[:, 0], form.order[:, 0]
    is_moved = is_any(order != np.arange(order.shape[1], like=order))
    return Step(
        primes,
        start,
        form.pivots[:, 0, :count].astype(np.int64),
        form.products[:, 0],
        order if is_moved else None,
        words,
        inverse_of_lower(words[:, :count, :count], moduli),
        above,
    )


def found_after(panel: Panel, found: Found, *, first_column: int, moduli: Moduli) -> Found:
    """Add what a panel found, whose first column is given, to what those before found."""
    ranks, products = found.ranks.copy(), found.products.copy()
    pivots, order = found.pivots.copy(), found.order.copy()
    for step in panel.steps:
        primes, start = step.primes, step.start
        ranks[primes] = step.stop
        pivots[primes, start : step.stop] = to_backend(step.pivots, "cpu") + first_column
        if step.order is not None:
            moved = to_backend(step.order, "cpu").astype(np.int64)
            order[primes, start:] = np.take_along_axis(order[primes][:, start:], moved, axis=1)
        factors = products[primes][:, None], to_backend(step.products, "cpu")[:, None]
        own = fields_of(some_moduli(moduli, primes))
        products[primes] = own.apply(operations.multiply, *factors)[:, 0]
    return Found(ranks, products, pivots, order)


def reduction_of(panel: Panel) -> Reduction:
    """Return what reduces block columns by a panel, as views of its words."""
    steps = tuple(
        ReductionStep(
            step.primes,
            step.start,
            step.count,
            step.order,
            step.inverse,
            step.words[:, step.count :, : step.count],
        )
        for step in panel.steps
        if step.count
    )
    return Reduction(steps, panel.keeps, panel.dropped, panel.drops)


def apply_panel(block: Array, panel: Reduction, *, moduli: Moduli) -> Array:
    """Reduce a block column to the right of a panel by its pivots.

    It takes (rows - pivots) x pivots x columns multiplications, and the memory of three block columns beside
    the block and the panel.
    """
    steps = panel.steps
    if not steps:
        return block
    out = np.empty_like(block, shape=(len(block), block.shape[1] - panel.drops, block.shape[2]), order="C")
    if not _are_all(steps):
        out[...] = block[:, panel.drops :]
    for step in steps:
        first, primes = step.start - panel.dropped, step.primes
        rows = block[primes]
        top, rest = _cleared(_reordered(rows[:, first:], step.order), step, some_moduli(moduli, primes))
        end = first + step.count - panel.drops
        if panel.keeps:
            out[primes, :first] = rows[:, :first]
            out[primes, first:end] = top
        out[primes, end:] = rest
    return out


def _cleared(rows: Array, step: ReductionStep, moduli: Moduli) -> tuple[Array, Array]:
    """Rows of the pivots, and those below without what is due to them. Columns of zeros stay as they are."""
    top, rest = rows[:, : step.count], rows[:, step.count :]
    used = _used_columns(top)
    if used is None:
        return top, rest
    solved = multiply(step.inverse, top[..., used], moduli)
    reduced = subtract_product(rest[..., used], step.below, solved, moduli)
    if isinstance(used, slice):
        return solved, reduced
    top, rest = top.copy(), rest.copy()
    top[..., used], rest[..., used] = solved, reduced
    return top, rest


def _used_columns(rows: Array) -> Array | slice | None:
    """Columns of (n, rows, columns) that are not 0: all of them as a slice, or None."""
    used = rows.any(axis=(0, 1))
    count = int(used.sum())
    if count == len(used):
        return slice(None) if count else None
    return used.nonzero()[0] if count else None


def multiply(left: Array, right: Array, moduli: Moduli) -> Array:
    """Multiply matrices (n, rows, K) and (n, K, columns)."""
    return fields_of(moduli).apply(operations.multiply_matrices, left, right)


def subtract_product(x: Array, left: Array, right: Array, moduli: Moduli) -> Array:
    """Subtract a product of matrices from others."""
    if not x.size or not left.size:
        return x
    return fields_of(moduli).apply(operations.subtract, x, multiply(left, right, moduli))


# ---- elimination upwards ----------------------------------------------------------------------------------


def upper_of(panel: Panel, *, moduli: Moduli) -> Upper:
    """Return the part of a panel that the elimination upwards needs, about half of its words."""
    steps = []
    for step in panel.steps:
        if step.count:
            at = step.pivots[:, None]
            square = np.take_along_axis(step.words[:, : step.count], at, axis=-1)
            inverse = inverse_of_upper(square, some_moduli(moduli, step.primes))
            steps.append(
                UpperStep(step.primes, step.start, inverse, np.take_along_axis(step.above, at, axis=-1))
            )
    return steps


def reduce_by(block: Array, upper: Upper, *, moduli: Moduli) -> Array:
    """Clear the columns of a panel's pivots above them: pivots become 1, and rows above lose multiples.

    Of rows x columns of the block that are not 0 in the rows of the pivots, each takes as many
    multiplications as there are pivots.
    """
    out = None
    for step in upper:
        rows = block[step.primes]
        start, stop = step.start, step.start + step.inverse.shape[-1]
        used = _used_columns(rows[:, start:stop])
        if used is None:
            continue
        few = some_moduli(moduli, step.primes)
        solved = multiply(step.inverse, rows[:, start:stop][..., used], few)
        above = subtract_product(rows[:, :start][..., used], step.above, solved, few)
        out = block.copy() if out is None else out
        part = out[step.primes]
        part[:, start:stop][..., used], part[:, :start][..., used] = solved, above
        if not isinstance(step.primes, slice):
            out[step.primes] = part
    return block if out is None else out


def reduced_block(panel: Panel, upper: Upper, *, moduli: Moduli, rows: int) -> Array:
    """Begin the elimination upwards in a block column that has pivots: (n, rows, columns).

    Its own panel has reduced it, so that its pivots' columns are those of an identity matrix.
    """
    out = form_of(panel, len(moduli), rows)
    places = np.arange(len(moduli), like=out)
    for step in panel.steps:
        out[places[step.primes][:, None], :, step.pivots] = 0
    out = reduce_by(out, upper, moduli=moduli)
    for step in panel.steps:
        at = np.arange(step.start, step.stop, like=out)
        out[places[step.primes][:, None], at, step.pivots] = 1
    return out


def form_of(panel: Panel, primes: int, rows: int) -> Array:
    """Echelon form (n, rows, columns) of a block column; a new array."""
    like = panel.steps[0].words
    out = np.zeros_like(like, shape=(primes, rows, like.shape[-1]), order="C")
    for step in panel.steps:
        out[step.primes, : step.start] = step.above
        out[step.primes, step.start : step.stop] = step.rows()
    return out


# ---- results ----------------------------------------------------------------------------------------------


def determinant(found: Found, panel: Panel) -> Array:
    """Determinants (n,) of a square matrix, on the processor of its last panel."""
    is_full = found.ranks == found.order.shape[1]
    return np.asarray(np.where(is_full, found.products, np.uint32(0)), like=panel.steps[0].words)


def ranks(found: Found, panel: Panel) -> Array:
    """Ranks (n,), int64."""
    return np.asarray(found.ranks, like=panel.steps[0].words)


def pivots(found: Found, panel: Panel) -> Array:
    """Columns of the pivots (n, min(rows, columns)), int64, -1 beyond the rank."""
    return np.asarray(found.pivots.astype(np.int64), like=panel.steps[0].words)


def check_regular(found: Found, *, moduli: Moduli, place: Place) -> Found:
    """Return what was found; LinAlgError if a square matrix is singular, naming its index and the prime."""
    _check(found.ranks == found.order.shape[1], moduli, place, "is singular")
    return found


def left_over(block: Array, found: Found) -> NDArray[np.bool_]:
    """Whether reduced right-hand sides have something in rows without a pivot, modulo each prime: (n,)."""
    rows = np.arange(block.shape[1], like=block) >= np.asarray(found.ranks, like=block)[:, None]
    return np.asarray(to_backend(((block != 0).any(axis=-1) & rows).any(axis=-1), "cpu"))


def check_solvable(
    found: Found, fails: Sequence[NDArray[np.bool_]], *, moduli: Moduli, place: Place
) -> Found:
    """Return what was found; LinAlgError if equations have no solution, naming the matrix and the prime."""
    _check(~np.any(fails, axis=0), moduli, place, NO_SOLUTION)
    return found


def _check(is_right: NDArray[np.bool_], moduli: Moduli, place: Place, fault: str) -> None:
    # As a stack of the one matrix whose index the place has.
    one = is_right.reshape(len(is_right), *(1,) * len(place.location))
    elimination.check_regular(one, moduli, place, fault)


def first_rows(block: Array, _: Found, *, rows: int) -> Array:
    """Rows of right-hand sides that may have pivots, after a check of what was found."""
    return block[:, :rows]


def placed(block: Array, found: Found, *, rows: int) -> Array:
    """Put solutions (n, K, columns) to the rows (n, rows, columns) of the variables that have pivots."""
    out = np.zeros_like(block, shape=(len(block), rows, block.shape[-1]), order="C")
    for i, rank in enumerate(found.ranks.tolist()):
        out[i, np.asarray(found.pivots[i, :rank], like=block)] = block[i, :rank]
    return out


def extended(block: Array, *, rows: int) -> Array:
    """Add rows of zeros, up to a number."""
    if block.shape[1] == rows:
        return block
    out = np.zeros_like(block, shape=(len(block), rows, block.shape[-1]), order="C")
    out[:, : block.shape[1]] = block
    return out


def identity_block(like: Array, *, shape: tuple[int, int, int], start: int) -> Array:
    """Columns from `start` on of identity matrices: (n, rows, columns)."""
    rows, columns = np.arange(shape[1], like=like), np.arange(start, start + shape[2], like=like)
    return np.broadcast_to((rows[:, None] == columns).astype(like.dtype), shape)


def nullspace_columns(
    found: Found,
    blocks: Sequence[Array],
    *,
    starts: Sequence[int],
    columns: int,
    part: tuple[int, int],
    moduli: Moduli,
) -> Array:
    """Columns `part` of a basis of the nullspace (n, columns, part), if ranks modulo all primes are equal.

    `blocks` are those of the reduced form, from the columns `starts` on, where these columns of the basis
    have their last 1.
    """
    rank, (first, last) = int(found.ranks[0]), part
    free = free_columns(found.pivots[:, :rank], columns)[:, first:last]
    like = blocks[0]
    out = np.zeros_like(like, shape=(len(free), columns, last - first), order="C")
    for i, (p, numbers) in enumerate(zip(moduli, free, strict=True)):
        at = np.asarray(found.pivots[i, :rank], like=like)
        for start, block in zip(starts, blocks, strict=True):
            inside = np.flatnonzero((numbers >= start) & (numbers < start + block.shape[-1]))
            if not len(inside):
                continue
            values = block[i, :rank][:, (numbers[inside] - start).tolist()]
            out[i, at[:, None], np.asarray(inside, like=like)] = negative(values, p)
        out[i, np.asarray(numbers, like=like), np.arange(last - first, like=like)] = 1
    return out


# ---- factors ----------------------------------------------------------------------------------------------


def packed_block(panel: Panel, *, moduli: Moduli, first_column: int) -> Array:
    """Echelon form of a block column with the factors that belong into its columns, (n, rows, columns).

    A factor stands in the column of the number of its pivot, as :meth:`.Kernels.eliminate` has it.
    """
    step = panel.steps[0]
    form = form_of(panel, len(moduli), step.start + step.words.shape[1])
    return _with_factors(form, panel, first_column, is_own=True)


def take_factors(block: Array, panel: Panel, *, first_column: int) -> Array:
    """Exchange rows of a packed block column by a panel to its right, and add its factors."""
    return _with_factors(block, panel, first_column, is_own=False)


def _with_factors(block: Array, panel: Panel, first_column: int, *, is_own: bool) -> Array:
    out, width = None, block.shape[-1]
    for step in panel.steps:
        first, last = max(step.start, first_column), min(step.stop, first_column + width)
        is_moved = step.order is not None and not is_own
        if not step.count or (first >= last and not is_moved):
            continue
        out = block.copy() if out is None else out
        part = out[step.primes]
        rows = part[:, step.start :]
        if is_moved:
            rows[...] = _reordered(rows, step.order)
        if first < last:
            places = np.arange(rows.shape[1], like=rows)[:, None]
            numbers = np.arange(first - step.start, last - step.start, like=rows)
            to = rows[..., first - first_column : last - first_column]
            factors = step.words[..., first - step.start : last - step.start]
            to[...] = np.where(places > numbers, factors, to)
        if not isinstance(step.primes, slice):
            out[step.primes] = part
    return block if out is None else out


def lower_block(packed: Array, *, first_column: int, columns: int) -> Array:
    """Columns of L, of which there are `columns` in all, from a packed block column."""
    x = packed[..., : columns - first_column]
    rows, numbers = _places(x, first_column)
    return np.where(numbers < rows, x, (numbers == rows).astype(np.uint32))


def upper_block(packed: Array, *, first_column: int, rows: int) -> Array:
    """Columns of U, which has `rows` rows, from a packed block column."""
    x = packed[:, :rows]
    places, numbers = _places(x, first_column)
    return np.where(numbers >= places, x, np.uint32(0))


def _places(x: Array, first_column: int) -> tuple[Array, Array]:
    """Rows' and columns' numbers of a block, which broadcast."""
    rows, columns = (np.arange(length, like=x) for length in x.shape[-2:])
    return rows[:, None], columns + first_column


def permutation_block(found: Found, panel: Panel, *, part: tuple[int, int]) -> Array:
    """Columns `part` of P (n, rows, columns)."""
    words = panel.steps[0].words
    order = np.asarray(found.order[:, slice(*part)], like=words)
    return (order[:, None] == np.arange(found.order.shape[1], like=order)[:, None]).astype(words.dtype)


# ---- primes -----------------------------------------------------------------------------------------------


def groups(values: NDArray[np.int64]) -> Iterator[tuple[int, Primes]]:
    """Each value that there is, with its positions."""
    found = np.unique(values).tolist()
    for value in found:
        yield value, slice(None) if len(found) == 1 else np.flatnonzero(values == value).tolist()


def within(primes: Primes, members: Primes) -> Primes:
    """Positions of some members of some primes."""
    if isinstance(members, slice):
        return primes
    return members if isinstance(primes, slice) else [primes[i] for i in members]


def some_moduli(moduli: Moduli, primes: Primes) -> Moduli:
    """Moduli at some positions."""
    return moduli if isinstance(primes, slice) else moduli_at(moduli, primes)


def _are_all(steps: Sequence[ReductionStep]) -> bool:
    return len(steps) == 1 and isinstance(steps[0].primes, slice)


def _reordered(rows: Array, order: Array | None) -> Array:
    """Rows (g, rows, columns) in another order modulo each prime."""
    if order is None:
        return rows
    out = np.empty_like(rows, order="C")
    for i in range(len(rows)):
        out[i] = rows[i][order[i]]
    return out
