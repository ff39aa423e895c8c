"""Element-wise operations of any number system: a table's entry, mapped over chunks by a plan."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import dask.array as da
import numpy as np

from rnsdask.backend import Array
from rnsdask.core import ranges, rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import get_overflow, overflow_mode
from rnsdask.core.place import ALONE, Place
from rnsdask.core.rows import Row
from rnsdask.core.table import Entry
from rnsdask.lazy import plan
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.integer_operands import growing_numbers, with_arrays
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    as_mask,
    blocks_of,
    bring_to_system,
    fill_like,
    integer_of,
    is_lazy_integer,
    is_number_array,
    is_number_type,
    known_of,
    make_like,
    prepare,
    scalar,
)
from rnsdask.lazy.plan import Plan
from rnsdask.lazy.promotion import fit
from rnsdask.rns.compare import RELATIONS, choose

# ---- tables -----------------------------------------------------------------------------------------------


def entry_of(row: Row[..., Any], *operands: Operand, name: str | None = None) -> Any:
    """Return the entry for a row in the table of the operands' number system.

    Errors call the operation `name`, by default the row's. TypeError if there is no array, arrays are of
    several systems, or their table lacks the row.
    """
    arrays = [operand for operand in operands if is_number_array(operand)]
    if not arrays:
        kinds = ", ".join(type(operand).__name__ for operand in operands)
        raise TypeError(
            f"{name or row.name} takes at least one array of numbers, got {kinds}; rd.from_ints makes one"
        )
    return plan.entry_in(row, [array.system for array in arrays], name)


def has(row: Row[..., Any], *operands: Operand) -> bool:
    """Whether the table of the operands' number system has a row."""
    return all(row.name in operand.system.table for operand in operands if is_number_array(operand))


def refuse(name: str, x: Numbers, row: Row[..., Any]) -> NoReturn:
    """Raise TypeError for an operation whose row the number system's table lacks."""
    plan.refuse(name, x.system, row)


def check_one_kind(first: Numbers, *others: Numbers, row: Row[..., Any] | None = None) -> None:
    """Raise TypeError for arrays of several kinds of systems; the way out leads to one that has the row."""
    plan.check_one_kind([array.system for array in (first, *others)], row)


# ---- chunks -----------------------------------------------------------------------------------------------


def run_entry(
    *blocks: Array,
    operation: str,
    system: NumberSystem,
    place: Place = ALONE,
    integer: str | None = None,
    **options: Any,
) -> Array:
    """Apply an entry to a chunk; `integer` names an option whose value is the last block."""
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


def _relate(a: Array, b: Array, *, relation: str, operation: str, system: NumberSystem) -> Array:
    found: Array = system.table[operation].call(a, b, system=system)
    if operation == rows.differ.name:
        return (found if relation == "!=" else ~found)[None]
    return RELATIONS[relation](found, 0)[None]


def _relate_integer(a: Array, integer: Any, *, relation: str, operation: str, system: NumberSystem) -> Array:
    value = integer_of(integer)
    if side := _side_of(value, system):
        return np.full_like(a[:1], RELATIONS[relation](0, side), dtype=np.bool_)
    return _relate(a, system.column(value, a.ndim - 1), relation=relation, operation=operation, system=system)


# ---- arrays -----------------------------------------------------------------------------------------------


