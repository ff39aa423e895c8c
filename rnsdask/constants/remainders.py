"""Constants of remainders: of all numbers by one divisor, and of few numbers by all moduli."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.convert import extension_source, limbs_of, padded
from rnsdask.constants.digits import RemainderDigits, remainder_digits
from rnsdask.constants.factors import CACHED_SETS, kept, last_residues, shoup_factors
from rnsdask.core.moduli import LIMB_BITS, ModuliSet


@dataclass(frozen=True, eq=False)
class RemainderConstants:
    """Constants of the remainders by a divisor d, in `limb_count` limbs that hold 2 d, from residues.

    The table has a row for each modulus of `moduli`, a row for q and two for k
    (kernels/cpu/remainder.cpp). Its columns are the two words of ``floor(2**64 / m_i)``, those of
    ``floor(2**64 r / d)``, where r is what the term of this row is multiplied with, and the limbs of r.
    ``inverses[i]`` is the factor w_i, ``last[i]`` is m_i - 1. ``start`` and ``ambiguous_below`` are those of
    base extension. ``divisor`` holds the limbs of d and of d - 1.
    """

    moduli: ModuliSet
    limb_count: int
    table: NDArray[np.uint32]
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    start: int
    ambiguous_below: int
    divisor: NDArray[np.uint32]

    @cached_property
    def digits(self) -> RemainderDigits | None:
        """Constants in 100-bit digits, or None without IFMA."""
        divisor = int.from_bytes(self.divisor[0].astype("<u4").tobytes(), "little")
        return remainder_digits(self.moduli, divisor)


@kept
def remainder_constants(
    moduli: ModuliSet, divisor: int, signed: bool = False, bound: int | None = None
) -> RemainderConstants:
    """Constants of the remainders by a divisor from `moduli`, or from as few of them as `bound` allows."""
    source, start, ambiguous_below = extension_source(moduli, signed, bound)
    limb_count = -(-(divisor.bit_length() + 1) // LIMB_BITS)
    d, size = gmpy2.mpz(divisor), 1 << LIMB_BITS * limb_count
    weights = [int(p % d) for p in (*source.partial_products, -source.product)]
    shifted = [-divisor % size, -divisor * 2**LIMB_BITS % size]
    fractions = [*(2**64 // m for m in source), 0, 0, 0]
    fractions_of_k = [*(int((w << 64) // d) for w in weights), 0, 0]
    columns = (limbs_of(fractions, 2), limbs_of(fractions_of_k, 2), limbs_of(weights + shifted, limb_count))
    return RemainderConstants(
        source,
        limb_count,
        padded(np.hstack(columns)),
        last_residues(source),
        shoup_factors(list(source.partial_inverses), list(source)),
        start,
        ambiguous_below,
        limbs_of([divisor, divisor - 1], limb_count),
    )


# Products of a moduli set in a tree, by which few numbers are taken to and from residues.
#
# A table takes n words for each modulus, and each number n**2 steps. The tree has n words a level, and takes
# as many products and remainders of long integers as it has nodes. GMP finds them in far less time if they
# are long (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", sections 10.1 and 10.3).

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
    """Tree of a moduli set; it takes the memory of M times the number of its levels."""
    levels = []
    for nodes in moduli.product_tree[: max(1, len(moduli.product_tree) - 1)]:
        padded = [*nodes, gmpy2.mpz(1)] if len(nodes) % 2 else nodes
        levels.append(np.fromiter(padded, object, len(padded))[:, None])  # np.array asks each for its kind
    levels[0] = levels[0].astype(np.uint64)
    return RemainderTree(moduli, levels)
