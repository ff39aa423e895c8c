"""Metadata of stores, read and checked."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask._version import __version__
from rnsdask.core.errors import ChangedStoreError, JobError, StoreError
from rnsdask.core.layout import RESIDUE_DTYPE, ChunkPlan
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import Message, Way, with_ways
from rnsdask.store.attributes import FORMAT, check_attribute, check_checksums, incomplete_error, system_of
from rnsdask.store.beside import former, is_replaced
from rnsdask.store.codecs import ChunkCodecs, decode_chunk, describe_codecs
from rnsdask.store.content import content_of
from rnsdask.store.documents import (
    ATTRIBUTE,
    PLAIN_ATTRIBUTE,
    array_document,
    document_of,
    own_attribute,
    parse_document,
)
from rnsdask.store.location import METADATA_KEY, STAGED, Location, chunk_key
from rnsdask.store.version import Version

DEFAULT_CODECS = ("bytes(endian=little)", "crc32c")


@dataclass(frozen=True)
class ArrayInfo(ChunkPlan):
    """Metadata of an array of numbers or of values, whose chunks :class:`.ChunkPlan` describes.

    Attributes
    ----------
    location : Location
        Place of the array; `path` is its absolute path or URL.
    version : Version
        Version of the metadata document, which is compared after each chunk that is read.
    metadata : bytes
        Zarr's metadata document, where Zarr decodes the chunks; empty where chunks are read as files.
    """

    location: Location
    version: Version = field(repr=False)
    metadata: bytes = field(repr=False)

    @property
    def path(self) -> str:
        """Absolute path, or URL."""
        return self.location.path

    def chunk_key(self, index: Sequence[int]) -> str:
        """Return the name of a chunk within the array, such as ``c/17``."""
        return chunk_key(index)

    def chunk_keys(self) -> Iterator[str]:
        """Iterate over the names of all chunks' files."""
        return map(self.chunk_key, self.indices())

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what error messages call a chunk."""
        return f"{self.path}: chunk {self.chunk_key(index)}"


@dataclass(frozen=True)
class StoreInfo(ArrayInfo):
    """Metadata of a store.

    Attributes
    ----------
    system : NumberSystem
        Number system of the words, with the bound of integers where one is known.
    codecs : tuple of str
        Codecs that encode a chunk, in the order of encoding.
    content : str or None
        Hash of the checksums of all chunks; None if it is incomplete, or of an older version of the package.
    release : tuple of str and int
        Versions of the package and of the format in the process that has read the metadata.
    """

    system: Any
    codecs: tuple[str, ...]
    content: str | None = field(repr=False)
    release: tuple[str, int] = field(default=(__version__, FORMAT), repr=False)

    @property
    def moduli(self) -> ModuliSet:
        """The moduli set."""
        moduli: ModuliSet = self.system.moduli
        return moduli

    @property
    def nbytes(self) -> int:
        """Bytes of all residues, as an array in memory."""
        return 4 * self.count * int(self.system.words32)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the residues of a whole chunk, as an array in memory."""
        return 4 * self.chunk_count * int(self.system.words32)

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Shape of a whole chunk of words: the words of a number, then `chunks`."""
        return self.system.rows, *self.chunks

    @property
    def file_shape(self) -> tuple[int, ...]:
        """Shape of a chunk in the 32-bit words of its file."""
        *outer, last = self.chunk_shape
        return *outer, last * self.system.word_dtype.itemsize // RESIDUE_DTYPE.itemsize

    @property
    def has_chunk_files(self) -> bool:
        """Whether chunks are read and written as files, without Zarr's codecs."""
        return not self.metadata

    def chunk_key(self, index: Sequence[int]) -> str:
        """Return the name of a chunk within the store, such as ``c/0/17``."""
        return chunk_key((0, *index))

    def holds(self, key: str) -> bool:
        """Whether a file of this name is a chunk of the store, or a folder or link holds some."""
        above = len(self.grid) + 2 - len(key.split("/"))
        return self._is_chunk_key(key) or (above > 0 and self._is_chunk_key(key + "/0" * above))

    def _is_chunk_key(self, key: str) -> bool:
        try:
            index = tuple(map(int, key.split("/")[2:]))
        except ValueError:
            return False
        grid = self.grid
        inside = len(index) == len(grid) and all(0 <= i < n for i, n in zip(index, grid, strict=True))
        return inside and key == self.chunk_key(index)

    def chunk_file(self, index: Sequence[int]) -> Path:
        """Return the file of a chunk of a local store."""
        return Path(self.path, self.chunk_key(index))

    def decode_chunk(self, index: Sequence[int]) -> NDArray[Any]:
        """Fetch and decode the words of a chunk (rows, ...), cut at the edge; values are not checked."""
        slices = (slice(0, self.system.rows), *self.slices(index))
        name = self.chunk_name(index)
        words = decode_chunk(self.location, self.metadata, self.chunk_key(index), name, slices)
        return np.ascontiguousarray(words, self.system.word_dtype)

    def find_content(self) -> str:
        """Hash the checksums of all chunks as they are now; an intact store gives `content`."""
        return content_of(self.location, self.chunk_keys())

    def check_appendable(self) -> None:
        """Raise StoreError if nothing can be appended to it."""

    def check_release(self) -> None:
        """Raise JobError unless this process has the same version of the package as the one that sent this.

        Tasks carry a store's description to workers, and some may have joined since all were checked. An
        error in unpickling would be too early: it breaks a worker's connection, not the task.
        """
        if self.release != (__version__, FORMAT):
            sent = "rnsdask {} (store format {})".format(*self.release)
            own = f"rnsdask {__version__} (store format {FORMAT})"
            raise JobError(f"a task of {sent} came to a process that has {own}")

    def __dask_tokenize__(self) -> tuple[object, ...]:
        values = (getattr(self, f.name) for f in fields(self) if f.name != "system")
        return "rnsdask.StoreInfo", self.system.__dask_tokenize__(), *values


