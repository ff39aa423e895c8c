"""Binary operators that defer to operands of other libraries (NEP 13)."""

from collections.abc import Callable
from functools import cache, wraps
from numbers import Number
from types import FunctionType
from typing import Any, TypeAlias

import dask.array as da
import numpy as np

from rnsdask.core.scalar_int import ScalarInt

_Function: TypeAlias = Callable[..., Any]

_MIRRORED = {
    **{"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__"},
    **{"__eq__": "__eq__", "__ne__": "__ne__"},
}
"""Reflected operator of each comparison. Other operators have ``__radd__`` and so on."""

_UFUNCS: dict[str, np.ufunc] = {
    **{"__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply, "__matmul__": np.matmul},
    **{"__truediv__": np.true_divide, "__floordiv__": np.floor_divide, "__mod__": np.remainder},
    **{"__divmod__": np.divmod, "__pow__": np.power},
    **{"__lshift__": np.left_shift, "__rshift__": np.right_shift},
    **{"__and__": np.bitwise_and, "__or__": np.bitwise_or, "__xor__": np.bitwise_xor},
    **{"__lt__": np.less, "__le__": np.less_equal, "__gt__": np.greater, "__ge__": np.greater_equal},
    **{"__eq__": np.equal, "__ne__": np.not_equal},
}


def defer_operators(kind: type) -> None:
    """Wrap all binary operators of an array class, as :func:`_defer` does."""
    for name, value in list(vars(kind).items()):
        if name in _UFUNCS and isinstance(value, FunctionType):
            setattr(kind, name, _defer(value))


def _defer(operator: _Function) -> _Function:
    """Make a binary operator defer to operands of other libraries that have their own.

    It returns NotImplemented for an operand of a type that the package does not know, if that has the
    reflected operator. As in NumPy (NEP 13), an operand without the operator but with ``__array_ufunc__`` is
    left to its ufunc, and one with ``__array_ufunc__ = None`` does not count as an integer. The operator
    refuses all others itself, with an error that says what it takes.
    """
    name = operator.__name__
    reflected = _MIRRORED.get(name, f"__r{name[2:]}")

    @wraps(operator)
    def method(self: Any, other: Any, *options: Any) -> Any:
        if _is_taken(other):
            return operator(self, other, *options)
        kind: Any = type(other)
        if _has(kind, reflected):
            if name not in ("__eq__", "__ne__"):
                return NotImplemented
            # If both operands decline, Python compares identities, and returns False, which would be wrong.
            answer = getattr(kind, reflected)(other, self)
            return operator(self, other, *options) if answer is NotImplemented else answer
        if not hasattr(kind, "__array_ufunc__"):
            return operator(self, other, *options)
        return NotImplemented if kind.__array_ufunc__ is None else _UFUNCS[name](self, other)

    return method


def _is_taken(other: Any) -> bool:
    """Whether an operator handles or refuses an operand regardless of the operand's own operators."""
    kind: Any = type(other)
    if hasattr(kind, "__array_ufunc__"):
        return is_known(kind)
    priority = getattr(other, "__array_priority__", None)
    if priority is not None:
        return not priority > 0  # the priority of NumPy's arrays is 0
    return kind.__module__ == "builtins" or issubclass(kind, Number) or hasattr(kind, "__index__")


def _has(kind: type, method: str) -> bool:
    """Whether a type defines a method, other than the comparison that every object has."""
    return any(method in vars(base) for base in kind.__mro__[:-1])  # getattr would also find the metaclass's


@cache
def is_known(kind: type) -> bool:
    """Whether a type is a number or array that operators know; other types may have their own operators."""
    if issubclass(kind, np.ndarray):  # subclasses take part by a protocol of their own
        return kind.__array_ufunc__ is np.ndarray.__array_ufunc__
    known = (np.generic, da.Array, ScalarInt)
    return issubclass(kind, known) or hasattr(kind, "system_type") or kind.__module__.startswith("cupy")
