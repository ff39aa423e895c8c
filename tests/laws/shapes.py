"""Laws of shapes: NumPy's functions of shape and joining, indexing, broadcasting, selecting."""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import dask
import numpy as np
from oracles.integers import mapped

import rnsdask as rd
from laws.case import RNS, Case, law, law_of, must_fail, wrapping


def any_axis(rng: Random, ndim: int) -> int:
    return rng.randrange(ndim) - rng.choice((0, ndim))


def reshaped(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    size = a.size
    parts = [d for d in range(1, min(size, 60) + 1) if size % d == 0] or [1]
    first = rng.choice(parts)
    shape = rng.choice(((-1,), (first, size // first), (size // first, 1, first), a.shape[::-1]))
    if not size:
        shape = rng.choice(((0, 3), (0,), a.shape[::-1]))
    return lambda _, x: x.reshape(shape)


def rolled(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axis = rng.choice((None, any_axis(rng, a.ndim)))
    shift = rng.choice((0, 1, -1, 7, -100))
    return lambda m, x: np.roll(x, shift, axis) if m is np else x.roll(shift, axis)


def taken(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axis = any_axis(rng, a.ndim)
    length = a.shape[axis]
    indices = [rng.randrange(-length, length) for _ in range(rng.randint(0, 6))] if length else []
    shape = rng.choice(((-1,), (1, -1))) if indices else (0,)
    places = np.array(indices, dtype=np.int64).reshape(shape)
    return lambda _, x: x.take(places, axis=axis)


def repeated(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axis = any_axis(rng, a.ndim)
    counts: Any = rng.randint(0, 3)
    if rng.random() < 0.5:
        counts = [rng.randint(0, 2) for _ in range(a.shape[axis])]
    return lambda _, x: x.repeat(counts, axis=axis)


def tiled(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    reps = tuple(rng.randint(0, 2) for _ in range(rng.randint(1, a.ndim + 1)))
    return lambda m, x: m.tile(x, reps)


def padded(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    widths = [(rng.randint(0, 2), rng.randint(0, 2)) for _ in range(a.ndim)]
    value = rng.choice((0, 0, 1)) if a.size and a.max() > 0 else 0
    return lambda m, x: m.pad(x, widths, constant_values=value)


def spread(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    shape = (rng.randint(1, 3), *(n if n != 1 else rng.randint(0, 3) for n in a.shape))
    return lambda m, x: m.broadcast_to(x, shape)


def joined(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axis = rng.choice((None, any_axis(rng, a.ndim)))
    key = slice(rng.choice((None, 1, 2)), None)
    index = (slice(None),) * ((axis or 0) % a.ndim) + (key,)
    return lambda m, x: m.concatenate([x, x[index], x], axis)


def stacked(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axis = any_axis(rng, a.ndim + 1)
    return lambda m, x: m.stack([x, x[::-1]], axis)


def cut(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axis = any_axis(rng, a.ndim)
    places = [rng.randint(-2, a.shape[axis] + 2) for _ in range(rng.randint(1, 3))]
    part = rng.randrange(len(places) + 1)
    return lambda m, x: m.split(x, places, axis)[part]


def turned(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    axes = rng.sample(range(a.ndim), a.ndim)
    flipped = rng.choice((None, any_axis(rng, a.ndim)))
    return lambda m, x: np.flip(x.transpose(axes), flipped) if m is np else x.transpose(axes).flip(flipped)


def swapped(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    place, first, second = any_axis(rng, a.ndim + 1), any_axis(rng, a.ndim), any_axis(rng, a.ndim)
    return lambda m, x: m.expand_dims(x.swapaxes(first, second), place)


def squeezed(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    if rng.random() < 0.3:
        return lambda _, x: x.flatten()
    axis = None if any(length != 1 for length in a.shape) else 0
    return lambda _, x: x[None].squeeze(axis)


def on_diagonal(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    offset, axis = rng.randint(-3, 3), rng.randint(1, a.ndim)
    return lambda _, x: x[None].diagonal(offset, 0, axis)


def put_together(rng: Random, _: np.ndarray) -> Callable[[Any, Any], Any]:
    name = rng.choice(("hstack", "vstack", "block"))
    return lambda m, x: m.block([[x, x], [x, x]]) if name == "block" else getattr(m, name)([x, x])


def filled(rng: Random, a: np.ndarray) -> Callable[[Any, Any], Any]:
    """One number in the shape of an array: an integer, or one of the array's, which may be lazy."""
    value = rng.choice(a.reshape(-1).tolist() or [0])
    choices: list[Callable[[Any, Any], Any]] = [
        lambda m, x: m.zeros_like(x),
        lambda m, x: m.full_like(x, value),
    ]
    if a.size:
        choices += [lambda m, x: m.full_like(x, x.reshape(-1)[-1]), lambda m, x: m.ones_like(x)]
    return rng.choice(choices)


FUNCTIONS = (
    reshaped,
    rolled,
    taken,
    repeated,
    tiled,
    padded,
    spread,
    joined,
    stacked,
    cut,
    turned,
    swapped,
    squeezed,
    on_diagonal,
    put_together,
    filled,
)


@law
def shapes_are_numpys(case: Case) -> None:
    """Functions of shape and joining, of arrays, and of sums, with which they commute."""
    (x,) = case.take()
    for choose in case.random.sample(FUNCTIONS, 3):
        case.note("function", choose.__name__)
        function = choose(case.random, x.values)
        expected = np.asarray(function(np, x.values), dtype=object)
        if expected.size > 8 * max(case.most_numbers, 8):
            continue
        expected = mapped(int, expected)  # NumPy pads by integers of its own
        case.claim_array(function(rd, x.array), expected, choose.__name__)
        if choose is not filled and choose is not padded:
            total = case.limits.wrapped(expected + expected)
            case.claim_array(
                function(rd, wrapping(rd.add, x.array, x.array)), total, f"{choose.__name__} of a sum"
            )


@law
def joined_arrays_are_numpys(case: Case) -> None:
    """Different arrays, one of them eager where others are lazy now and then, along any axis."""
    x, y, a, b = case.draw(2)
    axis = any_axis(case.random, x.ndim)
    for name, join in {
        "concatenate": lambda m, u, v: m.concatenate([u, v[::-1], u[:3]]),
        "concatenate along an axis": lambda m, u, v: m.concatenate([u, v], axis),
        "stack": lambda m, u, v: m.stack([u, v], axis=-1),
        "hstack": lambda m, u, v: m.hstack([v, u]),
        "vstack": lambda m, u, v: m.vstack([u, v]),
        "block": lambda m, u, v: m.block([[u, v], [v, u]]),
    }.items():
        case.claim_array(join(rd, x, y), join(np, a, b), name)


@law
def wrong_shapes_are_refused(case: Case) -> None:
    """Shapes that NumPy refuses."""
    (x,) = case.take()
    ndim, size = x.values.ndim, math.prod(x.values.shape)
    must_fail(lambda: x.array.reshape(size + 1), ValueError, "a shape of more numbers")
    must_fail(lambda: x.array.flip(ndim), ValueError, "no such axis")
    must_fail(lambda: x.array.take([size], axis=None), IndexError, "an index out of bounds")
    must_fail(lambda: rd.concatenate([x.array, x.array[None]]), ValueError, "other numbers of axes")


@law
def shapes_broadcast_as_numpys(case: Case) -> None:
    x, a = case.draw()
    for shape in ((1,), a.shape[-1:], (3, *(1,) * a.ndim), (*a.shape[:-1], 1)):
        b = case.numbers(shape)
        y = case.array(b)
        case.claim_array(wrapping(rd.subtract, x, y), case.limits.wrapped(a - b), f"minus {shape}")
        case.claim(y == x, (b == a).astype(bool), f"{shape} is equal")
        if case.system.is_ordered:
            case.claim_array(rd.maximum(y, x), np.maximum(b, a), f"maximum of {shape}")
            case.claim(y >= x, (b >= a).astype(bool), f"{shape} is at least")


# ---- indexing ----------------------------------------------------------------------------------------------

INTEGER_TYPES = (int, np.int8, np.uint8, np.int64, np.array)


def integer(rng: Random, length: int) -> Any:
    """An integer of any type, now and then out of bounds."""
    value = rng.randrange(-length, length) if length and rng.random() < 0.95 else length + rng.randint(0, 3)
    kind = rng.choice(INTEGER_TYPES)
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


@law
def indices_are_numpys(case: Case) -> None:
    """Arrays, and sums, with which indexing commutes; what NumPy refuses is the same error."""
    (x,) = case.take()
    total = wrapping(rd.add, x.array, x.array)
    for _ in range(4):
        key = key_for(case.random, x.values.shape)
        case.note("index", key)
        try:
            expected = x.values[key]
        except (IndexError, TypeError, ValueError) as error:
            must_fail(
                lambda key=key: x.array[key].to_ints(), type(error), f"an index that NumPy refuses ({error})"
            )
            continue
        claim = case.claim_array if np.ndim(expected) else case.claim
        claim(x.array[key], expected, f"index {key!r}")
        if np.ndim(expected):
            case.claim_array(total[key], case.limits.wrapped(expected + expected), f"{key!r} of a sum")


@law_of(*RNS)
def lazy_indices_are_numpys(case: Case) -> None:
    """Indices that are computed later: a mask of the numbers, and the place of one."""
    (x,) = case.take()
    if not x.values.size or not dask.is_dask_collection(x.array) or x.values.ndim > 1:
        return
    limit = case.number()
    case.note("limit", limit)
    chosen = x.array[x.array > limit]
    case.claim_array(chosen, x.values[np.asarray(x.values > limit, dtype=bool)], "a mask")
    case.claim(x.array[x.array.argmax()], max(x.values.tolist()), "the number at argmax")


@law
def selections_of_unknown_length_reduce(case: Case) -> None:
    """Numbers that a condition selects are reduced, iterated and indexed as those in memory are."""
    x, a = case.draw()
    edges = sorted(a.ravel().tolist())
    for limit in (edges[len(edges) // 2], edges[-1]):
        chosen = a[(a >= limit).astype(bool)]
        for name in ("max", "min", "sum", "argmax", "argmin"):
            expected = getattr(chosen, name)()
            case.claim(getattr(x[x >= limit], name)(), expected, f"{name} of a selection")
        case.claim_array(x[x >= limit][::-1], chosen[::-1], "a selection reversed")
        assert [int(number) for number in x[x >= limit]] == chosen.tolist()
    case.claim(x[x > edges[-1]].sum(), 0, "sum of none")


@law
def selecting_commutes_with_operations(case: Case) -> None:
    """By Boolean masks, of the caller's or of a comparison."""
    x, y, a, b = case.draw(2)
    mask = case.mask()[1]
    total, exact = wrapping(rd.add, x, y), case.limits.wrapped(a + b)
    case.claim_array(total[mask], exact[mask], "mask of a sum")
    alike = np.where(mask, a, b)
    case.claim_array(total[x == case.array(alike)], exact[(a == alike).astype(bool)], "comparison as a mask")
    case.claim_array(wrapping(rd.add, x[mask], y[mask]), exact[mask], "sum of masks")


@law
def numpys_functions_are_found(case: Case) -> None:
    """NumPy's functions give what operators and methods do, on the array's side of the way to integers."""
    x, y, a, b = case.draw(2)
    with rd.errstate(overflow="wrap"):
        for name in ("add", "subtract", "multiply"):
            ufunc = getattr(np, name)
            case.claim_array(ufunc(x, y), case.limits.wrapped(ufunc(a, b)), f"np.{name}")
    for name in ("maximum", "minimum") if case.system.is_ordered else ():
        case.claim_array(getattr(np, name)(x, y), getattr(np, name)(a, b), f"np.{name}")
    for name in ("equal", "not_equal", *(("less", "greater_equal") if case.system.is_ordered else ())):
        value = case.random.choice(a.ravel().tolist())
        expected = getattr(np, name)(value, a).astype(bool)
        case.claim(getattr(np, name)(value, x), expected, f"np.{name}")
    if case.system.is_ordered:
        case.claim(np.sum(x), a.sum(), "np.sum")
        case.claim(np.maximum.reduce(x, axis=None), a.max(), "np.maximum.reduce")
    condition, mask = case.mask()
    case.claim_array(np.where(condition, x, y), np.where(mask, a, b), "np.where")
    case.claim_array(np.concatenate([x, y], axis=-1), np.concatenate([a, b], axis=-1), "np.concatenate")
    case.claim_array(np.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1), "np.moveaxis")
    assert np.array_equal(x, x[:])
    assert np.array_equal(x, y) == (a.tolist() == b.tolist())
