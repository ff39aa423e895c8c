"""Folds, extrema, sums and moments of a chunk along axes, for many rows at once.

One pass over the residues gives every number's key. The rest, for the numbers of a row that reduce to one
result, is done with the keys, for all rows together.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import KEY_BITS, KeyConstants
from rnsdask.core.axes import reduced_shape
from rnsdask.core.layout import as_matrix
from rnsdask.rns.blocks import EXACT_RESIDUES
from rnsdask.rns.bounds import measured_bound
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.extend import base_extend
from rnsdask.rns.keys import Keyed, certain_below, complemented, keyed
from rnsdask.rns.matmul import enlarged
from rnsdask.rns.order import comparable_limbs
from rnsdask.rns.system import RNS

Combine: TypeAlias = Callable[[Array, Array], Array]


def fold(words: Array, combine: Combine) -> Array:
    """Combine all words along the last axis, at least one, to one: (rows, ..., 1)."""
    while words.shape[-1] > 1:
        half = words.shape[-1] // 2
        single = words[..., 2 * half :]
        words = combine(words[..., :half], words[..., half : 2 * half])
        if single.shape[-1]:
            words = np.concatenate([words, single], axis=-1)
    return words


def running(words: Array, combine: Combine) -> Array:
    """Combine all words up to each one along the last axis: first pairs, then the places in between.

    R words take less than 2 R combinations, in 2 log2 R calls.
    """
    length = words.shape[-1]
    if length < 2:
        return words
    even, odd = words[..., 0::2], words[..., 1::2]
    pairs = running(combine(even[..., : odd.shape[-1]], odd), combine)
    result = np.empty_like(words)
    result[..., :1] = words[..., :1]
    result[..., 1::2] = pairs
    if length > 2:
        result[..., 2::2] = combine(pairs[..., : even.shape[-1] - 1], even[..., 1:])
    return result


# Bound of the error of a row's sum of keys, and of the sum of its residues.
SUM_LIMIT = 2 ** (KEY_BITS - 1)


def rows_along(array: Array, axes: tuple[int, ...]) -> Array:
    """View or copy (K, R) with `axes` joined to the last one."""
    kept = tuple(axis for axis in range(array.ndim) if axis not in axes)
    lengths = [array.shape[axis] for axis in kept]
    return array.transpose(*kept, *axes).reshape(math.prod(lengths), -1)


def fold_along(words: Array, axes: tuple[int, ...], combine: Combine) -> Array:
    """Combine words (rows, *shape) of at least one number along axes, which keep length 1."""
    rows = rows_along(words, tuple(axis + 1 for axis in axes))
    found = fold(rows.reshape(len(words), -1, rows.shape[1]), combine)
    return found.reshape(len(words), *reduced_shape(words.shape[1:], axes))


def running_along(words: Array, axis: int, combine: Combine) -> Array:
    """Combine words (rows, *shape) of all numbers up to each one along an axis."""
    return np.moveaxis(running(np.moveaxis(words, axis + 1, -1), combine), -1, axis + 1)


# ---- MAX and MIN ------------------------------------------------------------------------------------------


def extrema(residues: Array, system: RNS, axes: tuple[int, ...], minimum: bool) -> tuple[Array, Array]:
    """Maximum or minimum along axes and its place: residues (n, *reduced) and int64 (*reduced).

    `axes` are axes of the numbers from 0, ascending, and not empty; in the result they have length 1. A place
    is the smallest flat (C order) index into the reduced axes that holds the extremum.
    """
    shape, matrix = residues.shape[1:], as_matrix(residues)
    reduced = reduced_shape(shape, axes)
    if matrix.shape[1] == 0:
        return residues.reshape(len(residues), *reduced), np.zeros_like(matrix[0], np.int64).reshape(reduced)
    found = keyed(matrix, system)
    keys = rows_along(complemented(found.keys, minimum).reshape(shape), axes)
    numbers = rows_along(np.arange(matrix.shape[1], dtype=np.int64, like=keys).reshape(shape), axes)
    is_candidate = keys >= certain_below(keys.max(axis=1, keepdims=True), found.constants)
    places = is_candidate.argmax(axis=1)
    _decide_exactly(places, is_candidate, numbers, found, minimum)
    best = np.take_along_axis(numbers, places[:, None], axis=1)[:, 0]
    chosen = kernels_of(matrix).gather(matrix, best)
    return chosen.reshape(len(residues), *reduced), places.reshape(reduced)


def _decide_exactly(
    places: Array,
    is_candidate: Array,
    numbers: Array,
    found: Keyed,
    minimum: bool,
) -> None:
    """Correct by limbs the places of the rows with more than one candidate."""
    residues, constants = found.residues, found.constants
    counts = is_candidate.sum(axis=1)
    (undecided,) = (counts > 1).nonzero()
    # Rows with similar numbers of candidates form a batch, which is as wide as its widest row.
    undecided = undecided[np.argsort(counts[undecided], kind="stable")]
    while len(undecided):
        widest = int(counts[undecided[-1]])
        size = max(1, EXACT_RESIDUES // (len(residues) * widest))
        undecided, rows = undecided[:-size], undecided[-size:]
        # A row's candidates in ascending order, padded with numbers that are proved to be worse.
        columns = np.argsort(~is_candidate[rows], axis=1, kind="stable")[:, :widest]
        indices = np.take_along_axis(numbers[rows], columns, axis=1).reshape(-1)
        chosen = kernels_of(residues).gather(residues, indices)
        limbs = comparable_limbs(chosen, constants.moduli, constants.signed)
        first = _first_greatest(limbs.reshape(len(limbs), *columns.shape), minimum)
        places[rows] = np.take_along_axis(columns, first[:, None], axis=1)[:, 0]


def _first_greatest(digits: Array, minimum: bool) -> Array:
    """First column of each row with the greatest (least) number, for digits (n, K, R)."""
    alive = np.ones_like(digits[0], dtype=np.bool_)
    for digit in digits[::-1]:
        # Digits are below 2**32, so their complements are not negative either.
        digit = ~digit if minimum else digit
        digit = np.where(alive, digit, np.zeros_like(digit))
        alive &= digit == digit.max(axis=1, keepdims=True)
        if alive.sum() == len(alive):
            break
    return alive.argmax(axis=1)


# ---- SUM --------------------------------------------------------------------------------------------------


def sums(residues: Array, system: RNS, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums along axes, as in :func:`extrema` but possibly empty: Python ints (*reduced).

    With Y = 2**scale X + offset, the sum S of R numbers Y of a row is q M + Z. The residues' sums give Z. The
    keys' errors are in (-1, slack], so the sum of the keys, each raised by 1, is 2**64 S/M and at most R
    (slack + 1) more; while this is below 2**64, q follows as in docs/mathematics.md, section 8.
    """
    count = math.prod(int(residues.shape[1 + axis]) for axis in axes)
    # The slack is at most the sum of the moduli.
    if count > 1 and count * max(sum(system.moduli) + 1, 2**32) > SUM_LIMIT:
        longest = max(axes, key=lambda axis: int(residues.shape[1 + axis]))
        first, second = np.array_split(residues, 2, axis=1 + longest)
        total: NDArray[np.object_] = sums(first, system, axes)
        total += sums(second, system, axes)
        return total
    shape = residues.shape[1:]
    reduced = reduced_shape(shape, axes)
    if residues[0].size == 0:
        return np.zeros(reduced, dtype=object)
    found = keyed(as_matrix(residues), system)
    constants, used = found.constants, residues[: len(found.residues)]
    keys = rows_along(found.keys.reshape(shape), axes)
    low = (keys & np.uint64(2**32 - 1)).sum(axis=1, dtype=np.uint64)
    high = (keys >> np.uint64(32)).sum(axis=1, dtype=np.uint64)
    key_sums = _host_ints(low) + _host_ints(high) * 2**32 + count
    remainders = _remainders(used, axes, constants, count)
    product = constants.moduli.product
    rest = residues_to_ints(remainders, constants.moduli)
    wraps = (key_sums * product - rest * 2**KEY_BITS) // (product << KEY_BITS)
    result: NDArray[np.object_] = wraps * product + rest - count * constants.offset
    result >>= constants.scale  # exact: these low bits are 0
    return result.reshape(reduced)


