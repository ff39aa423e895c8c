"""Consolidated metadata of Zarr groups above an array that changes: removed before they are wrong."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
from strategies import STORE_SET

import rnsdask as rd
from rnsdask import store

REMOVED = (
    "its consolidated metadata are removed, because .* changes; zarr.consolidate_metadata makes them again"
)


@pytest.fixture(params=["local", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for a group: a folder, and an object store."""
    if request.param == "local":
        yield str(tmp_path / "g.zarr")
        return
    yield "memory://test-consolidated/g.zarr"
    fsspec.filesystem("memory").rm("/test-consolidated", recursive=True)


def array(values: Any) -> rd.RNSArray:
    return rd.from_ints(values, STORE_SET)


def consolidate(root: str, path: str = "") -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Zarr's, that other readers may not know it
        zarr.consolidate_metadata(root, path=path or None)


def is_consolidated(root: str, path: str = "") -> bool:
    place = store.component_of(store.locate(root), path or None)
    return bool(json.loads(place.read_metadata()).get("consolidated_metadata"))


def residues_by_zarr(root: str) -> Any:
    """Residues that Zarr reads through the group, with the group's consolidated metadata if there are any."""
    return np.asarray(zarr.open_group(root, mode="r")["a/b"][0])  # type: ignore[index]


CHANGES: dict[str, tuple[Callable[[str], object], list[int]]] = {
    "append": (
        lambda root: array([4, 5, 6]).to_zarr(root, component="a/b", append_dim=0),
        [1, 2, 3, 4, 5, 6],
    ),
    "replace": (lambda root: array([7, 8]).to_zarr(root, component="a/b", mode="w", chunks=1), [7, 8]),
    "later": (
        lambda root: array([4]).to_zarr(root, component="a/b", append_dim=0, compute=False).compute(),
        [1, 2, 3, 4],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_zarr_reads_what_is_there(root: str, change: str) -> None:
    array([1, 2, 3]).to_zarr(root, component="a/b")
    array([9]).to_zarr(root, component="c")
    consolidate(root)
    consolidate(root, "a")
    assert residues_by_zarr(root).tolist() == [1, 2, 3]
    make, expected = CHANGES[change]
    with pytest.warns(UserWarning, match=REMOVED) as caught:
        make(root)
    assert sorted({str(w.message).split(": ")[0] for w in caught if "removed" in str(w.message)}) == sorted(
        [store.locate(root).path, f"{store.locate(root).path}/a"]
    )
    assert not is_consolidated(root)
    assert not is_consolidated(root, "a")
    assert residues_by_zarr(root).tolist() == expected
    group = zarr.open_group(root, mode="r")
    assert set(group) == {"a", "c"}
    assert rd.open_zarr(root, component="a/b").to_ints().tolist() == expected


def test_what_else_a_group_says_stays(root: str) -> None:
    array([1, 2, 3]).to_zarr(root, component="a/b")
    zarr.open_group(root, mode="r+").attrs["mine"] = [1, 2]
    consolidate(root)
    with pytest.warns(UserWarning, match=REMOVED):
        array([4]).to_zarr(root, component="a/b", append_dim=0)
    assert zarr.open_group(root, mode="r").attrs["mine"] == [1, 2]
    consolidate(root)
    assert residues_by_zarr(root).tolist() == [1, 2, 3, 4]


def test_an_array_that_is_removed_or_added(root: str) -> None:
    array([1, 2, 3]).to_zarr(root, component="a/b")
    consolidate(root)
    with pytest.warns(UserWarning, match=REMOVED):
        array([4]).to_zarr(root, component="a/c")
    consolidate(root)
    with pytest.warns(UserWarning, match=REMOVED):
        store.remove(store.component_of(store.locate(root), "a/b"))
    assert "a/b" not in zarr.open_group(root, mode="r")


def test_a_bound_that_is_written(tmp_path: Path) -> None:
    root = str(tmp_path / "g.zarr")
    array([1, 2, 3]).to_zarr(root, component="a/b")
    consolidate(root)
    with pytest.warns(UserWarning, match=REMOVED):
        store.write_bound(store.open_info(f"{root}/a/b"), 3)
    assert zarr.open_group(root, mode="r")["a/b"].attrs["rnsdask"]["bound"] == "0x3"  # type: ignore[index]


def test_a_change_that_fails_before_it_counts_removes_nothing(root: str) -> None:
    """On a local disk, where the old array is whole until the new one is."""
    array([1, 2, 3]).to_zarr(root, component="a/b")
    consolidate(root)
    with pytest.raises(ValueError, match="cannot be appended"):
        array([[4]]).to_zarr(root, component="a/b", append_dim=0)
    assert is_consolidated(root)
