"""The k greatest and least numbers against Python's sort."""

from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from oracles.integers import best
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    MODULI_SETS,
    SHORT_SETS,
    arrays_of_values,
    bounds_around_prefixes,
    chunks_of,
    edge_values,
    moduli_sets,
    some_edges,
    values_within,
)

import rnsdask as rd
from rnsdask.constants import key_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import blocks, keys, system
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.sort import select


def check(
    processor: Processor, moduli: ModuliSet, values: list[int], signed: bool, bound: int | None = None
) -> None:
    residues = processor.xp.asarray(rns.encode(values, moduli, signed))
    for k in (1, -1, 3, -3, len(values), -len(values), len(values) + 2, 0):
        found = select(residues, rd.RNS(moduli, signed, bound), k)
        assert list(found.indices) == best(values, k)
        assert list(found.values) == [values[i] for i in found.indices]


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    check(on_each_processor, moduli, some_edges(moduli, signed, rng, 8_000 // len(moduli)), signed)


@ALL_SETS
@BOTH_RANGES
def test_keys_bound_every_number_and_order_what_they_prove(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool
) -> None:
    values = edge_values(moduli, signed)[:: max(1, len(moduli) // 8)]
    constants = key_constants(moduli, signed)
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
    found = on_each_processor.to_numpy(keys.number_keys(residues, constants)).tolist()
    for value, key in zip(values, found, strict=True):
        scaled = value + constants.offset << 64
        assert (key - constants.slack) * moduli.product <= scaled < (key + 1) * moduli.product
    for a, b in pairwise(found):  # of ascending values: no key proves the contrary
        assert a <= b + constants.slack


@ALL_SETS
@BOTH_RANGES
def test_values_close_together_and_equal(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    for middle in (lowest, 0, highest):
        near = [min(max(middle + int(d), lowest), highest) for d in rng.integers(-3, 4, size=30)]
        check(on_each_processor, moduli, near, signed)
    check(on_each_processor, moduli, [highest] * 9, signed)


@SHORT_SETS
@BOTH_RANGES
def test_bounds_around_the_products_of_prefixes(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    for bound in bounds_around_prefixes(moduli, signed, prefixes=3):
        values = values_within(bound, signed, rng, count=10)
        check(on_each_processor, moduli, values, signed, bound)
        constants = key_constants(moduli, signed, bound)
        residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
        used = residues[: len(constants.moduli)]
        found = on_each_processor.to_numpy(keys.number_keys(used, constants)).tolist()
        product = constants.moduli.product
        for value, key in zip(values, found, strict=True):
            scaled = (value << constants.scale) + constants.offset << 64
            assert (key - constants.slack) * product <= scaled < (key + 1) * product


def test_few_candidates_where_a_bound_leaves_most_of_a_modulus_unused(
    on_each_processor: Processor, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[int] = []

    def counted(residues: Any, moduli: ModuliSet, signed: bool) -> list[int]:
        converted.append(residues.shape[1])
        return residues_to_ints(residues, moduli, signed)

    monkeypatch.setattr(system, "residues_to_ints", counted)
    moduli = MODULI_SETS["bits2048"]
    for signed in (False, True):
        values = [int(v) << 964 for v in rng.integers(-(2**60) if signed else 0, 2**60, size=500)]
        residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
        converted.clear()
        assert list(select(residues, rd.RNS(moduli, signed, 2**1024), 5).indices) == best(values, 5)
        assert sum(converted) <= 6


def test_candidates_in_several_batches(monkeypatch: pytest.MonkeyPatch, on_each_processor: Processor) -> None:
    monkeypatch.setattr(blocks, "EXACT_RESIDUES", 1)
    moduli = MODULI_SETS["top"]
    check(on_each_processor, moduli, [3, 1, 2, 3, 3, 0, 1] * 3, False)
    check(on_each_processor, moduli, [moduli.product - 1, 0, moduli.product - 2] * 3, False)


@given(st.data())
def test_any_values_any_chunks(data: st.DataObject) -> None:
    signed = data.draw(st.booleans())
    moduli = data.draw(moduli_sets())
    values = data.draw(arrays_of_values(moduli, signed))
    k = data.draw(st.integers(-len(values) - 1, len(values) + 1))
    chunks = data.draw(chunks_of(len(values)))
    residues = da.from_array(rns.encode(values, moduli, signed), chunks=(len(moduli), chunks))
    x = rd.from_residues(residues, moduli, signed)
    top, places = x.topk(k), x.argtopk(k)
    wanted = best(values, k)
    assert top.shape == places.shape == (len(wanted),)
    assert places.compute(scheduler="sync").tolist() == wanted
    assert top.compute(scheduler="sync").tolist() == [values[i] for i in wanted]


def test_many_chunks_with_ties_across_them() -> None:
    moduli = MODULI_SETS["top"]
    values = [i // 2 % 7 for i in range(1000)]
    residues = da.from_array(rns.encode(values, moduli), chunks=(len(moduli), 13))
    x = rd.from_residues(residues, moduli)
    for k in (5, -5, 150, 400):
        assert x.argtopk(k).compute(scheduler="sync").tolist() == best(values, k)


def test_arrays_in_memory_give_arrays() -> None:
    x = rd.from_ints([5, 7, 7, 1], MODULI_SETS["top"], chunks=None)
    assert x.topk(2).dtype == object
    assert x.topk(2).tolist() == [7, 7]
    assert x.argtopk(-2).dtype == np.int64
    assert x.argtopk(-2).tolist() == [3, 0]
    assert x.topk(0).tolist() == []
    assert all(type(v) is int for v in x.topk(2))


def test_wrong_arguments() -> None:
    moduli = MODULI_SETS["top"]
    with pytest.raises(np.exceptions.AxisError):
        rd.random(moduli, (4, 4)).topk(2, axis=2)
    with pytest.raises(TypeError, match="k"):
        rd.random(moduli, 4).topk(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="backend must be one of auto, cpu, cuda, got 'gpu'"):
        rd.random(moduli, 4).topk(1, backend="gpu")
    words = da.zeros((4, 8), dtype=np.uint32, chunks=(4, 4))
    unknown = words.map_blocks(lambda block: block, chunks=((4,), (float("nan"),) * 2), dtype=np.uint32)
    assert rd.RNSArray(unknown, rd.RNS(moduli)).topk(1).compute().tolist() == [0]
