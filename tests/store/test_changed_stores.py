"""Stores that change under a reader: a chunk is of the metadata it is read by, or an error."""

import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from commands import fail, succeed
from numpy.typing import NDArray
from strategies import STORE_SET
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import ChangedStoreError
from rnsdask.jobs.verification import verify
from rnsdask.rns.system import RNS

MODULI = STORE_SET
OTHERS = rd.ModuliSet([2**32 - 5, 2**31 - 1, 11, 65521])
DATA = Path(__file__).parents[1] / "data" / "format1"
CHANGED = "it was overwritten, or its metadata changed, since it was opened"


@pytest.fixture(params=["files", "zstd", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, list[Any] | None]]:
    """A path and the codecs of `create`: chunk files, and what goes through Zarr's codecs."""
    if request.param != "memory":
        yield str(tmp_path / "x.zarr"), [ZstdCodec(level=1)] if request.param == "zstd" else None
        return
    yield "memory://test-changed/x.zarr", None
    file_system = fsspec.filesystem("memory")
    if file_system.exists("/test-changed"):
        file_system.rm("/test-changed", recursive=True)


def write(path: Any, first: int, moduli: rd.ModuliSet = MODULI, **options: Any) -> None:
    """Write the 300 numbers from `first` on."""
    x = rd.from_ints(range(first, first + 300), moduli, chunks=128)
    writer = store.create(path, RNS(moduli), (300,), chunks=128, **options)
    for i in range(3):
        writer.write_chunk((i,), x.residues[:, 128 * i : 128 * (i + 1)].compute())
    writer.finish()


