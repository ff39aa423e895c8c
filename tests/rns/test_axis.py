"""MAX, MIN and SUM along axes against Python ints."""

import itertools

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import rns
from oracles.integers import objects
from sample_arrays import host
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    MODULI_SETS,
    SHORT_SETS,
    arrays_of_values,
    bounds_around_prefixes,
    edge_values,
    moduli_sets,
    slow,
    values_in,
    values_within,
)

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import axis, blocks


def rows_of(numbers: np.ndarray, axes: tuple[int, ...]) -> tuple[list[list[int]], tuple[int, ...]]:
    """Rows that are reduced together, and the shape of the results with the axes kept."""
    kept = [a for a in range(numbers.ndim) if a not in axes]
    count = int(np.prod([numbers.shape[a] for a in kept]))
    reduced = tuple(1 if a in axes else length for a, length in enumerate(numbers.shape))
    return numbers.transpose(*kept, *axes).reshape(count, -1).tolist(), reduced


def check(x: rd.RNSArray, numbers: np.ndarray, axes: tuple[int, ...]) -> None:
    """Compare all reductions along axes, kept and not, with Python's own."""
    rows, kept = rows_of(numbers, axes)
    gone = tuple(length for a, length in enumerate(numbers.shape) if a not in axes)
    for keepdims, shape in ((True, kept), (False, gone)):
        if not shape:
            continue
        for name, wanted in (("max", max), ("min", min), ("sum", sum)):
            result = getattr(x, name)(axes, keepdims=keepdims)
            assert result.shape == shape
            found = host(result.to_ints() if name != "sum" else result)
            assert found.shape == shape
            assert found.ravel().tolist() == [wanted(row) for row in rows]
        if len(axes) == 1:
            for name, best in (("argmax", max), ("argmin", min)):
                places = getattr(x, name)(axes[0], keepdims=keepdims)
                assert places.shape == shape
                assert places.dtype == np.int64
                assert host(places).ravel().tolist() == [row.index(best(row)) for row in rows]


def all_axes(ndim: int) -> list[tuple[int, ...]]:
    return [c for k in range(1, ndim + 1) for c in itertools.combinations(range(ndim), k)]


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    values = edge_values(moduli, signed)
    picks = [values[i] for i in rng.integers(0, len(values), size=24)]
    near = [min(max(m + int(d), lowest), highest) for m in (0, highest) for d in rng.integers(-2, 3, size=12)]
    numbers = objects(picks + near + [highest] * 12, (3, 4, 5))
    residues = on_each_processor.xp.asarray(rns.encode(numbers, moduli, signed))
    x = rd.from_residues(residues, moduli, signed)
    for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
        check(x, numbers, axes)


@settings(max_examples=50)  # each computes up to ten graphs
@given(st.data())
def test_any_values_any_chunks(data: st.DataObject) -> None:
    signed = data.draw(st.booleans())
    moduli = data.draw(moduli_sets())
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    size = int(np.prod(shape))
    values = data.draw(arrays_of_values(moduli, signed, min_size=size, max_size=size))
    numbers = objects(values, shape)
    chunks = tuple(data.draw(st.integers(1, length)) for length in shape)
    residues = da.from_array(rns.encode(numbers, moduli, signed), chunks=(len(moduli), *chunks))
    check(
        rd.from_residues(residues, moduli, signed), numbers, data.draw(st.sampled_from(all_axes(len(shape))))
    )


