"""Comparison of numbers, exact for every pair: order, sign, and the choice between two.

One pass over the residues evaluates both numbers' keys, and notices equal residues. Keys that lie further
apart than their error decide. The others are decided by their mixed-radix digits (docs/mathematics.md).
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.backend import UNDECIDED, Array, backend_name, kernels_of, to_backend
from rnsdask.constants import KeyConstants, key_constants
from rnsdask.rns.blocks import matrices
from rnsdask.rns.mixed_radix import mixed_radix_digits, shifted_residues
from rnsdask.rns.system import RNS

# Numbers searched for undecided ones, and residues converted, at a time: they bound the memory that an
# adversarial chunk needs beside itself.
_SEARCH_BLOCK = 2**26
_EXACT_RESIDUES = 2**22

# A GPU converts a number by one thread, as long for one number as for thousands: so few go to the host.
_FEW = 64

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
"""The relations by their signs in Python; each holds between a and b just when between their order and 0."""


def compare(a: Array, b: Array, system: RNS) -> Array:
    """Order of the numbers of two blocks: -1, 0 or +1 as a < b, a == b or a > b.

    Parameters
    ----------
    a, b : arrays of uint32, shape (n, *shape) each
        NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.
    system : RNS
        The number system of both; fewer moduli are read if it has a bound.

    Returns
    -------
    array of int8, with the common shape
    """
    constants = key_constants(system.moduli, system.signed, system.bound)
    first, second, shape, swapped = _pair(a, b, len(constants.moduli))
    order, undecided = kernels_of(first).compare(first, second, constants)
    if undecided:
        _decide_exactly(order, first, second, constants)
    return (-order if swapped else order).reshape(shape)


def differ(a: Array, b: Array, system: RNS) -> Array:
    """Whether a != b, as :func:`compare` takes them; Boolean. Residues alone decide this."""
    constants = key_constants(system.moduli, system.signed, system.bound)
    first, second, shape, _ = _pair(a, b, len(constants.moduli))
    order, _ = kernels_of(first).compare(first, second, constants)
    return (order != 0).reshape(shape)


def sign(a: Array, system: RNS) -> Array:
    """Sign of each number of a block (n, *shape): int8 of -1, 0 or +1, without -1 if unsigned."""
    zero = np.zeros((len(a), *(1,) * (a.ndim - 1)), dtype=np.uint32)
    return compare(a, zero, system) if system.signed else differ(a, zero, system).astype(np.int8)


def choose(mask: Array, a: Array, b: Array) -> Array:
    """Residues of a where the mask (1, *shape) holds, else those of b."""
    # One number for all is a NumPy block on every processor; so is a mask that needed no residues.
    like = next((block for block in (mask, a, b) if not isinstance(block, np.ndarray)), mask)
    return np.where(*(np.asarray(block, like=like) for block in (mask, a, b)))


def _pair(a: Array, b: Array, rows: int) -> tuple[Array, Array, tuple[int, ...], bool]:
    """Matrices of the first rows, their numbers' shape, and whether they are swapped.

    The second may be one number for all, so the longer one, or the one on a GPU, comes first.
    """
    (first, second), shape = matrices(a[:rows], b[:rows])
    is_host = [isinstance(matrix, np.ndarray) for matrix in (first, second)]
    swapped = first.shape[1] != np.prod(shape) or (is_host[0] and not is_host[1])
    return (second, first, shape, True) if swapped else (first, second, shape, False)


def _decide_exactly(order: Array, first: Array, second: Array, constants: KeyConstants) -> None:
    """Decide the undecided in place, by their mixed-radix digits."""
    batch = max(1, _EXACT_RESIDUES // len(first))
    one = None
    if second.shape[1] != first.shape[1] or backend_name(second) != backend_name(first):
        one = _digits(second, np.zeros(1, dtype=np.int64), constants)
    for start in range(0, len(order), _SEARCH_BLOCK):
        (indices,) = (order[start : start + _SEARCH_BLOCK] == UNDECIDED).nonzero()
        for i in range(0, len(indices), batch):
            chosen = indices[i : i + batch] + start
            digits = _digits(first, chosen, constants)
            others = _digits(second, chosen, constants) if one is None else np.asarray(one, like=digits)
            order[chosen] = np.asarray(_order_of_digits(digits, others), like=order)


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
