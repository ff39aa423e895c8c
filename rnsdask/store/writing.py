"""Creating stores and writing their chunks."""

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, SupportsIndex

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.buffer.cpu import Buffer
from zarr.codecs import BytesCodec, Crc32cCodec
from zarr.storage import MemoryStore

from rnsdask.errors import StoreError
from rnsdask.layout import RESIDUE_DTYPE, Chunks, check_residue_array, chunk_slices, normalize_chunks
from rnsdask.moduli import ModuliSet, as_integer
from rnsdask.store.chunk_files import PARTIAL_SUFFIX, chunk_file_size, write_chunk_file
from rnsdask.store.location import (
    CHUNK_FOLDER,
    METADATA_KEY,
    Location,
)
from rnsdask.store.metadata import (
    ATTRIBUTE,
    Files,
    StoreInfo,
    change_metadata,
    check_bound,
    check_recipe,
    complete_attribute,
    load,
    make_attribute,
    read_writer,
    write_metadata,
)
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import chunk_problems, read_chunk, residue_problems


def create(
    path: StorePath,
    moduli: ModuliSet,
    shape: Sequence[SupportsIndex],
    *,
    chunks: Chunks = "auto",
    signed: bool = False,
    bound: SupportsIndex | None = None,
    overwrite: bool = False,
    codecs: Iterable[Any] | None = None,
    recipe: str | None = None,
) -> "StoreWriter":
    """Create a store without chunks; it is incomplete until its writer has finished.

    Parameters
    ----------
    path
        Anything that `rnsdask.store.locate` takes.
    moduli
        The moduli set.
    shape
        Shape of the array of numbers. A one-dimensional array may grow, from length 0 on.
    chunks
        A chunk's length along each axis of `shape`; see `rnsdask.layout.normalize_chunks`.
    signed
        Whether the numbers are of the symmetric range.
    bound
        Upper bound of the absolute value of every number, where one is known.
    overwrite
        Whether to replace a Zarr array that `path` holds already. Nothing else is ever replaced.
    codecs
        Zarr's codecs from bytes to bytes that compress the chunks, such as ``[ZstdCodec(level=3)]``; a
        checksum follows them. None for no compression, which is the fastest.
    recipe
        What the numbers follow from, as a hash: kept until the store is complete, so that `resume` can tell
        whether it is the same.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    StoreError
        If `path` is taken, or cannot be written.
    """
    location = locate(path).check_writable()
    lengths = tuple(as_integer(length, f"length of axis {axis}") for axis, length in enumerate(shape))
    chunk_lengths = normalize_chunks(chunks, lengths, len(moduli))
    token = uuid.uuid4().hex
    attribute = make_attribute(moduli, signed, check_bound(bound, moduli, signed), token, recipe)
    files: Files = {}
    zarr.create_array(  # in memory, so that a wrong codec shows before anything is replaced
        store=MemoryStore(files),
        shape=(len(moduli), *lengths),
        chunks=(len(moduli), *chunk_lengths),
        dtype=RESIDUE_DTYPE,
        filters=None,
        serializer=BytesCodec(endian="little"),
        compressors=[*(codecs or ()), Crc32cCodec()],
        fill_value=0,
        chunk_key_encoding={"name": "default", "separator": "/"},
        dimension_names=_dimension_names(len(lengths)),
        attributes={ATTRIBUTE: attribute},
    )
    make_room(location, overwrite)
    write_metadata(location, files)
    return StoreWriter(load(location)[0], token)


def resume(
    path: StorePath, check: Callable[[StoreInfo], object] = lambda _: None, *, recipe: str | None = None
) -> "StoreWriter":
    """Open an incomplete store, to write the chunks that it still lacks.

    The store is this writer's from now on: another one, of a job that is still running, can write no more.
    What interrupted writes have left behind is removed.

    Parameters
    ----------
    path
        Anything that `rnsdask.store.locate` takes.
    check
        Called before anything changes; it may raise if the store is not what its caller wants.
    recipe
        As `create` takes it.

    Raises
    ------
    StoreError
        If there is no valid store, or it is complete, or was created with another recipe.
    StoreAccessError
        If it cannot be written.
    """
    info, complete = load(locate(path).check_writable())
    if complete:
        raise StoreError(f"{info.path}: the store is complete: there is nothing to resume")
    check(info)
    found = check_recipe(info.location, recipe)
    writer = StoreWriter(info, uuid.uuid4().hex)
    writer.take_over(found)
    return writer


