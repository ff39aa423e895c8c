"""Order of the few numbers that interval evaluations cannot tell apart, by their limbs. No Dask in here.

Limbs compare like the digits of any positional number, from the last (most significant) to the first. They
are exact, and cost a table product of O(n**2) operations a number.
"""

from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import reverse_constants
from rnsdask.core.moduli import LIMB_BITS, ModuliSet

_SIGN_BIT = np.uint32(1 << (LIMB_BITS - 1))


def comparable_limbs(residues: Array, moduli: ModuliSet, signed: bool) -> Array:
    """Limbs of each number, least significant first, that compare as the numbers do.

    Parameters
    ----------
    residues : array of uint32, shape (n, N)
        NumPy or CuPy; each below its modulus.
    moduli : ModuliSet
        The set of n moduli.
    signed : bool
        Whether the numbers are in the symmetric range.

    Returns
    -------
    array of uint32, shape (L, N)
    """
    limbs = kernels_of(residues).residues_to_limbs(residues, reverse_constants(moduli, signed))
    if signed:
        limbs[:, -1] ^= _SIGN_BIT  # two's complement, and 2**(32 L - 1) more
    copy: Array = limbs.T.copy()
    return copy


def are_near_top(residues: Array, moduli: ModuliSet, signed: bool) -> Array:
    """Which of numbers known to be near an end of their range are near the upper one: Boolean (N,).

    Arguments are those of :func:`comparable_limbs`. In the symmetric range, numbers near 0 keep their sign,
    and those near M become negative (docs/mathematics.md, "Which end").
    """
    limbs = kernels_of(residues).residues_to_limbs(residues, reverse_constants(moduli, True))
    negative: Array = limbs[:, -1] >= _SIGN_BIT
    return ~negative if signed else negative


def greatest(digits: Array, minimum: bool = False) -> int:
    """Index of the greatest number (least, for `minimum`), the first one of equals.

    Parameters
    ----------
    digits : array of uint32, shape (d, N)
        Digits of N >= 1 numbers that compare as these do, from the last to the first.
    """
    alive: Any = None
    for row in digits[::-1]:
        candidates = row if alive is None else row[alive]
        best = candidates.min() if minimum else candidates.max()
        (holders,) = (candidates == best).nonzero()
        alive = holders if alive is None else alive[holders]
        if alive.size == 1:
            break
    return int(alive[0])
