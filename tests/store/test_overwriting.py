"""Replacing a store: the old one stays whole until the new one is; and what is read is not replaced."""

import ctypes
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
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
from strategies import STORE_SET

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import ChangedStoreError, IncompleteStoreError, StoreError
from rnsdask.lazy.sources import reads
from rnsdask.rns.system import RNS
from rnsdask.store import replacing, targets, writing
from rnsdask.store.location import JOB_KEY, LocalLocation, Location, RemoteLocation

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
    """What readers see in the folder of a local store, beside it, and in the store; or in an object store."""
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


# ---- The old one stays ------------------------------------------------------------------------------------


def test_the_old_store_is_whole_until_the_new_one_is(path: str) -> None:
    array(OLD).to_zarr(path)
    handle = rd.open_zarr(path)
    writer = store.create(path, RNS(MODULI), (600,), chunks=128, overwrite=True)
    for i in range(5):
        assert values_in(path) == OLD
        assert int(handle.max()) == OLD[-1]
        write_some(writer, NEW, i + 1)
        if i < 4:
            with pytest.raises(StoreError, match="it cannot be completed: "):
                writer.finish()
    assert values_in(path) == OLD
    info = writer.finish()
    assert info.path == store.locate(path).path
    assert values_in(path) == NEW
    with pytest.raises(ChangedStoreError):
        handle.max().compute()
    assert files_beside(path) == {"c", "zarr.json"}
    assert Path("x.zarr").is_symlink() == Path("elsewhere").exists()


def test_a_failed_job_leaves_the_old_store(path: str) -> None:
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
    first = store.create(path, RNS(MODULI), (600,), chunks=128, overwrite=True, job_identity="r")
    write_some(first, NEW, 3)
    with pytest.raises(StoreError, match="it was begun by another job"):
        store.resume(path, job_identity="another")
    second = store.resume(path, job_identity="r")
    assert second.missing_chunks() == [(3,), (4,)]
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.write_chunk((4,), np.ones((4, 88), np.uint32))
    assert values_in(path) == OLD
    copy = pickle.loads(pickle.dumps(second))
    write_some(copy, NEW, 5)
    second.finish()
    assert values_in(path) == NEW
    with pytest.raises(StoreError, match="the store is complete: there is nothing to resume"):
        store.resume(path)
    assert files_beside(path) == {"c", "zarr.json"}


def test_another_replacement_begins_anew(path: str) -> None:
    array(OLD).to_zarr(path)
    first = store.create(path, RNS(MODULI), (300,), chunks=128, overwrite=True)
    write_some(first, OLD, 3)
    second = store.create(path, RNS(MODULI), (600,), chunks=256, overwrite=True)
    for refused in (first.finish, lambda: write_some(first, OLD, 1)):
        with pytest.raises(StoreError, match="another job has begun to write it"):
            refused()
    assert second.missing_chunks() == [(0,), (1,), (2,)]
    for i in range(3):
        second.write_chunk((i,), np.zeros((4, 88 if i == 2 else 256), np.uint32))
    second.finish()
    assert values_in(path) == [0] * 600


def test_an_incomplete_store_is_replaced_in_its_place(path: str) -> None:
    write_some(store.create(path, RNS(MODULI), (300,), chunks=128), OLD, 2)
    writer = store.create(path, RNS(MODULI), (600,), chunks=128, overwrite=True)
    assert len(writer.missing_chunks()) == 5
    with pytest.raises(IncompleteStoreError):
        store.open_info(path)
    write_some(writer, NEW, 5)
    writer.finish()
    assert values_in(path) == NEW


