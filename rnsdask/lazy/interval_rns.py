"""Operations of arrays of signed integers with stored intervals, and of integers: lazy on Dask."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import Place
from rnsdask.interval_rns import arithmetic, compare, convert, divide, extend, layout, widening
from rnsdask.interval_rns import powers as interval_powers
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    filled_like,
    integer_of,
    is_lazy_integer,
    is_number_array,
    made_like,
    prepare,
    scalar,
)
from rnsdask.rns import powers
from rnsdask.rns.compare import RELATIONS, choose
from rnsdask.rns.divide import Part
from rnsdask.rns.system import RNS


def apply(
    name: str, x: Operand, y: Operand, *, overflow: str | None = None, algorithm: int | str | None = None
) -> Any:
    """Sum, difference or product, as :func:`.functions.add` says.

    Parameters
    ----------
    name : {"add", "subtract", "multiply"}
    algorithm : {1, 2, "digits"}, optional
        Of sums: Algorithm 1 of the paper, which branches on signs; Algorithm 2, by radix complement; or the
        residues of a number spread over threads. Without it, the fastest. The result is the same bit for bit.

    Raises
    ------
    ValueError
        If an option is unknown.
    """
    arithmetic.check_algorithm(algorithm)
    operands = prepare(x, y)
    system: IntervalRNS = operands.system
    mode = overflow_mode(overflow, system)
    options: dict[str, Any] = {
        "operation": name,
        "system": system,
        "mode": mode,
        "algorithm": algorithm,
    }
    rows = system.rows + (mode == "flag")
    token = f"interval-rns-{name}"
    words = map_chunks(_apply_block, *operands.blocks, rows=rows, located=True, token=token, **options)
    return made_like((x, y), words, system, mode)


def fused(name: str, *values: Operand, overflow: str | None = None) -> Any:
    """A sum of signed products of operands, as :func:`.functions.fma` says."""
    operands = prepare(*values)
    system: IntervalRNS = operands.system
    mode = overflow_mode(overflow, system)
    options: dict[str, Any] = {"operation": name, "system": system, "mode": mode}
    rows, token = system.rows + (mode == "flag"), f"interval-rns-{name}"
    words = map_chunks(_fused_block, *operands.blocks, rows=rows, located=True, token=token, **options)
    return made_like(values, words, system, mode)


def power(x: Numbers, exponent: Any, *, overflow: str | None = None) -> Any:
    """Powers of each number, as :func:`.powers.power` says."""
    system: IntervalRNS = x.system
    mode = overflow_mode(overflow, system)
    options: dict[str, Any] = {"system": system, "mode": mode, "rows": system.rows + (mode == "flag")}
    if is_lazy_integer(exponent):
        words = map_chunks(_power_block_lazily, as_lazy(x.words), exponent, located=True, **options)
    else:
        options["exponent"] = as_integer(exponent, "exponent")
        powers.check_exponent(options["exponent"])
        words = map_chunks(_power_block, x.words, located=True, **options)
    return made_like((x,), words, system, mode)


def check_inverses(system: NumberSystem) -> None:
    """Raise ValueError if inverses modulo M would be modulo moduli that the user has not given."""
    if system.source is not None:
        raise ValueError(
            f"inverse would be modulo the moduli that replaced the {system.source!r}, under which the "
            "residues were given; pow(x, -1, m) gives inverses modulo an integer m"
        )


def inverse(x: Numbers) -> Any:
    """Inverse modulo M of each number, with its sign, as :func:`.powers.inverse` says."""
    check_inverses(x.system)
    options: dict[str, Any] = {"rows": x.system.rows, "moduli": x.system.moduli}
    words = map_chunks(_inverse_block, x.words, located=True, **options)
    return made_like((x,), words, x.system, "raise")


def negative(x: Numbers, *, overflow: str | None = None) -> Any:
    """Opposite number ``-x``, which is always in range; with ``"flag"`` a pair."""
    if overflow_mode(overflow, x.system) == "flag":
        return apply("subtract", 0, x, overflow=overflow)
    return _mapped(arithmetic.negative, x)


def absolute(x: Numbers, *, overflow: str | None = None) -> Any:
    """Absolute value of each number, which is always in range; with ``"flag"`` a pair."""
    is_flagged = overflow_mode(overflow, x.system) == "flag"
    result = _mapped(arithmetic.absolute, x)
    return (result, filled_like(x.words, 0, np.bool_)) if is_flagged else result


def _mapped(function: Callable[..., Any], x: Numbers) -> Any:
    options: dict[str, Any] = {"rows": x.system.rows, "moduli": x.system.moduli}
    return made_like((x,), map_chunks(function, x.words, **options), x.system, "raise")


def maximum(x: Operand, y: Operand) -> Any:
    """The greater of two numbers, element by element."""
    return _chosen(_maximum_block, x, y)


def minimum(x: Operand, y: Operand) -> Any:
    """The lesser of two numbers, element by element."""
    return _chosen(_minimum_block, x, y)


def where(condition: Any, x: Operand, y: Operand) -> Any:
    """The number of `x` where a condition holds, a Boolean array, else that of `y`."""
    return _chosen(_where_block, x, y, condition)


def _chosen(function: Callable[..., Any], x: Operand, y: Operand, *masks: Any) -> Any:
    operands = prepare(x, y, masks=masks)
    system: IntervalRNS = operands.system
    words = map_chunks(function, *operands.blocks, rows=system.rows, moduli=system.moduli)
    return made_like((x, y), words, system, "raise")


def sign(x: Numbers) -> Any:
    """Sign of each number: an int8 array of -1, 0 and +1."""
    return map_chunks(_sign_block, x.words, dtype=np.int8, moduli=x.system.moduli)


def relate(x: Numbers, relation: str, y: Operand) -> Any:
    """Where ``x relation y`` holds, for an array and an array or any integer: a Boolean array."""
    options: dict[str, Any] = {"dtype": np.bool_, "relation": relation}
    if is_lazy_integer(y):
        return map_chunks(_relate_integer, as_lazy(x.words), y, system=x.system, **options)
    if not is_number_array(y):
        value = scalar(y)
        if abs(value) >= x.system.moduli.product:
            return filled_like(x.words, RELATIONS[relation](0, value), np.bool_)
    return map_chunks(_relate_block, *prepare(x, y).blocks, moduli=x.system.moduli, **options)


def order(x: Numbers, y: Operand) -> Any:
    """Order of the numbers of an array and of an array or any integer, as :func:`.compare.order`."""
    if not is_number_array(y) and abs(value := scalar(y)) >= x.system.moduli.product:
        return filled_like(x.words, -1 if value > 0 else 1, np.int8)
    return map_chunks(_order_block, *prepare(x, y).blocks, dtype=np.int8, moduli=x.system.moduli)


def divided(x: Operand, y: Operand, parts: tuple[Part, ...]) -> list[Any]:
    """The `parts` of floor division of an array by any integer or an array, or of an integer by an array.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0; on Dask when the result is computed.
    """
    function: Callable[..., Any]
    options: dict[str, Any] = {}
    if is_number_array(y):
        operands = prepare(x, y)
        system, function, blocks = operands.system, _divide_block, operands.blocks
    elif is_lazy_integer(y):
        system, function, blocks = x.system, _divide_by_lazy_integer, (as_lazy(x.words), y)
    else:
        system, function, blocks = x.system, _divide_by_integer, (x.words,)
        options = {"divisor": scalar(y)}
        if options["divisor"] == 0:
            raise ZeroDivisionError("division of an array by the integer 0")
    options |= {"rows": len(parts) * system.rows, "system": system, "parts": parts}
    stacked = map_chunks(function, *blocks, located=True, **options)
    pieces = (stacked[i * system.rows : (i + 1) * system.rows] for i in range(len(parts)))
    return [made_like((x, y), words, system, "raise") for words in pieces]


def part(x: Numbers, name: str) -> Any:
    """A part of the numbers' headers, one of :data:`.layout.PART_DTYPES`."""
    options: dict[str, Any] = {"moduli": x.system.moduli, "part": name}
    return map_chunks(_part_block, x.words, dtype=layout.PART_DTYPES[name], **options)


