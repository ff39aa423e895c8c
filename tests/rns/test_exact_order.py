"""Limbs that compare as numbers do, and which end of the range is near, against Python integers."""

import itertools

import numpy as np
import pytest
from conftest import Processor
from oracles import rns
from strategies import ALL_SETS, BOTH_RANGES, EXHAUSTIVE_SETS, MODULI_SETS, some_edges

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.order import are_near_top, comparable_limbs, greatest


def limbs_of(processor: Processor, values: list[int], moduli: ModuliSet, signed: bool) -> np.ndarray:
    residues = processor.xp.asarray(rns.encode(values, moduli, signed))
    return processor.to_numpy(comparable_limbs(residues, moduli, signed))


@ALL_SETS
@BOTH_RANGES
def test_limbs_are_ordered_as_numbers(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    values = sorted(set(some_edges(moduli, signed, rng, 20_000 // len(moduli))))
    limbs = limbs_of(on_each_processor, values, moduli, signed)
    as_tuples = [tuple(column[::-1]) for column in limbs.T.tolist()]
    assert all(a < b for a, b in itertools.pairwise(as_tuples))


@ALL_SETS
@BOTH_RANGES
def test_the_ends_are_told_apart(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    # "Near" reaches to a sixteenth of M at most.
    reach = moduli.product // 16
    offsets = sorted({0, reach // 2, reach})
    values = [lowest + v for v in offsets] + [highest - v for v in offsets]
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
    expected = [False] * len(offsets) + [True] * len(offsets)
    assert on_each_processor.to_numpy(are_near_top(residues, moduli, signed)).tolist() == expected


@pytest.mark.parametrize("moduli", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_greatest_of_all_values(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    order = rng.permutation(moduli.product) + moduli.value_range(signed)[0]
    limbs = comparable_limbs(rns.encode(order.tolist(), moduli, signed), moduli, signed)
    assert greatest(limbs) == order.argmax()
    assert greatest(limbs, minimum=True) == order.argmin()


def test_greatest_takes_the_first_of_equals(on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["top"]
    values = [5, moduli.product - 1, 7, moduli.product - 1, 5]
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli))
    limbs = comparable_limbs(residues, moduli, signed=False)
    assert greatest(limbs) == 1
    assert greatest(limbs, minimum=True) == 0
