"""Permanents of matrices of integers and over prime fields, against their definition."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.fields import permanents

FIELDS = rd.PrimeFields([2, 7, 4294967291])


def permanent(matrix: Any) -> int:
    n = len(matrix)
    terms = (
        math.prod(matrix[i][j] for i, j in enumerate(order)) for order in itertools.permutations(range(n))
    )
    return sum(terms)


@pytest.mark.parametrize("step", [2, 64, 2**22])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 6])
def test_stacks(n: int, step: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permanents, "STEP_WORDS", step)
    stack = rng.integers(-(2**40), 2**40, (3, n, n)).astype(object) * 3**50
    expected = [permanent(matrix.tolist()) for matrix in stack]
    for chunks in (None, (2, *[max(n, 1)] * 2)):
        x, f = (rd.array(stack, system, chunks=chunks if n else None) for system in (None, FIELDS))
        assert np.asarray(rd.linalg.permanent(x)).tolist() == expected
        product = FIELDS.moduli.product
        assert rd.linalg.permanent(f).to_ints().tolist() == [value % product for value in expected]
    assert rd.linalg.permanent(x[0]) == expected[0]


def test_the_ends_of_the_range(on_each_processor: Processor) -> None:
    system = rd.RNS(rd.ModuliSet.for_bits(64), signed=True)
    lowest, highest = system.value_range
    for value in (lowest, highest):
        words = on_each_processor.xp.asarray(system.encode(np.full((5, 5), value, dtype=object)))
        assert rd.linalg.permanent(rd.RNSArray(words, system)) == math.factorial(5) * value**5


def test_seats_at_a_round_table() -> None:
    """Permutations that move no element to itself or to the next: menage numbers (OEIS A000179)."""
    n = 9
    allowed = [[int((j - i) % n > 1) for j in range(n)] for i in range(n)]
    assert rd.linalg.permanent(rd.array(allowed)) == 43387


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="permanent takes square matrices"):
        rd.linalg.permanent(rd.ones((2, 3)))
    with pytest.raises(ValueError, match="permanent takes matrices that are one chunk"):
        rd.linalg.permanent(rd.ones((2, 2), FIELDS, chunks=1))
    with pytest.raises(TypeError, match="permanent takes no PositionalArray"):
        rd.linalg.permanent(rd.ones((2, 2), rd.Positional(64)))
    two = rd.linalg.permanent(rd.ones((2, 2)), moduli=rd.ModuliSet.for_bits(64))
    assert two.tolist() == [2]
