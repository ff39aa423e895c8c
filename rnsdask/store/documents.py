"""Zarr's metadata documents: made by Zarr; read strictly and within limits, as they may be untrusted."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import zarr
from numpy.typing import DTypeLike
from zarr.abc.buffer import Buffer as AnyBuffer
from zarr.buffer.cpu import Buffer
from zarr.codecs import BytesCodec, Crc32cCodec
from zarr.storage import MemoryStore

from rnsdask.core.errors import brief
from rnsdask.core.layout import ChunkPlan
from rnsdask.store.location import METADATA_KEY, Location

Files: TypeAlias = dict[str, AnyBuffer]
"""Files of an array or group in memory, as Zarr's ``MemoryStore`` takes them."""

ATTRIBUTE = "rnsdask"
"""Key of the Zarr attribute that makes an array a store."""

PLAIN_ATTRIBUTE = "rnsdask_values"
"""Key of the Zarr attribute that says whether a plain array, such as a mask, is complete."""

MOST_CHUNKS = 2**26
"""Most chunks of an array: lists of them are held in memory."""

_INCOMPLETE = "rnsdask_incomplete"
"""Field of a metadata document that Zarr does not know: it refuses to open an array that has it."""

_MOST_BYTES = 2**63 - 1
_MOST_AXES = 32


def files_in_memory(content: dict[str, bytes]) -> MemoryStore:
    """Wrap files in memory as a Zarr store."""
    return MemoryStore({key: Buffer.from_bytes(value) for key, value in content.items()}, read_only=True)


def make_document(
    shape: Sequence[int], chunks: Sequence[int], dtype: DTypeLike, codecs: Iterable[Any] = (), **options: Any
) -> bytes:
    """Make, by Zarr, the metadata document of an array whose chunks end with a checksum.

    `codecs` are applied before the checksum; `options` are of ``zarr.create_array``.
    """
    files: Files = {}
    zarr.create_array(
        store=MemoryStore(files),
        shape=tuple(shape),
        chunks=tuple(chunks),
        dtype=np.dtype(dtype),
        compressors=[*codecs, Crc32cCodec()],
        **options,
    )
    return files[METADATA_KEY].to_bytes()


def make_strict_document(
    shape: Sequence[int],
    chunks: Sequence[int],
    dtype: np.dtype[Any],
    codecs: Iterable[Any] = (),
    **options: Any,
) -> bytes:
    """Make the document of an array of the store format, which leaves nothing to Zarr's defaults."""
    return make_document(
        shape,
        chunks,
        dtype,
        codecs,
        filters=None,
        serializer=BytesCodec(endian="little" if dtype.itemsize > 1 else None),
        fill_value=0,
        chunk_key_encoding={"name": "default", "separator": "/"},
        **options,
    )


def new_group(attributes: dict[str, Any]) -> bytes:
    """Make the metadata document of a group by Zarr."""
    files: Files = {}
    zarr.create_group(store=MemoryStore(files), attributes=attributes)
    return files[METADATA_KEY].to_bytes()


def axis_names(ndim: int) -> tuple[str, ...]:
    """Names of the axes of numbers, for Zarr and xarray."""
    return ("x",) if ndim == 1 else tuple(f"x{axis}" for axis in range(ndim))


def changed_metadata(location: Location, change: Callable[[Any], object]) -> bytes:
    """Return the metadata of the array or group at a place after a change by Zarr, not concealed."""
    files: Files = {METADATA_KEY: Buffer.from_bytes(revealed(location.read_metadata()))}
    change(zarr.open(MemoryStore(files), mode="r+"))
    return files[METADATA_KEY].to_bytes()


def concealed(metadata: bytes) -> bytes:
    """Mark a metadata document as incomplete, so that Zarr does not open the array and read zeros."""
    return json.dumps({**parse_document(metadata), _INCOMPLETE: {"must_understand": True}}).encode()


def revealed(metadata: bytes) -> bytes:
    """Remove the mark of an incomplete array from a metadata document, so that Zarr opens it."""
    document = parse_document(metadata) if _INCOMPLETE.encode() in metadata else {}
    if document.pop(_INCOMPLETE, None) is None:
        return metadata
    return json.dumps(document).encode()


def with_attributes(location: Location, attributes: dict[str, Any]) -> bytes:
    """Return the metadata of the array or group at a place with some attributes replaced."""
    return changed_metadata(location, lambda node: node.update_attributes(attributes))


def with_fields(metadata: bytes, attribute: str, **fields: Any) -> bytes:
    """Replace some fields of an attribute in a metadata document."""
    document = parse_document(metadata)
    document["attributes"][attribute] |= fields
    return json.dumps(document).encode()


