"""Arrays of signed integers with stored intervals on disk: a Zarr group (docs/store-format.md)."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask import layout as array_layout
from rnsdask import store
from rnsdask.backend import to_backend
from rnsdask.convert import residues_to_ints
from rnsdask.errors import StoreError
from rnsdask.moduli import ModuliSet
from rnsdask.mpint import layout
from rnsdask.sources import reads
from rnsdask.workers import checked_workers

KIND = "mpint"
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


def open_info(path: store.StorePath) -> store.GroupInfo:
    """Read and check what a complete group says about itself."""
    return store.open_group(path, KIND, layout.PART_DTYPES)


def read_array(location: store.Location) -> tuple[da.Array, ModuliSet]:
    """Open a complete group: lazy columns, and the moduli set."""
    info = open_info(location)
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
        name=f"open-mpint-{tokenize(info)}",
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


# ---- verification -----------------------------------------------------------------------------------------


def verify(info: store.GroupInfo, *, map_chunks: Callable[..., Iterable[list[str]]] = map) -> Iterator[str]:
    """Read every chunk of a group, and describe whatever is wrong with it, as `rnsdask.store.verify` does.

    Wrong is also a sign or an interval that is not one of its number.
    """
    return store.verify_group(info, partial(_problems, moduli=info.residues.moduli), map_chunks=map_chunks)


def _problems(
    residues: NDArray[np.uint32], parts: dict[str, NDArray[Any]], *, moduli: ModuliSet
) -> list[str]:
    """Describe the first number of a chunk whose sign is none, and the first whose interval is wrong."""
    found = []
    flat = residues.reshape(len(moduli), -1)
    sign, low, upp, exponent = (parts[name].reshape(-1) for name in ("sign", "low", "upp", "exponent"))
    header = layout.evaluated(flat, moduli, sign != 0)
    own_low, own_upp, own_exponent = (layout.part_of(header, moduli, n) for n in ("low", "upp", "exponent"))
    if (wrong := np.flatnonzero((sign > 1) | (sign != 0) & (own_upp == 0))).size:
        found.append(f"the sign of number {wrong[0]} in it is {sign[wrong[0]]}")
    shift = np.clip(exponent.astype(np.int64) - own_exponent, -1000, 1000)
    zero = (own_upp == 0) & (low == 0) & (upp == 0) & (exponent == 0)
    proper = (own_upp != 0) & (upp >= 0.5) & (upp < 1) & (low > 0) & (abs(shift) <= 1)
    # What contains the interval of a new evaluation contains the number. Of others each is computed.
    contained = (np.ldexp(low, shift) <= own_low) & (own_upp <= np.ldexp(upp, shift))
    for i in np.flatnonzero(~(zero | proper & contained)):
        low_i, upp_i, exponent_i = float(low[i]), float(upp[i]), int(exponent[i])
        if proper[i] and _contains(low_i, upp_i, exponent_i, flat[:, i : i + 1], moduli):
            continue
        found.append(f"the interval of number {i} in it is not one of it: {low_i}, {upp_i}, {exponent_i}")
        break
    return found


def _contains(low: float, upp: float, exponent: int, column: NDArray[np.uint32], moduli: ModuliSet) -> bool:
    """Whether ``low * 2**exponent <= X/M <= upp * 2**exponent`` for one number, given as a column."""
    number = int(residues_to_ints(column, moduli)[0])
    exact = Fraction(number, moduli.product) / Fraction(2) ** exponent
    return Fraction(low) <= exact <= Fraction(upp)
