"""Panels of an elimination as arrays of words and of integers, as a store keeps them. No Dask in here."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, Moduli
from rnsdask.fields import block_elimination as blocks
from rnsdask.fields.block_elimination import Found, Panel, Step
from rnsdask.fields.echelon import negative
from rnsdask.fields.triangles import inverse_of_lower


def record_of(found: Found) -> NDArray[np.int64]:
    """Join ranks, products, pivots and order to one array (n, 2 + min(rows, columns) + rows).

    Products beyond 63 bits are negative there.
    """
    parts = found.ranks[:, None], found.products[:, None], found.pivots, found.order
    return np.concatenate([part.astype(np.int64) for part in parts], axis=1)


def found_of(record: NDArray[np.int64], rows: int, dtype: np.dtype[Any]) -> Found:
    """Return what :func:`record_of` joined, of a matrix with that number of rows and type of words."""
    pivots, order = record[:, 2:-rows].astype(np.int32), record[:, -rows:].astype(np.int32)
    return Found(record[:, 0], record[:, 1].astype(dtype), pivots, order)


def first_row(found: Found, *, keeps: bool) -> int:
    """Rows that the next panel lacks: those with a pivot modulo each prime, unless they are kept."""
    return 0 if keeps else int(found.ranks.min())


def words_of(panel: Panel, shape: tuple[int, int, int], first: int) -> Array:
    """Words (n, rows - first, columns) of a panel of the shape (n, rows, columns), 0 in rows that it lacks.

    They are its echelon form with the factors below :meth:`.Kernels.eliminate`, and the rows before that.
    """
    n, rows, columns = shape
    out = np.zeros_like(panel.steps[0].words, shape=(n, rows - first, columns), order="C")
    for step in panel.steps:
        start, width = step.start - first, step.words.shape[-1]
        out[step.primes, start - step.above.shape[1] : start, :width] = step.above
        out[step.primes, start:, :width] = step.words
    return out


def panel_of(
    words: Array,
    first: int,
    before: Found,
    after: Found,
    *,
    first_column: int,
    keeps: bool,
    moduli: Moduli,
) -> Panel:
    """Return the panel with the words (n, k, columns) of some of its rows, from the row `first` on.

    They include all rows of its pivots. `before` and `after` are what was found before the panel and with it.
    """
    dropped = first_row(before, keeps=keeps)
    drops = first_row(after, keeps=keeps) - dropped
    steps = []
    for start, primes in blocks.groups(before.ranks):
        for count, members in blocks.groups(after.ranks[primes] - start):
            part = blocks.within(primes, members)
            some, stop = blocks.some_moduli(moduli, part), start + count
            rows, pivots = words[part], after.pivots[part, start:stop].astype(np.int64) - first_column
            own = rows[:, start - first :]
            steps.append(
                Step(
                    part,
                    start,
                    np.asarray(pivots, like=words),
                    _own_products(before.products[part], after.products[part], some),
                    _exchanges(before.order[part, start:], after.order[part, start:], words),
                    own,
                    inverse_of_lower(own[:, :count, :count], some),
                    rows[:, : 0 if first else start],
                )
            )
    return Panel(tuple(steps), keeps, dropped, drops)


def _own_products(before: NDArray[Any], after: NDArray[Any], moduli: Moduli) -> NDArray[Any]:
    """Products of a panel's own pivots: none is 0, so products before it have inverses."""
    pairs = zip(before.tolist(), after.tolist(), moduli.moduli, strict=True)
    return np.array([new * pow(old, -1, p) % p for old, new, p in pairs], dtype=before.dtype)


def _exchanges(before: NDArray[np.int32], after: NDArray[np.int32], like: Array) -> Array | None:
    """Which rows (g, rows) of an order came to each place of another; None if all stayed."""
    if np.array_equal(before, after):
        return None
    # Sorted by their numbers in the matrix, rows of both orders match.
    places, order = np.argsort(before, axis=1), np.empty_like(before)
    np.put_along_axis(order, np.argsort(after, axis=1), places.astype(np.int32), axis=1)
    return np.asarray(order, like=like)


# ---- columns of results -----------------------------------------------------------------------------------


def pivot_columns(
    before: Found, after: Found, shape: tuple[int, int, int], *, first_column: int
) -> NDArray[Any]:
    """Columns (n, rows, columns) of a reduced form from a column on, all of which have pivots."""
    out = np.zeros(shape, dtype=after.products.dtype)
    for i, (start, stop) in enumerate(zip(before.ranks.tolist(), after.ranks.tolist(), strict=True)):
        out[i, np.arange(start, stop), after.pivots[i, start:stop] - first_column] = 1
    return out


def take_columns(block: Array, panel: Panel, wanted: NDArray[np.int64], *, first_column: int) -> Array:
    """Put the wanted columns (n, k) of the echelon form that a panel has to their places in (n, rows, k)."""
    form = blocks.form_of(panel, *block.shape[:2])
    for i, numbers in enumerate(wanted - first_column):
        inside = np.flatnonzero((numbers >= 0) & (numbers < form.shape[-1]))
        if len(inside):
            at, to = (np.asarray(x, like=block) for x in (numbers[inside], inside))
            block[i][:, to] = form[i][:, at]
    return block


def null_vectors(
    reduced: Array, found: Found, free: NDArray[np.int64], columns: int, moduli: Moduli
) -> Array:
    """Null vectors (n, columns, k), given the free columns (n, k) that each is for, reduced (n, rows, k)."""
    n, _, count = reduced.shape
    out = np.zeros_like(reduced, shape=(n, columns, count), order="C")
    for i, (p, rank) in enumerate(zip(moduli, found.ranks.tolist(), strict=True)):
        values = reduced[i, :rank]
        out[i, np.asarray(found.pivots[i, :rank], like=reduced)] = negative(values, p)
        out[i, np.asarray(free[i], like=reduced), np.arange(count, like=reduced)] = 1
    return out
