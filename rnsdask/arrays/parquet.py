"""Columns of Parquet files as lazy arrays, a chunk for each row group."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.collection import array_type_of
from rnsdask.arrays.creation import as_system
from rnsdask.arrays.tables import pyarrow_for
from rnsdask.core.errors import InputError, brief
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.map import map_chunks
from rnsdask.rns.values import flat_integers, range_of_arrow, system_of_range

_Path: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class _RowGroup:
    """A row group of a file, which had this size and time of modification."""

    path: str
    number: int
    rows: int
    state: tuple[int, int]


def read_parquet(
    path: _Path | Iterable[_Path],
    column: str,
    moduli: ModuliSet | NumberSystem | None = None,
    signed: bool | None = None,
) -> Any:
    """Open a column of Parquet files as a lazy array; it needs pyarrow.

    Parameters
    ----------
    path : str, path-like, or iterable of them
        A local file, or several whose rows come one after the other. On a cluster the workers read them.
    column : str
        The column: of integers, of decimals without fraction, or of text as :func:`.from_ints` reads it.
    moduli : ModuliSet, RNS or IntervalRNS, optional
        The moduli set, or a number system. Without it the fewest 32-bit moduli that hold every number of the
        column's type; text has no such limit.
    signed : bool, optional
        Symmetric range; a system or the type tells it itself.

    Returns
    -------
    RNSArray, or of an IntervalRNS an IntervalRNSArray
        Of one axis, with a chunk for each row group that has rows.

    Raises
    ------
    ImportError
        If there is no pyarrow.
    InputError
        If a file is no Parquet file or has no such column. When a chunk is computed: if the file was changed
        since, or a value is missing, no integer or out of range.
    TypeError, ValueError
        If the column has another type, or is of text and there are no moduli.
    """
    if not isinstance(path, str | os.PathLike | Iterable):
        raise TypeError(f"path must be a Parquet file's path, or several, got {type(path).__name__}")
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ValueError("path must name at least one Parquet file, got none")
    described = [_described(str(Path(one).absolute()), column) for one in paths]
    system: Any = _system([kind for kind, _ in described], column, moduli, signed)
    groups = tuple(group for _, some in described for group in some if group.rows)
    if not groups:
        words = np.empty((system.rows, 0), dtype=system.word_dtype)
    else:
        words = map_chunks(
            _read_block,
            rows=system.rows,
            chunks=(tuple(group.rows for group in groups),),
            dtype=system.word_dtype,
            located=True,
            groups=groups,
            column=column,
            system=system,
        )
    array = array_type_of(system)(words, system)
    return array if groups else array.rechunk("auto")


def _described(path: str, column: str) -> tuple[Any, list[_RowGroup]]:
    """The type of a column of a file, and the file's row groups."""
    pyarrow = pyarrow_for("reading Parquet")
    try:
        status = Path(path).stat()
        with pyarrow.parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{path}: it is no Parquet file: {error}") from None
    if schema.names.count(column) != 1:
        raise InputError(f"{path}: it has no column {column!r:.80}, or several; it has {brief(schema.names)}")
    state = status.st_size, status.st_mtime_ns
    return schema.field(column).type, [_RowGroup(path, i, n, state) for i, n in enumerate(rows)]


def _system(
    kinds: list[Any], column: str, moduli: ModuliSet | NumberSystem | None, signed: bool | None
) -> NumberSystem:
    """The system given, or the one of all numbers that a column's types can hold."""
    ranges = [range_of_arrow(kind) for kind in kinds]
    if moduli is not None:
        system: NumberSystem = as_system(moduli, signed=signed)
        return system
    known = [limits for limits in ranges if limits is not None]
    if len(known) < len(ranges):
        raise ValueError(f"column {column!r:.80} is text, whose numbers may have any size: give the moduli")
    lowest, highest = min(low for low, _ in known), max(high for _, high in known)
    return system_of_range(lowest, highest, signed).with_bound(max(highest, -lowest))


def _read_block(
    *, groups: tuple[_RowGroup, ...], column: str, system: NumberSystem, place: Place
) -> NDArray[Any]:
    group = groups[place.index[0]]
    status = Path(group.path).stat()
    if (status.st_size, status.st_mtime_ns) != group.state:
        raise InputError(f"{group.path}: it was changed since it was opened")
    with pyarrow_for("reading Parquet").parquet.ParquetFile(group.path) as file:
        values = file.read_row_group(group.number, columns=[column]).column(0)
    try:
        flat, _ = flat_integers(values)
        return system.encode(flat)
    except (TypeError, ValueError) as error:
        raise InputError(f"{group.path}: row group {group.number}, column {column!r:.80}: {error}") from None
