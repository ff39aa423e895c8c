"""Jobs that bring residues of other programs into a store and out of it, in bounded memory."""

import fcntl
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from dask.array.core import normalize_chunks
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import InputError, JobError
from rnsdask.core.files import naming_file
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.jobs import memory_plan
from rnsdask.jobs.compute import Advance, map_ahead
from rnsdask.jobs.derivation import most_alive
from rnsdask.jobs.integer_writing import check_consecutive
from rnsdask.jobs.integers import batch_size, stored_batches
from rnsdask.jobs.memory_plan import Work
from rnsdask.jobs.writing import Transfer, write_array
from rnsdask.rns.foreign import residues_of_words


def open_residues(path: str) -> Any:
    """Open residues that another program has written: a NumPy file, mapped into memory, or a Zarr array.

    Raises
    ------
    InputError
        If it is neither.
    StoreError
        If the Zarr array cannot be opened.
    """
    if not Path(path).is_file():
        return store.open_any_array(path)
    try:
        with naming_file(path):
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:  # what it says is about pickles, which a file of anything may be
        raise InputError(f"{path}: it is no NumPy file (.npy) of integers") from error
    if not isinstance(found, np.ndarray):
        raise InputError(f"{path}: it is an archive of NumPy files (.npz); one array (.npy) was expected")
    return found


def work_of_import(array: RNSArray, source: Any, axis: int) -> Work:
    """Describe the job that writes an array made of residues along an axis of `source`.

    Whole chunks of a Zarr array are read, and wait to be cut and joined to those that are written.
    """
    written = array.words.chunks[1:]
    lengths = [max(1, *some) for some in written]
    if isinstance(source, np.ndarray):  # a file, which is read as is written
        return memory_plan.describe("residues", [array.system], array.shape, lengths)
    chunks = list(source.chunks)
    del chunks[axis]
    read = normalize_chunks(tuple(chunks), array.shape)
    longest = max(lengths, [max(1, *some) for some in read], key=math.prod)
    waiting = most_alive(read, written, array.shape) * len(array.moduli) * RESIDUE_DTYPE.itemsize
    return memory_plan.describe("residues", [array.system], array.shape, longest, held=waiting)


def import_residues(
    array: RNSArray, source: Any, name: str, path: str, identity: str | None, **options: Any
) -> Transfer:
    """Write an array that was made of residues to a store.

    Parameters
    ----------
    array : RNSArray
        Lazy, as :func:`.from_residues` makes it of `source`.
    source : array
        The residues, called `name` in messages.
    identity : str or None
        What the numbers follow from, as :func:`.import_identity` tells.
    options
        As :func:`.write_array` takes them.

    Raises
    ------
    InputError
        If a residue is not below its modulus.
    """
    try:
        done = write_array(array, path, job_identity=identity, compare_all=True, **options)
    except ValueError as error:
        if type(error) is not ValueError:  # of the store
            raise
        raise InputError(f"{name}: {error}") from error
    nbytes = int(source.nbytes)
    return Transfer(done.count, nbytes, done.bytes_written, done.chunks_kept, done.chunks_rewritten)


def export_residues(
    info: store.StoreInfo,
    stream: BinaryIO,
    moduli: ModuliSet | WideModuli,
    *,
    axis: int = 0,
    wrap: bool = False,
    advance: Advance = lambda _: None,
) -> Transfer:
    """Write the numbers of a store as a NumPy file of residues under any moduli.

    Parameters
    ----------
    stream : binary stream
        Unless residues are along the last axis, it must be one of a file, for rows are written piece by
        piece, and not one that was opened to append to it.
    axis : int
        The axis of residues.
    wrap : bool
        Whether numbers may be out of the range of the moduli, so that others have the same residues.
    advance : callable
        Told how many more integers are written.

    Raises
    ------
    ValueError
        If a number is out of the range of the moduli, unless it may be.
    JobError
        If the stream is no file, or the chunks are not consecutive parts of the array.
    """
    check_consecutive(info.path, info.shape, info.chunks)
    axis = axis_index(axis, len(info.shape) + 1)
    in_order = axis == len(info.shape)
    if not in_order and (not stream.seekable() or _only_appends(stream)):
        raise JobError(
            f"residues along axis {axis} can be written to a file only, and not be appended to one; "
            "axis=-1 writes them in order"
        )
    dtype = np.dtype("<u4" if isinstance(moduli, ModuliSet) else "<u8")
    shape = (*info.shape[:axis], len(moduli), *info.shape[axis:])
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    begun, inner = 0 if in_order else stream.tell(), math.prod(info.shape[axis:])

    def convert_batch(batch: tuple[int, Any]) -> tuple[int, Any]:
        first, words = batch
        place = Place((0,), ((first, first + words.shape[1]),), (info.count,))
        how: dict[str, Any] = {"moduli": moduli, "wrap": wrap, "dtype": dtype, "place": place}
        return first, residues_of_words(words, system=info.system, **how)

    size = batch_size(info.system, len(moduli) * dtype.itemsize)
    for first, residues in map_ahead(convert_batch, stored_batches(info, size)):
        for place, some in _runs(residues, first, inner):
            if not in_order:
                stream.seek(begun + place * dtype.itemsize)
            stream.write(np.ascontiguousarray(some).data)
        advance(residues.shape[1])
    stream.flush()
    return Transfer(info.count, info.nbytes, info.count * len(moduli) * dtype.itemsize)


def _runs(residues: NDArray[Any], first: int, inner: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut residues (n, integers) into those that are neighbours in an array of shape (..., n, inner).

    Parameters
    ----------
    first : int
        The index of the first integer among all.

    Yields
    ------
    (int, array)
        The flat index of the first residue, and residues in C order.
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
    """Whether the system writes all to the end of a file, wherever the stream is."""
    try:
        return bool(fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_APPEND)
    except OSError:  # a stream in memory has no file descriptor
        return False
