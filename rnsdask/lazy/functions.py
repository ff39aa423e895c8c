"""Element-wise functions of arrays of numbers, for every number system."""

from __future__ import annotations

import builtins
from typing import Any, Literal, overload

import numpy as np

from rnsdask.core import rows
from rnsdask.core.errors import brief
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.rows import Part, Row
from rnsdask.core.ways import must
from rnsdask.lazy import divide as division
from rnsdask.lazy import elementwise
from rnsdask.lazy.elementwise import apply, entry_of, has
from rnsdask.lazy.integer_operands import are_integers, sides_of, with_arrays
from rnsdask.lazy.operands import N, Numbers, Operand, ends_of, is_lazy_integer, is_number_array
from rnsdask.lazy.promotion import fit
from rnsdask.rns.compare import RELATIONS
from rnsdask.typing import Condition, Flag, Flagged, Integers, Overflow, PlainArray


def _of_bits(row: Row[..., Any], a: Operand, b: Operand, overflow: str | None, bits: str | None) -> Any:
    """Apply an operation whose result may have its own number of bits."""
    if bits is None:
        return apply(row, a, b, overflow=overflow)
    systems = [operand.system for operand in (a, b) if is_number_array(operand)]
    have_bits = all(system.exact_system(row, system) is not None for system in systems)
    if bits != "exact" or not have_bits:
        raise (ValueError if have_bits else TypeError)(
            must("bits", f"be None, or 'exact' for PositionalArrays, got {brief(bits)}")
        )
    return elementwise.apply_exactly(row, a, b, overflow)


@overload
def add(
    a: N | Integers,
    b: N | Integers,
    *,
    overflow: Overflow | None = None,
    bits: Literal["exact"] | None = None,
) -> N: ...
@overload
def add(
    a: N | Integers, b: N | Integers, *, overflow: Flag, bits: Literal["exact"] | None = None
) -> Flagged[N]: ...
def add(
    a: N | Integers,
    b: N | Integers,
    *,
    overflow: Overflow | Flag | None = None,
    bits: Literal["exact"] | None = None,
) -> N | Flagged[N]:
    """Sum ``a + b``, element by element.

    FieldArrays never overflow: they take no `overflow`, and integers of any size.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, PositionalArray, FieldArray, int, or integers
        At least one array of numbers. Arrays must have the same moduli set, or bits, and range, or a common
        number system (:func:`.result_system`), and be on the same processor. Shapes broadcast as in NumPy. An
        integer must be in the range too, unless the range grows. It may be lazy, such as ``x.max()`` of a
        Dask array, and is then checked when it is computed. Nested lists of integers, and arrays of NumPy,
        CuPy or Dask of an integer type or of objects, are converted to the other operand's system, which must
        hold them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range. The default is the mode set by :func:`.errstate`, else
        ``"extend"`` for arrays whose range grows and ``"raise"`` for others.
    bits : "exact", optional
        Only for PositionalArrays, which may then differ in bits or sign: the result has as many bits as any
        sum needs, one more than the operands, so that nothing overflows.

    Returns
    -------
    RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        Lazy if an operand is. With ``"wrap"``, a result out of range is reduced modulo M; in
        IntervalRNSArrays it keeps its sign, and its magnitude is reduced modulo M. With ``"flag"`` a pair of
        this result and a Boolean array that is true where results are out of range.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, an item of a list is not an integer or out of range (the message
        names its position), or `overflow` is not a mode.
    """
    found: N | Flagged[N] = _of_bits(rows.add, a, b, overflow, bits)
    return found


@overload
def subtract(
    a: N | Integers,
    b: N | Integers,
    *,
    overflow: Overflow | None = None,
    bits: Literal["exact"] | None = None,
) -> N: ...
@overload
def subtract(
    a: N | Integers, b: N | Integers, *, overflow: Flag, bits: Literal["exact"] | None = None
) -> Flagged[N]: ...
def subtract(
    a: N | Integers,
    b: N | Integers,
    *,
    overflow: Overflow | Flag | None = None,
    bits: Literal["exact"] | None = None,
) -> N | Flagged[N]:
    """Difference ``a - b``, as :func:`add`; in unsigned arrays a result below 0 is an overflow.

    With ``bits="exact"`` the result is signed.
    """
    found: N | Flagged[N] = _of_bits(rows.subtract, a, b, overflow, bits)
    return found


