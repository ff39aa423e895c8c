"""Operations of arrays of positional numbers and of integers: lazy on Dask (:mod:`rnsdask.positional`)."""

from typing import Any, NoReturn

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import brief, with_article
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import ALONE, Place
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    broadcast_shape,
    check_same_processor,
    filled_like,
    find_lengths,
    integer_of,
    is_lazy_integer,
    is_number_array,
    made_like,
    prepare,
    scalar,
    with_axes,
    with_machine_integers,
)
from rnsdask.positional import arithmetic, bits, compare
from rnsdask.positional.system import Positional
from rnsdask.rns.compare import RELATIONS, choose
from rnsdask.rns.divide import Part
from rnsdask.rns.powers import check_exponent
from rnsdask.rns.system import RNS


def refuse(name: str) -> NoReturn:
    """Raise the TypeError of what positional numbers do not have, and residues do."""
    raise TypeError(f"{name} takes no PositionalArray; x.to_rns(moduli) makes residues of its numbers")


def apply(name: str, *values: Operand, overflow: str | None = None, bits: str | None = None) -> Any:
    """One of :data:`.OPERATIONS`, as :func:`.functions.add` says."""
    mode = overflow_mode(overflow)
    if bits is None:
        operands = prepare(*values)
        system, systems, blocks = operands.system, (operands.system,) * len(values), operands.blocks
    elif bits == "exact":
        blocks, systems = _of_any_bits(*values)
        system = arithmetic.result_system(name, *systems)
    else:
        raise ValueError(f"bits must be None or 'exact', got {brief(bits)}")
    options: dict[str, Any] = {"operation": name, "systems": systems, "system": system, "mode": mode}
    rows = system.rows + (mode == "flag")
    words = map_chunks(
        _apply_block, *blocks, rows=rows, located=mode == "raise", token=f"positional-{name}", **options
    )
    return made_like(values, words, system, mode)


def _of_any_bits(x: Operand, y: Operand) -> tuple[Any, tuple[Positional, ...]]:
    """Operands of one kind, and what each is in: arrays may differ in bits and signs."""
    arrays = [value for value in (x, y) if is_number_array(value)]
    if len(arrays) < 2 or arrays[0].system.same_numbers(arrays[1].system):
        operands = prepare(x, y)
        return operands.blocks, (operands.system, operands.system)
    find_lengths(*arrays)
    check_same_processor([array.words for array in arrays])
    shape = broadcast_shape([tuple(array.words.shape[1:]) for array in arrays])
    return tuple(with_axes(array.words, len(shape)) for array in arrays), (x.system, y.system)


def negative(x: Numbers, *, overflow: str | None = None) -> Any:
    """Opposite number ``-x``; of unsigned numbers only 0 has one."""
    return apply("subtract", 0, x, overflow=overflow)


def absolute(x: Numbers, *, overflow: str | None = None) -> Any:
    """Absolute value of each number; only the lowest signed number's is out of range."""
    mode, system, words = overflow_mode(overflow), x.system, x.words
    if not system.signed:
        result = made_like((x,), words, system, "raise")
        return (result, filled_like(words, 0, np.bool_)) if mode == "flag" else result
    rows = system.rows + (mode == "flag")
    words = map_chunks(_absolute_block, words, rows=rows, located=True, system=system, mode=mode)
    return made_like((x,), words, system, mode)


def power(x: Numbers, exponent: Any, *, overflow: str | None = None) -> Any:
    """Powers of each number, as :func:`.powers.power` says."""
    if is_number_array(exponent):
        raise TypeError(f"exponents must be machine integers, got {with_article(type(exponent))}")
    mode, system, words = overflow_mode(overflow), x.system, x.words
    options: dict[str, Any] = {"rows": system.rows + (mode == "flag"), "system": system, "mode": mode}
    if is_lazy_integer(exponent):
        words = map_chunks(_power_block_lazily, as_lazy(words), exponent, located=True, **options)
    elif np.ndim(exponent) == 0:
        options["exponent"] = as_integer(exponent, "exponent")
        check_exponent(options["exponent"])
        words = map_chunks(_power_block, words, located=True, **options)
    else:
        blocks = with_machine_integers(x, exponent, "exponents")
        words = map_chunks(_power_block_by_array, *blocks, located=True, **options)
    return made_like((x,), words, system, mode)


