"""Writing integers of stores to streams, in bounded memory, as text or binary records.

Their forms are those of :mod:`.integer_reading`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu import format_decimal, format_hexadecimal
from rnsdask.core import layout
from rnsdask.core.errors import JobError, abbreviate
from rnsdask.jobs.compute import Advance, map_ahead
from rnsdask.jobs.integer_reading import CSV_HEADER, ByteOrder
from rnsdask.jobs.table_writing import write_numpy, write_parquet
from rnsdask.rns.convert import limbs_to_ints
from rnsdask.rns.foreign import first_lost, resized

Form = Literal["text", "csv", "npy", "parquet"]


def write_integers(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    decimal: Callable[[Any], tuple[NDArray[np.uint32], NDArray[np.bool_]]],
    binary: Callable[[Any], NDArray[np.uint32]],
    *,
    signed: bool,
    shape: Sequence[int],
    limits: tuple[int, int],
    form: Form = "text",
    hexadecimal: bool = False,
    width: int | None = None,
    byteorder: ByteOrder = "little",
    advance: Advance = lambda _: None,
) -> tuple[int, int]:
    """Write integers to a stream, in decimal unless told otherwise, converted on threads.

    Parameters
    ----------
    batches : iterable of (int, numbers)
        Some integers at a time, with the index of the first.
    decimal : callable
        Gives the decimal limbs of numbers, and which are negative, as :func:`decimal_lines` takes them.
    binary : callable
        Gives their limbs, as :func:`hexadecimal_lines` and :func:`binary_records` take them.
    signed : bool
        Whether these are in two's complement.
    shape, limits : tuple of int
        Shape of the array, and the least and the greatest integer that it may hold.
    form : {"text", "csv", "npy", "parquet"}
        The kind of file. A CSV file is text after a line that names the column.
    hexadecimal : bool
        Text in hexadecimal instead of decimal.
    width : int, optional
        Binary records of so many bytes instead of text.
    byteorder : {"little", "big"}
        Which byte of a record is the first: the least or the most significant one.
    advance : callable
        Told how many more integers are written.

    Returns
    -------
    (integers, bytes)
        How many are written.

    Raises
    ------
    JobError
        If an integer does not fit into a record, or a NumPy file.
    """

    def ints_of(numbers: Any) -> list[int]:
        found: list[int] = limbs_to_ints(binary(numbers), signed).tolist()
        return found

    if form == "npy":
        return write_numpy(stream, batches, ints_of, shape, limits, advance)
    if form == "parquet":
        return write_parquet(
            stream, batches, ints_of, lambda numbers: decimal_lines(*decimal(numbers)), limits, advance
        )

    def converted(batch: tuple[int, Any]) -> tuple[int, bytes | memoryview]:
        first, numbers = batch
        if width is None and not hexadecimal:
            limbs, negative = decimal(numbers)
            return len(limbs), decimal_lines(limbs, negative)
        limbs = binary(numbers)
        if width is None:
            return len(limbs), hexadecimal_lines(limbs, signed=signed)
        return len(limbs), binary_records(limbs, width, signed=signed, first_index=first, byteorder=byteorder)

    done = 0
    written = stream.write(CSV_HEADER) if form == "csv" else 0
    for integers, data in map_ahead(converted, batches):
        stream.write(data)
        done += integers
        written += len(data)
        advance(integers)
    stream.flush()
    return done, written


def check_consecutive(path: str, shape: Sequence[int], chunks: Sequence[int]) -> None:
    """Raise JobError unless the chunks, one after the other, are the array in C order."""
    if not layout.are_consecutive(shape, chunks):
        raise JobError(
            f"{path}: its chunks of shape {tuple(chunks)} are not consecutive parts of the array of shape "
            f"{tuple(shape)}; x.rechunk(chunks) makes such an array"
        )


def hexadecimal_lines(limbs: NDArray[np.uint32], *, signed: bool) -> memoryview:
    """Write integers one a line as ``0x...``, a negative one as ``-0x...``.

    Parameters
    ----------
    limbs : uint32 array of shape (integers, limbs)
        Little-endian limbs, in two's complement when signed.
    signed : bool
        Whether limbs are two's complement.
    """
    return format_hexadecimal(limbs, signed).data


def decimal_lines(limbs: NDArray[np.uint32], negative: NDArray[np.bool_]) -> memoryview:
    """Write integers one a line, in decimal.

    Parameters
    ----------
    limbs : uint32 array of shape (integers, limbs)
        The magnitudes in base 10**9, the least significant limb first.
    negative : bool array of shape (integers,)
        Which integers are negative.
    """
    return format_decimal(limbs, negative).data


def binary_records(
    limbs: NDArray[np.uint32],
    width: int,
    *,
    signed: bool,
    first_index: int = 0,
    byteorder: ByteOrder = "little",
) -> bytes:
    """Write integers as records of ``width`` bytes.

    Parameters
    ----------
    limbs : uint32 array of shape (integers, limbs)
        Little-endian limbs, in two's complement when signed.
    width : int
        Bytes of a record.
    signed : bool
        Whether limbs and records are two's complement.
    first_index : int
        The index of the first integer, for the error message.
    byteorder : {"little", "big"}
        Which byte of a record is the first: the least or the most significant one.

    Raises
    ------
    JobError
        If an integer does not fit into ``width`` bytes; it names the first one's index and value.
    """
    lost = first_lost(limbs, width, signed)
    if lost is not None:
        value = abbreviate(int.from_bytes(limbs[lost].astype("<u4").tobytes(), "little", signed=signed))
        raise JobError(f"index {first_index + lost}: {value} does not fit into {width} bytes")
    octets = resized(limbs, width, signed)
    records: bytes = (octets if byteorder == "little" else octets[:, ::-1]).tobytes()
    return records
