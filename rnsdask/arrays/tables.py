"""Columns of tables: Series and DataFrames of pandas, arrays of Arrow, Parquet files in both directions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from rnsdask.arrays.conversion import Conversion
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import brief
from rnsdask.core.files import new_file
from rnsdask.core.moduli import ModuliSet, as_bool, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.places import local_path
from rnsdask.core.ways import Message, Setting, must
from rnsdask.io.arrow import arrow_array, arrow_type, check_arrow_type, pyarrow_for
from rnsdask.io.numpy_files import machine_type
from rnsdask.io.parquet import RowGroup, open_column, parquet_writer
from rnsdask.lazy.map import map_chunks
from rnsdask.rns.values import OfBits, as_system, range_of_arrow, system_of_range
from rnsdask.store import check_file_outside_arrays
from rnsdask.typing import SystemOf

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from rnsdask.arrays.number_array import NumberArray
    from rnsdask.arrays.rns_array import RNSArray

A = TypeVar("A", bound="NumberArray")
_Path: TypeAlias = str | os.PathLike[str]

GROUP_BYTES = 2**28
"""Most bytes of the chunks that are computed at a time, unless one chunk has more: 256 MiB."""


# ---- pandas -----------------------------------------------------------------------------------------------


def _ends(ints: Sequence[int]) -> tuple[int, int]:
    return min(ints, default=0), max(ints, default=0)


# ---- Arrow ------------------------------------------------------------------------------------------------


def _check_column(x: Any, owner: str) -> None:
    if x.ndim != 1:
        raise ValueError(f"{owner} one axis, got shape {x.shape}; x.ravel() has one")


# ---- Parquet ----------------------------------------------------------------------------------------------


def _arrow_chunks(x: Any, kind: Any) -> Iterator[Any]:
    """Iterate over the chunks of a lazy array of one axis as Arrow arrays, a few in memory at a time."""
    lengths = x.chunks[0]
    begins = [0, *accumulate(lengths)] if x._has_lengths else [0] * len(lengths)
    convert = delayed(_arrow_of_block, pure=False, traverse=False)
    chunks = [
        convert(block, kind, first)
        for block, first in zip(x.astype(object).to_delayed().ravel(), begins, strict=False)
    ]
    nbytes = 4 * x.system.words32 * max(lengths) if x._has_lengths else GROUP_BYTES
    step = max(1, GROUP_BYTES // max(nbytes, 1))
    for start in range(0, len(chunks), step):
        with checked_workers():
            yield from compute(*chunks[start : start + step])


def _arrow_of_block(ints: Any, kind: Any, first: int) -> Any:
    return arrow_array(ints.tolist(), kind, first)


@overload
def read_parquet(
    path: _Path | Iterable[_Path],
    column: str,
    moduli: ModuliSet | None = None,
    signed: bool | None = None,
    *,
    bits: SupportsIndex | None = None,
    scale: SupportsIndex | None = None,
) -> RNSArray: ...
@overload
def read_parquet(
    path: _Path | Iterable[_Path],
    column: str,
    moduli: SystemOf[A],
    signed: bool | None = None,
    *,
    bits: None = None,
    scale: SupportsIndex | None = None,
) -> A: ...
def read_parquet(
    path: _Path | Iterable[_Path],
    column: str,
    moduli: ModuliSet | SystemOf[A] | None = None,
    signed: bool | None = None,
    *,
    bits: SupportsIndex | None = None,
    scale: SupportsIndex | None = None,
) -> RNSArray | A:
    """Open a column of Parquet files as a lazy array; needs pyarrow.

    Parameters
    ----------
    path : str, path-like, or iterable of them
        A local file, or several to be concatenated. On a cluster the workers read them.
    column : str
        Name of the column, which holds integers, decimals without fraction, or text as :func:`.from_ints`
        reads it.
    moduli : ModuliSet, RNS or IntervalRNS, optional
        The moduli set, or a number system. By default the fewest 32-bit moduli that hold every number of the
        column's type; required for text, which has no limit.
    signed : bool, optional
        Whether the range is symmetric around 0; by default as in the system or the type, and not for text.
    bits : int, optional
        Instead of `moduli`: every number has at most that many bits, the sign among them; others are an error
        when they are read. The array has ``ModuliSet.for_bits(bits)``.
    scale : int, optional
        For decimals, which may have fractions: the integers count units of ``10**-scale``, so that ``1.50``
        with ``scale=2`` is 150. The error for a column of decimals without it names their scale.

    Returns
    -------
    RNSArray, or IntervalRNSArray for an IntervalRNS
        One axis, with a chunk for each row group that has rows.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    InputError
        If a file is not a Parquet file or lacks the column. When a chunk is computed: if the file has changed
        since, or a value is missing, not an integer or out of range.
    TypeError, ValueError
        If the column has another type, or holds text and moduli are missing; if a path is a URL; if `bits`
        and `moduli` are both given, or `scale` is less than that of the decimals.
    """
    if not isinstance(path, str | os.PathLike | Iterable):
        raise TypeError(f"path must be a Parquet file's path, or several, got {type(path).__name__}")
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ValueError("path must name at least one Parquet file, got none")
    described = [open_column(str(local_path(one, "path").absolute()), column) for one in paths]
    of_bits = None if bits is None else OfBits.checked(bits, moduli)
    given: Any = moduli if of_bits is None else of_bits.moduli
    unit = None if scale is None else as_integer(scale, "scale")
    system: Any = _system([kind for kind, _ in described], column, given, signed, unit, bits is not None)
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
            scale=unit,
            bits=None if of_bits is None else of_bits.bits,
        )
    array = system.array_type(words, system)
    found: RNSArray | A = array if groups else array.rechunk("auto")
    return found


def _system(
    kinds: list[Any],
    column: str,
    moduli: ModuliSet | NumberSystem | None,
    signed: bool | None,
    scale: int | None,
    of_bits: bool,
) -> NumberSystem:
    """Return the given system, or one for all numbers that a column's types can hold."""
    try:
        ranges = [range_of_arrow(kind, scale) for kind in kinds]
    except TypeError as error:
        raise TypeError(Message(f"column {column!r:.80}: ", error)) from None
    if of_bits and signed is None:
        signed = any(limits is not None and limits[0] < 0 for limits in ranges)
    if moduli is not None:
        system: NumberSystem = as_system(moduli, signed=signed)
        return system
    known = [limits for limits in ranges if limits is not None]
    if len(known) < len(ranges):
        raise ValueError(
            Message(
                f"column {column!r:.80} is text, whose numbers may have any size: ",
                "give their length, such as ",
                Setting("bits", 256),
                ", or moduli",
            )
        )
    lowest, highest = min(low for low, _ in known), max(high for _, high in known)
    return system_of_range(lowest, highest, signed).with_bound(max(highest, -lowest))


