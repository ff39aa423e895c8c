"""to_zarr as Dask's and Zarr's: appending, modes, components, chunks, and writing that is computed later."""

import shutil
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import fsspec
import numpy as np
import pytest
import zarr
from commands import succeed
from conftest import Processor
from distributed import Client
from interruptions import Interrupted, interrupting
from strategies import STORE_SET
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import ChangedStoreError, CorruptChunkError, IncompleteStoreError, StoreError
from rnsdask.rns.system import RNS

MODULI = STORE_SET
URL = "memory://test-appending/x.zarr"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    file_system = fsspec.filesystem("memory")
    if file_system.exists("/test-appending"):
        file_system.rm("/test-appending", recursive=True)


@pytest.fixture(params=["local", "link", "memory"])
def path(request: pytest.FixtureRequest) -> str:
    """A place for a store: a folder, a link to one, and an object store."""
    if request.param == "link":
        Path("elsewhere/target").mkdir(parents=True)
        Path("x.zarr").symlink_to("elsewhere/target")
    return URL if request.param == "memory" else "x.zarr"


def unsigned(values: Any, chunks: Any = None) -> Any:
    return rd.from_ints(np.abs(values), MODULI, chunks=chunks)


def signed(values: Any, chunks: Any = None) -> Any:
    return rd.from_ints(values, RNS(MODULI, signed=True), chunks=chunks)


def interval(values: Any, chunks: Any = None) -> Any:
    return rd.IntervalRNSArray.from_ints(values, MODULI, chunks=chunks)


SYSTEMS = pytest.mark.parametrize("make", [unsigned, signed, interval])


def numbers(shape: Any, rng: np.random.Generator) -> np.ndarray:
    """Integers of both signs, of which each is another one."""
    values = rng.permutation(np.arange(1, 1 + int(np.prod(shape)))).astype(object) ** 4
    return (values * np.where(rng.random(values.size) < 0.5, -1, 1)).reshape(shape)


def verified(path: str) -> Any:
    """The array at a place, in which nothing is wrong."""
    assert list(store.verify(store.open_info(path, store.all_systems))) == []
    return rd.open_zarr(path)


def ints(path: str) -> Any:
    return verified(path).to_ints().tolist()


def files_in(path: str) -> dict[str, bytes]:
    location = store.locate(path)
    return {key: location.read(key, key, 2**30) for key in location.versions()}


# ---- appending --------------------------------------------------------------------------------------------


@SYSTEMS
@pytest.mark.parametrize(
    ("shapes", "chunks", "axis"),
    [
        ([(99,), (1,), (33,), (200,)], 33, -1),
        ([(10,), (10,), (300,)], 128, 0),
        ([(0,), (7,), (0,), (6,)], 5, 0),
        ([(5, 7), (4, 7), (9, 7)], (3, 4), 0),
        ([(5, 7), (5, 1), (5, 6)], (3, 4), 1),
        ([(2, 0, 3), (2, 2, 3), (2, 3, 3)], (1, 2, 2), -2),
    ],
)
def test_appended_arrays_are_the_same_as_written_at_once(
    make: Callable[..., Any], shapes: list[Any], chunks: Any, axis: int, rng: np.random.Generator
) -> None:
    parts = [numbers(shape, rng) for shape in shapes]
    make(parts[0]).to_zarr("x.zarr", chunks=chunks)
    for i in range(1, len(parts)):
        # In chunks of its own, in memory, and in uneven ones.
        lazy = [None, 2, tuple((1, n - 1) if n > 1 else (n,) for n in shapes[i])][i % 3]
        whole = np.concatenate(parts[: i + 1], axis)
        make(parts[i], lazy).to_zarr("x.zarr", append_dim=axis)
        expected = make(whole)
        assert ints("x.zarr") == expected.to_ints().tolist()
        assert getattr(rd.open_zarr("x.zarr"), "bound", None) == getattr(expected, "bound", None)
        expected.to_zarr("y.zarr", chunks=chunks, overwrite=True)
        assert files_in("x.zarr") == files_in("y.zarr")
    assert {entry.name for entry in Path().iterdir()} == {"x.zarr", "y.zarr"}