class StoreWriter:
    """Writes the chunks of a store, in any order, from any thread.

    A copy, a pickled one too, writes to the same store, so tasks in other processes can each write chunks.
    When all are done, `finish` is called once. Until then, and if that never happens, the store is incomplete
    and cannot be opened for reading.

    The store names the writer that it belongs to. A writer that finds another's name there stops with an
    error, so that two jobs never mix their chunks, nor a task that outlived its job comes in between.

    Attributes
    ----------
    info : StoreInfo
        The store as it is now.
    """

    def __init__(self, info: StoreInfo, token: str) -> None:
        self.info = info
        self._token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the store as it is: incomplete, unless `finish` was called."""

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.StoreWriter", self._token, *self.info.__dask_tokenize__()

    def take_over(self, recipe: str | None) -> None:
        """Make the store this writer's, and remove what interrupted writes have left behind."""
        info = self.info
        attribute = make_attribute(info.moduli, info.signed, info.bound, self._token, recipe)
        change_metadata(info.location, lambda array: array.update_attributes({ATTRIBUTE: attribute}))
        self._reload()
        remove_partial_files(info.location)

    def check_owner(self) -> None:
        """Raise StoreError if another writer has begun to write the store."""
        if read_writer(self.info.location) != self._token:
            raise StoreError(f"{self.info.path}: another job has begun to write it, or it was removed")

    def write_chunk(self, index: Sequence[int], residues: NDArray[np.uint32]) -> None:
        """Write a whole chunk, so that it appears at once or not at all.

        Parameters
        ----------
        index
            Index of the chunk in ``info.grid``.
        residues
            NumPy array, ``uint32``, of the shape that `rnsdask.store.read_chunk` returns.

        Raises
        ------
        IndexError
            If the grid has no such chunk.
        TypeError, ValueError
            If `residues` has another type or shape, or a residue is not below its modulus.
        StoreError
            If another writer has begun to write the store.
        StoreAccessError
            If the chunk cannot be written.
        """
        info, name = self.info, self.info.chunk_name(index)
        info.check_release()
        slices = chunk_slices(index, info.shape, info.chunks)
        if not isinstance(residues, np.ndarray):
            raise TypeError(f"{name} must be given as a NumPy array, got {type(residues).__name__}")
        check_residue_array(residues, info.moduli)
        expected = (len(info.moduli), *(s.stop - s.start for s in slices))
        if residues.shape != expected:
            raise ValueError(f"{name} has shape {expected}, got residues of shape {residues.shape}")
        for problem in residue_problems(info, index, residues):
            raise ValueError(problem)
        if info.has_chunk_files:
            # Checked last: a job that takes the store over while this chunk is written must win.
            file = info.chunk_file(index)
            write_chunk_file(file, residues, info.chunk_shape, name, check=self.check_owner)
            return
        key = info.chunk_key(index)
        encoded = encode_chunk(info.metadata, key, (slice(None), *slices), residues)
        put_chunk(info.location, key, encoded, name, self.check_owner)

    def read_chunk(self, index: Sequence[int]) -> NDArray[np.uint32]:
        """Read a chunk that is written, as `rnsdask.store.read_chunk` does."""
        return read_chunk(self.info, index)

    def resize(self, shape: Sequence[SupportsIndex]) -> None:
        """Make a one-dimensional array longer, for numbers whose count is not known beforehand.

        Raises
        ------
        ValueError
            If the array has more axes, would become shorter, or its last chunk is written and partly filled.
        """
        info = self.info
        if len(info.shape) != 1 or len(shape) != 1:
            raise ValueError(f"only a one-dimensional array can grow, not {info.shape} to {tuple(shape)}")
        old, new = info.shape[0], as_integer(shape[0], "length")
        if new < old:
            raise ValueError(f"an array can only grow, not from length {old} to {new}")
        last, filled = divmod(old, info.chunks[0])
        if new > old and filled and info.location.exists(info.chunk_key((last,))):
            raise ValueError(
                f"{info.chunk_name((last,))} is written and has {filled} numbers of {info.chunks[0]}, so the "
                "array can no longer grow"
            )
        self.check_owner()
        change_metadata(info.location, lambda array: array.resize((len(info.moduli), new)))
        self._reload()

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what messages call a chunk."""
        return self.info.chunk_name(index)

    def indices(self) -> Iterable[tuple[int, ...]]:
        """Return the indices of all chunks, in C order."""
        return self.info.indices()

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""
        info, sizes = self.info, self.info.location.sizes()
        if not info.has_chunk_files:
            return [index for index in info.indices() if info.chunk_key(index) not in sizes]
        expected = chunk_file_size(info.chunk_shape)
        return [index for index in info.indices() if sizes.get(info.chunk_key(index)) != expected]

    def damaged_chunks(self, map_chunks: Callable[..., Iterable[list[str]]] = map) -> list[tuple[int, ...]]:
        """Read all chunks that are written, and list the indices of those that are not whole and valid.

        Parameters
        ----------
        map_chunks
            What applies a function to all chunks, as in `rnsdask.store.verify`.
        """
        written = sorted(set(self.info.indices()).difference(self.missing_chunks()))
        problems = map_chunks(partial(chunk_problems, self.info), written)
        return [index for index, found in zip(written, problems, strict=True) if found]

    def finish(self, bound: SupportsIndex | None = None) -> StoreInfo:
        """Declare the store complete.

        Parameters
        ----------
        bound
            Upper bound of the absolute value of every number, where it became known in writing; None keeps
            the one that the store was created with.

        Returns
        -------
        info : StoreInfo
            The complete store.

        Raises
        ------
        ValueError
            If `bound` is not within the range of the moduli set.
        StoreError
            If a chunk is not written, or another writer has begun to write the store.
        """
        info = self.info
        final_bound = info.bound if bound is None else check_bound(bound, info.moduli, info.signed)
        missing = self.missing_chunks()
        if missing:
            raise StoreError(
                f"{info.path}: it cannot be completed: {len(missing)} of {info.n_chunks} chunks are not "
                f"written, the first of them {info.chunk_key(missing[0])}"
            )
        remove_partial_files(info.location)
        self.check_owner()
        attribute = complete_attribute(info, final_bound)
        change_metadata(info.location, lambda array: array.update_attributes({ATTRIBUTE: attribute}))
        self._reload()
        return self.info

    def _reload(self) -> None:
        self.info = load(self.info.location)[0]


def _dimension_names(ndim: int) -> tuple[str, ...]:
    return ("residue", "x") if ndim == 1 else ("residue", *(f"x{axis}" for axis in range(ndim)))


def encode_chunk(metadata: bytes, key: str, selection: tuple[slice, ...], values: NDArray[Any]) -> bytes:
    """Have Zarr encode a chunk, given the array's metadata document and the part that the chunk covers."""
    files: Files = {METADATA_KEY: Buffer.from_bytes(metadata)}
    array = zarr.open_array(MemoryStore(files), mode="r+")
    # Left to itself, Zarr would not write a chunk of zeros, and it would look like one that is lost.
    array.with_config({"write_empty_chunks": True})[selection] = values
    return files[key].to_bytes()


