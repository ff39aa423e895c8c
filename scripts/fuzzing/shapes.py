"""Functions of shape and joining, against NumPy's on Python ints."""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from oracles.integers import mapped

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import must_fail, operation, same_numbers


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
        choices += [lambda m, x: m.full_like(x, x.max()), lambda m, x: m.ones_like(x)]
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


@operation("shape")
def check_shape(case: Case, rng: Random) -> int:
    (x,) = case.take(rng)
    choose = rng.choice(FUNCTIONS)
    case.note("function", choose.__name__)
    function = choose(rng, x.values)
    expected = function(np, x.values)
    if expected.size > 8 * max(case.most_numbers, 8):
        return 0
    expected = mapped(int, np.asarray(expected, dtype=object))  # NumPy pads by integers of its own
    return max(1, same_numbers(case, function(rd, x.array), expected))


@operation("wrong shapes")
def check_wrong_shapes(case: Case, rng: Random) -> int:
    """Shapes that NumPy refuses are refused."""
    (x,) = case.take(rng)
    ndim, size = x.values.ndim, math.prod(x.values.shape)
    must_fail(lambda: x.array.reshape(size + 1), ValueError, "a shape of more numbers")
    must_fail(lambda: x.array.flip(ndim), ValueError, "no such axis")
    must_fail(lambda: x.array.take([size], axis=None), IndexError, "an index out of bounds")
    must_fail(lambda: rd.concatenate([x.array, x.array[None]]), ValueError, "other numbers of axes")
    return 4
