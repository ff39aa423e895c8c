"""Division and shifts of arrays of any number system, lazy on Dask: by arrays, and by any integer."""

from typing import Any

import numpy as np

from rnsdask.core import ranges, rows
from rnsdask.core.errors import abbreviate, bits_text, brief
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ranges import Range
from rnsdask.core.rows import Part, Row
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.core.ways import Message, Way, must
from rnsdask.lazy import plan
from rnsdask.lazy.elementwise import align, apply, entry_of, finish, has, map_entry, plan_operation
from rnsdask.lazy.growing import check_shift, extend_operands, extends, grows
from rnsdask.lazy.integer_operands import with_arrays
from rnsdask.lazy.map import map_values
from rnsdask.lazy.operands import (
    Numbers,
    Operand,
    check_machine_integers,
    integer_of,
    is_lazy_integer,
    is_number_array,
    make_like,
    scalar,
    with_machine_integers,
)
from rnsdask.positional.bits import LONGEST_SHIFT
from rnsdask.rns.system import MOST_BITS

_NAMES: dict[tuple[Part, ...], str] = {parts: name for name, parts in rows.floor_divide.numpy.items()}
_RESULTS = {"quotient": ranges.floor_divide, "remainder": ranges.remainder}


def floor_divide(dividend: Operand, divisor: Operand, parts: tuple[Part, ...], name: str = "") -> Any:
    """Divide an array by any integer or an array, or an integer by an array, rounding down: each of `parts`.

    ZeroDivisionError if the divisor is the integer 0. A 0 in an array, or a lazy 0, is found when the result
    is computed; the error names the first index in its chunk.
    """
    dividend, divisor = with_arrays(dividend, divisor)
    by_array, name = is_number_array(divisor), name or _NAMES[parts]
    row = rows.floor_divide if by_array else rows.floor_divide_by
    if grows(*filter(is_number_array, (dividend, divisor))):
        dividend, divisor = _extend(dividend, divisor, parts)
    values = (dividend, divisor) if by_array else (dividend,)
    found = plan_operation(row, values, "raise", name)
    options: dict[str, Any] = {"parts": parts}
    known = found.ranges if by_array else (*found.ranges, _range_of_divisor(divisor, dividend.system))
    if not by_array:
        lazy = is_lazy_integer(divisor)
        options |= {"integer": ("divisor", divisor)} if lazy else {"divisor": scalar(divisor)}
    elif found.entry.ranged:
        options["ranges"] = known
    system = found.system
    words, n = map_entry(row, align(found, values), system, count=len(parts), **options), system.rows
    systems = [plan.result_system(found.meeting, _RESULTS[part], known) for part in parts]
    return [finish(found, values, words[i * n : (i + 1) * n], made) for i, made in enumerate(systems)]


def _extend(dividend: Operand, divisor: Operand, parts: tuple[Part, ...]) -> tuple[Operand, Operand]:
    """Extend operands by the moduli, and a sign, that quotients and remainders need; an integer stays."""

    def results(x: Range, y: Range) -> Range:
        found = [_RESULTS[part](x, y) for part in parts]
        return min(0, *(low for low, _ in found)), max(0, *(high for _, high in found))

    if is_number_array(divisor):
        (dividend, divisor), _ = extend_operands(results, None, dividend, divisor)
        return dividend, divisor
    y = _range_of_divisor(divisor, dividend.system)
    (dividend,), _ = extend_operands(lambda x: results(x, y), None, dividend)
    if y[1] < 0 and not dividend.system.signed:
        (dividend,), _ = extend_operands(lambda x: (-1, x[1]), None, dividend)
    return dividend, divisor


def _range_of_divisor(divisor: Operand, system: NumberSystem) -> Range:
    """Range of an integer, maybe lazy, which may lie outside the system's range."""
    if not is_lazy_integer(divisor):
        return (scalar(divisor),) * 2
    beyond = 4 * max(map(abs, system.value_range))
    return getattr(divisor, "known_range", None) or (-beyond, beyond)


