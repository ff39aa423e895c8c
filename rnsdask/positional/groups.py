"""Sums of the groups of a chunk of positional numbers, and numbers in more bits and back. No Dask in here."""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS
from rnsdask.core.place import Locate
from rnsdask.positional.operands import resized, trimmed
from rnsdask.positional.system import Positional
from rnsdask.rns.blocks import with_overflow
from rnsdask.rns.groups import row_sums


def sums(words: Array, codes: Array, count: int, system: Positional) -> Array:
    """Sum the numbers of each group modulo ``2**bits``: limbs (k, count)."""
    result = np.empty_like(words, shape=(len(words), count), order="C")
    carry = np.zeros_like(words, shape=(count,), dtype=np.uint64, order="C")
    for out, total in zip(result, row_sums(words, codes, count), strict=True):
        # A group has less than 2**32 terms, so that its carry is below 2**32.
        carry += total
        out[...] = carry & np.uint64(2**LIMB_BITS - 1)
        carry >>= np.uint64(LIMB_BITS)
    result[-1] = trimmed(result[-1], system.top_bits, system.signed)
    return result


def widened(words: Array, system: Positional, wide: Positional) -> Array:
    """Write numbers (k, *shape) in the limbs of a wider system."""
    limbs, _ = resized(as_matrix(words), system.signed, wide.rows, wide.top_bits, wide.signed)
    return limbs.reshape(wide.rows, *words.shape[1:])


def narrowed(words: Array, system: Positional, wide: Positional, mode: str, locate: Locate = int) -> Array:
    """Write numbers (k, *shape) of a wider system in this one's limbs."""
    matrix = as_matrix(words)
    limbs, outside = resized(matrix, wide.signed, system.rows, system.top_bits, system.signed)

    def error(index: int) -> Exception:
        return system.overflow_error(wide.decode_at(matrix, index), locate(index))

    found = with_overflow(limbs, outside, mode, error)
    return found.reshape(len(found), *words.shape[1:])
