"""The Chinese remainder theorem by a tree against Python's integers."""

import random

import numpy as np
import pytest

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.lift import decode, primes
from rnsdask.rns.remainder_tree import FEWEST_MODULI, MOST_NUMBERS, from_remainders


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 65, 300])
def test_integers_are_found_again(count: int, rng: np.random.Generator) -> None:
    moduli = primes(3, count)
    half, draw = moduli.product // 2, random.Random(int(rng.integers(2**32)))
    values = [0, 1, -1, half, -half, half - 1, *(draw.randint(-half, half) for _ in range(6))]
    residues = np.array([[v % m for v in values] for m in moduli], dtype=np.uint32).reshape(count, 3, 4)
    assert from_remainders(residues, moduli).tolist() == np.array(values, object).reshape(3, 4).tolist()


def test_moduli_need_not_be_prime() -> None:
    moduli = ModuliSet([4, 2**32 - 1, 7, 11])
    for value in (-5, 10**6, moduli.product // 2):
        residues = np.array([[value % m] for m in moduli], dtype=np.uint32)
        assert from_remainders(residues, moduli).tolist() == [value]


@pytest.mark.parametrize("numbers", [1, MOST_NUMBERS, MOST_NUMBERS + 1])
def test_few_numbers_and_many_as_well_are_decoded(numbers: int) -> None:
    moduli = primes(0, FEWEST_MODULI)
    values = [(-1) ** k * 3 ** (4000 + k) for k in range(numbers)]
    residues = np.array([[v % m for v in values] for m in moduli], dtype=np.uint32)
    assert decode([residues[:100], residues[100:]], moduli).tolist() == values
    assert decode([residues[:, :0]], moduli).shape == (0,)
