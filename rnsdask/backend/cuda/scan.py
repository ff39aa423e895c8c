"""Running sums by CuPy's."""

import numpy as np

from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

# Numbers added up at a time: CuPy's cumsum is wrong beyond 2**31.
_BLOCK = 2**26


def running_sums(residues: Array, starts: Array, moduli: ModuliSet) -> Array:
    moved = residues.transpose(0, 1, 3, 2)
    n, outer, inner, length = moved.shape
    rows = moved.reshape(n, outer * inner, length)
    result = np.empty_like(rows, order="C")
    width = max(1, min(length, _BLOCK))
    height = max(1, _BLOCK // width)
    for row, start, out, m in zip(rows, starts.reshape(n, outer * inner), result, moduli, strict=True):
        for top in range(0, len(row), height):
            part, written = row[top : top + height], out[top : top + height]
            last = start[top : top + height].astype(np.uint64)
            for first in range(0, length, width):
                terms = part[:, first : first + width]
                # CuPy is quicker along an array of one axis.
                totals = np.cumsum(terms, axis=None if len(terms) == 1 else 1, dtype=np.uint64)
                totals = totals.reshape(terms.shape) + last[:, None]  # below 2**32 + 2**26 2**32
                totals -= totals // np.uint64(m) * np.uint64(m)  # quicker than %
                written[:, first : first + width] = totals
                last = totals[:, -1]
    sums = result.reshape(moved.shape).transpose(0, 1, 3, 2)
    return sums if inner == 1 else sums.copy()  # by their method: NumPy's function is not CuPy's
