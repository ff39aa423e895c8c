"""Chunk files of the default codecs: all residues of a chunk, little-endian, then their CRC-32C.

The files are the same as from Zarr's ``bytes`` and ``crc32c`` codecs. Zarr takes twice as long: it copies
each chunk several times, and all chunks in one thread.
"""

import errno
import math
import os
import shutil
import stat
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import (
    Array,
    backend_name,
    contiguous,
    empty_on_gpu,
    file_to_gpu,
    gpu_to_file,
    kernels_of,
    padded,
)
from rnsdask.backend.cpu import exceeds, extend_checksum, read_checked
from rnsdask.core.errors import CorruptChunkError, StoreAccessError
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.moduli import ModuliSet

CHECKSUM_BYTES = 4

_WHOLE = 0x48674BC7
"""CRC-32C of any content followed by its own CRC-32C, and of no other content."""

PARTIAL_SUFFIX = ".partial"
"""Suffix of a file that is still being written; Zarr's local store uses the same."""

_PIECE_BYTES = 2**20
"""Bytes that are read or written, and checksummed, at a time: they stay in a core's cache in between.

With a quarter of this, 16 threads reach less than half the rate, because they wait for one another in Python.
"""

_BLOCK_BYTES = 2**13
"""Fewest bytes that a file takes on disk: the block of its last bytes, and file system entries."""

_PROBED_BYTES = 64
"""Bytes of a piece that are tested for zeros before all others."""

_IDLE_BUFFERS = 4


class BufferPool:
    """Pool of the memory of freed arrays, lent to the next array of the same size.

    New memory comes from the operating system page by page and zeroed, which takes as long as reading a chunk
    from the page cache. A job reads one chunk after another, so a few idle buffers are enough for any number
    of threads, and there are never more buffers than there were chunks in use at one time.
    """

    def __init__(self, idle_buffers: int) -> None:
        # A deque, because buffers come back in finalizers, which may interrupt anything: a lock could hang.
        self._idle: deque[NDArray[np.uint32]] = deque(maxlen=idle_buffers)

    def take(self, count: int) -> NDArray[np.uint32]:
        """Return an array of `count` residues with any content."""
        owner = self._take_idle(count)
        if owner is None:
            owner = np.empty(count, RESIDUE_DTYPE)
        # Every view of `lent` keeps it alive: behind a memoryview NumPy does not see `owner`.
        lent = np.frombuffer(owner.data, RESIDUE_DTYPE)
        weakref.finalize(lent, self._idle.append, owner).atexit = False
        return lent

    def _take_idle(self, count: int) -> NDArray[np.uint32] | None:
        while self._idle:
            try:
                owner = self._idle.pop()
            except IndexError:  # another thread has taken it
                return None
            if owner.size == count:
                return owner
            # A buffer of another size is left over from another store: let it go.
        return None


_buffers = BufferPool(_IDLE_BUFFERS)


@contextmanager
def open_regular(file: Path) -> Iterator[BufferedReader]:
    """Open a file to read it; OSError if it is a pipe or a device, which might never end."""

    # A pipe without a writer would not even open.
    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK)

    with open(file, "rb", opener=opener) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield stream


def chunk_file_size(shape: Sequence[int]) -> int:
    """Return the size in bytes of the file of a chunk of residues of this shape."""
    return math.prod(shape) * RESIDUE_DTYPE.itemsize + CHECKSUM_BYTES


def sparse_size(files: int, nonzero: int) -> int:
    """Return the most bytes on disk of a number of chunk files with `nonzero` residues that are not 0."""
    return files * _BLOCK_BYTES + nonzero * _PIECE_BYTES


def read_chunk_file(
    file: Path,
    shape: Sequence[int],
    last: NDArray[np.uint32] | None,
    name: str,
    columns: slice | None = None,
) -> tuple[NDArray[np.uint32], bool]:
    """Read a chunk, or some columns of all its rows, and check the whole chunk; messages call it `name`.

    `shape` is the shape of a whole chunk of residues, and `last` the greatest residue of each row, or None
    for words of another kind. With `columns` only these numbers of the chunk, in C order, are returned as an
    array (n, count): all of the file is read for its checksum, but only they are held in memory. Return the
    words, and whether each residue is known to be at most its row's `last`.

    CorruptChunkError if the file is missing, has a wrong size, or does not match its checksum.
    """
    file_size = chunk_file_size(shape)
    with _naming_errors(name), open_regular(file) as stream:
        check_size(os.fstat(stream.fileno()).st_size, file_size, name)
        if columns is not None:
            shape = (shape[0], columns.stop - columns.start)
        residues = _buffers.take(math.prod(shape)).reshape(shape)
        if columns is None:
            rows = residues.reshape(shape[0], -1)
            computed, valid = read_checksummed(stream, rows, last, name)
        else:
            computed, valid = _read_columns(stream, residues, columns.start, last, file_size, name)
        stored = np.empty(CHECKSUM_BYTES, np.uint8)
        _fill(stream, stored, file_size, name)
    check_checksum(computed, int.from_bytes(stored.tobytes(), "little"), name)
    return residues, valid


