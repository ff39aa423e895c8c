"""Exact integers by their images modulo enough primes: bound, primes, images, Chinese remainder theorem.

The primes are those below 2**31, the greatest first; where sums of products are to fit a word, those below a
lower limit.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

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
def _group(k: int, limit: int) -> tuple[int, ...]:
    """The k-th group of primes below a limit."""
    below = _group(k - 1, limit)[-1] if k else limit
    return tuple(itertools.islice(primes_below(below, 1), _GROUP))


def _primes_from(start: int, limit: int = _LIMIT) -> Iterator[int]:
    """All primes below a limit but the first `start`."""
    k, skipped = divmod(start, _GROUP)
    groups = (_group(i, limit) for i in itertools.count(k))
    return itertools.islice(itertools.chain.from_iterable(groups), skipped, None)


@functools.lru_cache(CACHED_SETS)
def primes(start: int, count: int, limit: int = _LIMIT) -> ModuliSet:
    """So many primes below a limit after the first `start`."""
    return ModuliSet(itertools.islice(_primes_from(start, limit), count))


def count_beyond(limit: int, start: int = 0, below: int = _LIMIT) -> int:
    """How many primes below another limit, after the first `start`, have a product above a limit."""
    count, remaining = 0, _primes_from(start, below)
    while limit > 0:
        limit //= next(remaining)
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
    count, most = count_beyond(2 * bound + 1), at_a_time(words)
    parts = [primes(start, min(most, count - start)) for start in range(0, count, most)]
    return decode([image(base_extend(words, system, part), part) for part in parts], primes(0, count))


def decode(images: list[Array], moduli: ModuliSet) -> NDArray[np.object_]:
    """The integers around 0 of images (n, *shape) modulo parts of the moduli."""
    found: Any = RNS(moduli, signed=True).decode(np.concatenate(images))
    return np.asarray(found, dtype=object)
