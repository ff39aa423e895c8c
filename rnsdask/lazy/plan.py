"""Plans of operations: all that is known of one before any chunk is read, made once and cached.

A plan follows from the row, the operands' systems and integers, and the mode of overflow. It has no words:
chunks are mapped by it afterwards. Only this module distinguishes kinds of systems: whether they know bounds,
their results may be out of range, or they extend.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NoReturn, TypeAlias

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.number_system import NumberSystem, with_source_of
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.overflow import chosen_mode, get_overflow, overflow_mode
from rnsdask.core.ranges import Range
from rnsdask.core.rows import Row
from rnsdask.core.table import Entry, table_at
from rnsdask.core.ways import Conversion, Conversions, Kind, Message, with_ways
from rnsdask.rns import promotion
from rnsdask.rns.system import least_system

Known: TypeAlias = NumberSystem | int | tuple[int, ...]
"""An operand as a plan knows it: an array's system; an integer; or the least and the greatest value of an
integer that is not computed yet, and nothing where these are unknown."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An operation on operands with known systems and ranges.

    Attributes
    ----------
    row : Row
        The operation.
    entry : Entry
        Its entry in the table of the operands' system.
    meeting : NumberSystem
        The common system of the operands, to which arrays in others are converted.
    is_alike : bool
        Whether all arrays are in that system.
    system : NumberSystem
        The same, with a bound for all operands, if chunks do not use their ranges.
    ranges : tuple of Range
        Least and greatest number of each operand; empty for a system that does not use them.
    wanted : str
        What happens to results out of range: ``"raise"``, ``"wrap"`` or ``"flag"``.
    mode : str
        The mode that chunks need: ``"wrap"`` if no result can be out of range.
    result : NumberSystem
        The system of the results.
    may_measure : bool
        Whether measured ranges of arrays in memory may make a check unnecessary.
    is_fitted : bool
        Whether results keep only the moduli that their bound needs.
    given : tuple of NumberSystem, optional
        Systems of the operands, if these differ from that of the results.
    """

    row: Row[..., Any]
    entry: Entry
    meeting: Any
    is_alike: bool
    system: Any
    ranges: tuple[Range, ...]
    wanted: str
    mode: str
    result: Any
    may_measure: bool = False
    is_fitted: bool = False
    given: tuple[Any, ...] | None = None

    def with_ranges(self, ranges: tuple[Range, ...]) -> "Plan":
        """Return the plan for chunks with other ranges of the operands; the results' plan stays."""
        if not self.system.extends or ranges == self.ranges:
            return self
        if not self.entry.ranged:
            return replace(self, system=self.system.holding(*ranges), ranges=ranges)
        assert self.row.result is not None
        is_safe = _is_within(self.row.result(*ranges), self.system.value_range)
        return replace(self, ranges=ranges, mode="wrap" if is_safe and self.wanted == "raise" else self.mode)

    def with_options(self, options: dict[str, Any]) -> "Plan":
        """Return the plan for given options, as the entry plans it, if results depend on the options."""
        if self.entry.plan is None or not self.system.extends:
            return self
        mode, bound = self.entry.plan(self.system, self.ranges, self.wanted, **options)
        return replace(self, mode=mode, result=_bound_result(self.system, bound))


@lru_cache(CACHED_SETS)
def plan_of(
    row: Row[..., Any],
    known: tuple[Known, ...],
    overflow: str | None,
    outside: str | None,  # noqa: ARG001  (part of the key)
    name: str | None = None,
) -> Plan:
    """Plan an operation.

    Parameters
    ----------
    row : Row
        The operation.
    known : tuple
        What is known of the operands, at least one of them an array.
    overflow : str, optional
        The mode that the operation was called with.
    outside : str, optional
        The mode that :func:`.errstate` has set, from :func:`.get_overflow`.
    name : str, optional
        Name of the operation in errors, by default the row's.

    Raises
    ------
    TypeError, ValueError
        If arrays are of several kinds or have no common system, the system lacks the row, or the mode is
        unknown or does not apply to these results.
    RNSOverflowError
        If results may be too long for any moduli set.
    """
    systems = systems_of(known)
    entry: Entry = entry_in(row, systems, name)
    meeting = None
    if entry.overflows and row.result is not None:
        meeting, overflow = extend(row.result, overflow, known)
    if meeting is None:
        meeting, is_alike = meeting_of(known)
    else:
        is_alike = False
    wanted = overflow_mode(overflow, meeting) if "mode" in row.optional else "raise"
    ranges = ranges_of(known, meeting) if meeting.extends or entry.ranged else ()
    system, mode, result = _plan_by_ranges(row, entry, meeting, ranges, wanted)
    operation = OPERATIONS.get(row.name)
    # Sums follow from sort keys, without bounds.
    may_measure = entry.ranged and mode != "wrap" and operation is not None and not operation.is_sum
    is_fitted = meeting.grows and operation is None
    return Plan(row, entry, meeting, is_alike, system, ranges, wanted, mode, result, may_measure, is_fitted)


