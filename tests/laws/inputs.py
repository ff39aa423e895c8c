"""Awkward inputs: moduli sets, numbers at the edges of their range, shapes, chunks and layouts in memory."""

import math
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
from oracles.integers import objects
from strategies import MODULI_SETS

import rnsdask as rd

LENGTHS = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    15,
    16,
    17,
    31,
    33,
    63,
    64,
    65,
    100,
    127,
    128,
    129,
    255,
    256,
    257,
    511,
    513,
)
LONG_LENGTHS = (1000, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097)
"""Around the lengths of vectors and blocks of the kernels."""

LAYOUTS = ("plain", "plain", "strided", "reversed", "fortran")
MAX_CHUNKS = 12

# ---- moduli ------------------------------------------------------------------------------------------------

TINY = ((2, 3), (3, 2), (2,), (5, 4, 3, 7, 11), (2, 3, 5, 7), (9, 8, 7), (4,), (3, 4))
SHORT = (
    (2**32, 2**32 - 1),
    (2**32,),
    (65537,),
    (2**32 - 5, 3, 2**31 - 1, 2, 65537, 5),
    (2**32, 2**32 - 1, 2**32 - 3, 2**32 - 5),
    (2**31, 2**31 - 1),
    (3, 2**32),
    (2**16, 3**10, 5**6, 7**5, 11**4),
)
LONG: tuple[Callable[[], rd.ModuliSet], ...] = (
    lambda: rd.ModuliSet.consecutive_odd(65725, 8),
    lambda: rd.ModuliSet.consecutive_odd(65721, 9),
    lambda: rd.ModuliSet.for_bits(300),
    lambda: rd.ModuliSet.for_bits(512, 17),
    lambda: rd.ModuliSet.consecutive_odd(65379, 64),
    lambda: rd.ModuliSet.for_bits(2048),
    lambda: rd.ModuliSet(reversed(rd.ModuliSet.for_bits(640).moduli)),
    lambda: MODULI_SETS["tiny_beside_huge"],
)
HUGE: tuple[Callable[[], rd.ModuliSet], ...] = (
    lambda: rd.ModuliSet.consecutive_odd(64491, 256),
    lambda: rd.ModuliSet.for_bits(32 * 300),
)


@cache
def _made(make: Callable[[], rd.ModuliSet]) -> rd.ModuliSet:
    return make()


def moduli_set(rng: Random) -> rd.ModuliSet:
    kind = rng.random()
    if kind < 0.15:
        return rd.ModuliSet(rng.choice(TINY))
    if kind < 0.45:
        return rd.ModuliSet(rng.choice(SHORT))
    if kind < 0.75:
        return _made(rng.choice(LONG))
    if kind < 0.78:
        return _made(rng.choice(HUGE))
    return coprime_moduli(rng, rng.randint(1, 12))


def coprime_moduli(rng: Random, count: int) -> rd.ModuliSet:
    """Moduli of all kinds, in any order, no two of which share a factor."""
    kinds: tuple[Callable[[], int], ...] = (
        lambda: rng.randint(2, 2**32),
        lambda: rng.randint(2, 64),
        lambda: rng.randint(2**32 - 1000, 2**32),
        lambda: 1 << rng.randint(1, 32),
        lambda: rng.randint(60000, 70000),
        lambda: rng.randint(2, 2**20),
    )
    moduli: list[int] = []
    while not moduli or (len(moduli) < count and rng.random() < 0.98):
        candidate = rng.choice(kinds)()
        if math.gcd(candidate, math.prod(moduli)) == 1:
            moduli.append(candidate)
    return rd.ModuliSet(moduli)


# ---- numbers -----------------------------------------------------------------------------------------------


Ends = tuple[int, int]
"""The least and the greatest number of a range."""


