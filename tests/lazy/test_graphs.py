"""Graphs of lazy arrays: how many layers and tasks each kind of result takes, on each scheduler the same."""

import pickle
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import Task, TaskRef
from dask.blockwise import Blockwise
from dask.callbacks import Callback
from dask.graph_manipulation import bind, checkpoint, clone, wait_on
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, LocalCluster

import rnsdask as rd
from rnsdask.jobs.reduction import reduce
from rnsdask.lazy.fused import optimized
from rnsdask.lazy.layer import ChunkLayer
from rnsdask.lazy.map import map_chunks

MODULI = rd.ModuliSet.for_bits(200)
VALUES = [(7**i * 2**40 + i) % 2**150 for i in range(400)]
TABLE = np.array(VALUES, dtype=object).reshape(20, 20)

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


def table(chunks: tuple[int, int]) -> Any:
    return rd.from_ints(TABLE, MODULI, chunks=None).rechunk(chunks).persist(scheduler="synchronous")


def added(result: Any, x: Any) -> tuple[int, int]:
    """How many layers and tasks a result takes beside those of the array."""
    graph, before = (getattr(array, "words", array).__dask_graph__() for array in (result, x))
    return len(graph.layers) - len(before.layers), len(dict(graph)) - len(dict(before))


class Counting(Callback):  # type: ignore[misc]
    """Counts the tasks that a scheduler runs."""

    def __init__(self) -> None:
        super().__init__(posttask=self.count)
        self.tasks = 0

    def count(self, *_: Any) -> None:
        self.tasks += 1


def tasks_run(function: Callable[[], Any]) -> int:
    with Counting() as counting, dask.config.set(scheduler="synchronous"):
        function()
    return counting.tasks


@pytest.mark.parametrize("kind", ["rns", "interval"])
@pytest.mark.parametrize("name", WHOLE)
def test_a_reduction_is_a_task_a_chunk_and_a_tree(name: str, kind: str) -> None:
    # Of 200 chunks, 4 tasks combine 64 each at most, and one these.
    for chunks, layers, tasks in [(400, 1, 1), (200, 2, 2 + 1), (50, 2, 8 + 1), (2, 2, 200 + 4 + 1)]:
        x = resident(chunks, kind)
        result = WHOLE[name](x)
        assert added(result, x) == (layers, tasks)
        if name != "reduce":
            assert tasks_run(result.compute) == tasks
        (optimized,) = dask.optimize(WHOLE[name](in_memory(kind).rechunk(chunks)))
        assert optimized.compute(scheduler="synchronous") == result.compute(scheduler="synchronous")


def test_results_along_axes_are_one_layer_more_for_the_tree() -> None:
    x, lone = table((5, 10)), table((5, 20))
    assert added(x.sum(axis=1, keepdims=True), x) == (4, 8 + 4 + 2 * 4)  # and plain ints, without their row
    assert added(lone.sum(axis=1, keepdims=True), lone) == (3, 4 + 2 * 4)
    assert added(x.max(axis=1, keepdims=True), x) == (3, 8 + 4 + 4)  # and without the rows of places
    assert added(lone.max(axis=1, keepdims=True), lone) == (2, 4 + 4)
    assert added(x.prod(overflow="wrap"), x) == (3, 8 + 1 + 1)
    for array in (x, lone, table((3, 7)), table((1, 1)), table((20, 20))):
        with dask.config.set(split_every=3):
            found = dask.compute(
                array.sum(axis=1),
                array.max(axis=0),
                array.min(axis=(0, 1)),
                array.argmax(axis=1),
                array.sum(),
            )
        assert found[0].tolist() == TABLE.sum(axis=1).tolist()
        assert found[1].to_ints().tolist() == TABLE.max(axis=0).tolist()
        assert found[2] == TABLE.min()
        assert found[3].tolist() == TABLE.argmax(axis=1).tolist()
        assert found[4] == sum(VALUES)


