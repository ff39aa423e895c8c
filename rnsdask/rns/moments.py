"""Sums of the numbers of a chunk and of their squares, along axes, beyond the range. No Dask in here."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.rns.axis import sums
from rnsdask.rns.extend import base_extend
from rnsdask.rns.matmul import enlarged
from rnsdask.rns.measured_bound import measured_bound
from rnsdask.rns.system import RNS


def moments(residues: Array, system: RNS, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums along axes, as :func:`.axis.sums` takes them, of numbers and of their squares.

    The squares are formed under as many moduli as the greatest of the chunk needs.

    Returns
    -------
    object array (2, *reduced)
        Python ints, in NumPy; the reduced axes have length 1.
    """
    greatest = measured_bound(residues, system)
    system = system.with_bound(greatest)
    squared = enlarged(system, greatest**2).with_bound(greatest**2)
    extended = as_matrix(base_extend(residues, system, squared.moduli))
    squares = np.empty_like(extended, order="C")
    kernels_of(squares).apply("multiply", (extended, extended), squared.moduli, squares)
    squares = squares.reshape(len(squares), *residues.shape[1:])
    return np.stack([sums(residues, system, axes), sums(squares, squared, axes)])