def landmark(rng: Random, factors: tuple[int, ...], product: int) -> int:
    """A number near which an algorithm may change its mind."""
    bits = product.bit_length()
    one = rng.choice(factors or (2**32,))
    prefix = math.prod(factors[: rng.randint(1, len(factors))]) if factors else one
    # Where an evaluation with so many fraction bits cannot tell a number from 0.
    reach = product * (sum(factors) - len(factors)) >> rng.choice((32, 64, 96, 128))
    choices: tuple[Callable[[], int], ...] = (
        lambda: 0,
        lambda: 1,
        lambda: product,
        lambda: product // 2,
        lambda: product // 3,
        lambda: product // one,
        lambda: one,
        lambda: one * rng.randint(0, max(1, product // one)),
        lambda: 1 << rng.randint(0, bits),
        lambda: product - (1 << rng.randint(0, bits - 1)),
        lambda: prefix,
        lambda: product - prefix,
        lambda: reach,
        lambda: product - reach,
        lambda: product // 2 - reach,
        lambda: product // 2 + reach,
        lambda: math.isqrt(product),
        lambda: math.isqrt(product // 2),
        lambda: 1 << 32 * rng.randint(0, bits // 32),
    )
    return rng.choice(choices)()


def number(rng: Random, factors: tuple[int, ...], product: int, ends: Ends) -> int:
    """One number of the range, at an edge more often than not."""
    kind = rng.random()
    if kind < 0.15:
        return rng.randint(*ends)
    if kind < 0.3:
        value = rng.getrandbits(rng.randint(1, product.bit_length()))
    elif kind < 0.4:
        return rng.choice(ends)
    else:
        value = landmark(rng, factors, product) + rng.randint(-2, 2)
    if ends[0] < 0 and rng.random() < 0.5:
        value = -value
    return clipped(value, ends)


def clipped(value: int, ends: Ends) -> int:
    return min(max(value, ends[0]), ends[1])


def numbers(rng: Random, factors: tuple[int, ...], product: int, ends: Ends, count: int) -> list[int]:
    """Numbers of one style: edges, uniform, small, near one another, few distinct ones, or all kinds."""
    style = rng.choice(("edges", "edges", "uniform", "small", "near", "ties", "lengths", "sorted"))
    bits = product.bit_length()
    if style == "edges":
        pool = [number(rng, factors, product, ends) for _ in range(min(count, 150))]
        return [rng.choice(pool) for _ in range(count)]
    if style == "uniform":
        return [rng.randint(*ends) for _ in range(count)]
    if style == "small":
        bound = rng.getrandbits(rng.randint(1, bits)) % (max(-ends[0], ends[1]) + 1)
        return [clipped(rng.randint(-bound, bound), ends) for _ in range(count)]
    if style == "near":  # fractions X/M that no evaluation tells apart
        centre, reach = number(rng, factors, product, ends), rng.choice((1, 3, 2**20))
        return [clipped(centre + rng.randint(-reach, reach), ends) for _ in range(count)]
    if style == "ties":
        pool = [number(rng, factors, product, ends) for _ in range(rng.randint(1, 3))]
        return [rng.choice(pool) for _ in range(count)]
    if style == "lengths":
        signs = (1, -1) if ends[0] < 0 else (1,)
        return [
            clipped(rng.choice(signs) * rng.getrandbits(rng.randint(1, bits)), ends) for _ in range(count)
        ]
    values = sorted(rng.randint(*ends) for _ in range(count))
    return values if rng.random() < 0.5 else values[::-1]


def partner(rng: Random, first: np.ndarray, ends: Ends) -> np.ndarray:
    """Numbers whose sum, difference or product with others is near an end of the range, or almost equal."""
    style = rng.choice(("sum", "difference", "product", "equal"))

    def mate(value: int) -> int:
        end = rng.choice(ends)
        near = {
            "sum": lambda: end - value,
            "difference": lambda: value - end,
            "product": lambda: end // value if value else end,
            "equal": lambda: value,
        }[style]()
        return clipped(near + rng.randint(-1, 1), ends)

    return objects(map(mate, first.reshape(-1).tolist()), first.shape)


def bound_for(rng: Random, values: np.ndarray, magnitude: int) -> int | None:
    """No bound, the least one, a loose one, or that of the whole range."""
    least = max(map(abs, values.reshape(-1).tolist()), default=0)
    loose = rng.randint(least, max(least, magnitude))
    return rng.choice((None, None, least, min(least + 1, magnitude), loose, magnitude))


# ---- shapes and chunks -------------------------------------------------------------------------------------


def shape(rng: Random, most: int) -> tuple[int, ...]:
    """One to three axes with at most so many numbers, now and then none."""
    axes = rng.choice((1, 1, 1, 2, 3))
    if rng.random() < 0.03:
        lengths = [rng.randint(0, 4) for _ in range(axes)]
        lengths[rng.randrange(axes)] = 0
        return tuple(lengths)
    if axes == 1:
        lengths = [n for n in (*LENGTHS, *LONG_LENGTHS, *LONG_LENGTHS) if n <= most]
        return (rng.choice(lengths),)
    made: list[int] = []
    for left in range(axes, 0, -1):
        limit = most // math.prod(made)
        limit = limit if left == 1 else max(1, round(limit ** (1 / left) * 1.5))
        made.append(rng.choice([n for n in LENGTHS if n <= limit]))
    rng.shuffle(made)
    return tuple(made)


def broadcastable(rng: Random, whole: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another one."""
    lengths = [1 if rng.random() < 0.5 else n for n in whole]
    first = rng.randint(0, len(whole) - 1)
    return tuple(lengths[first:])


def chunks(rng: Random, lengths: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Chunks along each axis, equal or not, few in all."""
    most = max(1, round(MAX_CHUNKS ** (1 / len(lengths))))
    return tuple(_axis_chunks(rng, length, most) for length in lengths)


def _axis_chunks(rng: Random, length: int, most: int) -> tuple[int, ...]:
    count = min(rng.randint(1, most), length)
    if count <= 1:
        return (length,)
    if rng.random() < 0.5:
        size = -(-length // count)
        return tuple(min(size, length - first) for first in range(0, length, size))
    cuts = sorted(rng.sample(range(1, length), count - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, length], strict=True))


def laid_out(array: np.ndarray, layout: str, xp: Any) -> Any:
    """Place an array on a processor with other strides; NumPy's is read-only."""
    made = xp.array(array, order="C")
    if layout == "strided":
        wide = xp.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=array.dtype)
        wide[..., ::2] = made
        made = wide[..., ::2]
    elif layout == "reversed":
        made = xp.array(array[..., ::-1], order="C")[..., ::-1]
    elif layout == "fortran":
        made = xp.array(array.T, order="C").T
    if isinstance(made, np.ndarray):
        made.flags.writeable = False
    return made