def divided(x: Operand, y: Operand, parts: tuple[Part, ...]) -> list[Any]:
    """The `parts` of floor division of an array by any integer or an array, or of an integer by an array.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0; on Dask when the result is computed.
    """
    function: Any = _divided_block
    if is_number_array(y):
        operands = prepare(x, y)
        system, blocks = operands.system, operands.blocks
        options: dict[str, Any] = {"systems": (system, system)}
    elif is_lazy_integer(y):
        function, system, blocks, options = _divided_by_lazy_integer, x.system, (as_lazy(x.words), y), {}
    else:
        system, value = x.system, scalar(y)
        if value == 0:
            raise ZeroDivisionError("division of an array by the integer 0")
        words, given = divisor_words(value, x.words.ndim - 1)
        blocks, options = (x.words, words), {"systems": (system, given)}
    options |= {"rows": len(parts) * system.rows, "system": system, "parts": parts}
    stacked = map_chunks(function, *blocks, located=True, **options)
    pieces = (stacked[i * system.rows : (i + 1) * system.rows] for i in range(len(parts)))
    return [made_like((x, y), words, system, "raise") for words in pieces]


def divisor_words(value: int, ndim: int) -> tuple[Any, Positional]:
    """Any integer in as many bits as it takes."""
    system = Positional(max(1, value.bit_length() + (value < 0)), value < 0)
    return system.column(value, ndim), system


# ---- bits -------------------------------------------------------------------------------------------------


def logic(name: str, x: Operand, y: Operand) -> Any:
    """One of :data:`.bits.LOGIC`, as :func:`.functions.bitwise_and` says."""
    operands = prepare(x, y)
    options: dict[str, Any] = {"operation": name, "rows": operands.system.rows, "token": name}
    return made_like((x, y), map_chunks(_logic_block, *operands.blocks, **options), operands.system, "raise")


def invert(x: Numbers) -> Any:
    """All bits of each number inverted."""
    words = map_chunks(_invert_block, x.words, rows=x.system.rows, system=x.system)
    return made_like((x,), words, x.system, "raise")


def bitwise_count(x: Numbers) -> Any:
    """Ones of each magnitude: int64, lazy on Dask."""
    return map_chunks(_count_block, x.words, dtype=np.int64, system=x.system)


def right_shift(x: Numbers, counts: Any) -> Any:
    """Floor division by powers of two, as :func:`.functions.right_shift` says."""
    blocks, options = _shift_operands(x, counts)
    words = map_chunks(_right_shift_block, *blocks, rows=x.system.rows, located=True, **options)
    return made_like((x,), words, x.system, "raise")


def left_shift(x: Numbers, counts: Any, *, overflow: str | None = None) -> Any:
    """Products with powers of two, as :func:`.functions.left_shift` says."""
    mode, system = overflow_mode(overflow), x.system
    blocks, options = _shift_operands(x, counts)
    rows = system.rows + (mode == "flag")
    words = map_chunks(_left_shift_block, *blocks, rows=rows, located=True, mode=mode, **options)
    return made_like((x,), words, system, mode)


