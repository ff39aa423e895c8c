"""Random numbers within a bound: all of them, as often as one another, and the same for the same seed."""

from collections import Counter

import numpy as np
import pytest

import rnsdask as rd

SETS = {
    "one modulus": rd.ModuliSet([2**32]),
    "small": rd.ModuliSet([3, 8, 5]),
    "64 bits": rd.ModuliSet.for_bits(64),
    "1000 bits": rd.ModuliSet.for_bits(1000),
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bound", [0, 1, 2, 3, 6, 7, 8, 31])
def test_each_number_comes_as_often_as_another(bound: int, signed: bool) -> None:
    count = 40_000
    found = rd.random(rd.RNS(SETS["small"], signed, bound), count, seed=bound + 7, chunks=12_800).to_ints()
    values = range(-bound if signed else 0, bound + 1)
    counts = Counter(found.tolist())
    assert set(counts) == set(values)
    expected = count / len(values)
    chi_square = sum((counts[value] - expected) ** 2 / expected for value in values)
    freedom = len(values) - 1
    assert chi_square <= freedom + 6 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", SETS)
def test_numbers_are_within_the_bound_and_near_its_ends(name: str, signed: bool) -> None:
    moduli = SETS[name]
    lowest, highest = moduli.value_range(signed)
    bits = highest.bit_length()
    for bound in {1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2 ** (bits - 1), highest - 1, highest, 3 * highest}:
        system = rd.RNS(moduli, signed, bound)
        x = rd.random(system, 3000, seed=1, chunks=1024)
        values = x.to_ints()
        least, greatest = max(lowest, -bound), min(highest, bound)
        assert all(least <= value <= greatest for value in values)
        assert x.bound == min(bound, max(highest, -lowest))
        tenth = (greatest - least) // 10
        assert min(values) <= least + tenth
        assert max(values) >= greatest - tenth
        if greatest - least > 2**40:
            assert len(set(values)) == 3000


def test_the_same_for_the_same_seed_and_chunks() -> None:
    system = rd.RNS(SETS["64 bits"], True, 10**15)
    x, y, z = (rd.random(system, (30, 128), seed=seed, chunks=(10, 128)) for seed in (5, 5, 6))
    assert x.residues.name == y.residues.name != z.residues.name
    assert (x.residues.compute() == y.residues.compute()).all()
    assert (x.to_ints() != z.to_ints()).all()
    part = rd.random(system, (30, 128), seed=5, chunks=(10, 128))[10:20]
    assert (part.to_ints() == x.to_ints()[10:20]).all()
    other = rd.random(system.with_bound(10**15 - 1), (30, 128), seed=5, chunks=(10, 128))
    assert other.residues.name != x.residues.name


def test_no_numbers() -> None:
    assert rd.random(rd.RNS(SETS["small"], bound=3), 0, seed=1).to_ints().shape == (0,)
    assert np.array_equal(rd.random(rd.RNS(SETS["small"], bound=0), 5, seed=1).to_ints(), [0] * 5)
