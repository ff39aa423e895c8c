"""Arrays of signed integers with stored intervals on disk: a Zarr group (docs/store-format.md)."""

from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask import layout as array_layout
from rnsdask import store
from rnsdask.array import path_token
from rnsdask.backend import to_backend
from rnsdask.errors import StoreError
from rnsdask.moduli import ModuliSet
from rnsdask.mpint import layout
from rnsdask.workers import checked_workers

KIND = "mpint"
"""What the attribute of a group says that it holds."""


def write_array(columns: da.Array, moduli: ModuliSet, location: store.Location, overwrite: bool) -> None:
    """Write lazy columns to a new group, chunk by chunk."""
    if overwrite and any(name.endswith(path_token(location)) for name in columns.dask.layers):
        raise StoreError(f"{location.path}: an array cannot overwrite the group that it is read from")
    shape: tuple[int, ...] = columns.shape[1:]
    # Of an axis without numbers, Dask has a chunk of no length, and a store a grid of no chunks.
    chunks = array_layout.storable_chunks(columns.chunks[1:], shape, len(moduli))
    with checked_workers():
        writer = store.create_group(
            location, KIND, moduli, shape, layout.PART_DTYPES, chunks=chunks, overwrite=overwrite
        )
        written = da.map_blocks(
            _write_block,
            columns,
            writer,
            moduli,
            chunks=((1,), *((1,) * len(axis) for axis in columns.chunks[1:])),
            dtype=bool,
            meta=np.empty((0,) * columns.ndim, dtype=bool),
        )
        written.compute()
    writer.finish()


def _write_block(
    block: Any, writer: store.GroupWriter, moduli: ModuliSet, block_id: tuple[int, ...]
) -> NDArray[np.bool_]:
    block = to_backend(block, "cpu")
    if block[0].size:
        parts = {name: layout.part_of(block, moduli, name) for name in layout.PART_DTYPES}
        residues = np.ascontiguousarray(layout.residues_of(block, moduli))
        writer.write_chunk(block_id[1:], residues, parts)
    return np.ones((1,) * len(block_id), dtype=bool)


def read_array(location: store.Location) -> tuple[da.Array, ModuliSet]:
    """Open a complete group: lazy columns, and the moduli set."""
    info = store.open_group(location, KIND, layout.PART_DTYPES)
    residues = info.residues
    rows = layout.rows_of(residues.moduli)
    # Axis by axis: where one has no numbers, Dask repeats the chunks of the others.
    grid = (
        da.core.normalize_chunks((chunk,), (length,), dtype=array_layout.RESIDUE_DTYPE)[0]
        for chunk, length in zip(residues.chunks, residues.shape, strict=True)
    )
    columns = da.map_blocks(
        _read_block,
        info=info,
        chunks=((rows,), *grid),
        dtype=array_layout.RESIDUE_DTYPE,
        meta=np.empty((0,) * (len(residues.shape) + 1), dtype=array_layout.RESIDUE_DTYPE),
        name=f"open-mpint-{tokenize(info)}-{path_token(location)}",
    )
    return columns, residues.moduli


def _read_block(*, info: store.GroupInfo, block_id: tuple[int, ...]) -> NDArray[np.uint32]:
    moduli = info.residues.moduli
    if not info.residues.count:  # Dask has a chunk of no numbers where the store has none
        sizes = zip(block_id[1:], info.residues.chunks, info.residues.shape, strict=True)
        lengths = (min(chunk, length - i * chunk) for i, chunk, length in sizes)
        return np.empty((layout.rows_of(moduli), *lengths), array_layout.RESIDUE_DTYPE)
    residues, parts = store.read_group_chunk(info, block_id[1:])
    return layout.pack(residues, moduli, **parts)  # type: ignore[no-any-return]
