"""Jobs that bring integers into a store and out of it, in bounded memory."""

from collections.abc import Iterator
from itertools import count
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.core import layout
from rnsdask.core.errors import InputError, JobError
from rnsdask.core.integer_text import BinaryReader, TextReader, binary_records, text_lines
from rnsdask.jobs.compute import Advance, mapping_on_threads
from rnsdask.jobs.writing import Index, Transfer, check_same, resume_store, written_chunks
from rnsdask.rns import convert
from rnsdask.rns.system import RNS

# Residues converted at a time. A batch of integers costs several times the memory of its residues.
_BATCH_RESIDUES = 2**20


# ---- Into a store -----------------------------------------------------------------------------------------


def import_integers(
    source: TextReader | BinaryReader,
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
    source : TextReader or BinaryReader
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


def _finish(writer: store.StoreWriter, source: TextReader | BinaryReader, name: str) -> store.StoreInfo:
    if source.count != writer.info.count:
        begun = f"{writer.info.path}: it was begun with {writer.info.count} integers or more"
        raise JobError(f"{begun}, and {name} holds {source.count}; it cannot be resumed")
    return writer.finish(bound=source.bound)


def _batch_size(system: RNS) -> int:
    return max(layout.CHUNK_MULTIPLE, _BATCH_RESIDUES // system.rows)


def _next_chunk(
    source: TextReader | BinaryReader, system: RNS, length: int, advance: Advance
) -> NDArray[np.uint32]:
    """Read up to `length` integers, as residues."""
    residues = np.empty((system.rows, length), dtype=np.uint32)
    filled = 0
    for batch in _batches(source, length, _batch_size(system), advance):
        if isinstance(batch, list):
            part = system.encode(batch)
        else:
            part = convert.to_residues(batch, system.moduli, system.signed)
        residues[:, filled : filled + len(batch)] = part
        filled += len(batch)
    return residues[:, :filled]


def _batches(
    source: TextReader | BinaryReader, total: int, size: int, advance: Advance
) -> Iterator[list[Any] | NDArray[np.uint32]]:
    """Read `total` integers, or what is left of them, in batches of at most `size`."""
    while total:
        before = source.bytes_read
        batch = source.read(min(size, total))
        if not len(batch):
            return
        total -= len(batch)
        yield batch
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
    _check_consecutive(info)
    system = info.system
    done = written = 0
    for index in info.indices():
        residues = layout.as_matrix(store.read_chunk(info, index))
        size = _batch_size(system)
        for start in range(0, residues.shape[1], size):
            part = residues[:, start : start + size]
            if width is None:
                data = text_lines(system.decode(part), hexadecimal=hexadecimal)
            else:
                limbs = convert.to_limbs(part, system.moduli, system.signed)
                data = binary_records(limbs, width, signed=system.signed, first_index=done)
            stream.write(data)
            done += part.shape[1]
            written += len(data)
            advance(part.shape[1])
    stream.flush()
    return Transfer(done, info.nbytes, written)


def _check_consecutive(info: store.StoreInfo) -> None:
    """Check that the chunks, one after the other, are the array in C order."""
    divided = [axis for axis, chunks in enumerate(info.grid) if chunks > 1]
    if divided and any(chunk > 1 for chunk in info.chunks[: divided[-1]]):
        raise JobError(
            f"{info.path}: its chunks of shape {info.chunks} are not consecutive parts of the array of shape "
            f"{info.shape}; only such an array can be exported"
        )
