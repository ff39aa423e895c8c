"""Reading plain Zarr arrays that rnsdask wrote: Boolean arrays and signs, one value for each number."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.layout import chunk_grid, chunk_slices, grid_indices
from rnsdask.store.attributes import PLAIN_ATTRIBUTE, incomplete_error
from rnsdask.store.codecs import ChunkCodecs
from rnsdask.store.documents import array_document
from rnsdask.store.location import METADATA_KEY, Location, chunk_key
from rnsdask.store.metadata import Opened, missing_error
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import belonging, decode_chunk

_DTYPES = ("bool", "int8", "int16", "int32", "int64")


@dataclass(frozen=True)
class PlainInfo:
    """What there is to know about a complete plain array before its chunks are read.

    Attributes
    ----------
    location : Location
        Where it is; `path` is the absolute path, or the URL.
    shape, chunks : tuple of int
        Its shape, and a chunk's length along each axis.
    dtype : numpy.dtype
        Boolean, or integers of a sign.
    identity : str
        Hash of the metadata and of when they were written.
    opened : Opened
        The metadata document, to be recognised after each chunk that is read.
    metadata : bytes
        The document itself.
    """

    location: Location
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    identity: str = field(repr=False)
    opened: Opened = field(repr=False)
    metadata: bytes = field(repr=False)

    @property
    def path(self) -> str:
        """Absolute path, or URL."""
        return self.location.path

    @property
    def count(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return math.prod(chunk_grid(self.shape, self.chunks))

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the indices of all chunks, in C order."""
        return grid_indices(chunk_grid(self.shape, self.chunks))

    def chunk_key(self, index: Sequence[int]) -> str:
        """Return the name of a chunk within the array, such as ``c/17``."""
        return chunk_key(index)

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what messages call a chunk."""
        return f"{self.path}: chunk {chunk_key(index)}"

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.PlainInfo", self.path, self.identity, self.opened, self.metadata


def is_plain(path: StorePath) -> bool:
    """Whether there is a plain array that rnsdask has begun to write, in whatever state."""
    try:
        document = array_document(locate(path).read_metadata())
    except StoreAccessError:
        raise
    except (OSError, ValueError):
        return False
    return PLAIN_ATTRIBUTE in (document.get("attributes") or {})


def open_plain(path: StorePath) -> PlainInfo:
    """Read and check what a complete plain array says about itself.

    Raises
    ------
    IncompleteStoreError
        If its writing did not finish.
    StoreError
        If there is no such array, or it breaks a rule of the format.
    """
    location = locate(path)
    try:
        metadata = location.read_metadata()
        written = location.version(METADATA_KEY)
    except FileNotFoundError:
        raise missing_error(location, "array") from None
    try:
        document = array_document(metadata)
        _check_document(document)
        codecs = ChunkCodecs.of(document)
    except (TypeError, ValueError) as error:
        raise StoreError(f"{location.path}: {error}") from error
    attribute = document["attributes"][PLAIN_ATTRIBUTE]
    if not attribute["complete"]:
        raise incomplete_error(location.path, "array", attribute)
    identity = hashlib.sha256(metadata + repr(written).encode()).hexdigest()
    opened = Opened.of(location, metadata, tells_content=False)
    return PlainInfo(
        location, tuple(document["shape"]), codecs.shape, codecs.dtype, identity, opened, metadata
    )


def _check_document(document: dict[str, Any]) -> None:
    attribute = (document.get("attributes") or {}).get(PLAIN_ATTRIBUTE)
    if not isinstance(attribute, dict) or not isinstance(attribute.get("complete"), bool):
        raise ValueError(f"it is no array that rnsdask wrote: it has no attribute {PLAIN_ATTRIBUTE!r}")
    if document["data_type"] not in _DTYPES:
        raise ValueError(f"its dtype must be one of {', '.join(_DTYPES)}, got {document['data_type']!s:.40}")
    if not document["shape"]:
        raise ValueError("it must have at least one axis, got shape ()")
    keys = document["chunk_key_encoding"]
    if keys["name"] != "default" or keys["configuration"]["separator"] != "/":
        raise ValueError(f"its chunks must have keys like c/0/1, got the key encoding {keys!s:.80}")
    if document.get("storage_transformers"):
        raise ValueError("it must have no storage transformers")


def read_plain_chunk(info: PlainInfo, index: Sequence[int]) -> NDArray[Any]:
    """Read a chunk and check it: cut at the array's edge, in the byte order of this machine.

    Raises
    ------
    CorruptChunkError
        If the chunk is missing, truncated, or does not match its checksum.
    ChangedStoreError
        If the array was overwritten or removed since `info` was read.
    StoreAccessError
        If it cannot be read.
    """
    slices = chunk_slices(index, info.shape, info.chunks)
    with belonging(info.location, info.opened):
        values = decode_chunk(info.location, info.metadata, chunk_key(index), info.chunk_name(index), slices)
    if values.dtype == np.bool_ and (values.view(np.uint8) > 1).any():
        raise StoreError(f"{info.chunk_name(index)} is corrupt: a Boolean value is neither 0 nor 1")
    return np.ascontiguousarray(values, info.dtype.newbyteorder("="))
