"""Numbers with intervals read as other things, and made of residues: lazy on Dask."""

from typing import Any

from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.elementwise import mapped
from rnsdask.lazy.operands import (
    Numbers,
)
from rnsdask.rns.system import RNS


def part(x: Numbers, name: str) -> Any:
    """A part of the numbers' headers, one of :data:`.layout.PART_DTYPES`."""
    return mapped(f"part_{name}", (x.words,), x.system)


def columns_of(x: Numbers) -> Any:
    """Columns of the numbers of an RNSArray."""
    return mapped("from_rns", (x.words,), IntervalRNS(x.system.moduli), given=x.system)


def change_moduli(x: Numbers, targets: ModuliSet) -> Any:
    """Columns of the numbers under other moduli, which are checked to hold them."""
    return mapped("change_moduli", (x.words,), x.system, result=IntervalRNS(targets), targets=targets)


def residues_of(x: Numbers, system: RNS) -> Any:
    """Residues of the numbers in another system, which is checked to hold them."""
    return mapped("to_rns", (x.words,), x.system, result=system, target=system)
