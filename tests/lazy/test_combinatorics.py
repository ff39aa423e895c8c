"""Factorials, binomial coefficients and primorials of arrays, against Python and FLINT."""

import math
from typing import Any

import flint
import pytest

import rnsdask as rd
from rnsdask.core import combinatorics, ranges

MODULI = rd.ModuliSet.for_bits(200)
SYSTEMS = {
    "growing": None,
    "signed": rd.RNS(MODULI, signed=True),
    "intervals": rd.IntervalRNS(MODULI),
    "limbs": rd.Positional(200),
}
NUMBERS = [0, 1, 2, 3, 10, 13, 14, 31, 40]


def primorial(n: int) -> int:
    return math.prod(p for p in range(2, n + 1) if flint.fmpz(p).is_prime())


@pytest.mark.parametrize("chunks", [None, 4])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_values_are_pythons(kind: str, chunks: int | None) -> None:
    x: Any = rd.array(NUMBERS, SYSTEMS[kind], chunks=chunks)
    assert rd.factorial(x).to_ints().tolist() == list(map(math.factorial, NUMBERS))
    assert rd.primorial(x).to_ints().tolist() == list(map(primorial, NUMBERS))
    pairs = rd.binomial(x[:, None], x[None, :]).to_ints().tolist()
    assert pairs == [[math.comb(n, k) for k in NUMBERS] for n in NUMBERS]
    assert rd.binomial(x, 3).to_ints().tolist() == [math.comb(n, 3) for n in NUMBERS]
    assert rd.binomial(64, x).to_ints().tolist() == [math.comb(64, k) for k in NUMBERS]


def test_results_out_of_range() -> None:
    x = rd.array([5, 100, 6], rd.Positional(64))
    with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 1"):
        rd.factorial(x)
    found, mask = rd.factorial(x, overflow="flag")
    assert found.tolist() == [120, math.factorial(100) % 2**64, 720]
    assert mask.tolist() == [False, True, False]
    wrapped = rd.binomial(rd.array([500], MODULI), 250, overflow="wrap")
    assert wrapped.tolist() == [math.comb(500, 250) % MODULI.product]


def test_what_is_refused() -> None:
    x = rd.array([3, -1, 7], chunks=2)
    for function in (rd.factorial, rd.primorial, lambda y: rd.binomial(y, 2), lambda y: rd.binomial(2, y)):
        with pytest.raises(ValueError, match="takes numbers of at least 0, got -1 at flat index 1"):
            function(x).to_ints()
        with pytest.raises(TypeError, match="takes no FieldArray"):
            function(rd.array([3], rd.PrimeFields([7])))
    huge = rd.array([3, 2**64], bits=200)
    for function in (rd.factorial, rd.primorial, lambda y: rd.binomial(y, 2**63)):
        with pytest.raises(ValueError, match="at flat index 1 would have more than 33554432 bits"):
            function(huge)
    with pytest.raises(rd.RNSOverflowError, match="no moduli set holds more than 33554432 bits"):
        rd.factorial(rd.array([2**64]))
    assert rd.binomial(huge, 2).to_ints().tolist() == [3, math.comb(2**64, 2)]


def test_lengths_and_ranges_hold_the_values() -> None:
    for n in [*range(200), 1000, 4096, 50_003]:
        bits = math.factorial(n).bit_length()
        assert bits <= combinatorics.bits_of_factorial(n) + 1 <= bits + 3, n
        assert primorial(n).bit_length() <= combinatorics.bits_of_primorial(n) + 1, n
    for n in range(60):
        for k in range(n // 2 + 1):
            assert math.comb(n, k).bit_length() <= combinatorics.bits_of_binomial(n, k), (n, k)
    for low, high in ((0, 0), (0, 7), (3, 9), (8, 12), (11, 11)):
        for n in range(13):
            greatest = max(math.comb(m, k) for m in range(n + 1) for k in range(low, high + 1))
            assert greatest <= ranges.binomial((0, n), (low, high))[1], (n, low, high)


def test_in_expressions() -> None:
    assert rd.required_bits("factorial(n)", n=20) == math.factorial(20).bit_length()
    assert rd.required_bits("binomial(n, k) + 1", n=64, k=64) == (math.comb(64, 32) + 1).bit_length()
    with pytest.raises(ValueError, match="more than 1048576 bits"):
        rd.required_bits("primorial(n)", n=2**70)
