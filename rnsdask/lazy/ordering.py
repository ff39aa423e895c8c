"""Order of numbers of any system: what sorts a chunk, and finds numbers in a sorted one."""

from functools import partial

from rnsdask.backend import Array
from rnsdask.core.number_system import NumberSystem
from rnsdask.rns import sort


def sorted_indices(words: Array, system: NumberSystem, axis: int, descending: bool = False) -> Array:
    """Flat indices (*shape) of words (rows, *shape), sorted along an axis; equal numbers by index."""
    return sort.sorted_indices(system.apply("ordering", words), words.shape[1:], axis, descending)


def telling_rows(words: Array, system: NumberSystem) -> Array:
    """The first rows of words, which tell unequal numbers apart: a view, or words of their own."""
    if "telling_rows" not in system.table:
        return words[: system.rows]
    rows: Array = system.apply("telling_rows", words)
    return rows


def places(a: Array, v: Array, system: NumberSystem, side: str) -> Array:
    """Positions at which words (rows, m) keep sorted ones (rows, N) sorted: int64 (m,)."""
    sorter = partial(sorted_indices, system=system, axis=0)
    return sort.search(a, v, partial(system.apply, "compare"), sorter, side)
