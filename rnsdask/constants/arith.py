"""Constants of element-wise arithmetic: moduli for products of residues, and the test whether sums fit."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.keys import KEY_BITS, KeyConstants, key_constants
from rnsdask.moduli import ModuliSet


@lru_cache(CACHED_SETS)
def modulus_table(moduli: ModuliSet) -> NDArray[np.uint32]:
    """What a product of residues is reduced by, (n, 4): m - 1, the divisor, its reciprocal and the shift.

    The divisor is m shifted left until bit 31 is set, the reciprocal ``floor((2**64 - 1) / divisor) - 2**32``
    (``Modulus`` in the kernels). For m = 2**32 all but m - 1 are 0.
    """
    rows = []
    for m in moduli:
        shift = max(32 - m.bit_length(), 0)
        divisor = m << shift
        rows.append((m - 1, divisor % 2**32, (2**64 - 1) // divisor % 2**32 if divisor < 2**32 else 0, shift))
    table = np.array(rows, dtype=np.uint32)
    table.flags.writeable = False  # it is shared
    return table


@dataclass(frozen=True, eq=False)
class SumCheck:
    """When the keys of two numbers prove that their sum (difference) is in the moduli set's range.

    With the operands' keys U, ``h = (U_x >> 1) + (U_y >> 1)`` (minus, for a difference), the result fits if
    ``lowest <= h < lowest + width`` and neither key is below ``keys.ambiguous_below``. A number that fits
    may fail this where it is within 2**-63 or so of an end of the range, in units of M.
    """

    keys: KeyConstants
    lowest: int
    width: int


@lru_cache(CACHED_SETS)
def sum_check(moduli: ModuliSet, signed: bool, subtract: bool) -> SumCheck:
    """Constants of the test for sums or differences of numbers in the range of `moduli`.

    Keys are of ``X + offset``, and ``U - slack <= 2**64 (X + offset) / M <= U``. A result R fits if
    ``0 <= R + offset < M``. In units of ``M / 2**64``, with o the offset: that of a sum lies from
    ``2 h - 2 slack - o`` to ``2 h + 2 - o``, that of a difference from ``2 h - 1 - slack + o`` to
    ``2 h + 1 + slack + o``.
    """
    keys = key_constants(moduli, signed)
    top = 1 << KEY_BITS
    offset_low = (keys.offset << KEY_BITS) // moduli.product
    offset_upp = -((-keys.offset << KEY_BITS) // moduli.product)
    if subtract:
        lowest = -((offset_low - 1 - keys.slack) // 2)
        highest = (top - 2 - keys.slack - offset_upp) // 2
    else:
        lowest = -(-(offset_upp + 2 * keys.slack) // 2) if signed else 0
        highest = (top + offset_low - 3) // 2
    # An h is from -2**63 to 2**64, so a width of at most 2**63 makes one comparison modulo 2**64 enough.
    width = min(max(highest + 1 - lowest, 0), 1 << (KEY_BITS - 1))
    return SumCheck(keys, lowest, width)
