"""Reductions on clusters of one worker and of more: the same results, on GPUs and on CPU processes."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import dask
import numpy as np
import pytest
from bench_scaling import (
    BACKENDS,
    PERIOD,
    WORKERS,
    chunk_of_known,
    cluster_of,
    equal_chunks,
    gpus_here,
    known_results,
    planted,
    resident,
    with_speedups,
)
from benchmarking import GIB, moduli_set, random_on_cpu
from distributed import Client
from forking import forked_workers

import rnsdask as rd
from rnsdask.core.reductions import ReductionResult

pytestmark = pytest.mark.timeout(600)

SEEDS = (1, 2)
SETS = {
    "8": moduli_set("8"),
    "256 bits": rd.ModuliSet.for_bits(256),
    "many equal numbers": rd.ModuliSet([3, 5, 7]),
    "32 bits": rd.ModuliSet([2**32]),
}


@pytest.fixture(scope="module", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "gpu":
        pytest.importorskip("dask_cuda")
        if gpus_here() < 2:
            pytest.skip("fewer than 2 GPUs")
    return str(request.param)


def clusters(kind: str) -> Iterator[Client]:
    """A client of a cluster of each size in turn, up to all GPUs."""
    counts = set(WORKERS[kind])
    if kind == "gpu":
        most = gpus_here()
        counts = {count for count in counts if count < most} | {most}
    for count in sorted(counts):
        with forked_workers() if kind == "cpu" else nullcontext(), cluster_of(kind, count) as client:
            assert len(client.scheduler_info(n_workers=-1)["workers"]) == count
            yield client


def reduced(client: Client, x: rd.RNSArray, operation: str, kind: str) -> ReductionResult:
    result = client.compute(x.reduce(operation, backend=BACKENDS[kind])).result()
    assert result.backend == BACKENDS[kind]
    return replace(result, backend="")


def on_threads(x: rd.RNSArray, operation: str) -> ReductionResult:
    with dask.config.set(scheduler="threads", num_workers=2):
        return replace(x.reduce(operation, backend="cpu").compute(), backend="")


@pytest.mark.slow
def test_random_numbers(kind: str) -> None:
    arrays = [
        rd.random(moduli, 10_000, seed=seed, chunks=1280, signed=signed)
        for moduli in SETS.values()
        for seed, signed in zip(SEEDS, (False, True), strict=True)
    ]
    expected = [{op: on_threads(x, op) for op in ("max", "min", "sum")} for x in arrays]
    for x, results in zip(arrays, expected, strict=True):
        values = [int(value) for value in x.to_ints()]
        assert (results["max"].value, results["min"].value) == (max(values), min(values))
        assert results["sum"].value == sum(values)
        assert results["max"].index == values.index(max(values))
        assert results["min"].index == values.index(min(values))
    for client in clusters(kind):
        for x, results in zip(arrays, expected, strict=True):
            for operation, result in results.items():
                assert reduced(client, x, operation, kind) == result
            assert int(client.compute(x.argmax()).result()) == results["max"].index
            assert int(client.compute(x.argmin()).result()) == results["min"].index


def chunk_with_greatest(chunk: int, lengths: tuple[int, ...], moduli: rd.ModuliSet, *, gpu: bool) -> Any:
    """The numbers of `chunk_of_known`, but the very last of the array is M - 1."""
    residues = chunk_of_known(chunk, lengths, moduli, gpu=gpu)
    if chunk == len(lengths) - 1:
        greatest = np.array([m - 1 for m in moduli], dtype=np.uint32)
        residues[:, -1] = np.asarray(greatest, like=residues)
    return residues


@pytest.mark.parametrize("last", ["planted", "M - 1"])
def test_maximum_last(kind: str, last: str) -> None:
    moduli = moduli_set("8")
    chunk = {"cpu": PERIOD + 128, "gpu": 2**25}[kind]
    lengths = (chunk,) * 8 + (1,)
    known = known_results(moduli, lengths)
    (greatest, index, count), total = known["max"], known["sum"][0]
    make = chunk_of_known if last == "planted" else chunk_with_greatest
    if last == "M - 1":
        greatest, total = moduli.product - 1, total + moduli.product - 1 - greatest
    pattern = [int(value) for value in rd.RNSArray(random_on_cpu(moduli, PERIOD), rd.RNS(moduli)).to_ints()]
    if kind == "gpu":
        assert count == 2**28 + 1
    first: dict[str, ReductionResult] = {}
    for client in clusters(kind):
        with resident(client, kind == "gpu", make, moduli, lengths, len(moduli)) as words:
            x = rd.RNSArray(words, rd.RNS(moduli))
            results = {op: reduced(client, x, op, kind) for op in ("max", "min", "sum")}
            argmax = int(client.compute(x.argmax()).result())
            if kind == "gpu":  # chunks of GiB are reduced where they are; small ones may move
                held = [key for keys in client.has_what().values() for key in keys]
                assert all(held.count((x.residues.name, 0, i)) == 1 for i in range(len(lengths) - 1))
        first = first or results
        assert results == first
        assert (results["max"].value, results["max"].index) == (greatest, index)
        assert argmax == index == count - 1
        assert (results["min"].value, results["min"].index) == (min(pattern), pattern.index(min(pattern)))
        assert results["sum"].value == total
        assert all(result.count == count for result in results.values())


@pytest.mark.parametrize("length", [1, 2, PERIOD - 1, PERIOD, PERIOD + 1, 2 * PERIOD + 5])
def test_known_results(length: int) -> None:
    moduli = moduli_set("4")
    lengths = (length, length, 3)
    blocks = [chunk_of_known(i, lengths, moduli, gpu=False) for i in range(3)]
    values = rd.from_residues(np.concatenate(blocks, axis=1), moduli).to_ints().tolist()
    assert known_results(moduli, lengths) == {
        "max": (max(values), values.index(max(values)), len(values)),
        "sum": (sum(values), None, len(values)),
    }
    assert values[-1] == planted(moduli, 2)


def test_equal_chunks() -> None:
    moduli = moduli_set("64")
    lengths = equal_chunks(moduli, 1.0, 0.25)
    assert lengths == (2**30 // 4 // 256,) * 4
    assert equal_chunks(moduli, 2**10 / GIB, 1.0) == (128,)


def test_efficiency() -> None:
    row = {"table": "t", "what": "max"}
    rows = with_speedups([row | {"workers": w, "gb_per_s": r} for w, r in ((4, 30.0), (2, 20.0))])
    assert [(r["workers"], r["speedup"], r["efficiency"]) for r in rows] == [(2, 2.0, 1.0), (4, 3.0, 0.75)]
