"""Primes of at most 64 bits: proved, found, and the roots of unity modulo them."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import count

import gmpy2
import numpy as np

from rnsdask.core.coprime import multiples, primes_to

_ONE_BY_ONE, _SEGMENT = 2**12, 2**15
"""Number of candidates tested one by one, and of those sieved at a time."""

_TRIAL_DIVISORS = 256
"""Numbers below this are tried as divisors; greater ones are found by their cycles."""

# No composite number below 4,759,123,141, so none up to 2**32, is a strong pseudoprime to all of these bases:
# G. Jaeschke, "On strong pseudoprimes to several bases", Mathematics of Computation 61 (1993).
_BASES = (2, 7, 61)

# No composite number up to 2**64 is one to all of these: J. Sorenson and J. Webster, "Strong pseudoprimes to
# twelve prime bases", Mathematics of Computation 86 (2017).
_LONG_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(n: int) -> bool:
    """Decide whether an integer up to 2**64 is a prime, by the Miller-Rabin test, which is a proof there."""
    bases = _BASES if n <= 2**32 else _LONG_BASES
    if n < 2 or any(n % base == 0 for base in bases):
        return n in bases
    return all(gmpy2.is_strong_prp(n, base) for base in bases)


def primes_below(limit: int, length: int) -> Iterator[int]:
    """The primes p below a limit of at most 2**32 with p - 1 divisible by `length`, the greatest first.

    The first candidates are tested one by one; later ones are sieved.
    """
    candidates = range(limit - 1 - (limit - 2) % length, 1, -length)
    yield from filter(is_prime, candidates[:_ONE_BY_ONE])
    start = _ONE_BY_ONE
    if length == 1:
        small = primes_to(math.isqrt(limit))
        while start + _SEGMENT < limit - math.isqrt(limit):  # small primes are multiples of themselves
            segment = candidates[start : start + _SEGMENT]
            yield from (segment[k] for k in np.flatnonzero(~multiples(segment, small)).tolist())
            start += _SEGMENT
    yield from filter(is_prime, candidates[start:])


def most_primes(bits: int, length: int) -> int:
    """Upper bound of the number of primes below 2**bits with p - 1 divisible by a power of two, in O(1).

    Of x numbers, at most ``2 x / (phi(q) log(x / q))`` are primes that leave 1 when divided by q < x: H.
    Montgomery and R. Vaughan, "The large sieve", Mathematika 20 (1973). phi(q) is q / 2 for a power of two.
    """
    q = max(2, length)  # the prime 2 is counted by the 1 that is added
    exponent = bits - (q.bit_length() - 1)
    if exponent <= 0:
        return 0
    return min(1 << exponent, (40000 << exponent) // (6931 * exponent)) + 1  # log 2 is 0.69314...


def prime_factors(n: int) -> list[int]:
    """The prime factors of an integer from 1 to 2**64, each once and in ascending order."""
    factors = set()
    for divisor in range(2, _TRIAL_DIVISORS):
        while n % divisor == 0:
            factors.add(divisor)
            n //= divisor
    parts = [n] if n > 1 else []
    while parts:
        part = parts.pop()
        if is_prime(part):
            factors.add(part)
        else:
            divisor = _divisor(part)
            parts += [divisor, part // divisor]
    return sorted(factors)


def _divisor(n: int) -> int:
    """A divisor of a composite number, neither 1 nor itself.

    J. Pollard, "A Monte Carlo method for factorization", BIT 15 (1975).
    """
    for shift in count(1):
        slow = fast = 2
        found = 1
        while found == 1:
            slow = (slow * slow + shift) % n
            fast = (fast * fast + shift) % n
            fast = (fast * fast + shift) % n
            found = math.gcd(slow - fast, n)
        if found != n:
            return found
    raise AssertionError(n)


@lru_cache(4096)  # every transform asks; finding one takes as long as a short transform
def root_of_unity(length: int, prime: int) -> int:
    """A primitive root of unity modulo a prime p, of an order that divides p - 1.

    It is ``x**((p - 1) / length)`` for the least x that makes it primitive: for each prime factor q of the
    length, ``x**((p - 1) / q)`` is not 1. So x depends on these factors alone. The root for a power of two is
    the square of the root for the next one.
    """
    factors = prime_factors(length)
    x = next(x for x in count(1) if all(pow(x, (prime - 1) // q, prime) != 1 for q in factors))
    return pow(x, (prime - 1) // length, prime)


def logarithm_of_root(root: int, base: int, order: int, prime: int) -> int:
    """The k below `order`, a power of two, with ``base**k = root``, of two of its roots; base is primitive.

    S. Pohlig and M. Hellman, "An improved algorithm for computing logarithms over GF(p)", 1978: bit by bit.
    """
    k, rest, factor = 0, root, pow(base, -1, prime)
    for bit in range(order.bit_length() - 1):
        if pow(rest, order >> bit + 1, prime) != 1:
            k |= 1 << bit
            rest = rest * factor % prime
        factor = factor * factor % prime
    return k