def _host_ints(array: Array) -> NDArray[np.object_]:
    host: NDArray[np.uint64] = array.get() if hasattr(array, "get") else array
    return host.astype(object)


def _remainders(residues: Array, axes: tuple[int, ...], constants: KeyConstants, count: int) -> Array:
    """Residues (k, K) of the sum of each row's Y."""
    totals = [rows_along(row, axes).sum(axis=1, dtype=np.uint64) for row in residues]
    result = np.empty_like(residues, shape=(len(residues), len(totals[0])), order="C")
    for row, total, m in zip(result, totals, constants.moduli, strict=True):
        if constants.scale:
            total = total % np.uint64(m) * np.uint64((1 << constants.scale) % m)  # at most (m - 1)**2
        row[...] = (total + np.uint64(count * constants.offset % m)) % np.uint64(m)
    return result


def moments(residues: Array, system: RNS, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums, as :func:`sums`, of numbers and of their squares: Python ints (2, *reduced), in NumPy.

    Squares are computed under the moduli that the chunk's greatest needs.
    """
    greatest = measured_bound(residues, system)
    system = system.with_bound(greatest)
    squared = enlarged(system, greatest**2).with_bound(greatest**2)
    extended = as_matrix(base_extend(residues, system, squared.moduli))
    squares = np.empty_like(extended, order="C")
    kernels_of(squares).apply("multiply", (extended, extended), squared.moduli, squares)
    squares = squares.reshape(len(squares), *residues.shape[1:])
    return np.stack([sums(residues, system, axes), sums(squares, squared, axes)])
