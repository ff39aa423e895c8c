"""The functions of arrays of numbers: each calls what the number system of its operands has for it."""

import builtins
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rnsdask.core.errors import bits_text, brief, with_article
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.operations import OPERATIONS
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.system import PrimeFields
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy import absolute as absolutes
from rnsdask.lazy import arithmetic, compare, fields, interval_rns, positional
from rnsdask.lazy import divide as division
from rnsdask.lazy.growing import check_shift, extends
from rnsdask.lazy.integer_operands import are_integers, sides_of, with_arrays
from rnsdask.lazy.operands import Numbers, Operand, ends_of, is_lazy_integer, is_number_array
from rnsdask.lazy.promotion import fitted
from rnsdask.positional.bits import LOGIC
from rnsdask.positional.system import Positional
from rnsdask.rns.compare import RELATIONS
from rnsdask.rns.divide import Part
from rnsdask.rns.promotion import MOST_BITS
from rnsdask.rns.system import RNS

Functions = Mapping[str, Callable[..., Any]]

_OF_FIELDS: Functions = {
    **{name: partial(fields.apply, name) for name in OPERATIONS},
    "negative": lambda a, **options: fields.apply("subtract", 0, a, **options),
    **{f.__name__: f for f in (fields.divide, fields.relate, fields.where)},
}


def _left_shift(x: Numbers, bits: Any, *, overflow: str | None = None) -> Any:
    """Products of residues with a power of two, which must be in the range itself."""
    if extends(overflow, x):
        check_shift(bits)
        return multiply(x, division.power_of_two(bits, MOST_BITS), overflow=overflow)
    most = x.system.moduli.bits
    if not is_lazy_integer(bits) and (count := division.shift(bits)) > most:
        raise x.system.out_of_range(f"the factor of a shift by {bits_text(count)}")
    return multiply(x, division.power_of_two(bits, most), overflow=overflow)


def _right_shift(x: Numbers, bits: Any) -> Any:
    # No number is longer than M, so that all further shifts give the same.
    return divided(x, division.power_of_two(bits, x.system.moduli.bits), "quotient")[0]


_OF_RESIDUES: Functions = {"left_shift": _left_shift, "right_shift": _right_shift}

_FUNCTIONS: dict[type[NumberSystem], Functions] = {
    RNS: {
        **_OF_RESIDUES,
        **{name: partial(arithmetic.apply, name) for name in OPERATIONS},
        "negative": lambda a, **options: arithmetic.apply("subtract", 0, a, **options),
        **{f.__name__: f for f in (compare.maximum, compare.minimum, compare.where, compare.sign)},
        **{f.__name__: f for f in (compare.relate, compare.order, division.divided, absolutes.absolute)},
    },
    IntervalRNS: {
        **_OF_RESIDUES,
        **{name: partial(interval_rns.apply, name) for name in ("add", "subtract", "multiply")},
        **{name: partial(interval_rns.fused, name) for name in ("fma", "mulsub", "muladd")},
        **{f.__name__: f for f in (interval_rns.negative, interval_rns.maximum, interval_rns.minimum)},
        **{f.__name__: f for f in (interval_rns.where, interval_rns.sign)},
        **{f.__name__: f for f in (interval_rns.relate, interval_rns.order)},
        **{f.__name__: f for f in (interval_rns.divided, interval_rns.absolute)},
    },
    Positional: {
        **{name: partial(positional.apply, name) for name in OPERATIONS},
        **{name: partial(positional.logic, name) for name in LOGIC},
        **{f.__name__: f for f in (positional.negative, positional.absolute, positional.invert)},
        **{f.__name__: f for f in (positional.left_shift, positional.right_shift)},
        **{f.__name__: f for f in (positional.bitwise_count, positional.maximum, positional.minimum)},
        **{f.__name__: f for f in (positional.where, positional.sign, positional.divided)},
        **{f.__name__: f for f in (positional.relate, positional.order)},
    },
    PrimeFields: _OF_FIELDS,
    FermatField: _OF_FIELDS,
}


