"""Sort keys of signed integers with stored intervals: the sign, and keys of the magnitudes."""

import numpy as np

from rnsdask.backend import Array
from rnsdask.constants import KEY_BITS
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import layout
from rnsdask.rns import sort
from rnsdask.rns.system import RNS


def ordering(columns: Array, moduli: ModuliSet) -> sort.Ordering:
    """Sort keys of columns (n + 6, *shape).

    Half the key U of a magnitude, rounded down, is the key of a number of either sign: 2**63 and this, or for
    numbers below 0 as much before 2**63. The error of U halves, and rounding adds 1 on either side.
    """
    matrix = as_matrix(columns)
    negative = layout.is_negative(matrix, moduli)
    of_magnitudes = sort.ordering(layout.residues_of(matrix, moduli), RNS(moduli))
    middle = np.uint64(2 ** (KEY_BITS - 1))
    half = of_magnitudes.keys >> np.uint64(1)
    keys = np.where(negative, middle - np.uint64(1) - half, middle + half)
    slack = 2 * (-(-of_magnitudes.slack // 2) + 1)

    def digits(indices: Array) -> Array:
        magnitudes = of_magnitudes.digits(indices)
        below = negative[indices]
        top = (~below).astype(np.uint32)
        return np.concatenate([np.where(below, ~magnitudes, magnitudes), top[None]])

    return sort.Ordering(keys, slack, layout.signed_residues_of(matrix, moduli), digits)
