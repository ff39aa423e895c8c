"""File formats recognised by a file's name or its first bytes, so that no format is mistaken for another."""

import re
import zlib
from pathlib import PurePath

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstandard"}
"""Suffixes of compressed files that are read and written."""

NUMPY, CSV, ZARR = "a NumPy file", "a CSV file", "a Zarr store"
ZIP, PARQUET, _HDF5 = "a zip archive", "a Parquet file", "an HDF5 file"
_ARROW, MATRIX_MARKET = "an Arrow file", "a Matrix Market file"

TEXT, RECORDS = "text", "records without a header"
"""Names of the inputs that have no file format of this list."""

TEXTS = {
    ".txt": "a text file",
    ".csv": CSV,
    ".tsv": "a TSV file",
    ".json": "a JSON file",
    ".jsonl": "a JSON file",
    ".ndjson": "a JSON file",
    ".mtx": MATRIX_MARKET,
}
_FILES = {
    ".npy": NUMPY,
    ".npz": "an archive of NumPy files",
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".nc": "a NetCDF file",
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".orc": "an ORC file",
    ".avro": "an Avro file",
    ".pkl": "a pickle",
    ".pickle": "a pickle",
    ".mat": "a MATLAB file",
    ".xlsx": "an Excel file",
    ".zip": ZIP,
    ".7z": "a 7z archive",
    ".tar": "a tar archive",
    ".tgz": "a tar archive",
    ".lz4": "an lz4 file",
    ".lzma": "an lzma file",
    ".zarr": ZARR,
    **TEXTS,
}

FIRST_BYTES = 32
"""Bytes at the start of a file from which :func:`format_of_begin` recognises each format."""

# Records may have any bytes. No signature here reads as a small number in records of 8 bytes, or as several
# zeros.
_BEGINS = {
    NUMPY: rb"\x93NUMPY",
    ZIP: rb"PK\x03\x04[\x0a-\x3f]\x00",
    PARQUET: rb"PAR1\x15",
    _HDF5: rb"\x89HDF\r\n",
    _ARROW: rb"ARROW1",
}
_GZIP = "data compressed by gzip"
_SHORTEST_GZIP = 20
"""Contents of a gzip file without data."""

_BEGINS_OF_RECORDS = {
    MATRIX_MARKET: rb"(?i:%%MatrixMarket)",
    _GZIP: rb"\x1f\x8b\x08[\x00-\x1f](?s:....)[\x00\x02\x04]",
    "data compressed by bzip2": rb"BZh[1-9]1AY&SY",
    "data compressed by xz": rb"\xfd7zXZ\x00",
    "data compressed by zstandard": rb"\x28\xb5\x2f\xfd(?!(?s:.)\x00\x00)",
}


def format_of_name(path: str) -> str | None:
    """Return the format that a file's suffix means, or None if it is not known here.

    A suffix of compression is skipped.
    """
    return _FILES.get(PurePath(strip_compression(path).lower()).suffix)


def is_json_lines(path: str) -> bool:
    """Whether a file's name, before a suffix of compression, is that of JSON lines."""
    return PurePath(strip_compression(path).lower()).suffix in (".jsonl", ".ndjson")


def replace_suffix(path: str, suffix: str) -> str:
    """Return a file's name with another suffix."""
    return PurePath(strip_compression(path)).with_suffix(suffix).name


def strip_compression(path: str) -> str:
    """Return a file's name without a suffix of compression."""
    return path[: -len(suffix)] if (suffix := compression_of(path)) else path


def compression_of(path: str) -> str | None:
    """Return the suffix of compression of a file's name, or None."""
    return next((suffix for suffix in COMPRESSED if path.lower().endswith(suffix)), None)


def format_of_begin(begin: bytes, *, of_records: bool = False) -> str | None:
    """Return the format that the first bytes of a file mean, or None.

    With `of_records`, bytes that text or compressed text may begin with are recognised too.
    """
    known = _BEGINS | (_BEGINS_OF_RECORDS if of_records else {})
    kind = next((kind for kind, magic in known.items() if re.match(magic, begin)), None)
    return None if kind == _GZIP and not _is_gzip(begin) else kind


def _is_gzip(begin: bytes) -> bool:
    """Whether the bytes are a gzip header: its three magic bytes alone may also be a small number."""
    if len(begin) < _SHORTEST_GZIP:
        return False
    try:
        zlib.decompressobj(wbits=31).decompress(begin)
    except zlib.error:
        return False
    return True
