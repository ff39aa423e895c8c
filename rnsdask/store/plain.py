"""Plain Zarr arrays of one value for each number, such as masks of overflows; no stores of numbers."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core.errors import CorruptChunkError, StoreAccessError, StoreError
from rnsdask.core.layout import chunk_grid, chunk_slices, grid_indices
from rnsdask.store.attributes import (
    ATTRIBUTE,
    PLAIN_ATTRIBUTE,
    begun_fields,
    check_job_identity,
    incomplete_error,
)
from rnsdask.store.chunk_files import CHECKSUM_BYTES
from rnsdask.store.codecs import describe_codecs
from rnsdask.store.documents import array_document, files_in_memory, make_document
from rnsdask.store.location import METADATA_KEY, Location, chunk_key
from rnsdask.store.metadata import missing_error
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import content_of, decode_chunk
from rnsdask.store.space import check_room
from rnsdask.store.target import Target, find_begun, is_begun, target_at
from rnsdask.store.writing import ArrayWriter, finish, write_values


def create_plain(
    path: StorePath,
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: DTypeLike,
    *,
    overwrite: bool = False,
    job_identity: str | None = None,
) -> "PlainWriter":
    """Create a Zarr array without chunks; its attribute says that it is incomplete.

    Parameters
    ----------
    path, overwrite, job_identity
        As `rnsdask.store.create` takes them.
    shape, chunks
        Its shape, and a chunk's length along each axis.

    Raises
    ------
    StoreError
        If `path` is taken, or cannot be written.
    """
    target = target_at(locate(path), overwrite, PLAIN_ATTRIBUTE)
    attributes = {PLAIN_ATTRIBUTE: begun_fields(target.token, job_identity)}
    files = math.prod(chunk_grid(shape, chunks))
    check_room({target.location: files * (math.prod(chunks) * np.dtype(dtype).itemsize + CHECKSUM_BYTES)})
    target.begin(make_document(shape, chunks, dtype, attributes=attributes))
    return PlainWriter(target, tuple(shape), tuple(chunks))


def resume_plain(
    path: StorePath,
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: DTypeLike,
    *,
    complete_too: bool = False,
    job_identity: str | None = None,
) -> "PlainWriter":
    """Open an incomplete array, to write the chunks that it still lacks, as `rnsdask.store.resume` does.

    Parameters
    ----------
    path, shape, chunks, dtype, job_identity
        As `create_plain` takes them; the array must be what it would create.
    complete_too
        Whether it may be complete; it is incomplete again then.

    Raises
    ------
    StoreError
        If there is no such array, or it is complete, or cannot be written.
    """
    location = locate(path)
    begun = find_begun(location)
    _check_like(begun, make_document(shape, chunks, dtype), complete_too)
    job = check_job_identity(begun, job_identity, PLAIN_ATTRIBUTE)
    target = Target(location, begun, replaces=True, attribute=PLAIN_ATTRIBUTE)
    target.take_over(begun_fields(target.token, job))
    return PlainWriter(target, tuple(shape), tuple(chunks))


def _check_like(location: Location, wanted: bytes, complete_too: bool) -> None:
    """Check that an array was begun with a metadata document like another, and may go on."""
    try:
        metadata = location.read_metadata()
    except FileNotFoundError:
        raise StoreError(f"{location.path}: there is no such array") from None
    try:
        array = _opened(metadata)
        attribute = array.attrs.get(PLAIN_ATTRIBUTE)
    except Exception as error:  # of any type, for anything may stand in the file
        raise StoreError(f"{location.path}: Zarr cannot read its {METADATA_KEY}: {error!r}") from error
    if not isinstance(attribute, dict) or not isinstance(attribute.get("complete"), bool):
        raise StoreError(f"{location.path}: it cannot be resumed: it is no array that rnsdask has begun")
    if attribute["complete"] and not complete_too:
        raise StoreError(
            f"{location.path}: the array is complete: there is nothing to resume; "
            "replace it with overwrite=True"
        )
    found = _description(array)
    for name, value in _description(_opened(wanted)).items():
        if found[name] != value:
            raise StoreError(
                f"{location.path}: it cannot be resumed: its {name}: {found[name]}; of the job: {value}; "
                "replace it with overwrite=True"
            )


def _opened(metadata: bytes) -> zarr.Array[Any]:
    return zarr.open_array(files_in_memory({METADATA_KEY: metadata}), mode="r")


def open_any_array(path: str) -> zarr.Array[Any]:
    """Open a Zarr array that any program has written, to be read by slices.

    Raises
    ------
    StoreError
        If there is none, or it cannot be read, or it is one of rnsdask's that is not whole.
    """
    try:
        array = zarr.open_array(path, mode="r")
    except FileNotFoundError:
        if is_begun(locate(path)):
            raise missing_error(locate(path), "array") from None
        raise StoreError(f"{path}: there is no such file or Zarr array") from None
    except Exception as error:  # of any type, for anything may stand in the files
        raise StoreError(f"{path}: it cannot be opened as a Zarr array: {error!r}") from error
    _check_own(path, array)
    return array


def _check_own(path: str, array: zarr.Array[Any]) -> None:
    """Check that an array is whole if rnsdask wrote it: of one that lacks chunks, Zarr reads zeros."""
    own: list[Any] = [array.attrs[key] for key in (ATTRIBUTE, PLAIN_ATTRIBUTE) if key in array.attrs]
    for attribute in own:
        if isinstance(attribute, dict) and attribute.get("complete") is False:
            raise incomplete_error(path, "array", attribute)
    if own and (missing := array.nchunks - array.nchunks_initialized):
        raise CorruptChunkError(f"{path}: {missing} of its {array.nchunks} chunks are missing")


def exists(path: StorePath) -> bool:
    """Whether there is metadata of a Zarr array or group at a path, or of one that is to replace it."""
    location = locate(path)
    return location.exists(METADATA_KEY) or is_begun(location)


def describe_plain(path: StorePath) -> dict[str, Any] | None:
    """What a plain array that rnsdask wrote, or has begun, says about itself; None if there is none."""
    location = locate(path)
    try:
        document = array_document(location.read_metadata())
        attribute = document["attributes"][PLAIN_ATTRIBUTE]
        complete = attribute["complete"] is True
    except StoreAccessError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return None
    shape, chunks = (tuple(document["shape"]), tuple(document["chunk_grid"]["configuration"]["chunk_shape"]))
    count = math.prod(shape)
    return {
        "store": location.path,
        "dtype": document["data_type"],
        "count": count,
        "shape": shape,
        "chunks": chunks,
        "n_chunks": math.prod(chunk_grid(shape, chunks)),
        "bytes": count * np.dtype(document["data_type"]).itemsize,
        "codecs": describe_codecs(document),
        "complete": complete,
    }


def _description(array: zarr.Array[Any]) -> dict[str, Any]:
    """All that the chunks' files and bytes depend on."""
    document = dict(array.metadata.to_dict())
    document.pop("attributes")
    return {"shape": array.shape, "chunks": array.chunks, "dtype": str(array.dtype), "metadata": document}


