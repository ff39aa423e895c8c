"""Chunks that the host reads into a GPU's memory piece by piece: the residues, or errors, of other reads.

Without a GPU a file is read into an array of NumPy; tests/backend/test_gpu_files.py is about copies.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from strategies import STORE_SET

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import StoreError
from rnsdask.jobs import memory_plan
from rnsdask.rns.system import RNS
from rnsdask.store import chunk_files

MODULI = STORE_SET


def file_to_gpu(path: Path, array: NDArray[np.uint32]) -> int:
    """In the place of `backend.cuda.files.file_to_gpu`."""
    content = path.read_bytes()
    if len(content) == array.nbytes:
        array.view(np.uint8)[:] = np.frombuffer(content, np.uint8)
    return len(content)


@pytest.fixture(params=["numpy", pytest.param("gpu", marks=pytest.mark.gpu)])
def to_numpy(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Any], NDArray[Any]]:
    if request.param == "numpy":
        monkeypatch.setattr(chunk_files, "file_to_gpu", file_to_gpu)
        monkeypatch.setattr(chunk_files, "empty_on_gpu", lambda count: np.full(count, 2**32 - 1, np.uint32))
        return np.asarray
    return lambda array: array.get()


def write(path: Path, rng: np.random.Generator, shape: tuple[int, ...], chunks: Any) -> store.StoreInfo:
    residues = np.stack([rng.integers(0, m, shape, dtype=np.uint64).astype(np.uint32) for m in MODULI])
    writer = store.create(path, RNS(MODULI), shape, chunks=chunks)
    for index in writer.info.indices():
        writer.write_chunk(index, residues[(slice(None), *writer.info.slices(index))])
    return writer.finish()


def read(info: store.StoreInfo, index: tuple[int, ...]) -> Any:
    return store.read_chunk_on_gpu(info, index)


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((1,), (128,)), ((300,), (128,)), ((5, 300), (2, 128)), ((2**20,), (2**19,)), ((100_003,), (50_001,))],
)
def test_same_residues(
    tmp_path: Path,
    rng: np.random.Generator,
    to_numpy: Callable[[Any], NDArray[Any]],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
) -> None:
    info = write(tmp_path / "x.zarr", rng, shape, chunks)
    for index in info.indices():
        residues, expected = read(info, index), store.read_chunk(info, index)
        assert residues.flags.c_contiguous
        assert (residues.dtype, residues.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(to_numpy(residues), expected)


@pytest.mark.parametrize("chunk", [1, 2])  # the last one is cut at the edge
def test_same_errors(
    tmp_path: Path, rng: np.random.Generator, to_numpy: Callable[[Any], Any], chunk: int
) -> None:
    info = write(tmp_path / "x.zarr", rng, (300,), (128,))
    file = info.chunk_file((chunk,))
    whole = file.read_bytes()

    def expect_same_error() -> None:
        with pytest.raises(StoreError) as expected:
            store.read_chunk(info, (chunk,))
        with pytest.raises(StoreError) as found:
            read(info, (chunk,))
        assert (type(found.value), found.value.args) == (type(expected.value), expected.value.args)

    for position in (0, 1, 2047, -5, -1):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        expect_same_error()
    for content in (b"", whole[:-1], whole + b"more"):
        file.write_bytes(content)
        expect_same_error()
    residues = store.read_chunk(info, (0,))
    residues[2, 5] = MODULI[2]
    chunk_files.write_chunk_file(file, residues, info.chunk_shape, "a chunk")
    expect_same_error()
    file.unlink()
    expect_same_error()
    np.testing.assert_array_equal(to_numpy(read(info, (0,))), store.read_chunk(info, (0,)))


@pytest.mark.parametrize("kind", ["limbs", "digits"])
def test_words_of_other_systems(
    tmp_path: Path, rng: np.random.Generator, to_numpy: Callable[[Any], Any], kind: str
) -> None:
    system = {"limbs": rd.Positional(70), "digits": rd.FermatField(2**63 + 2**34, 8)}[kind]
    rd.random(system, 300, seed=int(rng.integers(2**32)), chunks=128).to_zarr(tmp_path / "x.zarr")
    info = store.open_info(tmp_path / "x.zarr", store.all_systems)
    for index in info.indices():
        expected, residues = store.read_chunk(info, index), read(info, index)
        assert (residues.dtype, residues.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(to_numpy(residues), expected)


def test_residues_of_the_padding_do_not_matter(
    tmp_path: Path, rng: np.random.Generator, to_numpy: Callable[[Any], Any]
) -> None:
    info = write(tmp_path / "x.zarr", rng, (300,), (128,))
    padded = np.full(info.chunk_shape, 2**32 - 1, np.uint32)
    padded[:, : 300 - 256] = expected = store.read_chunk(info, (2,))
    chunk_files.write_chunk_file(info.chunk_file((2,)), padded, info.chunk_shape, "a chunk")
    np.testing.assert_array_equal(to_numpy(read(info, (2,))), expected)


MEASURED = """
import sys
import cupy
import dask
from rnsdask import store
from rnsdask.jobs.reduction import reduce
from rnsdask.lazy.blocks import Blocks
with dask.config.set(scheduler="threads", num_workers=4):
    reduce(Blocks.of(store.open_info(sys.argv[1]), backend="cuda"), "max")
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
print(cupy.get_default_memory_pool().total_bytes())
"""


@pytest.mark.gpu
def test_peak_is_not_above_the_plan(tmp_path: Path, rng: np.random.Generator) -> None:
    info = write(tmp_path / "x.zarr", rng, (2**24 - 1000,), (2**21,))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, info.path],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    host, device = map(int, done.stdout.split())
    place = memory_plan.Place("here", 4, 2**40, 2**40)
    planned = place.need(memory_plan.work_on(info, "max"), 4)
    assert 1024 * host <= planned[0]
    assert device <= planned[1]


def test_limits_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker of a cluster is asked for its own GPU's memory."""
    monkeypatch.setattr(memory_plan, "free_device_bytes", lambda: 2**40)
    options: dict[str, Any] = {
        "processes": False,
        "dashboard_address": None,
        "worker_dashboard_address": None,
    }
    with LocalCluster(n_workers=2, threads_per_worker=3, **options) as cluster, Client(cluster) as client:
        for gpu, expected in ((True, 2**40), (False, None)):
            (place,) = memory_plan.worker_places(client, gpu=gpu)
            assert (place.device, place.threads) == (expected, 3)
