"""Arrays of signed integers with stored intervals on disk: a Zarr group (docs/store-format.md)."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.rns_storage import read_whole_chunk, reads_straight
from rnsdask.arrays.storage import Stored
from rnsdask.backend import Array, contiguous, first_alone, naming_gpu_memory, to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.core import layout as array_layout
from rnsdask.core.errors import CorruptChunkError, StoreError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.proof import find_wrong_header
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.lazy.chunks import normalize_chunks
from rnsdask.lazy.map import map_chunks
from rnsdask.rns.system import RNS

KIND = "mpint"  # what format 1 calls them
"""What the attribute of a group says that it holds."""


class ColumnsWriter(store.ArrayWriter):
    """Writes chunks of columns to a group, as `store.StoreWriter` those of residues to a store."""

    def __init__(self, group: store.GroupWriter, moduli: ModuliSet) -> None:
        super().__init__(group.target)
        self._group, self._moduli = group, moduli

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.ColumnsWriter", *self._group.__dask_tokenize__()

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what messages call a chunk."""
        return self._group.chunk_name(index)

    def indices(self) -> Iterable[tuple[int, ...]]:
        """Return the indices of all chunks, in C order."""
        return self._group.indices()

    def write_chunk(self, index: Sequence[int], columns: Array) -> None:
        """Write a whole chunk, NumPy's or CuPy's: residues and each part, each at once or not at all."""
        with first_alone(layout.part_of):
            found = {name: layout.part_of(columns, self._moduli, name) for name in layout.PART_DTYPES}
        parts = {name: to_backend(part, "cpu") for name, part in found.items()}
        self._group.write_chunk(index, contiguous(layout.residues_of(columns, self._moduli)), parts)

    def read_chunk(self, index: Sequence[int]) -> NDArray[np.uint32]:
        """Read a chunk that is written, and check it."""
        residues, parts = self._group.read_chunk(index)
        columns: NDArray[np.uint32] = _columns_of(residues, parts, self._moduli, self.chunk_name(index))
        return columns

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks that are not written yet, in C order."""
        return self._group.missing_chunks()

    def discard(self) -> None:
        """Remove what is written."""
        self._group.remove()

    def _problems(self, index: tuple[int, ...]) -> list[str]:
        try:
            self.read_chunk(index)
        except StoreError as error:
            return [str(error)]
        return []

    def finish(self) -> None:
        """Declare the group complete; if it is to replace another one, it does so now."""
        self._group.finish()


def create(
    location: store.Location,
    system: IntervalRNS,
    shape: Sequence[int],
    chunks: Sequence[int],
    *,
    overwrite: bool,
    with_room: bool = False,
    job_identity: str | None = None,
) -> ColumnsWriter:
    """Create a group without chunks."""
    words = math.prod(shape) * layout.rows_of(system.moduli)
    store.check_room({location: words * array_layout.RESIDUE_DTYPE.itemsize})
    how: dict[str, Any] = {"overwrite": overwrite, "with_room": with_room, "job_identity": job_identity}
    parts = layout.PART_DTYPES
    writer = store.create_group(
        location, KIND, _system_of_residues(system), shape, parts, chunks=tuple(chunks), **how
    )
    return ColumnsWriter(writer, system.moduli)


def resume(
    location: store.Location, check: Callable[[store.StoreInfo], object], job_identity: str | None
) -> ColumnsWriter:
    """Open an incomplete group to write the rest, as :func:`rnsdask.store.resume_group`."""
    writer = store.resume_group(location, KIND, layout.PART_DTYPES, check, job_identity=job_identity)
    return ColumnsWriter(writer, writer.moduli)


def open_stored(location: store.Location) -> Stored:
    """Open a complete group that is to be appended to."""
    info = open_info(location)
    residues = info.residues
    return Stored(info, IntervalRNS(residues.moduli, residues.system.source), residues.shape, residues.chunks)


def append(info: store.GroupInfo, system: IntervalRNS, axis: int, length: int) -> ColumnsWriter:
    """Refuse to append to a group."""
    del system, axis, length
    raise StoreError(f"{info.path}: nothing can be appended to a group; write it anew")


def _system_of_residues(system: IntervalRNS) -> RNS:
    """The system of the magnitudes' residues, which are a store of their own."""
    return RNS(system.moduli, source=system.source)


def open_info(path: store.StorePath) -> store.GroupInfo:
    """Read and check what a complete group says about itself."""
    return store.open_group(path, KIND, layout.PART_DTYPES)


def read_words(info: store.GroupInfo, *, backend: str = "cpu") -> da.Array:
    """The columns of a complete group, lazy, whose chunks go to a processor as :func:`.open_zarr` says."""
    residues = info.residues
    check_graph(residues.n_chunks, info.path)
    rows = layout.rows_of(residues.moduli)
    chunks = normalize_chunks(residues.chunks, residues.shape, rows)
    how: dict[str, Any] = {"backend": backend, "straight": reads_straight(residues, backend)}
    name = f"open-interval-rns-{tokenize(info, how)}"
    how.update(rows=rows, chunks=chunks)
    words: da.Array = map_chunks(_read_block, located=True, name=name, info=info, **how)
    return words


def _read_block(*, info: store.GroupInfo, backend: str, straight: bool, place: Place) -> Array:
    moduli, index = info.residues.moduli, place.index
    if not info.residues.count:  # Dask has chunks of no numbers where a group has none
        shape = array_layout.part_shape(index, info.residues.shape, info.residues.chunks)
        return to_backend(np.empty((layout.rows_of(moduli), *shape), array_layout.RESIDUE_DTYPE), backend)
    name = f"{info.path}: chunk {index}"
    read = partial(read_whole_chunk, backend=backend, straight=straight)
    residues, parts = store.read_group_chunk(info, index, read)
    with naming_gpu_memory(name):
        return _columns_of(residues, parts, moduli, name)


def _columns_of(residues: Array, parts: dict[str, NDArray[Any]], moduli: ModuliSet, name: str) -> Array:
    """Columns of what is read of a chunk; CorruptChunkError if a header in it is one that no number has.

    Headers of a GPU's residues are checked on the host, where they were read: there NumPy lets go of Python's
    lock, and CuPy's many small kernels would be launched under it.
    """
    columns = layout.checked_columns(residues, moduli, **parts)
    if columns is not None:
        return columns
    right = layout.follow_rules(residues, moduli, **parts)
    if not right.all():
        wrong = int(right.argmin())
        values = ", ".join(f"{part} {value.reshape(-1)[wrong]}" for part, value in parts.items())
        raise CorruptChunkError(f"{name}: number {wrong} has a header that no number has: {values}")
    return layout.pack(residues, moduli, **parts)


# ---- verification -----------------------------------------------------------------------------------------


def verify(info: store.GroupInfo, *, map_chunks: Callable[..., Iterable[list[str]]] = map) -> Iterator[str]:
    """Read every chunk of a group, and describe whatever is wrong with it, as `rnsdask.store.verify` does.

    Wrong is also a sign or an interval that is not one of its number.
    """
    return store.verify_group(info, partial(_problems, moduli=info.residues.moduli), map_chunks=map_chunks)


def _problems(
    residues: NDArray[np.uint32], parts: dict[str, NDArray[Any]], *, moduli: ModuliSet
) -> list[str]:
    """Describe the first number of a chunk whose sign and interval are not its own."""
    wrong = find_wrong_header(layout.pack(residues, moduli, **parts), moduli)
    return [] if wrong is None else [f"the header of number {wrong.index} in it is wrong: {wrong.text()}"]
