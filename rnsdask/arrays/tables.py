"""Numbers as columns of tables: Series and DataFrames of pandas, arrays of Arrow, Parquet files."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from dask.base import compute
from dask.delayed import delayed

from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.files import new_file
from rnsdask.core.integer_text import to_decimal
from rnsdask.core.moduli import as_bool
from rnsdask.core.number_system import NumberSystem
from rnsdask.rns.system import RNS
from rnsdask.rns.values import range_of_arrow

if TYPE_CHECKING:
    from rnsdask.arrays.number_array import NumberArray

_MACHINE_TYPES = (np.dtype(np.int64), np.dtype(np.uint64))

_GROUP_BYTES = 2**28
"""Bytes of the words of chunks that are computed at a time, if one chunk has not more."""


def pyarrow_for(what: str) -> Any:
    """Return the module pyarrow, or raise ImportError that says what needs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what} needs pyarrow: pip install 'rnsdask[parquet]'") from None
    return pyarrow


def machine_type(lowest: int, highest: int) -> np.dtype[Any] | None:
    """The type of 64-bit integers that holds a range, int64 if both do; None if none does."""
    for kind in _MACHINE_TYPES:
        ends = np.iinfo(kind)
        if ends.min <= lowest and highest <= ends.max:
            return kind
    return None


# ---- pandas -----------------------------------------------------------------------------------------------


