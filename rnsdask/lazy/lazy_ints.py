"""LazyInts: a Dask array of Python ints, with the arithmetic of Python ints."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.delayed import single_key
from numpy.typing import NDArray

from rnsdask.core.scalar_int import ARITHMETIC, COMPARISONS, DIVISIONS, UNARY, Function, ScalarInt, as_scalars
from rnsdask.lazy.map import array_of_tasks, map_values
from rnsdask.lazy.operands import is_number_array
from rnsdask.lazy.planning import PLANS_QUERIES, elemwise

# Greatest length that Python writes in decimal: 4300 digits, or 14285 bits.
_LONG_BITS = 10_000

# NumPy's functions that fail for Python ints when Dask tries them on zeros.
_DIVIDING = (np.floor_divide, np.true_divide, np.remainder)


class LazyInts(da.Array):
    """A Dask array of dtype object whose elements are Python ints or fractions, such as a lazy maximum.

    Dask determines the dtype of a result by a trial on zeros, and so refuses to divide Python ints; and it
    converts only objects with NumPy's ``item`` to Python numbers. This class supports both. Its arithmetic
    returns LazyInts; other functions of Dask return a plain Dask array.
    """

    __array_priority__ = 11  # the priority of Dask's arrays

    known_range: tuple[int, int] | None = None
    """The lowest and the highest value of the elements, if known."""

    @classmethod
    def of(cls, array: da.Array, known_range: tuple[int, int] | None = None) -> "LazyInts":
        """Convert a Dask array whose elements stay exact in Dask, as ScalarInts do.

        `known_range` holds the least and the greatest possible element, if known.
        """
        kind: Any = cls
        made_of: Any = array
        made: LazyInts = (
            kind(made_of.expr)
            if PLANS_QUERIES
            else kind(array.dask, array.name, array.chunks, meta=meta_from_array(array))
        )
        made.known_range = known_range
        return made

    @classmethod
    def of_ints(cls, array: da.Array) -> "LazyInts":
        """Convert a Dask array of Python ints, of at least one axis."""
        return cls.of(map_values(as_scalars, array, dtype=object))

    def __dask_postcompute__(self) -> Any:
        # An integer is its single task's result; Delayed has the form that makes Dask add no further task.
        return super().__dask_postcompute__() if self.ndim else (single_key, ())  # type: ignore[no-untyped-call]

    def __getitem__(self, index: Any) -> Any:
        return self.of(super().__getitem__(index))  # type: ignore[no-untyped-call]

    def __array_ufunc__(self, numpy_ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(is_number_array, inputs)):
            return NotImplemented
        inputs = tuple(map(_wrap_nameable, inputs))
        if method == "__call__" and numpy_ufunc in _DIVIDING and not kwargs:
            return self.of(elemwise(numpy_ufunc, *inputs, dtype=object))
        return super().__array_ufunc__(numpy_ufunc, method, *inputs, **kwargs)  # type: ignore[no-untyped-call]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        named = {key: _wrap_nameable(value) for key, value in kwargs.items()}
        return super().__array_function__(func, types, tuple(map(_wrap_nameable, args)), named)  # type: ignore[no-untyped-call]

    def clip(self, min: Any = None, max: Any = None) -> Any:  # noqa: A002  (Dask's names)
        """Limit the integers to a range, as Dask's method does."""
        return super().clip(_wrap_nameable(min), _wrap_nameable(max))  # type: ignore[no-untyped-call]

    __hash__ = da.Array.__hash__

    def _number(self) -> Any:
        if self.size != 1:
            raise TypeError(
                f"only an array of one number converts to a Python number, got shape {self.shape}"
            )
        value = self.compute()  # type: ignore[no-untyped-call]
        return value.item() if isinstance(value, np.ndarray | np.generic) else value

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        return int(self._number().__index__())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())


class _ExactResults(LazyInts):
    """Lazy arrays that compute to arrays of plain Python ints, like results in memory."""

    __slots__ = ()

    def __dask_postcompute__(self) -> Any:
        finish = super().__dask_postcompute__()
        return (_finish_plain, finish) if self.ndim else finish


def _finish_plain(
    results: Any, finish: Callable[..., Any], arguments: tuple[Any, ...]
) -> NDArray[np.object_]:
    found: NDArray[np.object_] = finish(results, *arguments)
    made = np.empty(found.shape, dtype=object)
    made.ravel()[:] = list(map(int, found.ravel()))
    return made


def as_exact(found: Any) -> Any:
    """Return Python ints from a function as an array, a lazy one with their arithmetic."""
    return _ExactResults.of_ints(found) if isinstance(found, da.Array) else found


def number(found: Any) -> Any:
    """Return an array, or for one without axes its number, which may be lazy."""
    return found if found.ndim or isinstance(found, da.Array) else found.item()


def _wrap_nameable(operand: Any) -> Any:
    """Wrap a Python int that is too long for Dask's names in an array with a name of its own."""
    if type(operand) is not int or operand.bit_length() < _LONG_BITS:
        return operand
    name = f"int-{tokenize(hex(operand))}"
    return array_of_tasks(name, {(): (_keep, ScalarInt(operand))}, (), np.empty((), dtype=object))


def _keep(integer: ScalarInt) -> ScalarInt:
    return integer


def _wrap_method(name: str) -> Callable[..., Any]:
    """Wrap Dask's method, so that integer results are LazyInts again."""
    of_dask = getattr(da.Array, name)

    def method(self: LazyInts, *others: Any) -> Any:
        result = of_dask(self, *map(_wrap_nameable, others))
        return self.of(result) if isinstance(result, da.Array) and result.dtype == object else result

    return method


def _quotient(function: Function, is_reflected: bool) -> Callable[..., Any]:
    """Make a method that divides, without Dask's trial on zeros."""

    def method(self: LazyInts, other: Any) -> Any:
        if is_number_array(other):  # its own operator divides
            return NotImplemented
        other = _wrap_nameable(other)
        pair = (other, self) if is_reflected else (self, other)
        if function is divmod:
            return pair[0] // pair[1], pair[0] % pair[1]
        return self.of(elemwise(function, *pair, dtype=object))

    return method


for _name in (*UNARY, *COMPARISONS, *ARITHMETIC):
    setattr(LazyInts, _name, _wrap_method(_name))
for _name, _how in DIVISIONS.items():
    setattr(LazyInts, _name, _quotient(*_how))
