"""Products along axes of signed integers with intervals: factors as those of residues. No Dask in here.

A factor is the residues of a magnitude and a row of flags (:mod:`rnsdask.rns.axis_products`), which a number
has already. So sign and magnitude modulo M are known for each product, also where it is out of range.
"""

from dataclasses import dataclass

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import IntervalOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate, Place
from rnsdask.interval_rns import layout
from rnsdask.rns.axis_products import BEYOND, NEGATIVE, ZERO
from rnsdask.rns.axis_scan import AxisProducts


def factors_of(columns: Array, moduli: ModuliSet) -> Array:
    """Factors (n + 1, *shape) of single numbers (n + 6, *shape)."""
    zero, negative = ~layout.nonzero(columns, moduli), layout.is_negative(columns, moduli)
    flags = zero * np.uint32(ZERO) + negative * np.uint32(NEGATIVE)
    return np.concatenate([layout.residues_of(columns, moduli), flags[None].astype(np.uint32)])


def finish(factors: Array, moduli: ModuliSet, mode: str, locate: Locate = int) -> Array:
    """Columns of the products that factors stand for; with ``"flag"`` one row more, 1 if one is out of range.

    Raises
    ------
    IntervalOverflowError
        With ``"raise"``, if a product is out of range; it names the index that `locate` makes of that in the
        chunk.
    """
    flags = factors[-1]
    negative = (flags & np.uint32(NEGATIVE)) != 0
    outside = (flags & np.uint32(BEYOND | ZERO)) == BEYOND
    if mode == "raise" and bool(outside.any()):
        index = int(outside.argmax())
        below = bool(negative.reshape(-1)[index])
        # In two's complement -2**k is one bit shorter than 2**k.
        needed = (moduli.product - int(below)).bit_length() + 1
        raise IntervalOverflowError(locate(index), needed, moduli.bits, True, below, at_least=True)
    columns = layout.evaluated(factors[:-1], moduli, negative)
    return np.concatenate([columns, outside[None].astype(np.uint32)]) if mode == "flag" else columns


@dataclass(frozen=True)
class IntervalProducts(AxisProducts):
    """Running products along an axis; the system is that of the magnitudes."""

    @property
    def rows(self) -> int:
        """Words of a result."""
        return layout.rows_of(self.system.moduli) + (self.mode == "flag")

    def begin(self, block: Array) -> Array:
        """Factors of single numbers."""
        return factors_of(block, self.system.moduli)

    def finish(self, found: Array, place: Place) -> Array:
        """Columns of products, and with ``"flag"`` a mask."""
        return finish(found, self.system.moduli, self.mode, place.flat_index)
