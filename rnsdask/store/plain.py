"""Plain Zarr arrays with one value for each number, such as masks of overflows; not stores of numbers.

Zarr encodes their chunks, and can read them without this package. Incomplete ones are refused.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core.errors import CorruptChunkError, StoreAccessError, StoreError
from rnsdask.core.layout import ChunkPlan
from rnsdask.core.ways import REPLACE, Message, with_ways
from rnsdask.store.attributes import begun_fields, check_job, incomplete_error
from rnsdask.store.chunk_files import CHECKSUM_BYTES
from rnsdask.store.codecs import ChunkCodecs, decode_chunk, describe_codecs, encode_chunk
from rnsdask.store.documents import ATTRIBUTE, PLAIN_ATTRIBUTE, array_document, make_document
from rnsdask.store.location import Location
from rnsdask.store.metadata import ArrayInfo, check_keys, missing_error, read_metadata
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import belonging
from rnsdask.store.space import check_room
from rnsdask.store.target import Target, find_begun, is_begun, target_at
from rnsdask.store.version import Version
from rnsdask.store.writing import ArrayWriter

_DTYPES = ("bool", "int8", "int16", "int32", "int64")


@dataclass(frozen=True)
class PlainInfo(ArrayInfo):
    """Metadata of a plain array, of Booleans or of signed integers."""

    dtype: np.dtype[Any]
    codecs: tuple[str, ...]

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.PlainInfo", self.path, self.version, self.metadata


# ---- reading ----------------------------------------------------------------------------------------------


def is_plain(path: StorePath) -> bool:
    """Whether a plain array written by rnsdask is at a path, complete or not."""
    try:
        document = array_document(locate(path).read_metadata())
    except StoreAccessError:
        raise
    except (OSError, ValueError):
        return False
    return PLAIN_ATTRIBUTE in (document.get("attributes") or {})


def load_plain(location: Location) -> tuple[PlainInfo, bool]:
    """Read and check the metadata of the plain array at a place; also return whether it is complete."""
    metadata = read_metadata(location, "array")
    try:
        document = array_document(metadata)
        attribute = (document.get("attributes") or {}).get(PLAIN_ATTRIBUTE)
        if not isinstance(attribute, dict) or not isinstance(attribute.get("complete"), bool):
            raise ValueError(f"it is no array that rnsdask wrote: it has no attribute {PLAIN_ATTRIBUTE!r}")
        if not document["shape"]:
            raise ValueError("it must have at least one axis, got shape ()")
        check_keys(document)
        codecs = ChunkCodecs.of(document)
    except (TypeError, ValueError) as error:
        raise StoreError(Message(f"{location.path}: ", error)) from error
    try:
        version = Version.read(location, metadata, tells_content=False)
    except FileNotFoundError:
        raise missing_error(location, "array") from None
    info = PlainInfo(
        location=location,
        shape=tuple(document["shape"]),
        chunks=codecs.shape,
        version=version,
        metadata=metadata,
        dtype=codecs.dtype,
        codecs=describe_codecs(document),
    )
    return info, attribute["complete"]


def open_plain(path: StorePath) -> PlainInfo:
    """Read and check the metadata of a complete plain array.

    IncompleteStoreError if it is incomplete; StoreError if it is missing, or breaks a rule of the format.
    """
    info, complete = load_plain(locate(path))
    if info.dtype.name not in _DTYPES:
        raise StoreError(f"{info.path}: its dtype must be one of {', '.join(_DTYPES)}, got {info.dtype}")
    if not complete:
        attribute = array_document(info.metadata)["attributes"][PLAIN_ATTRIBUTE]
        raise incomplete_error(info.path, "array", attribute)
    return info


def read_plain_chunk(info: PlainInfo, index: Sequence[int]) -> NDArray[Any]:
    """Read a chunk in the byte order of this machine, as `read_chunk` does for a store."""
    with belonging(info.location, info.version):
        return _decode(info, index)


def _decode(info: PlainInfo, index: Sequence[int]) -> NDArray[Any]:
    slices, name = info.slices(index), info.chunk_name(index)
    values = decode_chunk(info.location, info.metadata, info.chunk_key(index), name, slices)
    if values.dtype == np.bool_ and (values.view(np.uint8) > 1).any():
        raise CorruptChunkError(f"{name} is corrupt: a Boolean value is neither 0 nor 1")
    return np.ascontiguousarray(values, info.dtype.newbyteorder("="))


def open_any_array(path: str) -> zarr.Array[Any]:
    """Open a Zarr array written by any program, to be read by slices.

    StoreError if it is missing or cannot be read, or is an incomplete array of rnsdask's.
    """
    try:
        array = zarr.open_array(path, mode="r")
    except FileNotFoundError:
        if is_begun(locate(path)):
            raise missing_error(locate(path), "array") from None
        raise StoreError(f"{path}: there is no such file or Zarr array") from None
    except Exception as error:  # of any type, because the files may hold anything
        raise StoreError(f"{path}: it cannot be opened as a Zarr array: {error!r}") from error
    _check_own(path, array)
    return array


def _check_own(path: str, array: zarr.Array[Any]) -> None:
    """Check that an array written by rnsdask is complete: Zarr would read missing chunks as zeros."""
    own: list[Any] = [array.attrs[key] for key in (ATTRIBUTE, PLAIN_ATTRIBUTE) if key in array.attrs]
    for attribute in own:
        if isinstance(attribute, dict) and attribute.get("complete") is False:
            raise incomplete_error(path, "array", attribute)
    if own and (missing := array.nchunks - array.nchunks_initialized):
        raise CorruptChunkError(f"{path}: {missing} of its {array.nchunks} chunks are missing")


# ---- writing ----------------------------------------------------------------------------------------------


def create_plain(
    path: StorePath,
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: DTypeLike,
    *,
    overwrite: bool = False,
    job: str | None = None,
) -> "PlainWriter":
    """Create an incomplete Zarr array without chunks, as `rnsdask.store.create` does for a store."""
    target = target_at(locate(path), overwrite, PLAIN_ATTRIBUTE)
    attributes = {PLAIN_ATTRIBUTE: begun_fields(target.token, job)}
    files = ChunkPlan(tuple(shape), tuple(chunks)).n_chunks
    check_room({target.location: files * (math.prod(chunks) * np.dtype(dtype).itemsize + CHECKSUM_BYTES)})
    target.begin(make_document(shape, chunks, dtype, attributes=attributes))
    return PlainWriter(load_plain(target.staged)[0], target)


def resume_plain(
    path: StorePath,
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: DTypeLike,
    *,
    complete_too: bool = False,
    job: str | None = None,
) -> "PlainWriter":
    """Open an array begun by `create_plain` with the same arguments, as `rnsdask.store.resume` does.

    With `complete_too` it may be complete, and becomes incomplete again.
    """
    location = locate(path)
    begun = find_begun(location)
    info, complete = load_plain(begun)
    if complete and not complete_too:
        raise StoreError(
            with_ways(f"{location.path}: the array is complete: there is nothing to resume", REPLACE)
        )
    _check_like(info, shape, chunks, dtype)
    job = check_job(begun, job, PLAIN_ATTRIBUTE)
    target = Target(location, begun, replaces=True, attribute=PLAIN_ATTRIBUTE)
    target.take_over(begun_fields(target.token, job), info.version)
    return PlainWriter(load_plain(target.staged)[0], target)


def _check_like(info: PlainInfo, shape: Sequence[int], chunks: Sequence[int], dtype: DTypeLike) -> None:
    """Check that an array is as `create_plain` would begin it."""
    codecs = describe_codecs(array_document(make_document(shape, chunks, dtype)))
    wanted = {"shape": tuple(shape), "chunks": tuple(chunks), "dtype": np.dtype(dtype), "codecs": codecs}
    for name, value in wanted.items():
        if (found := getattr(info, name)) != value:
            raise StoreError(
                with_ways(
                    f"{info.path}: it cannot be resumed: its {name}: {found}; of the job: {value}", REPLACE
                )
            )


class PlainWriter(ArrayWriter):
    """Writer of the chunks of a plain array, as `StoreWriter` is for a store."""

    info: PlainInfo

    def write_chunk(self, index: Sequence[int], values: Array) -> None:
        """Write a whole chunk, which has a leading axis of length 1."""
        info, values, name = self.info, to_backend(values, "cpu")[0], self.info.chunk_name(index)
        slices = info.slices(index)
        expected = tuple(s.stop - s.start for s in slices)
        if values.shape != expected:
            raise ValueError(f"{name} has shape {expected}, got values of shape {values.shape}")
        key = info.chunk_key(index)
        encoded = encode_chunk(info.metadata, key, slices, values)
        self.target.publish(key, encoded, name)

    def read_chunk(self, index: Sequence[int]) -> NDArray[Any]:
        """Read and check a written chunk, with a leading axis of length 1."""
        values = _decode(self.info, index)[None]
        self.target.check()
        return values

    def _problems(self, index: tuple[int, ...]) -> list[str]:
        try:
            self.read_chunk(index)
        except StoreError as error:
            return [str(error)]
        return []