def function_of(name: str, *operands: Operand) -> Callable[..., Any]:
    """The function of a name of the number system of the arrays among the operands.

    Raises
    ------
    TypeError
        If there is no array, arrays are of several systems, or theirs has no such function.
    """
    arrays = [operand for operand in operands if is_number_array(operand)]
    if not arrays:
        raise TypeError("at least one operand must be an RNSArray, got integers only")
    check_one_kind(*arrays)
    functions = _FUNCTIONS[type(arrays[0].system)]
    if name not in functions:
        if fields.of_fields(arrays[0]):
            fields.refuse(name)
        if name in _FUNCTIONS[Positional]:
            what = "takes PositionalArrays", "x.to_positional(bits) makes one"
        elif isinstance(arrays[0].system, Positional):
            what = "takes RNSArrays", "x.to_rns(moduli) makes one"
        else:
            what = "takes RNSArrays", "x.to_rns() makes one"
        raise TypeError(f"{name} {what[0]}, got {with_article(type(arrays[0]))}; {what[1]}")
    return functions[name]


def check_one_kind(first: Numbers, *others: Numbers) -> None:
    """Raise TypeError if arrays are of several kinds of number systems."""
    for other in others:
        if type(other.system) is not type(first.system):
            kinds = sorted((f"{type(array).__name__}s" for array in (first, other)), reverse=True)
            how = "IntervalRNSArray.from_rns(x) and to_rns() convert"
            if any(isinstance(array.system, Positional) for array in (first, other)):
                how = "to_positional(bits) and to_rns(moduli) convert"
            are_fields = [fields.of_fields(array) for array in (first, other)]
            if all(are_fields):
                kinds = [f"elements of {array.system!r}" for array in (first, other)]
                how = "their integers, of to_ints() or lift(), are of any field"
            elif any(are_fields):
                how = "FieldArray.from_rns(x, fields) and lift() convert"
            raise TypeError(f"{' and '.join(kinds)} do not mix; {how}")


def _applied(name: str, *operands: Operand, **options: Any) -> Any:
    """Call the function of a name of the operands' number system."""
    values = with_arrays(*operands)
    return function_of(name, *values)(*values, **options)


def _of_bits(name: str, a: Operand, b: Operand, overflow: str | None, bits: str | None) -> Any:
    """Call the function of an operation whose result may have bits of its own."""
    a, b = with_arrays(a, b)
    function = function_of(name, a, b)
    if bits is None:
        return function(a, b, overflow=overflow)
    if not any(isinstance(x.system, Positional) for x in (a, b) if is_number_array(x)):
        raise TypeError(f"bits= is taken of PositionalArrays alone, got {brief(bits)}")
    return function(a, b, overflow=overflow, bits=bits)


def add(a: Operand, b: Operand, *, overflow: str | None = None, bits: str | None = None) -> Any:
    """Sum ``a + b``, element by element.

    Of FieldArrays nothing overflows: `overflow` is not taken, and integers may be of any size.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, PositionalArray, FieldArray, int, or integers
        At least one array of numbers; those of the same moduli set, or bits, and range, or such that meet in
        one (:func:`.result_system`), on the same processor. Shapes broadcast as NumPy's do. An integer must
        be in the range too, unless that grows. It may be lazy, as ``x.max()`` of a Dask array; it is checked
        when it is computed. Nested lists of integers, and arrays of an integer type or of objects of NumPy,
        CuPy or Dask, stand for arrays of the other operand's system, which must hold them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to results out of range; without it, what :func:`.errstate` set, else ``"extend"`` for
        arrays whose range grows, ``"raise"`` for others.
    bits : "exact", optional
        Of PositionalArrays, also of two that differ in bits or sign: the result has as many bits as hold each
        one, one more than the operands, so that nothing overflows.

    Returns
    -------
    RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        Lazy if an operand is. Where the exact result is out of range, with ``"wrap"`` the result modulo M; of
        IntervalRNSArrays its sign with its magnitude modulo M. With ``"flag"`` a pair: the same, and a
        Boolean array that is true there.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range; on Dask when it is computed.
    TypeError, ValueError
        If operands do not fit one another, an item of a list is no integer or out of range, naming its
        position, or `overflow` is no mode.
    """
    return _of_bits("add", a, b, overflow, bits)


def subtract(a: Operand, b: Operand, *, overflow: str | None = None, bits: str | None = None) -> Any:
    """Difference ``a - b``, as :func:`add`; of unsigned arrays a result below 0 is an overflow.

    With ``bits="exact"`` the result is signed.
    """
    return _of_bits("subtract", a, b, overflow, bits)


