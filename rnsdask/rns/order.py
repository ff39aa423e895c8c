"""Order of the numbers of two blocks, by 64-bit keys and by limbs.

One pass over the residues evaluates both numbers' keys, and detects equal residues. Keys that differ by more
than their error decide. The other numbers are decided by their limbs, which compare like the digits of any
positional number and cost a table product of O(n**2) operations each (docs/mathematics.md).
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from rnsdask.backend import UNDECIDED, Array, backend_name, kernels_of, to_backend
from rnsdask.constants import KEY_BITS, KeyConstants, reverse_constants
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.rns.blocks import batches, matrices
from rnsdask.rns.exact import value_of_checked

_SIGN_BIT = np.uint32(1 << (LIMB_BITS - 1))


def comparable_limbs(residues: Array, moduli: ModuliSet, signed: bool) -> Array:
    """Limbs (L, N) of each number, least significant first, that compare as the numbers do."""
    limbs = kernels_of(residues).residues_to_limbs(residues, reverse_constants(moduli, signed))
    if signed:
        limbs[:, -1] ^= _SIGN_BIT  # two's complement, and 2**(32 L - 1) more
    copy: Array = limbs.T.copy()
    return copy


def are_near_top(residues: Array, moduli: ModuliSet, signed: bool) -> Array:
    """Mask (N,) of the numbers near the upper end, for numbers known to be near an end of their range.

    Arguments are as in :func:`comparable_limbs`. In the symmetric range, numbers near 0 keep their sign,
    and those near M become negative (docs/mathematics.md, "Which end").
    """
    limbs = kernels_of(residues).residues_to_limbs(residues, reverse_constants(moduli, True))
    negative: Array = limbs[:, -1] >= _SIGN_BIT
    return ~negative if signed else negative


def greatest(digits: Array, minimum: bool = False) -> int:
    """Index of the first greatest (or least) number, by digits (d, N) that compare as the numbers do."""
    alive: Any = None
    for row in digits[::-1]:
        candidates = row if alive is None else row[alive]
        best = candidates.min() if minimum else candidates.max()
        (holders,) = (candidates == best).nonzero()
        alive = holders if alive is None else alive[holders]
        if alive.size == 1:
            break
    return int(alive[0])


# Numbers searched for undecided ones at a time, to bound the memory of an adversarial chunk.
SEARCH_BLOCK = 2**26

# Most numbers that go to the host: a GPU, with one thread a number, takes as long for one as for thousands.
FEW = 64


Decide: TypeAlias = Callable[[Array, Array, Array, Array, KeyConstants], None]
"""Function that decides the numbers at some indices in place, as :func:`by_limbs`."""


def by_limbs(order: Array, chosen: Array, first: Array, second: Array, constants: KeyConstants) -> None:
    """Decide the numbers at some indices in place, by their limbs."""
    limbs = _limbs(first, chosen, constants)
    # A single number may be on another processor.
    is_one = second.shape[1] != first.shape[1] or backend_name(second) != backend_name(first)
    others = _limbs(second, np.zeros(1, dtype=np.int64) if is_one else chosen, constants)
    order[chosen] = np.asarray(_order_of_digits(limbs, np.asarray(others, like=limbs)), like=order)


def order_of(a: Array, b: Array, constants: KeyConstants, decide: Decide = by_limbs) -> Array:
    """Order of the numbers of two blocks (n, *shape): int8 of -1, 0 or +1, with the common shape.

    `decide` is called with the numbers that keys leave open, a batch of bounded memory at a time.
    """
    first, second, shape, swapped = pair(a, b, len(constants.moduli))
    order, undecided = compare_keys(first, second, constants)
    if undecided:
        settle(order, first, second, constants, decide)
    return (-order if swapped else order).reshape(shape)


def compare_keys(first: Array, second: Array, constants: KeyConstants) -> tuple[Array, int]:
    """Order the numbers of :func:`pair` as far as keys decide, and count those that they leave open."""
    is_one = isinstance(second, np.ndarray) and second.shape[1] == 1
    key = _settled_key(second[:, 0].tolist(), constants) if is_one else None
    return kernels_of(first).compare(first, second, constants, key)


def _settled_key(residues: list[int], constants: KeyConstants) -> int:
    """Key of one number that is not ambiguous: within the slack above the exact value, as all others are.

    Near an end of the range the evaluated key may have wrapped, and orders nothing. The number itself says at
    which end it is; there the least key that is not ambiguous, or the greatest of all, is within the slack.
    """
    key = constants.key_of(residues)
    if key >= constants.ambiguous_below:
        return key
    moduli = constants.moduli
    value = value_of_checked(residues, moduli) + constants.offset
    is_low = 2 * (value % moduli.product) < moduli.product
    return constants.ambiguous_below if is_low else 2**KEY_BITS - 1


def settle(order: Array, first: Array, second: Array, constants: KeyConstants, decide: Decide) -> None:
    """Decide in place the numbers that keys left open."""
    for chosen in _undecided(order, first):
        decide(order, chosen, first, second, constants)


def pair(a: Array, b: Array, rows: int) -> tuple[Array, Array, tuple[int, ...], bool]:
    """Matrices of the first rows of two blocks, their numbers' shape, and whether they are swapped.

    The second may be a single number, so the longer block, or the one on a GPU, comes first.
    """
    (first, second), shape = matrices(a[:rows], b[:rows])
    is_host = [isinstance(matrix, np.ndarray) for matrix in (first, second)]
    swapped = first.shape[1] != np.prod(shape) or (is_host[0] and not is_host[1])
    return (second, first, shape, True) if swapped else (first, second, shape, False)


def _undecided(order: Array, first: Array) -> Iterator[Array]:
    """Indices of the numbers that keys did not decide, in batches of bounded memory."""
    for start in range(0, len(order), SEARCH_BLOCK):
        (indices,) = (order[start : start + SEARCH_BLOCK] == UNDECIDED).nonzero()
        yield from batches(indices + start, len(first))


def _limbs(residues: Array, indices: Array, constants: KeyConstants) -> Array:
    chosen = kernels_of(residues).gather(residues, indices)
    if len(indices) <= FEW:
        chosen = to_backend(chosen, "cpu")
    return comparable_limbs(chosen, constants.moduli, constants.signed)


def _order_of_digits(a: Array, b: Array) -> Array:
    """Order of numbers by the most significant of their digits (d, k) that differ."""
    top = len(a) - 1 - (a != b)[::-1].argmax(axis=0, keepdims=True)
    a, b = (np.take_along_axis(digits, top, axis=0)[0] for digits in (a, np.broadcast_to(b, a.shape)))
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)
