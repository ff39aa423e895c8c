"""Histograms against NumPy's of small integers, and against Python's comparisons of large ones."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.core.place import ALONE
from rnsdask.lazy.summary import combine_summaries, summarize_chunk

MODULI = rd.ModuliSet.for_bits(500)
SYSTEMS = {
    "signed": rd.RNS(MODULI, True),
    "bounded": rd.RNS(MODULI, True, 2**450),
    "interval": rd.IntervalRNS(MODULI),
    "positional": rd.Positional(500, True),
}


def counted(values: list[int], edges: list[int]) -> list[int]:
    pairs = list(pairwise(edges))
    closed = [False] * (len(pairs) - 1) + [True]
    return [
        sum(low <= v < high or (last and v == high) for v in values)
        for (low, high), last in zip(pairs, closed, strict=True)
    ]


def counts_of(x: Any, *args: Any, **kwargs: Any) -> tuple[list[int], list[int]]:
    counts, edges = rd.histogram(x, *args, **kwargs)
    assert isinstance(counts, da.Array) == isinstance(x.words, da.Array)
    assert counts.dtype == np.int64
    assert edges.dtype == object
    counts, edges = dask.compute(counts, edges)
    assert all(type(edge) is int for edge in edges)
    return counts.tolist(), edges.tolist()


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("chunks", [None, 7])
def test_large_edges(name: str, chunks: int | None) -> None:
    rng = np.random.default_rng()
    values = [int.from_bytes(rng.bytes(56), "little") >> int(rng.integers(0, 440)) for _ in range(60)]
    values += [-v for v in values[::2]] + [0, 5, 5, 2**440, 2**440 - 1]
    x = rd.from_ints(values, SYSTEMS[name], chunks=chunks)
    chosen = sorted({0, 5, 2**440, *values[:9]})
    cases = [
        chosen,
        [-(2**900), 0, 2**900],  # beyond the range
        [-(2**900), -(2**800)],
        [2**800, 2**900, 2**901],
        [0, 5, 5, 5],
        [5, 5],
        [-5, 6, 2**440],
        [min(values), max(values)],
    ]
    for edges in cases:
        assert counts_of(x, edges) == (counted(values, edges), edges)
    ints = np.empty(len(chosen), dtype=object)
    ints[:] = chosen
    assert counts_of(x, ints)[0] == counted(values, chosen)


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize("bins", [1, 3, 10, 100])
def test_numbers_of_bins_are_numpys(bins: int, chunks: int | None) -> None:
    rng = np.random.default_rng()
    for a in (rng.integers(-1000, 1000, (5, 8)), rng.integers(0, 7, 30), np.array([5, 5, 5]), np.arange(3)):
        x = rd.from_ints(a, chunks=chunks)
        counts, edges = counts_of(x, bins)
        low, high = Fraction(int(a.min())), Fraction(int(a.max()))
        if low == high:
            low, high = low - Fraction(1, 2), high + Fraction(1, 2)
        exact = [low + (high - low) * k / bins for k in range(bins + 1)]
        assert counts == counted(a.ravel().tolist(), exact)  # type: ignore[arg-type]
        assert sum(counts) == a.size
        assert [0 <= edge - e < 1 for edge, e in zip(edges, exact, strict=True)] == [True] * (bins + 1)
    assert counts_of(x, bins, range=(-4, 1))[0] == counted(a.tolist(), counts_of(x, bins, (-4, 1))[1])


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize("bins", [1, 2, 3, 4])
def test_a_range_of_one_number(bins: int, chunks: int | None) -> None:
    """The counts are NumPy's, and those of the edges where integers can be such edges."""
    a = [4, 5, 5, 6]
    counts, edges = counts_of(rd.from_ints(a, chunks=chunks), bins, (5, 5))
    assert counts == np.histogram(a, bins, (5, 5))[0].tolist()
    if bins <= 2:
        assert edges == [5] * (bins + 1)
        assert np.histogram(a, edges)[0].tolist() == counts
    else:
        assert (edges[0], edges[-1]) == (5, 6)


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_processor(name: str, on_each_processor: Processor) -> None:
    values = [k * (-3) ** k for k in range(150)]
    edges = [-(3**600), -(3**100), 0, 1, 3**90, 2**499]
    x = rd.from_ints(values, SYSTEMS[name], chunks=None)
    y = type(x)(on_each_processor.xp.asarray(x.words), x.system)
    for array in (y, y.rechunk(40)):
        assert counts_of(array, edges)[0] == counted(values, edges)
        assert sum(counts_of(array, 7)[0]) == 150
    parts = [y[i : i + 40] for i in range(0, 161, 40)]  # the last one is empty
    how: dict[str, Any] = {"place": ALONE, "system": y.system, "backend": "auto"}
    for summaries in ([summarize_chunk(part.words, **how) for part in some] for some in ([y], parts)):
        summary = combine_summaries(summaries)
        assert (summary.minimum, summary.maximum, summary.total) == (min(values), max(values), sum(values))
        assert sum(summary.lengths) == summary.count == 150


def test_numpys_function_gives_the_same() -> None:
    a = np.random.default_rng().integers(0, 100, 1000)
    x = rd.from_ints(a, chunks=None)
    edges = [0, 10, 20, 50, 90]
    counts, found = np.histogram(x, edges)
    assert counts.tolist() == np.histogram(a, edges)[0].tolist()
    assert found.tolist() == edges
    assert np.histogram(x, bins=4, range=(0, 100))[0].tolist() == np.histogram(a, 4, (0, 100))[0].tolist()


def test_empty_arrays() -> None:
    for chunks in (None, "auto"):
        x = rd.from_ints(np.arange(0), MODULI, chunks=chunks)
        assert counts_of(x, 2) == ([0, 0], [0, 1, 1])
        assert counts_of(x, [1, 5]) == ([0], [1, 5])


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    x = rd.from_ints([1, 2, 3], chunks=1) + 0
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        counts, edges = rd.histogram(x, 2)
        assert (counts.shape, edges.shape) == ((2,), (3,))
        rd.histogram(x, [0, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2.5],), TypeError, "the edge at index 1"),
        (([3, 2],), ValueError, "edges must not decrease.*index 1"),
        (([3],), ValueError, "at least 2 edges"),
        (([[1, 2], [3, 4]],), ValueError, r"shape \(2, 2\)"),
        ((0,), ValueError, "at least 1, got 0"),
        ((2.5,), TypeError, "2.5"),
        ((3, (5, 1)), ValueError, "must not be greater"),
        ((3, (0.5, 1)), TypeError, "range's first"),
        ((3, 7), TypeError, "pair"),
        (([1, 2], (0, 1)), TypeError, "range with a number of bins"),
        ((3, None, True), TypeError, "takes no density"),
        ((3, None, None, [1]), TypeError, "takes no weights"),
    ],
)
def test_wrong_calls(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rd.histogram(rd.from_ints([1, 2]), *arguments)


def test_fields_have_no_order() -> None:
    with pytest.raises(TypeError, match="histogram takes no FieldArray"):
        rd.histogram(rd.from_ints([1, 2], rd.PrimeFields([7])), 2)
