"""Rows for any system of integers, by its ``encode`` and ``decode`` alone: correct, and slow.

Numbers become Python ints, a few at a time. A new system has all these rows from the start, and replaces
those that must be fast by functions of its own. A row that is fast enough here serves all systems.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core import combinatorics, rows
from rnsdask.core.axes import reduced_shape
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.order import Ordering
from rnsdask.core.place import Locate, Place
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.core.rows import Array, Part
from rnsdask.core.scan import Scan
from rnsdask.core.table import Entry, table
from rnsdask.core.ways import Kind, Message

EXACT_WORDS = 2**22
"""Words that become Python ints at a time; this bounds the memory of intermediate results."""

# ---- chunks of integers ------------------------------------------------------------------------------------


def _pick_like(blocks: Sequence[Array]) -> Array:
    """Return a block on a GPU if there is one: a single number is a NumPy array on either processor."""
    return next((block for block in blocks if not isinstance(block, np.ndarray)), blocks[0])


def _flat(block: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast words to `shape`, or keep a single number, as (rows, N)."""
    if block.size != len(block) and block.shape[1:] != shape:
        block = np.broadcast_to(block, (len(block), *shape))
    return block.reshape(len(block), -1)


def _integers(system: NumberSystem, words: Array) -> list[int]:
    return system.decode(words).ravel().tolist()


def encode_results(
    values: list[int], like: Array, system: NumberSystem, mode: str, locate: Locate = int, first: int = 0
) -> Array:
    """Encode exact results as words (rows, N), by a mode of overflow; their flat indices start at `first`."""
    lowest, highest = system.value_range
    outside = [i for i, value in enumerate(values) if not lowest <= value <= highest]
    if outside and mode == "raise":
        raise system.overflow_error(values[outside[0]], locate(first + outside[0]))
    held = list(values)
    for i in outside:
        held[i] = system.wrapped(values[i])
    words = np.asarray(system.encode(held), like=like)
    if mode != "flag":
        return words
    flags = np.zeros_like(words[:1])
    flags[0, np.asarray(outside, dtype=np.int64, like=words)] = 1
    return np.concatenate([words, flags])


