"""Products, powers and inverses of signed integers with intervals, by magnitudes.

A factor of a product along axes holds the residues of a magnitude and a row of flags (:mod:`.rns.products`).
So sign and magnitude modulo M of each product are known even out of range.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.generic import check_exponent
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate, Place
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.arithmetic import absolute, compare, to_ints
from rnsdask.interval_rns.convert import columns_of_ints
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.rns import powers, products
from rnsdask.rns.blocks import with_overflow
from rnsdask.rns.products import BEYOND, NEGATIVE, ZERO, Factors
from rnsdask.rns.scan import AxisProducts
from rnsdask.rns.system import RNS


def factors_of_chunk(columns: Array, system: IntervalRNS, mode: str) -> Factors:
    """Factors that a chunk (n + 6, *shape) contributes to a product; `wrapped` holds its magnitude."""
    moduli = system.moduli
    sizes = products.factors_of_chunk(layout.residues_of(columns, moduli), RNS(moduli), mode)
    if int(layout.is_negative(columns, moduli).sum()) % 2 == 0:
        return sizes
    return replace(sizes, value=None if sizes.value is None else -sizes.value, negative=True)


def result_of(factors: Factors, system: IntervalRNS, mode: str) -> Any:
    """The product as `mode` wants it: a number, with ``"flag"`` a pair of it and a bool."""
    wrapped = factors.wrapped
    if wrapped is not None and factors.negative:
        wrapped = -wrapped
    return products.decided(factors, wrapped, system, mode)


def factors_of(columns: Array, moduli: ModuliSet) -> Array:
    """Factors (n + 1, *shape) of single numbers (n + 6, *shape)."""
    zero, negative = ~layout.nonzero(columns, moduli), layout.is_negative(columns, moduli)
    return products.with_signs(layout.residues_of(columns, moduli), zero, negative)


def axis_factors(columns: Array, moduli: ModuliSet, axes: tuple[int, ...]) -> Array:
    """Factors of the products of numbers along axes, which keep length 1."""
    return products.factors_along(factors_of(columns, moduli), moduli, axes)


def finish(
    factors: Array, moduli: ModuliSet, mode: str, locate: Locate = int, source: WideModuli | None = None
) -> Array:
    """Convert factors to columns of their products."""
    flags = factors[-1]
    negative = (flags & np.uint32(NEGATIVE)) != 0
    outside = (flags & np.uint32(BEYOND | ZERO)) == BEYOND
    error = partial(products.overflow_of, factors, RNS(moduli), IntervalRNS(moduli, source), locate)
    return with_overflow(layout.evaluated(factors[:-1], moduli, negative), outside, mode, error)


@dataclass(frozen=True)
class IntervalProducts(AxisProducts):
    """Running products along an axis; `system` is the magnitudes' system."""

    source: WideModuli | None = None

    @property
    def rows(self) -> int:
        """Words of a result."""
        return layout.rows_of(self.system.moduli) + (self.mode == "flag")

    def begin(self, block: Array) -> Array:
        """Factors of single numbers."""
        return factors_of(block, self.system.moduli)

    def finish(self, found: Array, place: Place) -> Array:
        """Columns of products, and with ``"flag"`` a mask."""
        return finish(found, self.system.moduli, self.mode, place.flat_index, self.source)


def running_products(
    moduli: ModuliSet, axis: int, mode: str, source: WideModuli | None = None
) -> IntervalProducts:
    """Products of all numbers up to each one along an axis."""
    return IntervalProducts(RNS(moduli), axis, mode, source)


def power(
    columns: Array,
    exponent: int,
    moduli: ModuliSet,
    mode: str,
    locate: Locate = int,
    source: WideModuli | None = None,
) -> Array:
    """Powers of a chunk (n + 6, *shape); with ``"flag"`` another row, 1 where a power is out of range.

    There, the result is the sign of the exact power with its magnitude modulo M. With ``"raise"``, an error
    names the index that `locate` derives from the index in the chunk.
    """
    check_exponent(exponent)
    system = RNS(moduli)
    outside = np.zeros_like(columns[0], dtype=np.bool_)
    if mode != "wrap":
        greatest = columns_of_ints([powers.bases_that_fit(exponent, system)[1]], moduli)
        ends = greatest.reshape(-1, *(1,) * (columns.ndim - 1))
        outside = compare(absolute(columns, moduli), ends, moduli) > 0
    # With "raise", the bases of long exponents are 0, 1 and -1, for which only the parity matters.
    is_long = mode == "raise" and exponent >= moduli.bits
    sizes = powers.power(
        layout.residues_of(columns, moduli), 2 - exponent % 2 if is_long else exponent, system, "wrap"
    )
    negative = layout.is_negative(columns, moduli) & bool(exponent % 2)
    result = layout.evaluated(sizes, moduli, negative)
    error = partial(_overflow, columns, exponent, IntervalRNS(moduli, source), locate)
    return with_overflow(result, outside, mode, error)


def _overflow(columns: Array, exponents: Array | int, system: IntervalRNS, locate: Locate, index: int) -> Any:
    base = to_ints(columns.reshape(len(columns), -1)[:, [index]], system.moduli)[0]
    exponent = exponents if isinstance(exponents, int) else int(exponents.reshape(-1)[index])
    return powers.overflow_error(base, exponent, locate(index), system)


def power_by_array(
    columns: Array,
    exponents: Array,
    moduli: ModuliSet,
    mode: str,
    locate: Locate = int,
    source: WideModuli | None = None,
) -> Array:
    """Raise each number of a chunk to its own exponent, from integers (1, *shape), as :func:`power` does."""
    shape = np.broadcast_shapes(columns.shape[1:], exponents.shape[1:])
    columns = np.broadcast_to(columns, (len(columns), *shape))
    exponents = np.broadcast_to(exponents[0], shape)
    sizes = layout.residues_of(columns, moduli)
    powered = powers.power_by_array(sizes, exponents[None], RNS(moduli), "flag", locate)
    outside = powered[-1] != 0
    negative = layout.is_negative(columns, moduli) & (exponents % 2 == 1)
    result = layout.evaluated(powered[:-1], moduli, negative)
    error = partial(_overflow, columns, exponents, IntervalRNS(moduli, source), locate)
    return with_overflow(result, outside, mode, error)


def inverse(columns: Array, moduli: ModuliSet, locate: Locate = int) -> Array:
    """Inverse modulo M of each number of a chunk, with the number's sign."""
    inverses = powers.inverse(layout.residues_of(columns, moduli), moduli, locate)
    return layout.evaluated(inverses, moduli, layout.is_negative(columns, moduli))
