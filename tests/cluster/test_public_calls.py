"""Everything public on chunks that workers hold, on GPUs and on the CPU, with a client that is current."""

import functools
import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed.shuffle
import numpy as np
import pytest
from bench_scaling import gpus_here
from distributed import Client, LocalCluster
from public_calls import (
    BESIDE_NUMPYS,
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

PLACES = ("cpu", "1 GPU", "2 GPUs")
FORMS = ("opened", "persisted", "given")


def workers_of(where: str) -> Any:
    """A cluster of this host: of a worker on each of so many GPUs, or of two threads of this process."""
    if where == "cpu":
        return LocalCluster(n_workers=2, processes=False, threads_per_worker=1, dashboard_address=":0")
    from dask_cuda import LocalCUDACluster

    return LocalCUDACluster(n_workers=int(where[0]), threads_per_worker=2, dashboard_address=":0")


class Cluster:
    """One cluster at a time, whose client is current, and arrays that its workers hold."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._open, self._arrays = folder, ExitStack(), functools.cache(self._make)
        self._where = ""

    def arrays(self, where: str, form: str, name: str) -> Arrays:
        """Arrays of a system; a cluster elsewhere is closed, and another one started."""
        if where != self._where:
            self.close()
            self._open.enter_context(Client(self._open.enter_context(workers_of(where))))
            self._where = where
        return self._arrays(where, form, name)

    def close(self) -> None:
        self._open.close()
        self._where = ""

    def _make(self, where: str, form: str, name: str) -> Arrays:
        system, made = SYSTEMS[name], {}
        for key, (values, chunks) in {**VALUES, "rns_x": VALUES["x"]}.items():
            path = self._folder / f"{name}-{key}.zarr"
            if not path.exists():
                kind = SYSTEMS["rns"] if key == "rns_x" else system
                rd.from_ints(values, kind, chunks=chunks).to_zarr(path)
            made[key] = rd.open_zarr(path, backend="auto" if where == "cpu" else "cuda")
            if form == "persisted":
                made[key] = made[key].persist()
            elif form == "given":
                made[key] = type(made[key])(in_this_process(made[key], where), made[key].system)
        return Arrays(system, made, self._folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Clusters of a current client; what is rechunked goes by P2P, unless we say otherwise."""
    with dask.config.set({"array.rechunk.method": "p2p"}):
        found = Cluster(tmp_path_factory.mktemp("arrays"))
        try:
            yield found
        finally:
            found.close()


def in_this_process(x: Any, where: str) -> da.Array:
    """Return the same words as a Dask array of NumPy's or CuPy's in this process."""
    on_host = x.words.map_blocks(_on_host, meta=np.empty((0,) * x.words.ndim, x.words.dtype))
    words = on_host.compute()
    if where != "cpu":
        import cupy

        words = cupy.asarray(words)
    return da.from_array(words, chunks=x.words.chunks, asarray=False)


def _on_host(block: Any) -> Any:
    return block.get() if hasattr(block, "get") else block


@pytest.fixture
def no_p2p(monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    """Let P2P fail of words, on CPUs too, for they may be CuPy's; what is appended is on the host."""
    by_p2p = distributed.shuffle.rechunk_p2p

    def rechunk_p2p(x: da.Array, *args: Any, **kwargs: Any) -> Any:
        is_on_host = x.dtype.kind not in "uO" or row.name == "x.to_zarr [append]"
        assert is_on_host, "chunks that GPUs may hold are exchanged by P2P"
        return by_p2p(x, *args, **kwargs)

    monkeypatch.setattr(distributed.shuffle, "rechunk_p2p", rechunk_p2p)


def cases(where: str) -> Iterator[Any]:
    """All rows, systems and forms on two GPUs; elsewhere of each row one of them, in turn.

    On CPUs half of the rows are tried with --slow only.
    """
    forms = FORMS[: 2 if where == "cpu" else 3]
    for number, row in enumerate(ROWS):
        marks = [pytest.mark.gpu] if where != "cpu" else [pytest.mark.slow] if number % 4 > 1 else []
        turn = [(forms[number % len(forms)], row.systems[number % len(row.systems)])]
        for form, name in itertools.product(forms, row.systems) if where == "2 GPUs" else turn:
            if form == "given" and row.name in BESIDE_NUMPYS:
                continue
            yield pytest.param(where, form, row, name, marks=marks, id=f"{row.name}-{name}-{form}-{where}")


@pytest.mark.usefixtures("no_p2p")
@pytest.mark.parametrize(
    ("where", "form", "row", "name"), [case for place in PLACES for case in cases(place)]
)
def test_all_that_is_public(cluster: Cluster, where: str, form: str, row: Row, name: str) -> None:
    if where == "2 GPUs" and gpus_here() < 2:
        pytest.skip("fewer than 2 GPUs")
    found, expected = plain(row.call(cluster.arrays(where, form, name))), plain(row.expected(Values()))
    if name in FIELDS:
        prime = PRIME if name == "field" else SYSTEMS["fermat"].modulus
        found, expected = modulo(found, prime), modulo(expected, prime)
    assert found == expected


def test_the_table_has_all_that_is_public() -> None:
    rows = {row.name.partition(" ")[0] for row in ROWS}
    left_out = {f"{what}.{name}" for what, names in WITHOUT_ARRAYS.items() for name in names.split()}
    names = set(public_names())
    assert names - rows - left_out == set()
    assert left_out & rows == set()
    assert left_out - names == set()
