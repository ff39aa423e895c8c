"""Jobs that write the numbers of stores to streams, in bounded memory: text, records, tables, residues.

Integers have the forms of :mod:`.integer_reading`.
"""

import fcntl
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.backend.cpu import format_decimal, format_hexadecimal
from rnsdask.constants import DECIMAL_BASE
from rnsdask.core import layout, rows
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import JobError, abbreviate
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.ways import Message, Setting
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.io.integer_reading import CSV_HEADER, ByteOrder
from rnsdask.io.numpy_files import write_numpy, write_numpy_header
from rnsdask.io.parquet import write_parquet
from rnsdask.jobs.compute import Advance, map_ahead
from rnsdask.jobs.memory_plan import Work, describe, work_on
from rnsdask.jobs.sources import OF_NUMBERS
from rnsdask.jobs.writing import Transfer
from rnsdask.rns.blocks import batch_size
from rnsdask.rns.convert import limbs_to_ints
from rnsdask.rns.decimal import decimal_limbs
from rnsdask.rns.foreign import first_lost, residues_of_words, resized

Form = Literal["text", "csv", "npy", "parquet"]
"""Kind of a file of integers; a CSV file is text after a line that names the column."""

Words = NDArray[Any]
"""Words of some numbers, of shape (words, numbers)."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of a store, or the values of an expression, read in batches.

    Messages call them `what`; `nbytes` counts the bytes of their words, and `limits` are the least and the
    greatest possible number. `read` returns the words of the chunk at an index; `decimal` their decimal limbs
    and a mask of the negative numbers, for :func:`decimal_lines`; `limbs` their limbs, in two's complement if
    `signed`, for :func:`hexadecimal_lines` and :func:`binary_records`.
    """

    info: store.StoreInfo | store.PlainInfo
    what: str
    nbytes: int
    limits: tuple[int, int]
    signed: bool
    work: Work
    read: Callable[[tuple[int, ...]], Words]
    decimal: Callable[[Words], tuple[NDArray[np.uint32], NDArray[np.bool_]]]
    limbs: Callable[[Words], NDArray[np.uint32]]

    @classmethod
    def at(cls, path: str) -> "Numbers":
        """Open the complete store or plain array at a path; StoreError if it is missing or wrong."""
        if store.is_plain(path):
            return _numbers_of_plain(store.open_plain(path))
        return cls.of(store.open_info(path, OF_NUMBERS))

    @classmethod
    def of(cls, info: store.StoreInfo) -> "Numbers":
        """Make the numbers of a store."""
        system = info.system
        return cls(
            info,
            "integers",
            info.nbytes,
            system.known_range,
            system.is_signed,
            work_on(info, "export"),
            lambda index: layout.as_matrix(store.read_chunk(info, index)),
            partial(_decimal, system=system),
            system.limbs_of,
        )

    def batches(self, nbytes: int = 0) -> Iterator[tuple[int, Words]]:
        """Read words in batches, each with the index of its first number.

        Each number takes `nbytes` in addition to its words.
        """
        first = 0
        for index in self.info.indices():
            words = self.read(index)
            size = batch_size(max(len(words), nbytes // 4))
            for start in range(0, words.shape[1], size):
                yield first + start, words[:, start : start + size]
            first += words.shape[1]


def _decimal(words: Words, system: NumberSystem) -> Any:
    """Decimal limbs of words, and a mask of the negative numbers."""
    if rows.to_decimal.name in system.table:
        return system.apply(rows.to_decimal, words)
    return decimal_limbs(system.decode(words).ravel().tolist())


def _numbers_of_plain(info: store.PlainInfo) -> Numbers:
    """Make numbers of a plain array: Booleans as 0 and 1, or signs."""

    def decimal(values: Words) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        magnitudes = np.abs(values[0]).view(np.uint64)  # right even for -2**63
        powers = np.array([DECIMAL_BASE**k for k in range(3)], dtype=np.uint64)
        limbs = magnitudes[:, np.newaxis] // powers % np.uint64(DECIMAL_BASE)
        return limbs.astype(np.uint32), values[0] < 0

    return Numbers(
        info,
        "values",
        info.count * info.dtype.itemsize,
        (-(2**63), 2**63 - 1),
        True,
        describe("export", [], info, [info]),
        lambda index: store.read_plain_chunk(info, index).reshape(1, -1).astype("<i8"),
        decimal,
        lambda values: values[0].view(np.uint32).reshape(-1, 2),
    )


# ---- Integers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputForm:
    """Form in which integers are written: a kind of file, or, with a `width`, binary records.

    The first byte of a record in the order ``"little"`` is the least significant one.
    """

    kind: Form = "text"
    hexadecimal: bool = False
    width: int | None = None
    byteorder: ByteOrder = "little"


def export_integers(
    numbers: Numbers, stream: BinaryIO, form: OutputForm | None = None, *, advance: Advance = lambda _: None
) -> Transfer:
    """Write numbers to a stream, in C order, in decimal text unless the form is another one.

    `advance` is called with the number of integers written since its last call. JobError if an integer does
    not fit into a record or a NumPy file, or the chunks are not consecutive parts of the array.
    """
    form, info = form or OutputForm(), numbers.info
    layout.check_consecutive(info.path, info)
    batches = numbers.batches(form.width or 0)

    def ints_of(words: Words) -> list[int]:
        found: list[int] = limbs_to_ints(numbers.limbs(words), numbers.signed).tolist()
        return found

    how: dict[str, Any] = {"limits": numbers.limits, "mapped": map_ahead, "advance": advance}
    if form.kind == "npy":
        done, written = write_numpy(stream, batches, ints_of, info.shape, **how)
    elif form.kind == "parquet":
        lines = partial(_bytes_of, numbers, OutputForm(), 0)
        done, written = write_parquet(stream, batches, ints_of, lines, **how)
    else:
        done, written = _write_bytes(numbers, batches, stream, form, advance)
    return Transfer(done, numbers.nbytes, written)


def _write_bytes(
    numbers: Numbers,
    batches: Iterator[tuple[int, Words]],
    stream: BinaryIO,
    form: OutputForm,
    advance: Advance,
) -> tuple[int, int]:
    """Write text or records, converted on threads; return the numbers of integers and of bytes."""

    def converted(batch: tuple[int, Words]) -> tuple[int, bytes | memoryview]:
        first, words = batch
        return words.shape[1], _bytes_of(numbers, form, first, words)

    done = 0
    written = stream.write(CSV_HEADER) if form.kind == "csv" else 0
    for integers, data in map_ahead(converted, batches):
        stream.write(data)
        done += integers
        written += len(data)
        advance(integers)
    stream.flush()
    return done, written


def _bytes_of(numbers: Numbers, form: OutputForm, first: int, words: Words) -> Any:
    """Convert numbers to text or records; the first has the index `first`."""
    if form.width is not None:
        how: dict[str, Any] = {"signed": numbers.signed, "byteorder": form.byteorder}
        return binary_records(numbers.limbs(words), form.width, first_index=first, **how)
    if form.hexadecimal:
        return hexadecimal_lines(numbers.limbs(words), signed=numbers.signed)
    return decimal_lines(*numbers.decimal(words))


def hexadecimal_lines(limbs: NDArray[np.uint32], *, signed: bool) -> memoryview:
    """Write integers one a line as ``0x...``, negative ones as ``-0x...``, from limbs (integers, limbs)."""
    return format_hexadecimal(limbs, signed).data


def decimal_lines(limbs: NDArray[np.uint32], negative: NDArray[np.bool_]) -> memoryview:
    """Write integers one a line, in decimal, from magnitudes in base 10**9, the least limb first."""
    return format_decimal(limbs, negative).data


def binary_records(
    limbs: NDArray[np.uint32],
    width: int,
    *,
    signed: bool,
    first_index: int = 0,
    byteorder: ByteOrder = "little",
) -> bytes:
    """Write integers as records of ``width`` bytes, from limbs of shape (integers, limbs), the least first.

    Limbs and records are two's complement if `signed`. JobError if an integer does not fit; it names the
    first one's index, counted from `first_index`, and its value.
    """
    lost = first_lost(limbs, width, signed)
    if lost is not None:
        value = abbreviate(int.from_bytes(limbs[lost].astype("<u4").tobytes(), "little", signed=signed))
        raise JobError(f"index {first_index + lost}: {value} does not fit into {width} bytes")
    octets = resized(limbs, width, signed)
    records: bytes = (octets if byteorder == "little" else octets[:, ::-1]).tobytes()
    return records


# ---- Residues for other programs --------------------------------------------------------------------------


def export_residues(
    info: store.StoreInfo,
    stream: BinaryIO,
    moduli: ModuliSet | WideModuli,
    *,
    axis: int = 0,
    wrap: bool = False,
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write the numbers of a store as a NumPy file of residues under any moduli, along an axis.

    Unless the axis is the last one, rows are written piece by piece, so the stream must be a file that is not
    opened for appending; JobError otherwise, and if the chunks are not consecutive parts of the array. A
    number out of the range of the moduli is a ValueError, unless numbers may `wrap`: their residues are then
    ambiguous. `advance` is called with the number of integers written since its last call.
    """
    layout.check_consecutive(info.path, info)
    axis = axis_index(axis, len(info.shape) + 1)
    in_order = axis == len(info.shape)
    if not in_order and (not stream.seekable() or _only_appends(stream)):
        raise JobError(
            Message(
                f"residues along axis {axis} can be written to a file only, and not be appended to one; ",
                Setting("axis", -1),
                " writes them in order",
            )
        )
    dtype = np.dtype("<u4" if isinstance(moduli, ModuliSet) else "<u8")
    shape = (*info.shape[:axis], len(moduli), *info.shape[axis:])
    write_numpy_header(stream, dtype, shape)
    begun, inner = 0 if in_order else stream.tell(), math.prod(info.shape[axis:])

    def convert_batch(batch: tuple[int, Any]) -> tuple[int, Any]:
        first, words = batch
        place = Place((0,), ((first, first + words.shape[1]),), (info.count,))
        how: dict[str, Any] = {"moduli": moduli, "wrap": wrap, "dtype": dtype, "place": place}
        return first, residues_of_words(words, system=info.system, **how)

    batches = Numbers.of(info).batches(len(moduli) * dtype.itemsize)
    for first, residues in map_ahead(convert_batch, batches):
        for place, some in _runs(residues, first, inner):
            if not in_order:
                stream.seek(begun + place * dtype.itemsize)
            stream.write(np.ascontiguousarray(some).data)
        advance(residues.shape[1])
    stream.flush()
    return Transfer(info.count, info.nbytes, info.count * len(moduli) * dtype.itemsize)


def _runs(residues: NDArray[Any], first: int, inner: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut residues (n, integers) into runs that are contiguous in an array of shape (..., n, inner).

    `first` is the index of the first integer among all. Yield the flat index of the first residue, and the
    residues in C order.
    """
    rows, done = len(residues), 0
    while done < residues.shape[1]:
        outer, k = divmod(first + done, inner)
        left = residues.shape[1] - done
        if k == 0 and left >= inner:  # whole groups, one after the other
            count = left // inner
            groups = residues[:, done : done + count * inner].reshape(rows, count, inner)
            yield outer * rows * inner, groups.transpose(1, 0, 2)
            done += count * inner
            continue
        count = min(left, inner - k)
        for i in range(rows):
            yield (outer * rows + i) * inner + k, residues[i, done : done + count]
        done += count


def _only_appends(stream: BinaryIO) -> bool:
    """Whether the system appends all writes to the file, wherever the stream is positioned."""
    try:
        return bool(fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_APPEND)
    except OSError:  # a stream in memory has no file descriptor
        return False
