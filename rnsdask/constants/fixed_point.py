"""Constants of the fixed-point evaluation with 64, 96 or 128 fraction bits."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.keys import coefficient_slack, key_coefficients
from rnsdask.core.moduli import ModuliSet

FIXED_POINT_BITS = (64, 96, 128)
_FIXED_POINT_ROOM = 24


@dataclass(frozen=True, eq=False)
class FixedPointConstants:
    """Coefficients for an evaluation of ``2**scale * X/M`` with `bits` fraction bits, as 32-bit words."""

    moduli: ModuliSet
    bits: int
    scale: int
    width: int
    coefficients: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def fixed_point_constants(moduli: ModuliSet, bits: int | None = None, scale: int = 0) -> FixedPointConstants:
    """Constants of the fixed-point evaluation; without `bits`, the fewest that leave 24 good ones.

    Raises
    ------
    ValueError
        If `bits` is not 64, 96 or 128, or `scale` is negative.
    """
    if bits is not None and bits not in FIXED_POINT_BITS:
        raise ValueError(f"fraction bits must be one of {FIXED_POINT_BITS}, got {bits}")
    if scale < 0:
        raise ValueError(f"scale must not be negative, got {scale}")
    for candidate in FIXED_POINT_BITS if bits is None else (bits,):
        coefficients = key_coefficients(moduli, candidate, scale)
        width = coefficient_slack(moduli, candidate, scale)
        if width << _FIXED_POINT_ROOM <= 1 << candidate:
            break
    words = [[c >> 32 * k & 0xFFFFFFFF for k in range(candidate // 32)] for c in coefficients]
    return FixedPointConstants(moduli, candidate, scale, width, np.array(words, dtype=np.uint32))
