"""Comparison of numbers, exact for every pair: order, sign, absolute values, and the choice between two.

If keys leave many numbers open because all are small for the range, their bound is measured, and keys for
that bound decide (:mod:`.order`).
"""

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import KeyConstants, key_constants
from rnsdask.core.layout import as_matrix
from rnsdask.core.place import Locate
from rnsdask.rns.blocks import column_of, numbers_at, with_overflow
from rnsdask.rns.bounds import narrowed
from rnsdask.rns.order import by_limbs, compare_keys, pair, settle
from rnsdask.rns.system import RNS

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
"""Relations by their symbols in Python; each holds between a and b just when between their order and 0."""

# If keys leave open at most one in this many numbers, those few are gathered.
_FEW = 8


def compare(a: Array, b: Array, system: RNS) -> Array:
    """Order of the numbers of two blocks: int8 of -1, 0 or +1 as a < b, a == b or a > b."""
    constants = key_constants(system.moduli, system.signed, system.bound)
    first, second, shape, swapped = pair(a, b, len(constants.moduli))
    known = RNS(constants.moduli, system.signed, system.bound)
    # A GPU would wait for each kernel of a sample, so it measures only if keys decide little.
    is_measured = system.bound is None and isinstance(first, np.ndarray)
    narrow = narrowed(known, first, second) if is_measured else None
    if narrow is None:
        order, undecided = compare_keys(first, second, constants)
        if not is_measured and undecided > order.size // _FEW:
            narrow = narrowed(known, first, second)
        if undecided and narrow is None:
            settle(order, first, second, constants, partial(_decide, known))
    if narrow is not None:
        order = compare(first, second, narrow)
    return (-order if swapped else order).reshape(shape)


def _decide(
    system: RNS, order: Array, chosen: Array, first: Array, second: Array, constants: KeyConstants
) -> None:
    """Decide numbers in place as :func:`.by_limbs` does, but many of them by finer keys."""
    a, b = (x if x.shape[1] == 1 else numbers_at(x, chosen) for x in (first, second))
    narrow = narrowed(system, a, b)
    if narrow is None:
        by_limbs(order, chosen, first, second, constants)
    else:
        order[chosen] = compare(a, b, narrow)


def differ(a: Array, b: Array, system: RNS) -> Array:
    """Mask of a != b, with operands as in :func:`compare`; residues alone decide."""
    constants = key_constants(system.moduli, system.signed, system.bound)
    first, second, shape, _ = pair(a, b, len(constants.moduli))
    order, _ = kernels_of(first).compare(first, second, constants)
    return (order != 0).reshape(shape)


def sign(a: Array, system: RNS) -> Array:
    """Sign of each number of a block (n, *shape): int8 of -1, 0 or +1, without -1 if unsigned."""
    zero = np.zeros((len(a), *(1,) * (a.ndim - 1)), dtype=np.uint32)
    return compare(a, zero, system) if system.signed else differ(a, zero, system).astype(np.int8)


# Words that the CPU chooses at a time, which stay in its cache.
_CHOSEN_WORDS = 2**16


def choose(mask: Array, a: Array, b: Array) -> Array:
    """Select words of a where the mask (1, *shape) holds, otherwise of b; all broadcast."""
    # A single number is a NumPy block on every processor; so is a mask that needed no residues.
    like = next((block for block in (mask, a, b) if not isinstance(block, np.ndarray)), mask)
    if isinstance(like, np.ndarray) and a.dtype == b.dtype:
        return _choose_by_bits(mask, a, b)
    return np.where(*(np.asarray(block, like=like) for block in (mask, a, b)))


def _choose_by_bits(mask: Array, a: Array, b: Array) -> Array:
    """Select words on the CPU, some numbers at a time: ``numpy.where`` takes five times as long."""
    shape = np.broadcast_shapes(mask.shape, a.shape, b.shape)
    out = np.empty((shape[0], math.prod(shape[1:])), dtype=a.dtype)
    holds, x, y = (_as_rows(block, shape) for block in (mask, a, b))
    width = max(1, _CHOSEN_WORDS // max(1, shape[0]))
    for start in range(0, out.shape[1], width):
        part = np.s_[:, start : start + width]
        flags = holds if holds.shape[1] == 1 else holds[part]
        bits = np.negative(flags.astype(a.dtype))  # all or none of a word's
        left, right = (block if block.shape[1] == 1 else block[part] for block in (x, y))
        chosen = np.bitwise_xor(left, right, out=out[part])
        chosen &= bits
        chosen ^= right
    return out.reshape(shape)


def _as_rows(block: Array, shape: tuple[int, ...]) -> Array:
    """View words as rows (n, N) of as many numbers as the shape (n, *shape) has, or one number for all."""
    if block.size == len(block) and math.prod(shape[1:]):
        return block.reshape(len(block), 1)
    return np.broadcast_to(block, (len(block), *shape[1:])).reshape(len(block), -1)


def absolute(residues: Array, system: RNS, mode: str, locate: Locate = int) -> Array:
    """Absolute values of a chunk (n, *shape); with ``"flag"`` another row, 1 where one is out of range.

    Only that of the lowest number of a signed range with even M is. With ``"raise"``, an error names the
    index that `locate` derives from the index in the chunk.
    """
    matrix = as_matrix(residues)
    negated = np.empty_like(matrix, order="C")
    kernels_of(matrix).apply("subtract", (column_of(0, system.moduli), matrix), system.moduli, negated)
    negative = sign(residues, system) < 0
    result = choose(negative[None], negated.reshape(residues.shape), residues)
    if mode == "wrap":
        return result
    lowest, highest = system.value_range
    if -lowest <= highest or system.known_magnitude < -lowest:  # no number can be the lowest
        outside = np.zeros_like(negative)
    else:
        outside = ~differ(residues, column_of(lowest, system.moduli, residues.ndim - 1), system)
    return with_overflow(result, outside, mode, lambda index: system.overflow_error(-lowest, locate(index)))
