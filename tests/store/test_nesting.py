"""Stores within stores: none is written into an array, none is replaced with another one that it holds."""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zarr
import zarr.storage
from commands import call, fail, succeed

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import StoreError
from rnsdask.rns.system import RNS

MODULI = rd.ModuliSet.for_bits(64)
REFUSED = "nothing can be written there: .* is a Zarr array, which holds its own chunks alone; choose "

pytestmark = pytest.mark.usefixtures("in_empty_folder")


def numbers(count: int = 3) -> Any:
    return rd.from_ints(range(count), MODULI)


def digest(folder: str | Path) -> str:
    """Hash of all names and contents below a folder."""
    found = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        found.update(str(path).encode() + b"\0" + (path.read_bytes() if path.is_file() else b""))
    return found.hexdigest()


def plain_v2(path: str) -> None:
    zarr.create_array(path, shape=(4,), dtype="i4", zarr_format=2)[:] = 1


ARRAYS: dict[str, Callable[[str], object]] = {
    "store": lambda path: numbers().to_zarr(path),
    "being written": lambda path: store.create(path, RNS(MODULI), (5,)),
    "plain": lambda path: store.create_plain(path, (5,), (5,), "bool"),
    "of Zarr": lambda path: zarr.create_array(path, shape=(4,), dtype="i4"),
    "of Zarr 2": plain_v2,
}


@pytest.fixture(params=ARRAYS)
def outer(request: pytest.FixtureRequest) -> str:
    """The path of an array of each kind."""
    ARRAYS[request.param]("x.zarr")
    return "x.zarr"


INNER = ["{}/inner.zarr", "{}/c/inner.zarr", "{}/c/0/inner.zarr", "{}/new/inner.zarr", "d/../{}/inner.zarr"]


@pytest.mark.parametrize("inner", INNER)
def test_a_store_in_an_array(outer: str, inner: str) -> None:
    Path("d").mkdir()
    Path("n.txt").write_text("1\n2\n")
    place = inner.format(outer)
    before = digest(".")
    for mode in ({}, {"overwrite": True}):
        with pytest.raises(StoreError, match=REFUSED):
            numbers().to_zarr(place, **mode)
    for options in ({"compute": False}, {"component": "a/b"}, {"append_dim": 0}):
        with pytest.raises(StoreError, match=REFUSED):
            numbers().to_zarr(place, **options)
    with pytest.raises(StoreError, match=REFUSED):
        store.create_plain(place, (5,), (5,), "bool")
    for options in ([], ["--overwrite"], ["--resume"]):
        assert re.search(REFUSED, fail("import", "n.txt", place, *options))
        assert re.search(REFUSED, fail("random", place, "--bits", 64, "--count", 5, "--seed", 1, *options))
    assert digest(".") == before


@pytest.mark.parametrize("how", ["folder", "chunks", "place", "two links", "relative", "mounted name"])
def test_by_links(outer: str, how: str) -> None:
    Path("d").mkdir()
    whole = Path(outer if Path(outer).exists() else f"{outer}.partial").absolute()
    (whole / "c").mkdir(exist_ok=True)
    if how == "folder":
        Path("d/link").symlink_to(whole)
        place = "d/link/inner.zarr"
    elif how == "chunks":  # which have moved to another disk
        (whole / "c").rename("moved")
        (whole / "c").symlink_to(Path("moved").absolute())
        place = f"{whole}/c/inner.zarr"
    elif how == "place":
        Path("d/link").symlink_to(whole / "inner.zarr")
        place = "d/link"
    elif how == "two links":
        (whole / "c").rename("moved")
        (whole / "c").symlink_to("../moved")
        Path("d/link").symlink_to(whole / "c")
        place = "d/link/inner.zarr"
    elif how == "relative":
        Path("d/link").symlink_to(Path("..", whole.name, "c"))
        place = "d/link/../inner.zarr"
    else:
        place = str(whole / "." / "c" / "inner.zarr")
    before = digest(".")
    with pytest.raises(StoreError, match=REFUSED):
        numbers().to_zarr(place)
    assert digest(".") == before


def test_files_in_an_array(outer: str) -> None:
    pytest.importorskip("pyarrow")
    numbers().to_zarr("y.zarr")
    before = digest(".")
    for place in (f"{outer}/out", f"{outer}/c/0", f"{outer}/c/0/out"):
        for words in (
            ["export", "y.zarr", place],
            ["export", "y.zarr", place, "--overwrite"],
            ["sum", "y.zarr", "--checkpoint", place],
            ["sum", "y.zarr", "--log-json", place],
        ):
            result = call(*words)
            assert result.exit_code in (1, 2)
            assert re.search(REFUSED, result.stderr)
        with pytest.raises(StoreError, match=REFUSED):
            numbers().to_parquet(place, overwrite=True)
    assert digest(".") == before


