"""Codecs of chunks, which decode into memory of a known size; any other decoded size is an error.

Zarr would allocate whatever size the compressed bytes announce.
"""

import gzip
import io
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import zarr
from numcodecs import blosc, zstd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from zarr.buffer.cpu import Buffer
from zarr.storage import MemoryStore

from rnsdask.backend.cpu import extend_checksum
from rnsdask.core.errors import CorruptChunkError
from rnsdask.store.chunk_files import CHECKSUM_BYTES
from rnsdask.store.documents import Files, array_document, revealed
from rnsdask.store.location import METADATA_KEY, Location

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOSC_HEADER = struct.Struct("<4xIII")


def _decode_blosc(encoded: NDArray[np.uint8], content: NDArray[np.uint8]) -> None:
    if len(encoded) < _BLOSC_HEADER.size:
        raise ValueError("it is not of blosc")
    size, _, packed_size = _BLOSC_HEADER.unpack_from(encoded.data)
    _check_size(size, content)
    if packed_size != len(encoded):
        raise ValueError(f"it has {len(encoded)} bytes, blosc wrote {packed_size}")
    blosc.decompress(encoded, content)


def _decode_gzip(encoded: NDArray[np.uint8], content: NDArray[np.uint8]) -> None:
    with gzip.GzipFile(fileobj=io.BytesIO(encoded.data)) as stream:
        _check_size(stream.readinto(content.data), content)
        if stream.read(1):
            raise ValueError(f"it unpacks to more than {content.size} bytes")


def _decode_zstd(encoded: NDArray[np.uint8], content: NDArray[np.uint8]) -> None:
    # Where the header announces no size, zstd itself checks the size of its output.
    size = _zstd_size(encoded[:18].tobytes())
    if size is not None:
        _check_size(size, content)
    zstd.decompress(encoded, content)


def _zstd_size(header: bytes) -> int | None:
    """Size that the header of a frame announces (RFC 8878, section 3.1.1.1), or None."""
    if len(header) < 6 or not header.startswith(_ZSTD_MAGIC):
        raise ValueError("it is not a frame of zstd")
    flags = header[4]
    single_segment = flags >> 5 & 1
    start = 5 + (1 - single_segment) + (0, 1, 2, 4)[flags & 3]
    width = (single_segment, 2, 4, 8)[flags >> 6]
    size = int.from_bytes(header[start : start + width], "little")
    return None if width == 0 else size + (256 if width == 2 else 0)


def _check_size(size: int, content: NDArray[np.uint8]) -> None:
    if size != content.size:
        raise ValueError(f"it unpacks to {size} bytes, its chunk takes {content.size}")


_COMPRESSORS: dict[str, Callable[[NDArray[np.uint8], NDArray[np.uint8]], None]] = {
    "blosc": _decode_blosc,
    "gzip": _decode_gzip,
    "zstd": _decode_zstd,
}


def describe_codecs(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Write each codec of an array as its name and parameters, such as ``zstd(level=3, checksum=False)``."""
    return tuple(map(_describe, document["codecs"]))


def _describe(codec: Mapping[str, Any]) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in codec.get("configuration", {}).items())
    return f"{codec['name']}({parameters})" if parameters else str(codec["name"])


@dataclass(frozen=True)
class ChunkCodecs:
    """Encoding of an array's chunks: `shape` and `dtype` of a whole chunk, and the compressor's name."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    compressor: str | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "ChunkCodecs":
        """Read the codecs from a metadata document as Zarr writes it.

        ValueError unless they are ``bytes``, then at most one compressor, then ``crc32c``.
        """
        names = [codec["name"] for codec in document["codecs"]]
        compressors = names[1:-1]
        shown = f"{', '.join(describe_codecs(document)):.200}"
        if "crc32c" not in names:
            raise ValueError(f"its codecs must include crc32c, which shows damage; got {shown}")
        known = len(compressors) < 2 and set(compressors) <= _COMPRESSORS.keys()
        if (names[0], names[-1]) != ("bytes", "crc32c") or not known:
            kinds = ", ".join(_COMPRESSORS)
            raise ValueError(f"its codecs must be bytes, at most one of {kinds}, and crc32c; got {shown}")
        big = document["codecs"][0].get("configuration", {}).get("endian") == "big"
        return cls(
            tuple(document["chunk_grid"]["configuration"]["chunk_shape"]),
            np.dtype(document["data_type"]).newbyteorder(">" if big else "<"),
            compressors[0] if compressors else None,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of a whole chunk's values."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def longest(self) -> int:
        """Most bytes of an encoded chunk, including a compressor's overhead on incompressible data."""
        return self.nbytes + CHECKSUM_BYTES + (self.nbytes // 64 + 2**16 if self.compressor else 0)

    def decode(self, encoded: bytes) -> NDArray[Any]:
        """Decode a whole chunk into new memory.

        Raises an error of the codec's own type if the bytes do not match their checksum, or are no encoded
        chunk.
        """
        if not CHECKSUM_BYTES < len(encoded) <= self.longest:
            raise ValueError(f"it has {len(encoded)} bytes, of {self.longest} at most")
        *_, stored = struct.unpack_from("<I", encoded, len(encoded) - CHECKSUM_BYTES)
        packed = np.frombuffer(encoded, np.uint8)[:-CHECKSUM_BYTES]
        if (computed := extend_checksum(0, packed)) != stored:
            raise ValueError(f"its CRC-32C is {computed:#010x}, stored {stored:#010x}")
        content = np.empty(self.nbytes, np.uint8)
        if self.compressor is None:
            _check_size(packed.size, content)
            content[:] = packed
        else:
            _COMPRESSORS[self.compressor](packed, content)
        return content.view(self.dtype).reshape(self.shape)


def decode_chunk(
    location: Location, metadata: bytes, key: str, name: str, selection: tuple[slice, ...]
) -> NDArray[Any]:
    """Fetch the bytes of a chunk, which messages call `name`, and decode them as Zarr's codecs would.

    `selection` is the part of the array that the chunk covers. CorruptChunkError if it is missing or cannot
    be decoded.
    """
    codecs = codecs_of(metadata)
    try:
        encoded = location.read(key, name, codecs.longest)
    except FileNotFoundError:
        raise CorruptChunkError(f"{name} is missing") from None
    try:
        return codecs.decode(encoded)[tuple(slice(s.stop - s.start) for s in selection)]
    except MemoryError:
        raise
    except Exception as error:  # each codec has errors of its own
        raise CorruptChunkError(f"{name} is corrupt: {' '.join(str(error).split()):.200}") from error


@lru_cache(64)
def codecs_of(metadata: bytes) -> ChunkCodecs:
    """Codecs that an array's metadata document names."""
    return ChunkCodecs.of(array_document(metadata))


def encode_chunk(metadata: bytes, key: str, selection: tuple[slice, ...], values: NDArray[Any]) -> bytes:
    """Encode a chunk by Zarr, given the array's metadata document and the part that the chunk covers."""
    files: Files = {METADATA_KEY: Buffer.from_bytes(revealed(metadata))}
    array = zarr.open_array(MemoryStore(files), mode="r+")
    # By default, Zarr would not write a chunk of zeros, which would look like a missing one.
    array.with_config({"write_empty_chunks": True})[selection] = values
    return files[key].to_bytes()
