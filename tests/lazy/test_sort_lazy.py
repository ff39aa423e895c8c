"""Sorting lazy arrays against Python's sort: chunkings, many chunks, skewed numbers, what is computed."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.integers import objects
from sample_arrays import CPU, array_of, chunked, host
from strategies import MODULI_SETS, arrays_of_values, chunks_of, moduli_sets

import rnsdask as rd
from rnsdask.lazy import ranks
from rnsdask.lazy.map import map_chunks

pytestmark = pytest.mark.usefixtures("in_steps")

EIGHT = MODULI_SETS["table2_8"]


pytestmark = pytest.mark.usefixtures("in_this_thread")


def make_together(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let at most `most` chunks of a result be made together."""
    monkeypatch.setattr(ranks, "chunks_together", lambda words, _rows: min(most, words.numblocks[1]))


def check(x: rd.RNSArray, values: list[int]) -> None:
    """That a lazy array of one axis is sorted right, in chunks as long as its own."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    numbers, places = rd.sort(x), x.argsort()
    assert numbers.chunks == x.chunks
    assert numbers.system == x.system
    assert places.dtype == np.int64
    assert places.chunks == x.chunks
    computed = numbers.compute()
    assert computed.to_ints().tolist() == [values[i] for i in order]
    assert host(places).tolist() == order


NUMBERS = {
    "equal": lambda n: [7] * n,
    "alternating": lambda n: [i % 2 for i in range(n)],
    "one other": lambda n: [5] * (n - 1) + [4],
    "sorted": lambda n: list(range(n)),
    "reverse": lambda n: list(range(n))[::-1],
    "few": lambda n: [i * i % 5 for i in range(n)],
    "skewed": lambda n: [1 << i % 90 for i in range(n)],
}


@pytest.mark.parametrize("together", [16, 2])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_skewed_numbers_in_many_chunks(
    on_each_processor: Processor, numbers: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value is too frequent for a chunk; with few chunks together, the array is made several times."""
    make_together(monkeypatch, together)
    values = NUMBERS[numbers](200)
    check(chunked(array_of(on_each_processor, values, EIGHT), 17), values)


@settings(max_examples=25)
@given(st.data())
def test_any_values_any_chunks(data: st.DataObject) -> None:
    signed = data.draw(st.booleans())
    moduli = data.draw(moduli_sets())
    values = data.draw(arrays_of_values(moduli, signed))
    check(chunked(array_of(CPU, values, moduli, signed), data.draw(chunks_of(len(values)))), values)


def test_a_chunk_of_the_result_takes_few_numbers(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """A chunk takes at most half as many numbers again as it keeps, however they are spread."""
    taken: list[int] = []

    def sorting(words: Any, *arguments: Any, **options: Any) -> Any:
        taken.append(words.shape[1])
        return before(words, *arguments, **options)

    before = ranks.sorted_indices
    monkeypatch.setattr(ranks, "sorted_indices", sorting)
    count, length = 25, 400
    for values in (
        [3] * (count * length),
        rng.integers(0, 2**62, count * length).tolist(),
        [*range(count * length)],
    ):
        x = chunked(array_of(CPU, values, EIGHT), length)
        packed = ranks.sorted_words(x.words, x.system)
        taken.clear()
        packed[:, -length:].compute()
        # The chunks themselves, then samples, and the last chunk alone.
        assert taken[-1] <= 1.5 * length
        assert all(size <= max(1.5 * length, 16 * count**2) for size in taken)


def test_the_array_is_computed_again_for_chunks_that_are_not_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def block(words: Any) -> Any:
        made.append(words.shape[1])
        return words

    values = list(range(100))[::-1]
    for together, passes in ((16, 1), (5, 3)):
        make_together(monkeypatch, together)
        x = chunked(array_of(CPU, values, EIGHT), 10)
        x = rd.RNSArray(map_chunks(block, x.words, rows=8), x.system)
        made.clear()
        assert rd.sort(x).to_ints().tolist() == values[::-1]
        assert len(made) == 10 * passes


def test_stores_results_and_parts_are_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several passes, whatever the array is made of."""
    make_together(monkeypatch, 2)
    x = rd.random(EIGHT, 1500, chunks=128, seed=1)
    values = sorted(x.to_ints().tolist())
    rd.sort(x).to_zarr(tmp_path / "sorted")
    stored = rd.open_zarr(tmp_path / "sorted")
    assert stored.to_ints().tolist() == values
    assert rd.sort(rd.sort(stored[::-1])).to_ints().tolist() == values
    assert rd.sort(x.persist()).to_ints().tolist() == values
    assert rd.sort(x[x > values[700]].compute_chunk_sizes()).to_ints().tolist() == values[701:]
    assert rd.sort(x % 10)[200:300].to_ints().tolist() == sorted(v % 10 for v in values)[200:300]


def test_an_array_that_changes_is_no_sorted_array(monkeypatch: pytest.MonkeyPatch) -> None:
    make_together(monkeypatch, 3)
    calls: list[int] = []

    def block(words: Any) -> Any:
        calls.append(1)
        return words if len(calls) <= 9 else words * 0

    x = chunked(array_of(CPU, list(range(90)), EIGHT), 10)
    x = rd.RNSArray(map_chunks(block, x.words, rows=8), x.system)
    with pytest.raises(rd.RNSError, match="changed meanwhile"):
        rd.sort(x).compute()


def test_axes(on_each_processor: Processor, rng: np.random.Generator) -> None:
    values = objects(rng.integers(0, 9, size=120).tolist(), (4, 5, 6))
    x = chunked(array_of(on_each_processor, values, EIGHT), (1, 3), (2, 3), (4, 2))
    for axis in (0, 1, -1, None):
        assert (rd.sort(x, axis).to_ints() == np.sort(values, axis)).all()
        assert (host(rd.argsort(x, axis)) == np.argsort(values, axis, kind="stable")).all()


def test_medians(on_each_processor: Processor) -> None:
    eager = array_of(on_each_processor, objects([3, 1, 2**100, 2, 5, 4, 7, 7], (2, 4)), EIGHT)
    for x in (eager, chunked(eager, 1, (1, 3))):
        found = [rd.median(x), rd.median(x, 0), rd.median(x, (0, 1), keepdims=True), rd.median(x[0, :3])]
        whole, columns, kept, odd = dask.compute(*found)
        assert (whole, odd) == (Fraction(9, 2), 3)
        assert type(odd) is int or int(odd) == 3
        assert columns.tolist() == [4, Fraction(5, 2), (2**100 + 7) // 2 + Fraction(1, 2), Fraction(9, 2)]
        assert kept.tolist() == [[Fraction(9, 2)]]
        with pytest.raises(ValueError, match="at least one number"):
            rd.median(x[:, :0], 1)


def test_wrong_arguments() -> None:
    x = rd.random(EIGHT, (4, 6), seed=1)
    for function in (rd.sort, rd.argsort, rd.median):
        with pytest.raises(np.exceptions.AxisError):
            function(x, 2)
        with pytest.raises(TypeError, match="takes at least one array of numbers, got list"):
            function([3, 2])
    with pytest.raises(TypeError, match=r"use rd\.sort\(x\)"):
        x.sort()
    with pytest.raises(TypeError, match="no order"):
        x.argsort(order="f")  # type: ignore[arg-type]
