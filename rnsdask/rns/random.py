"""Residues of random numbers, uniform in the range of a moduli set or between limits. In NumPy."""

import math

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.rns.convert import ints_to_limbs, to_residues
from rnsdask.rns.exact import residues_of

# Limbs that are drawn at a time, few enough that their memory is negligible.
_BATCH_LIMBS = 2**18


def random_residues(
    moduli: ModuliSet,
    shape: tuple[int, ...],
    generator: "np.random.Generator",
    limits: tuple[int, int] | None = None,
) -> NDArray[np.uint32]:
    """Residues (n, *shape) of numbers uniform in the range of the moduli, or between limits.

    In the whole range the residues of a number are independent and uniform. Between limits, numbers with as
    many bits as the range's length are drawn until one is in it: fewer than two on average.
    """
    residues = np.empty((len(moduli), *shape), dtype=np.uint32)
    if limits is None:
        for row, m in zip(residues, moduli, strict=True):
            row[...] = generator.integers(0, m, size=shape, dtype=np.uint32)
        return residues
    lowest, highest = limits
    matrix = residues.reshape(len(moduli), -1)
    limbs_of_one = _limb_count(highest - lowest)
    batch, total = max(1, _BATCH_LIMBS // limbs_of_one), math.prod(shape)
    sizes = np.array(list(moduli), dtype=np.uint64)[:, None]
    shift = np.array(residues_of(lowest, moduli), dtype=np.uint64)[:, None]
    for start in range(0, total, batch):
        limbs = uniform_limbs(highest - lowest, min(batch, total - start), generator)
        offsets = to_residues(limbs, moduli).astype(np.uint64)
        matrix[:, start : start + batch] = (offsets + shift) % sizes
    return residues


def _limb_count(greatest: int) -> int:
    return max(1, -(-greatest.bit_length() // LIMB_BITS))


def uniform_limbs(greatest: int, count: int, generator: "np.random.Generator") -> NDArray[np.uint32]:
    """Limbs (count, L), the least first, of numbers uniform from 0 to `greatest`."""
    length = _limb_count(greatest)
    unused = np.uint32(min(length * LIMB_BITS - greatest.bit_length(), LIMB_BITS - 1))
    limit = ints_to_limbs([greatest], length)[0]
    limbs = np.zeros((count, length), dtype=np.uint32)
    if not greatest:
        return limbs
    left = np.arange(count)
    while left.size:
        drawn = generator.integers(0, 2**LIMB_BITS, size=(left.size, length), dtype=np.uint32)
        drawn[:, -1] >>= unused
        limbs[left] = drawn
        left = left[_exceed(drawn, limit)]
    return limbs


def _exceed(limbs: NDArray[np.uint32], limit: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Mark limbs (count, L) greater than a limit (L), both least significant first."""
    greater, equal = np.zeros(len(limbs), dtype=np.bool_), np.ones(len(limbs), dtype=np.bool_)
    for column, top in zip(limbs.T[::-1], limit[::-1], strict=True):
        greater |= equal & (column > top)
        equal &= column == top
    return greater
