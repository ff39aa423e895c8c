"""Groups: an array of residues, which is a store of its own, and further arrays of facts about its numbers.

The arrays of a group have the same shape and chunks. Every chunk is on disk and has a checksum, as in a store
of residues, and a group is complete or cannot be read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec
from zarr.storage import MemoryStore

from rnsdask.errors import IncompleteStoreError, StoreAccessError, StoreError
from rnsdask.layout import Chunks, chunk_slices
from rnsdask.moduli import ModuliSet
from rnsdask.store.location import (
    CHUNK_FOLDER,
    METADATA_KEY,
    Location,
)
from rnsdask.store.metadata import (
    ATTRIBUTE,
    FORMAT,
    Files,
    StoreInfo,
    change_metadata,
    open_info,
    write_metadata,
)
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import decode_chunk, read_chunk
from rnsdask.store.writing import StoreWriter, create, encode_chunk, put_chunk

RESIDUES = "residues"
"""Name of the array of residues in a group."""

# A part's chunks are whole residues' chunks of one value a number; a part is never compressed.
Parts = Mapping[str, np.dtype[Any]]


@dataclass(frozen=True)
class GroupInfo:
    """What there is to know about a complete group.

    Attributes
    ----------
    location : Location
        Where it is; `path` is the absolute path, or the URL.
    residues : StoreInfo
        The store of the residues.
    parts : tuple of (name, metadata document)
        The other arrays.
    """

    location: Location
    residues: StoreInfo
    parts: tuple[tuple[str, bytes], ...] = field(repr=False)

    @property
    def path(self) -> str:
        """Absolute path, or URL."""
        return self.location.path

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
        Anything that `rnsdask.store.locate` takes.
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
    location = locate(path).check_writable()
    _make_room(location, kind, {RESIDUES, *parts}, overwrite)
    files: Files = {}
    zarr.create_group(store=MemoryStore(files), attributes={ATTRIBUTE: _attribute(kind, complete=False)})
    write_metadata(location, files)
    writer = create(location.child(RESIDUES), moduli, shape, chunks=chunks)
    info = writer.info
    documents = {name: _create_part(location.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(location, kind, writer, documents)


def _attribute(kind: str, complete: bool) -> dict[str, Any]:
    return {"format": FORMAT, "kind": kind, "complete": complete}


def _create_part(location: Location, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """Create one of the other arrays; return its metadata document."""
    ndim = len(residues.shape)
    files: Files = {}
    zarr.create_array(
        store=MemoryStore(files),
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
    write_metadata(location, files)
    return files[METADATA_KEY].to_bytes()


class GroupWriter:
    """Writes the chunks of a group, in any order, from any process; then `finish` is called once."""

    def __init__(
        self, location: Location, kind: str, residues: StoreWriter, parts: Mapping[str, bytes]
    ) -> None:
        self._location, self._kind = location, kind
        self._residues, self._parts = residues, parts

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.GroupWriter", self._location.path, *self._residues.__dask_tokenize__()

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
        for name, metadata in self._parts.items():
            location, key = self._location.child(name), _chunk_key(index)
            encoded = encode_chunk(metadata, key, selection, parts[name])
            label = _chunk_name(self._location, name, index)
            put_chunk(location, key, encoded, label, self._residues.check_owner)

    def finish(self) -> None:
        """Declare the group complete.

        Raises
        ------
        StoreError
            If a chunk is not written.
        """
        info = self._residues.finish()
        path, sizes = self._location.path, self._location.sizes()
        for name in self._parts:
            for index in info.indices():
                key = f"{name}/{_chunk_key(index)}"
                if key not in sizes:
                    raise StoreError(f"{path}: it cannot be completed: {key} is not written")
        attributes = {ATTRIBUTE: _attribute(self._kind, complete=True)}
        change_metadata(self._location, lambda group: group.update_attributes(attributes))


def _chunk_key(index: Sequence[int]) -> str:
    return "/".join((CHUNK_FOLDER, *map(str, index)))


def _chunk_name(location: Location, name: str, index: Sequence[int]) -> str:
    return f"{location.path}: chunk {name}/{_chunk_key(index)}"


def open_group(path: StorePath, kind: str, parts: Parts) -> GroupInfo:
    """Read and check what a complete group says about itself.

    Raises
    ------
    IncompleteStoreError
        If its writing did not finish.
    StoreError
        If there is no such group, or its arrays do not fit one another.
    """
    location = locate(path)
    path, attribute = location.path, _group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it is not a group of kind {kind!r} that rnsdask wrote")
    if attribute.get("format") != FORMAT:
        raise StoreError(f"{path}: it is of format {attribute.get('format')!r:.40}; this is {FORMAT}")
    if attribute.get("complete") is not True:
        raise IncompleteStoreError(f"{path}: the group is incomplete, because its writing did not finish")
    residues = open_info(location.child(RESIDUES))
    documents = tuple(
        (name, _part_metadata(location, name, dtype, residues)) for name, dtype in parts.items()
    )
    return GroupInfo(location, residues, documents)


def _group_attribute(location: Location) -> dict[str, Any] | None:
    """The attribute of a group's metadata document; None if there is no such thing."""
    try:
        document = json.loads(location.read(METADATA_KEY, f"{location.path}: it"))
        attribute = document["attributes"][ATTRIBUTE] if document["node_type"] == "group" else None
    except StoreAccessError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return attribute if isinstance(attribute, dict) else None


def _part_metadata(location: Location, name: str, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    path = location.path
    try:
        metadata = location.child(name).read(METADATA_KEY, f"{path}: its array {name!r}")
        document = json.loads(metadata)
        found = (
            document["data_type"],
            tuple(document["shape"]),
            tuple(document["chunk_grid"]["configuration"]["chunk_shape"]),
        )
        has_checksum = any(codec["name"] == "crc32c" for codec in document["codecs"])
    except StoreAccessError:
        raise
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
    parts = {}
    for name, metadata in info.parts:
        location, label = info.location.child(name), _chunk_name(info.location, name, index)
        parts[name] = decode_chunk(location, metadata, _chunk_key(index), label, selection)
    return residues, parts


def _make_room(location: Location, kind: str, names: set[str], overwrite: bool) -> None:
    """Make sure that nothing is at a place: remove a group of this kind if asked to, or refuse."""
    path, found = location.path, location.kind()
    if found == "nothing":
        return
    present = location.names() if found == "folder" else {""}
    if not present:
        return
    attribute = _group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it exists and is not a group of kind {kind!r} that rnsdask wrote")
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with overwrite=True")
    others = present - names - {METADATA_KEY}
    if others:
        raise StoreError(f"{path}: it is not replaced, because it also holds {', '.join(sorted(others))}")
    # The metadata go last: what an interruption leaves behind can still be told for a group, and replaced.
    for name in (*sorted(present - {METADATA_KEY}), METADATA_KEY):
        location.remove(name)
