"""Conversion of arrays of residues to a common system, lazy on Dask (:mod:`rnsdask.rns.promotion`)."""

from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.core.place import Place
from rnsdask.lazy import plan
from rnsdask.lazy.map import map_chunks
from rnsdask.rns import promotion
from rnsdask.rns.extend import holds_every_value
from rnsdask.rns.system import RNS


def convert_to_system(x: Any, system: RNS) -> Any:
    """Convert an array of residues to another system, with a bound if one is known.

    RNSOverflowError if the system does not hold a number; for a lazy array when it is computed.
    """
    own: RNS = x.system
    if own.same_numbers(system):
        system = system.with_bound(own.bound)
        return x if own == system else type(x)(x.words, system)
    bound = own.known_magnitude
    target = system.with_bound(bound if bound < system.greatest_magnitude else None)
    count = system.rows
    if own.moduli.moduli[:count] == system.moduli.moduli and holds_every_value(own, system):
        return type(x)(_cut(x.words, count), target)
    options: dict[str, Any] = {"system": own, "target": system}
    return type(x)(map_chunks(_convert, x.words, rows=count, located=True, **options), target)


def convert_to_grown(x: Any, system: Any) -> Any:
    """Convert an array to a system of its kind, if one of both systems grows; else return it."""
    return convert_to_system(x, system) if plan.meet_by_growth(system, x.system) else x


def convert_to_stored(array: Any, system: Any) -> Any:
    """Convert an array that grows to the moduli of the stored array, which must hold its numbers."""
    return convert_to_system(array, system) if plan.is_appended_by_growth(array.system, system) else array


def common_bound(a: Any, b: Any) -> RNS:
    """Return the system of two arrays of the same moduli, with a bound for both."""
    bounds = [x.system.bound for x in (a, b)]
    system: RNS = a.system.with_bound(None if None in bounds else max(bounds))
    return system


def _convert(block: Array, *, system: RNS, target: RNS, place: Place) -> Array:
    return promotion.converted(block, system, target, place.flat_index)


def fit(x: Any) -> Any:
    """Remove the moduli that an array's bound does not need, if its system grows.

    In memory the residues are copied, so that the removed ones are freed.
    """
    system = plan.fitting_system(x.system)
    if system is x.system:
        return x
    words = _cut(x.words, system.rows)
    return type(x)(words.copy() if isinstance(words, np.ndarray) else words, system)


def _cut(words: Any, count: int) -> Any:
    """Return the first rows of words; for lazy words in a task that fuses with others."""
    if count == len(words):
        return words
    if isinstance(words, da.Array):
        return map_chunks(_first_rows, words, rows=count, count=count)
    return words[:count]


def _first_rows(block: Array, *, count: int) -> Array:
    return block[:count]
