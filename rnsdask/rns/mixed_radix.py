"""Mixed-radix conversion (MRC) of arrays, and what it decides: order, and which end of the range is near.

The mixed-radix digits a_i of X = a_0 + a_1 m_0 + a_2 m_0 m_1 + ... compare like the digits of a
positional number, from the last (most significant) to the first. They are exact, cost O(n^2) operations a
number, and so serve only the few numbers that interval evaluations cannot tell apart.
"""

from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import KeyConstants, mixed_radix_constants
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet


def mixed_radix_digits(residues: Array, moduli: ModuliSet) -> Array:
    """Mixed-radix digits of each number, least significant first, in the set's own order.

    Parameters
    ----------
    residues : array of uint32, shape (n, *shape)
        NumPy or CuPy; each below its modulus.
    moduli : ModuliSet
        The set of n moduli, in any order.

    Returns
    -------
    array of uint32, shape (n, *shape)
        Digit i is below ``moduli[i]`` and has the weight ``moduli[0] * ... * moduli[i-1]``.
    """
    matrix = as_matrix(residues)
    digits = kernels_of(matrix).mixed_radix_digits(matrix, mixed_radix_constants(moduli))
    return digits.reshape(residues.shape)


def shifted_residues(residues: Array, indices: Array, constants: KeyConstants) -> Array:
    """Residues of X + offset for the numbers at `indices`: not negative, below M, and in the order of X.

    Without the scale of the keys: whether 2**scale X is taken changes no order.
    """
    chosen = kernels_of(residues).gather(residues, indices)
    if not constants.offset:
        return chosen
    moduli = np.array(list(constants.moduli), dtype=np.uint64)[:, None]
    offset = np.array([constants.offset % m for m in constants.moduli], dtype=np.uint64)[:, None]
    shifted = chosen + np.asarray(offset, like=chosen)
    return (shifted % np.asarray(moduli, like=chosen)).astype(np.uint32)


def near_top(digits: Array, moduli: ModuliSet) -> Array:
    """Of numbers known to be near 0 or near M: whether it is M.

    The last digit is floor(X / (M/m)), m the last modulus, so it is at least m/2 just when X is above
    or near M/2 (docs/mathematics.md, "Which end").

    Parameters
    ----------
    digits : array of uint32, shape (n, N)
        Mixed-radix digits.

    Returns
    -------
    Boolean array, shape (N,)
    """
    # 2 a >= m, with everything in 32 bits: m itself may be 2**32.
    half = (moduli[-1] + 1) // 2
    return digits[-1] >= half


def greatest(digits: Array, minimum: bool = False) -> int:
    """Index of the greatest number (least, for `minimum`), the first one of equals.

    Parameters
    ----------
    digits : array of uint32, shape (n, N)
        Mixed-radix digits, N >= 1.
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
