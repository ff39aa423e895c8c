"""The walk through an expression's syntax tree, node by node, whatever its values mean.

Any other syntax is refused; nothing is run as Python. A node is an integer, or a value of a :class:`Meaning`:
lazy arrays (:mod:`.expression`), or what is known of them beforehand (:mod:`.required_bits`).
"""

import ast
import operator
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any, Generic, NoReturn, Protocol, TypeAlias, TypeVar

from rnsdask.core.errors import ExpressionError, StoreError, abbreviate
from rnsdask.core.ranges import check_bits
from rnsdask.expressions.functions import BOOLEANS, EXTREMA, FUNCTIONS
from rnsdask.expressions.syntax import Expression

V = TypeVar("V")

Key: TypeAlias = tuple[int | slice | EllipsisType, ...]
"""An index: an integer or a slice for each axis, from the first on."""


class Meaning(Protocol[V]):
    """Operations on the values of an expression that are not integers.

    A TypeError, ValueError, IndexError or ZeroDivisionError of a method is raised again as an error that
    names the node's column.
    """

    def kind(self, value: V) -> str:
        """Which of the kinds of `functions.py` a value is."""

    def fuses(self, name: str) -> bool:
        """Whether a sum of products is one operation of this name."""

    def apply(self, name: str, *values: int | V) -> V:
        """Apply an operation of `functions.py`."""

    def select(self, value: V, key: Key) -> V:
        """Select a part of an array."""

    def choose(self, value: V, condition: V) -> V:
        """Select the elements of an array where a Boolean array of its shape is true, along one axis."""


_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}

# The same between comparisons.
_LOGIC: dict[type[ast.operator], str] = {
    ast.BitAnd: "logical_and",
    ast.BitOr: "logical_or",
    ast.BitXor: "logical_xor",
}

_RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}

