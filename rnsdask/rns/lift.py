"""Exact integers by their images modulo enough primes: bound, primes, images, Chinese remainder theorem.

The primes are the greatest below 2**31, in groups, so that constants of groups are computed once.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import primes_below
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

_LIMIT = 2**31
_GROUP = 32

Image = Callable[[Array, ModuliSet], Array]
"""Words of results modulo primes, (n, *shape), from words of operands modulo these."""


@functools.cache
def _group(k: int) -> ModuliSet:
    """The k-th group of primes."""
    limit = min(_group(k - 1)) if k else _LIMIT
    return ModuliSet(itertools.islice(primes_below(limit, 1), _GROUP))


def groups() -> Iterator[ModuliSet]:
    """All groups of primes, one after another."""
    return map(_group, itertools.count())


def groups_holding(bound: int) -> Iterator[ModuliSet]:
    """Groups of primes, the last one cut, whose product is above twice a bound."""
    rest = 2 * bound + 1
    for group in groups():
        count = 0
        while rest > 0 and count < len(group):
            rest //= group[count]
            count += 1
        yield group if count == len(group) else ModuliSet(group.moduli[:count])
        if rest == 0:
            return


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
    used = list(groups_holding(bound))
    images = [image(base_extend(words, system, group), group) for group in used]
    return decode(images, used)


def decode(images: list[Array], moduli: list[ModuliSet]) -> NDArray[np.object_]:
    """The integers around 0 of images (n, *shape) modulo primes of several groups."""
    primes = ModuliSet(p for group in moduli for p in group)
    found: Any = RNS(primes, signed=True).decode(np.concatenate(images))
    return np.asarray(found, dtype=object)
