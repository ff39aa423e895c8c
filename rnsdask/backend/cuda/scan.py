"""Running sums by CuPy's."""

import numpy as np

from rnsdask.backend.protocol import Array
from rnsdask.core.moduli import ModuliSet

_BLOCK = 2**22
"""Words added up at a time: a scan of many rows takes no more calls than that of one."""


def running_sums(residues: Array, starts: Array, moduli: ModuliSet) -> Array:
    moved = residues.transpose(0, 1, 3, 2)
    n, outer, inner, length = moved.shape
    count = n * outer * inner
    rows, last = moved.reshape(count, length), starts.reshape(count, 1).astype(np.uint64)
    sizes = np.repeat(np.array(list(moduli), dtype=np.uint64), outer * inner)[:, None]
    sizes = np.asarray(sizes, like=residues)
    result = np.empty_like(rows, order="C")
    width = max(1, min(length, _BLOCK))
    height = max(1, _BLOCK // width)
    for top in range(0, count, height):
        lines = slice(top, top + height)
        for first in range(0, length, width):
            block = lines, slice(first, first + width)
            totals = _sums(rows[block], last[lines], sizes[lines])
            result[block] = totals
            last[lines] = totals[:, -1:]
    sums = result.reshape(moved.shape).transpose(0, 1, 3, 2)
    return sums if inner == 1 else sums.copy()  # by their method: NumPy's function is not CuPy's


def _sums(terms: Array, before: Array, sizes: Array) -> Array:
    """Running sums of each row after what is before it, modulo its modulus: uint64."""
    # CuPy is quicker along an array of one axis. What a row's sums have of the rows above is taken off again,
    # modulo 2**64; all sums are below 2**22 2**32.
    totals = np.cumsum(terms, axis=None, dtype=np.uint64).reshape(terms.shape)
    offsets = before.copy()
    offsets[1:] -= totals[:-1, -1:]
    totals += offsets
    totals -= totals // sizes * sizes  # quicker than %
    return totals
