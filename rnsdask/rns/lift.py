"""Exact integers from their images modulo enough primes: bound, primes, images, Chinese remainder theorem.

The primes are below 2**31, or below a lower limit if sums of products must fit a word; the greatest come
first.

A part (*shape) holds integers modulo a product of primes: in each row along the last axis first the integers,
then the product.
"""

import functools
import itertools
import math
import threading
from collections.abc import Callable, Iterator

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_any, kernels_of, to_backend
from rnsdask.constants import ExtensionConstants, extension_constants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet, unchecked_set
from rnsdask.core.primes import primes_below
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

_LIMIT = 2**31

# Primes by whose product a bound is divided at a time.
_GROUP = 4

# Approximate residues of operands modulo the primes of one step, and the fewest primes. On a CPU, little
# memory that is reused is quicker than much memory.
RESIDUES = {"cpu": 2**21, "cuda": 2**26}
_LEAST = {"cpu": 8, "cuda": 32}

# Most numbers, and fewest moduli, for which a GPU would not be busy, so that the host decodes.
_FEW_NUMBERS, _MANY_MODULI = 16, 96

Image = Callable[[Array, ModuliSet], Array]
"""Function from words of operands modulo primes to words of results (n, *shape) modulo these."""


class _Primes:
    """Primes below a limit that are 1 modulo a step, the greatest first; found primes are cached."""

    def __init__(self, limit: int, step: int) -> None:
        self._found: list[int] = []
        self._more = primes_below(limit, step)
        self._lock = threading.Lock()

    def between(self, start: int, stop: int) -> list[int]:
        """Primes from number `start` to `stop`; fewer if no more exist."""
        with self._lock:
            self._found.extend(itertools.islice(self._more, max(0, stop - len(self._found))))
            return self._found[start:stop]


_primes_of = functools.cache(_Primes)


@functools.lru_cache(CACHED_SETS)
def primes(start: int, count: int, limit: int = _LIMIT, step: int = 1) -> ModuliSet:
    """Take `count` primes below a limit that are 1 modulo a step, descending, after `start` others."""
    return unchecked_set(_primes_of(limit, step).between(start, start + count))


@functools.lru_cache(CACHED_SETS)
def count_beyond(limit: int, start: int = 0, below: int = _LIMIT, step: int = 1) -> int:
    """Count the primes, after the first `start` below `below`, that give a product above a limit."""
    known, rest = _primes_of(below, step), gmpy2.mpz(limit)
    # The product of this many primes is not above the limit; it is cached with their set.
    count = max(0, int(rest.bit_length()) - 1) // (below - 1).bit_length()
    if count and (least := primes(start, count, below, step)):
        count, rest = len(least), rest // least.product
    while rest > 0:
        following = known.between(start + count, start + count + _GROUP)
        if not following:
            raise ValueError(f"the primes below {below} have no product above {abbreviate(limit)}")
        for prime in following:
            rest //= prime
            count += 1
            if rest == 0:
                break
    return count


