"""Arrays of signed integers with stored intervals on disk: a Zarr group (docs/store-format.md)."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.backend import to_backend
from rnsdask.cluster.limits import check_graph
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout as array_layout
from rnsdask.core.errors import CorruptChunkError, StoreError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.proof import find_wrong_header
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.sources import reads
from rnsdask.rns.system import RNS

KIND = "mpint"  # what format 1 calls them
"""What the attribute of a group says that it holds."""


def write_array(columns: da.Array, moduli: ModuliSet, location: store.Location, overwrite: bool) -> None:
    """Write lazy columns to a new group, chunk by chunk."""
    if overwrite and reads(columns.dask, location):
        raise StoreError(f"{location.path}: an array cannot overwrite the group that it is read from")
    shape: tuple[int, ...] = columns.shape[1:]
    # Of an axis without numbers, Dask has a chunk of no length, and a store a grid of no chunks.
    chunks = array_layout.storable_chunks(columns.chunks[1:], shape, len(moduli))
    with checked_workers():
        writer = store.create_group(
            location, KIND, RNS(moduli), shape, layout.PART_DTYPES, chunks=chunks, overwrite=overwrite
        )
        options: dict[str, Any] = {"writer": writer, "moduli": moduli}
        reduce_chunks(_write_block, columns, dtype=bool, located=True, like=np.empty(0), **options).compute()
    writer.finish()


def _write_block(
    block: Any, *, writer: store.GroupWriter, moduli: ModuliSet, place: Place
) -> NDArray[np.bool_]:
    block = to_backend(block, "cpu")
    if block[0].size:
        parts = {name: layout.part_of(block, moduli, name) for name in layout.PART_DTYPES}
        residues = np.ascontiguousarray(layout.residues_of(block, moduli))
        writer.write_chunk(place.index, residues, parts)
    return np.ones((1,) * block.ndim, dtype=bool)


def open_info(path: store.StorePath) -> store.GroupInfo:
    """Read and check what a complete group says about itself."""
    return store.open_group(path, KIND, layout.PART_DTYPES)


def read_array(location: store.Location) -> tuple[da.Array, ModuliSet]:
    """Open a complete group: lazy columns, and the moduli set."""
    info = open_info(location)
    residues = info.residues
    check_graph(residues.n_chunks, info.path)
    rows = layout.rows_of(residues.moduli)
    # Axis by axis: where one has no numbers, Dask repeats the chunks of the others.
    grid = (
        da.core.normalize_chunks((chunk,), (length,), dtype=array_layout.RESIDUE_DTYPE)[0]
        for chunk, length in zip(residues.chunks, residues.shape, strict=True)
    )
    name = f"open-interval-rns-{tokenize(info)}"
    columns = map_chunks(_read_block, rows=rows, chunks=tuple(grid), located=True, name=name, info=info)
    return columns, residues.moduli


def _read_block(*, info: store.GroupInfo, place: Place) -> NDArray[np.uint32]:
    moduli, index = info.residues.moduli, place.index
    if not info.residues.count:  # Dask has chunks of no numbers where a group has none
        shape = array_layout.part_shape(index, info.residues.shape, info.residues.chunks)
        return np.empty((layout.rows_of(moduli), *shape), dtype=array_layout.RESIDUE_DTYPE)
    residues, parts = store.read_group_chunk(info, index)
    right = layout.follow_rules(residues, moduli, **parts)
    if not right.all():
        wrong = int(right.argmin())
        values = ", ".join(f"{name} {part.reshape(-1)[wrong]}" for name, part in parts.items())
        raise CorruptChunkError(
            f"{info.path}: chunk {index}: number {wrong} has a header that no number has: {values}"
        )
    return layout.pack(residues, moduli, **parts)  # type: ignore[no-any-return]


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
