"""Order of the numbers of two blocks, by 64-bit keys and mixed-radix digits. No Dask in here.

One pass over the residues evaluates both numbers' keys, and notices equal residues. Keys that lie further
apart than their error decide. The others are decided by their mixed-radix digits (docs/mathematics.md).
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from rnsdask.backend import UNDECIDED, Array, backend_name, kernels_of, to_backend
from rnsdask.constants import KeyConstants
from rnsdask.rns.blocks import matrices
from rnsdask.rns.mixed_radix import mixed_radix_digits, shifted_residues

# Numbers searched for undecided ones, and residues converted, at a time: they bound the memory that an
# adversarial chunk needs beside itself.
_SEARCH_BLOCK = 2**26
_EXACT_RESIDUES = 2**22

# A GPU converts a number by one thread, as long for one number as for thousands: so few go to the host.
_FEW = 64


Decide: TypeAlias = Callable[[Array, Array, Array, Array, KeyConstants], None]
"""Decides the numbers at some indices in place, as :func:`by_digits`."""


def by_digits(order: Array, chosen: Array, first: Array, second: Array, constants: KeyConstants) -> None:
    """Decide the numbers at some indices in place, by their mixed-radix digits."""
    digits = _digits(first, chosen, constants)
    # One number for all may be on another processor.
    is_one = second.shape[1] != first.shape[1] or backend_name(second) != backend_name(first)
    others = _digits(second, np.zeros(1, dtype=np.int64) if is_one else chosen, constants)
    order[chosen] = np.asarray(_order_of_digits(digits, np.asarray(others, like=digits)), like=order)


def order_of(a: Array, b: Array, constants: KeyConstants, decide: Decide = by_digits) -> Array:
    """Order of the numbers of two blocks (n, *shape): int8 of -1, 0 or +1, with the common shape.

    `decide` is called with the numbers that keys leave open, so many at a time that memory is bounded.
    """
    first, second, shape, swapped = pair(a, b, len(constants.moduli))
    order, undecided = kernels_of(first).compare(first, second, constants)
    if undecided:
        for chosen in _undecided(order, first):
            decide(order, chosen, first, second, constants)
    return (-order if swapped else order).reshape(shape)


def pair(a: Array, b: Array, rows: int) -> tuple[Array, Array, tuple[int, ...], bool]:
    """Matrices of the first rows, their numbers' shape, and whether they are swapped.

    The second may be one number for all, so the longer one, or the one on a GPU, comes first.
    """
    (first, second), shape = matrices(a[:rows], b[:rows])
    is_host = [isinstance(matrix, np.ndarray) for matrix in (first, second)]
    swapped = first.shape[1] != np.prod(shape) or (is_host[0] and not is_host[1])
    return (second, first, shape, True) if swapped else (first, second, shape, False)


def _undecided(order: Array, first: Array) -> Iterator[Array]:
    """Indices of the numbers that keys did not decide, so many at a time that memory is bounded."""
    batch = max(1, _EXACT_RESIDUES // len(first))
    for start in range(0, len(order), _SEARCH_BLOCK):
        (indices,) = (order[start : start + _SEARCH_BLOCK] == UNDECIDED).nonzero()
        for i in range(0, len(indices), batch):
            yield indices[i : i + batch] + start


def _digits(residues: Array, indices: Array, constants: KeyConstants) -> Array:
    chosen = shifted_residues(residues, indices, constants)
    if len(indices) <= _FEW:
        chosen = to_backend(chosen, "cpu")
    return mixed_radix_digits(chosen, constants.moduli)


def _order_of_digits(a: Array, b: Array) -> Array:
    """Order of numbers by their digits (n, k): that of the most significant ones that differ."""
    top = len(a) - 1 - (a != b)[::-1].argmax(axis=0, keepdims=True)
    a, b = (np.take_along_axis(digits, top, axis=0)[0] for digits in (a, np.broadcast_to(b, a.shape)))
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)
