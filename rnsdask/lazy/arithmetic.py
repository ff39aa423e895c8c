"""Element-wise arithmetic of arrays of residues and integers, lazy on Dask (:mod:`.rns.arithmetic`)."""

from functools import lru_cache, partial
from typing import Any

from rnsdask.backend import Array
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import ALONE, Place
from rnsdask.lazy.growing import grown
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Operand, is_lazy_integer, is_number_array, made_like, prepare, scalar
from rnsdask.rns import arithmetic
from rnsdask.rns.system import RNS


def apply(name: str, *values: Operand, overflow: str | None = None) -> Any:
    """Apply an operation of :data:`.arithmetic.OPERATIONS`, as :func:`.functions.add` says of a sum."""
    given = values  # a sign that operands get does not widen what is known of them
    values, overflow = grown(partial(arithmetic.result_range, name), overflow, *values)
    operands = prepare(*values)
    wanted = overflow_mode(overflow, operands.system)
    ranges = tuple([_range_of(value, operands.system) for value in given])
    mode, system, result = _planned(name, operands.system, ranges, wanted)
    words = map_chunks(
        _apply_block,
        *operands.blocks,
        rows=system.rows + (mode == "flag"),
        located=mode != "wrap",
        token=f"rns-{name}",
        operation=name,
        system=system,
        mode=mode,
        ranges=None if mode == "wrap" else ranges,
    )
    return made_like(values, words, result, mode)


@lru_cache(CACHED_SETS)
def _planned(name: str, system: RNS, ranges: tuple[arithmetic.Range, ...], mode: str) -> tuple[str, RNS, RNS]:
    """How chunks are computed so that `mode` holds, their system, and that of the result with its bound."""
    system = system.with_bound(None)
    low, high = arithmetic.result_range(name, *ranges)
    lowest, highest = system.value_range
    is_safe = lowest <= low and high <= highest
    known = None
    if mode == "raise" or is_safe:
        # What is out of range raises, so a bound of what is left holds for every result.
        bound = max(abs(max(low, lowest)), abs(min(high, highest)))
        known = bound if bound < system.greatest_magnitude else None
    return "wrap" if is_safe and mode == "raise" else mode, system, system.with_bound(known)


def _range_of(value: Operand, system: RNS) -> arithmetic.Range:
    if is_number_array(value):
        known: arithmetic.Range = value.system.known_range
        return known
    if is_lazy_integer(value) and (found := getattr(value, "known_range", None)) is not None:
        low, high = system.value_range
        return max(found[0], low), min(found[1], high)
    return system.value_range if is_lazy_integer(value) else (scalar(value),) * 2


def _apply_block(
    *blocks: Array,
    operation: str,
    system: RNS,
    mode: str,
    ranges: tuple[arithmetic.Range, ...] | None,
    place: Place = ALONE,
) -> Array:
    return arithmetic.apply(operation, blocks, system, mode, place.flat_index, ranges)
