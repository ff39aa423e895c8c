"""How many bits a chain of operations needs, from the bounds of its inputs."""

import ast
from typing import TypeAlias

from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.moduli import as_integer

Bound: TypeAlias = int | tuple[int, int] | RNSArray
_Interval: TypeAlias = tuple[int, int]

_MAX_EXPONENT = 2**16

_SHOWN = 60


def required_bits(expression: str, **bounds: Bound) -> int:
    """Bits of a moduli set in whose range every step of a computation stays.

    Parameters
    ----------
    expression : str
        Of names, integers, ``+ - * **``, unary ``-`` and parentheses; exponents are integers from 0 to 65536.
        It is parsed, not evaluated as Python.
    **bounds : int, pair of ints, or RNSArray
        For each name the greatest value of an input that is not negative; or its lowest and its highest
        value; or an array, whose own bound counts (or its range).

    Returns
    -------
    int
        For ``ModuliSet.for_bits(bits)``. If a value may be negative, that is to be a signed array, and the
        bits count the sign. Every intermediate result is counted as well; each name stands for
        any value of its bounds at each place where it occurs.

    Raises
    ------
    ValueError, TypeError
        If the expression has anything else in it, a name without a bound, or a bound is not one.

    Examples
    --------
    >>> required_bits("a*b + c", a=2**100, b=2**100, c=(-5, 5))
    202
    """
    intervals = {name: _interval_of(name, bound) for name, bound in bounds.items()}
    steps: list[_Interval] = []
    try:
        _evaluate(_parsed(expression), intervals, steps)
    except RecursionError:
        raise ValueError(
            f"expression {_shown(expression)}: it is nested too deeply; put parentheses around parts of a "
            "long sum or product, so that none has more than a few hundred terms"
        ) from None
    lowest, highest = min(low for low, _ in steps), max(high for _, high in steps)
    if lowest >= 0:
        return max(1, highest.bit_length())
    return 1 + max(highest.bit_length(), (-lowest - 1).bit_length())


def _parsed(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"expression {_shown(expression)}: {error.msg}") from None
    except MemoryError:  # what the parser says of its own stack
        raise RecursionError from None


def _shown(expression: str) -> str:
    return repr(expression if len(expression) <= _SHOWN else f"{expression[:_SHOWN]}...")


def _interval_of(name: str, bound: Bound) -> _Interval:
    if isinstance(bound, RNSArray):
        known: _Interval = bound.system.known_range
        return known
    ends = bound if isinstance(bound, tuple) else (0, bound)
    if len(ends) != 2:
        raise ValueError(
            f"bound of {name!r} must be an integer, or a lowest and a highest value, got {brief(bound)}"
        )
    lowest, highest = (as_integer(end, f"bound of {name!r}") for end in ends)
    if lowest > highest:
        raise ValueError(
            f"bound of {name!r}: the lowest value {abbreviate(lowest)} is above the highest "
            f"{abbreviate(highest)}"
        )
    return lowest, highest


def _evaluate(node: ast.expr, bounds: dict[str, _Interval], steps: list[_Interval]) -> _Interval:
    """Interval of a subexpression, which joins `steps` as do those of its parts."""
    match node:
        case ast.Name(id=name):
            if name not in bounds:
                raise ValueError(f"expression: {name!r} has no bound")
            result = bounds[name]
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            result = (value, value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            low, high = _evaluate(operand, bounds, steps)
            result = (-high, -low)
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(exponent))):
            result = _power(_evaluate(base, bounds, steps), exponent)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operation, right=right):
            operands = _evaluate(left, bounds, steps), _evaluate(right, bounds, steps)
            result = _combine(operation, *operands)
        case _:
            raise ValueError(
                f"expression: {ast.unparse(node)!r} is not one of names, integers, + - * and ** by an integer"
            )
    steps.append(result)
    return result


def _combine(operation: ast.operator, a: _Interval, b: _Interval) -> _Interval:
    match operation:
        case ast.Add():
            return a[0] + b[0], a[1] + b[1]
        case ast.Sub():
            return a[0] - b[1], a[1] - b[0]
        case _:
            products = [x * y for x in a for y in b]
            return min(products), max(products)


def _power(base: _Interval, exponent: int) -> _Interval:
    if not 0 <= exponent <= _MAX_EXPONENT:
        raise ValueError(f"expression: an exponent must be from 0 to {_MAX_EXPONENT}, got {brief(exponent)}")
    ends = sorted(end**exponent for end in base)
    # An even power of an interval around 0 has its least value there.
    lowest = 0 if exponent and exponent % 2 == 0 and base[0] <= 0 <= base[1] else ends[0]
    return lowest, ends[1]
