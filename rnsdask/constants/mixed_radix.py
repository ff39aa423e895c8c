"""Constants of mixed-radix conversion."""

from dataclasses import dataclass

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import last_residues, shoup_factors
from rnsdask.constants.kept import kept
from rnsdask.core.moduli import ModuliSet


@dataclass(frozen=True, eq=False)
class MixedRadixConstants:
    """Factors of mixed-radix conversion, each a pair (value, Shoup quotient) of uint32.

    ``inverses[i (i-1)/2 + j]`` is ``|1/m_j|`` modulo m_i for j < i; ``ones[i]`` is 1 modulo m_i;
    ``last[i]`` is m_i - 1.
    """

    moduli: ModuliSet
    last: NDArray[np.uint32]
    ones: NDArray[np.uint32]
    inverses: NDArray[np.uint32]


@kept
def mixed_radix_constants(moduli: ModuliSet) -> MixedRadixConstants:
    """Constants of mixed-radix conversion in the set's own order."""
    ms = list(moduli)
    pairs = [(int(gmpy2.invert(ms[j] % m, m)), m) for i, m in enumerate(ms) for j in range(i)]
    return MixedRadixConstants(
        moduli,
        last_residues(moduli),
        shoup_factors([1] * len(ms), ms),
        shoup_factors([w for w, _ in pairs], [m for _, m in pairs]),
    )
