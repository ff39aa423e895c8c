"""Generalized Fermat primes r**k + 1 with a sparse radix r: found to be prime, and proved."""

from functools import lru_cache
from math import gcd

import gmpy2

from rnsdask.core.primes import prime_factors


@lru_cache(64)
def factors_of_radix(radix: int) -> tuple[int, ...]:
    """Distinct prime factors of a radix from 2 to 2**64, in ascending order."""
    return tuple(prime_factors(radix))


@lru_cache(256)
def is_fermat_prime(radix: int, digits: int) -> bool:
    """Decide whether p = radix**digits + 1 is a prime: "no" by a test that primes pass, "yes" by a proof.

    p - 1 is a power of the radix, whose prime factors are known. By the theorem of H. Pocklington (1914), p
    is prime if p - 1 has a divisor F above sqrt(p) - 1, coprime to (p - 1) / F, and for each prime factor q
    of F there is an a with a**(p - 1) = 1 modulo p, and a**((p - 1) / q) - 1 coprime to p. F is the product
    of the greatest prime powers in p - 1, as many as it takes.
    """
    p = gmpy2.mpz(radix) ** digits + 1
    if p < 2**32:
        return bool(gmpy2.is_prime(p))  # exact in this range
    if not gmpy2.is_prime(p):
        return False
    powers = {q: gmpy2.mpz(q) ** _multiplicity(p - 1, q) for q in factors_of_radix(radix)}
    proved = gmpy2.mpz(1)
    for q in sorted(powers, key=powers.__getitem__, reverse=True):
        if not _has_witness(p, q):
            return False
        proved *= powers[q]
        if proved * proved > p:
            return True
    return False


def _multiplicity(n: int, q: int) -> int:
    _, count = gmpy2.remove(n, q)
    return int(count)


def _has_witness(p: int, q: int) -> bool:
    """Whether an a is found that Pocklington's theorem needs for the prime factor q of p - 1."""
    for a in range(2, 2**16):
        if q == 2 and gmpy2.jacobi(a, p) != -1:
            continue  # the half power of a square is 1, without a computation
        root = gmpy2.powmod(a, (p - 1) // q, p)
        if root != 1:
            return bool(gmpy2.powmod(root, q, p) == 1) and gcd(int(root) - 1, int(p)) == 1
    return False
