"""Running sums, maxima and minima against itertools.accumulate."""

import math
import operator
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, product
from pathlib import Path

import dask
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from sample_arrays import CPU, array_of, chunked
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    MODULI_SETS,
    SHORT_SETS,
    arrays_of_values,
    bounds_around_prefixes,
    chunks_of,
    moduli_sets,
    slow,
    some_edges,
    values_within,
)

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import blocks, scan

FUNCTIONS = {"cumsum": operator.add, "cummax": max, "cummin": min}


def check(x: rd.RNSArray, values: list[int]) -> None:
    """Compare every scan with Python's; where a sum is out of range, the error."""
    lowest, highest = x.moduli.value_range(x.signed)
    for name, function in FUNCTIONS.items():
        wanted = list(accumulate(values, function))
        outside = next((i for i, v in enumerate(wanted) if not lowest <= v <= highest), None)
        if outside is None:
            found = getattr(x, name)()
            assert getattr(found, "chunks", None) == getattr(x, "chunks", None)
            assert found.to_ints().tolist() == wanted, name
            assert found.bound is None or all(abs(v) <= found.bound for v in wanted)
        else:
            with pytest.raises(RNSOverflowError) as caught:
                x.cumsum().compute(scheduler="sync")
            index = caught.value.index
            # Chunks do not wait for one another to find the first of all.
            assert not lowest <= wanted[index] <= highest if hasattr(x, "chunks") else index == outside
            assert caught.value.negative == (wanted[index] < 0)


