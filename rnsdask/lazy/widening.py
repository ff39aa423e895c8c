"""Operations of numbers with intervals that residues of more moduli do for them, as their table says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.overflow import errstate, overflow_mode
from rnsdask.core.place import Place
from rnsdask.core.table import ThroughRNS
from rnsdask.interval_rns import widening
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.elementwise import check_one_kind, entry_of
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, common_system, is_number_array, made_alike
from rnsdask.rns.system import RNS

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class Residues:
    """Residues and their system: what functions of the Dask half need of an RNSArray."""

    words: Any
    system: RNS


def of_intervals(value: Any) -> bool:
    """Whether a value is an array of signed integers with intervals."""
    return is_number_array(value) and isinstance(value.system, IntervalRNS)


def also_of_intervals(function: Function) -> Callable[[F], F]:
    """Decorate a function of RNSArrays: where an argument is an IntervalRNSArray, `function` is called."""
    return also_of(IntervalRNS, function)


def also_of(system: type[Any], function: Function) -> Callable[[F], F]:
    """Decorate a function of RNSArrays: of arrays of another kind of system, `function` is called."""

    def decorate(of_residues: F) -> F:
        @wraps(of_residues)
        def of_either(*args: Any, **options: Any) -> Any:
            arrays = [value for value in (*args, *options.values()) if is_number_array(value)]
            if not any(isinstance(array.system, system) for array in arrays):
                return of_residues(*args, **options)
            check_one_kind(*arrays)
            return function(*args, **options)

        return cast("F", of_either)

    return decorate


def by_table(row: str) -> Callable[[F], F]:
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
    make: Callable[[Any, RNS], Any] = Residues,
) -> Function:
    """A function of IntervalRNSArrays made of one of RNSArrays.

    Parameters
    ----------
    function : callable
        Takes arrays of numbers among its arguments, and gives such arrays, tuples and lists of them, or
        anything else.
    bits : callable, optional
        Tells from the arguments how many bits every exact result takes, so that none is out of range on the
        way. Without it, results are no longer than the numbers.
    overflows : bool
        Whether the function takes ``overflow=``. Else results out of range are an error.
    make : callable
        Makes an array for the function, of words and system.
    """

    @wraps(function)
    def through(*args: Any, **options: Any) -> Any:
        arrays = [value for value in (*args, *options.values()) if of_intervals(value)]
        made_alike(*arrays)
        system: IntervalRNS = common_system(*arrays)
        mode = overflow_mode(options.pop("overflow", None), system) if overflows else "raise"
        moduli = system.moduli
        wide = widening.wide_system(moduli, moduli.bits if bits is None else bits(*args, **options))

        def widened(value: Any) -> Any:
            return _widened(value, wide, make) if of_intervals(value) else value

        with errstate(overflow="raise"):
            result = function(*map(widened, args), **{name: widened(v) for name, v in options.items()})
        return _narrowed(result, type(arrays[0]), system, mode)

    if function.__doc__:
        through.__doc__ = function.__doc__.replace("RNSArray", "IntervalRNSArray")
    return through


def _widened(x: Numbers, wide: RNS, make: Callable[[Any, RNS], Any]) -> Any:
    moduli: ModuliSet = x.system.moduli
    words = map_chunks(_widened_block, x.words, rows=wide.rows, moduli=moduli, wide=wide)
    return make(words, wide.with_bound(moduli.product - 1))


def _narrowed(result: Any, array_type: Function, system: IntervalRNS, mode: str) -> Any:
    """A result with the arrays of residues in it as arrays of intervals."""
    if isinstance(result, tuple | list):
        return type(result)(_narrowed(part, array_type, system, mode) for part in result)
    if not is_number_array(result):
        return result
    options: dict[str, Any] = {"wide": result.system, "own": system, "mode": mode}
    rows = system.rows + (mode == "flag")
    words = map_chunks(_narrowed_block, result.words, rows=rows, located=True, **options)
    if mode == "flag":
        return array_type(words[:-1], system), words[-1] != 0
    return array_type(words, system)


def _widened_block(columns: Array, *, moduli: ModuliSet, wide: RNS) -> Array:
    return widening.widened(columns, moduli, wide)


def _narrowed_block(residues: Array, *, wide: RNS, own: IntervalRNS, mode: str, place: Place) -> Array:
    with own.naming_ways_out():
        return widening.narrowed(residues, wide, own.moduli, mode, place.flat_index)
