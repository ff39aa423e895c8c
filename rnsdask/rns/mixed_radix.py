"""Mixed-radix conversion (MRC) of arrays. No Dask in here.

The mixed-radix digits a_i of X = a_0 + a_1 m_0 + a_2 m_0 m_1 + ... compare like the digits of a
positional number, from the last (most significant) to the first. They are exact, and cost O(n^2) operations
a number.
"""

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import mixed_radix_constants
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
