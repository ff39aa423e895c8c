"""Everything public on chunks that workers hold, on GPUs and on the CPU, with a client that is current."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import dask
import dask.array as da
import distributed.shuffle
import numpy as np
import pytest
from bench_scaling import gpus_here
from distributed import Client, LocalCluster, wait
from public_calls import (
    FIELDS,
    PRIME,
    ROWS,
    SYSTEMS,
    VALUES,
    WITHOUT_ARRAYS,
    Arrays,
    Row,
    Values,
    modulo,
    plain,
    public_names,
)

import rnsdask as rd

pytestmark = pytest.mark.timeout(300)

FORMS = ("opened", "persisted", "given")


def workers_of(where: str) -> Any:
    """A cluster of this host: of a worker on each of so many GPUs, or of two threads of this process."""
    if where == "cpu":
        return LocalCluster(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=None)
    from dask_cuda import LocalCUDACluster

    return LocalCUDACluster(n_workers=int(where[0]), threads_per_worker=2, dashboard_address=None)


@pytest.fixture(scope="module")
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the current client's workers compute; all that is rechunked by P2P, unless we say otherwise."""
    if request.param != "cpu":
        pytest.importorskip("dask_cuda")
        if gpus_here() < int(request.param[0]):
            pytest.skip("too few GPUs")
    with ExitStack() as stack:
        cluster = stack.enter_context(workers_of(request.param))
        stack.enter_context(Client(cluster))
        stack.enter_context(dask.config.set({"array.rechunk.method": "p2p"}))
        yield request.param


@pytest.fixture(scope="module")
def arrays(where: str, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Arrays]:
    """Arrays of each system, in each form: of a store, of chunks that workers hold, and of chunks of this process."""
    folder = tmp_path_factory.mktemp("arrays")
    made: dict[tuple[str, str], Arrays] = {}
    for name, system in SYSTEMS.items():
        opened = {}
        for key, (values, chunks) in VALUES.items():
            path = folder / f"{name}-{key}.zarr"
            rd.from_ints(values, system, chunks=chunks).to_zarr(path)
            opened[key] = rd.open_zarr(path, backend="auto" if where == "cpu" else "cuda")
        opened["rns_x"] = rd.open_zarr(folder / "rns-x.zarr", backend="auto")
        persisted = {key: x.persist() for key, x in opened.items()}
        wait([x.words for x in persisted.values()])
        given = {key: type(x)(in_this_process(x, where), x.system) for key, x in opened.items()}
        for form, found in zip(FORMS, (opened, persisted, given), strict=True):
            made[name, form] = Arrays(system, found, folder)
    return made


def in_this_process(x: Any, where: str) -> da.Array:
    """The same words as a Dask array of NumPy's or CuPy's in this process."""
    words = np.asarray(
        x.to_ints()
        if False
        else x.words.map_blocks(_on_host, meta=np.empty((0,) * x.words.ndim, x.words.dtype)).compute()
    )
    if where != "cpu":
        import cupy

        words = cupy.asarray(words)
    return da.from_array(words, chunks=x.words.chunks, asarray=False)


def _on_host(block: Any) -> Any:
    return block.get() if hasattr(block, "get") else block


@pytest.fixture
def no_p2p(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let P2P fail of words and masks that may be CuPy's, on CPUs too."""
    by_p2p = distributed.shuffle.rechunk_p2p

    def rechunk_p2p(x: da.Array, *args: Any, **kwargs: Any) -> Any:
        assert x.dtype.kind not in "ubO", "chunks that GPUs may hold are exchanged by P2P"
        return by_p2p(x, *args, **kwargs)

    monkeypatch.setattr(distributed.shuffle, "rechunk_p2p", rechunk_p2p)


def cases() -> Iterator[Any]:
    """All rows, systems and forms on two GPUs; of each row one of them elsewhere, in turn."""
    for number, row in enumerate(ROWS):
        turn = row.systems[number % len(row.systems)]
        yield pytest.param("cpu", FORMS[number % 2], row, turn, id=f"{row.name}-{turn}")
        yield pytest.param(
            "1 GPU", FORMS[number % 3], row, turn, marks=pytest.mark.gpu, id=f"{row.name}-{turn}-1 GPU"
        )
        for form, name in itertools.product(FORMS, row.systems):
            yield pytest.param(
                "2 GPUs", form, row, name, marks=pytest.mark.gpu, id=f"{row.name}-{name}-{form}"
            )


@pytest.mark.usefixtures("no_p2p")
@pytest.mark.parametrize(("where", "form", "row", "name"), cases(), indirect=["where"])
def test_all_that_is_public(arrays: dict[tuple[str, str], Arrays], form: str, row: Row, name: str) -> None:
    found, expected = plain(row.call(arrays[name, form])), plain(row.expected(Values()))
    if name in FIELDS:
        prime = PRIME if name == "field" else SYSTEMS["fermat"].modulus
        found, expected = modulo(found, prime), modulo(expected, prime)
    assert found == expected


def test_the_table_has_all_that_is_public() -> None:
    rows = {row.name.partition(" ")[0] for row in ROWS}
    left_out = {f"{what}.{name}" for what, names in WITHOUT_ARRAYS.items() for name in names.split()}
    left_out |= {"rd.linalg", "rd.poly", "rd.sparse"}
    names = set(public_names())
    assert names - rows - left_out == set()
    assert left_out & rows == set()
    assert left_out - names == set()
