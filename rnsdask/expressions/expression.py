"""Expressions over arrays of numbers, such as ``a*b + c``: text in, lazy arrays out, nothing run as Python.

An expression is walked node by node; what is not listed here is refused. Each node is an integer, an array
of numbers, or the array that a comparison (Boolean) or ``sign`` (int8) gives.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NoReturn

import dask.array as da
import numpy as np

from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.errors import ExpressionError
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.overflow import errstate
from rnsdask.expressions.syntax import Expression
from rnsdask.lazy import functions

_MAX_BITS = 2**20
"""Bits of an integer that operators between integers may give."""

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.MatMult: operator.matmul,
}


def _logic(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Combine two Boolean arrays, whose chunks may be on different processors."""
    if isinstance(x, da.Array) or isinstance(y, da.Array):
        return da.core.elemwise(partial(_logic_block, operation), x, y, dtype=np.bool_)
    return operation(x, y)


def _logic_block(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    # A comparison that needs no residues gives NumPy's chunks on every processor.
    like = y if isinstance(x, np.ndarray) else x
    return operation(np.asarray(x, like=like), np.asarray(y, like=like))


_LOGIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.BitAnd: partial(_logic, operator.and_),
    ast.BitOr: partial(_logic, operator.or_),
    ast.BitXor: partial(_logic, operator.xor),
}

_RELATIONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

# What the second operand must be an integer for.
_BY_INTEGER: dict[type[ast.operator], str] = {
    ast.Pow: "the exponent of **",
    ast.LShift: "the shift of <<",
    ast.RShift: "the shift of >>",
}

_HINTS: dict[type[ast.AST], str] = {
    ast.Div: "/ is not exact; // is the division that rounds down",
    ast.BoolOp: "use & and | between comparisons in parentheses, not 'and' and 'or'",
    ast.Not: "use ~ before a comparison in parentheses, not 'not'",
    ast.IfExp: "use where(condition, x, y), not 'if' and 'else'",
}


def _is_even(x: RNSArray) -> Any:
    return x.is_even()


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    **{name: (getattr(functions, name), ("number",) * OPERATIONS[name].arity) for name in OPERATIONS},
    "negative": (functions.negative, ("number",)),
    "maximum": (functions.maximum, ("number", "number")),
    "minimum": (functions.minimum, ("number", "number")),
    "where": (functions.where, ("Boolean", "number", "number")),
    "sign": (functions.sign, ("number",)),
    "is_even": (_is_even, ("number",)),
}
"""The functions by their names in an expression, and what their arguments are."""


@dataclass(frozen=True)
class Evaluation:
    """What an expression stands for.

    Attributes
    ----------
    value : RNSArray, or Boolean or int8 array
        Lazy if an operand is.
    mask : Boolean array or None
        With ``overflow="flag"``: where the exact result of an operation was out of range; its shape
        broadcasts to that of `value`. None if no operation can overflow.
    """

    value: Any
    mask: Any


def check_names(expression: Expression, names: Mapping[str, object]) -> None:
    """Check that an expression uses just these names.

    Raises
    ------
    ExpressionError
        If it uses another one, or not all of them.
    """
    for name, node in expression.names.items():
        if name not in names:
            known = f"; the names are {', '.join(names)}" if names else ""
            raise expression.error(node, f"{name!r} stands for nothing{known}")
    for name in names:
        if name not in expression.names:
            raise ExpressionError(f"expression {expression.text!r} does not use the name {name!r}")


