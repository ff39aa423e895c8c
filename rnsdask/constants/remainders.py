"""Constants of remainders by a long integer, straight from residues."""

from dataclasses import dataclass
from functools import cached_property

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.convert import extension_source, limbs_of, padded
from rnsdask.constants.digits import RemainderDigits, remainder_digits
from rnsdask.constants.factors import last_residues, shoup_factors
from rnsdask.constants.kept import kept
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
        """Those by digits of 100 bits, for processors that have them."""
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