def multiply(a: Operand, b: Operand, *, overflow: str | None = None, bits: str | None = None) -> Any:
    """Product ``a * b``, as :func:`add`; with ``bits="exact"`` in the sum of the operands' bits."""
    return _of_bits("multiply", a, b, overflow, bits)


def negative(a: Operand, *, overflow: str | None = None) -> Any:
    """Opposite number ``-a``, as :func:`add`; of an unsigned array only 0 has one."""
    return function_of("negative", a)(a, overflow=overflow)


def absolute(x: Operand, *, overflow: str | None = None) -> Any:
    """Absolute value ``abs(x)``, as :func:`add`; only the lowest signed number's can be out of range."""
    return function_of("absolute", x)(x, overflow=overflow)


def clip(x: Any, min: Operand | None = None, max: Operand | None = None) -> Any:  # noqa: A002
    """The numbers of an array, but none below `min` or above `max`, as ``numpy.clip``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    min, max : array like `x`, int or None
        The ends; None for no end. Shapes broadcast. Where `min` is above `max`, the result is `max`. An
        integer beyond all numbers of `x`, which changes nothing, may be of any size.

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
    function_of("maximum", x)
    kind: Any = type(x)
    x, min, max = with_arrays(x, min, max)  # noqa: A001
    low, high = _range_of(x, x.system)
    for end, name, farther in ((min, "maximum", builtins.max), (max, "minimum", builtins.min)):
        if end is None:
            continue
        ends = _range_of(end, x.system)
        after = farther(low, ends[0]), farther(high, ends[1])
        # Only an integer is passed over: an array may be of a greater shape, and its calculation may fail.
        if is_number_array(end) or is_lazy_integer(end) or after != (low, high):
            x = function_of(name, x, end)(x, end)
        low, high = after
    if isinstance(x.system, RNS):
        bound = builtins.max(abs(low), abs(high))
        x = kind(x.words, x.system.with_bound(bound if bound < x.system.greatest_magnitude else None))
        x = fitted(x)
    return x


def _range_of(operand: Operand, system: NumberSystem) -> tuple[int, int]:
    """What is known to hold of the numbers of an operand: the least and the greatest that they may be."""
    if is_number_array(operand):
        known: tuple[int, int] = getattr(operand.system, "known_range", operand.system.value_range)
        return known
    ends = ends_of(operand) or system.value_range
    return ends[0], ends[-1]


def fma(a: Operand, b: Operand, c: Operand, *, overflow: str | None = None) -> Any:
    """``a * b + c`` in one pass, as :func:`add`; only the final result must be in range."""
    return _applied("fma", a, b, c, overflow=overflow)


def mulsub(a: Operand, b: Operand, c: Operand, d: Operand, *, overflow: str | None = None) -> Any:
    """``a * b - c * d`` in one pass, as :func:`add`; only the final result must be in range."""
    return _applied("mulsub", a, b, c, d, overflow=overflow)


def muladd(a: Operand, b: Operand, c: Operand, d: Operand, *, overflow: str | None = None) -> Any:
    """``a * b + c * d`` in one pass, as :func:`add`; only the final result must be in range."""
    return _applied("muladd", a, b, c, d, overflow=overflow)


def sign(x: Operand) -> Any:
    """Sign of each number: -1, 0 or +1.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        An array; an integer's sign needs no residues.

    Returns
    -------
    array of int8, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is no array of numbers.
    """
    return function_of("sign", x)(x)


def maximum(a: Operand, b: Operand) -> Any:
    """The greater of two numbers, element by element.

    Parameters
    ----------
    a, b : RNSArray, IntervalRNSArray, int, or integers
        At least one an array of numbers, both of one kind; shapes broadcast; integers, and lists and plain
        arrays of them, are in the array's range.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit one another: systems, moduli sets, ranges, shapes, processors.
    """
    return _applied("maximum", a, b)


def minimum(a: Operand, b: Operand) -> Any:
    """The lesser of two numbers, element by element, as :func:`maximum`."""
    return _applied("minimum", a, b)


def where(condition: Any, a: Operand, b: Operand) -> Any:
    """The number of `a` where a condition holds, else that of `b`.

    Parameters
    ----------
    condition : Boolean NumPy, CuPy or Dask array
        For instance a comparison of arrays of numbers.
    a, b : RNSArray, IntervalRNSArray, FieldArray, int, or integers
        At least one an array of numbers, both of one kind; all shapes broadcast. Lists and plain arrays of
        integers are taken as :func:`add` does.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray
        Lazy if an operand or the condition is.

    Raises
    ------
    TypeError, ValueError
        If the condition is not Boolean, or the operands do not fit one another.
    """
    a, b = with_arrays(a, b)
    return function_of("where", a, b)(condition, a, b)


def divide(a: Operand, b: Operand) -> Any:
    """Quotient ``a / b`` of arrays of field elements, and integers as :func:`add` takes them."""
    return _applied("divide", a, b)


def relate(a: Any, relation: str, b: Operand) -> Any:
    """Compare by a relation such as ``"<"``: a Boolean array of where it holds, lazy if an operand is.

    Integers, also those of lists and of arrays in memory, may be of any size.
    """
    sides = sides_of(b, a) if are_integers(b) and not fields.of_fields(a) else None
    if sides is not None:  # which integers alone may be out of range
        found = relate(a, relation, sides[0])
        return (found & (sides[1] == 0)) | ((sides[1] != 0) & RELATIONS[relation](0, sides[1]))
    a, b = with_arrays(a, b)
    return function_of("relate", a, b)(a, relation, b)


def divided(dividend: Operand, divisor: Operand, *parts: Part) -> list[Any]:
    """The `parts` of floor division, each an array: ``"quotient"`` and ``"remainder"``."""
    dividend, divisor = with_arrays(dividend, divisor)
    results: list[Any] = function_of("divided", dividend, divisor)(dividend, divisor, parts)
    return results


# ---- bits -------------------------------------------------------------------------------------------------


def bitwise_and(a: Operand, b: Operand) -> Any:
    """Bits that are 1 in both numbers, element by element, as Python's and NumPy's ``&``.

    Parameters
    ----------
    a, b : PositionalArray, int, or integers
        At least one array of numbers; those of the same bits and range, on the same processor. Shapes
        broadcast. Integers must be in the range too, and lists and plain arrays of them are taken as
        :func:`add` does. Negative numbers have infinitely many ones above their sign.

    Returns
    -------
    PositionalArray
        Lazy if an operand is.

    Raises
    ------
    TypeError, ValueError
        If operands do not fit one another, or are of another kind.
    """
    return _applied("bitwise_and", a, b)


def bitwise_or(a: Operand, b: Operand) -> Any:
    """Bits that are 1 in one of two numbers or both, as :func:`bitwise_and`."""
    return _applied("bitwise_or", a, b)


def bitwise_xor(a: Operand, b: Operand) -> Any:
    """Bits that are 1 in one of two numbers alone, as :func:`bitwise_and`."""
    return _applied("bitwise_xor", a, b)


def invert(x: Operand) -> Any:
    """All bits of each number of a PositionalArray inverted: ``-1 - x``; ``2**bits - 1 - x`` if unsigned.

    Returns an array like `x`. Raises TypeError if `x` is no PositionalArray.
    """
    return function_of("invert", x)(x)


def bitwise_count(x: Operand) -> Any:
    """How many bits of each magnitude are 1, as ``numpy.bitwise_count``, of a PositionalArray.

    Returns
    -------
    array of int64, shape of `x`
        NumPy or CuPy; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is no PositionalArray.
    """
    return function_of("bitwise_count", x)(x)


def left_shift(x: Operand, bits: Any, *, overflow: str | None = None) -> Any:
    """Product ``x * 2**bits``.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers.
    bits : int or array of machine integers
        Not negative, of any size: one number of bits for all, which may be lazy; of a PositionalArray also an
        array that broadcasts with the numbers. Of residues ``2**bits`` must be in the range itself.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As of :func:`add`.

    Returns
    -------
    array like `x`
        Lazy if an operand is; with ``"flag"`` a pair, as of :func:`add`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an argument is none of these, or a number of bits is negative, naming the index of the first.
    """
    return function_of("left_shift", x)(x, bits, overflow=overflow)


def right_shift(x: Operand, bits: Any) -> Any:
    """Quotient ``x // 2**bits``, rounded down, as :func:`left_shift`; nothing overflows."""
    return function_of("right_shift", x)(x, bits)
