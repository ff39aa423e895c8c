"""Writing integers of stores as NumPy files and as columns of Parquet files, in bounded memory."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NoReturn

import numpy as np

from rnsdask.arrays.tables import (
    arrow_array,
    arrow_type,
    machine_type,
    parquet_writer,
    pyarrow_for,
    text_array,
)
from rnsdask.core.errors import JobError, abbreviate
from rnsdask.jobs.compute import Advance, map_ahead
from rnsdask.rns.values import range_of_arrow

COLUMN = "value"
"""Name of the column of a table that has no other."""

_ROW_GROUP_BYTES = 2**25
"""Bytes in memory from which on numbers are written as a row group."""


def write_numpy(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    integers: Callable[[Any], list[int]],
    shape: Sequence[int],
    limits: tuple[int, int],
    advance: Advance = lambda _: None,
) -> tuple[int, int]:
    """Write integers as a NumPy file: of int64, or of uint64 where that holds all of them and int64 does not.

    Their lowest 64 bits are the same in both types, so the header can be written again at the end.

    Parameters
    ----------
    batches : iterable of (int, numbers)
        Some numbers at a time, at least one, in C order, with the index of the first.
    integers : callable
        Gives the numbers as integers.
    limits : (int, int)
        What is known of their range.
    advance : callable
        Told how many more integers are written.

    Returns
    -------
    (integers, bytes)
        How many are written.

    Raises
    ------
    JobError
        If neither type holds all integers; or if only their values tell the type, and the stream is a pipe.
    """

    def converted(batch: tuple[int, Any]) -> tuple[int, int, int, bytes]:
        first, ints = batch[0], integers(batch[1])
        lowest, highest = min(ints), max(ints)
        kind = machine_type(lowest, highest)
        if kind is None:
            _refuse_wide(first, ints)
        return len(ints), lowest, highest, np.array(ints, dtype=kind).astype(f"<{kind.str[1:]}").tobytes()

    guess = machine_type(*limits) or np.dtype(np.int64)
    lowest = highest = done = 0
    written = _write_header(stream, guess, shape)
    for count, low, high, data in map_ahead(converted, batches):
        stream.write(data)
        done, written = done + count, written + len(data)
        lowest, highest = min(lowest, low), max(highest, high)
        advance(count)
    kind = machine_type(lowest, highest)
    if kind is None:
        raise JobError(
            f"the integers go from {abbreviate(lowest)} to {abbreviate(highest)}, which {_NEITHER}; {_WAY}"
        )
    if machine_type(*limits) is None and kind != guess:
        if not stream.seekable():
            raise JobError(
                f"the integers take uint64, as only the last of them tells; a pipe cannot say so; {_WAY}"
            )
        stream.seek(0)
        _write_header(stream, kind, shape)
    stream.flush()
    return done, written


_NEITHER = "neither int64 nor uint64 of a NumPy file holds"
_WAY = "a file named .parquet, .csv or .txt takes integers of any size"


def _refuse_wide(first: int, ints: Sequence[int]) -> NoReturn:
    """Raise JobError for integers that have no common type of 64 bits."""
    for index, value in enumerate(ints, first):
        if machine_type(value, value) is None:
            raise JobError(f"index {index}: {abbreviate(value)}, which {_NEITHER}; {_WAY}")
    raise JobError(
        f"the integers go from {abbreviate(min(ints))} to {abbreviate(max(ints))}, which {_NEITHER}; {_WAY}"
    )


def _write_header(stream: BinaryIO, kind: np.dtype[Any], shape: Sequence[int]) -> int:
    """Write the header of a NumPy file, and return how long it is: the same for both types."""
    header = {"descr": f"<{kind.str[1:]}", "fortran_order": False, "shape": tuple(shape)}
    counting = _Counting(stream)
    np.lib.format.write_array_header_1_0(counting, header)
    return counting.written


class _Counting:
    """A stream that counts what is written to another."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.written = stream, 0

    def write(self, data: bytes) -> int:
        self.written += len(data)
        return self._stream.write(data)


def write_parquet(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    integers: Callable[[Any], list[int]],
    lines: Callable[[Any], memoryview],
    limits: tuple[int, int],
    advance: Advance = lambda _: None,
) -> tuple[int, int]:
    """Write integers as the column of a Parquet file, of a type that holds the limits.

    Parameters and results are those of :func:`write_numpy`; `lines` gives the numbers as lines of decimal
    text.

    Raises
    ------
    JobError
        If there is no pyarrow.
    """
    try:
        pyarrow_for("writing Parquet")
    except ImportError as error:
        raise JobError(str(error)) from None
    kind = arrow_type(*limits)
    is_text = range_of_arrow(kind) is None
    held: list[Any] = []
    nbytes = done = 0

    def converted(batch: tuple[int, Any]) -> Any:
        first, numbers = batch
        return text_array(lines(numbers)) if is_text else arrow_array(integers(numbers), kind, first)

    with parquet_writer(stream, COLUMN, kind) as write:
        for array in map_ahead(converted, batches):
            held.append(array)
            nbytes, done = nbytes + array.nbytes, done + len(array)
            if nbytes >= _ROW_GROUP_BYTES:
                write(*held)
                held.clear()
                nbytes = 0
            advance(len(array))
        write(*held)
    stream.flush()
    return done, stream.tell()
