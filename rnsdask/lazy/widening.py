"""Operations of numbers with intervals that residues of more moduli do for them, as their table says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import errstate, overflow_mode
from rnsdask.core.rows import Row
from rnsdask.core.table import ThroughRNS
from rnsdask.lazy.elementwise import check_one_kind, entry_of, mapped
from rnsdask.lazy.operands import common_system, is_number_array, made_alike
from rnsdask.rns.system import RNS

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class Residues:
    """Residues and their system: what functions of the Dask half need of an RNSArray."""

    words: Any
    system: RNS


def by_table(row: Row[..., Any]) -> Callable[[F], F]:
    """Decorate the Dask half of an operation that has a row in the table of its operands' system.

    It is called with residues of more moduli where the row says so.
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
    """Make a function of arrays of another system, such as IntervalRNSArrays, of one of RNSArrays.

    It takes arrays of numbers among its arguments, and gives such arrays, tuples and lists of them, or
    anything else. `bits` tells from the arguments how many every exact result takes, so that none is out of
    range on the way; without it, results are no longer than the numbers. Unless the function takes
    ``overflow=`` (`overflows`), results out of range are an error.
    """

    @wraps(function)
    def through(*args: Any, **options: Any) -> Any:
        arrays = list(filter(is_number_array, (*args, *options.values())))
        check_one_kind(*arrays)
        made_alike(*arrays)
        system: NumberSystem = common_system(*arrays)
        mode = overflow_mode(options.pop("overflow", None), system) if overflows else "raise"
        wide = system.wide_system(None if bits is None else bits(*args, **options))

        def widened(value: Any) -> Any:
            if not is_number_array(value):
                return value
            words = mapped(rows.widened, (value.words,), system, result=wide, wide=wide)
            return Residues(words, wide.holding(system.value_range))

        with errstate(overflow="raise"):
            result = function(*map(widened, args), **{name: widened(v) for name, v in options.items()})
        return _narrowed(result, type(arrays[0]), system, mode)

    if function.__doc__:
        through.__doc__ = function.__doc__.replace("RNSArray", "IntervalRNSArray")
    return through


def of_residues(name: str, function: Function, *arrays: Any) -> Any:
    """Call a function of RNSArrays, whose numbers are no longer than theirs, for arrays of one kind.

    Raises
    ------
    TypeError
        If the numbers are no residues, nor are brought to such.
    """
    entry_of(rows.residues_modulo, *arrays, name=name)
    is_wide = arrays[0].system.wide_system(None) is None
    return (function if is_wide else through_rns(function))(*arrays)


def _narrowed(result: Any, array_type: Function, system: Any, mode: str) -> Any:
    """A result with the arrays of residues in it as arrays in the system."""
    if isinstance(result, tuple | list):
        parts = [_narrowed(part, array_type, system, mode) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if not is_number_array(result):
        return result
    words = mapped(rows.narrowed, (result.words,), system, mode=mode, wide=result.system)
    if mode == "flag":
        return array_type(words[:-1], system), words[-1] != 0
    return array_type(words, system)