# ---- Readers ----------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max().compute(),
    "sum": lambda x: x.sum().compute(),
    "ints": lambda x: x[200:].to_ints(),
    "eager": lambda x: x.compute(),
    "arithmetic": lambda x: (x + 1).min().compute(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moduli", [MODULI, OTHERS], ids=["same metadata", "other moduli"])
def test_an_overwritten_store_is_not_read(place: tuple[str, Any], moduli: rd.ModuliSet, way: str) -> None:
    path, codecs = place
    write(path, 1000, codecs=codecs)
    x, pickled = rd.open_zarr(path), pickle.dumps(rd.open_zarr(path))
    first = x.residues.blocks[0, 0].compute()
    write(path, 5000, moduli, codecs=codecs, overwrite=True)
    for handle in (x, pickle.loads(pickled)):
        with pytest.raises(ChangedStoreError, match=CHANGED):
            WAYS[way](handle)
    again = rd.open_zarr(path)
    assert (int(again.max()), int(again.min())) == (5299, 5000)
    assert first.shape == (4, 128)


def test_the_same_again_is_the_same_store(place: tuple[str, Any]) -> None:
    path, codecs = place
    write(path, 1000, codecs=codecs)
    x = rd.open_zarr(path)
    write(path, 1000, codecs=codecs, overwrite=True)
    assert int(x.sum()) == sum(range(1000, 1300))


def test_a_store_that_is_removed_or_made_anew(tmp_path: Path) -> None:
    write(tmp_path / "x", 1000)
    x = rd.open_zarr(tmp_path / "x")
    shutil.rmtree(tmp_path / "x")
    with pytest.raises(ChangedStoreError, match=r"x: it was removed since it was opened$"):
        x.max().compute()
    writer = store.create(tmp_path / "x", RNS(MODULI), (300,), chunks=128)
    for i, length in enumerate((128, 128, 44)):
        writer.write_chunk((i,), np.ones((4, length), np.uint32))
        with pytest.raises(ChangedStoreError, match=r"x: it was removed since it was opened$"):
            x[128 * i].compute()
    writer.finish()
    with pytest.raises(ChangedStoreError, match=CHANGED):
        x[0].compute()


def test_a_copy_elsewhere_is_the_same_store(tmp_path: Path) -> None:
    """Copies on each machine of a cluster: files that differ in all but their content."""
    write(tmp_path / "x", 1000)
    x = rd.open_zarr(tmp_path / "x")
    (tmp_path / "x").rename(tmp_path / "y")
    shutil.copytree(tmp_path / "y", tmp_path / "x", copy_function=shutil.copyfile)
    assert int(x.max()) == 1299


def test_an_overwrite_between_a_chunk_and_its_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the moment: before the chunk is opened, and after it is read."""
    path = tmp_path / "x"
    read = store.reading.read_chunk_file
    for before in (True, False):
        write(path, 1000, overwrite=True)
        info = store.open_info(path)

        def racing(*args: Any, before: bool = before) -> NDArray[np.uint32]:
            if before:
                write(path, 5000, overwrite=True)
            residues = read(*args)
            if not before:
                write(path, 5000, overwrite=True)
            return residues

        with monkeypatch.context() as patch:
            patch.setattr(store.reading, "read_chunk_file", racing)
            with pytest.raises(ChangedStoreError, match=CHANGED):
                store.read_chunk(info, (1,))


def test_other_ways_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, 1000)
    info, parts = store.open_info(path), rd.open_zarr(path, part=64)
    write(path, 5000, overwrite=True)
    for read in (
        lambda: store.read_part(info, (1,), 0, 64),
        lambda: parts.max().compute(),
        lambda: list(store.verify(info)),
        lambda: verify(info),
    ):
        with pytest.raises(ChangedStoreError, match=CHANGED):
            read()


def test_a_chunk_of_another_size_is_no_damage(tmp_path: Path) -> None:
    write(tmp_path / "x", 1000)
    x = rd.open_zarr(tmp_path / "x")
    rd.from_ints(range(9), rd.ModuliSet([7, 11]), chunks=256).to_zarr(tmp_path / "x", overwrite=True)
    for i in (0, 299):  # a chunk of another size, and one that is missing
        with pytest.raises(ChangedStoreError, match=CHANGED):
            x[i].compute()


@pytest.mark.parametrize("name", ["signed", "small", "zstd"])
def test_stores_of_older_versions_are_told_apart(tmp_path: Path, name: str) -> None:
    """Their metadata do not tell their chunks: that they were written at another time does."""
    path = tmp_path / "x"
    shutil.copytree(DATA / name, path)
    x = rd.open_zarr(path)
    expected = int(x.max())
    shutil.rmtree(path)
    shutil.copytree(DATA / name, path)  # as it was
    assert int(x.max()) == expected
    shutil.rmtree(path)
    shutil.copytree(DATA / name, path, copy_function=shutil.copyfile)
    with pytest.raises(ChangedStoreError, match=CHANGED):
        x.max().compute()
    x = rd.open_zarr(path)
    x.to_zarr(tmp_path / "y")
    rd.open_zarr(tmp_path / "y").to_zarr(path, overwrite=True)
    with pytest.raises(ChangedStoreError, match=CHANGED):
        x.max().compute()


def test_a_checkpoint_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("x.zarr", 1000)
    succeed("sum", "x.zarr", "--checkpoint", "kept")
    Path("kept/piece-00001.json").unlink()
    write("x.zarr", 5000, overwrite=True)
    assert "x.zarr: 3 chunks differ" in fail("sum", "x.zarr", "--checkpoint", "kept")


def test_a_job_whose_operand_is_overwritten_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it runs, on threads: its output stays incomplete, and is not resumed with what is there now."""
    monkeypatch.chdir(tmp_path)
    write("x.zarr", 1000)
    read, count = store.read_chunk, [0]

    def read_chunk(*args: Any) -> Any:
        count[0] += 1
        if count[0] == 2:
            monkeypatch.undo()
            monkeypatch.chdir(tmp_path)
            write("x.zarr", 5000, overwrite=True)
        return read(*args)

    monkeypatch.setattr(store, "read_chunk", read_chunk)
    monkeypatch.setenv("DASK_NUM_WORKERS", "1")
    assert CHANGED in fail("eval", "x + 1", "x=x.zarr", "-o", "y.zarr")
    assert "is incomplete" in fail("max", "y.zarr")
    assert "cannot be resumed" in fail("eval", "x + 1", "x=x.zarr", "-o", "y.zarr", "--resume")
