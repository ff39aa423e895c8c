"""A guess how long the greatest number of a chunk is, from some of its numbers. No Dask in here."""

import math

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.constants import reverse_constants, sufficient_prefix
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS
from rnsdask.rns.system import RNS

MANY = 1024
"""So many numbers are worth measuring before something else is done with them."""

SAMPLE = 128
"""Numbers that are looked at, at most."""

# The fewest of short arrays of many moduli, where each takes as long as the proof of some n others.
_FEWEST = 16

# Residues of them, which the host converts while a GPU waits.
_SAMPLED_RESIDUES = 2**14


def sampled_bound(residues: Array, system: RNS) -> int:
    """A guess for :func:`.measured_bound`, never above it, from some of the numbers, at even distances."""
    moduli = sufficient_prefix(system.moduli, system.signed, system.bound)
    matrix = as_matrix(residues[: len(moduli)])
    if not matrix.shape[1]:
        return 0
    chosen = matrix[:, :: distance(matrix.shape[1], looked_at(matrix))].copy()
    chosen = to_backend(chosen, "cpu")  # where so few take less time
    limbs = kernels_of(chosen).residues_to_limbs(chosen, reverse_constants(moduli, system.signed))
    return min((1 << _longest(limbs, system.signed)) - 1, system.known_magnitude)


def looked_at(matrix: Array) -> int:
    """How many of the numbers (n, N) are looked at, or all if they are fewer."""
    count: int = matrix.shape[1]
    return min(max(_FEWEST, min(count // 4, _SAMPLED_RESIDUES) // len(matrix)), SAMPLE)


def distance(count: int, wanted: int) -> int:
    """How far apart at most so many of some numbers are, that show all of a short period too."""
    least = -(-count // wanted)
    return next(k for k in range(least, least + 6) if math.gcd(k, 30) == 1)


def _longest(limbs: NDArray[np.uint32], signed: bool) -> int:
    """Bits of the longest of some numbers of (N, L) limbs; of a negative X, those of -X - 1."""
    if signed:
        limbs = limbs ^ (np.uint32(0) - (limbs[:, -1:] >> np.uint32(LIMB_BITS - 1)))
    greatest = limbs.max(axis=0)
    (used,) = greatest.nonzero()
    return LIMB_BITS * int(used[-1]) + int(greatest[used[-1]]).bit_length() if used.size else 0