def fitting(values: list[int], moduli: ModuliSet, signed: bool) -> list[int]:
    """The values whose running sum, of those taken, stays in range."""
    lowest, highest = moduli.value_range(signed)
    total, taken = 0, []
    for value in values:
        if lowest <= total + value <= highest:
            total += value
            taken.append(value)
    return taken


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    values = some_edges(moduli, signed, rng, 4_000 // len(moduli))
    check(array_of(on_each_processor, values, moduli, signed), values)
    values = fitting(values, moduli, signed)
    check(array_of(on_each_processor, values, moduli, signed), values)


@ALL_SETS
@BOTH_RANGES
def test_sums_that_stay_at_the_ends_of_the_range(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    for end, inwards in ((highest, -1), (lowest, 1)):
        # Away from the end and back to it, never beyond: then one step too far.
        small = [int(d) for d in rng.integers(0, 2, size=12)]
        there = [end, *(v for d in small for v in (inwards * d, -inwards * d) if signed or inwards * d == 0)]
        check(array_of(on_each_processor, there, moduli, signed), there)
        if signed or inwards < 0:
            beyond = [*there, 0, -inwards, inwards if signed else 0, 0]
            check(array_of(on_each_processor, beyond, moduli, signed), beyond)


@ALL_SETS
@BOTH_RANGES
def test_extrema_of_values_close_together(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    for middle in (lowest, 0, highest):
        near = [min(max(middle + int(d), lowest), highest) for d in rng.integers(-5, 6, size=40)]
        far = [highest // 2, *near, lowest, highest]
        for values in (near, sorted(near), sorted(near)[::-1], far, [middle] * 5):
            x = array_of(on_each_processor, values, moduli, signed)
            assert x.cummax().to_ints().tolist() == list(accumulate(values, max))
            assert x.cummin().to_ints().tolist() == list(accumulate(values, min))


@given(st.data())
def test_any_values_any_chunks(data: st.DataObject) -> None:
    signed = data.draw(st.booleans())
    moduli = data.draw(moduli_sets())
    values = data.draw(arrays_of_values(moduli, signed))
    if data.draw(st.booleans()):
        values = fitting(values, moduli, signed) or [0]
    bound = data.draw(st.sampled_from([None, max(map(abs, values))]))
    chunks = data.draw(chunks_of(len(values)))
    check(chunked(array_of(CPU, values, moduli, signed, bound), chunks), values)


@BOTH_RANGES
def test_blocks_and_batches(
    monkeypatch: pytest.MonkeyPatch, on_each_processor: Processor, signed: bool, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(blocks, "EXACT_RESIDUES", 12)
    monkeypatch.setattr(scan, "EXACT_BLOCK", 2)
    monkeypatch.setattr(scan, "KEY_BLOCK", 5)
    moduli = MODULI_SETS["top"]
    lowest, highest = moduli.value_range(signed)
    steps = [int(d) for d in rng.integers(-3 if signed else 0, 4, size=60)]
    values = [highest - 400, *steps, *(fitting([lowest // 3] * 9, moduli, True) if signed else []), 1, 2]
    check(array_of(on_each_processor, values, moduli, signed), values)
    values += [highest, 1, -5 if signed else 5]
    check(array_of(on_each_processor, values, moduli, signed), values)


@pytest.mark.parametrize("chunks", [5, 128, 1000])
@BOTH_RANGES
def test_many_chunks(chunks: int, signed: bool, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["table2_8"]
    values = [
        int(v) << int(k) for v, k in zip(rng.integers(-9, 10, 500), rng.integers(0, 100, 500), strict=True)
    ]
    values = values if signed else [abs(v) for v in values]
    check(chunked(array_of(CPU, values, moduli, signed), chunks), values)
    values[333] = moduli.value_range(signed)[1]
    check(chunked(array_of(CPU, values, moduli, signed), chunks), values)


def test_the_error_names_the_index_in_the_whole_array() -> None:
    moduli = ModuliSet([7, 11])
    x = chunked(array_of(CPU, [5] * 40, moduli), 4)
    with pytest.raises(RNSOverflowError, match="flat index 15: the exact result is 7 bits long"):
        x.cumsum()[12:16].to_ints()
    with pytest.raises(RNSOverflowError, match="flat index 19: the exact result is 7 bits long"):
        x.cumsum()[20:24].to_ints()
    assert x[:15].cumsum().to_ints().tolist() == list(range(5, 80, 5))


@SHORT_SETS
@BOTH_RANGES
def test_bounds_around_the_products_of_prefixes(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    for bound in bounds_around_prefixes(moduli, signed, prefixes=3):
        values = values_within(bound, signed, rng, count=10)
        check(array_of(on_each_processor, values, moduli, signed, bound), values)


def test_chunks_of_numbers_far_below_the_prefix(rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["unsorted"]
    for bound in bounds_around_prefixes(moduli, True, prefixes=3):
        values = values_within(bound, True, rng, count=10)
        check(chunked(array_of(CPU, values, moduli, True, bound), 7), values)


def test_a_bound_proves_that_nothing_overflows() -> None:
    """A bound that is wrong shows it: nobody sees the overflow of numbers that are beyond it."""
    moduli = MODULI_SETS["top"]
    highest = moduli.value_range(True)[1]
    x = array_of(CPU, [3, -4, 2, highest], moduli, True, 4)
    assert x.cumsum().to_ints().tolist() == [3, -1, 1, highest + 1 - moduli.product]
    assert x.cumsum().bound == 16


def test_empty_arrays() -> None:
    for chunks in (None, 4):
        x = array_of(CPU, [], MODULI_SETS["top"])
        x = x if chunks is None else chunked(x, chunks)
        for name in FUNCTIONS:
            assert getattr(x, name)().to_ints().tolist() == []


def test_an_unknown_backend_is_refused() -> None:
    x = rd.random(MODULI_SETS["top"], 4)
    for name, y in product((*FUNCTIONS, "prod"), (x, x.rechunk(2))):
        with pytest.raises(ValueError, match="backend must be one of auto, cpu, cuda, got 'gpu'"):
            getattr(y, name)(backend="gpu")


def test_chunks_are_not_kept_between_the_passes(tmp_path: Path) -> None:
    moduli = MODULI_SETS["top"]
    x = rd.RNSArray(rd.random(moduli, 1280, chunks=128, seed=3).residues // np.uint32(2000), rd.RNS(moduli))
    alive: set[int] = set()
    most = [0]

    def tracked(block: np.ndarray) -> np.ndarray:
        block = block.copy()
        alive.add(id(block))
        weakref.finalize(block, alive.discard, id(block))
        most[0] = max(most[0], len(alive))
        return block

    y = rd.RNSArray(x.residues.map_blocks(tracked, dtype=np.uint32, meta=x.residues._meta), rd.RNS(moduli))
    with dask.config.set(scheduler="sync"):
        y.cummax().to_zarr(tmp_path / "y.zarr")
    assert most[0] <= 4
    assert rd.open_zarr(tmp_path / "y.zarr").to_ints().tolist() == list(accumulate(x.to_ints(), max))
    assert y.cummax().residues.name == y.cummax().residues.name


# Divisions of chunks that Dask makes by tasks which are no blockwise layer.
DIVISIONS: dict[str, Callable[[rd.RNSArray], rd.RNSArray]] = {
    "slice": lambda x: x[100:-50],
    "step": lambda x: x[::3],
    "picked": lambda x: x[np.arange(3, 7000, 2)],
    "rechunked": lambda x: x.rechunk(384),
    "overlapping": lambda x: x[5:].rechunk(256),
    "stepwise": lambda x: (x[7:] // 2)[::2].rechunk(128),
}


@pytest.mark.parametrize("division", DIVISIONS.values(), ids=DIVISIONS)
@pytest.mark.parametrize("scheduler", ["threads", *slow("sync")])
def test_chunks_divided_otherwise_are_read_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    division: Callable[[rd.RNSArray], rd.RNSArray],
    scheduler: str,
) -> None:
    moduli = MODULI_SETS["top"]
    rd.random(moduli, 128 * 100, chunks=128, seed=3).to_zarr(tmp_path / "x.zarr")
    alive, most, reads, read_chunk, lock = set(), [0], Counter(), store.read_chunk, threading.Lock()

    def tracked(info: store.StoreInfo, index: tuple[int, ...]) -> np.ndarray:
        block = read_chunk(info, index).copy()
        with lock:
            reads[index] += 1
            alive.add(id(block))
            most[0] = max(most[0], len(alive))
        weakref.finalize(block, alive.discard, id(block))
        return block

    x = division(rd.open_zarr(tmp_path / "x.zarr"))
    expected = list(accumulate(x.to_ints(), max))
    monkeypatch.setattr(store, "read_chunk", tracked)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        x.cummax().to_zarr(tmp_path / "y.zarr")
    assert set(reads.values()) == {2}
    assert most[0] <= 20  # of a hundred
    assert rd.open_zarr(tmp_path / "y.zarr").to_ints().tolist() == expected
    assert x.cummax().residues.name == x.cummax().residues.name


def test_numbers_in_memory_are_not_copied_for_the_second_pass() -> None:
    moduli = MODULI_SETS["top"]
    x = rd.from_ints(range(1000), moduli, chunks=128)[100:]
    assert x.cumsum().to_ints().tolist() == list(accumulate(range(100, 1000)))
    held = [x.persist(), x.rechunk(256).persist()[3:]]
    assert all(y.cummin().to_ints().tolist() == [int(y[0].compute())] * len(y) for y in held)


def test_scans_of_scans_in_one_chunk_are_made_once() -> None:
    """In two passes each, the first would be made 2**40 times."""
    x = rd.from_ints([1] * 41, ModuliSet.for_bits(90), chunks=64)
    for _ in range(40):
        x = x.cumsum()
    assert x.to_ints().tolist() == [math.comb(40 + k, k) for k in range(41)]
