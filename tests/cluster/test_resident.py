"""Reductions of chunks that the GPUs of a cluster hold: one task for those of each worker, same results."""

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, Future, LocalCluster, wait

import rnsdask as rd
from rnsdask.cluster import workers
from rnsdask.core.errors import SchedulerLostError

MODULI = rd.ModuliSet.for_bits(100)
OPERATIONS = ("max", "min", "sum", "bound")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options: dict[str, Any] = {"processes": False, "threads_per_worker": 2, "dashboard_address": None}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as connected:
        yield connected


def is_finished(future: Future) -> bool:
    return bool(future.status == "finished")


@pytest.fixture
def any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the memory of workers for that of their GPUs."""
    monkeypatch.setattr(workers, "is_on_gpu", is_finished)


def persisted(client: Client, chunks: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Numbers as an array in memory, and the same on workers: a chunk on one, the next on the other."""
    bits = rng.integers(0, 2, shape) * 60 + 3
    ints = np.array([int(x) for x in rng.integers(0, 2**62, bits.size)], dtype=object).reshape(shape) >> bits
    whole = rd.from_ints(ints - 17, MODULI, signed=True)
    lazy = da.from_array(whole.residues, chunks=(-1, *chunks))
    addresses = sorted(client.scheduler_info()["workers"])
    futures = {}
    for i, key in enumerate(np.ndindex(lazy.numblocks)):
        block = lazy.blocks[key].compute(scheduler="sync")
        home = [addresses[i % len(addresses)]]
        futures[lazy.name, *key] = client.scatter(block, workers=home, hash=False)
    words = da.Array(futures, lazy.name, lazy.chunks, meta=np.empty((0,) * lazy.ndim, np.uint32))
    return ints - 17, whole, rd.RNSArray(words, whole.system)


def tasks_of(array: Any) -> int:
    optimized = da.Array.__dask_optimize__(array.dask, array.__dask_keys__())
    return sum(key[0].startswith("rns-") for key in optimized)


@pytest.mark.usefixtures("any_memory")
@pytest.mark.parametrize(
    ("shape", "chunks"), [((40,), (7,)), ((3, 4, 5), (2, 3, 5)), ((16,), (8,)), ((6, 6), (1, 6))]
)
def test_one_task_for_each_worker(
    client: Client, shape: tuple[int, ...], chunks: tuple[int, ...], rng: np.random.Generator
) -> None:
    ints, whole, lazy = persisted(client, chunks, shape, rng)
    groups = workers.chunks_by_worker(lazy.words)
    if lazy.words.npartitions == 2:  # each on a worker of its own
        assert groups is None
    else:
        assert groups is not None
        assert sorted(map(len, groups)) == sorted(len(range(k, lazy.words.npartitions, 2)) for k in (0, 1))
        assert sorted(number for group in groups for number in group) == list(range(lazy.words.npartitions))
        assert tasks_of(lazy.reduce("max")) == 3
    for operation in OPERATIONS:
        found = lazy.reduce(operation).compute()
        expected = whole.reduce(operation)
        assert (found.value, found.index, found.count) == (expected.value, expected.index, expected.count)
    assert (int(lazy.max()), int(lazy.min()), int(lazy.sum())) == (ints.max(), ints.min(), ints.sum())
    assert (lazy.argmax().compute(), lazy.argmin().compute()) == (ints.argmax(), ints.argmin())


@pytest.mark.usefixtures("any_memory")
def test_the_first_of_equal_numbers_is_on_the_worker_whose_result_comes_last(client: Client) -> None:
    whole = rd.from_ints([0, 0, 0, 5, 5, 0, 5, 0], MODULI, signed=True, chunks=None)
    first, second = sorted(client.scheduler_info()["workers"])
    words = da.from_array(np.asarray(whole.residues), chunks=(-1, 2))
    futures = {
        (words.name, 0, i): client.scatter(np.asarray(words.blocks[0, i]), workers=[home], hash=False)
        for i, home in enumerate((first, second, first, second))
    }
    held = da.Array(futures, words.name, words.chunks, meta=np.empty((0, 0), np.uint32))
    assert workers.chunks_by_worker(held) == [[0, 2], [1, 3]]
    lazy = rd.RNSArray(held, whole.system)
    assert (lazy.argmax().compute(), lazy.argmin().compute(), int(lazy.sum())) == (3, 0, 15)


@pytest.mark.usefixtures("any_memory")
def test_chunks_of_one_worker_take_one_task(client: Client, rng: np.random.Generator) -> None:
    ints, whole, _ = persisted(client, (5,), (20,), rng)
    address = [min(client.scheduler_info()["workers"])]
    words = da.from_array(whole.residues, chunks=(-1, 5))
    with client.as_current():
        lazy = rd.RNSArray(client.persist(words, workers=address), whole.system)
    wait(lazy.words)
    assert workers.chunks_by_worker(lazy.words) == [[0, 1, 2, 3]]
    assert tasks_of(lazy.reduce("max")) == 1 + 1
    assert int(lazy.max()) == ints.max()


@pytest.mark.usefixtures("any_memory")
def test_lost_chunks_and_schedulers_are_left_to_dask(
    client: Client, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ints, _, lazy = persisted(client, (5,), (20,), rng)

    def nobody(*_: Any) -> dict[str, list[str]]:
        return {}

    monkeypatch.setattr(workers, "ask", nobody)
    assert workers.chunks_by_worker(lazy.words) is None
    assert int(lazy.max()) == ints.max()

    def lost(*_: Any) -> None:
        raise SchedulerLostError("gone")

    monkeypatch.setattr(workers, "ask", lost)
    assert workers.chunks_by_worker(lazy.words) is None
    assert int(lazy.min()) == ints.min()


def test_chunks_elsewhere_are_reduced_one_by_one(client: Client, rng: np.random.Generator) -> None:
    ints, whole, lazy = persisted(client, (5,), (20,), rng)
    assert workers.chunks_by_worker(lazy.words) is None  # NumPy's
    local = rd.from_residues(da.from_array(whole.residues, chunks=(-1, 5)), MODULI, signed=True)
    assert workers.chunks_by_worker(local.words) is None
    assert int(local.max().compute(scheduler="sync")) == int(lazy.max()) == ints.max()


@pytest.mark.gpu
def test_chunks_of_gpus_are_exchanged_by_tasks(client: Client) -> None:
    import cupy

    fields = rd.PrimeFields(rd.ModuliSet([2013265921]))
    ints = np.random.default_rng().integers(0, fields.moduli[0], 2**12)
    words = da.from_array(cupy.asarray(ints.astype(np.uint32)[None]), chunks=(1, 2**8), asarray=False)
    with client.as_current(), dask.config.set({"array.rechunk.method": "p2p"}):
        x = rd.FieldArray(words, fields)
        assert x.rechunk(300).to_ints().tolist() == ints.tolist()
        assert rd.intt(rd.ntt(x)).to_ints().tolist() == ints.tolist()
