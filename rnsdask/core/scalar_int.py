"""ScalarInt: a Python int that Dask and NumPy accept as a scalar, and that stays exact."""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.integer_text import number_text, to_decimal

Function: TypeAlias = Callable[[Any, Any], Any]


def _methods(**functions: Function) -> dict[str, tuple[Function, bool]]:
    """Names of an integer's special methods, with their functions and whether operands are reflected."""
    return {f"__{r}{name}__": (functions[name], r == "r") for name in functions for r in ("", "r")}


UNARY = ("__neg__", "__pos__", "__abs__", "__invert__")
COMPARISONS = {
    f"__{name}__": (getattr(operator, name), False) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}
ARITHMETIC = {
    **_methods(add=operator.add, sub=operator.sub, mul=operator.mul, pow=operator.pow),
    **_methods(lshift=operator.lshift, rshift=operator.rshift, xor=operator.xor),
    **_methods(**{"and": operator.and_, "or": operator.or_}),
}
DIVISIONS = _methods(floordiv=operator.floordiv, truediv=operator.truediv, mod=operator.mod, divmod=divmod)
"""Special methods of an integer's arithmetic: name, function, and whether operands are reflected."""


class ScalarInt(int):
    """An integer of any size as the block of a 0-d Dask array, or an element of one of dtype object.

    Dask expects results to have what NumPy's scalars have and Python's integers lack: ``item``, a dtype,
    NumPy's functions. NumPy converts a small Python int to an int64, whose sums wrap. This class therefore
    behaves as an array of dtype object, and its arithmetic returns ScalarInts.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Write it as Python does, but abbreviated beyond 4300 digits, where Python refuses."""
        try:
            return int.__repr__(self)
        except ValueError:
            return number_text(self)

    def __str__(self) -> str:
        """Write all digits, however many."""
        return to_decimal(int(self))

    def item(self) -> int:
        """Return the plain Python int."""
        return int(self)

    def copy(self) -> "ScalarInt":
        """Return itself; Dask copies results."""
        return self

    def as_array(self) -> NDArray[np.object_]:
        """Return it as an array without axes."""
        array = np.empty((), dtype=object)
        array[()] = self
        return array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a ufunc of NumPy to Python ints, never to machine integers."""
        return _as_scalar(getattr(ufunc, method)(*_as_arrays(inputs), **options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Apply a function such as ``np.stack`` to arrays of dtype object."""
        return function(*_as_arrays(args), **{name: _as_arrays(value) for name, value in kwargs.items()})

    def __getitem__(self, key: Any) -> Any:
        """Index it as NumPy's scalars are indexed, by new axes."""
        return self.as_array()[key]

    def __getattr__(self, name: str) -> Any:
        # dtype, ndim, shape, astype, reshape, sum, and all other attributes of arrays.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.as_array(), name)

    __hash__ = int.__hash__


def _as_arrays(value: Any) -> Any:
    """Replace each ScalarInt by an array without axes, in lists and tuples too."""
    if isinstance(value, ScalarInt):
        return value.as_array()
    return type(value)(map(_as_arrays, value)) if type(value) in (list, tuple) else value


def _as_scalar(result: Any) -> Any:
    """Return a result of Python's arithmetic as a scalar with NumPy's ``item``, which Dask requires."""
    if isinstance(result, bool):
        return np.bool_(result)
    if isinstance(result, int):
        return ScalarInt(result)
    if isinstance(result, float):
        return np.float64(result)
    return tuple(map(_as_scalar, result)) if isinstance(result, tuple) else result


def _unary(name: str) -> Callable[..., Any]:
    of_ints = getattr(int, name)
    return lambda self: _as_scalar(of_ints(self))


def _binary(name: str, function: Function, is_reflected: bool) -> Callable[..., Any]:
    of_ints = getattr(int, name)

    def method(self: ScalarInt, other: Any) -> Any:
        result = of_ints(self, other)
        if result is NotImplemented and (isinstance(other, float) or hasattr(other, "__dask_graph__")):
            # A float result would lack `item`; Dask calls this class for an operation with a plain int.
            result = function(other, int(self)) if is_reflected else function(int(self), other)
        return _as_scalar(result)

    return method


for _name in UNARY:
    setattr(ScalarInt, _name, _unary(_name))
for _name, _how in (COMPARISONS | ARITHMETIC | DIVISIONS).items():
    setattr(ScalarInt, _name, _binary(_name, *_how))


def as_scalars(ints: NDArray[np.object_]) -> NDArray[np.object_]:
    """Convert an array of Python ints to one whose elements stay exact in Dask."""
    scalars = np.empty(ints.shape, dtype=object)
    scalars.ravel()[:] = [ScalarInt(value) for value in ints.ravel()]
    return scalars