class PlainWriter(ArrayWriter):
    """Writes the chunks of a plain array, as `StoreWriter` those of a store."""

    def __init__(self, target: Target, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
        super().__init__(target)
        self._location = target.staged
        self.path = target.staged.path
        self.shape = shape
        self.chunks = chunks

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_metadata"}

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.PlainWriter", self.path, self.shape, self.chunks, self.target.token

    @cached_property
    def _metadata(self) -> bytes:
        try:
            return self._location.read_metadata()
        except FileNotFoundError:
            self.target.check()
            raise

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what messages call a chunk."""
        return f"{self.path}: chunk {chunk_key(index)}"

    def indices(self) -> Iterable[tuple[int, ...]]:
        """Return the indices of all chunks, in C order."""
        return grid_indices(chunk_grid(self.shape, self.chunks))

    def write_chunk(self, index: Sequence[int], values: Array) -> None:
        """Write a whole chunk, NumPy's or CuPy's, given with an axis of length 1 in front.

        Raises
        ------
        IndexError
            If the grid has no such chunk.
        StoreError
            If the chunk cannot be written, or another writer has begun to write the array.
        """
        place, values, name = self._location, to_backend(values, "cpu")[0], self.chunk_name(index)
        write_values(self.target, place, self._metadata, self.shape, index, values, name)

    def read_chunk(self, index: Sequence[int]) -> NDArray[Any]:
        """Read a chunk that is written, with an axis of length 1 in front, and check it.

        Raises
        ------
        CorruptChunkError
            If the chunk is missing, truncated, or does not match its checksum.
        StoreAccessError
            If it cannot be read.
        """
        slices = chunk_slices(index, self.shape, self.chunks)
        key, name = chunk_key(index), self.chunk_name(index)
        values = decode_chunk(self._location, self._metadata, key, name, slices)[None]
        self.target.check()
        return values

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""
        found = self._location.found(map(chunk_key, self.indices()))
        return [index for index in self.indices() if chunk_key(index) not in found]

    def _problems(self, index: tuple[int, ...]) -> list[str]:
        try:
            self.read_chunk(index)
        except StoreError as error:
            return [str(error)]
        return []

    def finish(self) -> None:
        """Declare the array complete; if it is to replace another one, it does so now.

        Raises
        ------
        StoreError
            If a chunk is not written, or another writer has begun to write the array.
        """
        missing = self.missing_chunks()
        self.target.check()  # last: who takes the array over may have removed them
        if missing:
            raise StoreError(f"{self.path}: it cannot be completed: {len(missing)} chunks are not written")
        content = content_of(self._location, map(chunk_key, self.indices()))
        finish(self.target, {"complete": True}, content)