def test_each_kind_of_place(path: str, rng: np.random.Generator) -> None:
    parts = [numbers(size, rng) for size in (100, 7, 60)]
    signed(parts[0], 33).to_zarr(path, mode="a", append_dim=0)
    for part in parts[1:]:
        signed(part, 5).to_zarr(path, mode="r+", append_dim=0)
    assert ints(path) == np.concatenate(parts).tolist()
    assert rd.open_zarr(path).chunks == ((33, 33, 33, 33, 33, 2),)
    assert Path("x.zarr").is_symlink() == Path("elsewhere").exists()
    assert not any(".partial" in str(entry) for entry in Path().rglob("*"))
    assert not any(".partial" in key for key in files_in(path))


def test_a_store_that_obstore_reaches(rng: np.random.Generator) -> None:
    obstore = pytest.importorskip("obstore")
    place = store.locate(zarr.storage.ObjectStore(obstore.store.MemoryStore())).child("x")
    parts = [numbers(size, rng) for size in (100, 7, 60)]
    for i, part in enumerate(parts):
        signed(part).to_zarr(place, append_dim=0, chunks=33 if i == 0 else None)
    assert rd.open_zarr(place).to_ints().tolist() == np.concatenate(parts).tolist()
    assert list(store.verify(store.open_info(place))) == []


def test_chunks_stay_the_same_files() -> None:
    unsigned(np.arange(100), 30).to_zarr("x.zarr")
    before = {i: Path(f"x.zarr/c/0/{i}").stat() for i in range(4)}
    unsigned(np.arange(100)).to_zarr("x.zarr", append_dim=0)
    after = {i: Path(f"x.zarr/c/0/{i}").stat() for i in range(4)}
    assert [before[i].st_ino == after[i].st_ino for i in range(4)] == [True, True, True, False]
    assert all(entry.st_nlink == 1 for entry in after.values())


def test_zarr_alone_reads_what_has_grown() -> None:
    values = np.arange(70).reshape(7, 10)
    unsigned(values[:, :4]).to_zarr("x.zarr", component="a", chunks=3)
    unsigned(values[:, 4:]).to_zarr("x.zarr", component="a", append_dim=1)
    array = zarr.open_group("x.zarr", mode="r")["a"]
    assert array.chunks == (4, 3, 3)
    assert array.attrs["rnsdask"]["format"] == 1
    residues = np.stack([values % m for m in MODULI])
    np.testing.assert_array_equal(array[:], residues)


def test_file_systems_without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    interval(np.arange(100), 30).to_zarr("x.zarr")
    interval(np.arange(100, 150)).to_zarr("x.zarr", append_dim=0)
    assert ints("x.zarr") == list(range(150))


def test_arrays_of_each_processor(on_each_processor: Processor) -> None:
    values = [3**i for i in range(40)]
    x = rd.from_ints(values, MODULI, chunks=None)
    x = rd.RNSArray(on_each_processor.xp.asarray(x.residues), x.system)
    x.to_zarr("x.zarr", chunks=16)
    x.to_zarr("x.zarr", append_dim=0)
    x.rechunk((1, 39)).to_zarr("x.zarr", append_dim=0)
    assert ints("x.zarr") == values * 3


def test_bounds_hold_for_both() -> None:
    for first, second, expected in ((5, 9, 9), (9, 5, 9), (None, 5, None), (5, None, None)):
        x = unsigned([1, 2, 3]).with_bound(first, trusted=True)
        x.to_zarr("x.zarr", overwrite=True)
        x.with_bound(second, trusted=True).to_zarr("x.zarr", append_dim=0)
        assert verified("x.zarr").bound == expected


def test_codecs_and_attributes_stay(rng: np.random.Generator) -> None:
    values = numbers(300, rng)
    system = RNS(MODULI, signed=True)
    writer = store.create("x.zarr", system, (300,), chunks=128, codecs=[ZstdCodec(level=3)])
    residues = system.encode(values)
    for i in range(3):
        writer.write_chunk((i,), np.ascontiguousarray(residues[:, i * 128 : (i + 1) * 128]))
    writer.finish()
    zarr.open_array("x.zarr").update_attributes({"mine": [1, 2]})
    signed(values[:50]).to_zarr("x.zarr", append_dim=0)
    assert ints("x.zarr") == [*values, *values[:50]]
    array = zarr.open_array("x.zarr", mode="r")
    assert array.attrs["mine"] == [1, 2]
    assert "zstd" in store.open_info("x.zarr").codecs[1]