@overload
def multiply(
    a: N | Integers,
    b: N | Integers,
    *,
    overflow: Overflow | None = None,
    bits: Literal["exact"] | None = None,
) -> N: ...
@overload
def multiply(
    a: N | Integers, b: N | Integers, *, overflow: Flag, bits: Literal["exact"] | None = None
) -> Flagged[N]: ...
def multiply(
    a: N | Integers,
    b: N | Integers,
    *,
    overflow: Overflow | Flag | None = None,
    bits: Literal["exact"] | None = None,
) -> N | Flagged[N]:
    """Product ``a * b``, as :func:`add`; with ``bits="exact"`` it has the sum of the operands' bits."""
    found: N | Flagged[N] = _of_bits(rows.multiply, a, b, overflow, bits)
    return found


@overload
def negative(a: N, *, overflow: Overflow | None = None) -> N: ...
@overload
def negative(a: N, *, overflow: Flag) -> Flagged[N]: ...
def negative(a: N, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Opposite number ``-a``, as :func:`add`; in an unsigned array only 0 does not overflow."""
    found: N | Flagged[N]
    if has(rows.negative, a):
        found = apply(rows.negative, a, overflow=overflow)
        return found
    found = apply(rows.subtract, 0, a, overflow=overflow)
    return found


@overload
def square(a: N, *, overflow: Overflow | None = None, bits: Literal["exact"] | None = None) -> N: ...
@overload
def square(a: N, *, overflow: Flag, bits: Literal["exact"] | None = None) -> Flagged[N]: ...
def square(
    a: N, *, overflow: Overflow | Flag | None = None, bits: Literal["exact"] | None = None
) -> N | Flagged[N]:
    """Square ``a * a``, as :func:`multiply`."""
    return multiply(a, a, overflow=overflow, bits=bits)


@overload
def absolute(x: N, *, overflow: Overflow | None = None) -> N: ...
@overload
def absolute(x: N, *, overflow: Flag) -> Flagged[N]: ...
def absolute(x: N, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Absolute value ``abs(x)``, as :func:`add`; it overflows only for the lowest signed number."""
    found: N | Flagged[N] = elementwise.absolute(x, overflow)
    return found


def clip(x: N, min: N | Integers | None = None, max: N | Integers | None = None) -> N:  # noqa: A002
    """Limit the numbers of an array to the interval from `min` to `max`, as ``numpy.clip``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    min, max : array like `x`, int or None
        The ends; None for no limit. Shapes broadcast. Where `min` is above `max`, the result is `max`. A
        limit that no number of `x` can exceed may be an integer of any size.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit one another: systems, moduli sets, ranges, shapes, processors.
    """
    if not is_number_array(x):
        raise TypeError(f"clip takes an array of numbers, got {type(x).__name__}")
    entry_of(rows.compare, x, name="clip")
    numbers, *limits = with_arrays(x, min, max)
    low, high = _range_of(numbers, numbers.system)
    sides = (("maximum", builtins.max), ("minimum", builtins.min))
    for end, (name, farther) in zip(limits, sides, strict=True):
        if end is None:
            continue
        ends = _range_of(end, numbers.system)
        after = farther(low, ends[0]), farther(high, ends[1])
        # Only an integer may be left out: an array may broadcast to a greater shape, or raise when it is
        # computed.
        if is_number_array(end) or is_lazy_integer(end) or after != (low, high):
            numbers = elementwise.choose_greater(name, numbers, end)
        low, high = after
    limited: N = fit(type(numbers)(numbers.words, numbers.system.holding((low, high))))
    return limited


def _range_of(operand: Operand, system: NumberSystem) -> tuple[int, int]:
    """Return the least and the greatest value of an operand, maybe beyond the range."""
    if is_number_array(operand):
        known: tuple[int, int] = operand.system.known_range
        return known
    ends = ends_of(operand) or system.value_range
    return ends[0], ends[-1]


@overload
def fma(a: N | Integers, b: N | Integers, c: N | Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def fma(a: N | Integers, b: N | Integers, c: N | Integers, *, overflow: Flag) -> Flagged[N]: ...
def fma(
    a: N | Integers, b: N | Integers, c: N | Integers, *, overflow: Overflow | Flag | None = None
) -> N | Flagged[N]:
    """``a * b + c`` in one pass, as :func:`add`; only the final result must be in range."""
    found: N | Flagged[N] = apply(rows.fma, a, b, c, overflow=overflow)
    return found


@overload
def mulsub(
    a: N | Integers, b: N | Integers, c: N | Integers, d: N | Integers, *, overflow: Overflow | None = None
) -> N: ...
@overload
def mulsub(
    a: N | Integers, b: N | Integers, c: N | Integers, d: N | Integers, *, overflow: Flag
) -> Flagged[N]: ...
def mulsub(
    a: N | Integers,
    b: N | Integers,
    c: N | Integers,
    d: N | Integers,
    *,
    overflow: Overflow | Flag | None = None,
) -> N | Flagged[N]:
    """``a * b - c * d`` in one pass, as :func:`add`; only the final result must be in range."""
    found: N | Flagged[N] = apply(rows.mulsub, a, b, c, d, overflow=overflow)
    return found


@overload
def muladd(
    a: N | Integers, b: N | Integers, c: N | Integers, d: N | Integers, *, overflow: Overflow | None = None
) -> N: ...
@overload
def muladd(
    a: N | Integers, b: N | Integers, c: N | Integers, d: N | Integers, *, overflow: Flag
) -> Flagged[N]: ...
def muladd(
    a: N | Integers,
    b: N | Integers,
    c: N | Integers,
    d: N | Integers,
    *,
    overflow: Overflow | Flag | None = None,
) -> N | Flagged[N]:
    """``a * b + c * d`` in one pass, as :func:`add`; only the final result must be in range."""
    found: N | Flagged[N] = apply(rows.muladd, a, b, c, d, overflow=overflow)
    return found


def sign(x: Numbers) -> PlainArray[np.int8]:
    """Sign of each number: -1, 0 or +1.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The numbers.

    Returns
    -------
    array of int8, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is not an array of numbers.
    """
    found: PlainArray[np.int8] = apply(rows.sign, x)
    return found


def maximum(a: N | Integers, b: N | Integers) -> N:
    """The greater of two numbers, element by element.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, int, or integers
        At least one array of numbers; two must be of one kind. Shapes broadcast. Integers, and lists and
        plain arrays of them, must be in the array's range.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit one another: systems, moduli sets, ranges, shapes, processors.
    """
    found: N = elementwise.choose_greater("maximum", a, b)
    return found


def minimum(a: N | Integers, b: N | Integers) -> N:
    """The lesser of two numbers, element by element, as :func:`maximum`."""
    found: N = elementwise.choose_greater("minimum", a, b)
    return found


def where(condition: Condition, a: N | Integers, b: N | Integers) -> N:
    """Choose the numbers of `a` where a condition holds, elsewhere those of `b`.

    Parameters
    ----------
    condition : Boolean NumPy, CuPy or Dask array
        For instance a comparison of arrays of numbers.
    a, b : RNSArray, IntervalRNSArray, FieldArray, int, or integers
        Two arrays of numbers must be of one kind. All shapes broadcast. Lists and plain arrays of integers
        beside an array of numbers are as in :func:`add`.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if an operand or the condition is. Without an array of numbers, an RNSArray whose range grows.

    Raises
    ------
    TypeError, ValueError
        If the condition is not Boolean, or the operands do not fit one another.
    """
    found: N = elementwise.choose_by(condition, a, b)
    return found


def divide(a: N | Integers, b: N | Integers) -> N:
    """Quotient ``a / b`` of arrays of field elements, or integers as in :func:`add`."""
    found: N = division.divide(a, b)
    return found


def relate(a: Any, relation: str, b: Operand) -> PlainArray[np.bool_]:
    """Compare by a relation such as ``"<"``: a Boolean array, lazy if an operand is.

    Integers, including those in lists and arrays in memory, may be of any size.
    """
    found: PlainArray[np.bool_]
    sides = sides_of(b, a) if are_integers(b) and has(rows.compare, a) else None
    if sides is None:
        a, b = with_arrays(a, b)
        found = elementwise.relate(a, relation, b)
    else:  # for integers out of range, the side decides
        within, side = sides
        found = (relate(a, relation, within) & (side == 0)) | ((side != 0) & RELATIONS[relation](0, side))
    return found


def floor_divide(dividend: N | Integers, divisor: N | Integers, *parts: Part) -> list[N]:
    """Apply floor division, and return the `parts` as arrays: ``"quotient"`` and ``"remainder"``."""
    results: list[Any] = division.floor_divide(dividend, divisor, parts)
    return results


# ---- bits -------------------------------------------------------------------------------------------------


def bitwise_and(a: N | Integers, b: N | Integers) -> N:
    """Bits that are 1 in both numbers, element by element, as ``&`` in Python and NumPy.

    Parameters
    ----------
    a, b : PositionalArray, int, or integers
        At least one array of numbers; two must have the same bits and range, on the same processor. Shapes
        broadcast. Integers must be in the range too; lists and plain arrays of them are as in :func:`add`.
        Negative numbers have infinitely many leading ones.

    Returns
    -------
    PositionalArray
        Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        If operands do not fit one another, or are of another type.
    """
    found: N = apply(rows.bitwise_and, a, b)
    return found


def bitwise_or(a: N | Integers, b: N | Integers) -> N:
    """Bits that are 1 in either of two numbers, as :func:`bitwise_and`."""
    found: N = apply(rows.bitwise_or, a, b)
    return found


def bitwise_xor(a: N | Integers, b: N | Integers) -> N:
    """Bits that are 1 in exactly one of two numbers, as :func:`bitwise_and`."""
    found: N = apply(rows.bitwise_xor, a, b)
    return found


def invert(x: N) -> N:
    """Invert all bits of a PositionalArray's numbers: ``-1 - x``, or ``2**bits - 1 - x`` if unsigned.

    Returns an array like `x`. Raises TypeError if `x` is not a PositionalArray.
    """
    found: N = apply(rows.invert, x)
    return found


def bitwise_count(x: Numbers) -> PlainArray[np.int64]:
    """Count the 1 bits of each magnitude in a PositionalArray, as ``numpy.bitwise_count``.

    Returns
    -------
    array of int64, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is not a PositionalArray.
    """
    found: PlainArray[np.int64] = apply(rows.bitwise_count, x)
    return found


@overload
def left_shift(x: N, bits: Integers, *, overflow: Overflow | None = None) -> N: ...
@overload
def left_shift(x: N, bits: Integers, *, overflow: Flag) -> Flagged[N]: ...
def left_shift(x: N, bits: Integers, *, overflow: Overflow | Flag | None = None) -> N | Flagged[N]:
    """Product ``x * 2**bits``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers.
    bits : int or array of machine integers
        Not negative, of any size: one shift for all numbers, which may be lazy; for a PositionalArray also an
        array that broadcasts with the numbers. For residues, ``2**bits`` must itself be in the range.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As in :func:`add`.

    Returns
    -------
    array like `x`
        Lazy if an operand is; with ``"flag"`` a pair, as in :func:`add`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an argument is not of these types, or a shift is negative; it names the index of the first.
    """
    found: N | Flagged[N] = division.left_shift(x, bits, overflow)
    return found


def right_shift(x: N, bits: Integers) -> N:
    """Quotient ``x // 2**bits``, rounded down, as :func:`left_shift`; nothing overflows."""
    found: N = division.right_shift(x, bits)
    return found
