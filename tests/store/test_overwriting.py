"""Replacing a store: a local one stays whole until the new one is; and what is read is not replaced."""

import json
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import fsspec
import numpy as np
import pytest
import zarr
from commands import contents, fail, succeed
from dask.graph_manipulation import clone
from interruptions import Interrupted, interrupting
from numpy.typing import NDArray
from strategies import STORE_SET, slow

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import CorruptChunkError, IncompleteStoreError, StoreError
from rnsdask.lazy.write import reads
from rnsdask.rns.system import RNS
from rnsdask.store import target
from rnsdask.store.location import JOB_KEY

MODULI = STORE_SET
RANDOM = ["--seed", "3", "--count", "3840", "--bits", "100", "--chunk", "128"]  # 30 chunks
OLD, NEW = list(range(1000, 1300)), list(range(5000, 5600))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["local", "link", "memory"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """A place for a store: a folder, a link to one, and an object store."""
    if request.param == "memory":
        yield "memory://test-overwriting/x.zarr"
        file_system = fsspec.filesystem("memory")
        if file_system.exists("/test-overwriting"):
            file_system.rm("/test-overwriting", recursive=True)
        return
    if request.param == "link":
        Path("elsewhere/target").mkdir(parents=True)
        Path("x.zarr").symlink_to("elsewhere/target")
    yield "x.zarr"


def array(values: list[int]) -> rd.RNSArray:
    return rd.from_ints(values, MODULI, chunks=128)


def values_in(path: Any) -> list[int]:
    info = store.open_info(path)
    assert list(store.verify(info)) == []
    found: list[int] = rd.open_zarr(path).to_ints().tolist()
    return found


def files_beside(path: str) -> set[str]:
    """Files of a local store, beside it and in it, or of an object store."""
    if "://" in path:
        file_system, root = fsspec.core.url_to_fs(path)
        names = {name.removeprefix(root)[1:].partition("/")[0] for name in file_system.find(root)}
        return names - {JOB_KEY}
    real = Path(path).resolve()
    beside = {entry.name for entry in real.parent.iterdir() if entry != real} - {"x.zarr", "elsewhere"}
    return (beside | {entry.name for entry in real.iterdir()}) - {JOB_KEY}


def write_some(writer: Any, values: list[int], count: int) -> None:
    residues = array(values).residues
    for i in range(count):
        writer.write_chunk((i,), residues[:, 128 * i : 128 * (i + 1)].compute())


def writer_of(path: str, **options: Any) -> store.StoreWriter:
    return store.create(path, RNS(MODULI), (600,), chunks=128, **options)


# ---- A local array ----------------------------------------------------------------------------------------


@pytest.fixture(params=["folder", "link"])
def local(request: pytest.FixtureRequest) -> str:
    if request.param == "link":
        Path("elsewhere/target").mkdir(parents=True)
        Path("x.zarr").symlink_to("elsewhere/target")
    return "x.zarr"


def test_a_failed_job_leaves_the_old_store(local: str) -> None:
    path = local
    array(OLD).to_zarr(path)

    def failing(block: NDArray[np.uint32], block_id: Any) -> NDArray[np.uint32]:
        if block_id[1] == 3:
            raise ZeroDivisionError("not this one")
        return block

    lazy = array(NEW).residues.map_blocks(failing, dtype=np.uint32)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="not this one"):
            rd.RNSArray(lazy, rd.RNS(MODULI)).to_zarr(path, overwrite=True)
        assert values_in(path) == OLD
    array(NEW).to_zarr(path, overwrite=True)
    assert values_in(path) == NEW
    assert files_beside(path) == {"c", "zarr.json"}


def test_an_interrupted_replacement_is_resumed(path: str) -> None:
    array(OLD).to_zarr(path)
    first = writer_of(path, overwrite=True, job="r")
    write_some(first, NEW, 3)
    with pytest.raises(StoreError, match="it was begun by another job"):
        store.resume(path, job="another")
    second = store.resume(path, job="r")
    assert second.missing_chunks() == [(3,), (4,)]
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.write_chunk((4,), np.ones((4, 88), np.uint32))
    copy = pickle.loads(pickle.dumps(second))
    write_some(copy, NEW, 5)
    second.finish()
    assert values_in(path) == NEW
    with pytest.raises(StoreError, match="the store is complete: there is nothing to resume"):
        store.resume(path)
    assert files_beside(path) == {"c", "zarr.json"}


