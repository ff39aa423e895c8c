"""The key of every number of a chunk: 64 bits that order numbers, but for those too near to one another.

Reductions of all numbers keep no keys (:mod:`rnsdask.rns.reduce`). Where many numbers are compared with one
another - along an axis, in a scan, for the k greatest - their keys are computed once, 8 bytes a number.
"""

from dataclasses import dataclass

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import KEY_BITS, KeyConstants, fixed_point_constants, key_constants
from rnsdask.rns.blocks import batches
from rnsdask.rns.bounds import SMALL_BITS, narrowed
from rnsdask.rns.order import are_near_top
from rnsdask.rns.system import RNS

_LAST_KEY = 2**KEY_BITS - 1

# 2**64 over the golden ratio, to the next odd integer: a multiplier that mixes all bits.
HASH_FACTOR = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Keyed:
    """Numbers, by the rows of ``constants.moduli``, with their keys as :func:`number_keys` gives them."""

    residues: Array
    constants: KeyConstants
    keys: Array


def keyed(residues: Array, system: RNS, *others: Array) -> Keyed:
    """Keys of numbers (n, N) to be compared with one another, under all moduli or finer ones under few.

    Numbers that are all small for the system have keys that are all alike; then their bound is measured, and
    keys under it differ. The keys of `others` (n, k) under the result's constants compare with these.
    """
    constants = key_constants(system.moduli, system.signed, system.bound)
    used = residues[: len(constants.moduli)]
    keys = _evaluated(used, constants)
    if _are_crowded(keys, constants):
        others = tuple(block[: len(used)] for block in others)
        narrow = narrowed(RNS(constants.moduli, system.signed, system.bound), used, *others)
        if narrow is not None:
            return keyed(used, narrow, *others)
    return Keyed(used, constants, _unambiguous(keys, used, constants))


def _are_crowded(keys: Array, constants: KeyConstants) -> bool:
    """Whether all keys are as near to the key of 0 as keys of small numbers are."""
    if not keys.size:
        return False
    reach = 1 << (KEY_BITS - SMALL_BITS)
    of_zero = (constants.offset << KEY_BITS) // constants.moduli.product
    shifted = keys + np.uint64((reach - of_zero) % 2**KEY_BITS)  # from 0 to 2 reach, modulo 2**64
    return int(shifted.max()) <= 2 * reach + constants.slack


def number_keys(residues: Array, constants: KeyConstants) -> Array:
    """Key of each number, ambiguous ones decided, so that keys compare as plain integers: uint64 (N,).

    With t = 2**64 Y/M and Y as `constants` say, a key U satisfies ``U - slack <= t < U + 1``, and
    ``U_a + slack < U_b`` proves that number a is less than number b. Equal numbers have equal keys. Residues
    are the rows of ``constants.moduli``.
    """
    return _unambiguous(_evaluated(residues, constants), residues, constants)


def _evaluated(residues: Array, constants: KeyConstants) -> Array:
    """Keys; those below ``constants.ambiguous_below`` may have passed 2**64."""
    evaluation = fixed_point_constants(constants.moduli, KEY_BITS, constants.scale)
    words, _ = kernels_of(residues).fixed_point(residues, evaluation)
    keys = words[1].astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= words[0]
    keys += np.uint64(constants.start)  # wraps, as the sum of the key itself does
    return keys


def _unambiguous(keys: Array, residues: Array, constants: KeyConstants) -> Array:
    """The keys, in place, with those that passed 2**64 replaced by the greatest."""
    # Seldom any: to look for their places takes a GPU four kernels.
    if constants.ambiguous_below and keys.size and int(keys.min()) < constants.ambiguous_below:
        (ambiguous,) = (keys < np.uint64(constants.ambiguous_below)).nonzero()
        if ambiguous.size:
            # Near 0 the key is right. Near M it passed 2**64, which t itself never reaches.
            keys[ambiguous[_near_top(residues, ambiguous, constants)]] = np.uint64(_LAST_KEY)
    return keys


def _near_top(residues: Array, indices: Array, constants: KeyConstants) -> Array:
    """Boolean (k,), of numbers known to be near 0 or M: whether it is M. Equal ones are converted once."""
    first, group = distinct(residues, indices)
    decided = np.zeros_like(first, dtype=np.bool_)
    start = 0
    for part in batches(indices[first], len(residues)):
        chosen = kernels_of(residues).gather(residues, part)
        decided[start : start + len(part)] = are_near_top(chosen, constants.moduli, constants.signed)
        start += len(part)
    return decided[group]


def distinct(words: Array, indices: Array) -> tuple[Array, Array]:
    """Find one place of each distinct number, and for each place the number there.

    Numbers are those at `indices` (k,) of words (r, N), rows that differ where numbers do. They are grouped
    by a hash of their words, and compared with one of their group. Where hashes collide, which costs time
    only, a number may have several places. Return places (d,) in `indices`,
    and groups (k,): the number at a place is that at the first place of its group.
    """
    hashes = np.zeros_like(indices, dtype=np.uint64)
    for row in words:
        hashes *= np.uint64(HASH_FACTOR)
        hashes += _items(row, indices)
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    begins = np.ones_like(order, dtype=np.bool_)
    begins[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
    first = order[begins]
    group = np.empty_like(order)
    group[order] = groups_of(begins)
    (alien,) = _differ(words, indices, indices[first[group]]).nonzero()
    group[alien] = len(first) + np.arange(len(alien), dtype=np.int64, like=group)
    return np.concatenate([first, alien]), group


def groups_of(begins: Array) -> Array:
    """For each place, the number of its group; groups begin where the Booleans say, the first at once."""
    (starts,) = begins.nonzero()
    places = np.arange(len(begins), dtype=np.int64, like=starts)
    return np.searchsorted(starts, places, side="right") - 1


def _differ(words: Array, first: Array, second: Array) -> Array:
    """Boolean (k,): the numbers at two indices differ."""
    differ = np.zeros_like(first, dtype=np.bool_)
    for row in words:
        differ |= _items(row, first) != _items(row, second)
    return differ


def _items(row: Array, indices: Array) -> Array:
    """The items of one row, by the kernel that takes them from any length."""
    return kernels_of(row).gather(row[None], indices)[0]


def certain_below(keys: Array, constants: KeyConstants) -> Array:
    """For each key, the greatest one whose numbers are not proved to be less; at least 0."""
    slack = np.uint64(constants.slack)
    return np.maximum(keys, slack) - slack


def complemented(keys: Array, minimum: bool) -> Array:
    """Keys by which the least number is the greatest, for `minimum`; the same slack holds for them."""
    return ~keys if minimum else keys
