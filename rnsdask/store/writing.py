"""Creating stores and writing their chunks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, naming_gpu_memory, to_backend
from rnsdask.core.errors import StoreError
from rnsdask.core.layout import ChunkPlan, Chunks, plan_chunks
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.store.attributes import begun_attribute, check_job, complete_attribute, read_job
from rnsdask.store.chunk_files import chunk_file_size, sparse_size, write_chunk_file
from rnsdask.store.codecs import ChunkCodecs, encode_chunk
from rnsdask.store.content import content_of
from rnsdask.store.documents import (
    ATTRIBUTE,
    array_document,
    axis_names,
    changed_metadata,
    check_lengths,
    concealed,
    make_strict_document,
    parse_document,
    with_attributes,
)
from rnsdask.store.job import write_job
from rnsdask.store.location import LONGEST_METADATA, Location
from rnsdask.store.metadata import ArrayInfo, StoreInfo, load
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import are_valid, chunk_problems, read_chunk, residue_problems
from rnsdask.store.space import check_room
from rnsdask.store.target import Target, find_begun, nothing_to_resume, target_at


def create(
    path: StorePath,
    system: NumberSystem,
    shape: Sequence[SupportsIndex],
    *,
    chunks: Chunks = "auto",
    overwrite: bool = False,
    codecs: Iterable[Any] | None = None,
    job: str | None = None,
    with_room: bool = False,
    nonzero: int | None = None,
) -> "StoreWriter":
    """Create a store without chunks, which is incomplete until its writer finishes.

    `path` and `chunks` are as `rnsdask.store.locate` and `rnsdask.core.layout.plan_chunks` take them.
    `codecs` is one of Zarr's compressors, such as ``[ZstdCodec(level=3)]``, or nothing, which is fastest. A
    one-dimensional array may grow, from length 0 on. `overwrite` replaces a Zarr array at `path`, or one that
    another job writes there, and nothing else. `resume` recognises the job by `job`, a hash of all that
    determines the numbers. `with_room` keeps chunks that are longer than the array, for later appends. At
    most `nonzero` numbers are not 0: zeros take no disk space.

    StoreError if `path` exists, or cannot be written, or the chunks do not fit on its disk.
    """
    location = locate(path)
    lengths = tuple(as_integer(length, f"length of axis {axis}") for axis, length in enumerate(shape))
    growing = (0,) * len(lengths) if with_room else lengths
    plan = replace(plan_chunks(chunks, growing, system.words32), shape=lengths)
    target = target_at(location, overwrite)
    attribute = begun_attribute(system, target.token, job)
    # Before anything is replaced, to detect a wrong codec.
    metadata = _document(system, plan, codecs or (), attribute)
    if not codecs:  # otherwise the size is unknown
        _check_room(location, system, plan, nonzero)
    target.begin(metadata)
    writer = StoreWriter(load_own(target), target)
    if not (found := writer.info.system).same_numbers(system):
        writer.discard()
        raise TypeError(f"{system!r} cannot be stored: its fields in a store are those of {found!r}")
    return writer


def _check_room(location: Location, system: NumberSystem, plan: ChunkPlan, nonzero: int | None) -> None:
    needed = plan.n_chunks * chunk_file_size((system.words32, *plan.chunks))
    if nonzero is not None:
        needed = min(needed, sparse_size(plan.n_chunks, nonzero * system.rows))
    check_room({location: needed})


def _document(
    system: NumberSystem, plan: ChunkPlan, codecs: Iterable[Any], attribute: dict[str, Any]
) -> bytes:
    """Make the metadata document of a store, and check that it can be read."""
    shape, chunk_shape = (system.rows, *plan.shape), (system.rows, *plan.chunks)
    check_lengths(shape, chunk_shape, system.word_dtype.itemsize)
    metadata = make_strict_document(
        shape,
        chunk_shape,
        system.word_dtype,
        codecs,
        dimension_names=("residue", *axis_names(len(plan.shape))),
        attributes={ATTRIBUTE: attribute},
    )
    ChunkCodecs.of(array_document(metadata))
    if len(metadata) > LONGEST_METADATA:
        raise ValueError(f"metadata of {system.rows} moduli would have more than {LONGEST_METADATA} bytes")
    return metadata


def resume(
    path: StorePath,
    check: Callable[[StoreInfo], object] = lambda _: None,
    *,
    job: str | None = None,
    any_job: bool = False,
) -> "StoreWriter":
    """Take over an incomplete store, to write its missing chunks.

    `check` is called before anything changes, and may raise. With `any_job` another job may have begun the
    store, because the caller compares all existing chunks. StoreError if the store is missing, invalid or
    complete, was created by another job, or cannot be written.
    """
    location = locate(path)
    begun = find_begun(location)
    info, complete = load(begun)
    if complete:
        raise nothing_to_resume(info.path)
    check(info)
    found = job if any_job else check_job(begun, job)
    target = Target(location, begun, replaces=True)
    target.take_over(begun_attribute(info.system, target.token, found), info.version)
    return StoreWriter(load_own(target), target)


class ArrayWriter(ABC):
    """Writer of the chunks of an array, in any order, from any thread; `finish` is called once at the end.

    Copies, also pickled ones, write to the same array, so that tasks in other processes can write chunks.
    Until `finish`, the array is incomplete and cannot be opened for reading.

    A writer that finds another writer's token in the array stops with an error. So jobs never mix their
    chunks, and a task that outlives its job publishes nothing.
    """

    info: ArrayInfo

    def __init__(self, info: Any, target: Target) -> None:
        self.info = info
        self.target = target

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return type(self).__name__, self.target.token, self.info

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what messages call a chunk."""
        return self.info.chunk_name(index)

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the indices of all chunks, in C order."""
        return self.info.indices()

    @abstractmethod
    def write_chunk(self, index: Sequence[int], block: Array, /) -> None:
        """Write a whole chunk, NumPy's or CuPy's, atomically.

        TypeError or ValueError if the block has another type or shape, or holds an invalid word, such as a
        residue that is not below its modulus; StoreError if another writer has taken the array over.
        """

    @abstractmethod
    def read_chunk(self, index: Sequence[int]) -> NDArray[Any]:
        """Read and check a written chunk."""

    @abstractmethod
    def _problems(self, index: tuple[int, ...]) -> list[str]:
        """Read a chunk, and describe its faults."""

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""
        info = self.info
        found = info.location.found(info.chunk_keys())
        return [index for index in self.indices() if not self._is_written(found.get(info.chunk_key(index)))]

    def _is_written(self, version: tuple[Any, ...] | None) -> bool:
        """Whether a chunk is written, by the version of its file."""
        return version is not None

    def damaged_chunks(self, map_chunks: Callable[..., Iterable[list[str]]] = map) -> list[tuple[int, ...]]:
        """Read all written chunks, by `map_chunks` as `verify` does, and list the damaged ones."""
        written = sorted(set(self.indices()).difference(self.missing_chunks()))
        problems = map_chunks(self._problems, written)
        return [index for index, found in zip(written, problems, strict=True) if found]

    def finish(self) -> object:
        """Declare the array complete, and put it in its place; StoreError if a chunk is missing."""
        self._finish(lambda _: {"complete": True})
        return None

    def _finish(self, attribute_of: Callable[[str], dict[str, Any]]) -> None:
        """Finish with the attribute that a function derives from the hash of all chunks' checksums."""
        info, target = self.info, self.target
        with target.holding():
            missing = self.missing_chunks()
        target.check()  # last, because a job that takes the array over may have removed them
        if missing:
            raise StoreError(
                f"{target.location.path}: it cannot be completed: {len(missing)} of {info.n_chunks} chunks "
                f"are not written, the first of them {info.chunk_key(missing[0])}"
            )
        with target.holding():
            content = self._content()
            attribute = attribute_of(content)
            job = read_job(target.staged, target.attribute)
            metadata = with_attributes(target.staged, {target.attribute: attribute})
            write_job(target, job, metadata, content)
        target.finish(metadata)

    def _content(self) -> str:
        return content_of(self.info.location, self.info.chunk_keys())

    def discard(self) -> None:
        """Remove the unfinished array, unless another writer has taken it over."""
        self.target.discard()