def test_element_wise_results_are_a_task_a_chunk() -> None:
    for chunks, count in [(400, 1), (50, 8)]:
        x = resident(chunks)
        for result in (x + 1, x + x, x * 3 - x, x // 7, x % 2**60):
            assert tasks_run(result.compute) <= count * len(result.__dask_graph__().layers)
        assert added(x + 1, x) == (1, count)
        assert tasks_run((x + 1).compute) == count


def test_reductions_at_once_share_what_they_read(tmp_path: Path) -> None:
    x = resident(50)
    assert tasks_run(lambda: dask.compute(x.max(), x.min(), x.sum())) == 3 * (8 + 1)
    x.to_zarr(tmp_path / "x.zarr")
    y = rd.open_zarr(tmp_path / "x.zarr", chunks=50)
    assert tasks_run(lambda: dask.compute(y.max(), y.min(), y.sum())) == 8 + 3 * (8 + 1)
    assert tasks_run(y.max().compute) == 8 + 1


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options: dict[str, Any] = {"processes": False, "dashboard_address": None}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("chunks", [400, 50, (1, 7, 92, 200, 100)])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes", "distributed"])
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
    assert [layer.annotations for layer in layers] == [{"priority": 3}] * 2
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


@pytest.mark.parametrize("chunks", [(2, 6, 8), (2, 3, 8), (2, (1, 2, 3), 3)])
def test_tasks_are_those_that_dask_would_list(chunks: Any) -> None:
    words = np.arange(96, dtype=np.uint32).reshape(2, 6, 8)
    x, row = da.from_array(words, chunks=chunks), da.from_array(words[:, :1], chunks=(2, 1, chunks[2]))
    column = words[:, :1, :1]
    for located in (False, True):
        made = map_chunks(plus, x, row, column, x, rows=2, located=located)
        layer = made.dask.layers[made.name]
        assert isinstance(layer, ChunkLayer)
        assert len(layer) == x.npartitions
        listed, dasks = dict(layer), Blockwise._dict.fget(layer)
        assert listed.keys() == dasks.keys() == set(dask.core.flatten(made.__dask_keys__()))
        assert {k: task.dependencies for k, task in listed.items()} == {
            k: task.dependencies for k, task in dasks.items()
        }
        assert (made.compute() == 2 * words + words[:, :1] + column).all()
        assert dict(pickle.loads(pickle.dumps(layer))).keys() == listed.keys()


def plus(*blocks: Any, place: Any = None) -> Any:
    if place is not None:
        assert blocks[0].shape[1:] == tuple(stop - start for start, stop in place.location)
    return np.sum(np.broadcast_arrays(*blocks), axis=0)


@pytest.mark.parametrize("compute", [lambda x: x.compute(), lambda x: reduce(x, "max").value])
def test_fused_tasks_search_for_no_order(
    compute: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = rd.random(MODULI, 400, seed=1, chunks=100)
    expected = compute(x // 2 + x // 3)
    searched: list[int] = []
    monkeypatch.setattr(
        dask.order, "order", lambda graph: searched.append(len(graph))
    )  # by the name in tasks
    assert np.array_equal(np.asarray(compute(x // 2 + x // 3)), np.asarray(expected))
    assert not searched


class Value:
    """Something that is not alive once nothing refers to it."""


def test_fused_tasks_let_values_go() -> None:
    alive: list[weakref.ref[Value]] = []

    def make(*_: Value) -> Value:
        value = Value()
        alive.append(weakref.ref(value))
        return value

    def count(_: Value) -> int:
        return sum(ref() is not None for ref in alive)

    tasks = [
        Task("a", make),
        Task("b", make, TaskRef("a")),
        Task("c", make, TaskRef("a"), TaskRef("b")),
        Task("d", count, TaskRef("c")),
    ]
    graph = HighLevelGraph.from_collections("x", {"x": Task.fuse(*tasks, key="x")})
    assert optimized(graph, ["x"])["x"]() == 1  # c alone, which d is given
