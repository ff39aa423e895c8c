"""Common systems for residues of several systems, and extended ones for results out of range."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from rnsdask.backend import Array, is_any
from rnsdask.core.extension import enough_moduli, needed_product
from rnsdask.core.number_system import with_source_of
from rnsdask.core.place import Locate
from rnsdask.core.ranges import Range
from rnsdask.core.ways import Message, Way
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import compare, sign
from rnsdask.rns.extend import base_extend, holds_every_value
from rnsdask.rns.system import RNS, check_length, least_system


def common_system(systems: Sequence[RNS], integers: Iterable[int] = (), *, nested: bool = False) -> RNS:
    """Common system, without a bound, of numbers of some systems and of integers.

    For systems that grow, it has the fewest moduli that hold all of their numbers and the integers, at least
    as many as the longest set, and is signed if one of them is or an integer is negative. A system that does
    not grow takes precedence; several of these must have the same moduli, and if their signs differ, the
    signed one is taken, provided that the others' bounds show that it holds their numbers. If they may be
    `nested`, like extended results, sets may also be the first moduli of the longest one. ValueError if there
    is no such system.
    """
    fixed = [system for system in systems if not system.grows]
    if not fixed:
        known = [system.known_range for system in systems]
        low, high = _hull([*known, *((value, value) for value in integers)])
        count = max(system.rows for system in systems)
        least = least_system(low, high, any(system.signed for system in systems), count)
        return with_source_of(least, *systems)
    longest = max(fixed, key=lambda system: system.rows) if nested else fixed[0]
    first = longest.with_bound(None)
    for other in fixed:
        if other.moduli != (first.moduli.prefix(other.rows) if nested else first.moduli):
            raise ValueError(
                Message(
                    f"operands have different moduli sets: {first.moduli!r} and {other.moduli!r}; ",
                    Way.EXTEND_ALIKE,
                    " makes them alike",
                )
            )
        if other.signed != first.signed:
            first = replace(first, signed=True)
    for system in fixed:
        if system.signed != first.signed and not holds_every_value(system, first):
            raise ValueError(
                Message(
                    "operands have different ranges: one is signed, another unsigned, and no bound shows "
                    "that its numbers are in the signed range; ",
                    Way.BOUND,
                )
            )
    return with_source_of(first, *systems)


def extended_system(systems: Sequence[RNS], low: int, high: int) -> RNS:
    """Extend the operands' common system by the fewest moduli, and a sign if needed, to hold a range.

    If it does not grow, its own moduli come first, and others follow.
    """
    check_length(max(low.bit_length(), high.bit_length()))
    common = common_system(systems, nested=True)
    low, high = _hull([(low, high), *(system.known_range for system in systems)])
    if common.grows:
        return with_source_of(least_system(low, high, common.signed, len(common.moduli)), common)
    lowest, highest = common.value_range
    if lowest <= low and high <= highest:
        return common
    is_signed = common.signed or low < 0
    moduli = enough_moduli(common.moduli, needed_product((low, high), is_signed, symmetric=True))
    return RNS(moduli, is_signed, source=common.source)


def _hull(ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def converted(residues: Array, system: RNS, target: RNS, locate: Locate = int) -> Array:
    """Convert a chunk's residues to another system; RNSOverflowError if a number is out of its range.

    Numbers are checked only if their known range does not show that the other system holds them.
    """
    result = base_extend(residues, system, target.moduli)
    if holds_every_value(system, target):
        return result
    # For an unsigned target, signs find the negative numbers, so that all others may be up to M - 1.
    middle = RNS(target.moduli, system.signed and target.signed)
    outside = np.zeros_like(residues[0], dtype=np.bool_)
    (low, high), (lowest, highest) = system.known_range, middle.value_range
    if high > highest or (middle.signed and low < lowest):
        # The intermediate range is part of the system's, so a number that comes back equal did fit.
        back = base_extend(result, middle, system.moduli)
        outside |= (back != residues).any(axis=0)
    if target.signed and not system.signed:
        greatest = column_of(target.value_range[1], target.moduli, residues.ndim - 1)
        outside |= compare(result, greatest, middle) > 0
    elif system.signed and not target.signed:
        outside |= sign(residues, system) < 0
    if is_any(outside):
        index = int(outside.reshape(-1).argmax())
        raise target.overflow_error(system.decode_at(residues, index), locate(index))
    return result
