"""Jobs that bring integers into a store and out of it, in bounded memory."""

from collections.abc import Iterator
from itertools import count
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.core import layout
from rnsdask.core.errors import InputError, JobError
from rnsdask.jobs.compute import Advance, map_ahead, mapping_on_threads
from rnsdask.jobs.integer_streams import IntegerReader, binary_records, text_lines
from rnsdask.jobs.writing import Index, Transfer, check_same, resume_store, written_chunks
from rnsdask.rns import convert
from rnsdask.rns.system import RNS

# Residues of a batch, and at least so many integers: some batches at a time take less memory than a chunk.
_BATCH_RESIDUES = 2**18
_BATCH_INTEGERS = 16


# ---- Into a store -----------------------------------------------------------------------------------------


def import_integers(
    source: IntegerReader,
    name: str,
    path: str,
    system: RNS,
    *,
    chunks: layout.Chunks = "auto",
    overwrite: bool = False,
    resume: bool = False,
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write all integers of a stream to a store, chunk by chunk.

    Parameters
    ----------
    source : IntegerReader
        The integers; their range must be that of the system.
    name : str
        The stream's name in error messages.
    resume : bool
        Continue an incomplete store that was begun from the same integers: they are read again, and compared
        with the chunks that are written, which stay.
    advance : callable
        Told how many more bytes of the stream are done.

    Raises
    ------
    ValueError
        If `chunks` does not suit.
    InputError
        If the stream holds no integer, or something else. The store, if created yet, stays incomplete.
    """
    (length,) = layout.normalize_chunks(chunks, (0,), system.rows)
    writer: store.StoreWriter | None = None
    written: set[Index] = set()
    damaged: set[Index] = set()
    if resume:
        writer, written, damaged = _resume(path, system, None if chunks == "auto" else length)
        (length,) = writer.info.chunks
    for i in count():
        residues = _next_chunk(source, system, length, advance)
        if writer is not None and (i,) in written:
            if source.count < min((i + 1) * length, writer.info.count):
                break
            check_same(writer, (i,), residues)
        elif residues.shape[1]:
            if writer is None:
                writer = store.create(path, system, residues.shape[1:], chunks=length, overwrite=overwrite)
            elif source.count > writer.info.count:
                writer.resize((source.count,))
            writer.write_chunk((i,), residues)
        if source.count < (i + 1) * length:
            break
    if writer is None:
        raise InputError(f"{name}: it is empty; at least one integer was expected")
    info = _finish(writer, source, name)
    return Transfer(info.count, source.bytes_read, info.nbytes, len(written), len(damaged))


def _resume(path: str, system: RNS, length: int | None) -> tuple[store.StoreWriter, set[Index], set[Index]]:
    """Open an incomplete store, and find out which of its chunks are whole, and which are damaged."""
    wanted: dict[str, Any] = {} if length is None else {"chunks": (length,)}
    writer = resume_store(path, moduli=system.moduli, signed=system.signed, **wanted)
    with mapping_on_threads() as map_chunks:
        return writer, *written_chunks(writer, map_chunks)


def _finish(writer: store.StoreWriter, source: IntegerReader, name: str) -> store.StoreInfo:
    if source.count != writer.info.count:
        begun = f"{writer.info.path}: it was begun with {writer.info.count} integers or more"
        raise JobError(f"{begun}, and {name} holds {source.count}; it cannot be resumed")
    return writer.finish(bound=source.bound)


def batch_size(system: RNS) -> int:
    """How many integers are converted at a time."""
    return max(_BATCH_INTEGERS, _BATCH_RESIDUES // system.rows)


def _next_chunk(source: IntegerReader, system: RNS, length: int, advance: Advance) -> NDArray[np.uint32]:
    """Read up to `length` integers, as residues."""
    residues = np.empty((system.rows, length), dtype=np.uint32)
    begun = source.count

    def convert_batch(batch: tuple[int, NDArray[np.uint32]]) -> None:
        first, limbs = batch
        part = convert.to_residues(limbs, system.moduli, system.signed)
        residues[:, first : first + len(limbs)] = part

    for _ in map_ahead(convert_batch, _batches(source, length, batch_size(system), advance)):
        pass
    return residues[:, : source.count - begun]


def _batches(
    source: IntegerReader, total: int, size: int, advance: Advance
) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Read at most `total` integers in batches of at most `size`, each with its position."""
    first = 0
    while first < total:
        before = source.bytes_read
        limbs = source.read(min(size, total - first))
        if not len(limbs):
            return
        yield first, limbs
        first += len(limbs)
        advance(source.bytes_read - before)


# ---- Out of a store ---------------------------------------------------------------------------------------


def export_integers(
    info: store.StoreInfo,
    stream: BinaryIO,
    *,
    hexadecimal: bool = False,
    width: int | None = None,
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write all integers of a store to a stream, in C order.

    Parameters
    ----------
    hexadecimal : bool
        Text in hexadecimal instead of decimal.
    width : int, optional
        Binary records of so many bytes instead of text.
    advance : callable
        Told how many more integers are written.

    Raises
    ------
    JobError
        If an integer does not fit into a record, or the chunks are not consecutive parts of the array.
    """
    check_consecutive(info)
    system = info.system
    done = written = 0

    def convert_batch(batch: tuple[int, NDArray[np.uint32]]) -> tuple[int, bytes | memoryview]:
        first, residues = batch
        limbs = convert.to_limbs(residues, system.moduli, system.signed)
        if width is None:
            return len(limbs), text_lines(limbs, signed=system.signed, hexadecimal=hexadecimal)
        return len(limbs), binary_records(limbs, width, signed=system.signed, first_index=first)

    for integers, data in map_ahead(convert_batch, stored_batches(info, batch_size(system))):
        stream.write(data)
        done += integers
        written += len(data)
        advance(integers)
    stream.flush()
    return Transfer(done, info.nbytes, written)


def stored_batches(info: store.StoreInfo, size: int) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Read a store's integers in batches of at most `size`, each with its position."""
    first = 0
    for index in info.indices():
        residues = layout.as_matrix(store.read_chunk(info, index))
        for start in range(0, residues.shape[1], size):
            yield first + start, residues[:, start : start + size]
        first += residues.shape[1]


def check_consecutive(info: store.StoreInfo) -> None:
    """Check that the chunks, one after the other, are the array in C order."""
    divided = [axis for axis, chunks in enumerate(info.grid) if chunks > 1]
    if divided and any(chunk > 1 for chunk in info.chunks[: divided[-1]]):
        raise JobError(
            f"{info.path}: its chunks of shape {info.chunks} are not consecutive parts of the array of shape "
            f"{info.shape}; only such an array can be exported"
        )