def _parts(
    function: Callable[..., Any], blocks: Sequence[Array], system: NumberSystem, locate: Locate, plain: int
) -> Iterator[tuple[int, list[int]]]:
    """Results of a function of integers, a few at a time, each with the flat index of the first.

    The last `plain` blocks are machine integers (1, *shape), all others words. An error of the function names
    the number's index where it has ``{index}``.
    """
    shape = np.broadcast_shapes(*(block.shape[1:] for block in blocks))
    matrices, count = [_flat(x, shape) for x in blocks], math.prod(shape)
    step = max(1, EXACT_WORDS // system.rows)
    for first in range(0, count, step):
        length = min(step, count - first)
        chosen = [x if x.shape[1] == 1 else x[:, first : first + length] for x in matrices]
        words, others = chosen[: len(chosen) - plain], chosen[len(chosen) - plain :]
        columns = [*(_integers(system, x) for x in words), *(x[0].tolist() for x in others)]
        values: list[int] = []
        try:
            alike = (x if len(x) == length else x * length for x in columns)
            values.extend(map(int, map(function, *alike)))  # keeps the results before an error
        except (NumberError, ZeroDivisionError) as error:
            index = locate(first + len(values))
            raise type(error)(str(error).format(index=index)) from None
        yield first, values


def apply(
    function: Callable[..., Any],
    *blocks: Array,
    system: NumberSystem,
    mode: str = "raise",
    locate: Locate = int,
    plain: int = 0,
) -> Array:
    """Apply a function of integers to chunks that broadcast; returns the words of the results."""
    like = _pick_like(blocks)
    parts = [
        encode_results(values, like, system, mode, locate, first)
        for first, values in _parts(function, blocks, system, locate, plain)
    ]
    found = np.concatenate(parts, axis=1) if parts else encode_results([], like, system, mode)
    return found.reshape(len(found), *np.broadcast_shapes(*(block.shape[1:] for block in blocks)))


def _apply_plain(function: Callable[..., Any], *blocks: Array, system: NumberSystem, dtype: Any) -> Array:
    """Apply a function of integers to each number; returns plain values."""
    values = [value for _, part in _parts(function, blocks, system, int, 0) for value in part]
    shape = np.broadcast_shapes(*(block.shape[1:] for block in blocks))
    return np.asarray(np.array(values, dtype=dtype).reshape(shape), like=_pick_like(blocks))


# ---- numbers, one by one -----------------------------------------------------------------------------------


def compare(a: Array, b: Array, system: NumberSystem) -> Array:
    """Compare the numbers of two chunks: int8 of -1, 0 and +1."""
    return _apply_plain(lambda x, y: (x > y) - (x < y), a, b, system=system, dtype=np.int8)


def sign(x: Array, system: NumberSystem) -> Array:
    """Signs of the numbers: int8."""
    return _apply_plain(lambda value: (value > 0) - (value < 0), x, system=system, dtype=np.int8)


def is_even(x: Array, system: NumberSystem) -> Array:
    """Whether numbers are even: Boolean."""
    return _apply_plain(lambda value: value % 2 == 0, x, system=system, dtype=np.bool_)


def bit_length(x: Array, system: NumberSystem) -> Array:
    """Bit lengths of magnitudes: int64."""
    return _apply_plain(int.bit_length, x, system=system, dtype=np.int64)


def bitwise_count(x: Array, system: NumberSystem) -> Array:
    """Counts of the 1 bits of magnitudes: int64."""
    return _apply_plain(int.bit_count, x, system=system, dtype=np.int64)


def isqrt(x: Array, system: NumberSystem, locate: Locate = int) -> Array:
    """Floors of square roots; a NumberError names the first number that is negative."""
    return apply(_root, x, system=system, locate=locate)


def _root(value: int) -> Any:
    if value < 0:
        raise NumberError("the number at flat index {index} is negative: it has no square root")
    return gmpy2.isqrt(value)


def check_nonzero(_: NumberSystem, divisor: int, **__: Any) -> None:
    """Raise ZeroDivisionError for the divisor 0."""
    if divisor == 0:
        raise ZeroDivisionError("division of an array by the integer 0")


def floor_divide(
    x: Array, y: Array, system: NumberSystem, parts: Sequence[Part], locate: Locate = int
) -> Array:
    """Quotients, rounded down, and remainders; a ZeroDivisionError names the first divisor that is 0."""
    found = [apply(_DIVISIONS[part], x, y, system=system, locate=locate) for part in parts]
    return np.concatenate(found)


def divide_by_integer(
    x: Array, divisor: int, system: NumberSystem, parts: Sequence[Part], locate: Locate = int
) -> Array:
    """Quotients and remainders by an integer of any size."""
    found = [
        apply(lambda value, part=part: _DIVISIONS[part](value, divisor), x, system=system, locate=locate)
        for part in parts
    ]
    return np.concatenate(found)


def _checked_division(divide: Callable[[int, int], int], x: int, y: int) -> int:
    if y == 0:
        raise ZeroDivisionError("division by zero at flat index {index}")
    return divide(x, y)


_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "quotient": partial(_checked_division, operator.floordiv),
    "remainder": partial(_checked_division, operator.mod),
}


def check_power(_: NumberSystem, exponent: int, **__: Any) -> None:
    """Raise ValueError if the exponent of powers is negative."""
    check_exponent(exponent)


def check_exponent(k: int) -> None:
    """Raise ValueError if an exponent is negative."""
    if k < 0:
        raise NumberError(
            Message(
                f"an exponent must not be negative, got {abbreviate(k)}; inverse(x) of ",
                Kind("RNSArray", "a"),
                " and mod_inverse(x, m) of ",
                Kind("PositionalArray", "a"),
                " give inverses",
            )
        )


def power(x: Array, exponent: int, system: NumberSystem, mode: str = "raise", locate: Locate = int) -> Array:
    """Powers by an exponent that is not negative."""
    check_exponent(exponent)
    return apply(lambda value: value**exponent, x, system=system, mode=mode, locate=locate)


def power_by_array(
    x: Array, exponents: Array, system: NumberSystem, mode: str = "raise", locate: Locate = int
) -> Array:
    """Powers by machine integers (1, *shape); a NumberError names the first that is negative."""
    return apply(_power, x, exponents, system=system, mode=mode, locate=locate, plain=1)