def divide(a: Operand, b: Operand) -> Any:
    """Quotient ``a / b`` in each field; ZeroDivisionError if an element of `b` is 0 in a field."""
    a, b = with_arrays(a, b)
    entry_of(rows.divide_by, a, b, name="divide")
    if is_number_array(a) and 0 in a.words.shape[1:]:  # there is nothing to divide, so b may be 0
        return apply(rows.multiply, a, b)
    if is_number_array(b):
        return apply(rows.multiply, a, apply(rows.inverse, b))
    if is_lazy_integer(b):
        words = map_entry(rows.divide_by, (a.words,), a.system, integer=("divisor", b))
        return make_like((a,), words, a.system, "raise")
    return apply(rows.divide_by, a, divisor=scalar(b))


# ---- shifts -----------------------------------------------------------------------------------------------


def left_shift(x: Operand, bits: Any, overflow: str | None) -> Any:
    """Multiply by powers of two, as :func:`.functions.left_shift`."""
    check_machine_integers(bits, "numbers of bits", "rd.from_ints(a, rd.Positional(bits)) <<")
    if has(rows.left_shift, x) and is_number_array(x):
        return _apply_shift(rows.left_shift, x, bits, overflow)
    _check_shifts(rows.left_shift, x)
    # For residues, a product with a power of two, which must itself be in range.
    if not is_lazy_integer(bits):
        bits = _shift(bits)
    if extends(overflow, x):
        check_shift(bits)
        return apply(rows.multiply, x, _power_of_two(bits, MOST_BITS), overflow=overflow)
    most = x.system.moduli.bits
    if not is_lazy_integer(bits) and bits > most:
        raise x.system.out_of_range(f"the factor of a shift by {bits_text(bits)}")
    return apply(rows.multiply, x, _power_of_two(bits, most), overflow=overflow)


def right_shift(x: Operand, bits: Any) -> Any:
    """Divide by powers of two, rounding down, as :func:`.functions.right_shift`."""
    check_machine_integers(bits, "numbers of bits", "rd.from_ints(a, rd.Positional(bits)) >>")
    if has(rows.right_shift, x) and is_number_array(x):
        return _apply_shift(rows.right_shift, x, bits, "raise")
    _check_shifts(rows.right_shift, x)
    # No number is longer than the range, so longer shifts have the same result.
    most = max(end.bit_length() for end in x.system.value_range)
    return floor_divide(x, _power_of_two(bits, most), ("quotient",), "right_shift")[0]


def _check_shifts(row: Row[..., Any], x: Operand) -> None:
    """Raise TypeError unless the system can shift, by products or quotients."""
    if not has(rows.floor_divide_by, x) or not is_number_array(x):
        entry_of(row, x)


def _apply_shift(row: Row[..., Any], x: Numbers, bits: Any, overflow: str | None) -> Any:
    found, integer = plan_operation(row, (x,), overflow), None
    blocks: tuple[Any, ...] = (x.words,)
    if is_lazy_integer(bits):
        integer = ("counts", bits)
    elif np.ndim(bits) == 0:
        value = scalar(bits)
        if value < 0:
            raise ValueError(must("bits", f"not be negative, got {brief(value)}"))
        blocks = (x.words, np.full((1,) * x.words.ndim, min(value, LONGEST_SHIFT), dtype=np.int64))
    else:
        blocks = with_machine_integers(x, bits, "numbers of bits")
    return finish(found, (x,), map_entry(row, blocks, found.system, mode=found.mode, integer=integer))


def _shift(bits: Any) -> int:
    """Convert a number of bits to a Python int, for shifts of residues."""
    if getattr(bits, "ndim", 0) or isinstance(bits, list | tuple):
        raise TypeError(
            Message(
                "residues are shifted by one integer, got an array; ",
                Way.LIMBS,
                " makes numbers that are shifted by one each",
            )
        )
    return as_integer(bits, "shift")


def _power_of_two(bits: Any, most: int) -> Any:
    """Return ``2**bits``, or ``2**most`` if `bits` is greater; lazy if `bits` is."""
    if is_lazy_integer(bits):
        return map_values(_lazy_power_of_two, bits, most=most, dtype=object)
    count = _shift(bits)
    if count < 0:
        raise ValueError(f"shift must not be negative, got {abbreviate(count)}")
    return 1 << min(count, most)


def _lazy_power_of_two(bits: Any, most: int) -> ScalarInt:
    return ScalarInt(_power_of_two(integer_of(bits), most))
