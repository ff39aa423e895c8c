"""Blocks of a store, which jobs reduce without an array of Dask."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

import rnsdask as rd
from rnsdask import store
from rnsdask.core.errors import NumberError
from rnsdask.jobs.reduction import reduce, summarize
from rnsdask.lazy import call
from rnsdask.lazy.blocks import Blocks

MODULI = rd.ModuliSet.for_bits(64)
SYSTEMS = [rd.RNS(MODULI, True), rd.IntervalRNS(MODULI), rd.Positional(64, True)]


def write(path: Path | str, values: Any, system: Any, chunks: Any) -> store.StoreInfo:
    rd.from_ints(values, system).to_zarr(path, chunks=chunks)
    return store.open_info(path, store.all_systems)


def numbers_in(block: Any, *, place: Any, system: Any) -> list[tuple[Any, list[int]]]:
    return [(place.location, system.decode(block).ravel().tolist())]


def join(lists: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


@pytest.fixture(scope="module")
def many() -> Iterator[store.StoreInfo]:
    """A store of 300 chunks, more than 16**2."""
    url = "memory://blocks/x.zarr"
    yield write(url, range(300), SYSTEMS[0], 1)
    store.remove(store.locate(url))


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 256, 257, 300])
def test_groups_of_any_size_keep_the_order(size: int, many: store.StoreInfo) -> None:
    info = many
    groups = [range(start, min(start + size, 300)) for start in range(0, 300, size)]
    pieces = Blocks.of(info).reduce(groups, numbers_in, join, system=info.system)
    assert all(piece.dask is pieces[0].dask for piece in pieces)
    found = dask.compute(*pieces, scheduler="sync")
    assert list(map(len, found)) == list(map(len, groups))
    assert join(list(found)) == [(((i, i + 1),), [i]) for i in range(300)]


def test_only_the_chunks_of_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = write(tmp_path / "x.zarr", range(100), SYSTEMS[0], 5)
    read, original = [], store.read_chunk
    monkeypatch.setattr(store, "read_chunk", lambda info, i: (read.append(i), original(info, i))[1])
    pieces = Blocks.of(info).reduce([range(3, 5), range(19, 20)], numbers_in, join, system=info.system)
    assert [len(found) for found in dask.compute(*pieces, scheduler="sync")] == [2, 1]
    assert sorted(read) == [(3,), (4,), (19,)]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("part", [None, 1, 2, 128])
def test_parts_and_edges_of_several_axes(system: Any, part: int | None, tmp_path: Path) -> None:
    values = (np.arange(7 * 9).reshape(7, 9) * 10007) % 64 - 31  # greatest twice, the first at index 16
    greatest = int(values.max())
    info = write(tmp_path / "x.zarr", values, system, (3, 4))
    blocks = Blocks.of(info, part=part)
    assert blocks.count == {None: 9, 1: 21, 2: 15, 128: 9}[part]
    found = reduce(blocks, "max")
    assert (found.value, found.index, found.count) == (greatest, values.ravel().tolist().index(greatest), 63)
    assert reduce(blocks, "sum").value == values.sum()
    summary = summarize(blocks)
    assert (summary.minimum, summary.maximum, summary.total) == (values.min(), greatest, values.sum())
    lengths = [int(abs(value)).bit_length() for value in values.ravel()]
    assert list(summary.lengths) == [lengths.count(bits) for bits in range(max(lengths) + 1)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_stores_without_numbers(system: Any, tmp_path: Path) -> None:
    info = write(tmp_path / "x.zarr", np.empty((0, 3), dtype=object), system, (2, 2))
    blocks = Blocks.of(info)
    assert reduce(blocks, "sum").value == reduce(blocks, "gcd").value == 0
    assert reduce(blocks, "lcm").value == 1
    assert summarize(blocks).count == 0
    with pytest.raises(ValueError, match=r"max of an empty array.*got shape \(0, 3\)"):
        reduce(blocks, "max")


def test_arguments_are_checked(tmp_path: Path) -> None:
    info = write(tmp_path / "x.zarr", [1, 2], SYSTEMS[0], 1)
    with pytest.raises(ValueError, match="backend must be one of auto, cpu, cuda, got 'gpu'"):
        Blocks.of(info, backend="gpu")
    with pytest.raises(ValueError, match="part must be at least 1, got 0"):
        Blocks.of(info, part=0)
    with pytest.raises(ValueError, match="reduction must be one of max, min"):
        reduce(Blocks.of(info), "mean")


def test_a_number_beyond_the_stated_bound_is_found(tmp_path: Path) -> None:
    """The bound has as many bits as the number, so that the measured one would not show it."""
    x = rd.from_ints([3, 4, -7, 5], SYSTEMS[0]).with_bound(5, trusted=True)
    x.to_zarr(tmp_path / "x.zarr", chunks=2)
    blocks = Blocks.of(store.open_info(tmp_path / "x.zarr"))
    with pytest.raises(NumberError, match="the number at flat index 2 is"):
        reduce(blocks, "bound")


def test_first_calls_on_a_gpu_are_made_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reduction has kernels of its own."""
    calls: set[tuple[Any, ...]] = set()

    def first_alone(function: Callable[..., Any], *kind: Any) -> AbstractContextManager[None]:
        calls.add((function.__name__, *kind))
        return nullcontext()

    blocks = Blocks.of(write(tmp_path / "x.zarr", range(300), SYSTEMS[0], 100))
    monkeypatch.setattr(call, "uses_gpu", lambda *_: True)
    monkeypatch.setattr(call, "first_alone", first_alone)
    for operation in ("max", "sum"):
        reduce(blocks, operation)
    summarize(blocks)
    assert {(name, operation) for name, _, operation, *_ in calls} == {
        ("reduce_chunk", "max"),
        ("reduce_chunk", "sum"),
        ("summarize_chunk", None),
    }
