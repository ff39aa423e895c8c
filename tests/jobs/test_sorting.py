"""Sorting stores in runs, against Python's sort and the job in memory: bytes, reads, and jobs that go on."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import fsspec
import pytest
from commands import as_json, contents, fail, succeed
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.jobs import sorting
from rnsdask.jobs.sorting import Runs
from rnsdask.lazy import ranks

MODULI = rd.ModuliSet.for_bits(70)
LAYOUTS = {"a chunk a run": (1, 128), "three chunks a run": (3, 128), "a piece a run": (2, 10**6)}
NUMBERS: dict[str, Callable[[int], list[int]]] = {
    "equal": lambda n: [7] * n,
    "two values": lambda n: [i * i % 2 for i in range(n)],
    "sorted": lambda n: list(range(n)),
    "reverse": lambda n: list(range(n))[::-1],
    "a chunk beyond all others": lambda n: [2**60 * (150 <= i < 300) + i * 7919 % 1009 for i in range(n)],
    "few in one chunk": lambda n: [1] * (n - 5) + [0, 2, 1, 0, 3],
    "any": lambda n: [pow(5, i * i, 2**69 - 93) for i in range(n)],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def in_runs(monkeypatch: pytest.MonkeyPatch, chunks: int, piece: int) -> None:
    """Sort in runs of some chunks, in pieces of about some numbers."""

    def choose(info: store.StoreInfo, _fits: object) -> Runs:
        length = chunks * info.chunks[0]
        return Runs(info.shape[0], length, min(piece, -(-length // 128) * 128))

    monkeypatch.setattr(ranks, "SHARE", 0.0)
    monkeypatch.setattr(sorting, "choose_runs", choose)


def words_of(path: str) -> dict[str, bytes]:
    """The chunks of a store, byte by byte."""
    return {name: content for name, content in contents(path).items() if "/c/" in f"/{name}"}


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_runs_give_the_bytes_of_a_sort_in_memory(
    numbers: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = NUMBERS[numbers](1000)
    rd.from_ints(values, MODULI, chunks=150).to_zarr("x")
    assert as_json("sort", "x", "-o", "expected")["bytes_read"] == rd.open_zarr("x").nbytes
    in_runs(monkeypatch, *LAYOUTS[layout])
    assert as_json("sort", "x", "-o", "y")["bytes_read"] == 2 * rd.open_zarr("x").nbytes
    assert rd.open_zarr("y").to_ints().tolist() == sorted(values)
    assert words_of("y") == words_of("expected")
    assert sorted(path.name for path in Path().iterdir()) == ["expected", "x", "y"]


@pytest.mark.parametrize("kind", ["intervals", "limbs", "compressed", "signed"])
def test_runs_of_numbers_of_every_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [(-1) ** i * (i * 7919 % 1009) ** 3 for i in range(700)]
    system: Any = {
        "intervals": rd.IntervalRNS(MODULI),
        "limbs": rd.Positional(64, signed=True),
    }.get(kind, rd.RNS(MODULI, signed=True))
    x = rd.from_ints(values, system, chunks=64)
    x.to_zarr("x")
    if kind == "compressed":
        codecs = [ZstdCodec(level=1)]
        writer = store.create("x", x.system, x.shape, chunks=(64,), codecs=codecs, overwrite=True)
        for k in range(x.numblocks[0]):
            writer.write_chunk((k,), x.words.blocks[0, k].compute())
        writer.finish()
    in_runs(monkeypatch, 4, 128)
    succeed("sort", "x", "-o", "y")
    assert rd.open_zarr("y").to_ints().tolist() == sorted(values)
    assert rd.open_zarr("y").chunks == rd.open_zarr("x").chunks


def test_runs_beside_an_output_in_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    rd.from_ints(NUMBERS["any"](500), MODULI, chunks=100).to_zarr("x")
    in_runs(monkeypatch, 2, 128)
    succeed("sort", "x", "-o", "memory://sorting/y")
    assert rd.open_zarr("memory://sorting/y").to_ints().tolist() == sorted(NUMBERS["any"](500))
    assert [path.rpartition("/")[2] for path in fsspec.filesystem("memory").ls("/sorting", detail=False)] == [
        "y"
    ]
    fsspec.filesystem("memory").rm("/sorting", recursive=True)


def test_chunks_are_read_once_and_pieces_little_more(monkeypatch: pytest.MonkeyPatch) -> None:
    rd.random(MODULI, 2**15, chunks=2**11, seed=1).to_zarr("x")
    info = store.open_info("x", store.all_systems)
    numbers = {"x": 0, "between": 0}
    before = store.read_chunk

    def read(info: store.StoreInfo, index: tuple[int, ...]) -> Any:
        chunk = before(info, index)
        numbers["x" if info.path.endswith("x") else "between"] += chunk.shape[1]
        return chunk

    monkeypatch.setattr(store, "read_chunk", read)
    in_runs(monkeypatch, 4, 128)
    succeed("sort", "x", "-o", "y")
    assert numbers["x"] == info.count
    # Samples, and for each of 4 blocks of 4 runs at most a piece at either end, and an interval of samples.
    assert info.count < numbers["between"] <= info.count + 4 * 128 + 16 * 2 * (128 + 2**13 // 64)


def failing(count: int, error: Exception) -> Callable[..., None]:
    """A writer of chunks that fails after some."""
    before, left = store.StoreWriter.write_chunk, [count]

    def write(self: Any, index: Any, block: Any) -> None:
        if not left[0]:
            raise error
        left[0] -= 1
        before(self, index, block)

    return write


@pytest.mark.parametrize("written", [0, 5, 16, 18])
def test_a_sort_in_runs_goes_on(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the first pass, which writes 16 pieces, or in the second."""
    values = NUMBERS["any"](1000)
    rd.from_ints(values, MODULI, chunks=150).to_zarr("x")
    succeed("sort", "x", "-o", "expected")
    in_runs(monkeypatch, 2, 128)
    with monkeypatch.context() as patched, dask.config.set(num_workers=1):
        patched.setattr(store.StoreWriter, "write_chunk", failing(written, RuntimeError("a device")))
        fail("sort", "x", "-o", "y", "--retries", 0)
    assert len([path for path in Path().iterdir() if path.name.startswith("y")]) == 2
    succeed("sort", "x", "-o", "y", "--resume")
    assert words_of("y") == words_of("expected")
    assert sorted(path.name for path in Path().iterdir()) == ["expected", "x", "y"]
    assert "nothing to do" in succeed("sort", "x", "-o", "y", "--resume")


