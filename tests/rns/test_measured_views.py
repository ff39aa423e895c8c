"""Measured bounds of arrays of a system and of views."""

import numpy as np
import pytest
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask.rns import reduce

MODULI = MODULI_SETS["bits2048"]


def half_as_long(rng: np.random.Generator, count: int, least: int = 0) -> list[int]:
    size = MODULI.bits // 16 - 1
    return [max(least, int.from_bytes(rng.bytes(size))) for _ in range(count)]


def test_bounds_differ_by_system_and_view(rng: np.random.Generator) -> None:
    values = [*half_as_long(rng, 2000), MODULI.product - 3]
    x = rd.from_ints(values, MODULI, chunks=None).with_bound(None)
    signed = rd.from_residues(x.residues, MODULI, signed=True)
    assert np.shares_memory(x.residues, signed.residues)
    assert x.measure_bound() == MODULI.product - 1
    assert signed.measure_bound() == 2 ** max(values[:-1]).bit_length() - 1
    assert x[:-1].measure_bound() == signed.measure_bound()
    assert x[:10:3].measure_bound() == 2 ** max(values[:10:3]).bit_length() - 1
    assert x.measure_bound() == MODULI.product - 1


@pytest.mark.parametrize("signed", [False, True])
def test_small_numbers_are_found_small_at_a_glance(
    signed: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(reduce, "_WORTH_A_GLANCE", 1)
    values = half_as_long(rng, 3000, least=1)
    values = [-v if signed and i % 3 else v for i, v in enumerate(values)]
    great = MODULI.product // 3
    # The first few look small, and all are, or one of the others is not, or the first alone is not.
    for chosen in (values, [*values, great], [great, *values], [5] * 3000, [0, *[7] * 2999]):
        x = rd.from_ints(chosen, MODULI, signed, chunks=None).with_bound(None)
        for name, expected in (("max", max(chosen)), ("min", min(chosen))):
            assert getattr(x, name)() == expected
            assert getattr(x, "arg" + name)() == chosen.index(expected)