class StoreWriter(ArrayWriter):
    """Writes the chunks of a store."""

    info: StoreInfo

    def write_chunk(self, index: Sequence[int], residues: Array) -> None:
        """Write a whole chunk of the system's words atomically."""
        info, name = self.info, self.info.chunk_name(index)
        info.check_release()
        slices = info.slices(index)
        if not isinstance(residues, np.ndarray) and backend_name(residues) != "cuda":
            raise TypeError(f"{name} must be given as a NumPy or CuPy array, got {type(residues).__name__}")
        info.system.check_words(residues)
        expected = (info.system.rows, *(s.stop - s.start for s in slices))
        if residues.shape != expected:
            raise ValueError(f"{name} has shape {expected}, got residues of shape {residues.shape}")
        if not (info.has_chunk_files and _is_valid_on_gpu(info, residues, name)):
            residues = to_backend(residues, "cpu")
            for problem in residue_problems(info, index, residues):
                raise ValueError(problem)
        if info.has_chunk_files:
            file, target = info.chunk_file(index), self.target
            write_chunk_file(file, residues, info.chunk_shape, name, target.check, target.unfinished)
            return
        key = info.chunk_key(index)
        encoded = encode_chunk(info.metadata, key, (slice(None), *slices), residues)
        self.target.publish(key, encoded, name)

    def read_chunk(self, index: Sequence[int]) -> NDArray[np.uint32]:
        """Read a written chunk, as `rnsdask.store.read_chunk` does."""
        return read_chunk(self.info, index)

    def resize(self, shape: Sequence[SupportsIndex]) -> None:
        """Lengthen a one-dimensional array, for numbers whose count is not known beforehand.

        ValueError if it would get shorter, or its last chunk is written and only partly filled.
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
        with self.target.holding():
            resized = changed_metadata(info.location, lambda array: array.resize((info.system.rows, new)))
        self.target.write_metadata(concealed(resized))
        self.info = load_own(self.target)

    def _is_written(self, version: tuple[Any, ...] | None) -> bool:
        info = self.info
        if version is None or not info.has_chunk_files:
            return version is not None
        return bool(version[0] == chunk_file_size(info.file_shape))

    def _problems(self, index: tuple[int, ...]) -> list[str]:
        return chunk_problems(self.info, index)

    def finish(self, bound: SupportsIndex | None = None) -> StoreInfo:
        """Declare the store complete, put it in its place, and return its metadata.

        `bound` replaces the bound that the store was created with; ValueError if it is beyond the range of
        the moduli set.
        """
        system = self.info.system if bound is None else self.info.system.with_exact_bound(bound)

        def attribute(content: str) -> dict[str, Any]:
            metadata = parse_document(self.target.staged.read_metadata())
            return complete_attribute(metadata, system, content)

        own = replace(self.info, location=self.target.location, system=system)
        self._finish(attribute)
        self.info = own
        with suppress(StoreError):  # it is stored, even if another job is already replacing it
            self.info = load(self.target.location)[0]
        return self.info


def load_own(target: Target) -> StoreInfo:
    """Load the metadata of the store that a writer has just begun or taken over."""
    with target.holding():
        info = load(target.staged)[0]
    target.check()
    return info


def _is_valid_on_gpu(info: StoreInfo, words: Array, name: str) -> bool:
    """Whether words are on a GPU, and it finds all of them valid."""
    if backend_name(words) != "cuda":
        return False
    with naming_gpu_memory(name):
        return are_valid(info, words.reshape(info.system.rows, -1))
