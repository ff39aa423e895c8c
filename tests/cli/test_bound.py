"""The command ``bound``."""

import errno
import fcntl
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fsspec
import pytest
import zarr
from commands import as_json, fail, succeed, without_measures
from strategies import BOTH_RANGES, MODULI_SETS
from zarr.codecs import ZstdCodec

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import ChangedStoreError
from rnsdask.store.version import Version

DATA = Path(__file__).parents[1] / "data" / "format1"
MODULI = MODULI_SETS["top"]


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def write(values: list[int], bound: int | None = None, path: str = "x.zarr", signed: bool = False) -> None:
    """Write a store with any bound, right or wrong."""
    x = rd.from_ints(values, MODULI, signed, chunks=128)
    x.with_bound(bound, trusted=True).to_zarr(path)


@BOTH_RANGES
def test_bound(signed: bool) -> None:
    values = [5] * 500 + [-(2**70) if signed else 2**70, 3]
    write(values, signed=signed)
    expected = {"op": "bound", "store": "x.zarr", "bits": 71, "value": str(2**71 - 1), "count": 502}
    found = without_measures(as_json("bound", "x.zarr", "--backend", "cpu"))
    nbytes = store.open_info("x.zarr").nbytes
    assert found == {**expected, "backend": "cpu", "exact_fallbacks": 0, "bytes_read": nbytes}
    heading, value, work = succeed("bound", "x.zarr", "--backend", "cpu").splitlines()
    assert (heading, value) == ("bound of 502 integers, 71 bits:", str(2**71 - 1))
    assert work.startswith("(")
    assert "exact" not in work


def test_bound_of_zeros_and_of_no_numbers() -> None:
    write([0] * 300)
    assert (as_json("bound", "x.zarr")["value"], as_json("bound", "x.zarr")["bits"]) == ("0", 0)
    store.create("none.zarr", rd.RNS(MODULI), (0,)).finish()
    assert as_json("bound", "none.zarr")["value"] == "0"


def test_bound_is_measured_whatever_the_store_states() -> None:
    write([1000] * 300, bound=2**100)
    assert as_json("bound", "x.zarr")["value"] == "1023"
    write([1000] * 300, bound=1000, path="exact.zarr")
    assert as_json("bound", "exact.zarr")["value"] == "1023"
    write([1000] * 300, bound=511, path="wrong.zarr")
    path = Path("wrong.zarr").resolve()
    message = f"{path}: its bound has 9 bits, but a number in it of 10 bits is greater in magnitude"
    assert fail("bound", "wrong.zarr") == message
    write([3] * 200 + [1000, 1001], bound=1000, path="near.zarr")
    message = (
        "bound of near.zarr: the number at flat index 201 is 1001, greater in magnitude than the bound 1000"
    )
    assert fail("bound", "near.zarr") == message
    assert fail("bound", "near.zarr", "--write") == message
    assert store.open_info("near.zarr").system.bound == 1000


def test_bound_continues_from_a_checkpoint() -> None:
    write(list(range(2000)))
    found = as_json("bound", "x.zarr", "--checkpoint", "kept")
    again = as_json("bound", "x.zarr", "--checkpoint", "kept")
    assert found["value"] == again["value"] == "2047"
    assert "its operation is 'bound'" in fail("sum", "x.zarr", "--checkpoint", "kept")


def test_bound_refuses() -> None:
    assert "there is no such store" in fail("bound", "x.zarr")
    store.create("x.zarr", rd.RNS(MODULI), (500,), chunks=128)
    assert "the store is incomplete" in fail("bound", "x.zarr")


# ---- --write ----------------------------------------------------------------------------------------------


