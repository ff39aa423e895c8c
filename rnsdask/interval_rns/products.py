"""Product of all numbers of a chunk of signed integers with intervals, by magnitudes. No Dask in here."""

from dataclasses import replace
from typing import Any

from rnsdask.backend import Array
from rnsdask.core.errors import IntervalOverflowError
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.rns import products
from rnsdask.rns.products import Factors
from rnsdask.rns.system import RNS


def factors_of_chunk(columns: Array, system: IntervalRNS, mode: str) -> Factors:
    """Factors that a chunk (n + 6, *shape) contributes to a product; `wrapped` is of its magnitude."""
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
    if mode == "wrap":
        return wrapped
    value = 0 if factors.has_zero else factors.value
    is_outside = value is None or abs(value) >= system.moduli.product
    if mode == "flag":
        return wrapped, is_outside
    if value is None:
        # In two's complement -2**k is one bit shorter than 2**k.
        needed = factors.bits - int(factors.negative) + 1
        raise IntervalOverflowError(0, needed, system.moduli.bits, True, factors.negative, at_least=True)
    if is_outside:
        raise system.overflow_error(value, 0)
    return value
