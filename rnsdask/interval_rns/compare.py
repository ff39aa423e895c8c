"""Comparison of chunks of signed integers: by sign and interval, and exactly where intervals touch."""

import numpy as np

from rnsdask.backend import UNDECIDED, Array, backend_name, kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import layout
from rnsdask.rns.blocks import batches, matrices
from rnsdask.rns.compare import compare as compare_residues
from rnsdask.rns.system import RNS


def compare(x: Array, y: Array, moduli: ModuliSet) -> Array:
    """Order of the numbers of two blocks: -1, 0 or +1 as x < y, x == y or x > y.

    Parameters
    ----------
    x, y : arrays of uint32, shape (n + 6, *shape) each
        Columns, NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.

    Returns
    -------
    array of int8, with the common shape
    """
    (first, second), shape = matrices(x, y)
    if 0 in shape:
        return np.empty_like(first, shape=shape, dtype=np.int8, order="C")
    prototype = second if backend_name(second) == "cuda" else first
    if 0 in shape:  # a column beside no columns would be compared with itself
        return np.empty_like(prototype, shape=shape, dtype=np.int8, order="C")
    order = kernels_of(prototype).interval_rns_compare(first, second, moduli)
    (undecided,) = (order == UNDECIDED).nonzero()
    for part in batches(undecided, len(first)):
        # The interval of the difference holds 0, so the numbers have one sign.
        a, b = (_chosen(columns, part) for columns in (first, second))
        x_residues, y_residues = (layout.residues_of(columns, moduli) for columns in (a, b))
        signs = layout.is_negative(a if a.shape[1] >= b.shape[1] else b, moduli)
        signs = np.asarray(signs, like=order).astype(np.int8)
        order[part] = np.asarray(compare_residues(x_residues, y_residues, RNS(moduli)), like=order)
        order[part] *= 1 - 2 * signs
    return order.reshape(shape)


def _chosen(columns: Array, indices: Array) -> Array:
    return columns if columns.shape[1] == 1 else columns[:, indices]
