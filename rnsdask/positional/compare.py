"""Order of chunks of positional numbers. No Dask in here."""

import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.positional.system import Positional
from rnsdask.rns.blocks import matrices


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
