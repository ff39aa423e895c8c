"""Reading chunks, and verifying stores: a chunk is whole and matches its checksum, or it is an error."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, contiguous, kernels_of, naming_gpu_memory, to_backend
from rnsdask.backend.cpu import exceeds
from rnsdask.constants import last_residues
from rnsdask.core.errors import ChangedStoreError, CorruptChunkError, StoreError
from rnsdask.core.layout import ChunkPlan
from rnsdask.core.moduli import ModuliSet
from rnsdask.store.chunk_files import read_chunk_file, read_chunk_file_on_gpu
from rnsdask.store.location import JOB_KEY, METADATA_KEY, STAGED, Location
from rnsdask.store.metadata import StoreInfo
from rnsdask.store.version import Version


@contextmanager
def belonging(location: Location, version: Version) -> Iterator[None]:
    """Ensure that the chunks read in this context belong to the metadata document that a reader has opened.

    ChangedStoreError if the document has changed since, also where that is why a chunk cannot be read.
    """
    try:
        yield
    except CorruptChunkError:
        version.check(location)
        raise
    version.check(location)


def read_chunk(info: StoreInfo, index: Sequence[int]) -> NDArray[np.uint32]:
    """Read the chunk at an index of ``info.grid``, cut at the array's edge, and check it.

    The residues (n, ...) are C-contiguous and writable. CorruptChunkError if the chunk is missing, truncated,
    or does not match its checksum, or a residue is not below its modulus; ChangedStoreError if the store was
    overwritten or removed since `info` was read.
    """
    residues, valid = _read_whole(info, index)
    _check_residues(info, index, residues, valid=valid)
    return residues


def _read_whole(info: StoreInfo, index: Sequence[int]) -> tuple[NDArray[np.uint32], bool]:
    """Read a chunk; also return whether all residues are known to be valid, those of the padding included."""
    info.check_release()
    slices = info.slices(index)
    last = _last_words(info)
    with belonging(info.location, info.version):
        if not info.has_chunk_files:
            residues = info.decode_chunk(index)
            return residues, last is not None and not exceeds(residues.reshape(len(last), -1), last)
        name = info.chunk_name(index)
        residues, valid = read_chunk_file(info.chunk_file(index), info.file_shape, last, name)
    residues = residues.view(info.system.word_dtype)
    return np.ascontiguousarray(residues[_within(slices)]), valid


def _last_words(info: StoreInfo) -> NDArray[np.uint32] | None:
    """Greatest valid word of each row, 2**32 - 1 for one without residues; None if no row has residues."""
    moduli = info.system.residue_moduli
    if moduli is None:
        return None
    last = last_residues(moduli)
    return np.pad(last, (0, info.system.rows - len(last)), constant_values=2**32 - 1)


def _within(slices: tuple[slice, ...]) -> tuple[slice, ...]:
    """Part of a whole chunk of residues that lies within the array, given the part of the array."""
    return slice(None), *(slice(s.stop - s.start) for s in slices)


def _check_residues(
    info: StoreInfo,
    index: Sequence[int],
    residues: NDArray[np.uint32],
    first: Sequence[int] | None = None,
    *,
    valid: bool = False,
) -> None:
    """Raise CorruptChunkError for an invalid word of a chunk, or of a part from `first` on.

    With `valid`, each residue is known to be below its modulus.
    """
    problems = _fault_problems if valid else residue_problems
    for problem in problems(info, index, residues, first):
        raise CorruptChunkError(problem)


def read_chunk_on_gpu(info: StoreInfo, index: Sequence[int]) -> Array:
    """Read a chunk into the memory of this process's GPU through pinned host memory, and check it.

    The store's chunks must be files. Otherwise as :func:`read_chunk`; GPUMemoryError if the chunk does not
    fit.
    """
    info.check_release()
    slices = info.slices(index)
    file, name = info.chunk_file(index), info.chunk_name(index)
    moduli = info.system.residue_moduli
    with naming_gpu_memory(name):
        with belonging(info.location, info.version):
            residues, valid = read_chunk_file_on_gpu(file, info.file_shape, moduli, name)
        # The part beyond the edge is read for its checksum.
        residues = contiguous(residues.view(info.system.word_dtype)[_within(slices)])
        # The part beyond the edge may hold anything.
        if not are_valid(info, residues.reshape(info.system.rows, -1), valid):
            _check_residues(info, index, to_backend(residues, "cpu"))
        return residues


def are_valid(info: StoreInfo, words: Array, checked: bool = False) -> bool:
    """Whether words (rows, N) are valid numbers of the store's system.

    With `checked`, each residue is known to be below its modulus.
    """
    moduli = info.system.residue_moduli
    is_open = moduli is not None and not checked
    if is_open and kernels_of(words).first_invalid(words[: len(moduli)], moduli) is not None:
        return False
    return info.system.first_invalid(words) is None


def read_part(info: StoreInfo, index: Sequence[int], start: int, stop: int) -> NDArray[np.uint32]:
    """Read part of a chunk in memory for that part only, and check the whole chunk.

    The store's chunks must be files, and the part is along its `split_axis`. Otherwise as
    :func:`read_chunk`.
    """
    info.check_release()
    slices = info.slices(index)
    axis = info.split_axis
    inner = math.prod(info.chunks[axis + 1 :]) * info.system.words32 // info.system.rows
    stop = min(stop, slices[axis].stop - slices[axis].start)
    columns = slice(start * inner, stop * inner)
    name = info.chunk_name(index)
    last = _last_words(info)
    with belonging(info.location, info.version):
        residues, valid = read_chunk_file(info.chunk_file(index), info.file_shape, last, name, columns)
    residues = residues.view(info.system.word_dtype)
    residues = residues.reshape(info.system.rows, *info.chunks[:axis], stop - start, *info.chunks[axis + 1 :])
    residues = np.ascontiguousarray(residues[_within(slices)])
    first = [start if i == axis else 0 for i in range(len(info.chunks))]
    _check_residues(info, index, residues, first, valid=valid)
    return residues


def read_corner(info: StoreInfo, lengths: Sequence[int]) -> NDArray[np.object_]:
    """Read the first numbers along each axis, and of the chunks those that hold them: an array of ints."""
    corner, plan = np.empty(lengths, dtype=object), ChunkPlan(tuple(lengths), info.chunks)
    for index in plan.indices():
        places = plan.slices(index)
        cut = tuple(slice(place.stop - place.start) for place in places)
        words = np.ascontiguousarray(read_chunk(info, index)[:, *cut])
        corner[places] = info.system.decode(words)
    return corner


def verify(info: StoreInfo, *, map_chunks: Callable[..., Iterable[list[str]]] = map) -> Iterator[str]:
    """Read every chunk of a store, and yield one line for each fault.

    `map_chunks` applies a function to all chunks: the ``map`` of an executor does so in parallel, each worker
    with one chunk in memory. A line names the store, the file or chunk, and the fault: a file that does not
    belong to the store (HTTP servers list none); a chunk that is missing, has a wrong size, or does not match
    its checksum; the first residue of each row that is not below its modulus, with its position in the array;
    the first number of a chunk that is greater in magnitude than the store's bound.
    """
    keys = info.location.versions().keys() - {METADATA_KEY, JOB_KEY}
    for key in sorted(key for key in keys if not info.holds(key)):
        if not key.startswith(f"{STAGED}/"):  # the folder of this store's replacement
            yield f"{info.path}: file {key} does not belong to the store"
    found = False
    problems_of_chunks = map_chunks(partial(chunk_problems, info), info.indices())
    for _, problems in zip(info.indices(), problems_of_chunks, strict=True):
        found |= bool(problems)
        yield from problems
    if not found and info.content not in (None, info.find_content()):
        yield f"{info.path}: its chunks are whole, but not those that it was completed with"


def chunk_problems(info: StoreInfo, index: tuple[int, ...]) -> list[str]:
    """Read a chunk, and describe its faults."""
    try:
        residues = read_chunk(info, index)
    except ChangedStoreError:
        raise
    except StoreError as error:
        return _all_problems(info, index) or [str(error)]
    return list(number_problems(info, index, residues))


def _all_problems(info: StoreInfo, index: tuple[int, ...]) -> list[str]:
    """Describe all residues that are too great in an otherwise intact chunk."""
    try:
        residues, _ = _read_whole(info, index)
    except StoreError:
        return []
    return list(residue_problems(info, index, residues))


def number_problems(info: StoreInfo, index: Sequence[int], words: Array) -> Iterator[str]:
    """Describe the first number of a chunk of valid words that contradicts its store, if any.

    Such a number is beyond the store's bound, or its sign or interval does not match its residues.
    """
    wrong = info.system.first_contradiction(words)
    if wrong is not None:
        shown = _position(info, index, np.unravel_index(wrong[0], words.shape[1:]))
        yield f"{info.chunk_name(index)}: number {shown} {wrong[1]}"


def _position(
    info: StoreInfo, index: Sequence[int], within: Sequence[Any], first: Sequence[int] | None = None
) -> int | tuple[int, ...]:
    """Index in the array, for messages, of a number within a chunk, or a part of it from `first` on."""
    offset = first or (0,) * len(info.chunks)
    parts = zip(within, offset, index, info.chunks, strict=True)
    position = tuple(int(p + o + i * c) for p, o, i, c in parts)
    return position[0] if len(position) == 1 else position


def residue_problems(
    info: StoreInfo, index: Sequence[int], residues: NDArray[np.uint32], first: Sequence[int] | None = None
) -> Iterator[str]:
    """Describe, for each row of a chunk, the first residue that is not below its modulus.

    `residues` are the whole chunk, or the part of it that begins at `first`.
    """
    moduli = info.system.residue_moduli
    if moduli is not None:
        yield from _residue_problems(info, index, residues[: len(moduli)], moduli, first)
    yield from _fault_problems(info, index, residues, first)


def _residue_problems(
    info: StoreInfo,
    index: Sequence[int],
    residues: NDArray[np.uint32],
    moduli: ModuliSet,
    first: Sequence[int] | None,
) -> Iterator[str]:
    largest = residues.max(axis=tuple(range(1, residues.ndim)))
    for row in np.flatnonzero(largest >= np.array(moduli.moduli, np.uint64)):
        modulus = moduli[row]
        wrong = np.flatnonzero(residues[row] >= modulus)
        place = np.unravel_index(wrong[0], residues.shape[1:])
        shown = _position(info, index, place, first)
        more = f" (and {wrong.size - 1} more in the row)" if wrong.size > 1 else ""
        yield (
            f"{info.chunk_name(index)}: residue {residues[row][place]} of number {shown} is not below its "
            f"modulus {modulus} (row {row}){more}"
        )


def _fault_problems(
    info: StoreInfo, index: Sequence[int], words: NDArray[Any], first: Sequence[int] | None
) -> Iterator[str]:
    """Describe the first number of a chunk or part whose words are invalid as a whole."""
    system = info.system
    wrong = system.first_invalid(words)
    if wrong is not None:
        place: Sequence[Any] = np.unravel_index(wrong, words.shape[1:])
        fault = system.fault_of(words[(slice(None), *place)].tolist())
        position = _position(info, index, place, first)
        yield f"{info.chunk_name(index)}: {system.number_is} {position} {fault}"
