"""Pairwise coprime integers: searched, checked and multiplied in far less than quadratic time."""

import math
from collections.abc import Iterator, Sequence
from functools import cache

import gmpy2
import numpy as np
from numpy.typing import NDArray

_ONE_BY_ONE = 256
"""Integers found without a sieve: most sets need no more."""

_FIRST_SEGMENT, _LAST_SEGMENT = 2**12, 2**20
"""Candidates sieved at a time."""


def product_tree(values: Sequence[int]) -> list[list[gmpy2.mpz]]:
    """Multiply at least one value in a balanced tree, so that the factors of each level have similar lengths.

    Return the values, the products of every two of them, and so on; the last level is the product of all.
    """
    levels = [[gmpy2.mpz(value) for value in values]]
    while len(level := levels[-1]) > 1:
        levels.append(
            [level[i] * level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
        )
    return levels


def product(values: Sequence[int]) -> gmpy2.mpz:
    """Multiply at least one value."""
    return product_tree(values)[-1][0]


def partial_inverses(levels: list[list[gmpy2.mpz]]) -> list[int]:
    """Inverses of the partial products ``P / v``, each modulo its v, from the product tree of coprime values.

    Modulo v, the sum of all partial products is ``P / v``: the others are multiples of v.
    """
    sums = [gmpy2.mpz(1)] * len(levels[0])
    for level in levels[:-1]:
        pairs = zip(sums[::2], level[1::2], sums[1::2], level[::2], strict=False)
        sums = [u * b + v * a for u, b, v, a in pairs] + sums[len(sums) // 2 * 2 :]
    rests = sums
    for level in reversed(levels):
        rests = [rests[k // 2] % node for k, node in enumerate(level)] if len(level) > 1 else rests
    return [int(gmpy2.invert(rest, value)) for rest, value in zip(rests, levels[0], strict=True)]


def first_shared(values: Sequence[int]) -> tuple[int, int] | None:
    """Find the first of some positive values that shares a factor with an earlier one.

    Return the positions i < j of both, the smallest ones, or None if the values are pairwise coprime.
    """
    # From the root down: the product of all values before a node, modulo the node's own product.
    *levels, root = product_tree(values)
    before = [gmpy2.mpz(1) % root[0]]
    for level in reversed(levels):
        below = []
        for k, rest in enumerate(before):
            left, right = level[2 * k], level[2 * k + 1 : 2 * k + 2]
            below.append(rest % left)
            below.extend(rest % one * (left % one) % one for one in right)
        before = below
    pairs = enumerate(zip(before, values, strict=True))
    j = next((j for j, (rest, value) in pairs if gmpy2.gcd(rest, value) != 1), None)
    if j is None:
        return None
    return next(i for i in range(j) if math.gcd(values[i], values[j]) != 1), j


def greedy_coprime(first: int, step: int, stop: int) -> Iterator[int]:
    """Go through ``range(first, stop, step)``, and yield each integer coprime to all those yielded before.

    Integers are from 2 to 2**32; the step is -1, or 2 from an odd integer on. The first ones are tried one by
    one. Then a sieve: a candidate has at most one prime factor above the square root of the greatest
    candidate; its other factors are small primes. Primes that divide an integer taken before rule out their
    multiples. A candidate without small prime factors is itself prime. Few candidates are left then, the
    products of unused small primes: each that is taken uses one of these.
    """
    candidates = range(first, stop, step)
    taken: list[int] = []
    everything = gmpy2.mpz(1)
    start = 0
    while start < len(candidates) and len(taken) < _ONE_BY_ONE:
        if gmpy2.gcd(everything, candidates[start]) == 1:
            yield candidates[start]
            taken.append(candidates[start])
            everything *= candidates[start]
        start += 1
    sieve = _Sieve(primes_to(math.isqrt(max(first, stop))), taken)
    length = _FIRST_SEGMENT
    while start < len(candidates):
        yield from sieve.take(candidates[start : start + length])
        start += length
        length = min(2 * length, _LAST_SEGMENT)


class _Sieve:
    """Residues of the integers taken so far, by which candidates are sieved."""

    def __init__(self, small: NDArray[np.int64], taken: list[int]) -> None:
        self._unused = small
        self._used = small[:0]
        self._large: set[int] = set()  # primes above the small ones that divide an integer taken before
        for value in taken:
            self._use(value)

    def take(self, segment: range) -> list[int]:
        """Go through the next candidates, and return those that it takes."""
        ruled_out = multiples(segment, self._used)
        composite = multiples(segment, self._unused)
        large = np.flatnonzero(~(composite | ruled_out))
        for position in np.flatnonzero(composite & ~ruled_out).tolist():
            if ruled_out[position]:
                continue
            factors = self._use(segment[position])
            ruled_out[position] = not factors
            for prime in factors:
                ruled_out[position + prime :: prime] = True
        primes = [segment[position] for position in large.tolist()]
        ruled_out[large] = [prime in self._large for prime in primes]
        self._large.update(primes)
        return [segment[position] for position in np.flatnonzero(~ruled_out).tolist()]

    def _use(self, value: int) -> list[int]:
        """Return the factors of a product of unused small primes and maybe a large one; [] if it is used."""
        divides = value % self._unused == 0
        factors: list[int] = self._unused[divides].tolist()
        for prime in factors:
            while value % prime == 0:
                value //= prime
        if value in self._large:
            return []
        self._used = np.append(self._used, self._unused[divides])
        self._unused = self._unused[~divides]
        if value > 1:
            self._large.add(value)
            factors.append(value)
        return factors


def multiples(segment: range, primes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the candidates that are multiples of one of some primes below 2**16."""
    found = np.zeros(len(segment), np.bool_)
    if segment.step == 2:
        primes = primes[primes != 2]
        starts = -segment[0] % primes * ((primes + 1) // 2) % primes
    else:
        starts = segment[0] % primes
    often = primes < len(segment)
    found[starts[~often & (starts < len(segment))]] = True
    for start, prime in zip(starts[often].tolist(), primes[often].tolist(), strict=True):
        found[start::prime] = True
    return found


@cache
def primes_to(limit: int) -> NDArray[np.int64]:
    """All primes up to a limit, in ascending order."""
    is_prime = np.ones(limit + 1, np.bool_)
    is_prime[:2] = False
    for p in range(2, math.isqrt(limit) + 1):
        if is_prime[p]:
            is_prime[p * p :: p] = False
    return np.flatnonzero(is_prime)
