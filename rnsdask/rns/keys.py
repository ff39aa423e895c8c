"""The key of every number of a chunk: 64 bits that order numbers, but for those too near to one another.

Reductions of all numbers keep no keys (:mod:`rnsdask.rns.reduce`). Where many numbers are compared with one
another - along an axis, in a scan, for the k greatest - their keys are computed once, 8 bytes a number.
"""

from collections.abc import Iterator

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import KEY_BITS, KeyConstants, fixed_point_constants
from rnsdask.rns.mixed_radix import mixed_radix_digits, near_top, shifted_residues

# Residues gathered at a time for exact decisions.
EXACT_RESIDUES = 2**22

_LAST_KEY = 2**KEY_BITS - 1

# 2**64 over the golden ratio, to the next odd integer: a multiplier that mixes all bits.
_HASH_FACTOR = 0x9E3779B97F4A7C15


def number_keys(residues: Array, constants: KeyConstants) -> Array:
    """Key of each number, ambiguous ones decided, so that keys compare as plain integers.

    With t = 2**64 Y/M and Y as `constants` say, a key U satisfies ``U - slack <= t < U + 1``, and
    ``U_a + slack < U_b`` proves that number a is less than number b. Equal numbers have equal keys.

    Parameters
    ----------
    residues : array of uint32, shape (k, N)
        NumPy or CuPy; the rows of ``constants.moduli``.

    Returns
    -------
    array of uint64, shape (N,)
    """
    evaluation = fixed_point_constants(constants.moduli, KEY_BITS, constants.scale)
    words, _ = kernels_of(residues).fixed_point(residues, evaluation)
    keys = words[1].astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= words[0]
    keys += np.uint64(constants.start)  # wraps, as the sum of the key itself does
    if constants.ambiguous_below:
        (ambiguous,) = (keys < np.uint64(constants.ambiguous_below)).nonzero()
        # Near 0 the key stands as it is. Near M it passed 2**64, of which t stays short.
        keys[ambiguous[_are_near_top(residues, ambiguous, constants)]] = np.uint64(_LAST_KEY)
    return keys


def _are_near_top(residues: Array, indices: Array, constants: KeyConstants) -> Array:
    """Boolean (k,), of numbers known to be near 0 or M: whether it is M. Equal ones are converted once."""
    first, group = distinct(residues, indices)
    decided = np.zeros_like(first, dtype=np.bool_)
    start = 0
    for part in batches(indices[first], len(residues)):
        digits = mixed_radix_digits(shifted_residues(residues, part, constants), constants.moduli)
        decided[start : start + len(part)] = near_top(digits, constants.moduli)
        start += len(part)
    return decided[group]


def distinct(words: Array, indices: Array) -> tuple[Array, Array]:
    """Of each number that occurs one place, and for each place the number that is there.

    Numbers are grouped by a hash of their words, and compared with one of their group. Where hashes collide,
    which costs time only, a number may have several places.

    Parameters
    ----------
    words : array of uint32, shape (r, N)
        Rows that tell unequal numbers apart.
    indices : array of int64, shape (k,)
        The numbers at these places.

    Returns
    -------
    (first, group)
        int64 (d,), places in `indices`; and int64 (k,), so that the number at a place is that at
        ``first[group]``.
    """
    hashes = np.zeros_like(indices, dtype=np.uint64)
    for row in words:
        hashes *= np.uint64(_HASH_FACTOR)
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
    """For each place, how many groups have begun before the last that begins at it or before: int64.

    Parameters
    ----------
    begins : Boolean array, shape (k,)
        Where a group begins; the first place does.
    """
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


def batches(indices: Array, rows: int) -> Iterator[Array]:
    """Indices of numbers, so many at a time that gathering `rows` residues of each takes bounded memory."""
    size = max(1, EXACT_RESIDUES // max(rows, 1))
    return (indices[i : i + size] for i in range(0, len(indices), size))
