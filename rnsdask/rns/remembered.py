"""Bounds that were measured, kept as long as the arrays live. No Dask in here.

Only of memory that was given to an array of numbers as a whole, to which nobody may write from then on. That
an array is read-only does not suffice: it may be a view of one that is not, or of a file that others write.
"""

import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.rns.system import RNS

# Bytes of smaller arrays, which are soon measured.
_FEWEST_BYTES = 2**15

# Bounds of as many views of an array are kept.
_MOST_VIEWS = 256

# By the identity of the array that owns the memory, which ends with it: bounds of its views.
_bounds: dict[int, tuple[Any, dict[Hashable, int]]] = {}


def now_constant(words: Any) -> None:
    """Keep bounds of an array and its views from now on: nobody writes to it any more.

    Not if it has no memory of its own, is a part of other memory only, or is read-only already, as what users
    give without such a promise is.
    """
    if words.nbytes < _FEWEST_BYTES or not words.flags.writeable or not words.flags.c_contiguous:
        return
    owner = _owner(words)
    if not owner.flags.owndata or owner.nbytes != words.nbytes:
        return
    identity = id(owner)
    if identity not in _bounds:
        _bounds[identity] = (weakref.ref(owner, lambda _: _bounds.pop(identity, None)), {})


def remembered(residues: Array, system: RNS) -> int | None:
    """The bound that was measured of an array (n, *shape) under a system, if there is one."""
    bounds = _bounds_of(residues)
    return bounds.get(_key(residues, system)) if bounds else None


def remember(residues: Array, system: RNS, bound: int) -> None:
    """Keep a measured bound, if nobody writes to the array."""
    bounds = _bounds_of(residues)
    if bounds is None:
        return
    if len(bounds) >= _MOST_VIEWS:
        bounds.clear()
    bounds[_key(residues, system)] = bound


def forget() -> None:
    """Forget all bounds, so that measuring them can be timed."""
    for _, bounds in list(_bounds.values()):
        bounds.clear()


def _bounds_of(residues: Array) -> dict[Hashable, int] | None:
    """What is known of the views of the memory that an array is of; None if somebody may write to it."""
    if not isinstance(residues, np.ndarray) or residues.flags.writeable:
        return None
    owner = _owner(residues)
    entry = _bounds.get(id(owner))
    return entry[1] if entry and entry[0]() is owner else None


def _owner(residues: Any) -> Any:
    while isinstance(residues.base, np.ndarray):
        residues = residues.base
    return residues


def _key(residues: Any, system: RNS) -> Hashable:
    place = residues.__array_interface__["data"][0], residues.shape, residues.strides
    return *place, system.moduli, system.signed, system.known_magnitude
