"""Trees of products of moduli and the Chinese remainder theorem for parts, against Python's integers."""

import math
import random

import numpy as np
import pytest
from strategies import ALL_SETS, BOTH_RANGES, MODULI_SETS, each_set

from rnsdask.backend.cpu import trees
from rnsdask.constants.convert import Spent
from rnsdask.constants.remainders import remainder_tree
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.lift import decode, from_parts, join_parts, primes

SETS = {**MODULI_SETS, **{f"primes{count}": primes(3, count) for count in (1, 2, 3, 7, 64, 65, 300)}}


@each_set(SETS)
@BOTH_RANGES
def test_residues_and_back(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    lowest, highest = moduli.value_range(signed)
    draw = random.Random(int(rng.integers(2**32)))
    multiples = [moduli[0], moduli.product // moduli[-1], moduli.product - moduli.product // moduli[0]]
    values = [lowest, highest, 0, 1, -1, lowest + 1, highest - 1, *multiples, *(-v for v in multiples)]
    values += [draw.randint(lowest, highest) for _ in range(4)]
    values = [lowest + (value - lowest) % moduli.product for value in values]
    tree = remainder_tree(moduli)
    residues = np.array([[v % m for v in values] for m in moduli], dtype=np.uint32)
    for part in (slice(None), slice(2, 3), slice(0)):
        np.testing.assert_array_equal(tree.residues_of(values[part]), residues[:, part])
        found = tree.values_of(residues[:, part], signed)
        assert found == values[part]
        assert {type(value) for value in found} <= {int}
    beyond = [moduli.product, -moduli.product - 1, 2**70 * moduli.product + 5]
    expected = [[v % m for v in beyond] for m in moduli]
    assert tree.residues_of(beyond).tolist() == expected


@ALL_SETS
def test_inverses_of_partial_products(moduli: ModuliSet) -> None:
    pairs = zip(moduli, moduli.partial_inverses, strict=True)
    assert all(0 < w < m and w * (moduli.product // m) % m == 1 % m for m, w in pairs)


@pytest.mark.parametrize("numbers", [0, 1, 16, 17])
def test_few_numbers_and_many_as_well_are_decoded(numbers: int) -> None:
    moduli = primes(0, 340)
    values = [(-1) ** k * 3 ** (4000 + k) for k in range(numbers)]
    residues = np.array([[v % m for v in values] for m in moduli], dtype=np.uint32).reshape(340, numbers)
    assert decode([residues[:100], residues[100:]], moduli).tolist() == values
    assert decode([residues[:, :0]], moduli).shape == (0,)


def test_trees_take_numbers_until_a_table_takes_less_time() -> None:
    spent, sizes = Spent(), (1000, 1000)
    ways = [trees.is_quicker(spent, 1, sizes, trees.BY_DIGITS) for _ in range(1000)]
    assert ways[0]
    assert not ways[-1]
    assert ways == sorted(ways, reverse=True)
    assert not trees.is_quicker(Spent(), 10**6, sizes, trees.BY_DIGITS)
    # Where a kernel takes longer for a number than a tree, no table is made at all.
    long = Spent()
    assert all(trees.is_quicker(long, 16, (10400, 10400), trees.BY_LIMBS) for _ in range(1000))
    assert not trees.is_quicker(Spent(), 1, (8, 8), trees.BY_DIGITS)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_rows_of_parts_have_moduli_of_their_own(count: int, rng: np.random.Generator) -> None:
    """Rows of solutions lack a bad prime, or all primes of a group."""
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
