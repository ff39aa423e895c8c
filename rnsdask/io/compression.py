"""Compressed streams: gzip, bzip2, xz and zstandard, read and written block by block."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

from rnsdask.core.errors import InputError, JobError
from rnsdask.core.file_formats import FIRST_BYTES, compression_of
from rnsdask.io.integer_reading import remaining_bytes

# First bytes of a compressed stream, by the suffix of its file's name.
_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}

ZLIB = ".zlib"
"""A stream of zlib's without gzip's header, which other formats contain and no file's name says."""

_GZIP_LEVEL = 6
_PIECE = 2**16


def decompressed(stream: BinaryIO, name: str, *, by_content: bool) -> io.BufferedReader:
    """Decompress a stream, if it is compressed, into one that supports `peek`.

    `name` is the stream's name, also in messages. With `by_content` its first bytes, which are distinct from
    text, decide whether it is compressed; otherwise the name does. InputError without a library for the
    compression; during reading, if the data are damaged or truncated.
    """
    if hasattr(stream, "peek") and remaining_bytes(stream) is not None:
        whole: Any = stream
    else:  # a pipe may return less at a time than the first bytes
        whole = io.BufferedReader(_Blocks(stream.read, name))
    suffix = compression_of(name)
    if by_content:
        begin = first_bytes(whole)
        suffix = next((suffix for suffix, magic in _MAGIC.items() if begin.startswith(magic)), None)
    return whole if suffix is None else decompressed_as(whole, suffix, name)


def decompressed_as(stream: BinaryIO, suffix: str, name: str) -> io.BufferedReader:
    """Decompress a stream by the compression of a suffix, or of ZLIB; errors as of :func:`decompressed`."""
    if suffix == ".zst" and _zstd() is None:
        raise InputError(f"{name}: reading zstandard needs a package: pip install 'rnsdask[zstd]'")
    if suffix == ".gz":
        read: Callable[[int], bytes] = gzip.GzipFile(fileobj=stream, mode="rb").read
    else:
        read = _zlib_reader(stream) if suffix == ZLIB else _reader(stream, suffix)
    return io.BufferedReader(_Blocks(read, name))


def first_bytes(stream: io.BufferedReader) -> bytes:
    """Peek at the first bytes of a stream from :func:`decompressed`."""
    return stream.peek(FIRST_BYTES)[:FIRST_BYTES]


def _zstd() -> Any:
    """Import the module of zstandard: Python's own from 3.14 on, or its backport."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        return None
    return zstd


def _reader(stream: BinaryIO, suffix: str) -> Callable[[int], bytes]:
    """Return a function that reads concatenated compressed streams.

    The libraries' own file classes ignore trailing bytes that are not a stream, although they may be damaged
    data.
    """
    make = {".bz2": bz2.BZ2Decompressor, ".xz": lzma.LZMADecompressor}.get(suffix)
    make = make or _zstd().ZstdDecompressor
    decompressor: Any = make()

    def read(size: int) -> bytes:
        nonlocal decompressor
        found = b""
        while not found:
            data = b""
            if decompressor.eof:
                if not (data := decompressor.unused_data or stream.read(_PIECE)):
                    return b""
                decompressor = make()
            elif decompressor.needs_input and not (data := stream.read(_PIECE)):
                raise EOFError("the stream is truncated")
            found = decompressor.decompress(data, size)
        return found

    return read


def _zlib_reader(stream: BinaryIO) -> Callable[[int], bytes]:
    """Return a function that reads one stream of zlib's, after which nothing may follow."""
    decompressor, pending = zlib.decompressobj(), b""

    def read(size: int) -> bytes:
        nonlocal pending
        found = b""
        while not found and not decompressor.eof:
            if not (pending := pending or stream.read(_PIECE)):
                raise EOFError("the stream is truncated")
            found = decompressor.decompress(pending, size)
            pending = decompressor.unconsumed_tail
        if decompressor.eof and (decompressor.unused_data or stream.read(1)):
            raise zlib.error("bytes follow the end of the stream")
        return found

    return read


class _Blocks(io.RawIOBase):
    """Raw stream of the bytes that a function reads; errors of damaged data name the stream."""

    def __init__(self, read: Callable[[int], bytes], name: str) -> None:
        self._read, self._name = read, name

    def readable(self) -> bool:
        """Return True, as every input stream does."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as data are available; return the number of bytes."""
        filled = 0
        try:
            while filled < len(buffer) and (data := self._read(len(buffer) - filled)):
                buffer[filled : filled + len(data)] = data
                filled += len(data)
        except Exception as error:
            if not _is_damage(error):
                raise
            raise InputError(f"{self._name}: its compressed data are damaged or cut: {error}") from error
        return filled


def _is_damage(error: Exception) -> bool:
    """Whether an error reports wrong data; one with an errno is the operating system's."""
    if isinstance(error, OSError):
        return error.errno is None
    return isinstance(error, EOFError | zlib.error | lzma.LZMAError) or type(error).__name__ == "ZstdError"


def compressing(stream: BinaryIO, name: str) -> AbstractContextManager[BinaryIO]:
    """Return a stream that writes to another, compressed if the suffix of its name says so.

    The compressed bytes depend only on the data, not on the time or the name. JobError without a library.
    """
    suffix = compression_of(name)
    if suffix is None:
        return nullcontext(stream)
    if suffix == ".gz":
        file: Any = gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0)
        return file  # type: ignore[no-any-return]
    if suffix != ".zst":
        return (bz2.BZ2File if suffix == ".bz2" else lzma.LZMAFile)(stream, "wb")  # type: ignore[return-value]
    if (zstd := _zstd()) is None:
        raise JobError("writing zstandard needs a package: pip install 'rnsdask[zstd]'")
    options = {zstd.CompressionParameter.checksum_flag: 1}  # as the program zstd does
    return zstd.ZstdFile(stream, "wb", options=options)  # type: ignore[no-any-return]


def compress_as(data: bytes, suffix: str) -> bytes:
    """Compress bytes by zstandard, for ``.zst``, or by zlib, for ZLIB; JobError without a library."""
    if suffix == ZLIB:
        return zlib.compress(data)
    with compressing(packed := io.BytesIO(), suffix) as stream:
        stream.write(data)
    return packed.getvalue()