@pytest.mark.parametrize("written", [5, 18])
def test_a_full_disk_leaves_nothing(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rd.from_ints(NUMBERS["any"](1000), MODULI, chunks=150).to_zarr("x")
    in_runs(monkeypatch, 2, 128)
    with dask.config.set(num_workers=1):
        full = OSError(errno.ENOSPC, "No space left on device")
        monkeypatch.setattr(store.StoreWriter, "write_chunk", failing(written, full))
        assert "No space left" in fail("sort", "x", "-o", "y")
    assert [path.name for path in Path().iterdir()] == ["x"]


def test_a_sort_in_memory_goes_on_with_what_one_in_runs_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with more memory."""
    values = NUMBERS["any"](1000)
    rd.from_ints(values, MODULI, chunks=150).to_zarr("x")
    with monkeypatch.context() as patched, dask.config.set(num_workers=1):
        in_runs(patched, 2, 128)
        patched.setattr(store.StoreWriter, "write_chunk", failing(18, RuntimeError("a device")))
        fail("sort", "x", "-o", "y", "--retries", 0)
    assert "kept" in succeed("sort", "x", "-o", "y", "--resume")
    assert rd.open_zarr("y").to_ints().tolist() == sorted(values)
    assert sorted(path.name for path in Path().iterdir()) == ["x", "y"]


def test_runs_are_as_long_as_fits() -> None:
    rd.random(MODULI, 128 * 128, chunks=128, seed=1).to_zarr("x")
    info = store.open_info("x", store.all_systems)
    for most, length, count in ((10**9, 8 * 128, 16), (400, 3 * 128, 43), (0, 128, 128)):
        runs = sorting.choose_runs(info, lambda numbers, most=most: numbers <= most)
        assert (runs.length, runs.count) == (length, count)
        assert runs.piece % 128 == 0