def read_chunk_file_on_gpu(
    file: Path, shape: Sequence[int], moduli: ModuliSet | None, name: str
) -> tuple[Array, bool]:
    """Read a chunk into memory of this process's GPU, piece by piece, and check it there.

    Arguments and errors are as in :func:`read_chunk_file`, but with the moduli instead of the greatest
    residues; the chunk is a CuPy array.
    """
    words = empty_on_gpu(chunk_file_size(shape) // RESIDUE_DTYPE.itemsize)
    with _naming_errors(name):
        size = file_to_gpu(file, words)
    # The memory may hold this very chunk from an earlier read.
    check_size(size, chunk_file_size(shape), name)
    kernels = kernels_of(words)
    if moduli is None:
        checksum, valid = kernels.crc32c(words), False
    else:
        checksum, valid = kernels.crc32c_and_validity(words, moduli, shape[0])
    if checksum != _WHOLE:
        check_checksum(kernels.crc32c(words[:-1]), int(words[-1]), name)
    return words[:-1].reshape(shape), valid


@contextmanager
def _naming_errors(name: str) -> Iterator[None]:
    """Turn errors of the operating system into errors that name the unreadable or missing chunk."""
    try:
        yield
    except FileNotFoundError:
        raise CorruptChunkError(f"{name} is missing") from None
    except OSError as error:
        raise StoreAccessError.of(f"{name} cannot be read", error) from error


def check_size(size: int, expected: int, name: str) -> None:
    """Raise CorruptChunkError if a chunk file has not the size of its residues and checksum."""
    if size != expected:
        raise CorruptChunkError(f"{name} has {size} bytes; its residues and checksum take {expected} bytes")


def check_checksum(computed: int, stored: int, name: str) -> None:
    """Raise CorruptChunkError if a chunk's residues do not match its checksum."""
    if computed != stored:
        raise CorruptChunkError(f"{name} is corrupt: its CRC-32C is {computed:#010x}, stored {stored:#010x}")


def _fill(stream: BufferedReader, content: NDArray[np.uint8], file_size: int, name: str) -> None:
    """Fill an array from a chunk file; CorruptChunkError if it got shorter since it was opened."""
    if stream.readinto(content.data) < content.size:
        check_size(stream.tell(), file_size, name)


def read_checksummed(
    stream: BufferedReader, rows: NDArray[np.uint32], last: NDArray[np.uint32] | None, name: str
) -> tuple[int, bool]:
    """Read the rows of a matrix.

    Return their CRC-32C, and whether all residues are at most their row's `last`.
    """
    limits = np.empty(0, RESIDUE_DTYPE) if last is None else last
    size, checksum, valid = read_checked(stream.fileno(), rows, limits)
    if size < 0:
        raise OSError(-size, os.strerror(-size))
    if size < rows.nbytes:  # it got shorter since it was opened
        check_size(size, rows.nbytes + CHECKSUM_BYTES, name)
    return checksum, valid


def _read_columns(
    stream: BufferedReader,
    residues: NDArray[np.uint32],
    first: int,
    last: NDArray[np.uint32] | None,
    file_size: int,
    name: str,
) -> tuple[int, bool]:
    """Fill `residues` with the numbers of each row from `first` on; skip the others.

    Return the file's CRC-32C, and whether all wanted residues are at most their row's `last`.
    """
    rows, count = residues.shape
    scratch = np.empty(_PIECE_BYTES // RESIDUE_DTYPE.itemsize, RESIDUE_DTYPE)
    width = (file_size - CHECKSUM_BYTES) // RESIDUE_DTYPE.itemsize // rows
    checksum, valid = 0, last is not None
    for row in range(rows):
        for length, is_wanted in ((first, False), (count, True), (width - first - count, False)):
            for start in range(0, length, scratch.size):
                stop = min(start + scratch.size, length)
                piece = residues[row, start:stop] if is_wanted else scratch[: stop - start]
                content = piece.view(np.uint8)
                _fill(stream, content, file_size, name)
                checksum = extend_checksum(checksum, content)
                if is_wanted and last is not None and valid:
                    valid = not exceeds(piece[None], last[row : row + 1])
    return checksum, valid


def write_chunk_file(
    file: Path,
    residues: Array,
    shape: Sequence[int],
    name: str,
    check: Callable[[], object] = lambda: None,
    place: Path | None = None,
) -> None:
    """Write a whole chunk atomically, padded with zeros up to `shape`.

    Residues on a GPU are copied piece by piece, each while the previous one is written. The file is first
    written under a temporary name, in the folder `place` (created if its parent exists) or else in the folder
    of `file`. Then `check` is called; if it raises, or the folder's content was removed, the file does not
    appear.
    """
    residues = contiguous(residues)
    is_on_gpu = backend_name(residues) == "cuda"
    is_zero = not is_on_gpu and all(_is_zero(piece) for piece in _byte_pieces(residues))
    if residues.shape != tuple(shape) and not is_zero:
        residues = contiguous(padded(residues, shape))

    def write(partial: Path) -> None:
        with partial.open("xb") as stream:
            if is_zero:
                _write_zeros(stream, math.prod(shape) * residues.dtype.itemsize)
            elif is_on_gpu:
                _write_from_gpu(stream, residues)
            else:
                _write_checksummed(stream, residues)

    _make_whole(file, write, name, check, place)


def write_file(
    file: Path,
    content: bytes,
    name: str,
    check: Callable[[], object] = lambda: None,
    place: Path | None = None,
) -> None:
    """Write any file atomically, as `write_chunk_file` does."""
    _make_whole(file, lambda partial: partial.write_bytes(content), name, check, place)


def link_file(file: Path, source: Path, name: str, check: Callable[[], object], place: Path | None) -> None:
    """Hard-link a file, or copy it where links are impossible; atomically, as `write_chunk_file` does.

    FileNotFoundError if there is no such file.
    """
    if not source.exists():
        raise FileNotFoundError(source)
    _make_whole(file, lambda partial: _link_or_copy(source, partial), name, check, place)


def _link_or_copy(source: Path, file: Path) -> None:
    try:
        os.link(source, file)
    except OSError:  # across file systems, or without hard-links
        shutil.copyfile(source, file)


def _make_whole(
    file: Path,
    make: Callable[[Path], object],
    name: str,
    check: Callable[[], object],
    place: Path | None,
) -> None:
    folder = place or file.parent
    partial = folder / f"{file.name}.{uuid.uuid4().hex}{PARTIAL_SUFFIX}"
    try:
        for needed in (folder, file.parent):
            _make_folder(needed, None if place is None else place.parent)
        try:
            make(partial)
            check()
            partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        check()  # the folder may be gone because another writer has moved it away
        raise StoreAccessError.of(f"{name} cannot be written", error) from error


def _make_folder(folder: Path, root: Path | None) -> None:
    """Make a folder below an existing `root`, so that a writer that lost its array does not recreate it."""
    if root is None:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        if folder.parent != root:
            _make_folder(folder.parent, root)
        folder.mkdir(exist_ok=True)


def _byte_pieces(words: NDArray[Any]) -> Iterator[NDArray[np.uint8]]:
    """Divide the bytes of a contiguous array into pieces of `_PIECE_BYTES`."""
    content = words.reshape(-1).view(np.uint8)
    for start in range(0, content.size, _PIECE_BYTES):
        yield content[start : start + _PIECE_BYTES]


def _is_zero(piece: NDArray[np.uint8]) -> bool:
    return not (piece[:_PROBED_BYTES].any() or piece.any())


def _write_zeros(stream: BufferedWriter, count: int) -> None:
    """Write `count` zero bytes as a hole, then their CRC-32C."""
    stream.seek(count, os.SEEK_CUR)
    stream.write(_checksum_of_zeros(count).to_bytes(CHECKSUM_BYTES, "little"))


def _write_checksummed(stream: BufferedWriter, words: NDArray[Any]) -> None:
    """Write the content of a contiguous array, then its CRC-32C.

    Pieces of zeros are holes, which take no space where the file system has sparse files.
    """
    checksum = 0
    for piece in _byte_pieces(words):
        if _is_zero(piece):
            stream.seek(piece.size, os.SEEK_CUR)
        else:
            stream.write(piece.data)
        checksum = extend_checksum(checksum, piece)
    stream.write(checksum.to_bytes(CHECKSUM_BYTES, "little"))


@lru_cache(16)
def _checksum_of_zeros(count: int) -> int:
    checksum, zeros = 0, np.zeros(_PIECE_BYTES, np.uint8)
    for start in range(0, count, _PIECE_BYTES):
        checksum = extend_checksum(checksum, zeros[: count - start])
    return checksum


def _write_from_gpu(stream: BufferedWriter, words: Array) -> None:
    """Write a chunk of a GPU's array; the GPU computes the checksum."""
    checksum = kernels_of(words).crc32c(words.reshape(-1).view(np.uint32))
    if checksum == _checksum_of_zeros(words.nbytes) and not words.any():
        _write_zeros(stream, words.nbytes)
        return
    gpu_to_file(stream.fileno(), words)
    stream.write(checksum.to_bytes(CHECKSUM_BYTES, "little"))
