"""Stores against Zarr itself as the oracle, and everything that may be wrong with one."""

import json
import os
import pickle
import re
import resource
import shutil
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
from dask.base import tokenize
from documents import checksum_of, crc32c
from numpy.typing import NDArray
from strategies import STORE_SET
from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec

from rnsdask import store
from rnsdask.core.errors import CorruptChunkError, IncompleteStoreError, StoreError
from rnsdask.core.moduli import ModuliSet
from rnsdask.jobs.hashes import input_of
from rnsdask.rns.system import RNS
from rnsdask.store import StoreInfo, chunk_files

MODULI = STORE_SET
BOUND = MODULI.product // 2
ATTRIBUTE = {
    "format": 1,
    "moduli": list(MODULI),
    "signed": False,
    "bound": None,
    "complete": True,
}


def without_checksums(attribute: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attribute.items() if name in ATTRIBUTE}


def random_residues(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """Random residues; the first number is 0 and the last M - 1, all residues at their largest."""
    rows = [rng.integers(0, m, size=shape, dtype=np.uint64) for m in MODULI]
    residues = np.stack(rows).astype(np.uint32)
    flat = residues.reshape(len(MODULI), -1)
    flat[:, 0] = 0
    flat[:, -1] = [m - 1 for m in MODULI]
    return residues


def slices_of(info: StoreInfo, index: tuple[int, ...]) -> tuple[slice, ...]:
    """The part of a residue array that is in a chunk; NumPy cuts it at the edge."""
    return (slice(None), *(slice(i * c, (i + 1) * c) for i, c in zip(index, info.chunks, strict=True)))


def write(
    path: Any, residues: NDArray[np.uint32], *, signed: bool = False, bound: int | None = None, **options: Any
) -> StoreInfo:
    writer = store.create(path, RNS(MODULI, signed, bound), residues.shape[1:], **options)
    for index in writer.info.indices():
        writer.write_chunk(index, residues[slices_of(writer.info, index)])
    return writer.finish()


def read(info: StoreInfo) -> NDArray[np.uint32]:
    residues = np.full((len(info.moduli), *info.shape), 0xDEADBEEF, np.uint32)
    for index in info.indices():
        residues[slices_of(info, index)] = store.read_chunk(info, index)
    return residues


@pytest.fixture(params=["default", "zstd", "memory", "memory-zstd"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """A path and options of `create`: chunk files on a local disk, and what goes through Zarr's codecs."""
    options = {"codecs": [ZstdCodec(level=1)]} if request.param.endswith("zstd") else {}
    if not request.param.startswith("memory"):
        yield str(tmp_path / "x.zarr"), options
        return
    yield "memory://test-store/x.zarr", options
    file_system = fsspec.filesystem("memory")
    if file_system.exists("/test-store"):
        file_system.rm("/test-store", recursive=True)


def file_path(path: str, key: str) -> tuple[fsspec.AbstractFileSystem, str]:
    file_system, root = fsspec.core.url_to_fs(path)
    return file_system, f"{root}/{key}"


# Round trips

SHAPES = [
    ((1,), 128),
    ((127,), "auto"),
    ((128,), 128),
    ((129,), 128),
    ((1000,), (256,)),
    ((5, 7), (2, 7)),
    ((5, 300), (2, 128)),
    ((3, 2, 200), (2, 2, 128)),
]


@pytest.mark.parametrize(("shape", "chunks"), SHAPES)
def test_round_trip(
    place: tuple[str, dict[str, Any]], shape: tuple[int, ...], chunks: Any, rng: np.random.Generator
) -> None:
    path, options = place
    residues = random_residues(rng, shape)
    written = write(path, residues, chunks=chunks, signed=True, bound=BOUND, **options)
    info = store.open_info(path)
    assert info == written
    assert (info.path, info.moduli, info.shape) == (path, MODULI, shape)
    assert (info.system.signed, info.system.bound) == (True, BOUND)
    assert info.count == residues[0].size
    assert info.nbytes == residues.nbytes
    assert info.chunk_bytes == 4 * len(MODULI) * np.prod(info.chunks)
    assert info.n_chunks == len(list(info.indices())) == np.prod(info.grid)
    np.testing.assert_array_equal(read(info), residues)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], residues)
    for index in info.indices():
        chunk = store.read_chunk(info, index)
        assert chunk.dtype == np.uint32
        assert chunk.flags.c_contiguous
        assert chunk.flags.writeable
        chunk[...] = 0  # is not seen by the next reader
    assert list(store.verify(info)) == []


def test_chunk_files_are_those_of_zarr(tmp_path: Path, rng: np.random.Generator) -> None:
    residues = random_residues(rng, (5, 300))
    info = write(tmp_path / "own", residues, chunks=(2, 128))
    assert info.has_chunk_files
    array = zarr.create_array(
        tmp_path / "zarr",
        shape=residues.shape,
        chunks=(4, 2, 128),
        dtype="uint32",
        filters=None,
        compressors=Crc32cCodec(),
        fill_value=0,
        attributes=dict(zarr.open_array(tmp_path / "own", mode="r").attrs),
        dimension_names=["residue", "x0", "x1"],
        config={"write_empty_chunks": True},
    )
    array[...] = residues
    files = {p.relative_to(tmp_path / "own") for p in (tmp_path / "own").rglob("*") if p.is_file()}
    assert files == {p.relative_to(tmp_path / "zarr") for p in (tmp_path / "zarr").rglob("*") if p.is_file()}
    for name in files:
        assert (tmp_path / "own" / name).read_bytes() == (tmp_path / "zarr" / name).read_bytes(), name
    np.testing.assert_array_equal(read(store.open_info(tmp_path / "zarr")), residues)


def test_checksum_of_a_chunk_file(tmp_path: Path, rng: np.random.Generator) -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    residues = random_residues(rng, (100,))
    info = write(tmp_path / "x", residues, chunks=128)
    padded = np.zeros((len(MODULI), 128), "<u4")
    padded[:, :100] = residues
    content = padded.tobytes()
    assert info.chunk_file((0,)).read_bytes() == content + struct.pack("<I", crc32c(content))


def test_big_endian_chunks_are_no_store(tmp_path: Path, rng: np.random.Generator) -> None:
    residues = random_residues(rng, (200,))
    array = zarr.create_array(
        tmp_path / "x",
        shape=residues.shape,
        chunks=(4, 128),
        dtype="uint32",
        serializer=BytesCodec(endian="big"),
        compressors=Crc32cCodec(),
        attributes={"rnsdask": ATTRIBUTE},
    )
    array[...] = residues
    with pytest.raises(StoreError, match=re.escape("must be bytes(endian=little), got bytes(endian=big)")):
        store.open_info(tmp_path / "x")


def test_an_array_of_zeros_is_on_disk(place: tuple[str, dict[str, Any]]) -> None:
    path, options = place
    info = write(path, np.zeros((4, 300), np.uint32), chunks=128, **options)
    file_system, root = fsspec.core.url_to_fs(path)
    assert len(file_system.find(root)) == 3 + 1
    assert not read(info).any()


def test_an_empty_array(tmp_path: Path) -> None:
    info = write(tmp_path / "x", np.zeros((4, 0), np.uint32), chunks=128)
    assert (info.count, info.n_chunks, list(info.indices())) == (0, 0, [])
    assert list(store.verify(info)) == []
    with pytest.raises(IndexError, match=re.escape("no chunk (0,) in a grid of (0,) chunks")):
        store.read_chunk(info, (0,))


def test_512_moduli(tmp_path: Path) -> None:
    moduli = ModuliSet.for_bits(511 * 32)
    assert len(moduli) == 512
    writer = store.create(tmp_path / "x", RNS(moduli, bound=moduli.product - 1), (128,))
    writer.write_chunk((0,), np.ones((512, 128), np.uint32))
    writer.finish()
    info = store.open_info(tmp_path / "x")
    assert info.moduli == moduli
    assert info.system.bound == moduli.product - 1


def test_the_same_numbers_make_the_same_files(tmp_path: Path, rng: np.random.Generator) -> None:
    residues = random_residues(rng, (300,))
    first, second = (write(tmp_path / name, residues, chunks=128) for name in "ab")
    for key in ("zarr.json", *map(first.chunk_key, first.indices())):
        assert Path(first.path, key).read_bytes() == Path(second.path, key).read_bytes()


@pytest.mark.parametrize("edge", [(-1,), (3,), (0, 0), ()])
def test_no_such_chunk(tmp_path: Path, edge: tuple[int, ...]) -> None:
    info = write(tmp_path / "x", np.zeros((4, 300), np.uint32), chunks=128)
    with pytest.raises(IndexError, match=re.escape(f"no chunk {edge} in a grid of (3,) chunks")):
        store.read_chunk(info, edge)
    with pytest.raises(IndexError, match="no chunk"):
        store.create(tmp_path / "y", RNS(MODULI), (300,), chunks=128).write_chunk(
            edge, np.zeros((4, 128), np.uint32)
        )


# Memory of chunks that are gone is used again, never while anything refers to it.


def test_memory_is_not_lent_twice(tmp_path: Path) -> None:
    blocks = [np.full((4, 128), value, np.uint32) for value in range(6)]
    info = write(tmp_path / "x", np.concatenate(blocks, axis=1), chunks=128)
    views = []
    for i in range(6):
        views.append(store.read_chunk(info, (i,))[1:3, ::2].T)
        if i % 2:
            views.pop(0)  # its memory may serve the next
    held = [3, 4, 5]
    assert [int(view[0, 0]) for view in views] == held
    assert all((view == value).all() for view, value in zip(views, held, strict=True))


def test_memory_is_reused() -> None:
    pool = chunk_files.BufferPool(idle_buffers=2)
    size = 10**6
    tracemalloc.start()
    arrays = [pool.take(size) for _ in range(4)]
    addresses = {array.ctypes.data for array in arrays}
    assert len(addresses) == 4
    view = arrays[0].reshape(10, -1)[3]
    del arrays
    assert buffers_of(size) == 3  # the one in use, and two of the three that nothing refers to
    again = [pool.take(size) for _ in range(2)]
    assert {array.ctypes.data for array in again} <= addresses
    assert not any(np.shares_memory(array, view) for array in again)
    del again
    pool.take(999)
    assert buffers_of(size) == 1  # memory of another size is let go
    tracemalloc.stop()


def buffers_of(words: int) -> int:
    """How many buffers of so many words there are."""
    return round(tracemalloc.get_traced_memory()[0] / (4 * words))


# Paths


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    residues = np.zeros((4, 10), np.uint32)
    path = tmp_path / "with a space.zarr"
    expected = str(path)
    assert write(path, residues).path == expected
    monkeypatch.chdir(tmp_path)
    for given in (expected, expected + "/", path, f"file://{expected}", path.name, f"./{path.name}/"):
        info = store.open_info(given)
        assert info.path == expected
        np.testing.assert_array_equal(read(info), residues)


def test_a_path_of_a_wrong_kind() -> None:
    with pytest.raises(TypeError, match="a store's path must be a str or path-like, got bytes"):
        store.open_info(b"x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a store's path must not be empty"):
        store.open_info("")
    with pytest.raises(StoreError, match=re.escape("nowhere://x: Protocol not known: nowhere")):
        store.open_info("nowhere://x")


def test_a_symbolic_link_is_followed_and_kept(tmp_path: Path) -> None:
    write(tmp_path / "target", np.zeros((4, 10), np.uint32))
    (tmp_path / "link").symlink_to(tmp_path / "target")
    info = write(tmp_path / "link", np.ones((4, 20), np.uint32), overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert read(info).all()
    assert store.open_info(tmp_path / "target").shape == (20,)


@pytest.mark.parametrize("linked", ["c", "c/0", "c/0/1"])
def test_chunks_behind_links(tmp_path: Path, linked: str) -> None:
    """Links lead to chunks that have moved to another disk: their targets count."""
    info = write(tmp_path / "x", np.zeros((4, 500), np.uint32), chunks=128)
    (tmp_path / "x" / linked).rename(tmp_path / "moved")
    (tmp_path / "x" / linked).symlink_to(tmp_path / "moved")
    assert list(store.verify(info)) == []
    before = input_of(info)
    content = (tmp_path / "x/c/0/1").read_bytes()
    (tmp_path / "x/c/0/1").write_bytes(content[:-1] + b"?")
    assert input_of(info) != before
    (tmp_path / "x/c/0/1").write_bytes(content)
    assert input_of(info) == before
    document = json.loads((tmp_path / "x/zarr.json").read_text())
    document["attributes"]["rnsdask"]["complete"] = False
    (tmp_path / "x/zarr.json").write_text(json.dumps(document))
    writer = store.resume(tmp_path / "x")
    assert writer.missing_chunks() == []
    assert read(writer.finish()).shape == (4, 500)


# Other readers


def test_dimension_names(tmp_path: Path) -> None:
    for shape, names in (((10,), ("residue", "x")), ((2, 10), ("residue", "x0", "x1"))):
        write(tmp_path / "x", np.zeros((4, *shape), np.uint32), overwrite=True)
        array = zarr.open_array(tmp_path / "x", mode="r")
        assert array.metadata.dimension_names == names
        assert without_checksums(array.attrs["rnsdask"]) == ATTRIBUTE


def test_xarray_opens_a_store_in_a_group(tmp_path: Path, rng: np.random.Generator) -> None:
    xarray = pytest.importorskip("xarray")
    zarr.create_group(tmp_path / "group")
    residues = random_residues(rng, (300,))
    write(tmp_path / "group" / "numbers", residues, chunks=128)
    with xarray.open_zarr(tmp_path / "group", consolidated=False) as dataset:
        numbers = dataset["numbers"]
        assert numbers.dims == ("residue", "x")
        assert numbers.chunks == ((4,), (128, 128, 44))
        assert without_checksums(numbers.attrs["rnsdask"]) == ATTRIBUTE
        np.testing.assert_array_equal(numbers.values, residues)


# Writing


def test_writing_from_threads(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    residues = random_residues(rng, (128 * 40 + 5,))
    writer = store.create(path, RNS(MODULI), residues.shape[1:], chunks=128, **options)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):  # each chunk by two threads
            list(
                pool.map(
                    lambda i: writer.write_chunk(i, residues[slices_of(writer.info, i)]),
                    writer.info.indices(),
                )
            )
    info = writer.finish()
    with ThreadPoolExecutor(8) as pool:
        for index, chunk in zip(
            info.indices(), pool.map(lambda i: store.read_chunk(info, i), info.indices()), strict=True
        ):
            np.testing.assert_array_equal(chunk, residues[slices_of(info, index)])


def test_a_pickled_writer_writes(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    residues = random_residues(rng, (300,))
    writer = store.create(path, RNS(MODULI), (300,), chunks=128, **options)
    writer.write_chunk((0,), residues[:, :128])
    for index in ((1,), (2,)):
        copy = pickle.loads(pickle.dumps(writer))
        assert tokenize(copy) == tokenize(writer)
        copy.write_chunk(index, residues[slices_of(writer.info, index)])
    np.testing.assert_array_equal(read(writer.finish()), residues)


def test_growing(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    residues = random_residues(rng, (300,))
    writer = store.create(path, RNS(MODULI), (0,), chunks=128, **options)
    for i, length in enumerate((128, 256, 300)):
        writer.resize((length,))
        writer.write_chunk((i,), residues[:, 128 * i : length])
    info = writer.finish(bound=99)
    assert (info.shape, info.system.bound) == ((300,), 99)
    np.testing.assert_array_equal(read(store.open_info(path)), residues)


def test_growing_is_refused_where_it_would_make_numbers_up(tmp_path: Path) -> None:
    writer = store.create(tmp_path / "x", RNS(MODULI), (200,), chunks=128)
    writer.resize((210,))
    writer.write_chunk((1,), np.ones((4, 82), np.uint32))
    writer.resize((210,))
    with pytest.raises(ValueError, match="chunk c/0/1 is written and has 82 numbers of 128"):
        writer.resize((256,))
    with pytest.raises(ValueError, match="an array can only grow, not from length 210 to 100"):
        writer.resize((100,))
    for shape in ((2, 10), ()):
        with pytest.raises(ValueError, match="only a one-dimensional array can grow"):
            writer.resize(shape)
    with pytest.raises(
        ValueError, match=re.escape("only a one-dimensional array can grow, not (2, 10) to (20,)")
    ):
        store.create(tmp_path / "y", RNS(MODULI), (2, 10)).resize((20,))


@pytest.mark.parametrize(
    ("residues", "error", "message"),
    [
        (np.zeros((4, 128), np.int64), TypeError, "must have dtype uint32, got int64"),
        (np.zeros((4, 100), np.uint32), ValueError, "has shape (4, 128), got residues of shape (4, 100)"),
        (np.zeros((3, 128), np.uint32), ValueError, "one row for each of the 4 moduli, got shape (3, 128)"),
        (np.zeros((4, 2, 64), np.uint32), ValueError, "has shape (4, 128), got residues of shape (4, 2, 64)"),
        ([[0] * 128] * 4, TypeError, "must be given as a NumPy or CuPy array, got list"),
        (
            np.full((4, 128), 7, np.uint32),
            ValueError,
            "c/0/1: residue 7 of number 128 is not below its modulus 7 (row 2) (and 127 more in the row)",
        ),
    ],
)
def test_wrong_chunks_are_not_written(
    tmp_path: Path, residues: Any, error: type[Exception], message: str
) -> None:
    writer = store.create(tmp_path / "x", RNS(MODULI), (256,), chunks=128)
    with pytest.raises(error, match=re.escape(message)):
        writer.write_chunk((1,), residues)
    assert writer.missing_chunks() == [(0,), (1,)]


def test_a_failing_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = store.create(tmp_path / "x", RNS(MODULI), (128,))
    with (
        files_of_at_most(1000),
        pytest.raises(StoreError, match=re.escape("chunk c/0/0 cannot be written: File too large")),
    ):
        writer.write_chunk((0,), np.ones((4, 128), np.uint32))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["zarr.json"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A limit of the system to the bytes of files that are written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=re.escape(f"{tmp_path}/file/x: it cannot be written")):
        store.create(tmp_path / "file" / "x", RNS(MODULI), (128,))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shape": (10.0,)}, TypeError, "length of axis 0 must be an integer, got 10.0"),
        ({"shape": ()}, ValueError, "at least one axis"),
        ({"shape": (-1,)}, ValueError, "shape must not be negative"),
        ({"chunks": 0}, ValueError, "a chunk's length must be at least 1, got 0"),
        ({"codecs": ["nonsense"]}, TypeError, "Expected a BytesBytesCodec"),
    ],
)
def test_wrong_parameters_replace_nothing(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    write(tmp_path / "x", np.zeros((4, 256), np.uint32))
    parameters = {"shape": (256,), "overwrite": True} | options
    with pytest.raises(error, match=message):
        store.create(tmp_path / "x", RNS(MODULI), **parameters)
    assert list(store.verify(store.open_info(tmp_path / "x"))) == []


def test_the_largest_bounds(tmp_path: Path) -> None:
    for signed, bound in ((False, MODULI.product - 1), (True, MODULI.product // 2)):
        write(tmp_path / "x", np.zeros((4, 1), np.uint32), bound=bound, signed=signed, overwrite=True)
        assert store.open_info(tmp_path / "x").system.bound == bound


# Overwriting


def test_overwriting(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    first = write(path, random_residues(rng, (1000,)), chunks=128, **options)
    with pytest.raises(StoreError, match=re.escape(f"{path}: it exists; replace it with overwrite=True")):
        store.create(path, RNS(MODULI), (10,), **options)
    assert store.open_info(path) == first
    residues = random_residues(rng, (200,))
    second = write(path, residues, chunks=128, overwrite=True, **options)
    np.testing.assert_array_equal(read(second), residues)
    assert list(store.verify(second)) == []


def test_an_empty_folder_is_no_obstacle(tmp_path: Path) -> None:
    write(tmp_path, np.zeros((4, 10), np.uint32))
    assert store.open_info(tmp_path).shape == (10,)


def test_any_zarr_array_can_be_replaced(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x", shape=(10,), dtype="float64")
    write(tmp_path / "x", np.zeros((4, 10), np.uint32), overwrite=True)


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("")


def make_folder_with_json(path: Path) -> None:
    make_folder(path)
    (path / "zarr.json").write_text('{"node_type": "other"}')


def make_folder_with_broken_json(path: Path) -> None:
    path.mkdir()
    (path / "zarr.json").write_text("{")


def make_group(path: Path) -> None:
    zarr.create_array(zarr.create_group(path).store, name="a", shape=(1,), dtype="uint8")


def make_array_with_notes(path: Path) -> None:
    write(path, np.zeros((4, 10), np.uint32))
    for name in ("a", "b", "notes.txt", "z"):
        (path / name).write_text("")


def make_version_2(path: Path) -> None:
    zarr.create_array(path, shape=(10,), dtype="uint32", zarr_format=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.touch, "it exists and is not a Zarr array"),
        (make_folder, "it exists and is not a Zarr array, but a folder with thesis.tex"),
        (make_folder_with_json, "is not a Zarr array, but a folder with thesis.tex, zarr.json"),
        (make_folder_with_broken_json, "is not a Zarr array, but a folder with zarr.json"),
        (make_group, "is not a Zarr array, but a folder with a, zarr.json"),
        (make_version_2, "is not a Zarr array, but a folder with .zarray"),
        (make_array_with_notes, "it is not replaced, because it also holds a, b, notes.txt and 1 more"),
    ],
)
def test_nothing_else_is_replaced(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "x"
    make(path)
    before = sorted(path.rglob("*"))
    with pytest.raises(StoreError, match=re.escape(f"{path}: ") + ".*" + re.escape(message)):
        store.create(path, RNS(MODULI), (10,), overwrite=True)
    assert sorted(path.rglob("*")) == before


# Completeness


def test_incomplete(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    residues = random_residues(rng, (300,))
    writer = store.create(path, RNS(MODULI), (300,), chunks=128, **options)
    writer.write_chunk((1,), residues[:, 128:256])
    with pytest.raises(
        IncompleteStoreError, match=re.escape(f"{path}: the store is incomplete") + ".*overwrite=True"
    ):
        store.open_info(path)
    writer = store.resume(path)
    assert writer.missing_chunks() == [(0,), (2,)]
    message = "it cannot be completed: 2 of 3 chunks are not written, the first of them c/0/0"
    with pytest.raises(StoreError, match=re.escape(f"{path}: {message}")):
        writer.finish()
    with pytest.raises(IncompleteStoreError):
        store.open_info(path)
    for index in writer.missing_chunks():
        writer.write_chunk(index, residues[slices_of(writer.info, index)])
    with pytest.raises(ValueError, match="bound must be from 0 to"):
        writer.finish(bound=MODULI.product)
    np.testing.assert_array_equal(read(writer.finish()), residues)
    with pytest.raises(
        StoreError, match=re.escape(f"{path}: the store is complete: there is nothing to resume")
    ):
        store.resume(path)


def test_what_an_interruption_leaves_is_cleared(tmp_path: Path) -> None:
    writer = store.create(tmp_path / "x", RNS(MODULI), (200,), chunks=128)
    writer.write_chunk((0,), np.zeros((4, 128), np.uint32))
    writer.write_chunk((1,), np.zeros((4, 72), np.uint32))
    (tmp_path / "x.partial/c/0/1").write_bytes(b"half")
    (tmp_path / "x.partial/.partial/1.00ff.partial").write_bytes(b"half")
    writer = store.resume(tmp_path / "x")
    assert writer.missing_chunks() == [(1,)]
    writer.write_chunk((1,), np.zeros((4, 72), np.uint32))
    assert list(store.verify(writer.finish())) == []


# Metadata


def edit(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change the metadata document, and the attribute within, as another program would write it."""
    document = json.loads((path / "zarr.json").read_text())
    attribute = document["attributes"]["rnsdask"]
    for name in ("checksum", "content", "digest"):
        attribute.pop(name, None)
    change(document, attribute)
    if attribute.keys() == ATTRIBUTE.keys():
        attribute["checksum"] = checksum_of(document)
    (path / "zarr.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": 3}, "it is of format 3; this version of rnsdask reads formats 1 and 2"),
        (
            {"format": 2},
            "system must be the name of a number system, got None",
        ),
        ({"format": True}, "it is of format True"),
        ({"format": None}, "it is of format None"),
        ({"moduli": [4, 6, 7, 11]}, "moduli 4 (position 0) and 6 (position 1) are not coprime"),
        ({"moduli": [4, 1, 7, 11]}, "modulus 1 (position 1) is out of bounds"),
        ({"moduli": [2**33, 3, 7, 11]}, "modulus 8589934592 (position 0) is out of bounds"),
        ({"moduli": [4, 3.0, 7, 11]}, "modulus at position 1 must be an integer, got 3.0"),
        ({"moduli": []}, "a moduli set needs at least one modulus"),
        ({"moduli": "7"}, "moduli must be a list, got '7'"),
        ({"moduli": [2, 3, 5]}, "its residue axis (axis 0) has 4 rows, its number system 3"),
        ({"signed": 1}, "signed must be true or false, got 1"),
        ({"complete": "yes"}, "complete must be true or false, got 'yes'"),
        ({"bound": 17}, "bound must be null or a hexadecimal string like 0x1f, got 17"),
        ({"bound": "17"}, "bound must be null or a hexadecimal string like 0x1f, got '17'"),
        ({"bound": "-0x1"}, "bound must be null or a hexadecimal string like 0x1f, got '-0x1'"),
        ({"bound": hex(MODULI.product)}, "bound must be from 0 to"),
    ],
)
def test_wrong_attributes(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    path = tmp_path / "x"
    write(path, np.zeros((4, 300), np.uint32), chunks=128)
    edit(path, lambda _, attribute: attribute.update(fields))
    with pytest.raises(StoreError, match=re.escape(f"{path}: {message}")):
        store.open_info(path)


@pytest.mark.parametrize("name", ["format", "moduli", "signed", "bound", "complete"])
def test_absent_attributes(tmp_path: Path, name: str) -> None:
    write(tmp_path / "x", np.zeros((4, 300), np.uint32), chunks=128)
    edit(tmp_path / "x", lambda _, attribute: attribute.pop(name))
    message = "it is of format None" if name == "format" else f"attribute 'rnsdask' has no {name}"
    with pytest.raises(StoreError, match=message):
        store.open_info(tmp_path / "x")


def test_a_bound_of_many_digits(tmp_path: Path) -> None:
    write(tmp_path / "x", np.zeros((4, 10), np.uint32))
    edit(tmp_path / "x", lambda _, attribute: attribute.update(bound="0X000" + "1fF"))
    assert store.open_info(tmp_path / "x").system.bound == 0x1FF


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int32"}, "its dtype must be uint32, got int32"),
        ({"dtype": "float64"}, "its dtype must be uint32, got float64"),
        ({"shape": (4,), "chunks": (4,)}, "it must have a residue axis and at least one axis of numbers"),
        ({"shape": (5, 300)}, "its residue axis (axis 0) has 5 rows, its number system 4"),
        ({"chunks": (2, 128)}, "its residue axis (axis 0) of 4 rows is cut into chunks of 2"),
        ({"chunks": (8, 128)}, "its residue axis (axis 0) of 4 rows is cut into chunks of 8"),
        (
            {"compressors": None},
            "its codecs must include crc32c, which shows damage; got bytes(endian=little)",
        ),
        ({"compressors": ZstdCodec(level=2)}, "got bytes(endian=little), zstd(level=2, checksum=False)"),
        (
            {"chunk_key_encoding": {"name": "default", "separator": "."}},
            "its chunks must have keys like c/0/1, got the key encoding",
        ),
        ({"attributes": {}}, "it is a Zarr array, but not a store of rnsdask: it has no attribute 'rnsdask'"),
        ({"attributes": {"rnsdask": [1]}}, "attribute 'rnsdask' must be an object, got [1]"),
    ],
)
def test_wrong_arrays(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = tmp_path / "x"
    defaults = {
        "shape": (4, 300),
        "chunks": (4, 128),
        "dtype": "uint32",
        "compressors": Crc32cCodec(),
        "attributes": {"rnsdask": ATTRIBUTE},
    }
    zarr.create_array(path, **(defaults | options))
    with pytest.raises(StoreError, match=re.escape(f"{path}: ") + ".*" + re.escape(message)):
        store.open_info(path)


def write_text(text: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        (path / "zarr.json").write_text(text)

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.exists, "there is no such store"),
        (Path.touch, "it is a file, not a Zarr store"),
        (Path.mkdir, "it is not a Zarr store: it has no zarr.json"),
        (make_folder, "it is not a Zarr store: it has no zarr.json"),
        (make_version_2, "it is of Zarr format 2; a store of rnsdask is of Zarr format 3"),
        (zarr.create_group, "it is a Zarr group, not an array"),
        (write_text("{"), "Zarr cannot read its zarr.json: JSONDecodeError"),
        (write_text(""), "Zarr cannot read its zarr.json: JSONDecodeError"),
        (write_text('{"zarr_format": 3, "node_type": "array"}'), "Zarr cannot read its zarr.json: "),
        (write_text("[]"), "Zarr cannot read its zarr.json: "),
    ],
)
def test_no_store(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "x"
    make(path)
    for function in (store.open_info, store.resume):
        with pytest.raises(StoreError, match=re.escape(f"{path}: {message}")):
            function(path)


def test_no_store_in_memory() -> None:
    with pytest.raises(StoreError, match=re.escape("memory://test-store/none: there is no such store")):
        store.open_info("memory://test-store/none/")


# Identity


def test_an_overwritten_store_has_another_token(place: tuple[str, dict[str, Any]]) -> None:
    path, options = place
    residues = np.zeros((4, 10), np.uint32)
    tokens = set()
    for value in range(5):
        residues[...] = value
        write(path, residues, overwrite=True, **options)
        tokens.add(tokenize(store.open_info(path)))
        assert tokenize(store.open_info(path)) in tokens
    assert len(tokens) == 5


def test_two_stores_have_two_tokens(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, np.zeros((4, 10), np.uint32)) for name in "ab")
    assert tokenize(first) != tokenize(second)


def test_info_is_hashable_and_pickled(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    residues = random_residues(rng, (300,))
    info = write(path, residues, chunks=128, **options)
    copy = pickle.loads(pickle.dumps(info))
    assert (copy, hash(copy), tokenize(copy)) == (info, hash(info), tokenize(info))
    np.testing.assert_array_equal(read(copy), residues)


# Damage


def damage(path: str, key: str, change: Callable[[bytearray], object]) -> None:
    file_system, name = file_path(path, key)
    content = bytearray(file_system.cat_file(name))
    change(content)
    file_system.pipe_file(name, bytes(content))


def expect_problem(path: str, message: str) -> None:
    """Chunk c/0/1 cannot be read; the others can; a verification finds just this."""
    info = store.open_info(path)
    with pytest.raises(CorruptChunkError, match="^" + re.escape(f"{path}: chunk c/0/1 {message}")):
        store.read_chunk(info, (1,))
    store.read_chunk(info, (0,))
    store.read_chunk(info, (2,))
    (problem,) = store.verify(info)
    assert problem.startswith(f"{path}: chunk c/0/1 {message}")


@pytest.mark.parametrize("position", [0, 1, 127, 512, 1024, 2047, -5, -4, -1])
def test_a_flipped_bit(place: tuple[str, dict[str, Any]], position: int, rng: np.random.Generator) -> None:
    path, options = place
    bit = int(rng.integers(8))
    write(path, random_residues(rng, (300,)), chunks=128, **options)

    def flip(content: bytearray) -> None:
        content[position % len(content)] ^= 1 << bit

    damage(path, "c/0/1", flip)
    expect_problem(path, "is corrupt: ")


def test_a_flipped_bit_of_the_padding(tmp_path: Path, rng: np.random.Generator) -> None:
    info = write(tmp_path / "x", random_residues(rng, (100,)), chunks=128)
    damage(info.path, "c/0/0", lambda content: content.__setitem__(4 * 120, 1))
    with pytest.raises(CorruptChunkError, match="chunk c/0/0 is corrupt: its CRC-32C is 0x"):
        store.read_chunk(info, (0,))


@pytest.mark.parametrize("length", [0, 1, 4, 2047, 2051])
def test_a_truncated_chunk(place: tuple[str, dict[str, Any]], length: int, rng: np.random.Generator) -> None:
    path, options = place
    write(path, random_residues(rng, (300,)), chunks=128, **options)
    damage(path, "c/0/1", lambda content: content.__delitem__(slice(min(length, len(content) - 1), None)))
    direct = store.open_info(path).has_chunk_files
    expect_problem(
        path, f"has {length} bytes; its residues and checksum take 2052 bytes" if direct else "is corrupt: "
    )


def test_a_chunk_with_more_at_its_end(place: tuple[str, dict[str, Any]], rng: np.random.Generator) -> None:
    path, options = place
    write(path, random_residues(rng, (300,)), chunks=128, **options)
    damage(path, "c/0/1", lambda content: content.extend(b"more"))
    expect_problem(path, "has 2056 bytes" if store.open_info(path).has_chunk_files else "is corrupt: ")


def test_a_missing_chunk(place: tuple[str, dict[str, Any]]) -> None:
    path, options = place
    write(path, np.zeros((4, 300), np.uint32), chunks=128, **options)
    file_system, name = file_path(path, "c/0/1")
    file_system.rm_file(name)
    expect_problem(path, "is missing")


def test_chunks_swapped_for_others_of_zarr(place: tuple[str, dict[str, Any]]) -> None:
    """A chunk that Zarr has taken out because it is all zeros is missing, not zero."""
    path, options = place
    write(path, np.ones((4, 300), np.uint32), chunks=128, **options)
    zarr.open_array(path, mode="r+")[:, 128:256] = 0
    expect_problem(path, "is missing")


@pytest.mark.parametrize("codecs", [None, [ZstdCodec()]])
def test_a_chunk_that_cannot_be_read(tmp_path: Path, codecs: Any) -> None:
    info = write(tmp_path / "x", np.zeros((4, 300), np.uint32), chunks=128, codecs=codecs)
    (tmp_path / "x/c/0/1").unlink()
    (tmp_path / "x/c/0/1").mkdir()
    with pytest.raises(StoreError, match=r"chunk c/0/1 cannot be read: .*Is a directory"):
        store.read_chunk(info, (1,))
    assert any("cannot be read" in problem for problem in store.verify(info))


@pytest.mark.parametrize("how", ["at once", "in part"])
def test_a_chunk_that_shrinks_while_it_is_read(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    info = write(tmp_path / "x", random_residues(rng, (2**17,)))
    read: Any = partial(store.read_part, start=9, stop=99) if how == "in part" else store.read_chunk
    file = info.chunk_file((0,))
    content, status = file.read_bytes(), file.stat()
    monkeypatch.setattr(os, "fstat", lambda _: status)
    for length in (0, 1, len(content) // 2, len(content) - 4, len(content) - 1):
        file.write_bytes(content)
        read(info, (0,))  # leaves the right content in memory that is used again
        os.truncate(file, length)
        with pytest.raises(CorruptChunkError, match=f"chunk c/0/0 has {length} bytes; its residues"):
            read(info, (0,))


def test_verify_names_what_is_wrong(tmp_path: Path, rng: np.random.Generator) -> None:
    residues = random_residues(rng, (5, 300))
    info = write(tmp_path / "x", residues, chunks=(2, 128))
    array = zarr.open_array(tmp_path / "x", mode="r+")
    array[2, 3, 200] = 7
    array[2, 3, 210] = 2**32 - 1
    array[3, 3, 129] = 65519
    array[1, 4, 299] = 2**32 - 1
    (tmp_path / "x/c/0/2/7").write_bytes(b"")
    (tmp_path / "x/c/1").mkdir()
    (tmp_path / "x/c/1/0").write_bytes(b"")
    (tmp_path / "x/notes.txt").write_bytes(b"")
    (tmp_path / "x/c/0/0/0").unlink()
    lines = [
        "file c/0/2/7 does not belong to the store",
        "file c/1/0 does not belong to the store",
        "file notes.txt does not belong to the store",
        "chunk c/0/0/0 is missing",
        "chunk c/0/1/1: residue 7 of number (3, 200) is not below its modulus 7 (row 2)"
        " (and 1 more in the row)",
        "chunk c/0/1/1: residue 65519 of number (3, 129) is not below its modulus 65519 (row 3)",
        "chunk c/0/2/2: residue 4294967295 of number (4, 299) is not below its modulus 4294967295 (row 1)",
    ]
    expected = [f"{tmp_path}/x: {line}" for line in lines]
    assert list(store.verify(info)) == expected
    with ThreadPoolExecutor(4) as pool:
        assert list(store.verify(info, map_chunks=pool.map)) == expected


def test_verify_reads_one_chunk_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = write(tmp_path / "x", np.zeros((4, 1000), np.uint32), chunks=128)
    read_indices = []

    def counted(info: StoreInfo, index: tuple[int, ...]) -> NDArray[np.uint32]:
        read_indices.append(index)
        raise CorruptChunkError("it is not as it was")

    monkeypatch.setattr(store.reading, "read_chunk", counted)
    problems = store.verify(info)
    assert read_indices == []
    next(problems)
    assert read_indices == [(0,)]


def test_copied_stores_are_stores(tmp_path: Path, rng: np.random.Generator) -> None:
    residues = random_residues(rng, (300,))
    write(tmp_path / "x", residues, chunks=128)
    shutil.copytree(tmp_path / "x", tmp_path / "y")
    np.testing.assert_array_equal(read(store.open_info(tmp_path / "y")), residues)
