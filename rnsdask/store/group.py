"""Groups: an array of residues, which is a store of its own, and further arrays of facts about its numbers.

The arrays of a group have the same shape and chunks. Every chunk is on disk and has a checksum, as in a store
of residues, and a group is complete or cannot be read.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec

from rnsdask.errors import IncompleteStoreError, StoreError
from rnsdask.layout import Chunks, chunk_slices
from rnsdask.moduli import ModuliSet
from rnsdask.store.location import (
    CHUNK_FOLDER,
    METADATA_KEY,
    StorePath,
    file_sizes,
    file_system_of,
    normalize_path,
)
from rnsdask.store.metadata import ATTRIBUTE, FORMAT, StoreInfo, open_info
from rnsdask.store.reading import decode_chunk, read_chunk
from rnsdask.store.writing import StoreWriter, create

RESIDUES = "residues"
"""Name of the array of residues in a group."""

# A part's chunks are whole residues' chunks of one value a number; a part is never compressed.
Parts = Mapping[str, np.dtype[Any]]


@dataclass(frozen=True)
class GroupInfo:
    """What there is to know about a complete group.

    Attributes
    ----------
    path : str
        Absolute path, or URL.
    residues : StoreInfo
        The store of the residues.
    parts : tuple of (name, metadata document)
        The other arrays.
    """

    path: str
    residues: StoreInfo
    parts: tuple[tuple[str, bytes], ...] = field(repr=False)

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.GroupInfo", self.path, *self.residues.__dask_tokenize__(), self.parts


def create_group(
    path: StorePath,
    kind: str,
    moduli: ModuliSet,
    shape: Sequence[int],
    parts: Parts,
    *,
    chunks: Chunks = "auto",
    overwrite: bool = False,
) -> "GroupWriter":
    """Create a group without chunks; it is incomplete until its writer has finished.

    Parameters
    ----------
    path
        A local path, or any URL of fsspec.
    kind
        What the group holds: the value that :func:`open_group` looks for.
    parts
        Names and types of the arrays beside the residues.
    overwrite
        Whether to replace a group of this kind that `path` holds already. Nothing else is ever replaced.

    Raises
    ------
    StoreError
        If `path` is taken, or cannot be written.
    """
    path = normalize_path(path)
    try:
        _make_room(path, kind, {RESIDUES, *parts}, overwrite)
        zarr.create_group(store=path, attributes={ATTRIBUTE: _attribute(kind, complete=False)})
        writer = create(f"{path}/{RESIDUES}", moduli, shape, chunks=chunks)
        for name, dtype in parts.items():
            _create_part(f"{path}/{name}", dtype, writer.info)
    except OSError as error:
        raise StoreError(f"{path}: it cannot be written: {error}") from error
    return GroupWriter(path, kind, writer, tuple(parts))


def _attribute(kind: str, complete: bool) -> dict[str, Any]:
    return {"format": FORMAT, "kind": kind, "complete": complete}


def _create_part(path: str, dtype: np.dtype[Any], residues: StoreInfo) -> None:
    ndim = len(residues.shape)
    zarr.create_array(
        store=path,
        shape=residues.shape,
        chunks=residues.chunks,
        dtype=dtype,
        filters=None,
        serializer=BytesCodec(endian="little" if dtype.itemsize > 1 else None),
        compressors=[Crc32cCodec()],
        fill_value=0,
        chunk_key_encoding={"name": "default", "separator": "/"},
        dimension_names=("x",) if ndim == 1 else tuple(f"x{axis}" for axis in range(ndim)),
    )


class GroupWriter:
    """Writes the chunks of a group, in any order, from any process; then `finish` is called once."""

    def __init__(self, path: str, kind: str, residues: StoreWriter, parts: tuple[str, ...]) -> None:
        self._path, self._kind = path, kind
        self._residues, self._parts = residues, parts

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.GroupWriter", self._path, *self._residues.__dask_tokenize__()

    def write_chunk(
        self, index: Sequence[int], residues: NDArray[np.uint32], parts: Mapping[str, NDArray[Any]]
    ) -> None:
        """Write a whole chunk of every array, each so that it appears at once or not at all.

        Raises
        ------
        IndexError, TypeError, ValueError
            As :meth:`.StoreWriter.write_chunk` does.
        StoreError
            If a chunk cannot be written.
        """
        info = self._residues.info
        self._residues.write_chunk(index, residues)
        selection = chunk_slices(index, info.shape, info.chunks)
        for name in self._parts:
            try:
                array = zarr.open_array(f"{self._path}/{name}", mode="r+")
                # Left to itself, Zarr would not write a chunk of zeros, and it would look like one lost.
                array.with_config({"write_empty_chunks": True})[selection] = parts[name]
            except OSError as error:
                raise StoreError(
                    f"{self._path}: chunk {_part_key(name, index)} cannot be written: {error}"
                ) from error

    def finish(self) -> None:
        """Declare the group complete.

        Raises
        ------
        StoreError
            If a chunk is not written.
        """
        info = self._residues.finish()
        sizes = file_sizes(self._path)
        for name in self._parts:
            for index in info.indices():
                if _part_key(name, index) not in sizes:
                    raise StoreError(
                        f"{self._path}: it cannot be completed: {_part_key(name, index)} is not written"
                    )
        group = zarr.open_group(self._path, mode="r+")
        group.attrs[ATTRIBUTE] = _attribute(self._kind, complete=True)


def _part_key(name: str, index: Sequence[int]) -> str:
    return "/".join((name, CHUNK_FOLDER, *map(str, index)))


def open_group(path: StorePath, kind: str, parts: Parts) -> GroupInfo:
    """Read and check what a complete group says about itself.

    Raises
    ------
    IncompleteStoreError
        If its writing did not finish.
    StoreError
        If there is no such group, or its arrays do not fit one another.
    """
    path = normalize_path(path)
    attribute = _group_attribute(path)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it is not a group of kind {kind!r} that rnsdask wrote")
    if attribute.get("format") != FORMAT:
        raise StoreError(f"{path}: it is of format {attribute.get('format')!r:.40}; this is {FORMAT}")
    if attribute.get("complete") is not True:
        raise IncompleteStoreError(f"{path}: the group is incomplete, because its writing did not finish")
    residues = open_info(f"{path}/{RESIDUES}")
    documents = tuple((name, _part_metadata(path, name, dtype, residues)) for name, dtype in parts.items())
    return GroupInfo(path, residues, documents)


def _group_attribute(path: str) -> dict[str, Any] | None:
    """The attribute of a group's metadata document; None if there is no such thing."""
    file_system, root = file_system_of(path)
    file_system.invalidate_cache(root)
    try:
        document = json.loads(file_system.cat_file(f"{root}/{METADATA_KEY}"))
        attribute = document["attributes"][ATTRIBUTE] if document["node_type"] == "group" else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return attribute if isinstance(attribute, dict) else None


