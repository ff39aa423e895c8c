"""The text of an expression: parsed by Python's own parser, never run, with errors that name the column."""

import ast
import re
import warnings
from dataclasses import dataclass
from functools import cached_property

import gmpy2

from rnsdask.core.errors import ExpressionError
from rnsdask.core.ways import Message

# Python refuses decimal literals of more than 4300 digits, but no hexadecimal ones.
_LONG_DECIMAL = re.compile(r"(?<![\w.])[1-9](?:_?[0-9]){4000,}(?![\w.])")

_SHOWN = 60


@dataclass(frozen=True)
class Expression:
    """An expression that is valid Python: its text, its tree, and the columns before the tree's first."""

    text: str
    body: ast.expr
    indent: int

    @cached_property
    def names(self) -> dict[str, ast.Name]:
        """The names that stand for values, not functions, each with its first place."""
        functions = {id(node.func) for node in ast.walk(self.body) if isinstance(node, ast.Call)}
        names = [n for n in ast.walk(self.body) if isinstance(n, ast.Name) and id(n) not in functions]
        first: dict[str, ast.Name] = {}
        for name in sorted(names, key=lambda name: name.col_offset):
            first.setdefault(name.id, name)
        return first

    @property
    def operations(self) -> int:
        """How many operations, functions and indices it applies."""
        kinds = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Subscript)
        return sum(isinstance(node, kinds) for node in ast.walk(self.body))

    def error(self, node: ast.expr, rule: str) -> ExpressionError:
        """Make the error of a part of the expression."""
        return _error(self.text, self.indent + node.col_offset + 1, rule)


def parse(text: str) -> Expression:
    """Parse an expression, whatever its names stand for.

    Integer literals and white space may be of any size and kind. ExpressionError if the text is no Python
    expression, or has what expressions here never have: quotation marks, comments, letters beyond ASCII.
    """
    for column, character in enumerate(text, 1):
        # Without comments, a line break can stand for a space; without others than ASCII, bytes are columns.
        if character in "#'\"\\\0" or not character.isascii():
            raise _error(text, column, f"unexpected character {character!r}")
    source = _LONG_DECIMAL.sub(_in_hexadecimal, re.sub(r"\s", " ", text)).rstrip()
    indent = len(source) - len(source.lstrip())
    if not source:
        raise ExpressionError("the expression is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what is doubtful is an error here
            return Expression(text, ast.parse(source[indent:], mode="eval").body, indent)
    except SyntaxError as error:
        raise _error(text, indent + (error.offset or len(source) - indent + 1), error.msg) from None
    except (RecursionError, MemoryError):
        raise ExpressionError(f"expression {_shown(text, 1)}: it is nested too deeply") from None


def _in_hexadecimal(match: re.Match[str]) -> str:
    """Write an integer in as many characters, so that all columns stay."""
    value = gmpy2.mpz(match[0].replace("_", ""))
    return "0x" + str(value.digits(16)).zfill(len(match[0]) - 2)


def _error(text: str, column: int, rule: str) -> ExpressionError:
    return ExpressionError(Message(f"expression {_shown(text, column)}, column {column}: ", rule))


def _shown(text: str, column: int) -> str:
    """The expression in quotation marks, or of a long one what is around a column."""
    start = max(0, min(column - 1 - _SHOWN // 2, len(text) - _SHOWN))
    part = text[start : start + _SHOWN]
    before, after = "..." * (start > 0), "..." * (start + _SHOWN < len(text))
    return repr(before + " ".join(part.split()) + after)