def document_of(location: Location) -> dict[str, Any] | None:
    """Metadata document of the array or group at a place, or None."""
    try:
        metadata = location.read_metadata()
    except FileNotFoundError:
        return None
    try:
        document = parse_document(metadata)
    except ValueError:
        return None
    return document if document.get("node_type") in ("array", "group") else None


def attributes_in(document: dict[str, Any] | None) -> dict[str, Any]:
    """Attributes in a metadata document; empty without a document."""
    attributes = None if document is None else document.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def own_attribute(document: dict[str, Any] | None) -> dict[str, Any]:
    """Find the attribute of the package in a metadata document; empty without one."""
    attributes = attributes_in(document)
    own = [attributes.get(key) for key in (ATTRIBUTE, PLAIN_ATTRIBUTE)]
    return next((attribute for attribute in own if isinstance(attribute, dict)), {})


def parse_document(metadata: bytes) -> dict[str, Any]:
    """Parse the metadata document of an array or a group.

    ValueError if it is not a JSON object, is nested too deeply, or names a field twice.
    """
    try:
        document = json.loads(metadata, object_pairs_hook=_fields)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError(f"it must be an object, got {brief(document)}")
    return document


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"it has two fields {brief(name)}")
        fields[name] = value
    return fields


def array_document(metadata: bytes) -> dict[str, Any]:
    """Read the metadata document of an array as Zarr understands it.

    ValueError, in one line, if it describes a group, or Zarr cannot read it, or the array's shape or chunks
    are too large.
    """
    try:
        metadata = revealed(metadata)
        written = parse_document(metadata)
    except Exception as error:  # JSON's, of several types
        raise _unreadable(error) from error
    _check_written(written)
    try:
        node = zarr.open(store=files_in_memory({METADATA_KEY: metadata}), mode="r")
    except Exception as error:  # of any type, because the file may hold anything
        raise _unreadable(error) from error
    if not isinstance(node, zarr.Array):
        raise ValueError("it is a Zarr group, not an array")
    document: dict[str, Any] = dict(node.metadata.to_dict())
    if (grid := document["chunk_grid"])["name"] != "regular":
        raise ValueError(f"its chunk grid must be regular, got {grid['name']:.40}")
    check_lengths(document["shape"], grid["configuration"]["chunk_shape"], node.dtype.itemsize)
    return document


def _check_written(document: dict[str, Any]) -> None:
    """Raise ValueError for values that Zarr 3.4 and later misreads, or reports less clearly.

    Zarr reads a chunk length of 0, false or true as 1, and lists in a chunk shape as another grid.
    """
    if not isinstance(attributes := document.get("attributes") or {}, dict):
        raise ValueError(f"its attributes must be an object, got {brief(attributes)}")
    lengths: Any = document
    for name in ("chunk_grid", "configuration", "chunk_shape"):
        lengths = lengths.get(name, []) if isinstance(lengths, dict) else []
    if isinstance(lengths, list) and not all(type(length) is int and length > 0 for length in lengths):
        raise ValueError(f"its chunk shape must be {len(lengths)} integers from 1 on, got {brief(lengths)}")


def _unreadable(error: Exception) -> ValueError:
    return ValueError(f"Zarr cannot read its {METADATA_KEY}: {type(error).__name__}: {_one_line(str(error))}")


def _one_line(text: str) -> str:
    """Return the start of a text, without unprintable characters."""
    shown = " ".join(text.split())[:200]
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown)


def check_lengths(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> None:
    """Raise ValueError for too many axes, bytes or chunks of an array, or a chunk without values."""
    if len(shape) > _MOST_AXES:
        raise ValueError(f"it must have at most {_MOST_AXES} axes, got {len(shape)}")
    for what, lengths, least in (("shape", shape, 0), ("chunk shape", chunks, 1)):
        are_right = all(type(length) is int and length >= least for length in lengths)
        if len(lengths) != len(shape) or not are_right:
            raise ValueError(
                f"its {what} must be {len(shape)} integers from {least} on, got {brief(lengths)}"
            )
        if math.prod(max(length, 1) for length in lengths) * itemsize > _MOST_BYTES:
            raise ValueError(f"its {what} {brief(tuple(lengths))} takes more than {_MOST_BYTES} bytes")
    count = math.prod(max(length, 1) for length in ChunkPlan(tuple(shape), tuple(chunks)).grid)
    if count > MOST_CHUNKS:
        raise ValueError(f"it has {count} chunks, of {MOST_CHUNKS} at most; larger chunks are fewer")