def test_what_else_is_there_stays() -> None:
    array(OLD).to_zarr("x.zarr")
    Path("x.zarr.partial").mkdir()
    array(NEW).to_zarr("x.zarr.partial/mine")
    with pytest.raises(StoreError, match=r"x\.zarr\.partial: it exists; remove it, or move it away"):
        array(NEW).to_zarr("x.zarr", overwrite=True)
    Path("x.zarr.partial").rename("y")
    array(NEW).to_zarr("x.zarr.partial")
    with pytest.raises(StoreError, match=r"x\.zarr\.partial: it exists; remove it, or move it away"):
        array(NEW).to_zarr("x.zarr", overwrite=True)
    assert "not known to be this job's" in fail("random", "x.zarr", *RANDOM, "--resume")
    Path("x.zarr.partial").rename("z")
    writer = writer_of("x.zarr", overwrite=True)
    write_some(writer, NEW, 5)
    Path("x.zarr/notes").write_text("mine")
    with pytest.raises(StoreError, match=r"x\.zarr: it is not replaced, because it also holds notes"):
        writer.finish()
    assert Path("x.zarr/notes").read_text() == "mine"
    Path("x.zarr/notes").unlink()
    writer.finish()
    assert values_in("y/mine") == values_in("z") == values_in("x.zarr") == NEW


def test_what_appears_meanwhile_is_not_replaced() -> None:
    writer = writer_of("x.zarr")
    write_some(writer, NEW, 5)
    array(OLD).to_zarr("y.zarr")
    Path("y.zarr").rename("x.zarr")
    with pytest.raises(StoreError, match=r"x\.zarr: it exists; replace it with overwrite=True"):
        writer.finish()
    assert values_in("x.zarr") == OLD


