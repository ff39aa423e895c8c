"""The Chinese remainder theorem for few numbers modulo many moduli, by a tree."""

import functools

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet

FEWEST_MODULI = 256
"""So many moduli and more are quicker by the tree, for up to `MOST_NUMBERS` numbers, as measured on a CPU."""
MOST_NUMBERS = 16


def from_remainders(residues: NDArray[np.uint32], moduli: ModuliSet) -> NDArray[np.object_]:
    """The integers around 0 of residues (n, *shape), as Python ints of shape (*shape).

    Two numbers a modulo m and b modulo n are ``a + m ((b - a) / m modulo n)`` modulo m n; so are pairs of
    pairs, up to the product of all (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", section 10.3).
    """
    found = np.empty(residues[0].size, dtype=object)
    for k, column in enumerate(residues.reshape(len(residues), -1).T.tolist()):
        values = list(map(gmpy2.mpz, column))
        for level in _levels(moduli):
            pairs = zip(values[::2], values[1::2], level, strict=False)
            joined = [a + m * ((b - a) * inverse % n) for a, b, (m, n, inverse) in pairs]
            values = joined + values[2 * len(level) :]
        x = values[0]
        found[k] = int(x - moduli.product if 2 * x > moduli.product else x)
    return found.reshape(residues.shape[1:])


@functools.lru_cache(CACHED_SETS)
def _levels(moduli: ModuliSet) -> list[list[tuple[gmpy2.mpz, gmpy2.mpz, gmpy2.mpz]]]:
    """Of each level its pairs of neighbouring products m and n, with 1 / m modulo n."""
    products, levels = list(map(gmpy2.mpz, moduli)), []
    while len(products) > 1:
        pairs = list(zip(products[::2], products[1::2], strict=False))
        levels.append([(m, n, gmpy2.invert(m, n)) for m, n in pairs])
        products = [m * n for m, n in pairs] + products[2 * len(pairs) :]
    return levels
