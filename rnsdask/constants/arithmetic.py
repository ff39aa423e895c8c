"""Constants of element-wise arithmetic: moduli for products of residues, and tests whether results fit."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.keys import KEY_BITS, KeyConstants, key_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WIDE_BITS, WideModuli


@lru_cache(CACHED_SETS)
def modulus_table(moduli: ModuliSet) -> NDArray[np.uint32]:
    """Reduction constants for products of residues, (n, 4): m - 1, the divisor, its reciprocal and the shift.

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


@lru_cache(CACHED_SETS)
def wide_modulus_table(moduli: WideModuli) -> NDArray[np.uint64]:
    """Reduction constants in 64 bits, (n, 4), for moduli below 2**64 (``WideModulus`` in the kernels)."""
    rows = []
    for m in moduli:
        shift = WIDE_BITS - m.bit_length()
        divisor = m << shift
        rows.append((m - 1, divisor, (2 ** (2 * WIDE_BITS) - 1) // divisor - 2**WIDE_BITS, shift))
    table = np.array(rows, dtype=np.uint64)
    table.flags.writeable = False  # it is shared
    return table


@dataclass(frozen=True, eq=False)
class SumCheck:
    """Constants by which the keys of two numbers prove their sum (difference) to fit or not.

    With the operands' keys U, ``h = (U_x >> 1) + (U_y >> 1)`` (minus, for a difference), and neither key
    below ``keys.ambiguous_below``: the result fits if h is in `fits`, and overflows if h is not in `open`.
    Both are (first, last) within the values that h can have; no h is in one whose first is above its last.
    """

    keys: KeyConstants
    fits: tuple[int, int]
    open: tuple[int, int]

    @property
    def limits(self) -> tuple[int, ...]:
        """The kernels' ``SumTest``; h has fewer than 2**64 values, so distances modulo 2**64 serve."""
        windows = ((first % 2**KEY_BITS, max(last + 1 - first, 0)) for first, last in (self.fits, self.open))
        return (self.keys.ambiguous_below, *(limit for window in windows for limit in window))


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
        least, greatest = -top // 2, top // 2 - 1
        below, above = offset_low - 1 - keys.slack, offset_upp + 1 + keys.slack
    else:
        least, greatest = 0, top - 2
        below, above = -offset_upp - 2 * keys.slack, 2 - offset_low
    # 2 h + below <= 2**64 (R + o) / M <= 2 h + above, where the lower end is rounded down, the upper one up.
    fits = -(below // 2), (top - 1 - above) // 2
    may_fit = -(above // 2), (top - 1 - below) // 2
    if not signed and not subtract:
        fits = least, fits[1]  # a sum of numbers that are not negative is not negative
    return SumCheck(keys, *((max(first, least), min(last, greatest)) for first, last in (fits, may_fit)))


@dataclass(frozen=True, eq=False)
class WindowCheck:
    """Windows of one operand's key, as first and last keys, that prove a result to fit or not.

    A result fits if the key of the operand at the index `deciding` is in the window `fits`, and overflows if
    it is not in the window `open`, nor below ``keys.ambiguous_below``. A window whose first key is beyond
    its last one is empty.
    """

    keys: KeyConstants
    deciding: int
    fits: tuple[int, int]
    open: tuple[int, int]

    @property
    def limits(self) -> tuple[int, ...]:
        """The kernels' ``WindowTest``."""
        return (self.keys.ambiguous_below, *self.fits, *self.open)


@lru_cache(CACHED_SETS)
def window_check(
    moduli: ModuliSet, signed: bool, deciding: int, certain: tuple[int, int], possible: tuple[int, int]
) -> WindowCheck:
    """Windows of keys for an operand X whose result fits if X is in `certain`, and only in `possible`.

    Both are (lowest, highest); a lowest value above the highest one means that there is none. With o the
    offset of the keys, ``U - slack <= 2**64 (X + o) / M <= U`` for a key U that is not ambiguous.
    """
    keys = key_constants(moduli, signed)
    lowest, highest = moduli.value_range(signed)
    last_key = (1 << KEY_BITS) - 1

    def key_floor(value: int) -> int:
        return (value + keys.offset << KEY_BITS) // moduli.product

    def key_ceiling(value: int) -> int:
        return -((-(value + keys.offset) << KEY_BITS) // moduli.product)

    low, high = certain
    first = keys.ambiguous_below if low <= lowest else key_ceiling(low) + keys.slack
    last = last_key if high >= highest else key_floor(high)
    fits = (first, last) if low <= high and first <= last <= last_key else (1, 0)
    low, high = possible
    first = 0 if low <= lowest else key_ceiling(low)
    last = last_key if high >= highest else min(key_floor(high) + keys.slack, last_key)
    return WindowCheck(keys, deciding, fits, (first, last) if low <= high and first <= last else (1, 0))