def columns_of(x: Numbers) -> Any:
    """Columns of the numbers of an RNSArray."""
    rows = layout.rows_of(x.system.moduli)
    return map_chunks(convert.columns_of_residues, x.words, rows=rows, system=x.system)


def residues_modulo(x: Numbers) -> Any:
    """Residues of the numbers modulo each modulus, whatever range they are meant in."""
    return map_chunks(_modulo_block, x.words, rows=len(x.system.moduli), moduli=x.system.moduli)


def change_moduli(x: Numbers, targets: ModuliSet) -> Any:
    """Columns of the numbers under other moduli, which are checked to hold them."""
    options: dict[str, Any] = {"moduli": x.system.moduli, "targets": targets}
    return map_chunks(_change_moduli, x.words, rows=layout.rows_of(targets), located=True, **options)


def residues_of(x: Numbers, system: RNS) -> Any:
    """Residues of the numbers in another system, which is checked to hold them."""
    return map_chunks(_residues_block, x.words, rows=system.rows, located=True, system=system)


# ---- chunks -----------------------------------------------------------------------------------------------


def _apply_block(
    x: Any,
    y: Any,
    *,
    operation: str,
    system: IntervalRNS,
    mode: str,
    algorithm: int | str | None,
    place: Place,
) -> Any:
    with system.naming_ways_out():
        return arithmetic.apply(operation, x, y, system.moduli, mode, algorithm, place.flat_index)