def test_what_is_no_place_in_an_array() -> None:
    """Beside it, in a group, in a folder whose name begins alike, and by a way through it."""
    numbers().to_zarr("x.zarr")
    numbers().to_zarr("y.zarr.partial")  # not what is written for y.zarr
    zarr.create_group("g.zarr")
    Path("x.zarrs").mkdir()
    for place in ("x.zarr/../z.zarr", "x.zarr2", "x.zarrs/z.zarr", "g.zarr/z.zarr", "y.zarr/z.zarr"):
        numbers().to_zarr(place)
        assert rd.open_zarr(place).to_ints().tolist() == [0, 1, 2]
    numbers().to_zarr("g.zarr", component="a/b")
    numbers().to_zarr("x.zarr", append_dim=0)
    Path("link").symlink_to("x.zarr")
    numbers().to_zarr("link", overwrite=True)
    assert list(store.verify(store.open_info("x.zarr"))) == []


def test_an_old_group_is_an_array() -> None:
    shutil.copytree(Path(__file__).parents[1] / "data" / "format1", "old")
    groups = [path.parent for path in Path("old").rglob("zarr.json") if '"kind"' in path.read_text()]
    assert groups
    with pytest.raises(StoreError, match=REFUSED):
        numbers().to_zarr(groups[0] / "inner.zarr")


def test_a_folder_that_must_not_be_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared homes lie in such folders, and a key may be for a prefix of a bucket."""
    read = store.Location.read_metadata

    def refuse(location: store.Location) -> bytes:
        if not location.path.endswith((".zarr", ".partial")):
            raise store.access.StoreAccessError("not allowed", 13)
        return read(location)

    monkeypatch.setattr(store.Location, "read_metadata", refuse)
    numbers().to_zarr("x.zarr")
    with pytest.raises(StoreError, match=REFUSED):
        numbers().to_zarr("x.zarr/inner.zarr")


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Iterator[str]:
    root = f"memory://nesting-{abs(hash(request.node.name))}"
    yield root
    if fsspec.filesystem("memory").exists(root):
        fsspec.filesystem("memory").rm(root, recursive=True)


@pytest.mark.parametrize("inner", ["x.zarr/inner.zarr", "x.zarr/c/0/inner.zarr", "x.zarr/.partial/inner"])
def test_remote(memory: str, inner: str) -> None:
    numbers().to_zarr(f"{memory}/x.zarr")
    found = fsspec.filesystem("memory").find(memory)
    for mode in ({}, {"overwrite": True}, {"component": "a"}):
        with pytest.raises(StoreError, match=REFUSED):
            numbers().to_zarr(f"{memory}/{inner}", **mode)
        with pytest.raises(StoreError, match=REFUSED):
            numbers().to_zarr(zarr.storage.FsspecStore.from_url(f"{memory}/{inner}"), **mode)
    assert fsspec.filesystem("memory").find(memory) == found


# ---- Stores below a place ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("below", ["y.zarr", "a/y.zarr", "group", "unfinished"])
def test_what_is_below_a_place_stays(kind: str, below: str, memory: str) -> None:
    place = "d" if kind == "local" else f"{memory}/d"
    if below == "group":
        numbers().to_zarr(place, component="a/b")
    elif below == "unfinished":
        store.create(f"{place}/y.zarr", RNS(MODULI), (5,))
    else:
        numbers().to_zarr(f"{place}/{below}")

    def found() -> Any:
        return digest("d") if kind == "local" else fsspec.filesystem("memory").find(place)

    before = found()
    for mode in ({}, {"overwrite": True}):
        with pytest.raises(StoreError, match="it exists and is not a Zarr array, but a folder with"):
            numbers().to_zarr(place, **mode)
    assert found() == before


def test_an_unfinished_store_in_an_array_of_an_older_version() -> None:
    numbers().to_zarr("x.zarr")
    Path("x.zarr").rename("kept")
    store.create("x.zarr/y.zarr", RNS(MODULI), (5,))
    for path in Path("kept").iterdir():
        path.rename(Path("x.zarr", path.name))
    before = digest("x.zarr")
    with pytest.raises(StoreError, match=r"it is not replaced, because it also holds y\.zarr\.partial"):
        numbers(9).to_zarr("x.zarr", overwrite=True)
    assert digest("x.zarr") == before
    assert succeed("sum", "x.zarr").startswith("sum")
