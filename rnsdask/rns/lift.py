"""Exact integers by their images modulo enough primes: bound, primes, images, Chinese remainder theorem.

The primes are those below 2**31, the greatest first; where sums of products are to fit a word, those below a
lower limit.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import primes_below
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

_LIMIT = 2**31
_GROUP = 32

# Numbers of operands are brought to so many primes at a time that they are about as many residues.
_RESIDUES = 2**24

Image = Callable[[Array, ModuliSet], Array]
"""Words of results modulo primes, (n, *shape), from words of operands modulo these."""


@functools.cache
def _group(k: int, limit: int, step: int) -> tuple[int, ...]:
    """The k-th group of primes below a limit that leave 1 modulo a step."""
    below = _group(k - 1, limit, step)[-1] if k else limit
    return tuple(itertools.islice(primes_below(below, step), _GROUP))


def _primes_from(start: int, limit: int, step: int) -> Iterator[int]:
    """All of these primes but the first `start`."""
    k, skipped = divmod(start, _GROUP)
    groups = (_group(i, limit, step) for i in itertools.count(k))
    return itertools.islice(itertools.chain.from_iterable(groups), skipped, None)


@functools.lru_cache(CACHED_SETS)
def primes(start: int, count: int, limit: int = _LIMIT, step: int = 1) -> ModuliSet:
    """So many primes below a limit that leave 1 modulo a step, the greatest first, but the first `start`."""
    return ModuliSet(itertools.islice(_primes_from(start, limit, step), count))


def count_beyond(limit: int, start: int = 0, below: int = _LIMIT, step: int = 1) -> int:
    """How many of the primes below another limit, after the first `start`, have a product above a limit."""
    count, remaining, rest = 0, _primes_from(start, below, step), gmpy2.mpz(limit)
    while rest > 0:
        rest //= next(remaining)
        count += 1
    return count


def at_a_time(words: Array) -> int:
    """Modulo how many primes to compute images of words (n, *shape) together."""
    return max(_GROUP, _RESIDUES // max(1, int(math.prod(words.shape[1:]))))


def lift(image: Image, words: Array, system: RNS, bound: int) -> NDArray[np.object_]:
    """Integers of which images modulo primes are known.

    Parameters
    ----------
    image : callable
        Computes the integers modulo primes, from the numbers modulo these.
    words : array of uint32, shape (n, *shape)
        The numbers, of a system.
    bound : int
        No result is greater in magnitude.

    Returns
    -------
    NumPy array of Python ints, shape (*shape of results)
    """
    count = count_beyond(2 * bound + 1)
    return decode(images(image, words, system, 0, count), primes(0, count))


def images(image: Image, words: Array, system: RNS, start: int, count: int) -> list[Array]:
    """Images modulo so many primes after the first `start`, of as many at a time as memory allows."""
    most, stop = at_a_time(words), start + count
    parts = [primes(first, min(most, stop - first)) for first in range(start, stop, most)]
    return [image(base_extend(words, system, part), part) for part in parts]


def lift_part(
    image: Image, words: Array, system: RNS, bound: int, group: tuple[int, int]
) -> NDArray[np.object_]:
    """What a group of primes, of which those that the bound needs count, says of integers.

    Parameters
    ----------
    image, words, system, bound
        As :func:`lift` takes them.
    group : pair of int
        The first primes that are left out, and how many are taken.

    Returns
    -------
    NumPy array of Python ints, shape (1, *shape of results), the last axis longer by 1
        The integers modulo the product of the primes, and last the product: 1 if none is needed.
    """
    start, count = group[0], max(0, min(group[1], count_beyond(2 * bound + 1) - group[0]))
    if count == 0:
        start, count = 0, 1  # only the shape counts
        product = 1
    else:
        product = primes(start, count).product
    residues = np.concatenate(images(image, words, system, start, count))
    found: Any = RNS(primes(start, count)).decode(residues)
    last = np.full((*found.shape[:-1], 1), product, dtype=object)
    return np.concatenate([found % product, last], axis=-1)[None]


def join_parts(parts: NDArray[np.object_]) -> NDArray[np.object_]:
    """One part (1, *shape) of several (k, *shape) as :func:`lift_part` gives them, of different primes."""
    total = parts[:1]
    for part in parts[1:] if total.size else ():
        modulus, other = int(total.flat[-1]), int(part.flat[-1])
        values = total[..., :-1]
        steps = (part[None, ..., :-1] - values) * pow(modulus, -1, other) % other
        last = np.full((*values.shape[:-1], 1), modulus * other, dtype=object)
        total = np.concatenate([values + modulus * steps, last], axis=-1)
    return total


def from_parts(part: NDArray[np.object_]) -> NDArray[np.object_]:
    """The integers around 0 of the one part (1, *shape) that all were joined to."""
    values, modulus = part[..., :-1], part[..., -1:]
    return np.where(2 * values > modulus, values - modulus, values)


def decode(images: list[Array], moduli: ModuliSet) -> NDArray[np.object_]:
    """The integers around 0 of images (n, *shape) modulo parts of the moduli."""
    found: Any = RNS(moduli, signed=True).decode(np.concatenate(images))
    return np.asarray(found, dtype=object)