def _part_metadata(path: str, name: str, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    file_system, root = file_system_of(f"{path}/{name}")
    try:
        metadata: bytes = file_system.cat_file(f"{root}/{METADATA_KEY}")
        document = json.loads(metadata)
        found = (
            document["data_type"],
            tuple(document["shape"]),
            tuple(document["chunk_grid"]["configuration"]["chunk_shape"]),
        )
        has_checksum = any(codec["name"] == "crc32c" for codec in document["codecs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: its array {name!r} cannot be read: {error!r}") from error
    expected = (dtype.name, residues.shape, residues.chunks)
    if found != expected:
        raise StoreError(
            f"{path}: its array {name!r} must have dtype, shape and chunks {expected}, got {found}"
        )
    if not has_checksum:
        raise StoreError(f"{path}: the codecs of its array {name!r} must include crc32c")
    return metadata


def read_group_chunk(
    info: GroupInfo, index: Sequence[int]
) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
    """Read a chunk of every array and check it.

    Raises
    ------
    CorruptChunkError
        If a chunk is missing, truncated, or does not match its checksum.
    StoreError
        If one cannot be read.
    """
    residues = read_chunk(info.residues, index)
    selection = chunk_slices(index, info.residues.shape, info.residues.chunks)
    key = "/".join((CHUNK_FOLDER, *map(str, index)))
    parts = {}
    for name, metadata in info.parts:
        label = f"{info.path}: chunk {_part_key(name, index)}"
        parts[name] = decode_chunk(f"{info.path}/{name}", metadata, key, label, selection)
    return residues, parts


def _make_room(path: str, kind: str, names: set[str], overwrite: bool) -> None:
    """Make sure that nothing is at `path`: remove a group of this kind if asked to, or refuse."""
    file_system, root = file_system_of(path)
    file_system.invalidate_cache(root)
    if not file_system.exists(root):
        return
    present = set(_names_in(file_system, root)) if file_system.isdir(root) else {""}
    if not present:
        return
    attribute = _group_attribute(path)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it exists and is not a group of kind {kind!r} that rnsdask wrote")
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with overwrite=True")
    others = present - names - {METADATA_KEY}
    if others:
        raise StoreError(f"{path}: it is not replaced, because it also holds {', '.join(sorted(others))}")
    # The metadata go last: what an interruption leaves behind can still be told for a group, and replaced.
    for name in (*sorted(present - {METADATA_KEY}), METADATA_KEY):
        file_system.rm(f"{root}/{name}", recursive=True)


def _names_in(file_system: Any, root: str) -> Iterator[str]:
    entries: Iterable[str] = file_system.ls(root, detail=False)
    return (entry.rstrip("/").rpartition("/")[2] for entry in entries)
