"""Element-wise operations of any number system: an entry of its table, mapped over chunks."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from rnsdask.backend import Array
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core import ranges, rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import ALONE, Place
from rnsdask.core.ranges import Range
from rnsdask.core.rows import Row
from rnsdask.core.table import Entry
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.growing import grown
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    broadcast_shape,
    filled_like,
    find_lengths,
    integer_of,
    is_lazy_integer,
    is_number_array,
    made_like,
    on_one_processor,
    prepare,
    scalar,
    with_axes,
)
from rnsdask.lazy.promotion import fitted
from rnsdask.rns.compare import RELATIONS, choose

# ---- tables -----------------------------------------------------------------------------------------------


def entry_of(row: Row[..., Any], *operands: Operand, name: str | None = None) -> Any:
    """Return what the table of the number system that the arrays among some operands are in has for a row.

    An error calls the operation `name`, or else as the row: TypeError if there is no array, arrays are of
    several systems, or the table of theirs has no such row.
    """
    arrays = [operand for operand in operands if is_number_array(operand)]
    if not arrays:
        kinds = ", ".join(type(operand).__name__ for operand in operands)
        raise TypeError(
            f"{name or row.name} takes at least one array of numbers, got {kinds}; rd.from_ints makes one"
        )
    check_one_kind(*arrays)
    entry = arrays[0].system.table.get(row.name)
    return refuse(name or row.name, arrays[0], row) if entry is None else entry


def has(row: Row[..., Any], *operands: Operand) -> bool:
    """Whether the table of the number system of all arrays among some operands has a row."""
    return all(row.name in operand.system.table for operand in operands if is_number_array(operand))


def refuse(name: str, x: Numbers, row: Row[..., Any]) -> NoReturn:
    """Raise the TypeError of an operation that a number system lacks, for its table has no such row."""
    raise TypeError(f"{name} takes no {type(x).__name__}: {x.system.lacking(row)}")


def check_one_kind(first: Numbers, *others: Numbers) -> None:
    """Raise TypeError if arrays are of several kinds of number systems."""
    for other in others:
        if type(other.system) is not type(first.system):
            kinds = sorted((f"{type(array).__name__}s" for array in (first, other)), reverse=True)
            ways = sorted({array.system.conversions for array in (first, other)} - {""})
            if kinds[0] == kinds[1]:
                kinds = [f"elements of {array.system!r}" for array in (first, other)]
                ways = ["their integers, of to_ints() or lift(), are of any field"]
            raise TypeError("; ".join([f"{' and '.join(kinds)} do not mix", *ways]))


# ---- chunks -----------------------------------------------------------------------------------------------


def run_entry(
    *blocks: Array,
    operation: str,
    system: NumberSystem,
    place: Place = ALONE,
    integer: str | None = None,
    **options: Any,
) -> Array:
    """Apply an entry to a chunk; with `integer`, the last block is the integer of the option of that name."""
    entry: Entry = system.table[operation]
    if integer is not None:
        *words, last = blocks
        blocks, options = tuple(words), {**options, integer: integer_of(last)}
    if entry.located:
        options["locate"] = place.flat_index
    found: Array = entry.call(*blocks, system=system, **options)
    return found if entry.row.gives is None else found[None]


def _choose_greater(a: Array, b: Array, *, system: NumberSystem, sign: int) -> Array:
    order = system.apply(rows.compare, a, b)[None]
    return choose(sign * order >= 0, a, b)


def _relate(a: Array, b: Array, *, relation: str, system: NumberSystem) -> Array:
    if relation in ("==", "!=") and rows.differ.name in system.table:
        different: Array = system.apply(rows.differ, a, b)
        return (different if relation == "!=" else ~different)[None]
    return RELATIONS[relation](system.apply(rows.compare, a, b), 0)[None]


def _relate_integer(a: Array, integer: Any, *, relation: str, system: NumberSystem) -> Array:
    value = integer_of(integer)
    if side := _side_of(value, system):
        return np.full_like(a[:1], RELATIONS[relation](0, side), dtype=np.bool_)
    return _relate(a, system.column(value, a.ndim - 1), relation=relation, system=system)


# ---- arrays -----------------------------------------------------------------------------------------------


def mapped(
    row: Row[..., Any],
    blocks: Sequence[Any],
    system: NumberSystem,
    *,
    mode: str = "raise",
    integer: tuple[str, Any] | None = None,
    count: int = 1,
    result: NumberSystem | None = None,
    **options: Any,
) -> Any:
    """Map an entry of a system's table over chunks of operands that fit one another.

    `mode` is for results out of range, if the entry has such; `integer` is an option that is not computed
    yet; the function gives `count` numbers for each, of the system `result`, if it is another one. Return
    words (rows, *shape), with ``"flag"`` and a row of flags; or plain values (*shape).
    """
    entry: Entry = system.table[row.name]
    if entry.overflows:
        options["mode"] = mode
    if integer is not None:
        options["integer"], lazy = integer
        blocks = (*map(as_lazy, blocks), lazy)
    elif entry.check is not None:
        entry.check(system, **options)
    words = count * (result or system).rows + (entry.overflows and mode == "flag")
    return map_chunks(
        run_entry,
        *blocks,
        rows=words if row.gives is None else None,
        dtype=row.gives,
        located=entry.located,
        operation=row.name,
        system=system,
        **options,
    )


def apply(row: Row[..., Any], *values: Operand, overflow: str | None = None, **options: Any) -> Any:
    """Apply an operation to arrays of numbers and integers, as :func:`.functions.add` says of a sum.

    The operands are extended for all results where their systems are to grow. What is known of their sizes
    may show that no result is out of range, and gives the result its bound.
    """
    values = with_arrays(*values)
    entry = entry_of(row, *values)
    given = values  # a sign that operands get does not widen what is known of them
    if entry.overflows and row.result is not None:
        values, overflow = grown(row.result, overflow, *values)
    operands = prepare(*values)
    system, wanted = operands.system, overflow_mode(overflow, operands.system)
    known = ranges_of(given, system) if system.extends or entry.ranged else ()
    mode, system, result = _plan(entry, system, known, wanted, options)
    if entry.ranged and mode != "wrap":
        if not OPERATIONS[row.name].is_sum:  # keys decide sums, without bounds
            known = measured_ranges(given, system)
            mode, *_ = _plan(entry, system, known, wanted, options)
        options["ranges"] = known
    words = mapped(row, operands.blocks, system, mode=mode, **options)
    return words if row.gives is not None else finished(values, words, result, wanted, entry)


def finished(values: Sequence[Operand], words: Any, system: Any, mode: str, entry: Entry) -> Any:
    """The array of some words like the operands; with the mode ``"flag"`` a pair of it and the flags."""
    result = made_like(values, words, system, mode if entry.overflows else "raise")
    if mode == "flag":
        return result if entry.overflows else (result, filled_like(words, 0, np.bool_))
    return result if entry.row.name in OPERATIONS or not system.grows else fitted(result)


def holding(system: Any, result: Callable[..., Range], *known: Range) -> Any:
    """The system of the results of operands of known ranges, with a bound of them if it knows bounds."""
    return system.holding(result(*known)) if system.extends else system


def ranges_of(values: Sequence[Operand], system: NumberSystem) -> tuple[Range, ...]:
    """Least and greatest number of each operand in a system."""
    return tuple([range_of(value, system) for value in values])


def measured_ranges(values: Sequence[Operand], system: NumberSystem) -> tuple[Range, ...]:
    """Ranges as :func:`ranges_of`, also of arrays in memory that have no bound: they are measured once."""
    return tuple(
        [v._measured_system().known_range if is_number_array(v) else range_of(v, system) for v in values]
    )


def range_of(value: Operand, system: NumberSystem) -> Range:
    """Least and greatest number of an operand beside arrays in a system."""
    if is_number_array(value):
        known: Range = value.system.known_range
        return known
    if not is_lazy_integer(value):
        return (scalar(value),) * 2
    low, high = system.value_range
    ends = getattr(value, "known_range", None) or (low, high)
    return max(ends[0], low), min(ends[1], high)


def _plan(
    entry: Entry,
    system: Any,
    known: tuple[Range, ...],
    mode: str,
    options: dict[str, Any],
) -> tuple[str, Any, Any]:
    """The mode of overflow that chunks need, and the systems of the operands and of the results."""
    if not system.extends:
        return mode, system, system
    if entry.plan is None:
        return _plan_by_ranges(entry.row, entry.ranged, system, known, mode)
    system = system.holding(*known)
    mode, bound = entry.plan(system, known, mode, **options)
    return mode, system, _with_result(system, bound)


@lru_cache(CACHED_SETS)
def _plan_by_ranges(
    row: Row[..., Any], is_ranged: bool, system: Any, known: tuple[Range, ...], mode: str
) -> tuple[str, Any, Any]:
    """Plan an operation by the range of its results, if that follows from the ranges of its operands."""
    system = system.with_bound(None) if is_ranged else system.holding(*known)
    if row.result is None:
        return mode, system, system.with_bound(None)
    (low, high), (lowest, highest) = row.result(*known), system.value_range
    is_safe = lowest <= low and high <= highest
    # Where a result out of range raises, a bound of the others holds for every result.
    held = mode == "raise" or is_safe
    bound = max(abs(max(low, lowest)), abs(min(high, highest))) if held else None
    return "wrap" if is_safe and mode == "raise" else mode, system, _with_result(system, bound)


def _with_result(system: Any, bound: int | None) -> Any:
    """The system with a bound of results, if it says more than the range."""
    return system.with_bound(None if bound is None or bound >= system.value_range[1] else bound)


def apply_exactly(row: Row[..., Any], a: Operand, b: Operand, overflow: str | None) -> Any:
    """Sums, differences or products in as many bits as hold each: arrays may differ in bits and signs."""
    a, b = with_arrays(a, b)
    entry, arrays = entry_of(row, a, b), [value for value in (a, b) if is_number_array(value)]
    if len(arrays) < 2 or a.system.same_numbers(b.system):
        operands = prepare(a, b)
        blocks, given = operands.blocks, (operands.system,) * 2
    else:
        find_lengths(*arrays)
        found = on_one_processor([array.words for array in arrays])
        shape = broadcast_shape([tuple(words.shape[1:]) for words in found])
        blocks, given = tuple(with_axes(words, len(shape)) for words in found), (a.system, b.system)
    system, mode = given[0].exact_system(row, given[1]), overflow_mode(overflow)
    words = mapped(row, blocks, system, mode=mode, given=given)
    return finished((a, b), words, system, mode, entry)


def absolute(x: Operand, overflow: str | None) -> Any:
    """Absolute value of each number, as :func:`.functions.absolute` says."""
    entry_of(rows.compare, x, name="absolute")
    if x.system.is_signed:
        return apply(rows.absolute, x, overflow=overflow)
    mode, result = overflow_mode(overflow, x.system), made_like((x,), x.words, x.system, "raise")
    return (result, filled_like(x.words, 0, np.bool_)) if mode == "flag" else result


def choose_greater(name: str, a: Operand, b: Operand) -> Any:
    """The greater of two numbers at each place for the name ``"maximum"``, for ``"minimum"`` the lesser."""
    result = {"maximum": ranges.maximum, "minimum": ranges.minimum}[name]
    sign = 1 if name == "maximum" else -1
    a, b = with_arrays(a, b)
    entry = entry_of(rows.compare, a, b, name=name)
    operands = prepare(a, b)
    known = ranges_of((a, b), operands.system)
    system = operands.system.holding(*measured_ranges((a, b), operands.system))
    words = map_chunks(_choose_greater, *operands.blocks, rows=system.rows, system=system, sign=sign)
    return finished((a, b), words, system.holding(result(*known)), "raise", entry)


def choose_by(condition: Any, a: Operand, b: Operand) -> Any:
    """The number of `a` where a condition holds, elsewhere that of `b`."""
    a, b = with_arrays(a, b)
    arrays = list(filter(is_number_array, (a, b)))
    if arrays:
        check_one_kind(*arrays)
    operands = prepare(a, b, masks=(condition,))
    system = operands.system
    words = map_chunks(choose, *operands.blocks, rows=system.rows, dtype=system.word_dtype)
    return made_like((a, b), words, system.holding(*ranges_of((a, b), system)), "raise")


def relate(a: Numbers, relation: str, b: Operand) -> Any:
    """Compare an array with an array or any integer: a Boolean array, true where ``a relation b`` holds."""
    is_equality = relation in ("==", "!=")
    entry_of(rows.differ if is_equality and has(rows.differ, a, b) else rows.compare, a, b, name=relation)
    if has(rows.compare, a):
        if is_lazy_integer(b):
            how: dict[str, Any] = {"dtype": np.bool_, "relation": relation, "system": a.system}
            return map_chunks(_relate_integer, as_lazy(a.words), b, **how)
        if not is_number_array(b) and (side := _side_of(scalar(b), a.system)):
            return filled_like(a.words, RELATIONS[relation](0, side), np.bool_)
    operands = prepare(a, b)
    known = (ranges_of if is_equality else measured_ranges)((a, b), operands.system)
    system = operands.system.holding(*known)
    return map_chunks(_relate, *operands.blocks, dtype=np.bool_, relation=relation, system=system)


def compare(a: Numbers, b: Operand, name: str = "compare") -> Any:
    """Order of the numbers of an array and an array or any integer: int8 of -1, 0 and +1."""
    entry_of(rows.compare, a, b, name=name)
    if not is_number_array(b) and not is_lazy_integer(b) and (side := _side_of(scalar(b), a.system)):
        return filled_like(a.words, -side, np.int8)
    operands = prepare(a, b)
    system = operands.system.holding(*measured_ranges((a, b), operands.system))
    return mapped(rows.compare, operands.blocks, system)


def _side_of(value: int, system: NumberSystem) -> int:
    """-1 or +1 if an integer is below or above all that an array may hold, else 0."""
    lowest, highest = system.known_range
    return int(value > highest) - int(value < lowest)
