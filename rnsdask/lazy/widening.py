"""Operations of whole arrays by the tables, and by residues of more moduli for other numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from rnsdask.core import rows
from rnsdask.core.errors import brief
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import errstate, overflow_mode
from rnsdask.core.rows import Row
from rnsdask.core.table import Entry, ThroughRNS
from rnsdask.core.ways import Kind, Message
from rnsdask.lazy.elementwise import check_one_kind, entry_of, map_entry, refuse
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.operands import Operand, common_system, find_lengths, is_number_array, make_alike
from rnsdask.rns.system import RNS

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Residues:
    """Residues and their system: the interface of an RNSArray that functions of the Dask half need."""

    words: Any
    system: RNS


def by_table(row: Row[..., Any]) -> Callable[[F], F]:
    """Decorate the Dask half of an operation with a row in the tables.

    If the table's entry says so, it is called with residues of more moduli.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def of_any(*args: Any, **options: Any) -> Any:
            entry = entry_of(row, *args, *options.values())
            if not isinstance(entry, ThroughRNS):
                return function(*args, **options)
            if entry.check is not None:
                entry.check(*args, **options)
            return through_rns(function, entry.bits, overflows=entry.overflows)(*args, **options)

        return cast("F", of_any)

    return decorate


def through_rns(
    function: Function,
    bits: Callable[..., int] | None = None,
    *,
    overflows: bool = False,
) -> Function:
    """Turn a function of RNSArrays into one of another system's arrays, such as IntervalRNSArrays.

    It takes arrays of numbers among its arguments, and returns such arrays, tuples and lists of them, or
    other values. `bits` computes from the arguments how many bits hold every exact result, so that no result
    overflows on the way; without it, results are no longer than the numbers. Unless the function takes
    ``overflow=`` (`overflows`), results out of range are an error.
    """

    def through(*args: Any, **options: Any) -> Any:
        arrays = list(filter(is_number_array, (*args, *options.values())))
        check_one_kind(*arrays)
        make_alike(*arrays)
        system: NumberSystem = common_system(*arrays)
        mode = overflow_mode(options.pop("overflow", None), system) if overflows else "raise"
        wide = system.wide_system(None if bits is None else bits(*args, **options))

        def widened(value: Any) -> Any:
            if not is_number_array(value):
                return value
            words = map_entry(rows.widened, (value.words,), system, result=wide, wide=wide)
            return Residues(words, wide.holding(system.value_range))

        with errstate(overflow="raise"):
            result = function(*map(widened, args), **{name: widened(v) for name, v in options.items()})
        return _narrow(result, type(arrays[0]), system, mode)

    return through


def arrays_alike(name: str, *operands: Operand, row: Row[..., Any]) -> tuple[Any, ...]:
    """Convert operands, at least one of them an array, to a common system, and compute unknown lengths.

    If they are of several kinds, the error names the way to one that has the row.

    Raises
    ------
    TypeError, ValueError
        If an operand is neither an array of numbers nor integers, or there is no common system.
    """
    arrays = with_arrays(*operands)
    for x in arrays:
        if not is_number_array(x):
            kind = type(x).__name__
            raise TypeError(f"{name} takes arrays of numbers, got {kind}; rd.from_ints makes them")
    if len(arrays) > 1:
        check_one_kind(*arrays, row=row)
        arrays = make_alike(*arrays)
    find_lengths(*arrays)
    return arrays


def apply_to_arrays(name: str, row: Row[P, R], /, *arrays: P.args, **options: P.kwargs) -> R:
    """Call the function of a row of whole arrays, from the table of the arrays' system.

    Errors call it `name`: TypeError if the table lacks the row, or its function does not take an option that
    differs from the row's default.
    """
    first: Any = arrays[0]
    entry: Entry | ThroughRNS | None = first.system.table.get(row.name)
    if entry is None:
        refuse(name, first, row)
    if isinstance(entry, ThroughRNS):
        function: Function = partial(apply_to_arrays, name, row)
        found = through_rns(function, entry.bits, overflows=entry.overflows)(*arrays, **options)
    else:
        defaults = row.defaults
        given = {key: value for key, value in options.items() if value is not defaults[key]}
        if not entry.parameters.issuperset(given):
            key = next(key for key in given if key not in entry.parameters)
            kind = Kind.of(type(first), "a")
            raise TypeError(Message(f"{name} of ", kind, f" takes no {key}, got {key}={brief(given[key])}"))
        found = entry.function(*arrays, **given)
    return cast("R", found)


def _narrow(result: Any, array_type: Function, system: Any, mode: str) -> Any:
    """Convert the arrays of residues in a result to arrays of the system."""
    if isinstance(result, tuple | list):
        parts = [_narrow(part, array_type, system, mode) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if not isinstance(result, Residues):
        return result
    words = map_entry(rows.narrowed, (result.words,), system, mode=mode, wide=result.system)
    if mode == "flag":
        return array_type(words[:-1], system), words[-1] != 0
    return array_type(words, system)