@pytest.mark.parametrize("name", ["empty", "matrix", "signed", "small", "zstd"])
def test_stores_of_older_versions_grow(name: str) -> None:
    shutil.copytree(Path(__file__).parents[1] / "data" / "format1" / name, "x.zarr")
    x = rd.open_zarr("x.zarr").compute()
    expected = np.concatenate([x.to_ints(), x[:1].to_ints()]).tolist()
    x[:1].to_zarr("x.zarr", append_dim=0)
    assert ints("x.zarr") == expected


def test_a_store_is_appended_to_itself() -> None:
    signed(np.arange(-50, 50), 30).to_zarr("x.zarr")
    x = rd.open_zarr("x.zarr")
    (x * 2)[:70].to_zarr("x.zarr", append_dim=0)
    assert ints("x.zarr") == [*range(-50, 50), *range(-100, 40, 2)]


@pytest.mark.parametrize(
    ("second", "options", "error", "message"),
    [
        (lambda: signed([1]), {}, ValueError, r"it holds numbers of .* unsigned.*, not of .*\]\), signed"),
        (lambda: rd.from_ints([1], rd.ModuliSet([7, 11])), {}, ValueError, "nothing is appended"),
        (lambda: interval([1]), {}, ValueError, r"it holds numbers of .*, not of .*; nothing is appended"),
        (lambda: unsigned([[1]]), {}, ValueError, r"of shape \(1, 1\) cannot be appended along axis 0"),
        (lambda: unsigned([1]), {"append_dim": 1}, ValueError, "axis 1 is out of bounds"),
        (lambda: unsigned([1]), {"append_dim": "x"}, TypeError, "append_dim must be an integer"),
        (lambda: unsigned([1]), {"mode": "w"}, ValueError, "append_dim needs mode 'a' or 'r[+]', got 'w'"),
        (lambda: unsigned([1]), {"mode": "r"}, ValueError, "mode must be one of 'w-', 'w', 'a', 'r[+]', got"),
        (lambda: unsigned([1]), {"overwrite": True}, ValueError, "append_dim needs mode"),
        (lambda: unsigned([1]), {"chunks": 31}, ValueError, r"its chunks are \(30,\), and stay so.*\(31,\)"),
    ],
)
def test_what_cannot_be_appended(
    second: Callable[[], Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    unsigned(np.arange(100), 30).to_zarr("x.zarr")
    before = files_in("x.zarr")
    with pytest.raises(error, match=message):
        second().to_zarr("x.zarr", **{"append_dim": 0, **options})
    assert files_in("x.zarr") == before
    assert [entry.name for entry in Path().iterdir()] == ["x.zarr"]


def test_other_axes_must_agree() -> None:
    interval(np.arange(6).reshape(2, 3)).to_zarr("x.zarr")
    with pytest.raises(ValueError, match=r"it has shape \(2, 3\), so an array of shape \(2, 4\) cannot be"):
        interval(np.arange(8).reshape(2, 4)).to_zarr("x.zarr", append_dim=0)
    with pytest.raises(ValueError, match=r"it holds numbers of .*, not of .*; nothing is appended"):
        signed(np.arange(3).reshape(1, 3)).to_zarr("x.zarr", append_dim=0)


def test_nothing_is_there_to_append_to() -> None:
    with pytest.raises(StoreError, match="there is no such store"):
        unsigned([1]).to_zarr("x.zarr", mode="r+", append_dim=0)
    with pytest.raises(ValueError, match=r"mode 'r\+' changes an array that is there: it needs append_dim"):
        unsigned([1]).to_zarr("x.zarr", mode="r+")
    store.create("x.zarr", RNS(MODULI), (3,), chunks=128)
    with pytest.raises(IncompleteStoreError):
        unsigned([1]).to_zarr("x.zarr", append_dim=0)


# ---- what goes wrong --------------------------------------------------------------------------------------


def failing_from(x: Any, chunk: int) -> Any:
    def fail(block: Any, block_id: Any) -> Any:
        if block_id[1] >= chunk:
            raise ZeroDivisionError("not this one")
        return block

    return type(x)(x.words.map_blocks(fail, dtype=np.uint32), x.system)


@SYSTEMS
def test_a_failed_append_changes_nothing(make: Callable[..., Any]) -> None:
    make(np.arange(100), 30).to_zarr("x.zarr")
    before, x = files_in("x.zarr"), make(np.arange(100, 200), 10)
    handle = rd.open_zarr("x.zarr")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="not this one"):
            failing_from(x, 5).to_zarr("x.zarr", append_dim=0)
        assert files_in("x.zarr") == before
        assert handle.to_ints().tolist() == ints("x.zarr") == list(range(100))
    x.to_zarr("x.zarr", append_dim=0)
    assert ints("x.zarr") == list(range(200))
    with pytest.raises(
        ChangedStoreError, match=r"it was overwritten, or its metadata changed, since it was opened"
    ):
        handle.to_ints()
    assert [entry.name for entry in Path().iterdir()] == ["x.zarr"]


@SYSTEMS
def test_damage_of_the_old_array_is_not_taken_over(make: Callable[..., Any]) -> None:
    make(np.arange(100), 30).to_zarr("whole.zarr")

    def refused(change: Callable[[], object]) -> None:
        shutil.rmtree("x.zarr", ignore_errors=True)
        shutil.copytree("whole.zarr", "x.zarr")
        change()
        before = files_in("x.zarr")
        with pytest.raises(CorruptChunkError, match=r"is missing|is corrupt|not those that it was completed"):
            make([1]).to_zarr("x.zarr", append_dim=0)
        assert files_in("x.zarr") == before

    chunks = [Path(f"x.zarr/c/0/{i}") for i in range(4)]
    refused(chunks[0].unlink)
    refused(chunks[3].unlink)
    refused(lambda: shutil.copy(chunks[0], chunks[1]))
    refused(lambda: chunks[3].write_bytes(b"x" + chunks[3].read_bytes()[1:]))


def test_two_appends_at_a_time(path: str) -> None:
    unsigned(np.arange(100), 30).to_zarr(path)
    first = unsigned(np.arange(100, 110)).to_zarr(path, append_dim=0, compute=False)
    second = unsigned(np.arange(200, 210)).to_zarr(path, append_dim=0, compute=False)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.compute()
    assert ints(path) == list(range(100))
    second.compute()
    assert ints(path) == [*range(100), *range(200, 210)]


def test_what_changed_meanwhile_is_not_lost(path: str) -> None:
    unsigned(np.arange(100), 30).to_zarr(path)
    later = unsigned(np.arange(100, 110)).to_zarr(path, append_dim=0, compute=False)
    location = store.locate(path)
    changed = location.read_metadata().replace(b'"complete"', b'"complete" ')
    location.write("zarr.json", changed, "it")
    with pytest.raises(StoreError, match=r"it was changed|it was overwritten"):
        later.compute()
    assert location.read_metadata() == changed
    assert rd.open_zarr(path).to_ints().tolist() == list(range(100))


def test_an_append_to_an_object_store_is_interrupted_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step the old array is there, with all its numbers, or the new one."""
    old, new = list(range(100)), list(range(100, 170))
    seen = []
    for after in range(100):
        unsigned(old, 30).to_zarr(URL, overwrite=True)
        with monkeypatch.context() as patch, dask.config.set(scheduler="sync"):
            left = interrupting(patch, after)
            with suppress(Interrupted):
                unsigned(new).to_zarr(URL, append_dim=0)
        if left[0] >= 0:
            break
        found = rd.open_zarr(URL).to_ints().tolist()
        assert found in (old, old + new)
        seen.append(found == old)
        if found == old:
            unsigned(new).to_zarr(URL, append_dim=0)
            assert ints(URL) == old + new
    assert ints(URL) == old + new
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {True, False}


# ---- modes, places and chunks -----------------------------------------------------------------------------


@SYSTEMS
def test_modes(make: Callable[..., Any]) -> None:
    make([1, 2, 3]).to_zarr("x.zarr", mode="w-")
    for mode in ("w-", "a", None):
        with pytest.raises(StoreError, match="it exists"):
            make([4]).to_zarr("x.zarr", mode=mode)
    make([5]).to_zarr("x.zarr", mode="w")
    assert ints("x.zarr") == [5]
    make([6]).to_zarr("x.zarr", overwrite=True)
    make([7]).to_zarr("y.zarr", mode="a")
    make([8]).to_zarr("z.zarr", mode="w")
    assert [ints(f"{name}.zarr") for name in "xyz"] == [[6], [7], [8]]
    with pytest.raises(ValueError, match="overwrite=True is mode 'w', got mode 'w-'"):
        make([9]).to_zarr("x.zarr", mode="w-", overwrite=True)
    with pytest.raises(StoreError, match="cannot overwrite the store that it is read from"):
        rd.open_zarr("x.zarr").to_zarr("x.zarr", mode="w")


@SYSTEMS
@pytest.mark.parametrize("root", ["data.zarr", "memory://test-appending/data.zarr"])
def test_components(make: Callable[..., Any], root: str) -> None:
    make([1, 2, 3]).to_zarr(root, component="a/b")
    make([4]).to_zarr(root, component="/a/c/")
    make([5]).to_zarr(root, component="d")
    make([6]).to_zarr(root, component="d", mode="w")
    make([7, 8]).to_zarr(root, component="d", append_dim=0)
    assert rd.open_zarr(root, component="d").to_ints().tolist() == [6, 7, 8]
    assert rd.open_zarr(root, component="a/b").to_ints().tolist() == [1, 2, 3]
    assert ints(f"{root}/a/c") == [4]
    group = zarr.open_group(store.locate(root).path, mode="r")
    assert set(group) == {"a", "d"}
    assert set(group["a"]) == {"b", "c"}
    with pytest.raises(StoreError, match="it is an array, which holds no others"):
        make([1]).to_zarr(root, component="a/b/e")
    with pytest.raises(StoreError, match=r"it is a Zarr group, not an array|there is no such store"):
        rd.open_zarr(root, component="a/e")


@pytest.mark.parametrize("component", ["", "/", "a//b", "a/../b", ".", ".partial", "a/zarr.json"])
def test_what_is_no_component(component: str) -> None:
    with pytest.raises(ValueError, match="component must be names with / between them"):
        unsigned([1]).to_zarr("x.zarr", component=component)
    with pytest.raises(ValueError, match="component must be names with / between them"):
        rd.open_zarr("x.zarr", component=component)
    assert not Path("x.zarr").exists()


def test_a_component_of_something_else() -> None:
    with pytest.raises(TypeError, match="component must be a string such as 'a/b', got int"):
        rd.open_zarr("x.zarr", component=1)  # type: ignore[arg-type]
    Path("old").mkdir()
    Path("old/.zgroup").write_text("{}")
    with pytest.raises(StoreError, match=r"it is not a Zarr group of format 3: it has a file \.zgroup"):
        unsigned([1]).to_zarr("old", component="x")
    zarr.create_group("data", attributes={"mine": 1})
    unsigned([1]).to_zarr("data", component="x")
    assert zarr.open_group("data", mode="r").attrs["mine"] == 1


@SYSTEMS
@pytest.mark.parametrize(
    ("chunks", "stored", "lazy"),
    [
        (7, (7, 7), ((7, 7, 6), (7, 7, 7, 7, 2))),
        ((128, 128), (128, 128), ((20,), (30,))),
        ((-1, 9), (20, 9), ((20,), (9, 9, 9, 3))),
        ({1: 9}, (20, 9), ((20,), (9, 9, 9, 3))),
        (((15, 5), 30), (15, 30), ((15, 5), (30,))),
        ("auto", (20, 128), ((20,), (30,))),
    ],
)
def test_chunks_of_stores(make: Callable[..., Any], chunks: Any, stored: Any, lazy: Any) -> None:
    values = np.arange(600).reshape(20, 30)
    make(values).to_zarr("x.zarr", chunks=chunks)
    info = store.open_info("x.zarr", store.all_systems)
    if chunks != "auto":
        assert info.chunks == stored
    assert rd.open_zarr("x.zarr").chunks == lazy
    assert ints("x.zarr") == values.tolist()


@SYSTEMS
def test_stores_are_opened_in_other_chunks(make: Callable[..., Any]) -> None:
    values = np.arange(600).reshape(20, 30)
    make(values).to_zarr("x.zarr", chunks=7)
    for chunks, lengths in ((11, ((11, 9), (11, 11, 8))), ({0: -1}, ((20,), (7, 7, 7, 7, 2)))):
        x = rd.open_zarr("x.zarr", chunks=chunks)
        assert x.chunks == lengths
        assert x.to_ints().tolist() == values.tolist()
    assert rd.open_zarr("x.zarr", chunks="auto").chunks == ((20,), (30,))


@SYSTEMS
@pytest.mark.parametrize(
    ("chunks", "lengths"),
    [
        (-1, ((20,), (30,))),
        ({0: -1}, ((20,), (7, 7, 7, 7, 2))),
        ((14, 14), ((14, 6), (14, 14, 2))),
        (((7, 13), (21, 9)), ((7, 13), (21, 9))),
        (((14, 6), None), ((14, 6), (7, 7, 7, 7, 2))),
    ],
)
def test_a_task_reads_all_stored_chunks_that_a_chunk_is_made_of(
    make: Callable[..., Any], chunks: Any, lengths: Any
) -> None:
    values = np.arange(600).reshape(20, 30)
    make(values).to_zarr("x.zarr", chunks=7)
    x = rd.open_zarr("x.zarr", chunks=chunks)
    assert x.chunks == lengths
    assert len(x.words.__dask_graph__()) == x.words.npartitions
    assert x.to_ints().tolist() == values.tolist()


@SYSTEMS
@pytest.mark.parametrize("chunks", [((0, 20), -1), ((20, 0), -1), ((6, 14), -1), (7, (14, 10, 6))])
def test_chunks_that_begin_within_stored_ones(make: Callable[..., Any], chunks: Any) -> None:
    values = np.arange(600).reshape(20, 30)
    make(values).to_zarr("x.zarr", chunks=7)
    x = rd.open_zarr("x.zarr", chunks=chunks)
    assert x.to_ints().tolist() == values.tolist()
    make(values[:0]).to_zarr("y.zarr", chunks=7)
    assert rd.open_zarr("y.zarr", chunks=(-1, 14)).shape == (0, 30)
    assert rd.open_zarr("y.zarr", chunks=(-1, 14)).to_ints().tolist() == []


def test_stored_chunks_behind_a_url_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rd.from_ints(range(80), MODULI).to_zarr(URL, chunks=10)
    together = threading.Barrier(8, timeout=60)
    read = store.read_chunk

    def read_with_others(*args: Any) -> Any:
        together.wait()
        return read(*args)

    monkeypatch.setattr(store, "read_chunk", read_with_others)
    with dask.config.set(scheduler="synchronous"):
        assert rd.open_zarr(URL, chunks=80).to_ints().tolist() == list(range(80))


def test_chunks_longer_than_their_axis_are_joined_one_at_a_time() -> None:
    values = np.arange(64).reshape(2, 32)
    rd.from_ints(values, MODULI).to_zarr("x.zarr", chunks=(2**17, 1))
    x = rd.open_zarr("x.zarr", chunks=-1)
    with dask.config.set(scheduler="synchronous"):
        tracemalloc.start()
        try:
            found = x.to_ints()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert found.tolist() == values.tolist()
    assert peak < 3 * store.open_info("x.zarr").chunk_bytes


def test_few_tasks_read_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of all chunks would take more memory than there is."""
    rd.from_ints(range(3000), MODULI).to_zarr("x.zarr", chunks=1)

    def check_graph(count: int, _what: str) -> None:
        if count > 100:
            raise rd.JobError(f"{count} chunks are too many")

    monkeypatch.setattr("rnsdask.lazy.read.check_graph", check_graph)
    with pytest.raises(rd.JobError, match="3000 chunks are too many"):
        rd.open_zarr("x.zarr")
    with pytest.raises(rd.JobError, match="3000 chunks are too many"):
        rd.open_zarr("x.zarr", chunks=((5, 2995),), part=1)
    assert rd.open_zarr("x.zarr", chunks=1000).to_ints().tolist() == list(range(3000))
    succeed("rechunk", "x.zarr", "-o", "y.zarr", "--chunks", 1000)
    assert rd.open_zarr("y.zarr").to_ints().tolist() == list(range(3000))


def test_a_broken_chunk_among_joined_ones_is_named() -> None:
    rd.from_ints(range(100), MODULI).to_zarr("x.zarr", chunks=10)
    Path("x.zarr/c/0/7").unlink()
    with pytest.raises(CorruptChunkError, match=r"x\.zarr: chunk c/0/7 is missing"):
        rd.open_zarr("x.zarr", chunks=50).compute()
    assert rd.open_zarr("x.zarr", chunks=50)[:50].to_ints().tolist() == list(range(50))


@SYSTEMS
def test_uneven_chunks_are_changed_with_a_warning(make: Callable[..., Any], recwarn: Any) -> None:
    x = make(np.arange(96), ((1, 60, 35),))
    with pytest.warns(UserWarning, match=r"chunks differ along an axis.*it gets chunks of \(60,\)") as caught:
        x.to_zarr("x.zarr")
    assert caught[0].filename == __file__
    assert rd.open_zarr("x.zarr").chunks == ((60, 36),)
    assert ints("x.zarr") == list(range(96))
    with pytest.raises(ValueError, match="the chunks of a store are of one length along each axis"):
        x.to_zarr("y.zarr", chunks=((1, 60, 35),))
    recwarn.clear()
    x.to_zarr("y.zarr", chunks=50)
    x.rechunk(40).to_zarr("z.zarr")
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]
    assert [rd.open_zarr(f"{name}.zarr").chunks for name in "yz"] == [((50, 46),), ((40, 40, 16),)]


