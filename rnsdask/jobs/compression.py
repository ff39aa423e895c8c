"""Compressed streams: gzip, bzip2, xz and zstandard, read and written piece by piece."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from rnsdask.core.errors import InputError, JobError
from rnsdask.core.file_formats import FIRST_BYTES, compression_of
from rnsdask.jobs.integer_reading import remaining_bytes

# How each begins, by how the names of its files end.
_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}

_GZIP_LEVEL = 6
_PIECE = 2**16


def decompressed(stream: BinaryIO, name: str, *, by_content: bool) -> io.BufferedReader:
    """A stream of what another one holds, compressed or not, whose first bytes can be peeked into.

    Parameters
    ----------
    name : str
        The stream's name, also in messages.
    by_content : bool
        Whether its first bytes tell if it is compressed, as those of text can, not the name.

    Raises
    ------
    InputError
        If there is no library for the compression; when it is read, if the data are damaged or cut.
    """
    whole = _with_whole_begin(stream)
    suffix = compression_of(name)
    if by_content:
        begin = first_bytes(whole)
        suffix = next((suffix for suffix, magic in _MAGIC.items() if begin.startswith(magic)), None)
    if suffix is None:
        return whole
    if suffix == ".zst" and _zstd() is None:
        raise InputError(f"{name}: reading zstandard needs a package: pip install 'rnsdask[zstd]'")
    read = gzip.GzipFile(fileobj=whole, mode="rb").read if suffix == ".gz" else _Pieces(whole, suffix).read
    return _with_whole_begin(io.BufferedReader(_Decompressed(read, name)))


def first_bytes(stream: io.BufferedReader) -> bytes:
    """The first bytes of a stream that :func:`decompressed` gave, which stay in it."""
    return stream.peek(FIRST_BYTES)[:FIRST_BYTES]


def _with_whole_begin(stream: Any) -> io.BufferedReader:
    """A stream of the same bytes, into the first of which one can peek, whatever a pipe has given by then."""
    peekable: io.BufferedReader = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    if remaining_bytes(peekable) is not None or len(peekable.peek(FIRST_BYTES)) >= FIRST_BYTES:
        return peekable
    return io.BufferedReader(_After(peekable.read(FIRST_BYTES), peekable))


class _After(io.RawIOBase):
    """What was read of a stream, then the rest of it."""

    def __init__(self, begin: bytes, stream: Any) -> None:
        self._begin, self._stream = begin, stream

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as there are data."""
        data = self._begin[: len(buffer)] or self._stream.read1(len(buffer))
        self._begin = self._begin[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _zstd() -> Any:
    """The module of zstandard: Python's own from 3.14 on, or its backport."""
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            return None
    return zstd


def _decompressor(suffix: str) -> Any:
    if suffix == ".bz2":
        return bz2.BZ2Decompressor()
    return lzma.LZMADecompressor() if suffix == ".xz" else _zstd().ZstdDecompressor()


class _Pieces:
    """Reads compressed streams one after the other.

    The libraries' own files ignore what follows a stream and is none: it may be the rest of a damaged file.
    """

    def __init__(self, stream: BinaryIO, suffix: str) -> None:
        self._stream, self._suffix = stream, suffix
        self._decompressor = _decompressor(suffix)

    def read(self, size: int) -> bytes:
        """Read up to so many bytes; none at the end."""
        while True:
            data = b""
            if self._decompressor.eof:
                data = self._decompressor.unused_data or self._stream.read(_PIECE)
                if not data:
                    return b""
                self._decompressor = _decompressor(self._suffix)
            elif self._decompressor.needs_input:
                data = self._stream.read(_PIECE)
                if not data:
                    raise EOFError("they end before their end is marked")
            found: bytes = self._decompressor.decompress(data, size)
            if found:
                return found


class _Decompressed(io.RawIOBase):
    """What a reader gives; it is no file, whose size would be that of the compressed data."""

    def __init__(self, read: Callable[[int], bytes], name: str) -> None:
        self._read, self._name = read, name

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as there are data."""
        try:
            data = self._read(len(buffer))
        except Exception as error:
            if not _is_damage(error):
                raise
            raise InputError(f"{self._name}: its compressed data are damaged or cut: {error}") from error
        buffer[: len(data)] = data
        return len(data)


def _is_damage(error: Exception) -> bool:
    """Whether a library says that data are wrong; an error with a number is the operating system's."""
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, EOFError | zlib.error | lzma.LZMAError) or type(error).__name__ == "ZstdError"


@contextmanager
def compressing(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """A stream that is written to another one, compressed as the ending of its name tells, if it does.

    Raises
    ------
    JobError
        If there is no library for the compression.
    """
    suffix = compression_of(name)
    if suffix is None:
        yield stream
        return
    with _compressed(stream, suffix) as file:
        yield file


def _compressed(stream: BinaryIO, suffix: str) -> Any:
    """A file that writes to a stream; the same bytes for the same data."""
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0)
    if suffix != ".zst":
        return (bz2.BZ2File if suffix == ".bz2" else lzma.LZMAFile)(stream, "wb")
    zstd = _zstd()
    if zstd is None:
        raise JobError("writing zstandard needs a package: pip install 'rnsdask[zstd]'")
    return zstd.ZstdFile(stream, "wb")