def evaluate(expression: Expression, operands: Mapping[str, RNSArray], overflow: str = "raise") -> Evaluation:
    """Apply the operations of an expression to arrays.

    ``a*b + c``, ``c + a*b``, ``a*b + c*d``, ``a*b - c``, ``c - a*b`` and ``a*b - c*d`` are one operation each
    (`fma`, `muladd`, `mulsub`), so only their result must be in range, not the products. Every other
    intermediate result counts.

    Parameters
    ----------
    operands
        What the names stand for, as :func:`check_names` has checked.
    overflow : {"raise", "wrap", "flag"}
        What happens to results out of range.

    Raises
    ------
    ExpressionError
        If the expression holds anything else than operations of this package, or operands do not fit one
        another. If arrays are lazy, nothing has been computed.
    """
    evaluator = _Evaluator(expression, operands, overflow)
    try:
        value = evaluator.value_of(expression.body)
    except RecursionError:
        raise expression.error(expression.body, "it is nested too deeply") from None
    if isinstance(value, int):
        raise expression.error(expression.body, "it has no array, only integers")
    return Evaluation(value, reduce(operator.or_, evaluator.masks) if evaluator.masks else None)


def _kind(value: Any) -> str:
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, RNSArray):
        return "an array of numbers"
    return "a Boolean array" if value.dtype == np.bool_ else "an array of signs"


