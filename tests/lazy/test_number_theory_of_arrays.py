"""gcd, lcm and bit_length of arrays: shapes, operands, laziness, bounds and errors."""

import math
from typing import Any

import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.core import generic
from rnsdask.rns import reduce

MODULI = rd.ModuliSet.for_bits(200)
SYSTEMS = {"signed": rd.RNS(MODULI, True), "unsigned": rd.RNS(MODULI), "interval": rd.IntervalRNS(MODULI)}
VALUES = [0, 1, 12, 18, 2**100, 2**90 * 3, 7, 0]


def made(values: object, kind: str, chunks: object = None) -> rd.IntervalRNSArray | rd.RNSArray:
    return rd.from_ints(values, SYSTEMS[kind], chunks=chunks)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", SYSTEMS)
def test_what_is_refused(kind: str) -> None:
    x = made(VALUES, kind)
    other = made(VALUES, "signed" if kind == "interval" else "interval")
    with pytest.raises(TypeError, match="do not mix"):
        rd.gcd(x, other)
    with pytest.raises(TypeError, match="takes at least one array of numbers"):
        rd.lcm(4, 6)
    with pytest.raises(TypeError, match="an operand beside an array of numbers must be an integer"):
        rd.gcd(x, 1.5)
    with pytest.raises(TypeError, match=r"bit_length takes at least one array of numbers, got int"):
        rd.bit_length(5)
    with pytest.raises(ValueError, match=r"outside the .*range"):
        rd.gcd(x, MODULI.product)
    with pytest.raises(ValueError, match="overflow must be one of"):
        rd.gcd(x, 5, overflow="ignore")
    with pytest.raises(ValueError, match="do not broadcast"):
        rd.gcd(x, x[:3])
    with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 4"):
        rd.lcm(x, 3**125)


@pytest.mark.parametrize("kind", SYSTEMS)
def test_roots(kind: str) -> None:
    values = [v * v + d for v in (1, 2**30, 2**99 + 1) for d in (-1, 0, 1)]
    roots = list(map(math.isqrt, values))
    for chunks in (None, 4):
        assert rd.isqrt(made(values, kind, chunks)).to_ints().tolist() == roots
    assert rd.isqrt(made([], kind)).to_ints().tolist() == []
    if kind != "unsigned":
        with pytest.raises(ValueError, match="the number at flat index 2 is negative: it has no square root"):
            rd.isqrt(made([4, 9, -1, -4], kind, 4)).to_ints()


def test_bounds_hold() -> None:
    x, y = (rd.from_ints([0, 5, v], SYSTEMS["signed"]) for v in (-(2**60), 2**50))
    assert (x.bound, y.bound) == (2**60, 2**50)
    assert rd.gcd(x, y).bound == 2**60  # of 0 and -2**60
    assert rd.gcd(x, 12).bound == 12
    assert rd.gcd(x, 0).bound == 2**60
    assert rd.lcm(x, y).bound == 2**110
    assert rd.isqrt(abs(x)).bound == 2**30
    assert rd.gcd(x.with_bound(None), y).bound is None
    assert rd.gcd(x.with_bound(None), -12).bound == 12
    lowest = SYSTEMS["signed"].value_range[0]
    edge = rd.from_ints([lowest], SYSTEMS["signed"], chunks=None)
    wrapped, mask = rd.gcd(edge, 0, overflow="flag")
    assert mask.tolist() == [True]
    assert wrapped.to_ints().tolist() == [lowest]
    assert wrapped.bound is None


def test_numbers_are_taken_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generic, "EXACT_WORDS", 3 * len(MODULI))
    values = [*range(20), 2**222]
    for kind in SYSTEMS:
        x = made(values, kind)
        assert rd.gcd(x, x[::-1]).to_ints().tolist() == list(map(math.gcd, values, values[::-1]))
        with pytest.raises(rd.RNSOverflowError, match="overflow at flat index 20"):
            rd.lcm(x, 101)
        _, mask = rd.lcm(x, 101, overflow="flag")
        assert mask.tolist() == [False] * 20 + [True]


WIDE = rd.ModuliSet.for_bits(300)
P, Q = 2**89 - 1, 2**61 - 1  # primes
STRIPPED = math.prod(primes := [3, 5, 2**31 - 1, Q, P])
"""Its factors are lost one after another, by numbers that are far from one another."""

COMMON = {
    "zeros": ([0] * 3000, 0),
    "one number behind zeros": ([0] * 3000 + [-6 * P], 6 * P),
    "multiples, and one that is none": ([k * P for k in range(-999, 2000)] + [P + 1], 1),
    "multiples of a long number": ([k * P * Q for k in range(0, 3000, 7)], 7 * P * Q),
    "multiples of a modulus": ([WIDE[0] * k * k for k in range(2000)], WIDE[0]),
    "the least number": ([-(2**255)] * 200, 2**255),
    "factors that are lost": (
        [STRIPPED] * 700 + [v for p in primes for v in [STRIPPED // p, *[0] * 700]],
        math.gcd(*(STRIPPED // p for p in primes)),
    ),
    "negative ones": ([-6, -10, -15] * 300, 1),
    "one": ([-(2**200)], 2**200),
}


@pytest.mark.parametrize("name", COMMON)
@pytest.mark.parametrize("system", ["residues", "intervals", "limbs"])
def test_common_divisors_of_all(
    name: str, system: str, on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduce, "EXACT_RESIDUES", 2**13)
    values, expected = COMMON[name]
    made: Any = {
        "residues": (rd.RNSArray, rd.RNS(WIDE, signed=True)),
        "intervals": (rd.IntervalRNSArray, rd.IntervalRNS(WIDE)),
        "limbs": (rd.PositionalArray, rd.Positional(256, signed=True)),
    }
    of_words, of = made[system]
    x = of_words(on_each_processor.xp.asarray(of.encode(values)), of)
    assert x.gcd() == expected == math.gcd(*values)