_BETWEEN_INTEGERS: dict[str, Callable[[int, int], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}

# What the second operand must be an integer for.
_BY_INTEGER = {
    "power": "the exponent of **",
    "left_shift": "the shift of <<",
    "right_shift": "the shift of >>",
}

_HINTS: dict[type[ast.AST], str] = {
    ast.Div: "/ is not exact for integers; // is the division that rounds down, a*pow(b, -1) that of fields",
    ast.BoolOp: "use & and | between comparisons in parentheses, not 'and' and 'or'",
    ast.Not: "use ~ before a comparison in parentheses, not 'not'",
    ast.IfExp: "use where(condition, x, y), not 'if' and 'else'",
    ast.List: "an index is an integer or a slice for each axis, not a list",
}

_CALLABLE = (*FUNCTIONS, *EXTREMA)


def walk(expression: Expression, names: Mapping[str, V], meaning: Meaning[V]) -> int | V:
    """The value of an expression, given what its names stand for, and what operations do to these values.

    ExpressionError if a name stands for nothing, there is anything else in it than operations of this
    package, or operands do not fit one another.
    """
    for name, node in expression.names.items():
        if name not in names:
            known = f"; the names are {', '.join(names)}" if names else ""
            raise expression.error(node, f"{name!r} stands for nothing{known}")
    try:
        return _Walk(expression, names, meaning).value_of(expression.body)
    except RecursionError:
        raise expression.error(expression.body, "it is nested too deeply") from None


class _Walk(Generic[V]):
    """Walks the nodes of one expression; each is evaluated once."""

    def __init__(self, expression: Expression, names: Mapping[str, V], meaning: Meaning[V]) -> None:
        self.expression = expression
        self.names = names
        self.meaning = meaning

    def value_of(self, node: ast.expr) -> int | V:
        match node:
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return value
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.number(operand)
                return -number if isinstance(number, int) else self.apply(node, "negative", number)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.inverted(node, self.value_of(operand))
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.sum_of(node)
            case ast.BinOp(op=operation) if type(operation) in _LOGIC:
                return self.logic(node)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
                return self.binary(node, self.number(left), self.number(right))
            case ast.Compare():
                return self.comparison(node)
            case ast.Call():
                return self.call(node)
            case ast.Subscript():
                return self.part(node)
        return self.refuse(node)

    def refuse(self, node: ast.expr) -> NoReturn:
        kinds = (type(node), type(getattr(node, "op", None)))
        rule = next((_HINTS[kind] for kind in kinds if kind in _HINTS), None)
        if rule is None:
            allowed = "integers, names, + - * // % ** @ << >>, comparisons, & | ^ ~, x[1:5]"
            rule = f"allowed are {allowed} and the functions {', '.join(_CALLABLE)}"
        raise self.expression.error(node, rule)

    def apply(self, node: ast.expr, name: str, *values: int | V) -> V:
        """Apply an operation, whose errors are those of the node."""
        result: V = self.located(node, self.meaning.apply, name, *values)
        return result

    def located(self, node: ast.expr, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (ExpressionError, StoreError):  # a store that is damaged is no fault of the expression
            raise
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            raise self.expression.error(node, str(error)) from error

    # ---- what a node must be ------------------------------------------------------------------------------

    def kind(self, value: int | V) -> str:
        return "an integer" if isinstance(value, int) else self.meaning.kind(value)

    def number(self, node: ast.expr) -> int | V:
        """Value of a node that must be an integer, or an array of numbers or of signs."""
        value = self.value_of(node)
        if self.kind(value) == BOOLEANS:
            raise self.expression.error(node, f"a number is needed here, and it is {self.kind(value)}")
        return value

    def boolean(self, node: ast.expr) -> int | V:
        """Value of a node that must be a Boolean array."""
        return self.checked_boolean(node, self.value_of(node))

    def checked_boolean(self, node: ast.expr, value: int | V) -> int | V:
        if self.kind(value) != BOOLEANS:
            raise self.expression.error(node, f"a comparison is needed here, and it is {self.kind(value)}")
        return value

    def integer(self, node: ast.expr, what: str = "an integer is needed here") -> int:
        value = self.value_of(node)
        if not isinstance(value, int):
            raise self.expression.error(node, f"{what}, and it is {self.kind(value)}")
        return value

    # ---- operators ----------------------------------------------------------------------------------------

    def binary(self, node: ast.BinOp, left: int | V, right: int | V) -> int | V:
        name = _BINARY[type(node.op)]
        if name in _BY_INTEGER:
            if not isinstance(right, int):
                rule = f"{_BY_INTEGER[name]} must be an integer, and it is {self.kind(right)}"
                raise self.expression.error(node.right, rule)
            if right < 0:
                rule = f"{_BY_INTEGER[name]} must not be negative, got {abbreviate(right)}"
                raise self.expression.error(node.right, rule)
        if isinstance(left, int) and isinstance(right, int):
            return self.between_integers(node, left, right)
        if name in _BY_INTEGER and isinstance(left, int):
            raise self.expression.error(node.left, "an array is needed here, and it is an integer")
        return self.apply(node, name, left, right)

    def logic(self, node: ast.BinOp) -> int | V:
        """Two comparisons combined, or the bits of two numbers."""
        left, right = self.value_of(node.left), self.value_of(node.right)
        if BOOLEANS not in (self.kind(left), self.kind(right)):
            return self.binary(node, left, right)
        self.checked_boolean(node.left, left)
        self.checked_boolean(node.right, right)
        return self.apply(node, _LOGIC[type(node.op)], left, right)

    def inverted(self, node: ast.UnaryOp, value: int | V) -> int | V:
        if isinstance(value, int):
            return ~value
        return self.apply(node, "logical_not" if self.kind(value) == BOOLEANS else "invert", value)

    def between_integers(self, node: ast.BinOp, left: int, right: int) -> int:
        name = _BINARY[type(node.op)]
        if name not in _BETWEEN_INTEGERS:
            raise self.expression.error(node, "an operand of @ must be an array")
        bits = {
            "multiply": left.bit_length() + right.bit_length(),
            "power": right * left.bit_length() if abs(left) > 1 else 1,
            "left_shift": left.bit_length() + right,
        }
        self.located(node, check_bits, bits.get(name, 0))
        return int(self.located(node, _BETWEEN_INTEGERS[name], left, right))

    def sum_of(self, node: ast.BinOp) -> int | V:
        """A sum or a difference, together with the products in it where there is one operation for both."""
        a, b = self.factors(node.left), self.factors(node.right)
        adding = isinstance(node.op, ast.Add)
        if adding and len(b) > len(a):
            a, b = b, a
        if adding and len(a) == 2:
            name = "muladd" if len(b) == 2 else "fma"
            if self.meaning.fuses(name):
                return self.apply(node, name, *a, *b)
        if not adding and len(a) + len(b) > 2 and self.meaning.fuses("mulsub"):
            return self.apply(node, "mulsub", *(*a, 1)[:2], *(*b, 1)[:2])
        return self.binary(node, self.product(node.left, a), self.product(node.right, b))

    def factors(self, node: ast.expr) -> tuple[int | V, ...]:
        """Both factors if a node is a product of an array, else its value alone."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            return (self.number(node),)
        left, right = self.number(node.left), self.number(node.right)
        if isinstance(left, int) and isinstance(right, int):
            return (self.between_integers(node, left, right),)
        return left, right

    def product(self, node: ast.expr, factors: tuple[int | V, ...]) -> int | V:
        return factors[0] if len(factors) == 1 else self.apply(node, "multiply", *factors)

    def comparison(self, node: ast.Compare) -> V:
        kinds = [type(operation) for operation in node.ops]
        if len(kinds) > 1:
            raise self.expression.error(node, "a comparison has two sides; write (x < y) & (y < z)")
        if kinds[0] not in _RELATIONS:
            raise self.expression.error(node, "comparisons are < <= > >= == and !=")
        left, right = self.number(node.left), self.number(node.comparators[0])
        if isinstance(left, int) and isinstance(right, int):
            raise self.expression.error(node, "one side of a comparison must be an array")
        return self.apply(node, _RELATIONS[kinds[0]], left, right)

    # ---- functions ----------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> V:
        if not isinstance(node.func, ast.Name) or node.func.id not in _CALLABLE:
            name = f"{node.func.id!r} is none" if isinstance(node.func, ast.Name) else "only these are called"
            raise self.expression.error(node, f"the functions are {', '.join(_CALLABLE)}; {name}")
        name, count = node.func.id, len(node.args)
        if name in EXTREMA:
            if node.keywords or count < 2:
                rule = f"{name} takes 2 arguments or more without names, got {count}"
                raise self.expression.error(node, rule)
            return self.extremum(node, name)
        form = FUNCTIONS[name]
        most = len(form.arguments)
        least = most if form.least is None else form.least
        if node.keywords or not least <= count <= most:
            expected = f"{most} argument{'s' if most > 1 else ''}" if least == most else f"{least} or {most}"
            raise self.expression.error(node, f"{name} takes {expected} without names, got {count}")
        readers = {"number": self.number, "Boolean": self.boolean, "integer": self.integer}
        values = [readers[kind](argument) for kind, argument in zip(form.arguments, node.args, strict=False)]
        self.check_arguments(node, name, values)
        return self.apply(node, name, *values)

    def extremum(self, node: ast.Call, name: str) -> V:
        """The greatest or the least of several numbers, element by element; integers among them first."""
        values = [self.number(argument) for argument in node.args]
        self.check_arguments(node, name, values)
        integers = [value for value in values if isinstance(value, int)]
        arrays = [value for value in values if not isinstance(value, int)]
        one: list[int | V] = [max(integers) if name == "max" else min(integers)] if integers else []
        found, others = arrays[0], [*one, *arrays[1:]]
        for other in others:
            found = self.apply(node, EXTREMA[name], found, other)
        return found

    def check_arguments(self, node: ast.Call, name: str, values: list[int | V]) -> None:
        if all(isinstance(value, int) for value in values):
            raise self.expression.error(node, f"an argument of {name} must be an array")

    # ---- parts --------------------------------------------------------------------------------------------

    def part(self, node: ast.Subscript) -> V:
        value = self.value_of(node.value)
        if isinstance(value, int):
            raise self.expression.error(node.value, "an array is needed here, and it is an integer")
        if not isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple | ast.List):
            condition = self.value_of(node.slice)
            if self.kind(condition) == BOOLEANS:
                chosen: V = self.located(node, self.meaning.choose, value, condition)
                return chosen
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        selected: V = self.located(node, self.meaning.select, value, tuple(map(self.index, items)))
        return selected

    def index(self, node: ast.expr) -> int | slice | EllipsisType:
        what = "an index is an integer or a slice for each axis, or one condition"
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return ...
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if end is None else self.integer(end, what) for end in ends))
        place = self.integer(node, what)
        if place.bit_length() > 63:
            raise self.expression.error(node, "index is out of bounds: arrays are shorter than 2**63")
        return place