class _Evaluator:
    """Walks the nodes of one expression; each is evaluated once."""

    def __init__(self, expression: Expression, operands: Mapping[str, RNSArray], overflow: str) -> None:
        self.expression = expression
        self.operands = operands
        self.overflow = overflow
        self.masks: list[Any] = []

    def value_of(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name) if name in self.operands:
                return self.operands[name]
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return value
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                sign = operator.neg if isinstance(node.op, ast.USub) else _itself
                return self.apply(node, sign, self.number(operand))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return operator.invert(self.boolean(operand))
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.sum_of(node)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _ARITHMETIC:
                return self.binary(node, self.number(left), self.number(right))
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _LOGIC:
                logic = _LOGIC[type(operation)]
                return self.apply(node, logic, self.boolean(left), self.boolean(right))
            case ast.Compare():
                return self.comparison(node)
            case ast.Call():
                return self.call(node)
        return self.refuse(node)

    def refuse(self, node: ast.expr) -> NoReturn:
        kinds = (type(node), type(getattr(node, "op", None)))
        rule = next((_HINTS[kind] for kind in kinds if kind in _HINTS), None)
        if rule is None:
            allowed = "integers, names, + - * // % ** @ << >>, comparisons, & | ^ ~"
            rule = f"allowed are {allowed} and the functions {', '.join(FUNCTIONS)}"
        raise self.expression.error(node, rule)

    def number(self, node: ast.expr) -> Any:
        """Value of a node that must be an integer or an array of numbers."""
        value = self.value_of(node)
        if not isinstance(value, int | RNSArray):
            raise self.expression.error(node, f"a number is needed here, and it is {_kind(value)}")
        return value

    def boolean(self, node: ast.expr) -> Any:
        """Value of a node that must be a Boolean array."""
        value = self.value_of(node)
        if isinstance(value, int | RNSArray) or value.dtype != np.bool_:
            raise self.expression.error(node, f"a comparison is needed here, and it is {_kind(value)}")
        return value

    def apply(self, node: ast.expr, function: Callable[..., Any], *values: Any) -> Any:
        """Apply an operation, and put its mask of overflows aside."""
        try:
            with errstate(overflow=self.overflow):
                result = function(*values)
        except ExpressionError:
            raise
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise self.expression.error(node, str(error)) from error
        if isinstance(result, tuple):
            result, mask = result
            self.masks.append(mask)
        return result

    def binary(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        kind = type(node.op)
        if kind in _BY_INTEGER and not isinstance(right, int):
            raise self.expression.error(
                node.right, f"{_BY_INTEGER[kind]} must be an integer, and it is {_kind(right)}"
            )
        if isinstance(left, int) and isinstance(right, int):
            return self.between_integers(node, left, right)
        if kind in _BY_INTEGER and isinstance(left, int):
            raise self.expression.error(node.left, "an array is needed here, and it is an integer")
        if kind is ast.MatMult and self.masks:
            # A mask of an operand says nothing about single sums of its products.
            raise self.expression.error(node, "with overflow flagged, operands of @ must be names")
        if kind is ast.MatMult and left.ndim == right.ndim == 1:
            left = _as_row(left)  # the sum of the products is an array of one number, not a Python int
        return self.apply(node, _ARITHMETIC[kind], left, right)

    def between_integers(self, node: ast.BinOp, left: int, right: int) -> int:
        kind = type(node.op)
        if kind in _BY_INTEGER and right < 0:
            raise self.expression.error(
                node.right, f"{_BY_INTEGER[kind]} must not be negative, got {right:#x}"
            )
        bits = {
            ast.Mult: left.bit_length() + right.bit_length(),
            ast.Pow: right * left.bit_length() if abs(left) > 1 else 1,
            ast.LShift: left.bit_length() + right,
        }
        if bits.get(kind, 0) > _MAX_BITS:
            raise self.expression.error(node, f"the integer would have more than {_MAX_BITS} bits")
        return int(self.apply(node, _ARITHMETIC[kind], left, right))

    def sum_of(self, node: ast.BinOp) -> Any:
        """A sum or a difference, together with the products in it where there is one operation for both."""
        a, b = self.factors(node.left), self.factors(node.right)
        adding = isinstance(node.op, ast.Add)
        if adding and len(b) > len(a):
            a, b = b, a
        if adding and len(a) == 2:
            return self.apply(node, functions.muladd if len(b) == 2 else functions.fma, *a, *b)
        if len(a) + len(b) > 2 and self.holds_one():
            return self.apply(node, functions.mulsub, *(*a, 1)[:2], *(*b, 1)[:2])
        return self.binary(node, self.product(node.left, a), self.product(node.right, b))

    def factors(self, node: ast.expr) -> tuple[Any, ...]:
        """Both factors if a node is a product of an array, else its value alone."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            return (self.number(node),)
        left, right = self.number(node.left), self.number(node.right)
        if isinstance(left, int) and isinstance(right, int):
            return (self.between_integers(node, left, right),)
        return left, right

    def product(self, node: ast.expr, factors: tuple[Any, ...]) -> Any:
        return factors[0] if len(factors) == 1 else self.apply(node, operator.mul, *factors)

    def holds_one(self) -> bool:
        """Whether 1 is in the range of the arrays; in one of them, -1 and 0, it is not."""
        arrays = self.operands.values()
        return all(array.system.value_range[1] >= 1 for array in arrays)

    def comparison(self, node: ast.Compare) -> Any:
        kinds = [type(operation) for operation in node.ops]
        if len(kinds) > 1:
            raise self.expression.error(node, "a comparison has two sides; write (x < y) & (y < z)")
        if kinds[0] not in _RELATIONS:
            raise self.expression.error(node, "comparisons are < <= > >= == and !=")
        left, right = self.number(node.left), self.number(node.comparators[0])
        if isinstance(left, int) and isinstance(right, int):
            raise self.expression.error(node, "one side of a comparison must be an array")
        return self.apply(node, _RELATIONS[kinds[0]], left, right)

    def call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = f"{node.func.id!r} is none" if isinstance(node.func, ast.Name) else "only these are called"
            raise self.expression.error(node, f"the functions are {', '.join(FUNCTIONS)}; {name}")
        name = node.func.id
        function, kinds = FUNCTIONS[name]
        if node.keywords or len(node.args) != len(kinds):
            count = f"{len(kinds)} argument{'s' if len(kinds) > 1 else ''}"
            raise self.expression.error(node, f"{name} takes {count} without names, got {len(node.args)}")
        readers = {"number": self.number, "Boolean": self.boolean}
        values = [readers[kind](argument) for kind, argument in zip(kinds, node.args, strict=True)]
        if all(isinstance(value, int) for value in values):
            raise self.expression.error(node, f"an argument of {name} must be an array")
        return self.apply(node, function, *values)


def _as_row(vector: RNSArray) -> RNSArray:
    """A matrix of one row."""
    return RNSArray(vector.residues[:, None, :], vector.system)


def _itself(value: Any) -> Any:
    return value
