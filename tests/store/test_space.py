"""Room on the disk: what does not fit is refused before it is written, and zeros take no room."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pytest
from commands import fail, succeed

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import CorruptChunkError, StoreError

MODULI = rd.ModuliSet.for_bits(64)  # three moduli, 12 bytes a number


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(range(1000), MODULI, chunks=128).to_zarr("a")


@pytest.fixture
def set_free(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the bytes that the disk reports as free."""

    def set_to(free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, free))

    return set_to


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*")}


def bytes_on_disk(path: str) -> int:
    return sum(file.stat().st_blocks * 512 for file in Path(path).rglob("*"))


def of_matrix(rows: int, columns: int, *entries: tuple[int, int]) -> None:
    """Write a matrix with entries in the last column."""
    lines = [f"{row} {columns} {value}" for row, value in entries]
    header = f"%%MatrixMarket matrix coordinate integer general\n{rows} {columns} {len(entries)}"
    Path("m.mtx").write_text("\n".join([header, *lines]) + "\n")


WHOLE = 8 * (12 * 128 + 4)
"""Bytes of the chunks of `a`."""


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("random y --count 1000 --bits 64 --chunk 128 --seed 1", WHOLE),
        ("import n y --bits 64 --chunk 128 --shape 1000", WHOLE),
        ("rechunk a -o y --chunks 100", 10 * 1204),
        ("extend a -o y --bits 128", 8 * (5 * 4 * 128 + 4)),
        ("cumsum a -o y", WHOLE),
        ("eval a+1 a=a -o y", WHOLE),
        ("eval a<5 a=a -o y", 8 * (128 + 4)),
        ("convert a -o y --to interval", 1000 * 4 * 10),
        ("eval -e b=a//2 -e c=a//3 a=a -o b=y -o c=z", 2 * WHOLE),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_written(
    command: str, needed: int, set_free: Callable[[int], None]
) -> None:
    Path("n").write_text("\n".join(map(str, range(1000))))
    before = files()
    set_free(needed // 2)
    message = fail(*command.split())
    assert re.search(
        rf"[yz]: \d+ bytes \(.* kB\) are to be written, and {needed // 2} \(.*\) are free on the disk; make "
        "room there, or write to another disk",
        message,
    ), message
    assert files() == before
    set_free(2 * needed)
    succeed(*command.split())


def test_the_disk_comes_before_the_memory_of_a_graph() -> None:
    """Chunks of which a graph would not fit into memory do not fit on the disk either."""
    message = fail("random", "x", "--count", 10**15, "--bits", 4096, "--chunk", 128, "--seed", 1)
    assert re.search(r" bytes \(5\.\d+e\+05 TB\) are to be written", message)
    assert "free on the disk; make room there, or write to another disk" in message


def test_the_bytes_are_those_of_all_chunks(set_free: Callable[[int], None]) -> None:
    array = rd.open_zarr("a")
    set_free(WHOLE - 1)
    with pytest.raises(StoreError, match=f"y: {WHOLE} bytes .* and {WHOLE - 1} "):
        array.to_zarr("y")
    set_free(WHOLE)
    array.to_zarr("y")
    # Chunks that stay are linked: one chunk is written anew, and one is new.
    set_free(2 * (12 * 128 + 4) - 1)
    more = rd.from_ints(range(100), MODULI)
    with pytest.raises(StoreError, match="are free"):
        more.to_zarr("y", append_dim=0)
    set_free(2 * (12 * 128 + 4))
    more.to_zarr("y", append_dim=0)
    assert rd.open_zarr("y").to_ints().tolist() == [*range(1000), *range(100)]


def test_places_without_a_disk_of_their_own_are_not_asked(set_free: Callable[[int], None]) -> None:
    set_free(0)
    rd.open_zarr("a").to_zarr("memory://test-space/y", mode="w")


def test_a_sparse_matrix_takes_little_room() -> None:
    """150 MB of zeros, with two numbers that are not."""
    count = 12_800_000
    of_matrix(count // 1280, 1280, (1, 5), (count // 1280, -7))
    succeed("import", "m.mtx", "y", "--bits", 64, "--signed", "--no-progress")
    info = store.open_info("y")
    assert info.nbytes == 12 * count
    assert sum(file.stat().st_size for file in Path("y/c").rglob("*") if file.is_file()) > 12 * count
    assert bytes_on_disk("y") < 20 * 2**20
    array = rd.open_zarr("y")
    assert (int(array.sum()), int(array.max()), int(array.argmin())) == (-2, 5, count - 1)
    assert "whole and valid" in succeed("verify", "y")
    assert info.n_chunks > 1
    info.chunk_file((1, 0)).unlink()
    with pytest.raises(CorruptChunkError, match="missing"):
        store.read_chunk(info, (1, 0))


def test_a_sparse_matrix_is_not_refused_for_its_zeros(set_free: Callable[[int], None]) -> None:
    of_matrix(1_000_000, 1, (1, 5))
    set_free(4_000_000)
    succeed("import", "m.mtx", "y", "--bits", 64, "--no-progress")
    of_matrix(50_000_000_000, 1, (1, 5))
    before = files()
    assert "are free on the disk" in fail("import", "m.mtx", "z", "--bits", 64, "--no-progress")
    assert files() == before


@pytest.mark.parametrize("at", [None, 0, 1, 262143, 262144, 300_000, 524_287])
@pytest.mark.parametrize("kind", ["residues", "limbs", "mask"])
def test_zeros_are_stored_exactly(
    at: int | None, kind: str, rng: np.random.Generator, xp: ModuleType
) -> None:
    """Pieces of 1 MiB that are zeros, and those of which one word is not."""
    values = np.zeros(2**19, np.int64)
    if at is not None:
        values[at] = int(rng.integers(1, 2**31))
    if kind == "mask":
        rd.from_ints(values, MODULI, chunks=2**19).to_zarr("x")
        succeed("eval", "x > 0", "x=x", "-o", "y")
        assert np.array_equal(da.from_zarr("y").compute(), values > 0)
        return
    system: Any = rd.RNS(MODULI) if kind == "residues" else rd.Positional(64, False)
    array = rd.from_ints(values, system)
    words = da.from_array(xp.asarray(array.words), chunks=-1, asarray=False)
    type(array)(words, array.system).to_zarr("y")
    assert np.array_equal(rd.open_zarr("y").to_ints().astype(np.int64), values)
    assert list(store.verify(store.open_info("y", store.all_systems))) == []
    if at is None or xp is np:  # a GPU's chunk is zeros as a whole, or written as a whole
        assert bytes_on_disk("y/c") <= (2**16 if at is None else 4 * 2**20)