def _read_block(
    *,
    groups: tuple[RowGroup, ...],
    column: str,
    system: NumberSystem,
    scale: int | None,
    bits: int | None,
    place: Place,
) -> NDArray[Any]:
    return groups[place.index[0]].read(column, system, scale, bits)


# ---- the mixin --------------------------------------------------------------------------------------------


class Tables(Conversion):
    """Conversions to columns of pandas, Arrow and Parquet."""

    __slots__ = ()

    def to_pandas(self) -> pandas.Series | pandas.DataFrame:
        """Convert an array of one axis to a Series, of two axes to a DataFrame; computes a lazy array.

        It has the type that pandas gives a list of the same ints: int64 if it holds all numbers, else uint64,
        else object, of Python ints. ``rd.from_ints`` reads a Series. Elements of fields are the integers of
        :meth:`to_ints`. It needs pandas.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If the array has no axes, or more than two.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'rnsdask[pandas]'") from None
        if self.ndim not in (1, 2):
            raise ValueError(
                f"pandas has tables of one axis or two, got shape {self.shape}; x.reshape changes it"
            )
        ints = self.to_ints()
        kind = machine_type(*_ends(ints.reshape(-1).tolist()))
        values = ints if kind is None else ints.astype(kind)
        return pandas.Series(values) if self.ndim == 1 else pandas.DataFrame(values)

    def to_arrow(self, type: pyarrow.DataType | None = None) -> pyarrow.Array:  # noqa: A002  (as pyarrow calls it)
        """Convert to an array of Arrow; computes a lazy array. ``pa.array(x)`` does the same.

        It has the first of these types that holds all numbers: int64, uint64, decimal128(38, 0),
        decimal256(76, 0), and large_string, of decimal digits. ``rd.from_ints`` reads each of them. Elements
        of fields are the integers of :meth:`to_ints`. It needs pyarrow.

        Parameters
        ----------
        type : pyarrow.DataType, optional
            Another type: of integers, decimals without fraction, or text.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        TypeError
            If `type` is of another kind.
        ValueError
            If the array does not have one axis.
        OverflowError
            If a number does not fit into `type`; it names the number's index.
        """
        pyarrow_for("to_arrow")
        _check_column(self, "Arrow's arrays have")
        if type is not None:
            check_arrow_type(type)
        ints = self.to_ints().tolist()
        return arrow_array(ints, arrow_type(*_ends(ints)) if type is None else type)

    __arrow_array__ = to_arrow

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export to a library that reads Arrow's arrays, as ``polars.Series(x)`` does; needs pyarrow."""
        exported: tuple[object, object] = self.to_arrow().__arrow_c_array__(requested_schema)
        return exported

    def to_parquet(
        self,
        path: _Path,
        column: str = "value",
        *,
        type: Any = None,  # noqa: A002
        overwrite: bool = False,
    ) -> None:
        """Write the numbers to a Parquet file of one column, as :func:`.read_parquet` reads it.

        A lazy array is computed a few chunks at a time, in order, and each chunk becomes a row group. Data
        that several chunks need is computed again each time, unless it was persisted (:meth:`persist`) or
        stored before. It needs pyarrow.

        Parameters
        ----------
        path : str or path-like
            A local file, which gets its name when it is complete.
        column : str
            The column's name.
        type : pyarrow.DataType, optional
            The column's type, as :meth:`to_arrow` takes it. By default an array in memory gets the type that
            :meth:`to_arrow` chooses. The numbers of a lazy array are not known yet: its type is the first
            that holds all numbers within its bound or, without a bound, all of its number system.
        overwrite : bool
            Replace an existing file.

        Raises
        ------
        ImportError, TypeError, ValueError, OverflowError
            As :meth:`to_arrow`; ValueError also if `path` is a URL. No file is written then.
        JobError
            If `path` exists, and `overwrite` is false.
        StoreError
            If `path` is in a Zarr array.
        """
        pyarrow_for("to_parquet")
        file = local_path(path, "path")
        if not isinstance(column, str):
            raise TypeError(
                must("column", f"be a name, got {brief(column)} of type {column.__class__.__name__}")
            )
        overwrite = as_bool(overwrite, "overwrite")
        _check_column(self, "a column of Parquet has")
        if type is not None:
            check_arrow_type(type)
        check_file_outside_arrays(file)
        with new_file(file, overwrite=overwrite) as stream:
            if not self._is_lazy:
                array = self.to_arrow(type)
                with parquet_writer(stream, column, array.type) as write:
                    write(array)
                return
            kind = arrow_type(*self.system.known_range) if type is None else type
            with parquet_writer(stream, column, kind) as write:
                for array in _arrow_chunks(self, kind):
                    write(array)
