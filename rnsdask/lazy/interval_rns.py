"""Conversions of numbers with intervals, from and to residues, lazy on Dask."""

from typing import Any

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.interval_rns import convert, layout, widening
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers
from rnsdask.rns.system import RNS


def part(x: Numbers, name: str) -> Any:
    """Part of the numbers' headers, one of :data:`.layout.PART_DTYPES`."""
    options: dict[str, Any] = {"dtype": layout.PART_DTYPES[name], "moduli": x.system.moduli}
    return map_chunks(_part_block, x.words, part=name, **options)


def columns_of(x: Numbers) -> Any:
    """Convert an RNSArray to columns."""
    count = layout.rows_of(x.system.moduli)
    return map_chunks(convert.columns_of_residues, x.words, rows=count, system=x.system)


def change_moduli(x: Numbers, targets: ModuliSet) -> Any:
    """Return the numbers' columns under other moduli, which are checked to hold them."""
    options: dict[str, Any] = {"system": IntervalRNS(targets), "moduli": x.system.moduli}
    return map_chunks(_change_block, x.words, rows=layout.rows_of(targets), located=True, **options)


def residues_of(x: Numbers, system: RNS) -> Any:
    """Return the numbers' residues in another system, which is checked to hold them."""
    return map_chunks(_residues_block, x.words, rows=system.rows, located=True, system=system)


def _part_block(block: Array, *, moduli: ModuliSet, part: str) -> Array:
    return layout.part_of(block, moduli, part)[None]


def _change_block(block: Array, *, system: IntervalRNS, moduli: ModuliSet, place: Place) -> Array:
    return widening.change_moduli(block, moduli, system.moduli, place.flat_index)


def _residues_block(block: Array, *, system: RNS, place: Place) -> Array:
    return convert.residues_of_columns(block, system, place.flat_index)
