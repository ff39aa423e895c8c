"""A number system of the tests' own: integers from 0 to 2**64 - 1 as two words, the higher one first."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.core import rows
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.place import Locate
from rnsdask.core.table import Entry, table
from rnsdask.rns.axis import reduced_shape
from rnsdask.rns.number_theory import isqrt, of_pairs
from rnsdask.rns.reduce import ReductionResult
from rnsdask.rns.sort import Ordering

PRODUCT = 2**64


@dataclass(frozen=True, repr=False)
class Pair(NumberSystem):
    """The value: what the two words of a number mean."""

    table_name: ClassVar[str] = "toy_system:TABLE"
    bits: ClassVar[int] = 64

    rows = 2
    value_range = (0, PRODUCT - 1)

    def encode(self, values: Any) -> np.ndarray:
        numbers = np.array(values, dtype=object)
        flat = [operator.index(v) for v in numbers.ravel().tolist()]
        if not all(0 <= v < PRODUCT for v in flat):
            raise ValueError("a value is out of range")
        words = np.array([[v >> 32 for v in flat], [v & 0xFFFFFFFF for v in flat]], dtype=np.uint32)
        return words.reshape(2, *numbers.shape)

    def decode(self, words: Any) -> np.ndarray:
        found = np.empty(words.shape[1:], dtype=object)
        found[...] = (words[0].astype(object) << 32) + words[1].astype(object)
        return found

    def limbs_of(self, words: Any) -> Any:
        return np.ascontiguousarray(words[::-1].T)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:
        raise NotImplementedError

    def same_numbers(self, other: NumberSystem) -> bool:
        return self == other

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        return RNSOverflowError.of_value(value, index, 64, False)

    def __dask_tokenize__(self) -> Any:
        return "toy_system.Pair"

    def __str__(self) -> str:
        return "pairs of words"

    def details(self) -> dict[str, str]:
        return {}


class PairArray(IntegerArray):
    """Numbers as pairs of words."""

    __slots__ = ()

    system_type = Pair


SYSTEM = Pair()


# ---- chunks ------------------------------------------------------------------------------------------------


def overflowing(exact: Callable[..., int]) -> Callable[..., Any]:
    """An operation whose exact results may be out of range."""
    vectorized = np.frompyfunc(exact, exact.__code__.co_argcount, 1)

    def function(*blocks: Any, system: Pair, mode: str, locate: Locate, **_: Any) -> np.ndarray:
        results = np.asarray(vectorized(*map(system.decode, blocks)), dtype=object)
        outside = np.array((results < 0) | (results >= PRODUCT), dtype=bool)
        if mode == "raise" and outside.any():
            index = int(outside.argmax())
            raise system.overflow_error(results.ravel()[index], locate(index))
        words = system.encode(results % PRODUCT)
        return np.concatenate([words, outside[None].astype(np.uint32)]) if mode == "flag" else words

    return function


def power(x: Any, *, exponent: int, system: Pair, mode: str, locate: Locate) -> Any:
    return overflowing(lambda a: a**exponent)(x, system=system, mode=mode, locate=locate)


def compare(a: Any, b: Any, system: Pair) -> np.ndarray:
    x, y = system.decode(a), system.decode(b)
    return np.asarray(x > y, dtype=np.int8) - np.asarray(x < y, dtype=np.int8)


def divide(x: Any, y: Any, *, system: Pair, parts: Sequence[str], locate: Locate) -> np.ndarray:
    dividends, divisors = np.broadcast_arrays(system.decode(x), system.decode(y))
    if (divisors == 0).any():
        raise ZeroDivisionError(f"division by zero at flat index {locate(int((divisors == 0).argmax()))}")
    found = {"quotient": dividends // divisors, "remainder": dividends % divisors}
    return np.concatenate([system.encode(found[part]) for part in parts])


def divide_by(x: Any, *, divisor: int, system: Pair, parts: Sequence[str], locate: Locate) -> np.ndarray:
    y = system.encode([divisor]).reshape(2, *(1,) * (x.ndim - 1))
    return divide(x, y, system=system, parts=parts, locate=locate)


def reduce_all(words: Any, *, system: Pair, operation: str) -> ReductionResult:
    numbers = system.decode(words).ravel().tolist()
    functions = {"max": max, "min": min, "sum": sum, "bound": max, "gcd": lambda values: math.gcd(*values)}
    best = functions[operation](numbers)
    index = numbers.index(best) if operation in ("max", "min") else None
    return ReductionResult(best, index, len(numbers), 0, "cpu")


def extrema(words: Any, *, system: Pair, axes: tuple[int, ...], minimum: bool) -> tuple[Any, Any]:
    numbers = system.decode(words)
    best = (np.min if minimum else np.max)(numbers, axis=axes, keepdims=True)
    places = np.argmax(numbers == best, axis=axes[0], keepdims=True) if len(axes) == 1 else best * 0
    return system.encode(best), places.astype(np.int64)


def sums(words: Any, *, system: Pair, axes: tuple[int, ...]) -> np.ndarray:
    numbers = system.decode(words)
    return np.sum(numbers, axis=axes, keepdims=True).reshape(reduced_shape(numbers.shape, axes))


def ordering(words: Any, system: Pair) -> Ordering:
    flat = words.reshape(2, -1)
    keys = flat[0].astype(np.uint64) << np.uint64(32) | flat[1]
    return Ordering(keys, 0, flat, lambda indices: flat[::-1, indices])


def bit_length(x: Any, system: Pair) -> np.ndarray:
    return np.frompyfunc(int.bit_length, 1, 1)(system.decode(x)).astype(np.int64)


def sign(x: Any, system: Pair) -> np.ndarray:
    return np.sign(compare(x, x * 0, system))


TABLE = table(
    *(Entry(rows.ROWS[name], overflowing(operation.evaluate)) for name, operation in OPERATIONS.items()),
    Entry(rows.compare, compare),
    Entry(rows.sign, sign),
    Entry(rows.floor_divide, divide),
    Entry(rows.floor_divide_by, divide_by),
    Entry(rows.power, power),
    Entry(rows.isqrt, isqrt),
    Entry(rows.gcd, partial(of_pairs, "gcd")),
    Entry(rows.lcm, partial(of_pairs, "lcm")),
    Entry(rows.bit_length, bit_length),
    Entry(rows.reduce, reduce_all),
    Entry(rows.extrema, extrema),
    Entry(rows.sums, sums),
    Entry(rows.ordering, ordering),
)
