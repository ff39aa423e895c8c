"""Rational numbers from their images, against those that they were made of, and against a search."""

import math

import numpy as np
import pytest

from rnsdask.rns.rational import rational


def drawn(rng: np.random.Generator, bits: int) -> int:
    return int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits


@pytest.mark.parametrize("bits", [3, 31, 64, 200, 769, 3000, 20_000])
def test_fractions_come_back(bits: int, rng: np.random.Generator) -> None:
    for kind in range(20 if bits < 5000 else 4):
        lengths = (bits, bits) if kind % 4 < 2 else ((1, bits) if kind % 4 == 2 else (bits, 1))
        n, d = (drawn(rng, length) for length in lengths)
        n, d = (-n if kind % 2 else n), d + 1
        n, d = (2 ** lengths[0] if kind == 0 else n), (2 ** lengths[1] if kind == 0 else d)
        modulus = 2 ** (sum(lengths) + 1) + 1
        while math.gcd(modulus, d) > 1:
            modulus += 2
        expected = n // math.gcd(n, d), d // math.gcd(n, d)
        image = n * pow(d, -1, modulus) % modulus
        assert rational(image, modulus, 2 ** lengths[0], 2 ** lengths[1]) == expected


@pytest.mark.parametrize("modulus", [1009, 2**13, 3**8, 5 * 7 * 11 * 13])
def test_all_there_are(modulus: int) -> None:
    """Every image of a small modulus: the fraction that a search finds, or none."""
    for most in (1, 7, math.isqrt((modulus - 1) // 2)):
        other = (modulus - 1) // (2 * most)
        for image in range(0, modulus, 5):
            found = rational(image, modulus, most, other)
            expected = None
            for d in range(1, other + 1):
                n = (d * image + most) % modulus - most
                if n <= most:
                    expected = n, d
                    break
            if expected is None:
                assert found is None
            else:
                assert found is not None
                n, d = map(int, found)
                assert (n - d * image) % modulus == 0
                assert abs(n) <= most
                assert 1 <= d <= other
                assert n * expected[1] == expected[0] * d
