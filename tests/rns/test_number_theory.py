"""Divisors, multiples and lengths of chunks, against Python's math and int.bit_length."""

import math
from random import Random

import numpy as np
import pytest
from conftest import Processor
from oracles.integers import Range, mapped, objects
from sample_arrays import array_of, host
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.constants import length_constants, product_bounds
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import reduce as of_intervals
from rnsdask.rns import number_theory
from rnsdask.rns.system import RNS


def powers_and_neighbours(limits: Range, random: Random) -> list[int]:
    """Powers of two and what is next to them, some in between and those at both ends of the range."""
    bits = limits.magnitude.bit_length()
    exponents = {*range(3), *range(max(bits - 3, 0), bits + 1), *random.choices(range(bits + 1), k=40)}
    near = {s * ((1 << k) + d) for k in exponents for d in (-1, 0, 1) for s in (1, -1)}
    near |= {limits.lowest, limits.highest, limits.lowest + 1, limits.highest - 1}
    return sorted(v for v in near if limits.holds(v))


@pytest.mark.parametrize("name", sorted(MODULI_SETS))
@pytest.mark.parametrize("system", ["unsigned", "signed", "interval"])
def test_lengths_near_powers_of_two(
    name: str, system: str, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    moduli, random = MODULI_SETS[name], Random(int(rng.integers(2**63)))
    values = powers_and_neighbours(Range.of(system, moduli.product), random)
    expected = [v.bit_length() for v in values]
    if system == "interval":
        x = rd.IntervalRNSArray.from_ints(values, moduli)
        found = of_intervals.bit_length(on_each_processor.xp.asarray(x.columns), x.system)
    else:
        residues = array_of(on_each_processor, values, moduli, system == "signed").residues
        found = number_theory.bit_length(residues, RNS(moduli, system == "signed"))
    assert found.dtype == np.int64
    assert on_each_processor.to_numpy(found).tolist() == expected


def test_lengths_use_a_bound(on_each_processor: Processor) -> None:
    moduli = ModuliSet.for_bits(900)
    values = [0, 1, 2**70, 2**70 - 1, 2**70 + 1, 12345]
    x = array_of(on_each_processor, values, moduli, bound=2**71)
    assert host(x.bit_length()).tolist() == [v.bit_length() for v in values]


@pytest.mark.parametrize("name", sorted(MODULI_SETS))
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [64, 128])
def test_fixed_point_decides_right_lengths_only(
    name: str, signed: bool, bits: int, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    moduli, random = MODULI_SETS[name], Random(int(rng.integers(2**63)))
    values = powers_and_neighbours(Range.of("signed" if signed else "unsigned", moduli.product), random)
    residues = array_of(on_each_processor, values, moduli, signed).residues
    found = kernels_of(residues).bit_lengths(residues, length_constants(moduli, signed, bits))
    lengths, decided = map(on_each_processor.to_numpy, found)
    assert lengths.tolist() == [
        v.bit_length() if known else -1 for v, known in zip(values, decided, strict=True)
    ]
    assert decided[values.index(0)]


@pytest.mark.parametrize("system", ["unsigned", "signed", "interval"])
def test_long_numbers_need_no_limbs(
    system: str, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Random numbers are decided by X/M, but for about one in 2**19."""
    random, moduli = Random(int(rng.integers(2**63))), ModuliSet.for_bits(500)
    sign = 1 if system == "unsigned" else -1
    values = [random.getrandbits(498) * sign**k for k in range(2000)]
    if system == "interval":
        x = rd.IntervalRNSArray.from_ints(values, moduli)
        columns = on_each_processor.xp.asarray(x.columns)
        found = kernels_of(columns).interval_rns_lengths(columns, product_bounds(moduli))
    else:
        residues = array_of(on_each_processor, values, moduli, system == "signed").residues
        constants = length_constants(moduli, system == "signed", 64)
        found = kernels_of(residues).bit_lengths(residues, constants)
    lengths, decided = map(on_each_processor.to_numpy, found)
    assert decided.sum() >= 1990
    expected = np.array([v.bit_length() for v in values])
    assert (lengths == np.where(decided, expected, -1)).all()


@pytest.mark.parametrize("few", [0, 10**6])
def test_lengths_of_mixed_numbers(
    few: int, on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Numbers of every length, which the processor itself measures, or the host."""
    monkeypatch.setattr(number_theory, "FEW", few)
    random, moduli = Random(int(rng.integers(2**63))), ModuliSet.for_bits(500)
    values = [random.getrandbits(k) * (-1) ** k for k in range(490) for _ in range(4)]
    x = array_of(on_each_processor, values, moduli, signed=True)
    assert host(x.bit_length()).tolist() == [v.bit_length() for v in values]


@pytest.mark.parametrize("name", sorted(MODULI_SETS))
@pytest.mark.parametrize("system", ["unsigned", "signed", "interval"])
def test_edges_by_edges(name: str, system: str, rng: np.random.Generator) -> None:
    moduli, random = MODULI_SETS[name], Random(int(rng.integers(2**63)))
    limits = Range.of(system, moduli.product)
    edges = sorted({v for v in (limits.lowest, -2, -1, 0, 1, 2, 6, limits.highest) if limits.holds(v)})
    edges += [random.randint(limits.lowest, limits.highest) for _ in range(3)]
    signed = system == "signed"
    x = (
        rd.IntervalRNSArray.from_ints(edges, moduli)
        if system == "interval"
        else rd.from_ints(edges, moduli, signed, chunks=None)
    )
    a, b = np.meshgrid(objects(edges), objects(edges), indexing="ij")
    for function, exactly in ((rd.gcd, math.gcd), (rd.lcm, math.lcm)):
        exact = mapped(exactly, a, b)
        outside = limits.outside(exact)
        result, mask = function(x[:, None], x, overflow="flag")
        assert (mask == outside).all()
        assert (result.to_ints() == limits.wrapped(exact)).all()
        assert (function(x[:, None], x, overflow="wrap").to_ints() == limits.wrapped(exact)).all()
        if outside.any():
            with pytest.raises(rd.RNSOverflowError) as error:
                function(x[:, None], x)
            first = int(outside.reshape(-1).argmax())
            assert error.value.index == first
            assert error.value.bits_needed == limits.bits_needed(exact.reshape(-1)[first])