def _power(value: int, exponent: int) -> int:
    if exponent < 0:
        raise NumberError(f"an exponent must not be negative, got {exponent} at flat index {{index}}")
    return int(value**exponent)


def invert(x: Array, system: NumberSystem) -> Array:
    """Invert all bits, modulo the range."""
    return apply(operator.invert, x, system=system, mode="wrap")


def left_shift(
    x: Array, counts: Array, system: NumberSystem, mode: str = "raise", locate: Locate = int
) -> Array:
    """Products with powers of 2 by machine integers (1, *shape)."""
    return apply(
        partial(_shift, operator.lshift), x, counts, system=system, mode=mode, locate=locate, plain=1
    )


def right_shift(x: Array, counts: Array, system: NumberSystem, locate: Locate = int) -> Array:
    """Quotients by powers of 2, rounded down."""
    return apply(partial(_shift, operator.rshift), x, counts, system=system, locate=locate, plain=1)


def _shift(shift: Callable[[int, int], int], value: int, bits: int) -> int:
    if bits < 0:
        raise NumberError(f"bits must not be negative, got {bits} at flat index {{index}}")
    return shift(value, bits)


# ---- all numbers, and along axes ---------------------------------------------------------------------------


def _backend(words: Array) -> str:
    return "cpu" if isinstance(words, np.ndarray) else "cuda"


def reduce(words: Array, system: NumberSystem, operation: str) -> ReductionResult:
    """Reduce all numbers by one of :data:`.REDUCTIONS`, given by name."""
    reduction, numbers = REDUCTIONS[operation], _integers(system, words)
    if not numbers:
        return reduction.empty_result(_backend(words))
    value = reduction.of_integers(numbers)
    index = numbers.index(value) if reduction.locates else None
    return ReductionResult(value, index, len(numbers), 0, _backend(words))


def extrema(words: Array, system: NumberSystem, axes: tuple[int, ...], minimum: bool) -> tuple[Array, Array]:
    """Words of the greatest or least numbers along axes, and their first index along one axis: int64."""
    numbers = system.decode(words)
    best = (np.min if minimum else np.max)(numbers, axis=axes, keepdims=True)
    places = np.zeros(best.shape, dtype=np.int64)
    if len(axes) == 1:
        places = (numbers == best).astype(np.bool_).argmax(axis=axes[0], keepdims=True)
    return np.asarray(system.encode(best), like=words), np.asarray(places, like=words)


