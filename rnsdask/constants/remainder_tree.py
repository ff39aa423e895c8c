"""Products of a moduli set in a tree, by which few numbers are taken to and from residues.

A table takes n words for each modulus, and so each number n**2 steps. The tree has n words a level, and takes
as many products and remainders of long integers as it has nodes, which GMP finds in far less time if they are
long (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", sections 10.1 and 10.3).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet

_AS_MPZ = np.frompyfunc(gmpy2.mpz, 1, 1)
_AS_INT = np.frompyfunc(int, 1, 1)


@dataclass(frozen=True, eq=False)
class RemainderTree:
    """Products of neighbouring moduli, level by level from the moduli up to two nodes.

    Each level (2 k, 1) ends with a 1 if it needs one more to be even. The first is of words, the others are
    of gmpy2's integers.
    """

    moduli: ModuliSet
    levels: list[NDArray[Any]]

    @cached_property
    def inverses(self) -> NDArray[np.uint64]:
        """Inverses (n, 1) of the partial products."""
        return np.array(self.moduli.partial_inverses, dtype=np.uint64)[:, None]

    def residues_of(self, values: Iterable[int]) -> NDArray[np.uint32]:
        """Residues (n, N) of any integers, of either sign."""
        product = self.moduli.product
        rests = np.fromiter((gmpy2.mpz(value) % product for value in values), object)[None]
        for level in reversed(self.levels):
            if level.dtype != object:  # remainders by products of two moduli fit words as well
                rests = rests.astype(np.uint64)
            rests = rests.repeat(2, axis=0)[: len(level)] % level
        return rests[: len(self.moduli)].astype(np.uint32)

    def values_of(self, residues: NDArray[np.uint32], signed: bool) -> list[int]:
        """Integers of residues (n, N), from 0 to M - 1, or those of the symmetric range.

        A number is the sum of all ``|x_i w_i| M_i``, less a multiple of M, for partial products M_i and their
        inverses w_i. Sums of two moduli a and b, ``u b + v a``, are those of a b, and so on up to M. No step
        but the last one divides (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", Algorithm 10.20).
        """
        sizes, *levels = self.levels
        u = residues.astype(np.uint64) * self.inverses % sizes[: len(residues)]
        if len(u) < len(sizes):
            u = np.concatenate([u, np.zeros_like(u[:1])])
        # Sums of the first two are below 2**65: words, and where they pass 2**64.
        left, words = u[::2] * sizes[1::2], u[1::2] * sizes[::2]
        words += left
        sums = np.asarray(_AS_MPZ(words), dtype=object)
        sums[words < left] += 2**64
        for level in levels:
            if len(sums) < len(level):
                sums = np.concatenate([sums, np.zeros_like(sums[:1])])
            sums = sums[::2] * level[1::2] + sums[1::2] * level[::2]
        highest = self.moduli.value_range(signed)[1]
        values = sums[0] % self.moduli.product
        found = np.where(values > highest, values - self.moduli.product, values)
        integers: list[int] = np.asarray(_AS_INT(found), dtype=object).tolist()
        return integers


@lru_cache(CACHED_SETS)
def remainder_tree(moduli: ModuliSet) -> RemainderTree:
    """The tree of a moduli set, whose memory is that of M times the number of its levels."""
    levels = []
    for nodes in moduli.product_tree[: max(1, len(moduli.product_tree) - 1)]:
        padded = [*nodes, gmpy2.mpz(1)] if len(nodes) % 2 else nodes
        levels.append(np.fromiter(padded, object, len(padded))[:, None])  # np.array asks each for its kind
    levels[0] = levels[0].astype(np.uint64)
    return RemainderTree(moduli, levels)