@BOTH_RANGES
@pytest.mark.parametrize("codecs", [None, [ZstdCodec(level=1)]], ids=["files", "zstd"])
def test_write(signed: bool, codecs: list[Any] | None) -> None:
    values = [5] * 300 + [-(2**70) if signed else 2**70]
    x = rd.from_ints(values, MODULI, signed, chunks=None)
    writer = store.create("x.zarr", rd.RNS(MODULI, signed), (301,), chunks=128, codecs=codecs)
    for i in range(3):
        writer.write_chunk((i,), x.residues[:, 128 * i : 128 * (i + 1)])
    writer.finish()
    zarr.open_array("x.zarr").attrs["mine"] = {"a": 1}
    before, chunks = store.open_info("x.zarr"), chunk_bytes("x.zarr")
    opened = rd.open_zarr("x.zarr")
    assert "written" not in as_json("bound", "x.zarr")
    assert store.open_info("x.zarr").version == before.version
    assert as_json("bound", "x.zarr", "--write")["written"] is True
    after = store.open_info("x.zarr")
    assert (after.system, after.content) == (rd.RNS(MODULI, signed, 2**71 - 1), before.content)
    assert (after.shape, after.chunks, after.codecs) == (before.shape, before.chunks, before.codecs)
    assert zarr.open_array("x.zarr").attrs["mine"] == {"a": 1}
    assert chunk_bytes("x.zarr") == chunks
    assert list(store.verify(after)) == []
    assert rd.open_zarr("x.zarr").to_ints().tolist() == values
    with pytest.raises(ChangedStoreError):
        opened.sum().compute()
    assert as_json("bound", "x.zarr", "--write")["written"] is False
    assert store.open_info("x.zarr").version == after.version


def chunk_bytes(path: str) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in Path(path, "c").rglob("*") if file.is_file()}


def test_write_keeps_a_lower_bound() -> None:
    write([1000] * 300, bound=1000)
    *_, last = succeed("bound", "x.zarr", "--write").splitlines()
    assert last == "not written: x.zarr has one that is not greater"
    assert store.open_info("x.zarr").system.bound == 1000
    write([1000] * 300, bound=511, path="wrong.zarr")
    assert "is greater in magnitude" in fail("bound", "wrong.zarr", "--write")
    assert store.open_info("wrong.zarr").system.bound == 511
    write([1000] * 300, bound=5000, path="loose.zarr")
    assert succeed("bound", "loose.zarr", "--write").endswith("\nwritten to loose.zarr\n")
    assert store.open_info("loose.zarr").system.bound == 1023


@pytest.mark.parametrize("name", ["empty", "matrix", "signed", "small", "zstd"])
def test_write_in_a_store_of_an_older_version(name: str) -> None:
    shutil.copytree(DATA / name, name)
    info, values = store.open_info(name), rd.open_zarr(name).to_ints()
    assert info.content is None
    loose = store.write_bound(info, info.system.greatest_magnitude)
    is_whole_range = name == "signed"  # its numbers reach the end
    assert as_json("bound", name, "--write")["written"] is not is_whole_range
    after = store.open_info(name)
    assert after.system.bound is not None
    assert max(map(abs, values.ravel()), default=0) <= after.system.bound
    assert (after.system.bound == loose.system.bound) == is_whole_range
    assert after.content == loose.content is not None
    assert (rd.open_zarr(name).to_ints() == values).all()
    assert list(store.verify(after)) == []


def test_write_refuses() -> None:
    store.create("begun.zarr", rd.RNS(MODULI), (500,), chunks=128)
    assert "the store is incomplete" in fail("bound", "begun.zarr", "--write")
    url = "memory://test-bound/x.zarr"
    write([1], path=url)
    message = f"{url}: its bound cannot be written: that is done in local stores only"
    assert fail("bound", url, "--write") == message
    assert as_json("bound", url)["value"] == "1"
    fsspec.filesystem("memory").rm("/test-bound", recursive=True)


@pytest.mark.parametrize("when", ["before", "after"])
def test_write_never_mixes_with_a_store_that_took_the_place(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other store comes before the last look at the metadata, or between this and the renaming.

    So it can come on a disk without locks only.
    """
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    write([7] * 300)
    info, check = store.open_info("x.zarr"), Version.check

    def overwriting(self: Version, location: Any) -> None:
        monkeypatch.setattr(Version, "check", check)
        if when == "after":
            check(self, location)
        rd.from_ints([2**100] * 300, MODULI, chunks=128).to_zarr("x.zarr", overwrite=True)
        if when == "before":
            check(self, location)

    monkeypatch.setattr(Version, "check", overwriting)
    with pytest.raises(ChangedStoreError):
        store.write_bound(info, 7)
    assert rd.open_zarr("x.zarr").to_ints().tolist() == [2**100] * 300
    assert store.open_info("x.zarr").system.bound == 2**100
    assert list(store.verify(store.open_info("x.zarr"))) == []
    assert sorted(path.name for path in Path().iterdir()) == ["x.zarr"]


def test_write_bound_refuses_what_is_no_bound() -> None:
    write([7] * 300)
    for bound in (-1, MODULI.product):
        with pytest.raises(ValueError, match="bound must be from 0 to"):
            store.write_bound(store.open_info("x.zarr"), bound)
