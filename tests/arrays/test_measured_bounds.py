"""Bounds that users set and measure: `with_bound`, `measure_bound`."""

from typing import Any

import dask.array as da
import gmpy2
import numpy as np
import pytest
from conftest import Processor
from oracles import rns
from sample_arrays import CPU, array_of, chunked
from strategies import (
    BOTH_RANGES,
    MODULI_SETS,
    SHORT_SETS,
    bounds_around_prefixes,
    edge_values,
    values_within,
)

import rnsdask as rd
from rnsdask.backend import cpu
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import bounds, powers

MODULI = MODULI_SETS["unsorted"]
LONG = MODULI_SETS["bits2048"]


pytestmark = pytest.mark.usefixtures("in_this_thread")


def tight(values: list[int], moduli: ModuliSet, signed: bool, known: int | None = None) -> int:
    """Return the bound to be measured, by its definition."""
    greatest = max(map(abs, moduli.value_range(signed)))
    bits = max(map(abs, values), default=0).bit_length()
    return min(2**bits - 1, greatest, greatest if known is None else known)


def look_at(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guess from so many numbers."""
    monkeypatch.setattr(bounds, "SAMPLE", count)


# ---- measuring --------------------------------------------------------------------------------------------


@SHORT_SETS
@BOTH_RANGES
def test_measured_at_the_edges(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    edges = sorted(edge_values(moduli, signed), key=abs)
    chosen = sorted({0, 1, len(edges), *rng.integers(0, len(edges), 8).tolist()})
    for count in chosen:
        values = [edges[i] for i in rng.permutation(count)[:200]] + edges[max(count - 1, 0) : count]
        x = array_of(on_each_processor, values, moduli, signed)
        expected = tight(values, moduli, signed)
        assert x.measure_bound() == expected, values
        assert expected >= max(map(abs, values), default=0)
        assert x.with_bound(expected).measure_bound() == expected
        if values:
            loose = 3 * expected + 1
            assert x.with_bound(loose).measure_bound() == tight(values, moduli, signed, loose)


@BOTH_RANGES
def test_measured_beside_powers_of_two(on_each_processor: Processor, signed: bool) -> None:
    """Magnitudes as doubles cannot tell these apart."""
    for bits in (1, 31, 32, 64, 900, 2000, LONG.bits - 2):
        for values in ([2**bits - 1] * 300 + [2**bits], [2**bits] + [2**bits - 1] * 300, [2**bits - 1]):
            values = [-v for v in values] if signed else values
            x = array_of(on_each_processor, values, LONG, signed)
            assert x.measure_bound() == tight(values, LONG, signed), bits


def test_measured_beyond_the_sample_beside_powers_of_two(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_at(1, monkeypatch)
    for bits in (64, 900, 2000):
        for values in ([2**bits - 1, 2**bits], [2**bits, 2**bits - 1], [2**bits - 1, 3, 2**bits]):
            x = array_of(on_each_processor, [0, *values], LONG)
            assert x.measure_bound() == 2 ** (bits + 1) - 1


@BOTH_RANGES
@pytest.mark.parametrize("name", ["top", "unsorted", "bits2048", "tiny_beside_huge"])
def test_measured_where_the_sample_tells_nothing(
    on_each_processor: Processor,
    name: str,
    signed: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "CPU_RESIDUES", 1000)
    monkeypatch.setattr(bounds, "GPU_RESIDUES", 1000)
    look_at(2, monkeypatch)
    moduli = MODULI_SETS[name]
    for bound in bounds_around_prefixes(moduli, signed)[::5]:
        values = [0, *values_within(bound, signed, rng), *[5] * 40]
        lowest, highest = moduli.value_range(signed)
        values = [min(max(v, lowest), highest) for v in values]
        x = array_of(on_each_processor, values, moduli, signed)
        assert x.measure_bound() == tight(values, moduli, signed)


@BOTH_RANGES
@pytest.mark.parametrize("lengths", ["those of the sample are shorter", "some far apart"])
def test_most_numbers_are_proved_whatever_their_lengths(
    on_each_processor: Processor,
    lengths: str,
    signed: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few are left to base extension, which takes many times as long."""
    if on_each_processor == CPU and not cpu.MULTIPLIES_WORDS:
        pytest.skip("this processor does not multiply words of 52 bits")
    extended = [0, 0, 0]
    extend = bounds.base_extend
    for drawing in range(3):

        def counted(x: Any, *rest: Any, drawing: int = drawing) -> Any:
            extended[drawing] += x.shape[1]
            return extend(x, *rest)

        monkeypatch.setattr(bounds, "base_extend", counted)
        values = [rng.bytes(125 if k % 32 else 120) for k in range(4096)]
        if lengths == "some far apart":
            values = [value[: (4, 30, 60, 125)[k % 4]] for k, value in enumerate(values)]
        numbers = [int.from_bytes(value, "little") for value in values]
        numbers = [-v if signed and k % 3 else v for k, v in enumerate(numbers)]
        x = array_of(on_each_processor, numbers, LONG, signed)
        assert x.measure_bound() == tight(numbers, LONG, signed)
    # The sample of one drawing in some hundred is a bit too short.
    assert sorted(extended)[1] <= 256


@BOTH_RANGES
def test_one_sample_where_no_proof_takes_one_pass(signed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one would tell nothing that extension, which looks at all numbers, does not."""
    samples = []
    sample = bounds.sampled_bound
    monkeypatch.setattr(bounds, "sampled_bound", lambda *args: samples.append(1) or sample(*args))
    monkeypatch.setattr(bounds, "proof_of", lambda *_: None)
    numbers = [2**900 + k if k % 8 else 5 for k in range(2000)]
    x = array_of(CPU, numbers, LONG, signed)
    assert x.measure_bound() == 2**901 - 1
    assert len(samples) == 1
    assert not bounds.find_beyond(np.zeros((len(LONG), 0), np.uint32), rd.RNS(LONG, signed, 5)).size


def test_samples_that_meet_the_shortest_numbers_end_soon(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sample adds one bit, as in data that is built to be measured slowly."""
    proofs = []
    prove = bounds.find_open
    monkeypatch.setattr(bounds, "find_open", lambda *which: proofs.append(which) or prove(*which))
    monkeypatch.setattr(bounds, "sampled_bound", lambda *_: 2 ** (len(proofs) + 1) - 1)
    numbers = [-(2**1000) + k for k in range(300)]
    x = array_of(on_each_processor, numbers, LONG, signed=True)
    assert x.measure_bound() == tight(numbers, LONG, True)
    assert len(proofs) <= 32


@BOTH_RANGES
def test_a_signed_minimum_alone(signed: bool) -> None:
    for moduli in (MODULI, MODULI_SETS["one_full"], ModuliSet([2])):
        lowest, highest = moduli.value_range(signed)
        for value in (lowest, highest):
            for values in ([value], [value] + [0] * 999, [0] * 999 + [value]):
                x = array_of(CPU, values, moduli, signed)
                assert x.measure_bound() == tight(values, moduli, signed)
                assert x.measure_bound() >= abs(value)


def test_measured_of_no_numbers_and_zeros() -> None:
    for shape in ((0,), (3, 0), (700,), (3, 7)):
        x = rd.RNSArray(np.zeros((len(LONG), *shape), np.uint32), rd.RNS(LONG))
        assert x.measure_bound() == 0
        assert x.rechunk().measure_bound() == 0
        assert x.with_bound(0).bound == 0


@BOTH_RANGES
def test_measured_in_chunks_does_not_depend_on_them(signed: bool, rng: np.random.Generator) -> None:
    values = np.array([2 ** int(rng.integers(0, 300)) - signed * 2**200 for _ in range(60)], object)
    x = array_of(CPU, values.reshape(6, 10), LONG, signed)
    expected = tight(values.tolist(), LONG, signed)
    found: Any = x.measure_bound()
    assert type(found) is int
    for chunks in ((6, 10), (1, 3), (5, 1)):
        assert chunked(x, *chunks).measure_bound() == found == expected
        assert chunked(x, *chunks).measure_bound(backend="cpu") == expected
    with pytest.raises(ValueError, match="backend"):
        chunked(x, 6, 10).measure_bound(backend="abacus")


def test_measured_as_a_reduction() -> None:
    x = rd.from_ints([1, -5, 3], MODULI, True, chunks=128)
    found = x.with_bound(None).reduce("bound").compute()
    assert found == rd.ReductionResult(7, None, 3, 0, found.backend)
    assert x.reduce("bound").compute().value == 5
    for chunks in (None, 128):
        z = rd.IntervalRNSArray.from_ints([1, -5, 3], MODULI, chunks=chunks)
        result = z.reduce("bound")
        assert (result if chunks is None else result.compute()).value == 7


def test_measured_where_chunk_sizes_are_unknown() -> None:
    x = rd.from_ints(range(300), LONG, chunks=128).with_bound(None)
    x = x[x > 250]
    assert x.measure_bound() == 511
    assert x.compute_chunk_sizes().measure_bound() == 511


# ---- setting ----------------------------------------------------------------------------------------------


@BOTH_RANGES
def test_with_bound_proves_it(on_each_processor: Processor, signed: bool) -> None:
    values = [3, 2**70, 1, -(2**71) if signed else 2**71, 0]
    x = array_of(on_each_processor, values, MODULI, signed)
    message = (
        r"the number at flat index 1 is 0x4.{17} \(71 bits\), greater in magnitude than the bound 5 \(and 1"
    )
    with pytest.raises(ValueError, match=message):
        x.with_bound(5)
    with pytest.raises(ValueError, match=r"the number at flat index 3 is -?0x8"):
        x.with_bound(2**71 - 1)
    y = x.with_bound(2**71)
    assert (x.bound, y.bound) == (None, 2**71)
    assert y.to_ints().tolist() == values
    assert y.with_bound(None).bound is None
    assert x.with_bound(5, trusted=True).bound == 5
    assert y.with_bound(10**100).bound == max(map(abs, MODULI.value_range(signed)))
    assert y.with_bound(np.uint8(200), trusted=True).bound == 200


def test_with_bound_of_lazy_arrays_checks_each_chunk_when_it_is_computed() -> None:
    values = list(range(600))
    x = rd.from_ints(values, MODULI, chunks=128).with_bound(None)
    y = x.with_bound(300)
    assert (y.bound, y.chunks) == (300, x.chunks)
    assert y[:256].to_ints().tolist() == values[:256]
    with pytest.raises(
        ValueError, match=r"at flat index 301 is 301, greater in magnitude than the bound 300"
    ):
        y[256:384].compute()
    with pytest.raises(ValueError, match="greater in magnitude than the bound 300"):
        y.sum().compute()
    assert x.with_bound(599).max().compute() == 599
    selected = x[x > 550].with_bound(560)
    with pytest.raises(ValueError, match="the number at flat index 10 is 561"):
        selected.compute()
    assert x[x > 550].with_bound(599).to_ints().tolist() == values[551:]


def test_a_looser_bound_looks_at_no_number() -> None:
    residues = da.from_array(rns.encode([1, 2, 3], MODULI))
    x = rd.RNSArray(residues, rd.RNS(MODULI, bound=3))
    assert x.with_bound(4).residues.name == x.residues.name == x.with_bound(None).residues.name
    assert x.with_bound(2, trusted=True).residues.name == x.residues.name
    assert x.with_bound(2).residues.name != x.residues.name
    assert rd.from_ints([7], MODULI).with_bound(None).with_bound(MODULI.product).bound == MODULI.product - 1


@pytest.mark.parametrize("bound", [2.0, "7", -1, np.float64(3)])
def test_bounds_that_are_none(bound: Any) -> None:
    for x in (rd.from_ints([1, 2], MODULI), rd.from_ints([1, 2], MODULI, chunks=None)):
        with pytest.raises((TypeError, ValueError), match="bound must"):
            x.with_bound(bound)


def test_a_measured_bound_is_one_to_set() -> None:
    short = ModuliSet.for_bits(100)
    x = rd.random(short, 1000, seed=5).extend(LONG).with_bound(None)
    bound = x.measure_bound()
    assert short.bits - 8 <= bound.bit_length() <= short.bits
    y = x.with_bound(bound)
    assert y.max() == x.max()
    assert (y * y).bound == bound * bound


@BOTH_RANGES
@pytest.mark.parametrize("exponent", [2, 3])
def test_powers_of_measured_numbers(
    on_each_processor: Processor,
    exponent: int,
    signed: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound tells that all fit; where it does not, as beside the end's root, bases are compared."""
    compared = []
    compare = powers.compare
    monkeypatch.setattr(powers, "compare", lambda *args: compared.append(1) or compare(*args))
    lowest, highest = LONG.value_range(signed)
    root = int(gmpy2.iroot(gmpy2.mpz(highest), exponent)[0])
    small = [int.from_bytes(rng.bytes(root.bit_length() // 8 - 1), "little") for _ in range(1500)]
    for added, needs_order in ([], False), ([root], True), ([5, root + 1], True), ([highest], True):
        values = [*small[:700], *added, *small[700:]]
        values = [-v if signed and k % 3 == 1 else v for k, v in enumerate(values)]
        wrong = [k for k, v in enumerate(values) if not lowest <= v**exponent <= highest]
        x = array_of(on_each_processor, values, LONG, signed)
        compared.clear()
        _, flags = rd.power(x, exponent, overflow="flag")
        assert [k for k, flag in enumerate(flags.tolist()) if flag] == wrong
        assert bool(compared) == needs_order
        if wrong:
            with pytest.raises(rd.RNSOverflowError, match=f"flat index {wrong[0]}"):
                rd.power(x, exponent)
        else:
            assert rd.power(x, exponent).to_ints().tolist() == [v**exponent for v in values]


@BOTH_RANGES
def test_powers_that_always_fit_are_not_measured(signed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(powers, "sampled_bound", None)
    residues = array_of(CPU, [3] * 1500, LONG, signed).residues
    for exponent in (0, 1):
        found = powers.power(residues, exponent, rd.RNS(LONG, signed), "raise")
        assert rd.from_residues(found, LONG, signed=signed).to_ints().tolist() == [3**exponent] * 1500
