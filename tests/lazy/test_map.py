"""How chunks are mapped: where they lie, what names the results, what tasks hold."""

import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import rnsdask as rd
from rnsdask.core.place import Place
from rnsdask.lazy import call as lazy_call
from rnsdask.lazy.map import map_chunks, reduce_chunks

HUGE = 10**9000
NAMED = (HUGE, HUGE + 1, 1, (HUGE,), [HUGE], [HUGE + 1], {1: [HUGE]}, HUGE)


def plus(a: Any, b: Any = 0, *, addend: Any = 0) -> Any:
    return a + b + np.uint32(addend % 1000)


def firsts(block: Any, *, place: Place) -> Any:
    return np.full_like(block[:1], place.flat_index(0), dtype=np.int64)


def words(rows: int, *shape: int) -> Any:
    return np.arange(rows * np.prod(shape), dtype=np.uint32).reshape(rows, *shape)


def test_arrays_in_memory_are_mapped_at_once() -> None:
    a, b = words(2, 3, 4), words(2, 1, 4)
    assert (map_chunks(plus, a, b, rows=2, addend=HUGE + 7) == a + b + 7).all()
    assert map_chunks(firsts, a, dtype=np.int64, located=True).tolist() == [[0] * 4] * 3


@pytest.mark.parametrize("chunks", [(2, 2, 2), (2, (1, 2), (3, 1)), (2, 3, 4)])
def test_chunks_meet_those_that_broadcast_with_them(chunks: Any) -> None:
    a, b, single = words(2, 3, 4), words(2, 1, 4), words(2, 1, 1)
    lazy = da.from_array(a, chunks=chunks)
    for other in (b, da.from_array(b, chunks=(2, 1, 3)), single):
        found = map_chunks(plus, lazy, other, rows=2, addend=5)
        assert (found.compute() == a + other + 5).all()
    found = map_chunks(plus, lazy, da.from_array(b, chunks=(2, 1, 3)))
    assert found.shape == (3, 4)
    places = map_chunks(firsts, lazy, dtype=np.int64, located=True)
    numbers = np.arange(12).reshape(3, 4)
    for block, expected in zip(places.blocks.ravel(), lazy[0].blocks.ravel(), strict=True):
        start = np.argwhere(a[0] == expected.compute().flat[0])[0]
        assert (block.compute() == numbers[tuple(start)]).all()
    total = reduce_chunks(sums, lazy)
    assert total.shape == (1, *lazy.numblocks[1:])
    assert total.compute().sum() == a.sum()


def sums(block: Any) -> Any:
    return np.full((1,) * block.ndim, int(block.sum()), dtype=object)


def test_names_tell_options_apart_of_any_length() -> None:
    lazy = da.from_array(words(2, 6), chunks=(2, 3))
    names = [map_chunks(plus, lazy, rows=2, addend=n).name for n in NAMED]
    assert len(set(names)) == len(NAMED) - 1
    assert names[0] == names[-1]
    assert map_chunks(firsts, lazy, located=True).name != map_chunks(firsts, lazy).name


def test_the_place_of_a_chunk_keeps_tasks_small() -> None:
    x = rd.random(rd.ModuliSet([2**32 - 1, 2**32 - 3]), 128 * 4000, chunks=128, seed=1)
    ((graph, keys),) = [(dict((x // 7).__dask_graph__()), (x // 7).__dask_keys__())]
    assert keys
    assert max(len(pickle.dumps(task)) for task in list(graph.values())[:50]) < 2500


def test_a_lazy_integer_goes_to_every_chunk() -> None:
    x = rd.from_ints(range(300), rd.ModuliSet([2**32]), chunks=128)
    (found,) = dask.compute(x - x.min())
    assert found.to_ints().tolist() == list(range(300))


def test_reductions_that_use_other_kernels_have_first_calls_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: set[tuple[Any, ...]] = set()

    def first_alone(function: Callable[..., Any], *kind: Any) -> AbstractContextManager[None]:
        calls.add((function.__name__, *kind))
        return nullcontext()

    monkeypatch.setattr(lazy_call, "uses_gpu", lambda *_: True)
    monkeypatch.setattr(lazy_call, "first_alone", first_alone)
    x = rd.from_ints(range(300), rd.ModuliSet.for_bits(64), chunks=100)
    for array in (x, rd.IntervalRNSArray.from_rns(x)):
        for operation in ("max", "sum"):
            array.reduce(operation, backend="cpu").compute(scheduler="synchronous")
    assert sum(name == "_reduce_block" for name, *_ in calls) == 4