def load(location: Location) -> tuple[StoreInfo, bool]:
    """Read and check the metadata of the store at a place; also return whether it is complete."""
    path = location.path
    metadata = read_metadata(location)
    try:
        document = array_document(metadata)
        attributes = document.get("attributes") or {}
        if PLAIN_ATTRIBUTE in attributes and ATTRIBUTE not in attributes:
            what = "a mask" if document.get("data_type") == "bool" else "an array of machine integers"
            raise ValueError(with_ways(f"it is {what} that eval wrote, not a store of numbers", Way.MASKS))
        attribute = check_attribute(attributes.get(ATTRIBUTE))
        system = system_of(attribute)
        codecs = _check_document(document, system)
    except (TypeError, ValueError) as error:
        raise StoreError(Message(f"{path}: ", error)) from error
    check_checksums(path, attribute, parse_document(metadata))
    try:
        version = Version.read(location, metadata, tells_content="content" in attribute)
    except FileNotFoundError:
        raise ChangedStoreError(f"{path}: it was removed since it was opened") from None
    has_chunk_files = location.is_local and codecs == DEFAULT_CODECS and sys.byteorder == "little"
    info = StoreInfo(
        location=location,
        system=system,
        shape=tuple(document["shape"])[1:],
        chunks=tuple(document["chunk_grid"]["configuration"]["chunk_shape"])[1:],
        codecs=codecs,
        version=version,
        content=attribute.get("content") if attribute["complete"] else None,
        metadata=b"" if has_chunk_files else metadata,
    )
    return info, attribute["complete"]


def read_metadata(location: Location, what: str = "store") -> bytes:
    """Read the metadata of a store, or of what messages call `what`."""
    try:
        return location.read_metadata()
    except FileNotFoundError:
        raise missing_error(location, what) from None


def missing_error(location: Location, what: str = "store") -> StoreError:
    """Make the error of a place without metadata; an unfinished store, or `what`, may be next to it."""
    attribute = own_attribute(document_of(location.staged))
    is_whole = attribute.get("complete") is not False
    if is_replaced(location) or (attribute and is_whole and location.staged.exists(STAGED)):
        old = f"; until then the old one is {former(location)}" if is_replaced(location) else ""
        return StoreError(
            f"{location.path}: a job is putting it in its place, or was killed as it did; open it again, "
            f"or start that job again{old}"
        )
    if not is_whole:
        return incomplete_error(location.path, what, attribute)
    if location.exists(METADATA_KEY):
        return ChangedStoreError(f"{location.path}: a job has put it in its place just now; open it again")
    return StoreError(f"{location.path}: {_why_no_metadata(location, what)}")


def _why_no_metadata(location: Location, what: str) -> str:
    kind = location.kind()
    if kind == "nothing" or not location.lists:
        return f"there is no such {what}"
    if kind == "file":
        return "it is a file, not a Zarr store"
    if any(location.exists(name) for name in (".zarray", ".zgroup")):
        return "it is of Zarr format 2; a store of rnsdask is of Zarr format 3"
    return f"it is not a Zarr store: it has no {METADATA_KEY}"


def _check_document(document: dict[str, Any], system: NumberSystem) -> tuple[str, ...]:
    """Check Zarr's own metadata against the format, and return the codecs."""
    dtype = system.word_dtype.name
    if document["data_type"] != dtype:
        raise ValueError(f"its dtype must be {dtype}, got {document['data_type']}")
    shape = tuple(document["shape"])
    if len(shape) < 2:
        raise ValueError(f"it must have a residue axis and at least one axis of numbers, got shape {shape}")
    if shape[0] != system.rows:
        raise ValueError(f"its residue axis (axis 0) has {shape[0]} rows, its number system {system.rows}")
    grid = document["chunk_grid"]
    if (rows := grid["configuration"]["chunk_shape"][0]) != system.rows:
        raise ValueError(f"its residue axis (axis 0) of {system.rows} rows is cut into chunks of {rows}")
    check_keys(document)
    ChunkCodecs.of(document)
    codecs = describe_codecs(document)
    if codecs[0] != DEFAULT_CODECS[0]:
        raise ValueError(f"the first of its codecs must be {DEFAULT_CODECS[0]}, got {codecs[0]}")
    return codecs


def check_keys(document: dict[str, Any]) -> None:
    """Raise ValueError unless each chunk is a file of its own, with a key like c/0/1."""
    keys = document["chunk_key_encoding"]
    if keys["name"] != "default" or keys["configuration"]["separator"] != "/":
        raise ValueError(f"its chunks must have keys like c/0/1, got the key encoding {keys}")
    if document.get("storage_transformers"):
        raise ValueError(
            f"it must have no storage transformers, got {document['storage_transformers']!r:.40}"
        )
