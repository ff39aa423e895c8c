"""Creating stores and writing their chunks."""

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

from rnsdask.core.errors import StoreError
from rnsdask.core.layout import RESIDUE_DTYPE, Chunks, check_residue_array, chunk_slices, normalize_chunks
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.store.chunk_files import chunk_file_size, write_chunk_file
from rnsdask.store.codecs import ChunkCodecs
from rnsdask.store.documents import check_lengths
from rnsdask.store.location import CHUNK_FOLDER, LONGEST_METADATA, METADATA_KEY, Location
from rnsdask.store.metadata import (
    ATTRIBUTE,
    Files,
    StoreInfo,
    changed_metadata,
    check_bound,
    check_recipe,
    complete_attribute,
    load,
    make_attribute,
)
from rnsdask.store.ownership import Owner, is_left_behind, remove_left_behind
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import chunk_problems, content_of, read_chunk, residue_problems
from rnsdask.store.replacing import Replacement, check_no_part, clear, document_of, state


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
    group: str | None = None,
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
        A chunk's length along each axis of `shape`; see `rnsdask.core.layout.normalize_chunks`.
    signed
        Whether the numbers are of the symmetric range.
    bound
        Upper bound of the absolute value of every number, where one is known.
    overwrite
        Whether to replace a Zarr array that `path` holds already. Nothing else is ever replaced. One that is
        whole stays until the new one is: that is written beside it, and takes its place when it is finished.
    codecs
        One of Zarr's codecs that compress the chunks, such as ``[ZstdCodec(level=3)]`` (or ``BloscCodec``,
        ``GzipCodec``); a checksum follows it. None for no compression, which is the fastest.
    recipe
        What the numbers follow from, as a hash: kept until the store is complete, so that `resume` can tell
        whether it is the same.
    group
        What kind of group it is a part of, if it is in one.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    StoreError
        If `path` is taken, or cannot be written.
    """
    location = locate(path)
    lengths = tuple(as_integer(length, f"length of axis {axis}") for axis, length in enumerate(shape))
    chunk_lengths = normalize_chunks(chunks, lengths, len(moduli))
    owner, replacement = begin(location, overwrite)
    attribute = make_attribute(moduli, signed, check_bound(bound, moduli, signed), owner.token, recipe, group)
    files: Files = {}
    check_lengths((len(moduli), *lengths), (len(moduli), *chunk_lengths), RESIDUE_DTYPE.itemsize)
    array = zarr.create_array(  # in memory, so that a wrong codec shows before anything is replaced
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
    ChunkCodecs.of(array.metadata.to_dict())
    if len(files[METADATA_KEY]) > LONGEST_METADATA:
        raise ValueError(f"metadata of {len(moduli)} moduli would have more than {LONGEST_METADATA} bytes")
    take_anew(owner, files)
    return StoreWriter(load(owner.location)[0], owner, replacement)


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
    location, replacement = place_begun(locate(path).check_writable())
    info, complete = load(location)
    if complete:
        raise StoreError(f"{info.path}: the store is complete: there is nothing to resume")
    check(info)
    found = check_recipe(info.location, recipe)
    writer = StoreWriter(info, Owner(info.location), replacement)
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
    owner : Owner
        This writer's right to it.
    """

    def __init__(self, info: StoreInfo, owner: Owner, replacement: Replacement | None = None) -> None:
        self.info = info
        self.owner = owner
        self._replacement = replacement

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
        return "rnsdask.StoreWriter", self.owner.token, *self.info.__dask_tokenize__()

    def take_over(self, recipe: str | None) -> None:
        """Make the store this writer's, and remove what interrupted writes have left behind."""
        info = self.info
        attribute = make_attribute(info.moduli, info.signed, info.bound, self.owner.token, recipe)
        change = self._set_attribute(attribute)
        self.owner.take(changed_metadata(info.location, change))
        self._reload()
        remove_left_behind(info.location)

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
            file, owner = info.chunk_file(index), self.owner
            write_chunk_file(file, residues, info.chunk_shape, name, owner.check, owner.place)
            return
        key = info.chunk_key(index)
        encoded = encode_chunk(info.metadata, key, (slice(None), *slices), residues)
        self.owner.put_chunk(info.location, key, encoded, name)

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
        self.owner.change_metadata(lambda array: array.resize((len(info.moduli), new)))
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

    def finish(self, bound: SupportsIndex | None = None, group: str | None = None) -> StoreInfo:
        """Declare the store complete; if it is to replace another one, it does so now.

        Parameters
        ----------
        bound
            Upper bound of the absolute value of every number, where it became known in writing; None keeps
            the one that the store was created with.
        group
            What it has in common with the other parts of its group, if it is in one.

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
        self.owner.check()
        missing = self.missing_chunks()
        if missing:
            raise StoreError(
                f"{info.path}: it cannot be completed: {len(missing)} of {info.n_chunks} chunks are not "
                f"written, the first of them {info.chunk_key(missing[0])}"
            )
        content = content_of(info.location, map(info.chunk_key, info.indices()))
        attribute = complete_attribute(info, final_bound, content, group)
        location = finish(self.owner, self._set_attribute(attribute), self._replacement)
        self.info = load(location)[0]
        return self.info

    def _set_attribute(self, attribute: dict[str, Any]) -> Callable[[Any], object]:
        return lambda array: array.update_attributes({ATTRIBUTE: attribute})

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


def begin(
    location: Location, overwrite: bool, attribute: str = ATTRIBUTE
) -> tuple[Owner, Replacement | None]:
    """Find where an array is written: in its place, or beside one that it is to replace; nothing changes yet.

    Raises
    ------
    StoreError
        If something else is there.
    """
    location.check_writable()
    if not _is_in_the_way(location, overwrite):
        return Owner(location, attribute), None
    replacement = Replacement(location)
    staged = replacement.staged
    names = staged.names() if staged.kind() == "folder" else set()
    if state(staged) == "whole" or names != _own(names):
        raise StoreError(
            f"{staged.path}: it exists; remove it, or move it away: what is to replace {location.path} is "
            "written there"
        )
    return Owner(staged, attribute), replacement


def take_anew(owner: Owner, files: Files) -> None:
    """Begin an array by the metadata document that Zarr has made in memory, without what is there already."""
    owner.take(files[METADATA_KEY].to_bytes())
    clear(owner.location, keep=(METADATA_KEY,))
    owner.check()


def place_begun(location: Location) -> tuple[Location, Replacement | None]:
    """Find where an array was begun that is to be resumed: in its place, or beside one that it is to replace.

    Raises
    ------
    StoreError
        If it is a part of a group, or lost.
    """
    check_no_part(location)
    begun = Replacement.begun(location)
    if begun is not None:
        return begun.staged, begun
    if state(location) == "replaced":
        raise StoreError(f"{location.path}: what was to replace it is lost; write it anew, with --overwrite")
    return location, None


def finish(owner: Owner, change: Callable[[Any], object], replacement: Replacement | None) -> Location:
    """Have Zarr write the final metadata of an array, and put it in place of the one that it is to replace.

    Returns
    -------
    location : Location
        Where it is then.
    """
    remove_left_behind(owner.location)
    owner.check()
    metadata = changed_metadata(owner.location, change)
    if replacement is None:
        owner.write_metadata(metadata)
        return owner.location
    replacement.put_in_place(metadata, owner.write_metadata)
    return replacement.location


def _is_in_the_way(location: Location, overwrite: bool) -> bool:
    """Whether a whole Zarr array is at a place, and to be replaced; StoreError if anything else is."""
    path, kind = location.path, location.kind()
    if kind == "nothing":
        return False
    if kind == "file":
        raise StoreError(f"{path}: it exists and is not a Zarr array")
    names = location.names()
    if all(map(is_left_behind, names)):  # metadata whose writing was interrupted, or nothing
        return False
    if METADATA_KEY not in names or not _is_array(location):
        raise StoreError(f"{path}: it exists and is not a Zarr array, but a folder with {_enumerate(names)}")
    check_no_part(location)
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with --overwrite (overwrite=True)")
    if others := names - _own(names):
        raise StoreError(f"{path}: it is not replaced, because it also holds {_enumerate(others)}")
    return state(location) == "whole"


def _own(names: set[str]) -> set[str]:
    """Those of the names in a folder that are of an array."""
    return {name for name in names if name in (METADATA_KEY, CHUNK_FOLDER) or is_left_behind(name)}


def _is_array(location: Location) -> bool:
    found = document_of(location)
    return found is not None and found["node_type"] == "array"


def _enumerate(names: Iterable[str], shown: int = 3) -> str:
    """List the first few of some names."""
    ordered = sorted(names)
    more = f" and {len(ordered) - shown} more" if len(ordered) > shown else ""
    return ", ".join(ordered[:shown]) + more
