"""Inverses of many numbers by a few, against Python's integers."""

from math import gcd

import numpy as np
import pytest
from conftest import Processor
from oracles import rns

import rnsdask as rd
from rnsdask.rns import powers
from rnsdask.rns.powers import invert_together

MODULI = [[2**32], [2**32 - 5], [3], [2**32, 2**31 - 1, 3 * 5 * 7], [*rd.ModuliSet.for_bits(640)]]


@pytest.mark.parametrize("moduli", MODULI, ids=len)
@pytest.mark.parametrize("count", [1, 50, 1023, 1025, 2500])
def test_inverses_of_many(
    moduli: list[int],
    count: int,
    rng: np.random.Generator,
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(powers, "WORDS", 2000)  # several parts
    given = rd.ModuliSet(moduli)
    product = given.product
    drawn = [int.from_bytes(rng.bytes(90), "little") % product for _ in range(count)]
    numbers = [next(v for v in range(v, v + 2000) if gcd(v, product) == 1) % product for v in drawn]
    residues = rns.encode(numbers, given)
    found, failed = powers.inverses_of(on_each_processor.xp.asarray(residues), given)
    assert failed is None
    expected = rns.encode([pow(v, -1, product) for v in numbers], given)
    np.testing.assert_array_equal(on_each_processor.to_numpy(found), expected)
    for place in {0, count // 2, count - 1}:
        wrong = residues.copy()
        wrong[-1, place:] = 0  # the first of some that have none
        _, failed = powers.inverses_of(on_each_processor.xp.asarray(wrong), given)
        assert failed == (len(moduli) - 1, place)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 63, 64, 65])
def test_products_are_three_for_each(count: int) -> None:
    """Invert residues modulo a prime, and count the products that are computed."""
    p, products = 10007, 0

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal products
        products += a.size
        return a * b % p

    def invert(a: np.ndarray) -> np.ndarray:
        assert a.size <= 2
        return np.array([[pow(int(v), -1, p) for v in a[0]]])

    elements = np.arange(1, count + 1)[None]
    found = invert_together(elements, multiply, invert, 2)
    assert (elements * found % p == 1).all()
    assert products <= 3 * count
