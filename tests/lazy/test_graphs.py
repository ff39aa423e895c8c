"""Graphs of lazy arrays: how many layers and tasks each kind of result takes, on each scheduler the same."""

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from dask.graph_manipulation import bind, checkpoint, clone, wait_on
from distributed import Client, LocalCluster
from strategies import slow

import rnsdask as rd
from rnsdask import store
from rnsdask.lazy.tree import combine_each, pieces_of

MODULI = rd.ModuliSet.for_bits(200)
VALUES = [(7**i * 2**40 + i) % 2**150 for i in range(400)]

WHOLE: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "sum": lambda x: x.sum(),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(),
    "reduce": lambda x: x.reduce("bound"),
}


def in_memory(kind: str = "rns") -> Any:
    x = rd.from_ints(VALUES, MODULI, chunks=None)
    return x if kind == "rns" else rd.IntervalRNSArray.from_rns(x)


def resident(chunks: Any, kind: str = "rns") -> Any:
    return in_memory(kind).rechunk(chunks).persist(scheduler="synchronous")


def tasks_of(*results: Any) -> int:
    """How many tasks the scheduler gets, once Dask has fused those of some results."""
    optimized = dask.optimize(*results)
    return len({key for result in optimized for key in dict(result.__dask_graph__())})


@pytest.mark.parametrize("kind", ["rns", *slow("interval")])
@pytest.mark.parametrize("name", WHOLE)
def test_reading_a_chunk_and_reducing_it_are_one_task(name: str, kind: str, tmp_path: Path) -> None:
    # Of 200 chunks, 4 tasks combine 64 each at most, and one these.
    for chunks, tasks in [(400, 1 + 1), (200, 2 + 1), (50, 8 + 1), (2, 200 + 4 + 1)]:
        in_memory(kind).rechunk(chunks).to_zarr(tmp_path / f"{chunks}.zarr")
        result = WHOLE[name](rd.open_zarr(tmp_path / f"{chunks}.zarr"))
        assert tasks_of(result) == tasks
        assert result.compute() == WHOLE[name](in_memory(kind))


def test_element_wise_results_are_a_task_a_chunk(tmp_path: Path) -> None:
    in_memory().rechunk(50).to_zarr(tmp_path / "x.zarr")
    x = rd.open_zarr(tmp_path / "x.zarr")
    for result in (x + 1, x * 3 - x, x // 7, x % 2**60):
        assert tasks_of(result.words) == 8


def test_results_at_once_share_what_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory().rechunk(50).to_zarr(tmp_path / "x.zarr")
    read_chunk, reads = store.read_chunk, Counter()

    def counted(info: Any, index: Any) -> Any:
        reads[index] += 1
        return read_chunk(info, index)

    monkeypatch.setattr(store, "read_chunk", counted)
    x = rd.open_zarr(tmp_path / "x.zarr")
    groups = [range(4), range(4, 8)]
    ways: list[Callable[[], Any]] = [
        lambda: dask.compute(x.max(), x.min(), x.sum()),
        lambda: dask.compute(x.max(), x + 1, x > 5),
        lambda: dask.compute(pieces_of(*(combine_each(y.words, groups, len) for y in (x, x + 1, x - 1)))),
    ]
    for compute in ways:
        reads.clear()
        compute()
        assert set(reads.values()) == {1}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options: dict[str, Any] = {"processes": False, "dashboard_address": None}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("chunks", [400, 50, (1, 7, 92, 200, 100)])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads", *slow("processes"), "distributed"])
def test_schedulers_agree(chunks: Any, scheduler: Any, client: Client) -> None:
    if scheduler == "processes" and chunks != 50:
        pytest.skip("each process takes a second to import the package")
    scheduler = client if scheduler == "distributed" else scheduler
    for x in (in_memory().rechunk(chunks), resident(chunks), in_memory().rechunk(chunks)[::-1][::-1]):
        results = {
            "max": (x.max(), max(VALUES)),
            "sum": (x.sum(), sum(VALUES)),
            "argmin": (x.argmin(), VALUES.index(min(VALUES))),
            "chained": ((x + 1).sum() - x.min() // 3, sum(VALUES) + 400 - min(VALUES) // 3),
            "found": (x[x > 2**140].max(), max(VALUES)),
            "item": (x[17], VALUES[17]),
        }
        every = dask.compute(*(lazy for lazy, _ in results.values()), x - 1, x > 5, scheduler=scheduler)
        assert every[: len(results)] == tuple(expected for _, expected in results.values())
        assert every[-2].to_ints().tolist() == [value - 1 for value in VALUES]
        assert every[-1].tolist() == [value > 5 for value in VALUES]
        if scheduler == "processes":
            break
        for lazy, expected in results.values():
            assert lazy.compute(scheduler=scheduler) == expected
        assert (x - 1).compute(scheduler=scheduler).to_ints().tolist() == [value - 1 for value in VALUES]


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_chunks_that_are_joined_by_their_keys(scheduler: str) -> None:
    """Dask's concatenation names chunks of arrays in memory in its own way."""
    x = rd.from_ints(list(range(7)), MODULI, chunks=3).persist()
    y = rd.from_ints([50, 60], MODULI, chunks=1)
    with dask.config.set(scheduler=scheduler):
        joined = rd.concatenate([x, y, x[2:5]])
        values = [*range(7), 50, 60, 2, 3, 4]
        assert joined.compute().to_ints().tolist() == values
        assert (joined + 1).compute().to_ints().tolist() == [v + 1 for v in values]
        assert (joined.max().compute(), joined.sum().compute()) == (max(values), sum(values))
        assert rd.diff(x, prepend=0, append=99).compute().to_ints().tolist() == [0, 1, 1, 1, 1, 1, 1, 93]
        assert rd.stack([x, x]).max(axis=0).compute().to_ints().tolist() == list(range(7))


def test_dasks_ways_with_graphs(client: Client) -> None:
    x = resident(50)
    with dask.annotate(priority=3):
        largest = x.max()
    layers = [largest.dask.layers[name] for name in largest.dask.layers if name not in x.words.dask.layers]
    assert layers
    assert all(layer.annotations == {"priority": 3} for layer in layers)
    assert largest.name == x.max().name != x.min().name
    assert pickle.loads(pickle.dumps(largest)).compute() == max(VALUES)
    assert largest.persist(scheduler="threads").compute(scheduler="threads") == max(VALUES)
    assert client.compute(largest).result() == max(VALUES)
    assert client.gather(client.compute([largest, x.min()])) == [max(VALUES), min(VALUES)]
    assert client.persist(largest).compute(scheduler=client) == max(VALUES)
    with dask.config.set(scheduler="threads"):
        assert clone(largest).name != largest.name
        for result in (largest, resident(400).max(), x.sum(), x.max() + 1, x.prod(overflow="wrap")):
            expected = np.asarray(result.compute()).tolist()
            again = [clone(result), wait_on(result), bind(result, checkpoint(x.min()))]
            assert [np.asarray(each.compute()).tolist() for each in again] == [expected] * 3
        assert largest.compute(optimize_graph=False) == largest.compute(num_workers=1) == max(VALUES)
        assert largest.to_delayed().item().compute() == max(VALUES)
        assert (x + 1).blocks[3].compute().to_ints().tolist() == [value + 1 for value in VALUES[150:200]]