def test_a_folder_that_cannot_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    array(OLD).to_zarr("x.zarr")
    writer = writer_of("x.zarr", overwrite=True)
    write_some(writer, NEW, 5)
    rename = Path.rename

    def busy(self: Path, to: Any) -> Any:
        if self.name == "x.zarr.partial":
            raise OSError(16, "Device or resource busy")
        return rename(self, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", busy)
        with pytest.raises(StoreError, match=r"x\.zarr: it cannot be replaced by .*, which is whole: Device"):
            writer.finish()
        assert values_in("x.zarr") == OLD
    store.settle(store.locate("x.zarr"))
    assert values_in("x.zarr") == OLD  # what failed does not come later
    writer.finish()
    assert values_in("x.zarr") == NEW
    assert files_beside("x.zarr") == {"c", "zarr.json"}


def test_a_mount_point_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    array(OLD).to_zarr("x.zarr")
    monkeypatch.setattr(target.os.path, "ismount", lambda path: path.endswith("x.zarr"))
    with pytest.raises(StoreError, match=r"x\.zarr: it is a mount point, which cannot be replaced"):
        writer_of("x.zarr", overwrite=True)
    assert values_in("x.zarr") == OLD


# ---- In an object store -----------------------------------------------------------------------------------

URL = "memory://test-overwriting/x.zarr"


@pytest.fixture
def url() -> Iterator[str]:
    yield URL
    file_system = fsspec.filesystem("memory")
    if file_system.exists("/test-overwriting"):
        file_system.rm("/test-overwriting", recursive=True)


def test_a_replacement_is_interrupted_anywhere(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step: the old store, an error, or the new one; no old chunk is taken for the new store's."""
    states = []
    for after in range(100):
        array(OLD).to_zarr(url, overwrite=True)
        with monkeypatch.context() as patch:
            left = interrupting(patch, after)
            with suppress(Interrupted):
                writer = writer_of(url, overwrite=True, job="job")
                write_some(writer, NEW, 5)
                writer.finish()
        if left[0] >= 0:
            break
        try:
            states.append("old" if values_in(url) == OLD else "new")
            assert values_in(url) in (OLD, NEW)
        except IncompleteStoreError:
            states.append("between")
            again = None
            with suppress(StoreError):  # old chunks may be in it
                again = store.resume(url, job="job")
            again = again or writer_of(url, overwrite=True)
            write_some(again, NEW, 5)
            again.finish()
            assert values_in(url) == NEW
    assert values_in(url) == NEW
    assert states == sorted(states, key=["old", "between", "new"].index)
    assert {"old", "between"} <= set(states)


# ---- Plain arrays and masks -------------------------------------------------------------------------------


def test_zarr_opens_no_incomplete_array(path: str) -> None:
    """It would read zeros where chunks are missing."""
    mask = store.create_plain(path, (300,), (128,), bool)
    mask.write_chunk((0,), np.ones((1, 128), bool))
    for writer in (mask, store.resume_plain(path, (300,), (128,), bool)):
        with pytest.raises(Exception, match="disallowed extra fields"):
            zarr.open_array(writer.info.path, mode="r")
        with pytest.raises(IncompleteStoreError, match="the array is incomplete"):
            store.open_plain(path)
    for i, length in ((1, 128), (2, 44)):
        writer.write_chunk((i,), np.zeros((1, length), bool))
    writer.finish()
    assert np.asarray(zarr.open_array(path, mode="r")[...]).tolist() == [True] * 128 + [False] * 172
    location = store.locate(path)
    damaged = bytearray(location.read("c/0", "it", 2**20))
    damaged[7] ^= 1
    location.write("c/0", bytes(damaged), "it")
    with pytest.raises(CorruptChunkError, match="chunk c/0 is corrupt"):
        store.read_plain_chunk(store.open_plain(path), (0,))
    with pytest.raises(Exception, match="checksum"):
        zarr.open_array(path, mode="r")[...]


def test_plain_arrays(path: str) -> None:
    values = np.arange(2, dtype=np.uint8)[None]
    with_old = store.create_plain(path, (4,), (2,), np.uint8)
    for i in range(2):
        with_old.write_chunk((i,), values)
    with_old.finish()
    first = store.create_plain(path, (4,), (2,), np.uint8, overwrite=True)
    first.write_chunk((0,), values + 5)
    second = store.resume_plain(path, (4,), (2,), np.uint8)
    assert second.missing_chunks() == [(1,)]
    second.write_chunk((1,), values + 5)
    second.finish()
    assert np.asarray(zarr.open_array(path, mode="r")[...]).tolist() == [5, 6, 5, 6]
    assert files_beside(path) == {"c", "zarr.json"}


KINDS = {
    "import": ["import", "numbers", "x.zarr", "--bits", "100", "--chunk", "128"],
    "random": ["random", "x.zarr", *RANDOM, "--seed", "4"],
    "eval": ["eval", "3*s", "s=s.zarr", "-o", "x.zarr", "--overflow", "flag", "--mask", "mask.zarr"],
    "bool": ["eval", "s % 2 == 0", "s=s.zarr", "-o", "x.zarr"],
    "cummax": ["cummax", "s.zarr", "-o", "x.zarr"],
}


def end_early(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    """Run a command that replaces what is there, and ends with an error at some chunk."""
    with monkeypatch.context() as patch:
        for writer in (store.StoreWriter, store.PlainWriter):
            write = writer.write_chunk

            def write_chunk(self: Any, index: Any, block: Any, write: Any = write) -> None:
                if index == (17,):
                    raise RuntimeError("the end")
                write(self, index, block)

            patch.setattr(writer, "write_chunk", write_chunk)
        assert "the end" in fail(*command, "--overwrite")


@pytest.mark.parametrize("kind", ["import", "eval", "cummax", *slow("random", "bool")])
def test_commands_keep_and_resume(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("numbers").write_text("".join(f"{i**8}\n" for i in range(3840)))
    succeed("random", "s.zarr", *RANDOM, "--seed", "3")
    succeed(*KINDS[kind])
    expected = contents("x.zarr"), contents("mask.zarr")
    for output in ("x.zarr", "mask.zarr"):  # what is there before is something else
        succeed("random", output, *RANDOM, "--overwrite")
    before = contents("x.zarr"), contents("mask.zarr")
    end_early(monkeypatch, KINDS[kind])
    assert (contents("x.zarr"), contents("mask.zarr")) == before
    done = json.loads(succeed(*KINDS[kind], "--resume", "--json"))
    assert done["chunks_kept"] > 0
    after = contents("x.zarr"), contents("mask.zarr")
    assert after[0] == expected[0]
    if kind == "eval":
        assert after == expected
    assert not list(Path().glob("*.partial*"))


# ---- What is read is not written --------------------------------------------------------------------------

MADE: dict[str, Callable[[rd.RNSArray], rd.RNSArray]] = {
    "itself": lambda x: x,
    "part": lambda x: x[128:],
    "sum": lambda x: x + 1,
    "optimized": lambda x: dask.optimize(x + 1)[0],
    "optimized itself": lambda x: dask.optimize(x)[0],
    "clone": lambda x: clone(x),
    "clone of a sum": lambda x: clone(x + 1),
    "scan": lambda x: x.cummax(),
    "chunks": lambda x: x.rechunk(256),
    "where": lambda x: rd.where(x > 5, x, 7),
    "twice optimized": lambda x: dask.optimize(dask.optimize(x + 1)[0] * 2)[0],
    "concealed": lambda x: rd.RNSArray(
        x.residues.map_blocks(lambda b: b.copy(), dtype=np.uint32), rd.RNS(x.moduli)
    ),
}


@pytest.mark.parametrize("how", MADE)
def test_a_store_is_not_replaced_by_what_is_read_from_it(how: str, path: str) -> None:
    array(OLD).to_zarr(path)
    for options in ({}, {"part": 64}) if "://" not in path else ({},):
        made = MADE[how](rd.open_zarr(path, **options))
        with pytest.raises(StoreError, match="an array cannot overwrite the store that it is read from"):
            made.to_zarr(path, overwrite=True)
    made.to_zarr(f"{path}.other")
    assert values_in(path) == OLD


def test_a_persisted_array_may_replace_its_store() -> None:
    array(OLD).to_zarr("x.zarr")
    x = rd.open_zarr("x.zarr").persist()
    (x + 1).to_zarr("x.zarr", overwrite=True)
    assert values_in("x.zarr") == [v + 1 for v in OLD]


def test_other_ways_to_the_same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    array(OLD).to_zarr("a/x.zarr")
    x = rd.open_zarr("a/x.zarr")
    Path("b").symlink_to("a")
    Path("y").symlink_to("a/x.zarr")
    for way in ("a/../a/x.zarr", "b/x.zarr", "y", f"file://{Path.cwd()}/b/x.zarr"):
        with pytest.raises(StoreError, match="cannot overwrite the store that it is read from"):
            (x + 1).to_zarr(way, overwrite=True)
        assert "an operand is read from there" in fail(
            "eval", "x + 1", "x=a/x.zarr", "-o", way, "--overwrite"
        )
    # A folder that is mounted in two places has the same device and inode in both.
    array(OLD).to_zarr("c/x.zarr")
    stat = Path.stat

    def mounted(self: Path, **options: Any) -> Any:
        return stat(Path(str(self).replace("/c", "/a")), **options)

    monkeypatch.setattr(Path, "stat", mounted)
    assert reads((x + 1).residues.dask, store.locate("c/x.zarr"))
    assert reads((x + 1).residues.dask, store.locate("c"))
    assert not reads((x + 1).residues.dask, store.locate("d/x.zarr"))


def test_remote_places_that_overlap() -> None:
    base = store.locate("s3://bucket/a/x.zarr")
    for url, overlaps in {
        "s3://bucket/a/x.zarr": True,
        "s3a://bucket/a/x.zarr/": True,
        "s3://bucket/a": True,
        "s3://bucket/a/x.zarr/residues": True,
        "s3://bucket/a/x.zarr2": False,
        "s3://other/a/x.zarr": False,
        "gs://bucket/a/x.zarr": False,
        "/bucket/a/x.zarr": False,
    }.items():
        assert base.overlaps(store.locate(url)) == overlaps, url
        assert store.locate(url).overlaps(base) == overlaps, url


@pytest.mark.parametrize("length", [1, 240, 247])
@pytest.mark.parametrize("letter", ["n", "é", "\udcff"], ids=["one byte", "two bytes", "no text"])
def test_names_as_long_as_they_can_be(length: int, letter: str) -> None:
    name = os.fsdecode(os.fsencode(letter * length)[:length])
    for values in (OLD, NEW, OLD):
        array(values).to_zarr(name, overwrite=True)
        assert values_in(name) == values
        assert [path.name for path in Path().iterdir()] == [name]


def test_names_that_are_too_long_are_refused_before_the_work() -> None:
    assert fail("random", "n" * 248, *RANDOM).endswith("File name too long")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("how", [{}, {"mode": "w"}, {"append_dim": 0}], ids=str)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_store_of_zarr_that_is_read_only_is_not_written(how: dict[str, Any], is_there: bool) -> None:
    x = rd.from_ints(OLD)
    if is_there:
        x.to_zarr("y.zarr")
    before = contents("y.zarr") if is_there else None
    read_only = zarr.storage.LocalStore("y.zarr", read_only=True)
    with pytest.raises(
        ValueError, match=r"LocalStore to write must not be read-only.*with_read_only\(False\)"
    ):
        x.to_zarr(read_only, **how)
    assert (contents("y.zarr") if Path("y.zarr").exists() else None) == before
    x.to_zarr(read_only.with_read_only(False), mode="w")
    assert rd.open_zarr(read_only).to_ints().tolist() == OLD