@pytest.mark.parametrize("kind", ["residues", "plain"])
@pytest.mark.parametrize("beside", [False, True])
def test_a_job_that_ends_before_it_has_removed_chunks(
    path: str, monkeypatch: pytest.MonkeyPatch, kind: str, beside: bool
) -> None:
    """Of an incomplete array of another job, in its place or beside a whole one: it keeps none of them."""

    def begin(identity: str) -> Any:
        how: dict[str, Any] = {"overwrite": True, "job_identity": identity}
        if kind == "plain":
            return store.create_plain(path, (600,), (128,), np.uint32, **how)
        return store.create(path, RNS(MODULI), (600,), chunks=128, **how)

    def write_all(writer: Any, value: int) -> None:
        for i in range(5):
            shape = (1 if kind == "plain" else 4, 88 if i == 4 else 128)
            writer.write_chunk((i,), np.full(shape, value, np.uint32))

    def ended(*_: Any, **__: Any) -> None:
        raise Interrupted

    if beside:
        array(OLD).to_zarr(path)
    write_all(begin("old"), 1)
    with monkeypatch.context() as patch:
        patch.setattr(targets, "clear", ended)
        patch.setattr(Path, "rename", ended)
        with pytest.raises(Interrupted):
            begin("new")
    resumed: Any = None
    with suppress(StoreError):
        if kind == "plain":
            resumed = store.resume_plain(path, (600,), (128,), np.uint32, job_identity="new")
        else:
            resumed = store.resume(path, job_identity="new")
    assert resumed is None or len(resumed.missing_chunks()) == 5
    writer = begin("new")
    assert len(writer.missing_chunks()) == 5
    write_all(writer, 2)
    writer.finish()
    assert files_beside(path) == {"c", "zarr.json"}


