"""Bounds and what else was found of arrays, kept as long as these live. No Dask in here.

Only of memory that was given to an array of numbers as a whole, to which nobody may write from then on. That
an array is read-only does not suffice: it may be a view of one that is not, or of a file that others write.
"""

import weakref
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.rns.system import RNS

# Bytes of smaller arrays, which are soon measured.
_FEWEST_BYTES = 2**15

# Facts about as many views of an array are kept.
_MOST_VIEWS = 256

# By the identity of the array that owns the memory, which ends with it: what is known of its views.
_known: dict[int, tuple[Any, dict[Hashable, Any]]] = {}


def now_constant(words: Any) -> None:
    """Keep what is found of an array and its views from now on: nobody writes to it any more.

    Not if it has no memory of its own, is a part of other memory only, or is read-only already, as what users
    give without such a promise is.
    """
    if words.nbytes < _FEWEST_BYTES or not words.flags.writeable or not words.flags.c_contiguous:
        return
    owner = _owner(words)
    if not owner.flags.owndata or owner.nbytes != words.nbytes:
        return
    identity = id(owner)
    if identity not in _known:
        _known[identity] = (weakref.ref(owner, lambda _: _known.pop(identity, None)), {})


def remembered(residues: Array, system: RNS) -> int | None:
    """The bound that was measured of an array (n, *shape) under a system, if there is one."""
    known = _known_of(residues)
    return known.get(_key_of_bound(residues, system)) if known else None


def remember(residues: Array, system: RNS, bound: int) -> None:
    """Keep a measured bound, if nobody writes to the array."""
    known = _known_of(residues)
    if known is not None:
        _keep(known, _key_of_bound(residues, system), bound)


def is_constant(array: Any) -> bool:
    """Whether an array is known to be in memory to which nobody writes; one of few bytes never is."""
    return _known_of(array) is not None


def kept(array: Any, name: str, find: Callable[[Any], Any]) -> Any:
    """What a function gives of an array, found once if nobody writes to the array."""
    known = _known_of(array)
    if known is None:
        return find(array)
    key = (name, array.dtype, *_place(array))
    value = known.get(key)  # asked once: another thread may forget it meanwhile
    if value is None:
        value = find(array)
        _keep(known, key, value)
    return value


def _keep(known: dict[Hashable, Any], key: Hashable, value: Any) -> None:
    if len(known) >= _MOST_VIEWS:
        known.clear()
    known[key] = value


def forget() -> None:
    """Forget all that is known, so that measuring bounds can be timed."""
    for _, known in list(_known.values()):
        known.clear()


def _known_of(residues: Any) -> dict[Hashable, Any] | None:
    """What is known of the views of the memory that an array is of; None if somebody may write to it."""
    if not isinstance(residues, np.ndarray) or residues.flags.writeable:
        return None
    owner = _owner(residues)
    entry = _known.get(id(owner))
    return entry[1] if entry and entry[0]() is owner else None


def _owner(residues: Any) -> Any:
    while isinstance(residues.base, np.ndarray):
        residues = residues.base
    return residues


def _key_of_bound(residues: Any, system: RNS) -> Hashable:
    return *_place(residues), system.moduli, system.signed, system.known_magnitude


def _place(array: Any) -> tuple[Hashable, ...]:
    """Which memory an array is a view of, and how."""
    return array.__array_interface__["data"][0], array.shape, array.strides
