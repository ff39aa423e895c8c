"""How numbers of each system are ordered: what sorts a chunk, compares two of them, and tells them apart."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rnsdask.backend import Array
from rnsdask.constants import sufficient_prefix
from rnsdask.core.number_system import NumberSystem
from rnsdask.interval_rns import compare as interval_compare
from rnsdask.interval_rns import layout
from rnsdask.interval_rns import sort as interval_sort
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.fields import of_fields, refuse
from rnsdask.lazy.operands import is_number_array
from rnsdask.positional import order as positional_order
from rnsdask.positional.system import Positional
from rnsdask.rns import compare, sort
from rnsdask.rns.system import RNS


def check_numbers(function: str, x: Any) -> None:
    """Raise TypeError unless an argument is an array of numbers that have an order."""
    if not is_number_array(x):
        raise TypeError(f"{function} takes an RNSArray or an IntervalRNSArray, got {type(x).__name__}")
    if of_fields(x):
        refuse(function)


def ordering(words: Array, system: NumberSystem) -> sort.Ordering:
    """What words (rows, *shape) are sorted by."""
    if isinstance(system, IntervalRNS):
        return interval_sort.ordering(words, system.moduli)
    if isinstance(system, Positional):
        return positional_order.ordering(words, system)
    assert isinstance(system, RNS)
    return sort.ordering(words, system)


def sorted_indices(words: Array, system: NumberSystem, axis: int, descending: bool = False) -> Array:
    """Flat indices (*shape) of words (rows, *shape), sorted along an axis; equal numbers by index."""
    return sort.sorted_indices(ordering(words, system), words.shape[1:], axis, descending)


def comparison(system: NumberSystem) -> Callable[[Array, Array], Array]:
    """The function that gives the order of the numbers of two blocks: -1, 0 or +1."""
    if isinstance(system, IntervalRNS):
        return partial(interval_compare.compare, moduli=system.moduli)
    if isinstance(system, Positional):
        return partial(positional_order.compare, system=system)
    assert isinstance(system, RNS)
    return partial(compare.compare, system=system)


def places(a: Array, v: Array, system: NumberSystem, side: str) -> Array:
    """Where the numbers of words (rows, m) would be inserted among sorted ones (rows, N): int64 (m,)."""
    sorter = partial(sorted_indices, system=system, axis=0)
    return sort.search(a, v, comparison(system), sorter, side)


def telling_rows(words: Any, system: NumberSystem) -> Any:
    """The first rows of words, which tell unequal numbers apart: a view."""
    if isinstance(system, IntervalRNS):
        return layout.signed_residues_of(words, system.moduli)
    if isinstance(system, Positional):
        return words[: system.rows]
    assert isinstance(system, RNS)
    return words[: len(sufficient_prefix(system.moduli, system.signed, system.bound))]