@lru_cache(CACHED_SETS)
def plan_exactly(
    row: Row[..., Any],
    known: tuple[Known, ...],
    overflow: str | None,
    outside: str | None,  # noqa: ARG001  (part of the key)
    name: str | None = None,
) -> Plan:
    """Plan sums, differences or products without overflow; arrays may differ in bits."""
    systems = systems_of(known)
    entry: Entry = entry_in(row, systems, name)
    first, second = given = (systems[0], systems[-1])
    system, mode = first.exact_system(row, second), overflow_mode(overflow)
    return Plan(row, entry, first, True, system, (), mode, mode, system, given=given)


def _plan_by_ranges(
    row: Row[..., Any], entry: Entry, system: Any, ranges: tuple[Range, ...], wanted: str
) -> tuple[Any, str, Any]:
    """Find the system and mode of chunks, and the system of results, by the operands' ranges."""
    if not system.extends:
        return system, wanted, system
    if row.result is None:
        return system.holding(*ranges), wanted, system.with_bound(None)
    system = system.with_bound(None) if entry.ranged else system.holding(*ranges)
    (low, high), (lowest, highest) = row.result(*ranges), system.value_range
    is_safe = lowest <= low and high <= highest
    # If results out of range raise, a bound holds for all returned results.
    is_held = wanted == "raise" or is_safe
    bound = max(abs(max(low, lowest)), abs(min(high, highest))) if is_held else None
    return system, "wrap" if is_safe and wanted == "raise" else wanted, _bound_result(system, bound)


def _bound_result(system: Any, bound: int | None) -> Any:
    """Return the system with a bound of results, if that is tighter than the range."""
    return system.with_bound(None if bound is None or bound >= system.value_range[1] else bound)


def _is_within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


# ---- tables ------------------------------------------------------------------------------------------------


def systems_of(known: Sequence[Known]) -> list[Any]:
    """Return the systems of the arrays among operands."""
    return [operand for operand in known if isinstance(operand, NumberSystem)]


def entry_in(row: Row[..., Any], systems: Sequence[NumberSystem], name: str | None = None) -> Any:
    """Return the entry for a row in the table of number systems.

    Errors call the operation `name`, by default the row's. TypeError if the systems are of several kinds, or
    their table lacks the row.
    """
    check_one_kind(systems, row)
    entry = systems[0].table.get(row.name)
    return refuse(name or row.name, systems[0], row) if entry is None else entry


def refuse(name: str, system: NumberSystem, row: Row[..., Any]) -> NoReturn:
    """Raise TypeError for an operation whose row the number system's table lacks."""
    raise TypeError(Message(f"{name} takes ", Kind.of(system.array_type, "no"), ": ", system.lacking(row)))


def check_one_kind(systems: Sequence[NumberSystem], row: Row[..., Any] | None = None) -> None:
    """Raise TypeError for number systems of several kinds; the way out leads to one that has the row."""
    first = systems[0]
    for other in systems[1:]:
        if type(other) is not type(first):
            pair = (first, other)
            kinds: list[Any] = sorted((Kind.of(system.array_type, "s") for system in pair), key=str)[::-1]
            if kinds[0] == kinds[1]:
                kinds = [f"elements of {system!r}" for system in pair]
            ways = conversions_between(first, other, lambda name: not row or row.name in table_at(name))
            what = Message(kinds[0], " and ", kinds[1], " do not mix")
            raise TypeError(with_ways(what, *([Conversions(ways)] if ways else [])))


def conversions_between(
    a: NumberSystem, b: NumberSystem, is_enough: Callable[[str], bool]
) -> tuple[Conversion, ...]:
    """Conversions that bring numbers of two systems to one of these whose table is enough, or to a third."""
    pairs = [(x.conversions, y.table_name) for x, y in ((a, b), (b, a)) if is_enough(y.table_name)]
    found = {known[table] for known, table in pairs if table in known}
    if not found:
        third = next((table for table in a.conversions if table in b.conversions and is_enough(table)), None)
        found = {a.conversions[third], b.conversions[third]} if third else set()
    return tuple(sorted(found, key=lambda conversion: conversion.value))


@lru_cache(CACHED_SETS)
def result_system(system: Any, result: Callable[..., Range], ranges: tuple[Range, ...]) -> Any:
    """Return the system of results, with the bound that `result` computes from the operands' ranges."""
    return system.holding(result(*ranges)) if system.extends else system


# ---- common systems ----------------------------------------------------------------------------------------


