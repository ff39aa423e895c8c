"""Primes of 32 bits, and sets of them for transforms, against trial division."""

import itertools
import math
import time

import pytest

import rnsdask as rd
from rnsdask.core.primes import is_prime, most_primes, prime_factors, primes_below


def has_no_divisor(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


# Strong pseudoprimes to one base or more, Carmichael numbers, products of two primes of one length, squares.
COMPOSITE = [
    *(1373653, 1530787, 25326001, 3215031751, 314821, 1082401, 2047, 3277, 4033, 4681, 8321, 561, 1729),
    *(2**32, 2**32 - 1, 65521**2, 65537 * 65519, 4, 49, 3721, 2 * 2147483647 + 2, 4294967297 - 2),
]


def test_primes_are_those_without_a_divisor() -> None:
    numbers = [*range(-2, 3000), *range(2**31 - 40, 2**31 + 12), *range(2**32 - 60, 2**32 + 1), *COMPOSITE]
    for n in numbers:
        assert is_prime(n) == has_no_divisor(n), n
    assert not any(map(is_prime, COMPOSITE))


def test_primes_below_a_limit() -> None:
    for limit, length in ((100, 1), (100, 4), (98, 8), (1000, 16), (2, 1), (3, 2), (17, 16), (18, 16)):
        expected = [p for p in range(limit - 1, 1, -1) if (p - 1) % length == 0 and has_no_divisor(p)]
        assert list(primes_below(limit, length)) == expected
    # Counted independently: shared tables of primes c 2**k + 1.
    assert [len(list(primes_below(2**31, 2**e))) for e in (20, 22, 24, 26, 30)] == [202, 40, 10, 3, 0]
    assert len(list(primes_below(2**32, 2**24))) == 24


@pytest.mark.parametrize("limit", [2**12 + 2**15 + 200, 10**5, 2**32, 2**31 - 2**17 + 1])
def test_many_primes_are_sieved(limit: int) -> None:
    """Some more than are tested one by one, down to those that are small primes themselves."""
    for first in (limit - 1, limit, limit + 1):
        found = list(itertools.islice(primes_below(min(first, 2**32), 1), 5000))
        expected = filter(is_prime, range(min(first, 2**32) - 1, 1, -1))
        assert found == list(itertools.islice(expected, 5000))


def test_bounds_of_how_many_primes() -> None:
    for bits in (*range(2, 15), 31):
        for e in range(16, 33) if bits == 31 else range(bits + 2):
            found = sum(1 for _ in primes_below(2**bits, 2**e))
            assert found <= most_primes(bits, 2**e) <= 2 ** max(bits - max(e, 1), 0) + 1
    assert most_primes(31, 1) < 3 * 105_097_565  # pi(2^31)


def test_hopeless_sets_are_refused_at_once() -> None:
    start = time.process_time()
    for length in (1, 2, 64, 2**11):
        with pytest.raises(ValueError, match=rf"at most \d+ primes below .* transforms of length {length};"):
            rd.ModuliSet.ntt_primes(10**11, length)
    assert time.process_time() - start < 20  # the search itself would take hours


def test_prime_factors() -> None:
    for n in (1, 2, 12, 360, 2**32, 2**32 - 1, 2**32 - 5, 65521**2, 3 * 5 * 17 * 257):
        factors = prime_factors(n)
        assert factors == sorted(set(factors))
        assert all(map(has_no_divisor, factors))
        rest = n
        for p in factors:
            while rest % p == 0:
                rest //= p
        assert rest == 1


@pytest.mark.timeout(60)  # trial division takes hours
def test_prime_factors_of_long_numbers() -> None:
    for factors in ([2, 4611686018427389243], [4294967279, 4294967291], [65537, 65539, 65543]):
        assert prime_factors(math.prod(factors)) == factors
    assert prime_factors(4294967291**2) == [4294967291]
    assert prime_factors(2**64) == [2]


@pytest.mark.parametrize(("bits", "length"), [(1, 1), (31, 2), (1024, 2**14), (5943, 2**20), (90, 2**26)])
def test_moduli_sets_for_transforms(bits: int, length: int) -> None:
    moduli = rd.ModuliSet.ntt_primes(bits, length)
    assert all(p < 2**31 and (p - 1) % length == 0 and is_prime(p) for p in moduli)
    assert list(moduli) == sorted(moduli, reverse=True)
    assert moduli.product >= 2**bits > math.prod(moduli.moduli[:-1])


def test_too_few_primes_are_counted() -> None:
    with pytest.raises(ValueError, match=r"^3 primes below 2\*\*31 .* length 67108864; their M of 91 bits"):
        rd.ModuliSet.ntt_primes(91, 2**26)
    with pytest.raises(ValueError, match=r"^202 primes below"):
        rd.ModuliSet.ntt_primes(10**30, 2**20)
    with pytest.raises(ValueError, match=r"^0 primes below"):
        rd.ModuliSet.ntt_primes(1, 2**40)
    for bits, length, message in (
        (0, 4, "bits must be at least 1"),
        (8, 12, "length must be a power of two, got 12"),
        (8, 0, "length must be a power of two, got 0"),
        (8, -4, "length must be a power of two"),
    ):
        with pytest.raises(ValueError, match=message):
            rd.ModuliSet.ntt_primes(bits, length)
    with pytest.raises(TypeError, match="length must be an integer"):
        rd.ModuliSet.ntt_primes(8, 4.0)  # type: ignore[arg-type]
