"""Chunks that KvikIO reads into a GPU's memory: the same residues, or the same errors, as on the host.

Without a GPU a module in KvikIO's place reads into NumPy arrays, so that all but KvikIO itself is tested.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import numpy as np
import pytest
from click.testing import CliRunner
from commands import without_measures
from distributed import Client, LocalCluster
from strategies import STORE_SET
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main
from rnsdask.core.errors import StoreError
from rnsdask.core.layout import chunk_slices
from rnsdask.jobs import memory_plan
from rnsdask.rns.system import RNS
from rnsdask.store import device_files

MODULI = STORE_SET


class Reads(list[str]):
    """Files that were read straight, at `most` so many bytes at once, if not `failing`."""

    most: int | None = None
    failing: Exception | None = None


def fake_kvikio(reads: Reads) -> ModuleType:
    class CuFile:
        def __init__(self, file: Path, flags: str) -> None:
            assert flags == "r"
            self._file = file

        def __enter__(self) -> "CuFile":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def raw_read(self, array: Any, *, file_offset: int) -> int:
            if reads.failing is not None:
                raise reads.failing
            reads.append(str(self._file))
            with self._file.open("rb") as stream:
                stream.seek(file_offset)
                return stream.readinto(array.data[: reads.most])

    module = ModuleType("kvikio")
    module.CuFile = CuFile  # type: ignore[attr-defined]
    return module


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Whether KvikIO is there is found out again, in the test and after it."""
    device_files._kvikio.cache_clear()
    yield
    device_files._kvikio.cache_clear()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> Reads:
    """The module in KvikIO's place, and a host that passes for a GPU."""
    found = Reads()
    monkeypatch.setitem(sys.modules, "kvikio", fake_kvikio(found))
    monkeypatch.setattr(device_files, "has_gpu", lambda: True)
    monkeypatch.setattr(device_files, "device_memory", lambda count: np.empty(count, np.uint32))
    return found


@pytest.fixture(params=["fake", pytest.param("kvikio", marks=pytest.mark.gpu)])
def to_numpy(request: pytest.FixtureRequest) -> Callable[[Any], np.ndarray]:
    """Bring to the host what a process that reads straight has read: by the fake, or by KvikIO itself."""
    if request.param == "fake":
        request.getfixturevalue("reads")
        return np.asarray
    pytest.importorskip("kvikio")
    assert store.reads_on_gpu()
    return lambda array: array.get()


