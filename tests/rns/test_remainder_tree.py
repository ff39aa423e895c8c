"""The Chinese remainder theorem by a tree against Python's integers."""

import math
import random

import numpy as np
import pytest

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.lift import decode, primes
from rnsdask.rns.remainder_tree import (
    MOST_NUMBERS,
    from_parts,
    from_remainders,
    is_quicker,
    join_parts,
)


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
    moduli = primes(0, 340)
    assert is_quicker(len(moduli), numbers) == (numbers <= MOST_NUMBERS)
    values = [(-1) ** k * 3 ** (4000 + k) for k in range(numbers)]
    residues = np.array([[v % m for v in values] for m in moduli], dtype=np.uint32)
    assert decode([residues[:100], residues[100:]], moduli).tolist() == values
    assert decode([residues[:, :0]], moduli).shape == (0,)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_rows_of_parts_have_moduli_of_their_own(count: int, rng: np.random.Generator) -> None:
    """As of solutions, where a bad prime is lacking in some rows, or all that a group has of them."""
    draw = random.Random(int(rng.integers(2**32)))
    products = [[primes(9 * k, 8).product, 1 if k == 1 else primes(9 * k, 2).product] for k in range(count)]
    halves = [math.prod(row) // 2 for row in zip(*products, strict=True)]
    values = [[half, -half, draw.randint(-half, half)] for half in halves]
    parts = [
        [[*(v % m - draw.choice((0, m)) for v in row), m] for row, m in zip(values, moduli, strict=True)]
        for moduli in products
    ]
    joined = join_parts(np.array(parts, dtype=object))
    assert joined.shape == (1, 2, 4)
    assert {type(x) for x in joined.ravel().tolist()} == {int}
    assert [row[-1] for row in joined[0].tolist()] == [math.prod(row) for row in zip(*products, strict=True)]
    residues = joined[..., :-1] % joined[..., -1:]
    assert from_parts(np.concatenate([residues, joined[..., -1:]], axis=-1))[0].tolist() == values