def to_pandas(x: "NumberArray") -> Any:
    """Make a Series or a DataFrame, as :meth:`.NumberArray.to_pandas` says."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install 'rnsdask[pandas]'") from None
    if x.ndim not in (1, 2):
        raise ValueError(f"pandas has tables of one axis or two, got shape {x.shape}; x.reshape makes such")
    ints = x.to_ints()
    kind = machine_type(*_ends(ints.reshape(-1).tolist()))
    values = ints if kind is None else ints.astype(kind)
    return pandas.Series(values) if x.ndim == 1 else pandas.DataFrame(values)


def _ends(ints: Sequence[int]) -> tuple[int, int]:
    return min(ints, default=0), max(ints, default=0)


# ---- Arrow ------------------------------------------------------------------------------------------------


def to_arrow(x: "NumberArray", wanted: Any) -> Any:
    """Make an array of Arrow, as :meth:`.NumberArray.to_arrow` says."""
    pyarrow_for("to_arrow")
    _check_column(x, "Arrow's arrays have")
    if wanted is not None:
        check_arrow_type(wanted)
    ints = x.to_ints().tolist()
    return arrow_array(ints, arrow_type(*_ends(ints)) if wanted is None else wanted)


def _check_column(x: "NumberArray", owner: str) -> None:
    if x.ndim != 1:
        raise ValueError(f"{owner} one axis, got shape {x.shape}; x.ravel() has one")


def check_arrow_type(kind: Any) -> None:
    """Raise TypeError unless numbers can be written in a type of Arrow."""
    if not isinstance(kind, pyarrow_for("Arrow").DataType):
        raise TypeError(f"type must be a type of pyarrow's, got {type(kind).__name__}")
    range_of_arrow(kind)


def arrow_type(lowest: int, highest: int) -> Any:
    """The first type of Arrow that holds a range: 64-bit integers, decimals of 38 or 76 digits, text."""
    pyarrow = pyarrow_for("Arrow")
    if kind := machine_type(lowest, highest):
        return pyarrow.from_numpy_dtype(kind)
    for digits, decimal in ((38, pyarrow.decimal128), (76, pyarrow.decimal256)):
        if max(highest, -lowest) < 10**digits:
            return decimal(digits, 0)
    return pyarrow.large_string()


def arrow_array(ints: Sequence[int], kind: Any, first: int = 0) -> Any:
    """An array of Arrow of Python ints, the first of which has a flat index.

    Raises
    ------
    OverflowError
        If a number does not fit, naming its flat index.
    """
    pyarrow = pyarrow_for("Arrow")
    limits = range_of_arrow(kind)
    if limits is None:
        return pyarrow.array([to_decimal(value) for value in ints], kind)
    lowest, highest = limits
    if ints and not lowest <= min(ints) <= max(ints) <= highest:
        index = next(i for i, value in enumerate(ints) if not lowest <= value <= highest)
        raise OverflowError(
            f"the number at flat index {first + index} is {abbreviate(ints[index])}, outside of {kind}: "
            f"{abbreviate(lowest)} to {abbreviate(highest)}"
        )
    if hasattr(kind, "precision"):
        return pyarrow.array(ints, kind)
    return pyarrow.array(np.array(ints, dtype=kind.to_pandas_dtype()), kind)


def text_array(lines: memoryview) -> Any:
    """An array of Arrow, large_string, of lines of text that each have an end."""
    pyarrow = pyarrow_for("Arrow")
    octets = np.frombuffer(lines, dtype=np.uint8)
    is_end = octets == ord("\n")
    (ends,) = is_end.nonzero()
    offsets = np.zeros(len(ends) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(ends))  # without the ends of the lines before
    buffers = map(pyarrow.py_buffer, (offsets, octets[~is_end]))
    return pyarrow.LargeStringArray.from_buffers(len(ends), *buffers)


# ---- Parquet ----------------------------------------------------------------------------------------------


@contextmanager
def parquet_writer(stream: BinaryIO, column: str, kind: Any) -> Iterator[Callable[..., None]]:
    """Write a Parquet file of one column to a stream: what is yielded writes arrays as a row group."""
    pyarrow = pyarrow_for("to_parquet")
    schema = pyarrow.schema([pyarrow.field(column, kind, nullable=False)])
    with pyarrow.parquet.ParquetWriter(stream, schema) as writer:

        def write(*arrays: Any) -> None:
            values = pyarrow.chunked_array(arrays, kind)
            if len(values):
                writer.write_table(pyarrow.table([values], schema=schema), row_group_size=len(values))

        yield write


def to_parquet(
    x: "NumberArray", path: str | os.PathLike[str], column: str, wanted: Any, overwrite: bool
) -> None:
    """Write a Parquet file, as :meth:`.NumberArray.to_parquet` says."""
    pyarrow_for("to_parquet")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or path-like, got {type(path).__name__}")
    if not isinstance(column, str):
        raise TypeError(f"column must be a name, got {brief(column)} of type {type(column).__name__}")
    overwrite = as_bool(overwrite, "overwrite")
    _check_column(x, "a column of Parquet has")
    if wanted is not None:
        check_arrow_type(wanted)
    with new_file(Path(path), overwrite=overwrite) as stream:
        if not x._is_lazy:
            array = to_arrow(x, wanted)
            with parquet_writer(stream, column, array.type) as write:
                write(array)
            return
        kind = arrow_type(*known_range(x.system)) if wanted is None else wanted
        with parquet_writer(stream, column, kind) as write:
            for array in _arrow_chunks(x, kind):
                write(array)


def known_range(system: NumberSystem) -> tuple[int, int]:
    """The least and the greatest number that an array of a system may hold: by its bound, if it has one."""
    lowest, highest = system.value_range
    if isinstance(system, RNS) and system.bound is not None:
        lowest, highest = max(lowest, -system.bound), min(highest, system.bound)
    return lowest, highest


def _arrow_chunks(x: Any, kind: Any) -> Iterator[Any]:
    """The chunks of a lazy array of one axis as arrays of Arrow, of which few are in memory at a time."""
    lengths = x.chunks[0]
    begins = [0, *accumulate(lengths)] if x._has_lengths else [0] * len(lengths)
    convert = delayed(_arrow_of_block, pure=False, traverse=False)
    chunks = [
        convert(block, kind, first)
        for block, first in zip(x.astype(object).to_delayed().ravel(), begins, strict=False)
    ]
    nbytes = 4 * x.system.words32 * max(lengths) if x._has_lengths else _GROUP_BYTES
    step = max(1, _GROUP_BYTES // max(nbytes, 1))
    for start in range(0, len(chunks), step):
        with checked_workers():
            yield from compute(*chunks[start : start + step])


def _arrow_of_block(ints: Any, kind: Any, first: int) -> Any:
    return arrow_array(ints.tolist(), kind, first)
