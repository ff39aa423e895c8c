"""Constants of number-theoretic transforms: roots of unity, and what inverse transforms are scaled by."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import root_of_unity


@dataclass(frozen=True, eq=False)
class TransformConstants:
    """Constants of transforms of one length N modulo each of some primes.

    ``X_j`` is the sum of ``x_i roots**(i j)``, times ``scales``: of the inverse transform ``roots`` are the
    inverses of the forward one's, and ``scales`` those of N; else these are 1.
    """

    moduli: ModuliSet
    length: int
    roots: NDArray[np.uint32]
    scales: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def transform_constants(moduli: ModuliSet, length: int, inverse: bool) -> TransformConstants:
    """Constants of transforms modulo primes p, of a length that divides each p - 1."""
    roots = [root_of_unity(length, p) for p in moduli]
    scales = [1] * len(roots)
    if inverse:
        roots = [pow(root, -1, p) for root, p in zip(roots, moduli, strict=True)]
        scales = [pow(length, -1, p) for p in moduli]
    return TransformConstants(
        moduli, length, np.array(roots, dtype=np.uint32), np.array(scales, dtype=np.uint32)
    )