def meeting_of(known: Sequence[Known]) -> tuple[Any, bool]:
    """Return the common system of operands, as :func:`common_system`, and whether all arrays are in it."""
    systems = systems_of(known)
    first = systems[0]
    if not first.grows and all(system is first for system in systems):
        return first, True
    ends = _ends(known) if any(system.grows for system in systems) else ()
    return _meeting_of((*systems, *ends), get_overflow())


@lru_cache(CACHED_SETS)
def _meeting_of(known: tuple[Known, ...], outside: str | None) -> tuple[Any, bool]:  # noqa: ARG001  (in the key)
    system = common_system(known)
    return system, all(own.same_numbers(system) and own.grows == system.grows for own in systems_of(known))


def common_system(known: Sequence[Known]) -> Any:
    """Return the common system of arrays of one kind, and of integers if it grows.

    If all have the same numbers and none grows, it is the first array's, with the first `source` that an
    array has. ValueError if there is no common system.
    """
    first, *_ = systems = systems_of(known)
    if not all(system.extends for system in systems):
        for other in systems[1:]:
            if not first.same_numbers(other):
                raise ValueError(first.mismatch(other))
        return with_source_of(*systems)
    if not any(system.grows for system in systems) and all(map(first.same_numbers, systems[1:])):
        return with_source_of(*systems)
    return promotion.common_system(systems, _ends(known), nested=get_overflow() == "extend")


def _ends(known: Sequence[Known]) -> list[int]:
    """Return the integers among operands, and the ends of lazy ones."""
    integers = [operand for operand in known if not isinstance(operand, NumberSystem)]
    return list(chain.from_iterable((ends,) if isinstance(ends, int) else ends for ends in integers))


def ranges_of(known: Sequence[Known], system: NumberSystem) -> tuple[Range, ...]:
    """Return the least and greatest number of each operand in a system."""
    return tuple([range_of(operand, system) for operand in known])


def range_of(operand: Known, system: NumberSystem) -> Range:
    """Return the least and greatest number of an operand; lazy integers are within the system's range."""
    if isinstance(operand, NumberSystem):
        return operand.known_range
    if isinstance(operand, int):
        return operand, operand
    low, high = system.value_range
    return (max(operand[0], low), min(operand[1], high)) if operand else (low, high)


# ---- results that extend the system ------------------------------------------------------------------------


def extends(overflow: str | None, *systems: NumberSystem) -> bool:
    """Whether results of an operation on numbers of some systems take more moduli as needed."""
    if not systems or not all(system.extends for system in systems):
        return False
    return chosen_mode(overflow, *systems) == "extend"


def all_grow(*systems: NumberSystem) -> bool:
    """Whether results of an operation without a mode of overflow take more moduli: if all systems grow."""
    return all(system.grows for system in systems) and extends(None, *systems)


def extend(
    result: Callable[..., Range], overflow: str | None, known: Sequence[Known]
) -> tuple[Any, str | None]:
    """Return the system that operands need for their results, and the operation's remaining mode.

    `result` computes the range of the results from the operands' ranges. The system is None if the operands
    need no other one. RNSOverflowError if results may be too long for any moduli set.
    """
    systems = systems_of(known)
    if not extends(overflow, *systems):
        return None, overflow
    ranges = [
        operand or promotion.common_system(systems).value_range
        if isinstance(operand, tuple)
        else range_of(operand, systems[0])
        for operand in known
    ]
    found = result(*ranges)
    low, high = min(found[0], *(low for low, _ in ranges)), max(found[1], *(high for _, high in ranges))
    if _is_within((low, high), systems[0].value_range) and all(map(systems[0].same_numbers, systems[1:])):
        return None, "raise"
    return promotion.extended_system(systems, low, high), "raise"


def fitting_system(system: Any) -> Any:
    """Return the system with only the moduli that its bound needs, if it grows."""
    if not system.grows or system.bound is None:
        return system
    low, high = system.known_range
    least = least_system(low, high, system.signed)
    return system if least.rows >= system.rows else least.with_bound(system.bound)


def meet_by_growth(system: NumberSystem, other: NumberSystem) -> bool:
    """Whether one of two systems of a kind grows, so that numbers are converted to a common one."""
    return system.extends and (system.grows or other.grows)


def is_appended_by_growth(own: NumberSystem, stored: NumberSystem) -> bool:
    """Whether one of both systems grows, so that appended numbers or the stored system change moduli."""
    is_grown = own.grows or (stored.grows and own.same_numbers(stored))
    return is_grown and type(own) is type(stored)


def with_integers(system: Any, integers: Callable[[], Any]) -> Any:
    """Return an array's system for integers, with their bound if it knows bounds.

    `integers` are from :func:`.flat_values`. A system that grows takes moduli for them.
    """
    if not system.extends:
        return system
    values = integers()
    if system.grows and len(values):
        system = system.for_range(int(min(values)), int(max(values)))
    return system.with_bound(system.bound_of(values))
