"""Measured bounds of arrays of a system and of views."""

import numpy as np
import pytest
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask.rns import bounds, reduce

MODULI = MODULI_SETS["bits2048"]


def half_as_long(rng: np.random.Generator, count: int, least: int = 0) -> list[int]:
    size = MODULI.bits // 16 - 1
    return [max(least, int.from_bytes(rng.bytes(size))) for _ in range(count)]


def test_an_array_is_measured_once(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    a, b = (half_as_long(rng, 5000) for _ in range(2))
    x, y = (rd.from_ints(v, MODULI, chunks=None).with_bound(None) for v in (a, b))
    products = [u * v for u, v in zip(a, b, strict=True)]
    assert (x * y).tolist() == products
    monkeypatch.setattr(bounds, "find_open", None)  # which proves bounds
    assert (x * y).tolist() == products
    assert rd.multiply(x, y, overflow="flag")[1].sum() == 0
    assert (x.max(), x.argmin(), x.sum()) == (max(a), a.index(min(a)), sum(a))
    assert (x < y).tolist() == [u < v for u, v in zip(a, b, strict=True)]
    assert rd.maximum(x, y).tolist() == list(map(max, a, b))
    assert rd.sort(x).tolist() == sorted(a)
    # What is known of results does not depend on it.
    assert x.bound is rd.sort(x).bound is (x * y).bound is rd.maximum(x, y).bound is None
    with pytest.raises(TypeError):
        x[:4999].max()  # other numbers are measured anew
    with pytest.raises(TypeError):
        rd.from_residues(x.residues, MODULI).max()


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
    monkeypatch.setattr(reduce, "WORTH_A_GLANCE", 1)
    values = half_as_long(rng, 3000, least=1)
    values = [-v if signed and i % 3 else v for i, v in enumerate(values)]
    great = MODULI.product // 3
    # The first few look small, and all are, or one of the others is not, or the first alone is not.
    for chosen in (values, [*values, great], [great, *values], [5] * 3000, [0, *[7] * 2999]):
        x = rd.from_ints(chosen, MODULI, signed, chunks=None).with_bound(None)
        for name, expected in (("max", max(chosen)), ("min", min(chosen))):
            assert getattr(x, name)() == expected
            assert getattr(x, "arg" + name)() == chosen.index(expected)
