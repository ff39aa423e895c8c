"""Indexing, as NumPy does it: the same numbers or the same error, eager and lazy."""

from random import Random
from typing import Any

import dask
import numpy as np

from fuzzing.case import Case
from fuzzing.checking import computed, must_fail, operation, same_array, same_int, same_numbers

INTEGERS = (int, np.int8, np.uint8, np.int64, np.array)


def integer(rng: Random, length: int) -> Any:
    """An integer of any type, now and then out of bounds."""
    value = rng.randrange(-length, length) if length and rng.random() < 0.95 else length + rng.randint(0, 3)
    kind = rng.choice(INTEGERS)
    if (kind is np.int8 and not -128 <= value < 128) or (kind is np.uint8 and not 0 <= value < 256):
        kind = int
    return kind(value)


def any_slice(rng: Random, length: int) -> slice:
    """A slice of any ends, also beyond the axis, and of any step."""
    ends = [rng.choice((None, rng.randint(-length - 3, length + 3))) for _ in range(2)]
    return slice(*ends, rng.choice((None, 1, 2, 3, -1, -2, -7)))


def index_array(rng: Random, length: int) -> Any:
    """Integers as a list, a range or an array of one or two axes; or a mask of one axis."""
    count = rng.randint(0, 6) if length else 0
    values = [rng.randrange(-length, length) for _ in range(count)]
    kind = rng.choice(("list", "range", "array", "small", "table", "mask", "mask"))
    if kind == "mask":
        return np.array([rng.random() < 0.5 for _ in range(length)], dtype=bool)
    if kind == "range":
        return range(min(length, 3))
    if kind == "table" and values:
        return np.array([values, values[::-1]])
    if kind == "small":
        return [np.int16(v) for v in values]
    return values if kind == "list" else np.array(values, dtype=np.int64)


def key_for(rng: Random, shape: tuple[int, ...]) -> Any:
    """An index of an array: usual ones, odd ones, and wrong ones."""
    odd = rng.random()
    if odd < 0.04:
        return rng.choice((1.0, "a", True, False, np.array(0), slice(1.5), None, (), ...))
    if odd < 0.08:
        return np.random.default_rng(rng.getrandbits(32)).integers(0, 2, shape).astype(bool)
    parts: list[Any] = []
    has_array = False
    for length in shape[: rng.randint(1, len(shape))]:
        kind = rng.random()
        if kind < 0.3:
            parts.append(integer(rng, length))
        elif kind < 0.6 or has_array:
            parts.append(any_slice(rng, length))
        else:
            parts.append(index_array(rng, length))
            has_array = True
    if rng.random() < 0.15:
        parts.insert(rng.randint(0, len(parts)), rng.choice((None, ...)))
    return parts[0] if len(parts) == 1 and rng.random() < 0.7 else tuple(parts)


@operation("index")
def check_index(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    key = key_for(rng, x.values.shape)
    case.note("index", key)
    try:
        expected = x.values[key]
    except (IndexError, TypeError, ValueError) as error:
        must_fail(lambda: x.array[key].to_ints(), type(error), f"an index that NumPy refuses ({error})")
        return 1
    got = x.array[key]
    if np.ndim(expected):
        return same_numbers(case, got, expected)
    return same_int(got, np.asarray(expected).item())


@operation("lazy index", ("unsigned", "signed"))
def check_lazy_index(case: Case, rng: Random) -> int:
    """Indices that are computed later: a mask of the numbers, and the place of one."""
    (x,) = case.take(rng)
    if not x.values.size or not dask.is_dask_collection(x.array) or x.values.ndim > 1:
        return 0
    limit = case.number(rng)
    case.note("limit", limit)
    chosen = x.array[x.array > limit]
    same_array(chosen.compute().to_ints(), x.values[np.asarray(x.values > limit, dtype=bool)], "a mask")
    same_int(computed(x.array[x.array.argmax()]), max(x.values.tolist()), "the number at argmax")
    return x.values.size
