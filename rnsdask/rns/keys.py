"""Keys of a chunk's numbers: 64 bits that order numbers unless they are too close.

Reductions of all numbers store no keys (:mod:`rnsdask.rns.reduce`). Where many numbers are compared with one
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
    """Numbers, as the rows of ``constants.moduli``, with their keys from :func:`number_keys`."""

    residues: Array
    constants: KeyConstants
    keys: Array


def keyed(residues: Array, system: RNS, *others: Array) -> Keyed:
    """Keys of numbers (n, N) for comparisons among them: under all moduli, or finer ones under a few.

    Numbers that are all small for the system have nearly equal keys; then their bound is measured, and keys
    under it differ. The keys of `others` (n, k) under the result's constants are comparable with these.
    """
    constants = key_constants(system.moduli, system.signed, system.bound)
    used = residues[: len(constants.moduli)]
    keys = _evaluate(used, constants)
    if _are_crowded(keys, constants):
        others = tuple(block[: len(used)] for block in others)
        narrow = narrowed(RNS(constants.moduli, system.signed, system.bound), used, *others)
        if narrow is not None:
            return keyed(used, narrow, *others)
    return Keyed(used, constants, _decide_ambiguous(keys, used, constants))


def _are_crowded(keys: Array, constants: KeyConstants) -> bool:
    """Whether all keys are as close to the key of 0 as those of small numbers."""
    if not keys.size:
        return False
    reach = 1 << (KEY_BITS - SMALL_BITS)
    of_zero = (constants.offset << KEY_BITS) // constants.moduli.product
    shifted = keys + np.uint64((reach - of_zero) % 2**KEY_BITS)  # from 0 to 2 reach, modulo 2**64
    return int(shifted.max()) <= 2 * reach + constants.slack


def number_keys(residues: Array, constants: KeyConstants) -> Array:
    """Keys of numbers, with ambiguous ones decided, so that they compare as plain integers: uint64 (N,).

    With t = 2**64 Y/M and Y as `constants` say, a key U satisfies ``U - slack <= t < U + 1``, and
    ``U_a + slack < U_b`` proves that number a is less than number b. Equal numbers have equal keys. Residues
    are the rows of ``constants.moduli``.
    """
    return _decide_ambiguous(_evaluate(residues, constants), residues, constants)


def _evaluate(residues: Array, constants: KeyConstants) -> Array:
    """Evaluate keys; any below ``constants.ambiguous_below`` may have passed 2**64."""
    evaluation = fixed_point_constants(constants.moduli, KEY_BITS, constants.scale)
    words, _ = kernels_of(residues).fixed_point(residues, evaluation)
    halves = np.empty_like(words, shape=(words.shape[1], 2), order="C")
    halves[:, 0], halves[:, 1] = words  # the lower one first
    keys = halves.view(np.uint64)[:, 0]
    if constants.start:
        keys += np.uint64(constants.start)  # wraps, as the sum of the key itself does
    return keys


def _decide_ambiguous(keys: Array, residues: Array, constants: KeyConstants) -> Array:
    """Replace, in place, keys that passed 2**64 by the greatest."""
    # There are seldom any, and a search for their places takes a GPU four kernels.
    if constants.ambiguous_below and keys.size and int(keys.min()) < constants.ambiguous_below:
        (ambiguous,) = (keys < np.uint64(constants.ambiguous_below)).nonzero()
        if ambiguous.size:
            # Near 0 the key is right. Near M it passed 2**64, which t itself never reaches.
            keys[ambiguous[_near_top(residues, ambiguous, constants)]] = np.uint64(_LAST_KEY)
    return keys


def _near_top(residues: Array, indices: Array, constants: KeyConstants) -> Array:
    """Mask (k,) of the numbers near M, for numbers known to be near 0 or M; equal ones are converted once."""
    first, group = distinct(residues, indices)
    decided = np.zeros_like(first, dtype=np.bool_)
    start = 0
    for part in batches(indices[first], len(residues)):
        chosen = kernels_of(residues).gather(residues, part)
        decided[start : start + len(part)] = are_near_top(chosen, constants.moduli, constants.signed)
        start += len(part)
    return decided[group]


def distinct(words: Array, indices: Array) -> tuple[Array, Array]:
    """Group equal numbers: find one place of each distinct number, and the group of each place.

    Numbers are at `indices` (k,) of words (r, N), rows that differ where numbers do. They are grouped by a
    hash of their words, and compared with one of their group. If hashes collide, which only costs time, a
    number may have several places. Return places (d,) in `indices`, and groups (k,): a number equals the
    number at the place of its group.
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
    """Index of each place's group; groups begin where the mask holds, the first at place 0."""
    (starts,) = begins.nonzero()
    places = np.arange(len(begins), dtype=np.int64, like=starts)
    return np.searchsorted(starts, places, side="right") - 1


def _differ(words: Array, first: Array, second: Array) -> Array:
    """Mask (k,) of the pairs of indices whose numbers differ."""
    differ = np.zeros_like(first, dtype=np.bool_)
    for row in words:
        differ |= _items(row, first) != _items(row, second)
    return differ


def _items(row: Array, indices: Array) -> Array:
    """Items of one row, by the kernel that works for any length."""
    return kernels_of(row).gather(row[None], indices)[0]


def certain_below(keys: Array, constants: KeyConstants) -> Array:
    """For each key, the bound below which numbers are proved to be less; at least 0."""
    slack = np.uint64(constants.slack)
    return np.maximum(keys, slack) - slack


def complemented(keys: Array, minimum: bool) -> Array:
    """Complement keys for `minimum`, so that the least number has the greatest key; the slack stays valid."""
    return ~keys if minimum else keys