def put_chunk(
    location: Location, key: str, encoded: bytes, name: str, check_owner: Callable[[], object]
) -> None:
    """Write an encoded chunk; `check_owner` raises if the array is another writer's by now.

    To send a chunk takes time, in which another job may take the array over. So a chunk is first put where
    there is none: one that comes late does not replace the other job's. What is there already, from an
    earlier try or from another job, is replaced by who owns the array.
    """
    check_owner()
    if not location.create(key, encoded, name):
        check_owner()
        location.write(key, encoded, name)


def remove_partial_files(location: Location) -> None:
    """Remove what interrupted writes have left behind."""
    for key in location.sizes():
        if key.endswith(PARTIAL_SUFFIX):
            location.remove(key)


def make_room(location: Location, overwrite: bool) -> None:
    """Make sure that nothing is at a place: remove a Zarr array if asked to, and refuse anything else."""
    path, kind = location.path, location.kind()
    if kind == "nothing":
        return
    if kind == "file":
        raise StoreError(f"{path}: it exists and is not a Zarr array")
    names = location.names()
    if all(
        name.endswith(PARTIAL_SUFFIX) for name in names
    ):  # metadata whose writing was interrupted, or nothing
        return
    if METADATA_KEY not in names or not _is_array(location.read(METADATA_KEY, f"{path}: it")):
        raise StoreError(f"{path}: it exists and is not a Zarr array, but a folder with {_enumerate(names)}")
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with --overwrite (overwrite=True)")
    own = {name for name in names if name in (METADATA_KEY, CHUNK_FOLDER) or name.endswith(PARTIAL_SUFFIX)}
    if own != names:
        raise StoreError(f"{path}: it is not replaced, because it also holds {_enumerate(names - own)}")
    # The metadata go last: what an interruption leaves behind can still be told for an array, and replaced.
    for name in (*sorted(own - {METADATA_KEY}), METADATA_KEY):
        location.remove(name)


def _is_array(metadata: bytes) -> bool:
    try:
        document = json.loads(metadata)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("node_type") == "array"


def _enumerate(names: Iterable[str], shown: int = 3) -> str:
    """List the first few of some names."""
    ordered = sorted(names)
    more = f" and {len(ordered) - shown} more" if len(ordered) > shown else ""
    return ", ".join(ordered[:shown]) + more
