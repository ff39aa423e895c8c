"""Sorting and searching of chunks against Python's sort and bisect."""

from bisect import bisect_left, bisect_right
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from oracles import rns
from oracles.integers import objects
from sample_arrays import array_of, host
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    MODULI_SETS,
    bounds_around_prefixes,
    some_edges,
    values_within,
)

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import reduce as interval_reduce
from rnsdask.rns import keys, sort
from rnsdask.rns.compare import compare


def places_of(values: list[int], descending: bool = False) -> list[int]:
    """Indices that sort a list, equal values by index."""
    return sorted(range(len(values)), key=lambda i: -values[i] if descending else values[i])


def check(
    processor: Processor, moduli: ModuliSet, values: list[int], signed: bool, bound: int | None = None
) -> None:
    residues = processor.xp.asarray(rns.encode(values, moduli, signed))
    by = sort.ordering(residues, rd.RNS(moduli, signed, bound))
    for descending in (False, True):
        found = sort.sorted_indices(by, (len(values),), 0, descending)
        assert host(found).tolist() == places_of(values, descending)


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    values = some_edges(moduli, signed, rng, 6_000 // len(moduli))
    check(on_each_processor, moduli, values + values[::-2], signed)


@ALL_SETS
@BOTH_RANGES
def test_numbers_that_no_key_tells_apart(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    """Around both ends and the middle of the range, with many equal ones."""
    lowest, highest = moduli.value_range(signed)
    steps = rng.integers(-3, 4, size=2_000 // len(moduli) + 20).tolist()
    for centre in (lowest, 0, (lowest + highest) // 2, highest):
        check(on_each_processor, moduli, [min(max(centre + d, lowest), highest) for d in steps], signed)


@BOTH_RANGES
def test_bounds(on_each_processor: Processor, signed: bool, rng: np.random.Generator) -> None:
    for name in ("unsorted", "tiny_beside_huge", "table2_8"):
        for bound in bounds_around_prefixes(MODULI_SETS[name], signed):
            check(on_each_processor, MODULI_SETS[name], values_within(bound, signed, rng), signed, bound)


def test_signed_integers_with_intervals(on_each_processor: Processor, rng: np.random.Generator) -> None:
    for name in ("one_full", "tiny_unsorted", "table2_8", "bits2048"):
        moduli = MODULI_SETS[name]
        magnitudes = some_edges(moduli, False, rng, 300)
        values = [
            v * s
            for v, s in zip(magnitudes * 2, rng.choice((1, -1), 2 * len(magnitudes)).tolist(), strict=True)
        ]
        columns = on_each_processor.xp.asarray(rd.IntervalRNSArray.from_ints(values, moduli).columns)
        by = interval_reduce.ordering(columns, moduli)
        for descending in (False, True):
            found = sort.sorted_indices(by, (len(values),), 0, descending)
            assert host(found).tolist() == places_of(values, descending)


def test_equal_numbers_are_converted_once(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, and though their keys are the same or ambiguous."""
    converted: list[int] = []

    def counting(function, residues, *arguments):
        converted.append(residues.shape[1])
        return function(residues, *arguments)

    for module, name in ((keys, "are_near_top"), (sort, "comparable_limbs")):
        monkeypatch.setattr(module, name, partial(counting, getattr(module, name)))
    for name in ("bits2048", "unsorted"):
        moduli = MODULI_SETS[name]
        for pool in ([0], [0, 1], [moduli.product - 1, 0, moduli.product - 2], [3, 3, 4]):
            values = [pool[i % len(pool)] for i in range(5_000)]
            converted.clear()
            check(on_each_processor, moduli, values, False)
            assert sum(converted) <= 4 * len(pool)


def test_hashes_that_collide_cost_time_only(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(keys, "HASH_FACTOR", 0)  # what is left is the last residue
    moduli = ModuliSet(sorted(MODULI_SETS["tiny_beside_huge"], reverse=True))
    for span in (5, 1000):
        check(on_each_processor, moduli, rng.integers(0, span, size=600).tolist(), False)


def test_axes(on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["top"]
    for shape in ((4, 5, 6), (1, 7), (7, 1), (3, 0), (0, 3), (0,), (1,)):
        values = objects(rng.integers(0, 4, size=int(np.prod(shape))).tolist(), shape)
        x = array_of(on_each_processor, values, moduli)
        for axis in (*range(-len(shape), len(shape)), None):
            assert (rd.sort(x, axis).to_ints() == np.sort(values, axis)).all()
            found = rd.argsort(x, axis)
            assert found.dtype == np.int64
            assert isinstance(found, on_each_processor.xp.ndarray)
            assert (host(found) == np.argsort(values, axis, kind="stable")).all()


@pytest.mark.parametrize("wanted_count", [1, 3, 200])
def test_search(on_each_processor: Processor, wanted_count: int, rng: np.random.Generator) -> None:
    """By halving, for few, and by sorting, for many."""
    moduli = MODULI_SETS["unsorted"]
    system = rd.RNS(moduli, True)

    def sorter(words: Any) -> Any:
        return sort.sorted_indices(sort.ordering(words, system), words.shape[1:], 0)

    for count in (0, 1, 2, 3, 64, 100):
        values = sorted(some_edges(moduli, True, rng, count) + [5, 5] * (count // 3))
        wanted = [5, *values[:2], *some_edges(moduli, True, rng, wanted_count)][-wanted_count:]
        a, v = (on_each_processor.xp.asarray(rns.encode(w, moduli, True)) for w in (values, wanted))
        for side, bisect in (("left", bisect_left), ("right", bisect_right)):
            found = sort.search(a, v, partial(compare, system=system), sorter, side)
            assert host(found).tolist() == [bisect(values, w) for w in wanted]
