"""Factorials, binomial coefficients and primorials of Python ints, and how long they are.

Errors of a number have ``{index}`` where its flat index belongs.
"""

import math

import gmpy2

from rnsdask.core.errors import NumberError, abbreviate

LONGEST = 2**25
"""Most bits of a result, which are the most that a moduli set holds."""


def factorial(n: int) -> int:
    """Return n!, as ``math.factorial``."""
    _check("factorial", n, bits_of_factorial(n))
    return int(gmpy2.fac(n))


def binomial(n: int, k: int) -> int:
    """Return the number of ways to choose k of n things, as ``math.comb``: 0 for k > n."""
    few = min(k, n - k) if 0 <= k <= n else 0
    _check("binomial", min(n, k), bits_of_binomial(n, few))
    return int(gmpy2.bincoef(n, few)) if k <= n else 0


def primorial(n: int) -> int:
    """Return the product of all primes up to n."""
    _check("primorial", n, bits_of_primorial(n))
    return int(gmpy2.primorial(n))


def bits_of_factorial(n: int) -> float:
    """Bits of n! and at most two more; infinite for long results."""
    return math.lgamma(n + 1) / math.log(2) + 1 if 0 <= n <= LONGEST else math.inf


def bits_of_binomial(n: int, k: int) -> float:
    """Upper bound of a binomial coefficient's bits for 0 <= 2 k <= n: it is at most (e n / k)**k."""
    if k == 0:
        return 1
    return k * (math.log2(n) - math.log2(k) + 1.4427) + 1 if k <= LONGEST else math.inf


def bits_of_primorial(n: int) -> float:
    """Upper bound of a primorial's bits.

    The logarithms of the primes up to n sum up to less than 1.01624 n: J. B. Rosser and L. Schoenfeld,
    "Approximate formulas for some functions of prime numbers" (1962), (3.32).
    """
    return 1.4662 * n + 1 if 0 <= n <= LONGEST else math.inf


def _check(name: str, least: int, bits: float) -> None:
    """Raise NumberError for the arguments of one result, the least of which must not be negative."""
    if least < 0:
        raise NumberError(
            f"{name} takes numbers of at least 0, got {abbreviate(least)} at flat index {{index}}"
        )
    if bits > LONGEST:
        raise NumberError(f"{name} at flat index {{index}} would have more than {LONGEST} bits")