def _shift_operands(x: Numbers, counts: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Words and counts that broadcast, and the system."""
    if not is_number_array(x):
        raise TypeError(f"a shift takes an array of numbers on its left, got {type(x).__name__}")
    if is_number_array(counts):
        raise TypeError(f"numbers of bits must be machine integers, got {with_article(type(counts))}")
    words, options = x.words, {"system": x.system}
    if is_lazy_integer(counts):
        return (as_lazy(words), counts), options
    if np.ndim(counts) == 0:
        value = scalar(counts)
        if value < 0:
            raise ValueError(f"bits must not be negative, got {brief(value)}")
        column = np.full((1,) * words.ndim, min(value, bits.LONGEST_SHIFT), dtype=np.int64)
        return (words, column), options
    return with_machine_integers(x, counts, "numbers of bits"), options


# ---- order ------------------------------------------------------------------------------------------------


def maximum(x: Operand, y: Operand) -> Any:
    """The greater of two numbers, element by element."""
    return _extremum(x, y, minimum=False)


def minimum(x: Operand, y: Operand) -> Any:
    """The lesser of two numbers, element by element."""
    return _extremum(x, y, minimum=True)


def _extremum(x: Operand, y: Operand, minimum: bool) -> Any:
    operands = prepare(x, y)
    system = operands.system
    words = map_chunks(_extremum_block, *operands.blocks, rows=system.rows, system=system, minimum=minimum)
    return made_like((x, y), words, system, "raise")


def where(condition: Any, x: Operand, y: Operand) -> Any:
    """The number of `x` where a condition holds, a Boolean array, else that of `y`."""
    operands = prepare(x, y, masks=(condition,))
    words = map_chunks(choose, *operands.blocks, rows=operands.system.rows)
    return made_like((x, y), words, operands.system, "raise")


def sign(x: Numbers) -> Any:
    """Sign of each number: an int8 array of -1, 0 and +1."""
    return map_chunks(_sign_block, x.words, dtype=np.int8, system=x.system)


def relate(x: Numbers, relation: str, y: Operand) -> Any:
    """Where ``x relation y`` holds, for an array and an array or any integer: a Boolean array."""
    if is_lazy_integer(y):
        options: dict[str, Any] = {"dtype": np.bool_, "relation": relation, "system": x.system}
        return map_chunks(_relate_integer, as_lazy(x.words), y, **options)
    if not is_number_array(y) and (side := _side_of(scalar(y), x.system)):
        return filled_like(x.words, RELATIONS[relation](0, side), np.bool_)
    operands = prepare(x, y)
    options = {"dtype": np.bool_, "relation": relation, "system": operands.system}
    return map_chunks(_relate_block, *operands.blocks, **options)


def order(x: Numbers, y: Operand) -> Any:
    """Order of the numbers of an array and of an array or any integer, as :func:`.compare.order`."""
    if not is_number_array(y) and not is_lazy_integer(y) and (side := _side_of(scalar(y), x.system)):
        return filled_like(x.words, -side, np.int8)
    operands = prepare(x, y)
    return map_chunks(_order_block, *operands.blocks, dtype=np.int8, system=operands.system)


def _side_of(value: int, system: Positional) -> int:
    """-1 or +1 if an integer is below or above the range, else 0."""
    lowest, highest = system.value_range
    return int(value > highest) - int(value < lowest)


# ---- other systems ----------------------------------------------------------------------------------------


def words_in(x: Numbers, system: NumberSystem) -> Any:
    """Words of the numbers of an array in another system, which is checked to hold them."""
    options: dict[str, Any] = {"system": system, "given": x.system}
    return map_chunks(_converted_block, x.words, rows=system.rows, located=True, **options)


# ---- chunks -----------------------------------------------------------------------------------------------


def _apply_block(
    *blocks: Array,
    operation: str,
    systems: tuple[Positional, ...],
    system: Positional,
    mode: str,
    place: Place = ALONE,
) -> Array:
    return arithmetic.apply(operation, blocks, systems, system, mode, place.flat_index)


def _absolute_block(x: Array, *, system: Positional, mode: str, place: Place) -> Array:
    zero = np.zeros((len(x), *(1,) * (x.ndim - 1)), np.uint32)
    is_negative = x[-1:] >> np.uint32(31) != 0
    # Only numbers below 0 can have no opposite.
    opposite = arithmetic.apply("subtract", (zero, x), (system, system), system, mode, place.flat_index)
    chosen = choose(is_negative, opposite[: len(x)], x)
    return np.concatenate([chosen, opposite[len(x) :]]) if mode == "flag" else chosen


def _power_block(x: Array, *, exponent: int, system: Positional, mode: str, place: Place) -> Array:
    return arithmetic.power(x, exponent, system, mode, place.flat_index)


def _power_block_lazily(x: Array, exponent: Any, *, system: Positional, mode: str, place: Place) -> Array:
    value = integer_of(exponent)
    check_exponent(value)
    return arithmetic.power(x, value, system, mode, place.flat_index)


def _power_block_by_array(
    x: Array, exponents: Array, *, system: Positional, mode: str, place: Place
) -> Array:
    return arithmetic.power(x, exponents, system, mode, place.flat_index)


def _divided_block(
    x: Array,
    y: Array,
    *,
    systems: tuple[Positional, Positional],
    system: Positional,
    parts: tuple[Part, ...],
    place: Place,
) -> Array:
    return arithmetic.divided(x, y, systems, system, parts, place.flat_index)


def _divided_by_lazy_integer(
    x: Array, integer: Any, *, system: Positional, parts: tuple[Part, ...], place: Place
) -> Array:
    words, given = divisor_words(integer_of(integer), x.ndim - 1)
    return arithmetic.divided(x, words, (system, given), system, parts, place.flat_index)


def _logic_block(x: Array, y: Array, *, operation: str) -> Array:
    return bits.logic(operation, x, y)


def _invert_block(x: Array, *, system: Positional) -> Array:
    return bits.invert(x, system)


def _count_block(x: Array, *, system: Positional) -> Array:
    return bits.count(x, system, "ones")[None]


def _right_shift_block(x: Array, counts: Any, *, system: Positional, place: Place) -> Array:
    return bits.right_shift(x, _count_column(counts, x), system, place.flat_index)


def _left_shift_block(x: Array, counts: Any, *, system: Positional, mode: str, place: Place) -> Array:
    return bits.left_shift(x, _count_column(counts, x), system, mode, place.flat_index)


def _count_column(counts: Any, x: Array) -> Array:
    """An array of counts (1, *shape); of a lazy integer, which has no axes, a column."""
    if np.ndim(counts):
        return counts
    value = integer_of(counts)
    if value < 0:
        raise ValueError(f"bits must not be negative, got {brief(value)}")
    return np.full((1,) * x.ndim, min(value, bits.LONGEST_SHIFT), dtype=np.int64)


def _extremum_block(x: Array, y: Array, *, system: Positional, minimum: bool) -> Array:
    order = compare.compare(x, y, system)[None]
    return choose(order <= 0 if minimum else order >= 0, x, y)


def _sign_block(x: Array, *, system: Positional) -> Array:
    return compare.sign(x, system)[None]


def _order_block(x: Array, y: Array, *, system: Positional) -> Array:
    return compare.compare(x, y, system)[None]


def _relate_block(x: Array, y: Array, *, relation: str, system: Positional) -> Array:
    return RELATIONS[relation](compare.compare(x, y, system), 0)[None]


def _relate_integer(x: Array, integer: Any, *, relation: str, system: Positional) -> Array:
    value = integer_of(integer)
    if side := _side_of(value, system):
        return np.full_like(x[:1], RELATIONS[relation](0, side), dtype=np.bool_)
    return _relate_block(x, system.column(value, x.ndim - 1), relation=relation, system=system)


def _converted_block(x: Array, *, system: NumberSystem, given: NumberSystem, place: Place) -> Array:
    limbs, signed = given.limbs_of(as_matrix(x)), given.is_signed
    if isinstance(system, RNS) and system.signed and not signed:  # it takes limbs with a sign alone
        limbs, signed = np.concatenate([limbs, np.zeros_like(limbs[:, :1])], axis=1), True
    words: Array = system.words_of_limbs(limbs, signed, place.flat_index)
    return words.reshape(system.rows, *x.shape[1:])
