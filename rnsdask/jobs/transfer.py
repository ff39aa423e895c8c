"""Integers into a store and out of it, in bounded memory. No Dask in here."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.core import layout
from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.integer_text import BinaryReader, TextReader, binary_records, text_lines
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import convert

Advance = Callable[[int], object]
"""Told how much more has been done, in bytes or in numbers."""

# Residues converted at a time. A batch of integers costs several times the memory of its residues.
_BATCH_RESIDUES = 2**20


@dataclass(frozen=True)
class Transfer:
    """What an import, a generation or an export has done.

    Attributes
    ----------
    count : int
        Integers.
    bytes_read, bytes_written : int
        Bytes of the input, and bytes of what was made of it. Of a store: its residues.
    chunks_kept, chunks_rewritten : int
        Of a store that was resumed: how many of the chunks that it held already were whole, and how many were
        damaged and so written again.
    """

    count: int
    bytes_read: int
    bytes_written: int
    chunks_kept: int = 0
    chunks_rewritten: int = 0

    @property
    def resumed_text(self) -> str:
        """What was found of an interrupted job, in words; empty if there was none."""
        return resumed_text(self.chunks_kept, self.chunks_rewritten)

    def as_dict(self) -> dict[str, int]:
        """Return the attributes by their names."""
        return asdict(self)


def resumed_text(kept: int, rewritten: int) -> str:
    """Say how many chunks of an interrupted job were kept and written again; nothing if there were none."""
    return f"; {kept} chunks kept, {rewritten} damaged ones written again" if kept + rewritten else ""


# ---- Into a store -----------------------------------------------------------------------------------------


def import_integers(
    source: TextReader | BinaryReader,
    name: str,
    path: str,
    moduli: ModuliSet,
    *,
    signed: bool = False,
    chunks: layout.Chunks = "auto",
    overwrite: bool = False,
    resume: bool = False,
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write all integers of a stream to a store, chunk by chunk.

    Parameters
    ----------
    source : TextReader or BinaryReader
        The integers; their range must be that of the moduli set.
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
    (length,) = layout.normalize_chunks(chunks, (0,), len(moduli))
    writer: store.StoreWriter | None = None
    written: set[tuple[int, ...]] = set()
    damaged: set[tuple[int, ...]] = set()
    if resume:
        wanted: dict[str, Any] = {} if chunks == "auto" else {"chunks": (length,)}
        writer = resume_store(path, moduli=moduli, signed=signed, **wanted)
        (length,) = writer.info.chunks
        with mapping_on_threads() as map_chunks:
            written, damaged = written_chunks(writer, map_chunks)
    for i in count():
        residues = _next_chunk(source, moduli, signed, length, advance)
        if writer is not None and (i,) in written:
            if source.count < min((i + 1) * length, writer.info.count):
                break
            check_same(writer, (i,), residues)
        elif residues.shape[1]:
            if writer is None:
                options: dict[str, Any] = {"chunks": length, "signed": signed, "overwrite": overwrite}
                writer = store.create(path, moduli, residues.shape[1:], **options)
            elif source.count > writer.info.count:
                writer.resize((source.count,))
            writer.write_chunk((i,), residues)
        if source.count < (i + 1) * length:
            break
    if writer is None:
        raise InputError(f"{name}: it is empty; at least one integer was expected")
    info = _finish(writer, source, name)
    return Transfer(info.count, source.bytes_read, info.nbytes, len(written), len(damaged))


def _finish(writer: store.StoreWriter, source: TextReader | BinaryReader, name: str) -> store.StoreInfo:
    if source.count != writer.info.count:
        begun = f"{writer.info.path}: it was begun with {writer.info.count} integers or more"
        raise JobError(f"{begun}, and {name} holds {source.count}; it cannot be resumed")
    return writer.finish(bound=source.bound)


def _batch_size(moduli: ModuliSet) -> int:
    return max(layout.CHUNK_MULTIPLE, _BATCH_RESIDUES // len(moduli))


def _next_chunk(
    source: TextReader | BinaryReader, moduli: ModuliSet, signed: bool, length: int, advance: Advance
) -> NDArray[np.uint32]:
    """Read up to `length` integers, as residues."""
    residues = np.empty((len(moduli), length), dtype=np.uint32)
    filled = 0
    for batch in _batches(source, length, _batch_size(moduli), advance):
        if isinstance(batch, list):
            part = convert.ints_to_residues(batch, moduli, signed)
        else:
            part = convert.to_residues(batch, moduli, signed)
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


def resume_store(path: str, recipe: str | None = None, **wanted: Any) -> store.StoreWriter:
    """Open an incomplete store to write the rest, and check that it is what the job would create.

    `recipe` is as `store.create` takes it, and `wanted` are attributes of `store.StoreInfo`, with the values
    that the job gives them.
    """

    def check(info: store.StoreInfo) -> None:
        for name, value in wanted.items():
            if (found := getattr(info, name)) != value:
                if name == "bound":
                    found, value = (None if bound is None else abbreviate(bound) for bound in (found, value))
                raise JobError(f"{info.path}: it cannot be resumed: its {name}: {found}; of the job: {value}")

    return store.resume(path, check, recipe=recipe)


@contextmanager
def mapping_on_threads(threads: int | None = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """What applies a function to many items on threads, in their order; an error ends it without the rest."""
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield pool.map
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def written_chunks(
    writer: store.StoreWriter | store.PlainWriter, map_chunks: Callable[..., Iterable[list[str]]]
) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Indices of the chunks that an array holds and that are whole, and of those that are damaged.

    All are read. `map_chunks` is as in `rnsdask.store.verify`.
    """
    damaged = set(writer.damaged_chunks(map_chunks))
    whole = set(writer.indices()).difference(writer.missing_chunks(), damaged)
    return whole, damaged


def check_same(
    writer: store.StoreWriter | store.PlainWriter, index: tuple[int, ...], block: NDArray[Any]
) -> None:
    """Check that a chunk written earlier holds the given residues, or other values."""
    if not np.array_equal(writer.read_chunk(index), block):
        raise JobError(
            f"{writer.chunk_name(index)} holds other numbers than this job's; it cannot be resumed"
        )


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
    done = written = 0
    for index in info.indices():
        residues = layout.as_matrix(store.read_chunk(info, index))
        size = _batch_size(info.moduli)
        for start in range(0, residues.shape[1], size):
            part = residues[:, start : start + size]
            if width is None:
                data = text_lines(
                    convert.residues_to_ints(part, info.moduli, info.signed), hexadecimal=hexadecimal
                )
            else:
                limbs = convert.to_limbs(part, info.moduli, info.signed)
                data = binary_records(limbs, width, signed=info.signed, first_index=done)
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
