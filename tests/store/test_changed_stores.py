"""Stores that change under a reader or a writer: a chunk is of the metadata it is read by, or an error."""

import ctypes
import errno
import json
import os
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
from commands import fail, succeed
from distributed import Client, LocalCluster
from fsspec.implementations.memory import MemoryFileSystem
from numpy.typing import NDArray
from strategies import STORE_SET
from test_device_files import forgotten, reads  # noqa: F401
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import ChangedStoreError, StoreError
from rnsdask.jobs.verification import verify
from rnsdask.rns.system import RNS
from rnsdask.store import chunk_files, hierarchy, metadata, ownership, targets

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
        with pytest.raises(ChangedStoreError, match=CHANGED):
            x[128 * i].compute()


def test_a_copy_elsewhere_is_the_same_store(tmp_path: Path) -> None:
    """Such as on each machine of a cluster: files that differ in all but their content."""
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


def test_other_ways_of_reading(tmp_path: Path, reads: Any) -> None:  # noqa: F811
    path = tmp_path / "x"
    write(path, 1000)
    info, parts = store.open_info(path), rd.open_zarr(path, part=64)
    straight = rd.open_zarr(path, backend="auto")
    assert int(straight.max()) == 1299
    assert reads
    write(path, 5000, overwrite=True)
    for read in (
        lambda: store.read_chunk_on_gpu(info, (1,)),
        lambda: store.read_part(info, (1,), 0, 64),
        lambda: straight.max().compute(),
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


def test_workers_see_it_too(tmp_path: Path) -> None:
    write(tmp_path / "x", 1000)
    x = rd.open_zarr(tmp_path / "x")
    options: dict[str, Any] = {"processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster, Client(cluster):
        assert int(x.max()) == 1299
        write(tmp_path / "x", 5000, overwrite=True)
        with pytest.raises(ChangedStoreError, match=CHANGED):
            x.sum().compute()


def test_a_checkpoint_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("x.zarr", 1000)
    succeed("sum", "x.zarr", "--checkpoint", "kept")
    Path("kept/piece-00001.json").unlink()
    write("x.zarr", 5000, overwrite=True)
    assert "the store has changed since" in fail("sum", "x.zarr", "--checkpoint", "kept")


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


# ---- Writers ----------------------------------------------------------------------------------------------

KINDS = ["files", "zstd", "plain"]
BLOCK = np.ones((4, 128), np.uint32)


def begin(kind: str, path: Any, **options: Any) -> Any:
    if kind == "plain":
        return store.create_plain(path, (256,), (128,), np.uint8, **options)
    codecs = [ZstdCodec(level=1)] if kind == "zstd" else None
    return store.create(path, RNS(MODULI), (256,), chunks=128, codecs=codecs, **options)


def proceed(kind: str, path: Any, how: str) -> Any:
    if how == "overwrite":
        return begin(kind, path, overwrite=True)
    if kind == "plain":
        return store.resume_plain(path, (256,), (128,), np.uint8)
    return store.resume(path)


def block_of(kind: str, value: int) -> NDArray[Any]:
    return np.full((1, 128), value, np.uint8) if kind == "plain" else np.full((4, 128), value, np.uint32)


@pytest.mark.parametrize("how", ["overwrite", "resume"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_between_its_check_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, how: str
) -> None:
    """Another job takes the array over when the first one has seen that it is its own, and is to rename."""
    path = tmp_path / "x"
    first = begin(kind, path)
    first.write_chunk((0,), block_of(kind, 1))
    replace, second = Path.replace, []

    def late(self: Path, target: Path) -> Any:
        if not second and target.name != "zarr.json":
            second.append(None)
            second[0] = proceed(kind, path, how)
            for i in range(2):
                second[0].write_chunk((i,), block_of(kind, 2))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.write_chunk((1,), block_of(kind, 1))
    for i in range(2):
        assert (second[0].read_chunk((i,)) == 2).all()
    second[0].finish()
    assert sorted(p.name for p in path.iterdir()) == ["c", "zarr.json"]


@pytest.mark.parametrize("how", ["overwrite", "resume"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_end_between_its_check_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, how: str
) -> None:
    """The first job is about to declare complete what is the second one's by then."""
    path = tmp_path / "x"
    first = begin(kind, path)
    for i in range(2):
        first.write_chunk((i,), block_of(kind, 1))
    replace, second = Path.replace, []

    def late(self: Path, target: Path) -> Any:
        if not second and target.name == "zarr.json":
            second.append(None)
            second[0] = proceed(kind, path, how)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.finish()
    for i in range(2):
        second[0].write_chunk((i,), block_of(kind, 2))
    second[0].finish()
    values = [int(v) for v in np.unique(zarr_values(path))]
    assert values == [2]


def zarr_values(path: Any) -> NDArray[Any]:
    return np.asarray(zarr.open_array(path, mode="r")[...])


@pytest.mark.parametrize("kind", KINDS)
def test_two_jobs_that_begin_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Both find nothing there. One of them goes on; the other's chunks are not in its array."""
    path, take, meeting = tmp_path / "x", ownership.Owner.take, threading.Barrier(2)

    def together(*args: Any) -> None:
        meeting.wait(timeout=300)
        take(*args)

    monkeypatch.setattr(ownership.Owner, "take", together)
    outcomes: dict[int, Any] = {}

    def work(value: int) -> None:
        try:
            writer = begin(kind, path)
            for i in range(2):
                writer.write_chunk((i,), block_of(kind, value))
            writer.finish()
            outcomes[value] = "done"
        except StoreError as error:
            outcomes[value] = str(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [value for value, outcome in outcomes.items() if outcome == "done"]
    assert len(done) <= 1, outcomes
    if done:
        assert (zarr_values(path) == done[0]).all()
    else:
        assert json.loads((path / "zarr.json").read_text())["node_type"] == "array"


@pytest.mark.parametrize("url", ["", "memory://test-removing"])
def test_two_jobs_that_remove_the_same_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Who finds that one has gone meanwhile removes the others all the same."""
    location = store.locate(url or tmp_path / "x")
    for i in range(4):
        location.write(f"c/0/{i}", b"chunk", "it")
    unlink, rm_file, late = os.unlink, MemoryFileSystem.rm_file, []

    def before(remove: Callable[..., None]) -> Callable[..., None]:
        def removing(*args: Any, **options: Any) -> None:
            if not late:
                late.append(None)
                remove(*args, **options)
            remove(*args, **options)

        return removing

    monkeypatch.setattr(os, "unlink", before(unlink))
    monkeypatch.setattr(MemoryFileSystem, "rm_file", before(rm_file))
    location.remove("c")
    assert late
    assert location.sizes() == {}
    location.remove("c")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_the_removal_of_old_chunks_after_another_job_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, ends: bool, beside: bool
) -> None:
    """A job that begins where there are chunks is about to remove them; those are the next one's by then."""
    path, rename, clear, second = tmp_path / "x", Path.rename, targets.clear, []
    if beside:
        write(path, 1000)
    begin(kind, path, overwrite=True).write_chunk((0,), block_of(kind, 1))

    def next_one() -> None:
        if not second:
            second.append(None)
            second[0] = begin(kind, path, overwrite=True)
            for i in range(2):
                second[0].write_chunk((i,), block_of(kind, 2))
            if ends:
                second[0].finish()

    def rename_late(self: Path, target: Any) -> Any:
        if self.name == "c":
            next_one()
        return rename(self, target)

    def clear_late(*args: Any, **options: Any) -> None:
        next_one()
        clear(*args, **options)

    monkeypatch.setattr(Path, "rename", rename_late)
    monkeypatch.setattr(targets, "clear", clear_late)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        begin(kind, path, overwrite=True)
    if not ends:
        second[0].finish()
    assert (zarr_values(path) == 2).all()
    assert sorted(p.name for p in path.iterdir()) == ["c", "zarr.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_of_a_writer_is_removed_by_one_that_has_lost_the_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As a job does that found the array its own before, and removes what is left behind to finish it."""
    path, replace, late = tmp_path / "x", Path.replace, []
    begin(kind, path)
    second = begin(kind, path, overwrite=True)

    def replace_late(self: Path, target: Any) -> Any:
        if target not in late:
            late.append(target)
            ownership.remove_left_behind(store.locate(path))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replace_late)
    for i in range(2):
        second.write_chunk((i,), block_of(kind, 2))
    second.finish()
    assert [file.name for file in late] == ["0", "1", "zarr.json"]
    assert (zarr_values(path) == 2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_that_is_taken_over_as_it_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whose chunks are removed by then: it is not that they were not written."""
    path, late = tmp_path / "x", []
    first = begin(kind, path)
    for i in range(2):
        first.write_chunk((i,), block_of(kind, 1))
    check = first.owner.check

    def check_late() -> None:
        check()
        if not late:
            late.append(begin(kind, path, overwrite=True))

    monkeypatch.setattr(first.owner, "check", check_late)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.finish()
    assert late[0].missing_chunks() == [(0,), (1,)]


def test_an_incomplete_array_that_is_gone_as_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin("files", tmp_path / "x")
    read = metadata.array_document

    def late(document: bytes) -> dict[str, Any]:
        shutil.rmtree(tmp_path / "x")
        return read(document)

    monkeypatch.setattr(metadata, "array_document", late)
    with pytest.raises(ChangedStoreError, match="x: it was removed since it was opened"):
        store.resume(tmp_path / "x")


def test_chunks_stay_nowhere_where_a_writer_that_has_lost_the_array_removes_the_folder_they_go_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rename, late = tmp_path / "x", Path.rename, []
    begin("files", path).write_chunk((0,), BLOCK)

    def rename_late(self: Path, target: Any) -> Any:
        if self.name == "c" and not late:
            late.append(None)
            ownership.remove_folders_of_writers(store.locate(path))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_late)
    second = begin("files", path, overwrite=True)
    assert late
    assert second.missing_chunks() == [(0,), (1,)]


def test_a_folder_of_chunks_that_appears_after_the_others_have_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that has just looked whose the array is makes the folder of a chunk."""
    path, rename, late = tmp_path / "x", Path.rename, []
    begin("files", path).write_chunk((0,), BLOCK)

    def rename_and_make(self: Path, target: Any) -> Any:
        renamed = rename(self, target)
        if self.name == "c" and not late:
            late.append((self / "0").mkdir(parents=True))
        return renamed

    monkeypatch.setattr(Path, "rename", rename_and_make)
    second = begin("files", path, overwrite=True)
    assert late
    assert sorted(child.name for child in path.iterdir()) == ["zarr.json"]
    assert second.missing_chunks() == [(0,), (1,)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("url", ["", "memory://test-changed/x"])
def test_what_is_gone_when_it_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, url: str
) -> None:
    """Just after the last look whose it is: as by a job that has replaced what both were to replace."""
    path, with_attributes = url or tmp_path / "x", targets.with_attributes
    writer = begin(kind, path)
    for i in range(2):
        writer.write_chunk((i,), block_of(kind, 1))

    def late(location: Any, *args: Any) -> bytes:
        store.remove(store.locate(path))
        return with_attributes(location, *args)

    monkeypatch.setattr(targets, "with_attributes", late)
    with pytest.raises(StoreError, match="x: another job has begun to write it, or it was removed"):
        writer.finish()
    assert store.locate(path).names() == set()


def test_folders_of_writers_are_no_part_of_a_store(tmp_path: Path) -> None:
    first = begin("files", tmp_path / "x")
    first.write_chunk((0,), BLOCK)
    assert [p.name for p in (tmp_path / "x").glob(f"{ownership.WRITER_PREFIX}*")]
    second = store.resume(tmp_path / "x")
    second.write_chunk((1,), BLOCK)
    assert list(store.verify(second.finish())) == []
    with pytest.raises(StoreError, match="another job"):
        first.write_chunk((0,), BLOCK)
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == ["c", "zarr.json"]
    assert not list((tmp_path / "x").rglob(f"*{chunk_files.PARTIAL_SUFFIX}"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_job_that_ends_while_another_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, links: bool, overwrite: bool
) -> None:
    """The later one has seen that there is nothing: it does not replace the array that is there by then.

    To replace it would take away what is whole before there is something else.
    """
    path, take = tmp_path / "x", ownership.Owner.take

    def late(*args: Any) -> None:
        monkeypatch.setattr(ownership.Owner, "take", take)
        writer = begin(kind, path)
        for i in range(2):
            writer.write_chunk((i,), block_of(kind, 1))
        writer.finish()
        take(*args)

    def refused(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(ownership.Owner, "take", late)
    with pytest.raises(StoreError, match="x: another job has begun to write it"):
        begin(kind, path, overwrite=overwrite)
    assert (zarr_values(path) == 1).all()
    assert sorted(child.name for child in path.iterdir()) == ["c", "zarr.json"]


@pytest.mark.parametrize("how", ["overwrite", "resume"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["exchange", "no exchange", "memory"])
def test_a_job_that_ends_while_another_takes_its_array_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, how: str, where: str
) -> None:
    """The later one has seen an incomplete array: it does not make an incomplete one of what is complete."""
    path: Any = "memory://test-changed/x" if where == "memory" else tmp_path / "x"
    take = ownership.Owner.take
    first = begin(kind, path, overwrite=True)
    for i in range(2):
        first.write_chunk((i,), block_of(kind, 1))

    def late(*args: Any) -> None:
        monkeypatch.setattr(ownership.Owner, "take", take)
        first.finish()
        take(*args)

    if where == "no exchange":
        monkeypatch.setattr(ctypes, "CDLL", lambda _: type("C", (), {}))
    monkeypatch.setattr(ownership.Owner, "take", late)
    with pytest.raises(StoreError, match="x: another job has begun to write it, or has completed it"):
        proceed(kind, path, how)
    assert (zarr_values(path) == 1).all()
    assert set(store.locate(path).names()) == {"c", "zarr.json"}
    with pytest.raises(StoreError, match="complete"):
        proceed(kind, path, "resume")
    store.remove(store.locate(path))


def test_arrays_of_one_hierarchy_that_begin_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another job has made at the root by then stays, with its attributes; or is no group at all."""
    root, new_group, x = tmp_path / "root", hierarchy.new_group, rd.from_ints([1, 2], MODULI)

    def after(make: Callable[[], object], *args: Any) -> bytes:
        make()
        return new_group(*args)

    made = partial(zarr.create_group, root, attributes={"mine": 1})
    monkeypatch.setattr(hierarchy, "new_group", partial(after, made))
    x.to_zarr(root, component="a")
    assert dict(zarr.open_group(root, mode="r").attrs) == {"mine": 1}
    assert rd.open_zarr(root, component="a").to_ints().tolist() == [1, 2]
    shutil.rmtree(root)
    made = partial(zarr.create_array, root, shape=1, dtype="u1")
    monkeypatch.setattr(hierarchy, "new_group", partial(after, made))
    with pytest.raises(StoreError, match="root: it is an array, which holds no others"):
        x.to_zarr(root, component="a")