def _fused_block(*blocks: Any, operation: str, system: IntervalRNS, mode: str, place: Place) -> Any:
    with system.naming_ways_out():
        return widening.apply(operation, blocks, system.moduli, mode, place.flat_index)


def _power_block(x: Any, *, exponent: int, system: IntervalRNS, mode: str, place: Place) -> Any:
    with system.naming_ways_out():
        return interval_powers.power(x, exponent, system.moduli, mode, place.flat_index)


def _power_block_lazily(x: Any, exponent: Any, *, system: IntervalRNS, mode: str, place: Place) -> Any:
    return _power_block(x, exponent=integer_of(exponent), system=system, mode=mode, place=place)


def _inverse_block(x: Any, *, moduli: ModuliSet, place: Place) -> Any:
    return interval_powers.inverse(x, moduli, place.flat_index)


def _order_block(x: Any, y: Any, *, moduli: ModuliSet) -> Any:
    return compare.compare(x, y, moduli)[None]


def _relate_block(x: Any, y: Any, *, relation: str, moduli: ModuliSet) -> Any:
    return RELATIONS[relation](compare.compare(x, y, moduli), 0)[None]


def _relate_integer(x: Any, integer: Any, *, relation: str, system: IntervalRNS) -> Any:
    value = integer_of(integer)
    if abs(value) >= system.moduli.product:
        return np.full_like(x[:1], RELATIONS[relation](0, value), dtype=np.bool_)
    column = system.column(value, x.ndim - 1)
    return _relate_block(x, column, relation=relation, moduli=system.moduli)


def _maximum_block(x: Any, y: Any, *, moduli: ModuliSet) -> Any:
    return choose((compare.compare(x, y, moduli) >= 0)[None], x, y)


def _minimum_block(x: Any, y: Any, *, moduli: ModuliSet) -> Any:
    return choose((compare.compare(x, y, moduli) <= 0)[None], x, y)


def _where_block(mask: Any, x: Any, y: Any, *, moduli: ModuliSet) -> Any:  # noqa: ARG001
    return choose(mask, x, y)


def _sign_block(x: Any, *, moduli: ModuliSet) -> Any:
    nonzero = layout.nonzero(x, moduli).astype(np.int8)
    return np.where(layout.is_negative(x, moduli), -nonzero, nonzero)[None]


def _divide_block(x: Any, y: Any, *, system: IntervalRNS, parts: tuple[Part, ...], place: Place) -> Any:
    return divide.floor_divide(x, y, system.moduli, parts, place.flat_index)


def _divide_by_integer(
    x: Any, *, divisor: int, system: IntervalRNS, parts: tuple[Part, ...], place: Place
) -> Any:
    with system.naming_ways_out():
        return divide.divide_by_integer(x, divisor, system.moduli, parts, place.flat_index)


def _divide_by_lazy_integer(
    x: Any, integer: Any, *, system: IntervalRNS, parts: tuple[Part, ...], place: Place
) -> Any:
    return _divide_by_integer(x, divisor=integer_of(integer), system=system, parts=parts, place=place)


def _part_block(x: Any, *, moduli: ModuliSet, part: str) -> Any:
    return layout.part_of(x, moduli, part)[None]


def _modulo_block(x: Any, *, moduli: ModuliSet) -> Any:
    residues = layout.residues_of(x, moduli)
    return np.where(layout.is_negative(x, moduli), layout.complement(residues, moduli), residues)


def _change_moduli(x: Any, *, moduli: ModuliSet, targets: ModuliSet, place: Place) -> Any:
    return extend.change_moduli(x, moduli, targets, place.flat_index)


def _residues_block(x: Any, *, system: RNS, place: Place) -> Any:
    return convert.residues_of_columns(x, system, place.flat_index)