def map_entry(
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
    """Map an entry of a system's table over matching chunks of operands.

    `mode` is for results out of range, if the entry takes it. `integer` is an option that is not computed
    yet. The function returns `count` numbers for each, in the system `result` if it is given. Return words
    (rows, *shape), with a row of flags for ``"flag"``, or plain values (*shape).
    """
    entry: Entry = system.table[row.name]
    if entry.overflows:
        options["mode"] = mode
    if integer is not None:
        options["integer"], lazy = integer
        blocks = (*map(as_lazy, blocks), lazy)
    elif entry.check is not None:
        entry.check(system, **options)
    if not any(isinstance(block, da.Array) for block in blocks):  # without tasks
        if entry.located:
            options["locate"] = ALONE.flat_index
        return entry.call(*blocks, system=system, **options)
    made = result or system
    words = count * made.rows + (entry.overflows and mode == "flag")
    return map_chunks(
        run_entry,
        *blocks,
        rows=words if row.gives is None else None,
        dtype=made.word_dtype if row.gives is None else row.gives,
        located=entry.located,
        operation=row.name,
        system=system,
        **options,
    )


def apply(row: Row[..., Any], *values: Operand, overflow: str | None = None, **options: Any) -> Any:
    """Apply an operation to arrays of numbers and integers, as :func:`.functions.add` does for sums.

    If their systems grow, the operands are extended so that they hold all results. Known ranges of the
    operands may prove all results in range, and determine the result's bound.
    """
    if not all(kind is int or is_number_type(kind) for kind in map(type, values)):
        values = with_arrays(*values)
    return apply_plan(plan_operation(row, values, overflow), values, **options)


def apply_exactly(row: Row[..., Any], a: Operand, b: Operand, overflow: str | None) -> Any:
    """Compute sums, differences or products without overflow, of arrays that may differ in bits and signs."""
    values = with_arrays(a, b)
    return apply_plan(plan_operation(row, values, overflow, make=plan.plan_exactly), values)


def apply_plan(found: Plan, values: Sequence[Operand], **options: Any) -> Any:
    """Apply an operation by its plan, made for these operands."""
    row, entry = found.row, found.entry
    if entry.plan is not None:
        found = found.with_options(options)
    blocks = align(found, values)
    if found.may_measure:
        found = measure(found, values)
    if entry.ranged and found.mode != "wrap":
        options["ranges"] = found.ranges
    if found.given is not None:
        options["given"] = found.given
    words = map_entry(row, blocks, found.system, mode=found.mode, **options)
    return words if row.gives is not None else finish(found, values, words)


def finish(found: Plan, values: Sequence[Operand], words: Any, system: Any = None) -> Any:
    """Make the array of a result's words, in the plan's system by default.

    With the mode ``"flag"`` return a pair of the array and the flags.
    """
    overflows, is_flagged = found.entry.overflows, found.wanted == "flag"
    mode = "flag" if is_flagged and overflows else "raise"
    result = make_like(values, words, found.result if system is None else system, mode)
    if is_flagged:
        return result if overflows else (result, fill_like(words, 0, np.bool_))
    return fit(result) if found.is_fitted else result


def plan_operation(
    row: Row[..., Any],
    values: Sequence[Operand],
    overflow: str | None = None,
    name: str | None = None,
    make: Callable[..., Plan] = plan.plan_of,
) -> Plan:
    """Plan an operation on operands; errors call it `name`, by default the row's."""
    try:
        known = tuple([value.system if is_number_type(type(value)) else known_of(value) for value in values])
    except TypeError:
        entry_of(row, *values, name=name)  # its errors come first
        raise
    if not any(map(is_number_type, map(type, values))):
        entry_of(row, *values, name=name)
    return make(row, known, overflow, get_overflow(), name)


def measure(found: Plan, values: Sequence[Operand]) -> Plan:
    """Refine a plan by the measured ranges of arrays in memory without a bound; each is measured once."""
    if not found.ranges:
        return found
    pairs = zip(values, found.ranges, strict=True)
    return found.with_ranges(
        tuple([v._measured_system().known_range if is_number_type(type(v)) else own for v, own in pairs])
    )


def align(found: Plan, values: Sequence[Operand]) -> tuple[Any, ...]:
    """Return the blocks of a plan's operands."""
    return blocks_of(values if found.is_alike else bring_to_system(values, found.meeting), found.meeting)


def absolute(x: Operand, overflow: str | None) -> Any:
    """Absolute value of each number, as :func:`.functions.absolute`."""
    entry_of(rows.compare, x, name="absolute")
    if x.system.is_signed:
        return apply(rows.absolute, x, overflow=overflow)
    mode, result = overflow_mode(overflow, x.system), make_like((x,), x.words, x.system, "raise")
    return (result, fill_like(x.words, 0, np.bool_)) if mode == "flag" else result


def choose_greater(name: str, a: Operand, b: Operand) -> Any:
    """Element-wise greater numbers for the name ``"maximum"``, lesser ones for ``"minimum"``."""
    values = with_arrays(a, b)
    found = plan_operation(rows.compare, values, name=name)
    sign, result = (1, ranges.maximum) if name == "maximum" else (-1, ranges.minimum)
    system = measure(found, values).system
    words = map_chunks(_choose_greater, *align(found, values), rows=system.rows, system=system, sign=sign)
    return finish(found, values, words, plan.result_system(found.meeting, result, found.ranges))


def choose_by(condition: Any, a: Operand, b: Operand) -> Any:
    """Choose the numbers of `a` where a condition holds, elsewhere those of `b`."""
    values = with_arrays(a, b)
    if arrays := list(filter(is_number_array, values)):
        check_one_kind(*arrays)
    else:
        as_mask(condition)  # its errors come first
        values = tuple([growing_numbers(value, condition) for value in values])
    blocks, system = prepare(*values, masks=(condition,))
    words = map_chunks(choose, *blocks, rows=system.rows, dtype=system.word_dtype)
    known = plan.ranges_of(tuple(map(known_of, values)), system)
    return make_like(values, words, plan.result_system(system, ranges.hull, known), "raise")


def relate(a: Numbers, relation: str, b: Operand) -> Any:
    """Compare an array with an array or any integer: a Boolean array, true where ``a relation b`` holds."""
    is_equality, table = relation in ("==", "!="), a.system.table
    row: Row[..., Any] = rows.differ if is_equality and rows.differ.name in table else rows.compare
    how: dict[str, Any] = {"dtype": np.bool_, "relation": relation, "operation": row.name}
    if not is_number_array(b) and rows.compare.name in table:
        if is_lazy_integer(b):
            return map_chunks(_relate_integer, as_lazy(a.words), b, system=a.system, **how)
        if side := _side_of(scalar(b), a.system):
            return fill_like(a.words, RELATIONS[relation](0, side), np.bool_)
    values = (a, b)
    found = plan_operation(row, values, name=relation)
    system = found.system if is_equality else measure(found, values).system
    return map_chunks(_relate, *align(found, values), system=system, **how)


def compare(a: Numbers, b: Operand, name: str = "compare") -> Any:
    """Compare an array's numbers with an array or any integer: int8 of -1, 0 and +1."""
    if not is_number_array(b) and not is_lazy_integer(b):
        entry_of(rows.compare, a, name=name)
        if side := _side_of(scalar(b), a.system):
            return fill_like(a.words, -side, np.int8)
    values = (a, b)
    found = plan_operation(rows.compare, values, name=name)
    return map_entry(rows.compare, align(found, values), measure(found, values).system)


def _side_of(value: int, system: NumberSystem) -> int:
    """Return -1 or +1 if an integer is below or above all that an array may hold, else 0."""
    lowest, highest = system.known_range
    return int(value > highest) - int(value < lowest)
