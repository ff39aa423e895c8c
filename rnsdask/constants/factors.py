"""Tables that several kernels use: residues' upper ends and factors for Shoup's multiplication."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.moduli import ModuliSet

CACHED_SETS = 64
"""Sets in use at a time in one process: their tables are small next to one chunk of residues."""


def last_residues(moduli: ModuliSet) -> NDArray[np.uint32]:
    """The greatest residue m_i - 1 of each modulus: it fits 32 bits even when m_i is 2**32."""
    return np.array([m - 1 for m in moduli], dtype=np.uint32)


def shoup_factors(values: list[int], moduli: list[int]) -> NDArray[np.uint32]:
    """Pairs (w, floor(w 2**32 / m)) as a uint32 array of shape (len(values), 2)."""
    factors, sizes = (np.array(column, dtype=np.uint64) for column in (values, moduli))
    return np.stack([factors, (factors << np.uint64(32)) // sizes], axis=-1).astype(np.uint32)


def factors_of_powers(
    start: NDArray[np.uint64], base: int, count: int, sizes: NDArray[np.uint64]
) -> NDArray[np.uint32]:
    """Factors ``|start_i base**k|`` modulo each size, k < count, as a row of pairs for each size."""
    factors = np.empty((len(sizes), count, 2), dtype=np.uint32)
    ratio = np.array([base % m for m in sizes.tolist()], dtype=np.uint64)
    values = start
    for k in range(count):
        factors[:, k, 0] = values
        factors[:, k, 1] = (values << np.uint64(32)) // sizes
        values = values * ratio % sizes
    return factors.reshape(len(sizes), 2 * count)


def word_factors(moduli: ModuliSet) -> NDArray[np.uint32]:
    """Factors of 1, 2**32 and 2**64 modulo each: those of the words of a sum of products; shape (n, 6)."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    return factors_of_powers(np.ones_like(sizes), 2**32, 3, sizes)
