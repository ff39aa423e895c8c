"""Roots of unity of prime fields, against the definition."""

import math

import pytest

import rnsdask as rd


def test_roots_are_primitive() -> None:
    fields = rd.PrimeFields([4293918721, 2**31 - 2**27 + 1, 12289, 786433, 3 * 2**30 + 1])
    common = math.gcd(*(p - 1 for p in fields.primes))
    for order in (n for n in range(1, common + 1) if common % n == 0):
        for root, p in zip(fields.roots(order), fields.primes, strict=True):
            powers = {pow(root, k, p) for k in range(order)}
            assert len(powers) == order
            assert pow(root, order, p) == 1
    for k in range(11):
        for root, square, p in zip(
            fields.roots(2 ** (k + 1)), fields.roots(2**k), fields.primes, strict=True
        ):
            assert root * root % p == square
    assert rd.PrimeFields([2]).roots(1) == (1,)
    assert rd.PrimeFields([2**32 - 5]).roots(2) == (2**32 - 6,)


def test_a_field_without_the_root_is_named() -> None:
    fields = rd.PrimeFields([12289, 7, 786433])
    with pytest.raises(ValueError, match="field modulo 7 has no primitive root of unity of order 4"):
        fields.roots(4)
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        fields.roots(0)
    with pytest.raises(TypeError, match="length must be an integer"):
        fields.roots(2.0)  # type: ignore[arg-type]