def test_unknown_lengths_are_found() -> None:
    x = unsigned(np.arange(60), 20)
    for options in ({"chunks": 5}, {"append_dim": 0}):
        x[x.residues[0] % 2 == 0].to_zarr("x.zarr", **options)
    assert rd.open_zarr("x.zarr").to_ints().tolist() == [*range(0, 60, 2)] * 2


# ---- computed later ---------------------------------------------------------------------------------------


@SYSTEMS
def test_writing_is_computed_later(make: Callable[..., Any]) -> None:
    values = np.arange(100)
    later = [make(values, 30).to_zarr(f"{i}.zarr", compute=False) for i in range(2)]
    later.append(make(values).to_zarr("2.zarr", component="a/b", chunks=7, compute=False))
    for path in ("0.zarr", "1.zarr", "2.zarr/a/b"):
        with pytest.raises(IncompleteStoreError):
            rd.open_zarr(path)
    assert dask.compute(*later) == (None, None, None)
    for path in ("0.zarr", "1.zarr", "2.zarr/a/b"):
        assert ints(path) == values.tolist()
    with pytest.raises(StoreError, match="another job has begun to write it, or it was removed"):
        later[0].compute()
    assert ints("0.zarr") == values.tolist()


@SYSTEMS
def test_what_fails_later_is_incomplete(make: Callable[..., Any]) -> None:
    make([1, 2]).to_zarr("y.zarr")
    x = failing_from(make(np.arange(100), 30), 2)
    for path, options in (("x.zarr", {}), ("y.zarr", {"mode": "w"})):
        later = x.to_zarr(path, compute=False, **options)
        with pytest.raises(ZeroDivisionError, match="not this one"):
            later.compute()
    with pytest.raises(IncompleteStoreError):
        rd.open_zarr("x.zarr")
    assert ints("y.zarr") == [1, 2]


def test_writing_later_on_a_cluster() -> None:
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None):
        later = signed(np.arange(-50, 50), 7).to_zarr("x.zarr", compute=False)
        assert later.persist().compute() is None
        signed(np.arange(10)).to_zarr("x.zarr", append_dim=0, compute=False).compute()
    assert ints("x.zarr") == [*range(-50, 50), *range(10)]