def sums(words: Array, system: NumberSystem, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums along axes: Python ints (*reduced)."""
    return _fold(np.add, system.decode(words), axes)


def moments(words: Array, system: NumberSystem, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Exact sums of numbers and of their squares: Python ints (2, *reduced)."""
    numbers = system.decode(words)
    return np.stack([_fold(np.add, numbers, axes), _fold(np.add, numbers * numbers, axes)])


def _fold(ufunc: np.ufunc, numbers: NDArray[Any], axes: tuple[int, ...]) -> NDArray[np.object_]:
    shape = reduced_shape(numbers.shape, axes)
    if not axes:
        return numbers
    found = np.array(ufunc.reduce(numbers, axis=axes, keepdims=True, initial=ufunc.identity), dtype=object)
    return found.reshape(shape)


def axis_factors(words: Array, system: NumberSystem, axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Products along axes: Python ints (1, *reduced)."""
    return _fold(np.multiply, system.decode(words), axes)[None]


def join_axis_factors(factors: NDArray[np.object_], axes: tuple[int, ...]) -> NDArray[np.object_]:
    """Multiply products along axes."""
    return _fold(np.multiply, factors[0], axes)[None]


def axis_products(
    factors: NDArray[np.object_], system: NumberSystem, mode: str, locate: Locate = int
) -> Array:
    """Words of products (1, *reduced)."""
    found = encode_results(factors.ravel().tolist(), factors, system, mode, locate)
    return found.reshape(len(found), *factors.shape[1:])


def factors(words: Array, system: NumberSystem) -> int:
    """Product of all numbers."""
    return math.prod(_integers(system, words))


def product(factors: int, system: NumberSystem, mode: str) -> Any:
    """Return the product as `mode` wants it: a number, or with ``"flag"`` a pair of number and bool."""
    lowest, highest = system.value_range
    if lowest <= factors <= highest:
        return (factors, False) if mode == "flag" else factors
    if mode == "raise":
        raise system.overflow_error(factors, 0)
    return (system.wrapped(factors), True) if mode == "flag" else system.wrapped(factors)


@dataclass(frozen=True)
class IntegerScan(Scan[Any]):
    """Running results of an associative ufunc, in Python ints."""

    ufunc: np.ufunc = np.add

    def total(self, block: Array) -> NDArray[np.object_]:
        """Reduce a chunk along the axis."""
        found = self.ufunc.reduce(self.system.decode(block), axis=self.axis, keepdims=True)
        return np.asarray(found, dtype=object)

    def join(self, first: Any, second: Any) -> Any:
        """Combine the totals of two chunks."""
        return self.ufunc(first, second)

    def results(self, block: Array, before: Any | None, place: Place) -> Array:
        """Compute the running results of a chunk as words."""
        found = self.ufunc.accumulate(self.system.decode(block), axis=self.axis)
        if before is not None:
            found = self.ufunc(before, found)
        words = encode_results(found.ravel().tolist(), block, self.system, self.mode, place.flat_index)
        return words.reshape(len(words), *block.shape[1:])


def ordering(words: Array, system: NumberSystem) -> Ordering:
    """Sort keys: each number's rank in its chunk."""
    flat = words.reshape(len(words), -1)
    numbers = np.array([*_integers(system, words), None], dtype=object)[:-1]
    _, ranks = np.unique(numbers, return_inverse=True)
    keys = np.asarray(ranks.reshape(-1).astype(np.uint64), like=words)
    return Ordering(keys, 0, flat[: system.rows], partial(_digits, keys))


def _digits(keys: Array, indices: Array) -> Array:
    return keys[indices].astype(np.uint32)[None]


EVERYWHERE = table(
    *(Entry(rows.ROWS[name], partial(apply, operation.evaluate)) for name, operation in OPERATIONS.items()),
    Entry(rows.absolute, partial(apply, abs)),
    Entry(rows.compare, compare),
    Entry(rows.sign, sign),
    Entry(rows.is_even, is_even),
    Entry(rows.floor_divide, floor_divide),
    Entry(rows.floor_divide_by, divide_by_integer, check=check_nonzero),
    Entry(rows.gcd, partial(apply, gmpy2.gcd)),
    Entry(rows.lcm, partial(apply, gmpy2.lcm)),
    Entry(rows.isqrt, isqrt),
    Entry(rows.factorial, partial(apply, combinatorics.factorial)),
    Entry(rows.binomial, partial(apply, combinatorics.binomial)),
    Entry(rows.primorial, partial(apply, combinatorics.primorial)),
    Entry(rows.bit_length, bit_length),
    Entry(rows.power, power, check=check_power),
    Entry(rows.power_by_array, power_by_array),
    Entry(rows.reduce, reduce),
    Entry(rows.extrema, extrema),
    Entry(rows.sums, sums),
    Entry(rows.moments, moments),
    Entry(rows.axis_factors, axis_factors),
    Entry(rows.join_axis_factors, join_axis_factors),
    Entry(rows.axis_products, axis_products),
    Entry(rows.factors, factors),
    Entry(rows.join_factors, operator.mul),
    Entry(rows.product, product),
    Entry(rows.cumsum, partial(IntegerScan, ufunc=np.add)),
    Entry(rows.cumprod, partial(IntegerScan, ufunc=np.multiply)),
    Entry(rows.cummax, partial(IntegerScan, ufunc=np.maximum)),
    Entry(rows.cummin, partial(IntegerScan, ufunc=np.minimum)),
    Entry(rows.ordering, ordering),
)
"""Rows that every system of integers has, unless its table replaces them."""

INTEGERS = EVERYWHERE | table(
    Entry(rows.bitwise_count, bitwise_count),
    Entry(rows.bitwise_and, partial(apply, operator.and_)),
    Entry(rows.bitwise_or, partial(apply, operator.or_)),
    Entry(rows.bitwise_xor, partial(apply, operator.xor)),
    Entry(rows.invert, invert),
    Entry(rows.left_shift, left_shift),
    Entry(rows.right_shift, right_shift),
)
"""All rows of a system without a table of its own."""
