"""Jobs that write one array: the second is refused or takes it over, and the first publishes nothing more."""

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
from commands import fail
from fsspec.implementations.memory import MemoryFileSystem
from interruptions import Interrupted, interrupting_renames
from numpy.typing import NDArray
from strategies import STORE_SET
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import ChangedStoreError, IncompleteStoreError, StoreError
from rnsdask.rns.system import RNS
from rnsdask.store import beside, target
from rnsdask.store.location import JOB_KEY

MODULI = STORE_SET
KINDS = ["files", "zstd", "plain"]
LOST = "x: another job has begun to write it, or it was removed"


@pytest.fixture(params=["local", "memory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for an array: a folder, and an object store."""
    if request.param == "local":
        yield str(tmp_path / "x")
        return
    yield "memory://test-writers/x"
    file_system = fsspec.filesystem("memory")
    if file_system.exists("/test-writers"):
        file_system.rm("/test-writers", recursive=True)


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk such as Lustre may be, where two jobs can be between the same two calls."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


def begin(kind: str, path: str, **options: Any) -> Any:
    if kind == "plain":
        return store.create_plain(path, (256,), (128,), np.uint8, **options)
    codecs = [ZstdCodec(level=1)] if kind == "zstd" else None
    return store.create(path, RNS(MODULI), (256,), chunks=128, codecs=codecs, **options)


def take_over(kind: str, path: str, how: str) -> Any:
    if how == "overwrite":
        return begin(kind, path, overwrite=True)
    return store.resume_plain(path, (256,), (128,), np.uint8) if kind == "plain" else store.resume(path)


def block_of(kind: str, value: int) -> NDArray[Any]:
    return np.full((1, 128), value, np.uint8) if kind == "plain" else np.full((4, 128), value, np.uint32)


def write_all(kind: str, writer: Any, value: int) -> None:
    for i in range(2):
        writer.write_chunk((i,), block_of(kind, value))


def values_in(path: str) -> set[int]:
    return set(np.asarray(zarr.open_array(path, mode="r")[...]).reshape(-1).tolist())


def names_in(path: str) -> set[str]:
    return store.locate(path).names() - {JOB_KEY}


# ---- A second writer --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_writer_is_refused(path: str, kind: str) -> None:
    """And the first one goes on."""
    first = begin(kind, path)
    first.write_chunk((0,), block_of(kind, 1))
    message = f"{path}: another job is writing it, or was interrupted; write it anew with overwrite=True"
    with pytest.raises(StoreError, match=f"^{re.escape(message)}$"):
        begin(kind, path)
    with pytest.raises(StoreError, match=re.escape(path)):
        rd.from_ints([1, 2, 3], MODULI).to_zarr(path, mode="w-")
    if kind != "plain":
        with pytest.raises(IncompleteStoreError, match="x: the store is incomplete"):
            rd.open_zarr(path)
    first.write_chunk((1,), block_of(kind, 1))
    first.finish()
    assert values_in(path) == {1}


def test_a_second_command_is_told_its_ways_out(path: str) -> None:
    random = ["random", path, "--count", "256", "--bits", "64", "--chunk", "128", "--seed", "1"]
    begin("files", path, job="another")
    assert fail(*random) == (
        f"{path}: another job is writing it, or was interrupted; write the rest with --resume, or all of it "
        "anew with --overwrite"
    )
    assert "it cannot be resumed" in fail(*random, "--resume")


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_that_begin_at_the_same_time(
    path: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found nothing there; the place itself lets only one of them begin."""
    start, others = target.Target.begin, []

    def start_late(self: target.Target, metadata: bytes) -> None:
        if not others:
            others.append(None)
            others.append(begin(kind, path))
        start(self, metadata)

    monkeypatch.setattr(target.Target, "begin", start_late)
    with pytest.raises(StoreError, match=LOST):
        begin(kind, path)
    write_all(kind, others[1], 1)
    others[1].finish()
    assert values_in(path) == {1}


# ---- Who takes it over ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["overwrite", "resume"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replaces", [True, False])
def test_who_has_lost_an_array_publishes_nothing(path: str, kind: str, how: str, replaces: bool) -> None:
    """Neither a chunk, nor the end, nor does it remove anything; beside an array that is whole too."""
    if replaces:
        whole = begin(kind, path)
        write_all(kind, whole, 3)
        whole.finish()
    first = begin(kind, path, overwrite=replaces)
    first.write_chunk((0,), block_of(kind, 1))
    second = take_over(kind, path, how)
    assert len(second.missing_chunks()) == (1 if how == "resume" else 2)
    write_all(kind, second, 2)
    for late in (lambda: write_all(kind, first, 1), first.finish):
        with pytest.raises(StoreError, match=LOST):
            late()
    first.discard()
    second.finish()
    for late in (lambda: write_all(kind, first, 1), first.finish):
        with pytest.raises(StoreError, match=LOST):
            late()
    first.discard()
    assert values_in(path) == {2}
    assert names_in(path) == {"c", "zarr.json"}


@pytest.mark.parametrize("how", ["overwrite", "resume"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", ["chunk", "end"])
def test_a_task_that_comes_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_locks: None, kind: str, how: str, late: str
) -> None:
    """It has seen that the array is its job's, and is about to rename its file when another takes over."""
    path = str(tmp_path / "x")
    first = begin(kind, path)
    first.write_chunk((0,), block_of(kind, 1))
    if late == "end":
        first.write_chunk((1,), block_of(kind, 1))
    replace, second = Path.replace, []

    def replace_late(self: Path, to: Path) -> Any:
        if not second and (late == "end") == (to.name == "zarr.json"):
            second.append(None)
            second[0] = take_over(kind, path, how)
            write_all(kind, second[0], 2)
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", replace_late)
    with pytest.raises(StoreError, match=LOST):
        first.finish() if late == "end" else first.write_chunk((1,), block_of(kind, 1))
    second[0].finish()
    assert values_in(path) == {2}
    assert names_in(path) == {"c", "zarr.json"}
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_that_is_taken_over_as_it_is_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_locks: None, kind: str
) -> None:
    """The old one is back in its place then, and the one that was taken over goes on."""
    path = str(tmp_path / "x")
    whole = begin(kind, path)
    write_all(kind, whole, 3)
    whole.finish()
    first, second, rename = begin(kind, path, overwrite=True), [], Path.rename
    write_all(kind, first, 1)

    def rename_late(self: Path, to: Any) -> Any:
        if self.name == "x" and not second:
            second.append(None)
            staged, key = store.locate(path).staged, first.target.attribute
            document = json.loads(staged.read_metadata())
            document["attributes"][key]["complete"] = False
            staged.write("zarr.json", json.dumps(document).encode(), "it")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", rename_late)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.finish()
    assert values_in(path) == {3}
    take_over(kind, path, "resume").finish()
    assert values_in(path) == {1}


def test_a_chunk_that_is_sent_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object store puts it only where there is none."""
    path = "memory://test-writers/late/x"
    first, second, put = begin("files", path), [], MemoryFileSystem.pipe_file

    def put_late(self: Any, name: str, *args: Any, **options: Any) -> Any:
        if "/c/" in name and not second:
            second.append(None)
            second[0] = take_over("files", path, "resume")
            write_all("files", second[0], 2)
        return put(self, name, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", put_late)
    with pytest.raises(StoreError, match=LOST):
        first.write_chunk((1,), block_of("files", 1))
    second[0].finish()
    assert values_in(path) == {2}


@pytest.mark.parametrize("another_begins", [False, True])
def test_a_chunk_that_is_sent_after_its_array_was_removed(
    monkeypatch: pytest.MonkeyPatch, another_begins: bool
) -> None:
    path = "memory://test-writers/removed/x"
    first, second, put = begin("files", path), [], MemoryFileSystem.pipe_file

    def put_late(self: Any, name: str, *args: Any, **options: Any) -> Any:
        if "/c/" in name and not second:
            second.append(None)
            first.discard()
            if another_begins:
                second[0] = begin("files", path)
        return put(self, name, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", put_late)
    with pytest.raises(StoreError, match=LOST):
        first.write_chunk((1,), block_of("files", 1))
    if another_begins:
        write_all("files", second[0], 2)
        second[0].finish()
        assert values_in(path) == {2}
        store.remove(store.locate(path))
    assert names_in(path) == set()


def test_a_task_makes_no_folder_where_an_array_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = begin("files", str(tmp_path / "x"))
    writer.discard()
    with pytest.raises(StoreError, match=LOST):
        writer.write_chunk((0,), block_of("files", 1))
    assert list(tmp_path.iterdir()) == []


# ---- The renames of a local array -------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Any]:
    """An array of ones, and the writer of one of twos that is to replace it."""
    path = tmp_path / "x"
    old = begin("files", str(path))
    write_all("files", old, 1)
    old.finish()
    new = begin("files", str(path), overwrite=True)
    write_all("files", new, 2)
    return path, new


def refuse_rename(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    rename = Path.rename

    def refusing(self: Path, to: Any) -> Any:
        if self.name in names:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", refusing)


def test_a_lock_that_is_held_too_long(two: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path, new = two
    monkeypatch.setattr(beside, "PATIENCE", 0.05)
    held = "x: another job has been putting an array in its place for 0 s; try again later, or end that job"
    with beside.locked(store.locate(str(path))):
        for change in (
            new.finish,
            lambda: begin("files", str(path), overwrite=True),
            lambda: store.resume(str(path)),
            lambda: store.write_bound(store.open_info(str(path)), 1),
        ):
            with pytest.raises(StoreError, match=held):
                change()
    new.finish()
    assert values_in(str(path)) == {2}
    assert [entry.name for entry in path.parent.iterdir()] == ["x"]


def test_a_place_that_cannot_be_locked(two: tuple[Path, Any]) -> None:
    path, new = two
    (path.parent / ".x.lock").mkdir()
    with pytest.raises(StoreError, match=re.escape(f"{path}: it cannot be written: Is a directory")):
        new.finish()
    assert values_in(str(path)) == {1}


@pytest.mark.parametrize("name", ["x", "x.partial"])
def test_a_rename_that_fails_leaves_the_old_array(
    two: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also when others write later; and the end can be tried again."""
    path, new = two
    with monkeypatch.context() as patch:
        refuse_rename(patch, name)
        with pytest.raises(StoreError, match=r"x: it cannot be replaced by .*x\.partial, which is whole"):
            new.finish()
    store.settle(store.locate(str(path)))
    assert values_in(str(path)) == {1}
    new.finish()
    assert values_in(str(path)) == {2}


def test_an_old_array_that_cannot_be_put_back(two: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path, new = two
    with monkeypatch.context() as patch:
        refuse_rename(patch, "x.partial", ".x.former")
        with pytest.raises(StoreError, match=r"x: it cannot be replaced by .*: Input"):
            new.finish()
    with pytest.raises(StoreError, match=r"a job is putting it in its place.*the old one is .*/\.x\.former"):
        store.open_info(str(path))
    store.settle(store.locate(str(path)))
    assert values_in(str(path)) == {1}
    new.finish()
    assert values_in(str(path)) == {2}


def test_whether_an_array_is_stored_may_be_unknown(
    two: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, new = two
    replace = Path.replace

    def once(self: Path, to: Path) -> Any:
        if to.name == "zarr.json" and b'"complete": true' in to.read_bytes():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return replace(self, to)

    with monkeypatch.context() as patch:
        refuse_rename(patch, "x.partial")
        patch.setattr(Path, "replace", once)
        with pytest.raises(StoreError, match="whether it is stored is not known, and shows when"):
            new.finish()
    assert values_in(str(path)) == {1}


def test_an_array_that_was_begun_is_removed_by_hand(
    two: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next job puts the old one back."""
    path, new = two
    with monkeypatch.context() as patch:
        interrupting_renames(patch, 1)
        with pytest.raises(Interrupted):
            new.finish()
    shutil.rmtree(path.with_name("x.partial"))
    with pytest.raises(StoreError, match=r"the old one is .*/\.x\.former"):
        store.open_info(str(path))
    with pytest.raises(StoreError, match="x: it exists; replace it with overwrite=True"):
        begin("files", str(path))
    assert values_in(str(path)) == {1}


def test_a_bound_is_written_to_what_a_killed_job_has_decided(
    two: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be lost if the renames were finished later."""
    path, new = two
    info = store.open_info(str(path))
    with monkeypatch.context() as patch:
        interrupting_renames(patch, 0)
        with pytest.raises(Interrupted):
            new.finish()
    with pytest.raises(ChangedStoreError, match="it was overwritten"):
        store.write_bound(info, 2)
    store.write_bound(store.open_info(str(path)), 2)
    store.settle(store.locate(str(path)))
    assert store.open_info(str(path)).system.bound == 2
    assert values_in(str(path)) == {2}


def test_who_resumes_what_another_job_has_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has looked at what was there before."""
    path = str(tmp_path / "x")
    begin("files", path).write_chunk((0,), block_of("files", 1))
    take_over, others = target.Target.take_over, []

    def late(self: target.Target, *args: Any) -> None:
        if not others:
            others.append(begin("files", path, overwrite=True))
        take_over(self, *args)

    monkeypatch.setattr(target.Target, "take_over", late)
    with pytest.raises(StoreError, match=LOST):
        store.resume(path)
    write_all("files", others[0], 2)
    others[0].finish()
    assert values_in(path) == {2}


# ---- What an older version has begun ----------------------------------------------------------------------


def test_an_older_version_was_killed_between_its_renames(two: tuple[Path, Any]) -> None:
    """It put the old array into the new one."""
    path, new = two
    new.finish()
    path.rename(path.with_name("new"))
    old = begin("files", str(path))
    write_all("files", old, 1)
    old.finish()
    path.with_name("new").rename(path.with_name("x.partial"))
    path.with_name("x.partial").joinpath(".partial").mkdir()
    path.rename(path.with_name("x.partial") / ".partial" / "00ff")
    with pytest.raises(StoreError, match="a job is putting it in its place, or was killed as it did"):
        store.open_info(str(path))
    with pytest.raises(StoreError, match="x: it exists; replace it with overwrite=True"):
        begin("files", str(path))
    assert values_in(str(path)) == {2}
    assert names_in(str(path)) == {"c", "zarr.json"}


@pytest.mark.parametrize("how", ["overwrite", "resume"])
def test_an_array_that_was_begun_in_its_place(tmp_path: Path, how: str) -> None:
    path = str(tmp_path / "x")
    writer = begin("files", path)
    writer.write_chunk((0,), block_of("files", 2))
    (tmp_path / "x.partial").rename(tmp_path / "x")
    (tmp_path / "x/c/0/1.00ff.partial").write_bytes(b"half")  # as older versions wrote them
    with pytest.raises(StoreError, match="x: another job is writing it, or was interrupted"):
        begin("files", path)
    second = take_over("files", path, how)
    assert len(second.missing_chunks()) == (1 if how == "resume" else 2)
    write_all("files", second, 2)
    second.finish()
    assert values_in(path) == {2}
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert names_in(path) == {"c", "zarr.json"}
    assert list(store.verify(store.open_info(path))) == []