def test_what_was_changed_meanwhile_is_not_replaced(path: str) -> None:
    array(OLD).to_zarr(path)
    writer = store.create(path, RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    metadata = store.locate(path).read_metadata()
    changed = metadata.replace(b'"complete"', b'"complete" ')
    store.locate(path).write("zarr.json", changed, "it")
    with pytest.raises(StoreError, match=r"x\.zarr.*: it was changed while .* was written to replace it"):
        writer.finish()
    assert values_in(path) == OLD
    store.resume(path).finish()
    assert values_in(path) == NEW


def test_what_was_removed_meanwhile() -> None:
    array(OLD).to_zarr("x.zarr")
    writer = store.create("x.zarr", RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    Path("x.zarr").rename("y.zarr")
    with pytest.raises(StoreError, match="it was changed while"):
        writer.finish()
    store.resume("x.zarr").finish()
    assert values_in("x.zarr") == NEW
    assert values_in("y.zarr") == OLD


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
    writer = store.create("x.zarr", RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    Path("x.zarr/notes").write_text("mine")
    writer.finish()
    assert values_in("y/mine") == values_in("z") == values_in("x.zarr") == NEW
    assert Path("x.zarr.partial/notes").read_text() == "mine"
    assert not Path("x.zarr.partial/c").exists()


@pytest.mark.parametrize("has_exchange", [True, False])
def test_a_folder_that_cannot_be_replaced(monkeypatch: pytest.MonkeyPatch, has_exchange: bool) -> None:
    array(OLD).to_zarr("x.zarr")
    writer = store.create("x.zarr", RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    rename = Path.rename

    def busy(self: Path, target: Any) -> Any:
        if self.name == "x.zarr" or str(target).endswith("x.zarr"):
            raise OSError(16, "Device or resource busy")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", busy)
        patch.setattr(
            ctypes, "CDLL", lambda _: type("C", (), {"renameat2": (lambda *_: -1)} if has_exchange else {})
        )
        with pytest.raises(
            StoreError, match=r"x\.zarr: it cannot be replaced by .*x\.zarr\.partial, which is whole: Dev"
        ):
            writer.finish()
    assert values_in("x.zarr") == OLD
    assert values_in("x.zarr.partial") == NEW


def test_a_mount_point_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    array(OLD).to_zarr("x.zarr")
    monkeypatch.setattr(replacing.os.path, "ismount", lambda path: path.endswith("x.zarr"))
    with pytest.raises(StoreError, match=r"x\.zarr: it is a mount point, which cannot be replaced"):
        store.create("x.zarr", RNS(MODULI), (600,), chunks=128, overwrite=True)
    assert values_in("x.zarr") == OLD


def test_systems_that_exchange_no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    array(OLD).to_zarr("x.zarr")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: type("C", (), {}))
    array(NEW).to_zarr("x.zarr", overwrite=True)
    assert values_in("x.zarr") == NEW
    assert files_beside("x.zarr") == {"c", "zarr.json"}


def test_the_exchange_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system can: so a reader finds the one or the other, at any time."""
    if sys.platform != "linux":
        pytest.skip("of Linux")
    array(OLD).to_zarr("x.zarr")
    monkeypatch.setattr(Path, "rename", None)
    Path("a").mkdir()
    Path("b").mkdir()
    Path("a/1").touch()
    assert replacing._exchange("a", "b") == "b"
    assert not Path("a/1").exists()
    assert Path("b/1").exists()


def begun(kind: str, value: int) -> Callable[[], object]:
    """Begin to replace x.zarr by 300 times a value; what is given writes it."""
    if kind == "plain":
        writer = store.create_plain("x.zarr", (300,), (300,), np.int8, overwrite=True)
        writer.write_chunk((0,), np.full((1, 300), value, np.int8))
        return writer.finish
    system = rd.RNS(MODULI) if kind == "residues" else rd.IntervalRNS(MODULI)
    task = rd.from_ints([value] * 300, system, chunks=128).to_zarr("x.zarr", overwrite=True, compute=False)
    return lambda: task.compute()


def values_of(kind: str) -> set[int]:
    return set(
        (zarr.open_array("x.zarr") if kind == "plain" else rd.open_zarr("x.zarr").to_ints())[:].tolist()
    )


@pytest.mark.parametrize("kind", ["residues", "intervals", "plain"])
def test_another_begins_before_the_exchange(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then what would be put in place is no longer whole: the old one stays, until the other has finished."""
    begun(kind, 1)()
    beside = files_beside("x.zarr")
    finish, others = begun(kind, 2), []
    rename, exchange, state = Path.rename, replacing._exchange, replacing.state

    def before(location: Location) -> str:
        """What the other one saw, before the first was whole."""
        return "incomplete" if location.path.endswith(".partial") else state(location)

    def begin() -> None:
        if not others:
            others.append(lambda: None)
            with monkeypatch.context() as patch:
                patch.setattr(targets, "state", before)
                others.append(begun(kind, 3))

    def rename_later(self: Path, target: Any) -> Any:
        if self.name == "x.zarr.partial":
            begin()
        return rename(self, target)

    def exchange_later(old: str, new: str) -> str | None:
        begin()
        return exchange(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_later)
        patch.setattr(replacing, "_exchange", exchange_later)
        with pytest.raises(StoreError, match=r"another job has begun to write it|overwritten|removed"):
            finish()
    assert values_of(kind) == {1}
    others[-1]()
    assert values_of(kind) == {3}
    assert files_beside("x.zarr") == beside


@pytest.mark.parametrize("has_exchange", [True, False])
def test_another_is_put_in_place_before_the_exchange(
    has_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a job that began when the first had its name out of reach: what is appended there is not lost."""
    if not has_exchange:
        monkeypatch.setattr(ctypes, "CDLL", lambda _: type("C", (), {}))
    array(OLD).to_zarr("x.zarr")
    first = array(NEW).to_zarr("x.zarr", append_dim=0, compute=False)
    exchange = replacing._exchange

    def exchange_late(old: str, new: str) -> str | None:
        monkeypatch.setattr(replacing, "_exchange", exchange)
        array(OLD).to_zarr("x.zarr", append_dim=0)
        return exchange(old, new)

    monkeypatch.setattr(replacing, "_exchange", exchange_late)
    with pytest.raises(StoreError, match=r"x\.zarr: it was changed while .* was written to replace it"):
        first.compute()
    assert values_in("x.zarr") == OLD + OLD
    assert values_in("x.zarr.partial") == OLD + NEW


def test_who_is_overtaken_at_once_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not that its chunks are none of the other's array."""
    take_anew = writing.take_anew

    def take_too_late(*args: Any) -> None:
        take_anew(*args)
        monkeypatch.setattr(writing, "take_anew", take_anew)
        store.create("x.zarr", RNS(MODULI), (10,), chunks=128, overwrite=True)

    monkeypatch.setattr(writing, "take_anew", take_too_late)
    with pytest.raises(StoreError, match=r"x\.zarr: another job has begun to write it"):
        store.create("x.zarr", RNS(MODULI), (600,), chunks=128)


REPLACE = """
import sys
import numpy as np
import rnsdask as rd
from rnsdask import store
from rnsdask.rns.system import RNS
moduli = rd.ModuliSet([2**32, 2**32 - 1, 7, 65519])
print("ready", flush=True)
i = 0
while True:
    i += 1
    writer = store.create("x.zarr", RNS(moduli), (300,), chunks=128, overwrite=True)
    for k, length in enumerate((128, 128, 44)):
        writer.write_chunk((k,), np.full((4, length), i % 7, np.uint32))
    writer.finish()
"""


def test_killed_at_any_time() -> None:
    """The store is whole, the old one or a new one, and can be replaced."""
    rnd = random.Random(5)
    array([3] * 300).to_zarr("x.zarr")
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", REPLACE], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(10):
            # Each read is of one store, or it says that it was overwritten.
            with suppress(ChangedStoreError):
                assert len(set(rd.open_zarr("x.zarr").to_ints().tolist())) == 1
        time.sleep(rnd.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(set(values_in("x.zarr"))) == 1
    if (
        Path("x.zarr.partial/zarr.json").exists()
        and replacing.state(LocalLocation("x.zarr.partial")) == "whole"
    ):
        return  # killed between the two: it is not touched
    array(NEW).to_zarr("x.zarr", overwrite=True)
    assert values_in("x.zarr") == NEW


# ---- In an object store -----------------------------------------------------------------------------------

URL = "memory://test-overwriting/x.zarr"


@pytest.fixture
def url() -> Iterator[str]:
    yield URL
    file_system = fsspec.filesystem("memory")
    if file_system.exists("/test-overwriting"):
        file_system.rm("/test-overwriting", recursive=True)


def test_a_replacement_by_copies_is_interrupted_anywhere(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step: the old store is whole, or the new one is resumed from what is there, unchanged."""
    states = []
    for after in range(100):
        array(OLD).to_zarr(url, overwrite=True)
        writer = store.create(url, RNS(MODULI), (600,), chunks=128, overwrite=True)
        write_some(writer, NEW, 5)
        with monkeypatch.context() as patch:
            left = interrupting(patch, after)
            with suppress(Interrupted):
                writer.finish()
        if left[0] >= 0:
            break
        try:
            states.append("old" if values_in(url) == OLD else "new")
            assert values_in(url) in (OLD, NEW)
        except IncompleteStoreError:
            states.append("between")
        if states[-1] != "new":
            again = store.resume(url)
            assert again.missing_chunks() == []
            again.finish()
        assert values_in(url) == NEW
    assert values_in(url) == NEW
    assert {"old", "between", "new"} == set(states)
    assert states == sorted(states, key=["old", "between", "new"].index)


def test_a_replacement_by_copies_is_begun_anew(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array(OLD).to_zarr(url)
    writer = store.create(url, RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    with monkeypatch.context() as patch:
        interrupting(patch, 4)
        with pytest.raises(Interrupted):
            writer.finish()
    assert replacing.state(store.locate(url)) == "replaced"
    with pytest.raises(StoreError, match="it exists; replace it with overwrite=True"):
        array(NEW).to_zarr(url)
    array([7] * 300).to_zarr(url, overwrite=True)
    assert values_in(url) == [7] * 300
    with pytest.raises(StoreError, match="the store is complete"):
        store.resume(url)


@pytest.mark.parametrize("when", ["noted", "copying", "copied"])
def test_another_replaces_it_while_it_is_copied(url: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is overtaken is told, and the other's store stays whole, with its own bound."""
    array(OLD).to_zarr(url)
    writer = store.create(url, RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    other, keys = list(range(9000, 9600)), [f"c/0/{i}" for i in range(5)]

    def replace_now() -> None:
        monkeypatch.undo()
        array(other).to_zarr(url, overwrite=True)

    def write(self: Location, name: str, content: bytes, what: str) -> None:
        Location.write(self, name, content, what)
        if when == "noted":
            replace_now()

    def copy(self: Location, name: str, new_name: str, what: str) -> None:
        if when == "copying":
            replace_now()
        original(self, name, new_name, what)
        keys.remove(new_name)
        if when == "copied" and not keys:
            replace_now()

    original = RemoteLocation.copy
    monkeypatch.setattr(replacing, "_REQUESTS", 1)
    monkeypatch.setattr(RemoteLocation, "write", write)
    monkeypatch.setattr(RemoteLocation, "copy", copy)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        writer.finish()
    assert values_in(url) == other


def test_what_was_to_replace_is_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then old chunks, which may still be there, are not taken for those of the new one."""
    array(OLD).to_zarr(url)
    writer = store.create(url, RNS(MODULI), (600,), chunks=128, overwrite=True)
    write_some(writer, NEW, 5)
    with monkeypatch.context() as patch:
        interrupting(patch, 1)
        with pytest.raises(Interrupted):
            writer.finish()
    store.locate(url).remove(".partial")
    with pytest.raises(StoreError, match="what was to replace it is lost; begin again with overwrite=True"):
        store.resume(url)


def test_a_file_system_that_does_not_copy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(fsspec.filesystem("memory"), "cp_file", refuse, raising=False)
    array(OLD).to_zarr(url)
    array(NEW).to_zarr(url, overwrite=True)
    assert values_in(url) == NEW


# ---- Plain arrays and masks -------------------------------------------------------------------------------


def test_plain_arrays(path: str) -> None:
    values = np.arange(2, dtype=np.uint8)[None]
    with_old = store.create_plain(path, (4,), (2,), np.uint8)
    for i in range(2):
        with_old.write_chunk((i,), values)
    with_old.finish()
    first = store.create_plain(path, (4,), (2,), np.uint8, overwrite=True)
    first.write_chunk((0,), values + 5)
    location = store.locate(path)
    assert location.read("c/0", "it", 2**20) == location.read("c/1", "it", 2**20)
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
    "cummax": ["cummax", "s.zarr", "x.zarr"],
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


@pytest.mark.parametrize("kind", KINDS)
def test_commands_keep_and_resume(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("numbers").write_text("".join(f"{i**9}\n" for i in range(3840)))
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


@pytest.mark.parametrize("length", [1, 214, 215, 240, 247])
@pytest.mark.parametrize("letter", ["n", "é", "\udcff"], ids=["one byte", "two bytes", "no text"])
@pytest.mark.parametrize("can_exchange", [True, False])
def test_names_as_long_as_they_can_be(
    length: int, letter: str, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_exchange:
        monkeypatch.setattr(replacing, "exchange", lambda *_: False)
    name = os.fsdecode(os.fsencode(letter * length)[:length])
    for values in (OLD, NEW, OLD):
        array(values).to_zarr(name, overwrite=True)
        assert values_in(name) == values
        assert [path.name for path in Path().iterdir()] == [name]


def test_names_that_are_too_long_to_be_replaced_are_refused_before_the_work() -> None:
    name = "n" * 248
    array(OLD).to_zarr(name)
    message = fail("random", name, *RANDOM, "--overwrite")
    assert message.endswith("File name too long")
    assert values_in(name) == OLD
    assert [path.name for path in Path().iterdir()] == [name]