def write(path: Path, rng: np.random.Generator, shape: tuple[int, ...], **options: Any) -> store.StoreInfo:
    residues = np.stack([rng.integers(0, m, shape, dtype=np.uint64).astype(np.uint32) for m in MODULI])
    writer = store.create(path, RNS(MODULI), shape, **options)
    for index in writer.info.indices():
        slices = chunk_slices(index, shape, writer.info.chunks)
        writer.write_chunk(index, residues[(slice(None), *slices)])
    return writer.finish()


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((1,), (128,)),
        ((300,), (128,)),
        ((256,), (128,)),
        ((5, 300), (2, 128)),
        ((2**21,), (2**20,)),
        ((300,), (33,)),
        ((5, 301), (2, 7)),
        ((100_003,), (50_001,)),
    ],
)
def test_same_residues(
    tmp_path: Path,
    rng: np.random.Generator,
    to_numpy: Callable[[Any], np.ndarray],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
) -> None:
    info = write(tmp_path / "x.zarr", rng, shape, chunks=chunks)
    for index in info.indices():
        residues, expected = store.read_chunk_on_gpu(info, index), store.read_chunk(info, index)
        assert residues.flags.c_contiguous
        assert (residues.dtype, residues.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(to_numpy(residues), expected)


@pytest.mark.parametrize("most", [1, 1000, 4096, 2**30])
def test_reads_in_pieces(
    tmp_path: Path,
    rng: np.random.Generator,
    to_numpy: Callable[[Any], np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    info = write(tmp_path / "x.zarr", rng, (300,), chunks=(384,))
    monkeypatch.setattr(device_files, "_PIECE_BYTES", most)
    np.testing.assert_array_equal(to_numpy(store.read_chunk_on_gpu(info, (0,))), store.read_chunk(info, (0,)))


def test_short_reads(tmp_path: Path, rng: np.random.Generator, reads: Reads) -> None:
    info = write(tmp_path / "x.zarr", rng, (300,), chunks=(384,))
    reads.most = 1023
    np.testing.assert_array_equal(store.read_chunk_on_gpu(info, (0,)), store.read_chunk(info, (0,)))
    assert len(reads) == -(-(4 * 4 * 384 + 4) // 1023)


def test_same_errors(tmp_path: Path, rng: np.random.Generator, to_numpy: Callable[[Any], np.ndarray]) -> None:
    info = write(tmp_path / "x.zarr", rng, (300,), chunks=(128,))
    file = info.chunk_file((1,))
    whole = file.read_bytes()

    def expect_same_error() -> None:
        with pytest.raises(StoreError) as expected:
            store.read_chunk(info, (1,))
        with pytest.raises(StoreError) as found:
            store.read_chunk_on_gpu(info, (1,))
        assert (type(found.value), found.value.args) == (type(expected.value), expected.value.args)

    for position in (0, 1, 127, 512, 2047, -5, -4, -1):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        expect_same_error()
    for content in (b"", whole[:1], whole[:-4], whole[:-1], whole + b"more"):
        file.write_bytes(content)
        expect_same_error()
    file.unlink()
    expect_same_error()
    file.mkdir()
    expect_same_error()
    for index in ((0,), (2,)):
        np.testing.assert_array_equal(
            to_numpy(store.read_chunk_on_gpu(info, index)), store.read_chunk(info, index)
        )


def test_a_chunk_that_shrinks_while_it_is_read(
    tmp_path: Path,
    rng: np.random.Generator,
    to_numpy: Callable[[Any], np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    info = write(tmp_path / "x.zarr", rng, (2**17,), chunks=(2**17,))
    file = info.chunk_file((0,))
    content, status = file.read_bytes(), file.stat()
    for length in (0, 1, len(content) // 2, len(content) - 4):
        file.write_bytes(content)
        store.read_chunk_on_gpu(info, (0,))  # leaves the right content in memory that is used again
        os.truncate(file, length)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fstat", lambda _: status)
            with pytest.raises(
                StoreError, match=f"has {length} bytes; its residues|cannot be read by KvikIO"
            ):
                store.read_chunk_on_gpu(info, (0,))


def test_errors_of_kvikio(tmp_path: Path, rng: np.random.Generator, reads: Reads) -> None:
    info = write(tmp_path / "x.zarr", rng, (300,), chunks=(128,))
    reads.failing = RuntimeError("KvikIO failure:\n  POSIX error on pread")
    with pytest.raises(StoreError, match=r"c/0/1 cannot be read by KvikIO: KvikIO failure: POSIX error"):
        store.read_chunk_on_gpu(info, (1,))
    reads.failing = OSError(5, "Input/output error")
    with pytest.raises(StoreError, match=r"chunk c/0/1 cannot be read: Input/output error$"):
        store.read_chunk_on_gpu(info, (1,))


def test_when_it_is_used(tmp_path: Path, rng: np.random.Generator, reads: Reads) -> None:
    path = tmp_path / "x.zarr"
    write(path, rng, (300,), chunks=(128,))
    write(tmp_path / "compressed", rng, (300,), chunks=(128,), codecs=[ZstdCodec()])
    expected = int(rd.open_zarr(path).max())
    assert int(rd.open_zarr(path, backend="cpu").max()) == expected
    with dask.config.set({"rnsdask.kvikio": False}):
        assert int(rd.open_zarr(path, backend="auto").max()) == expected
    assert int(rd.open_zarr(path, part=64, backend="auto").max()) == expected
    rd.open_zarr(tmp_path / "compressed", backend="auto").max().compute()
    assert not reads
    assert int(rd.open_zarr(path, backend="auto").max()) == expected
    assert sorted(reads) == [f"{path}/c/0/{i}" for i in range(3)]
    with pytest.raises(ValueError, match="backend must be one of auto, cpu, cuda, got 'gpu'"):
        rd.open_zarr(path, backend="gpu")


def test_an_empty_array(tmp_path: Path, reads: Reads) -> None:
    rd.from_ints([], MODULI).to_zarr(tmp_path / "x.zarr")
    assert rd.open_zarr(tmp_path / "x.zarr", backend="auto").residues.compute().shape == (4, 0)
    assert not reads


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "max": lambda path: ["max", path],
    "topk": lambda path: ["topk", "3", path],
    "compare": lambda path: ["compare", path, path],
    "eval": lambda path: ["eval", "a", f"a={path}", "--max"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(
    tmp_path: Path, rng: np.random.Generator, reads: Reads, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    path = str(tmp_path / "x.zarr")
    info = write(Path(path), rng, (300,), chunks=(128,))
    monkeypatch.setattr(memory_plan, "free_device_bytes", lambda: 2**40)
    results = []
    for wanted in (True, False):
        arguments = COMMANDS[command](path)
        with dask.config.set({"rnsdask.kvikio": wanted}):
            done = CliRunner().invoke(main, [*arguments, "--json"])
        assert done.exit_code == 0, done.output
        results.append(without_measures(json.loads(done.stdout)))
    assert results[0] == results[1]
    assert set(reads) == {str(info.chunk_file(index)) for index in info.indices()}


@pytest.mark.parametrize("command", ["cumsum", "cummax", "cummin"])
def test_scans_from_store_to_store_stay_on_the_host(
    tmp_path: Path, rng: np.random.Generator, reads: Reads, command: str
) -> None:
    write(tmp_path / "x.zarr", rng, (300,), chunks=(128,))
    done = CliRunner().invoke(main, ["eval", "x >> 8", f"x={tmp_path}/x.zarr", "-o", f"{tmp_path}/small"])
    assert done.exit_code == 0, done.output
    reads.clear()
    done = CliRunner().invoke(main, [command, f"{tmp_path}/small", f"{tmp_path}/out"])
    assert done.exit_code == 0, done.output
    assert not reads
    done = CliRunner().invoke(main, [command, f"{tmp_path}/small", f"{tmp_path}/2", "--backend", "cuda"])
    message = "backend 'cuda' needs CuPy and a GPU, and this process has none"
    assert done.output == f"rnsdask: error: {message}\n"


MEASURED = """
import sys
import cupy
import dask
import rnsdask as rd
from rnsdask import store
from rnsdask.jobs.reduction import reduce
with dask.config.set(scheduler="threads", num_workers=4):
    reduce(rd.open_zarr(sys.argv[1], backend="cuda"), "max", backend="cuda")
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
print(cupy.get_default_memory_pool().total_bytes())
"""


@pytest.mark.gpu
@pytest.mark.parametrize("straight", [True, False])
def test_peak_is_not_above_the_plan(tmp_path: Path, rng: np.random.Generator, straight: bool) -> None:
    if straight:
        pytest.importorskip("kvikio")
    info = write(tmp_path / "x.zarr", rng, (2**24 - 1000,), chunks=(2**21,))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, info.path],
        env=os.environ | {"DASK_RNSDASK__KVIKIO": str(straight)},
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
            (place,) = memory_plan._workers(client, gpu=gpu)
            assert (place.device, place.threads) == (expected, 3)


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError])
def test_kvikio_that_cannot_be_loaded(
    forgotten: None, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    class Broken:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "kvikio":
                raise error("libcufile.so: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "kvikio", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    monkeypatch.setattr(device_files, "has_gpu", lambda: True)
    assert not store.reads_on_gpu()


def test_nothing_without_a_gpu(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_files, "has_gpu", lambda: False)
    assert not store.reads_on_gpu()