@pytest.mark.parametrize("chunks", [(2, 5), (3, 12), *slow((1, 1), (7, 2), (7, 12))])
def test_ties_across_chunks(chunks: tuple[int, int]) -> None:
    moduli = MODULI_SETS["table2_8"]
    numbers = objects([i * 7 // 3 % 5 for i in range(84)], (7, 12))
    residues = da.from_array(rns.encode(numbers, moduli, False), chunks=(len(moduli), *chunks))
    for axes in all_axes(2):
        check(rd.from_residues(residues, moduli), numbers, axes)


@SHORT_SETS
@BOTH_RANGES
def test_bounds_around_the_products_of_prefixes(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    for bound in bounds_around_prefixes(moduli, signed, prefixes=3):
        numbers = objects(values_within(bound, signed, rng, count=10)[:15], (3, 5))
        residues = on_each_processor.xp.asarray(rns.encode(numbers, moduli, signed))
        check(rd.from_residues(residues, moduli, signed, bound=bound), numbers, (1,))


def test_long_sums_of_scaled_keys(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Sums of residues beyond 2**32, and results beyond the range, with a modulus of 2**32 among others."""
    moduli = MODULI_SETS["top"]
    bound = moduli.prefix(3).product * 5 // 4
    for signed in (False, True):
        values = [bound - int(v) for v in rng.integers(0, 2**40, size=3000)]
        numbers = objects(values, (2, 1500))
        residues = on_each_processor.xp.asarray(rns.encode(numbers, moduli, signed))
        for axes in ((0,), (1,), (0, 1)):
            check(rd.from_residues(residues, moduli, signed, bound=bound), numbers, axes)


def test_undecided_rows_in_several_batches(
    monkeypatch: pytest.MonkeyPatch, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(axis, "EXACT_RESIDUES", 40)
    monkeypatch.setattr(blocks, "EXACT_RESIDUES", 40)
    moduli = MODULI_SETS["top"]
    far, near = rng.integers(0, 2**62, size=(9, 11)), rng.integers(0, 4, size=(9, 11))
    mixed = np.where(rng.random((9, 11)) < 0.5, far.astype(object) << 60, near.astype(object))
    numbers = objects([int(v) for v in mixed.ravel()], (9, 11))
    residues = on_each_processor.xp.asarray(rns.encode(numbers, moduli, False))
    for axes in ((0,), (1,)):
        check(rd.from_residues(residues, moduli), numbers, axes)


def test_rows_too_long_for_one_sum_of_keys(
    monkeypatch: pytest.MonkeyPatch, on_each_processor: Processor
) -> None:
    monkeypatch.setattr(axis, "SUM_LIMIT", 2**40)
    moduli = MODULI_SETS["bits2048"]
    lowest, highest = moduli.value_range(True)
    numbers = objects([highest, highest - 1, lowest, 0, -1, 1, highest] * 5, (5, 7))
    residues = on_each_processor.xp.asarray(rns.encode(numbers, moduli, True))
    for axes in all_axes(2):
        check(rd.from_residues(residues, moduli, True), numbers, axes)


@given(st.data())
def test_sums_of_small_sets(data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets(max_size=2))
    signed = data.draw(st.booleans())
    values = data.draw(st.lists(values_in(moduli, signed), min_size=1, max_size=60))
    numbers = objects(values, (1, len(values)))
    found = axis.sums(rns.encode(numbers, moduli, signed), rd.RNS(moduli, signed), (1,))
    assert found.tolist() == [[sum(values)]]


def test_all_axes_give_what_no_axis_gives() -> None:
    moduli = MODULI_SETS["top"]
    x = rd.random(moduli, (6, 300), chunks=(4, 128), seed=5)
    ints = x.to_ints()
    assert int(x.max((0, 1))) == ints.max() == int(x.max())
    assert int(x.sum((-1, 0))) == ints.sum()
    assert x.sum(keepdims=True).compute().tolist() == [[ints.sum()]]
    assert x.argmax(keepdims=True).compute().tolist() == [[ints.argmax()]]
    line = x[0]
    assert int(line.argmin(0)) == ints[0].argmin() == int(line.argmin())
    assert line.argmin(0, keepdims=True).compute().tolist() == [ints[0].argmin()]
    eager = rd.from_ints(ints[:2], moduli, chunks=None)
    assert eager.argmin(keepdims=True).tolist() == [[ints[:2].argmin()]]


def test_lazy_results_keep_what_describes_them() -> None:
    moduli = MODULI_SETS["top"]
    x = rd.RNSArray(
        rd.random(moduli, (6, 300), chunks=(4, 128)).residues, rd.RNS(moduli, bound=moduli.product)
    )
    top = x.max(0)
    assert top.chunks == ((128, 128, 44),)
    assert (top.moduli, top.signed, top.bound) == (x.moduli, x.signed, x.bound)
    assert x.argmin(1).chunks == ((4, 2),)
    assert x.sum(0, keepdims=True).chunks == ((1,), (128, 128, 44))
    assert x.max(0).residues.name == x.max(0).residues.name
    assert x.max(0).residues.name != x.min(0).residues.name
    assert top.max().compute() == x.max().compute()


@pytest.mark.gpu
def test_chunks_on_a_gpu_stay_there() -> None:
    import cupy

    moduli = MODULI_SETS["top"]
    numbers = objects(list(range(60)), (6, 10))
    residues = cupy.asarray(rns.encode(numbers, moduli, False))
    x = rd.RNSArray(da.from_array(residues, chunks=(len(moduli), 4, 5), asarray=False), rd.RNS(moduli))
    top = x.max(0)
    for found in (top.residues, x.argmax(0), top.cummin().residues):
        assert isinstance(found._meta, cupy.ndarray)
        assert isinstance(found.compute(scheduler="sync"), cupy.ndarray)
    for axes in all_axes(2):
        check(x, numbers, axes)
    assert top.topk(2).compute(scheduler="sync").tolist() == [59, 58]
