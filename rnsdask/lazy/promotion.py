"""Arrays of residues brought to a common system, lazy on Dask (:mod:`rnsdask.rns.promotion`)."""

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.core.overflow import set_overflow
from rnsdask.core.place import Place
from rnsdask.lazy.map import map_chunks
from rnsdask.rns import promotion
from rnsdask.rns.extend import holds_every_value
from rnsdask.rns.system import RNS, least_system


def in_system(x: Any, system: RNS) -> Any:
    """An array of residues in another system, with a bound if one is known.

    RNSOverflowError if the system does not hold a number; if the array is lazy, when it is computed.
    """
    own: RNS = x.system
    if own.same_numbers(system):
        is_alike = own.grows == system.grows and own.source == system.source
        return x if is_alike else type(x)(x.words, system.with_bound(own.bound))
    bound = own.known_magnitude
    target = system.with_bound(bound if bound < system.greatest_magnitude else None)
    count = system.rows
    if own.moduli.moduli[:count] == system.moduli.moduli and holds_every_value(own, system):
        return type(x)(_cut(x.words, count), target)
    options: dict[str, Any] = {"system": own, "target": system}
    return type(x)(map_chunks(_converted, x.words, rows=count, located=True, **options), target)


def in_grown_system(x: Any, system: Any) -> Any:
    """An array in a system of its kind, if one of both grows; else as it is."""
    return in_system(x, system) if system.extends and (system.grows or x.system.grows) else x


def in_stored_system(array: Any, system: Any) -> Any:
    """An array that grows, in the moduli of what it is appended to, which must hold its numbers."""
    own = array.system
    is_grown = own.grows or (system.grows and own.same_numbers(system))
    return in_system(array, system) if is_grown and type(own) is type(system) else array


def with_integers(system: Any, integers: Callable[[], Any]) -> Any:
    """The system of integers beside an array, with the bound that they give, if it knows bounds.

    `integers` gives them as :func:`.flat_values` returns them. One that grows takes moduli for them.
    """
    if not system.extends:
        return system
    values = integers()
    if system.grows and len(values):
        system = system.for_range(int(min(values)), int(max(values)))
    return system.with_bound(system.bound_of(values))


def common_bound(a: Any, b: Any) -> RNS:
    """The system of two arrays of the same moduli, with a bound for both."""
    bounds = [x.system.bound for x in (a, b)]
    system: RNS = a.system.with_bound(None if None in bounds else max(bounds))
    return system


def _converted(block: Array, *, system: RNS, target: RNS, place: Place) -> Array:
    return promotion.converted(block, system, target, place.flat_index)


def in_common(arrays: Sequence[Any], integers: Sequence[int] = ()) -> list[Any]:
    """Arrays of residues in the system that :func:`.common_system` finds, which holds the integers too."""
    systems = [array.system for array in arrays]
    first = systems[0]
    if not first.grows and all(first.same_numbers(system) and not system.grows for system in systems[1:]):
        return list(arrays)
    system = promotion.common_system(systems, integers, nested=set_overflow() == "extend")
    return [in_system(array, system) for array in arrays]


def fitted(x: Any) -> Any:
    """An array with no more moduli than its bound needs, if its system grows.

    In memory the residues are copied, so that those left out take no memory.
    """
    system: RNS = x.system
    if not system.grows or system.bound is None:
        return x
    low, high = system.known_range
    least = least_system(low, high, system.signed)
    if least.rows >= system.rows:
        return x
    words = _cut(x.words, least.rows)
    return type(x)(words.copy() if isinstance(words, np.ndarray) else words, least.with_bound(system.bound))


def _cut(words: Any, count: int) -> Any:
    """The first rows of words; of lazy ones in a task that others are fused with."""
    if count == len(words):
        return words
    if isinstance(words, da.Array):
        return map_chunks(_first_rows, words, rows=count, count=count)
    return words[:count]


def _first_rows(block: Array, *, count: int) -> Array:
    return block[:count]
