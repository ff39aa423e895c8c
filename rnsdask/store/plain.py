"""Plain Zarr arrays of one value for each number, such as masks of overflows; no stores of numbers."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray
from zarr.codecs import Crc32cCodec

from rnsdask.errors import StoreError
from rnsdask.layout import chunk_grid, chunk_slices
from rnsdask.store.location import CHUNK_FOLDER, StorePath, file_sizes, normalize_path
from rnsdask.store.writing import make_room

PLAIN_ATTRIBUTE = "rnsdask_values"
"""Key of the Zarr attribute that says whether such an array is complete."""


def create_plain(
    path: StorePath, shape: Sequence[int], chunks: Sequence[int], dtype: DTypeLike, *, overwrite: bool = False
) -> "PlainWriter":
    """Create a Zarr array without chunks; its attribute says that it is incomplete.

    Parameters
    ----------
    path, overwrite
        As `rnsdask.store.create` takes them.
    shape, chunks
        Its shape, and a chunk's length along each axis.

    Raises
    ------
    StoreError
        If `path` is taken, or cannot be written.
    """
    path = normalize_path(path)
    try:
        make_room(path, overwrite)
        zarr.create_array(
            store=path,
            shape=tuple(shape),
            chunks=tuple(chunks),
            dtype=np.dtype(dtype),
            compressors=[Crc32cCodec()],
            attributes={PLAIN_ATTRIBUTE: {"complete": False}},
        )
    except OSError as error:
        raise StoreError(f"{path}: it cannot be written: {error}") from error
    return PlainWriter(path, tuple(shape), tuple(chunks))


class PlainWriter:
    """Writes the chunks of a plain array, as `StoreWriter` those of a store."""

    def __init__(self, path: str, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
        self.path = path
        self.shape = shape
        self.chunks = chunks

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("path", "shape", "chunks")}

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.PlainWriter", self.path, self.shape, self.chunks

    @cached_property
    def _array(self) -> zarr.Array[Any]:
        return zarr.open_array(self.path, mode="r+").with_config({"write_empty_chunks": True})

    def write_chunk(self, index: Sequence[int], values: NDArray[Any]) -> None:
        """Write a whole chunk, given with an axis of length 1 in front.

        Raises
        ------
        IndexError
            If the grid has no such chunk.
        StoreError
            If the chunk cannot be written.
        """
        slices = chunk_slices(index, self.shape, self.chunks)
        try:
            self._array[slices] = values[0]
        except OSError as error:
            key = "/".join((CHUNK_FOLDER, *map(str, index)))
            raise StoreError(f"{self.path}: chunk {key} cannot be written: {error}") from error

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""
        sizes = file_sizes(self.path)
        grid = chunk_grid(self.shape, self.chunks)
        return [i for i in np.ndindex(*grid) if "/".join((CHUNK_FOLDER, *map(str, i))) not in sizes]

    def finish(self) -> None:
        """Declare the array complete.

        Raises
        ------
        StoreError
            If a chunk is not written.
        """
        if missing := self.missing_chunks():
            raise StoreError(f"{self.path}: it cannot be completed: {len(missing)} chunks are not written")
        self._array.update_attributes({PLAIN_ATTRIBUTE: {"complete": True}})
