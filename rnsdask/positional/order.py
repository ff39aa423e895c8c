"""Order of chunks of positional numbers, what they are sorted by, and the k greatest. No Dask in here."""

from functools import partial

import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.positional.operands import limb_beyond
from rnsdask.positional.system import Positional
from rnsdask.rns.blocks import batches, matrices
from rnsdask.rns.sort import Ordering


def compare(x: Array, y: Array, system: Positional) -> Array:
    """Order of the numbers of two blocks: -1, 0 or +1 as x < y, x == y or x > y.

    Parameters
    ----------
    x, y : arrays of uint32, shape (k, *shape) each
        NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.

    Returns
    -------
    array of int8, with the common shape
    """
    (a, b), shape = matrices(x, y)
    prototype = b if backend_name(b) == "cuda" else a
    return kernels_of(prototype).positional_compare(a, b, system.signed).reshape(shape)


def sign(x: Array, system: Positional) -> Array:
    """Sign of each number of a block (k, *shape): int8 of -1, 0 or +1."""
    return compare(x, np.zeros((len(x), *(1,) * (x.ndim - 1)), np.uint32), system)


_SIGN = np.uint32(1 << 31)


def ordering(words: Array, system: Positional) -> Ordering:
    """Sort keys of words (k, *shape): the two highest limbs that any number uses, then all."""
    matrix = _used_rows(as_matrix(words), system)
    flip = _SIGN if system.signed else np.uint32(0)
    keys = (matrix[-1] ^ flip).astype(np.uint64)
    if len(matrix) > 1:
        keys = (keys << np.uint64(32)) | matrix[-2]
    return Ordering(keys, 0, matrix, partial(_digits, matrix, flip))


def _used_rows(matrix: Array, system: Positional) -> Array:
    """The lowest limbs that are these numbers in two's complement, or without a sign: a view."""
    if not matrix.shape[1]:
        return matrix
    beyond = limb_beyond(matrix, system.signed)
    used = len(matrix)
    while used > 1 and not bool((matrix[used - 1] != beyond).any()):
        used -= 1
    if system.signed and used < len(matrix):
        used += 1  # for the sign
    return matrix[:used]


def _digits(matrix: Array, flip: np.uint32, indices: Array) -> Array:
    parts = [kernels_of(matrix).gather(matrix, part) for part in batches(indices, len(matrix))]
    digits = np.concatenate(parts, axis=1)
    digits[-1] ^= flip
    return digits
