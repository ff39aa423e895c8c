"""Base extension of signed integers whose intervals tell how few moduli suffice for it. No Dask in here."""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.convert import check_range
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

# Bounds are of a multiple of so many bits: constants are computed for few of them.
_STEP = 32


def rounded(bits: int) -> int:
    """The next of the numbers of bits that systems are made for."""
    return -(-bits // _STEP) * _STEP


def magnitude_bits(columns: Array, moduli: ModuliSet) -> int:
    """Bits that hold every magnitude of a chunk (n + 6, *shape), by the stored intervals; at least 1."""
    exponents = layout.part_of(columns, moduli, "exponent")
    if not exponents.size:
        return 1
    lowest = np.full_like(exponents, -moduli.bits)  # as of 0
    greatest = np.where(layout.nonzero(columns, moduli), exponents, lowest).max()
    return max(int(greatest) + moduli.bits, 1)


def extended_magnitudes(columns: Array, moduli: ModuliSet, targets: ModuliSet) -> Array:
    """Residues (k, *shape) of the magnitudes of a chunk (n + 6, *shape) modulo each target."""
    bits = rounded(magnitude_bits(columns, moduli))
    known = RNS(moduli, bound=2**bits if bits < moduli.bits else None)
    return base_extend(layout.residues_of(columns, moduli), known, targets)


def change_moduli(columns: Array, moduli: ModuliSet, targets: ModuliSet, locate: Locate = int) -> Array:
    """Columns of the numbers of a chunk under other moduli.

    Raises
    ------
    ValueError
        If a number is out of their range; the message names the first one and its index.
    """
    if targets.product < moduli.product:
        check_range(columns, moduli, IntervalRNS(targets), repr(targets), locate)
    magnitudes = extended_magnitudes(columns, moduli, targets)
    return layout.evaluated(magnitudes, targets, layout.is_negative(columns, moduli))