def at_a_time(words: Array) -> int:
    """Number of primes for which images of words (n, *shape) are computed together."""
    processor = backend_name(words)
    return max(_LEAST[processor], RESIDUES[processor] // max(1, int(math.prod(words.shape[1:]))))


def parts_of(words: Array, start: int, count: int) -> Iterator[tuple[int, int]]:
    """Divide `count` primes after the first `start` into parts of similar size: starts and sizes."""
    number = -(-count // at_a_time(words))
    if number <= 1:
        return iter([(start, count)][:number])
    ends = [start + count * k // number for k in range(number + 1)]
    return ((first, stop - first) for first, stop in itertools.pairwise(ends))


def lift(image: Image, words: Array, system: RNS, bound: int) -> NDArray[np.object_]:
    """Compute integers up to `bound` in magnitude from their images modulo primes."""
    count = count_beyond(2 * bound + 1)
    return decode(images(image, words, system, 0, count), primes(0, count))


def images(image: Image, words: Array, system: RNS, start: int, count: int) -> list[Array]:
    """Compute images modulo `count` primes after the first `start`, in steps of bounded memory."""
    parts = [primes(first, size) for first, size in parts_of(words, start, count)]
    return [image(modulo_primes(words, system, part), part) for part in parts]


def modulo_primes(words: Array, system: RNS, part: ModuliSet) -> Array:
    """Residues of numbers modulo primes, as by :func:`.base_extend`, but quicker for few numbers."""
    if isinstance(words, np.ndarray) and (constants := _extension(system, part)) is not None:
        out = np.empty((len(part), math.prod(words.shape[1:])), dtype=np.uint32)
        if not is_any(kernels_of(words).base_extend(as_matrix(words), constants, out)):
            return out.reshape(len(part), *words.shape[1:])
    return base_extend(words, system, part)


@functools.lru_cache(CACHED_SETS)
def _extension(system: RNS, part: ModuliSet) -> ExtensionConstants | None:
    """Constants of an extension to primes, or None if one of them is a modulus of the system."""
    if not set(part).isdisjoint(system.moduli):
        return None
    return extension_constants(system.moduli, part, system.signed, system.bound)


def part_of(images: list[Array], moduli: ModuliSet) -> NDArray[np.object_]:
    """Part (*shape) of integers from their images (n, *shape) modulo primes; its last axis is longer by 1.

    Each row along the last axis holds the integers modulo the product of the primes, and last the product.
    """
    found = decode(images, moduli)
    product = np.full((*found.shape[:-1], 1), moduli.product, dtype=object)
    return np.concatenate([found, product], axis=-1)


def empty_part(shape: tuple[int, ...]) -> NDArray[np.object_]:
    """Part without information about integers (*shape): they are 0 modulo 1."""
    part = np.zeros((*shape[:-1], shape[-1] + 1), dtype=object)
    part[..., -1] = 1
    return part


def decode(images: list[Array], moduli: ModuliSet) -> NDArray[np.object_]:
    """Convert images (n, *shape) modulo parts of the moduli to integers around 0."""
    residues = images[0] if len(images) == 1 else np.concatenate(images)
    if residues[0].size <= _FEW_NUMBERS and len(residues) >= _MANY_MODULI:
        residues = to_backend(residues, "cpu")
    return residues_to_ints(residues, moduli, signed=True)


_AS_MPZ = np.frompyfunc(gmpy2.mpz, 1, 1)
_AS_INT = np.frompyfunc(int, 1, 1)

# Most rows have the same two moduli as the row before, and large ones take long to invert.
_INVERSE = np.frompyfunc(functools.lru_cache(4)(gmpy2.invert), 2, 1)


def join_parts(parts: NDArray[np.object_]) -> NDArray[np.object_]:
    """Join parts (k, *shape) of different primes, of Python ints, to one (1, *shape).

    Two numbers a modulo m and b modulo n are ``a + m ((b - a) / m modulo n)`` modulo m n; so are pairs of
    pairs, up to the product of all (J. von zur Gathen, J. Gerhard, "Modern Computer Algebra", section 10.3).
    """
    joined = np.asarray(_AS_MPZ(parts), dtype=object)
    while len(joined) > 1:
        half = len(joined) // 2
        a, b, rest = np.split(joined, [half, 2 * half])
        modulus, other = a[..., -1:], b[..., -1:]
        steps = (b[..., :-1] - a[..., :-1]) * _INVERSE(modulus, other) % other
        pairs = np.concatenate([a[..., :-1] + modulus * steps, modulus * other], axis=-1)
        joined = np.concatenate([pairs, rest])
    return np.asarray(_AS_INT(joined), dtype=object)


def from_parts(part: NDArray[np.object_]) -> NDArray[np.object_]:
    """Convert the part that joins all others to integers around 0."""
    values, modulus = part[..., :-1], part[..., -1:]
    return np.where(2 * values > modulus, values - modulus, values)
