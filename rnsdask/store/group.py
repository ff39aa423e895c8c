"""Groups: an array of residues, which is a store of its own, and further arrays of facts about its numbers.

The arrays of a group have the same shape and chunks. Every chunk is on disk and has a checksum, as in a store
of residues, and a group is complete or cannot be read. It is one whole: all parts name the hash of the chunks
of all, and none of them is replaced alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rnsdask.core.errors import StoreAccessError, StoreError, brief
from rnsdask.store.attributes import ATTRIBUTE, FORMAT, incomplete_error, json_hash
from rnsdask.store.codecs import ChunkCodecs
from rnsdask.store.documents import (
    array_document,
    attributes_in,
    axis_names,
    make_strict_document,
    parse_document,
)
from rnsdask.store.location import METADATA_KEY, Location, chunk_key
from rnsdask.store.metadata import Opened, StoreInfo, load, open_info
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import content_of

RESIDUES = "residues"
"""Name of the array of residues in a group."""

# A part's chunks are whole residues' chunks of one value a number; a part is never compressed.
Parts = Mapping[str, np.dtype[Any]]


@dataclass(frozen=True)
class GroupInfo:
    """What there is to know about a complete group.

    Attributes
    ----------
    location : Location
        Where it is; `path` is the absolute path, or the URL.
    residues : StoreInfo
        The store of the residues.
    kind : str
        What it holds.
    parts : tuple of (name, metadata document)
        The other arrays.
    opened : Opened
        The group's own metadata document, to be recognised after each chunk that is read.
    """

    location: Location
    residues: StoreInfo
    kind: str
    parts: tuple[tuple[str, bytes], ...] = field(repr=False)
    opened: Opened = field(repr=False)

    @property
    def path(self) -> str:
        """Absolute path, or URL."""
        return self.location.path

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.GroupInfo", self.path, *self.residues.__dask_tokenize__(), self.parts


def open_group(path: StorePath, kind: str, parts: Parts) -> GroupInfo:
    """Read and check what a complete group says about itself.

    Raises
    ------
    IncompleteStoreError
        If its writing did not finish.
    StoreError
        If there is no such group, or its arrays do not fit one another.
    """
    location = locate(path)
    while True:
        attribute, metadata = group_attribute(location)
        try:
            return _opened(location, kind, parts, attribute, metadata)
        except StoreError:
            # Its arrays are read one by one, in which time another group may have taken its place.
            if group_attribute(location)[1] == metadata:
                raise


def _opened(
    location: Location, kind: str, parts: Parts, attribute: dict[str, Any] | None, metadata: bytes
) -> GroupInfo:
    path = location.path
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it is not a group of kind {kind!r} that rnsdask wrote")
    if attribute.get("format") != FORMAT:
        raise StoreError(f"{path}: it is of format {brief(attribute.get('format'))}; this is {FORMAT}")
    if attribute.get("complete") is not True:
        raise incomplete_error(path, "group", attribute)
    residues = open_info(location.child(RESIDUES))
    documents = tuple(
        (name, _part_metadata(location, name, dtype, residues)) for name, dtype in parts.items()
    )
    _check_tied(path, attribute, residues, dict(documents))
    opened = Opened.of(location, metadata, tells_content="group" in attribute)
    return GroupInfo(location, residues, kind, documents, opened)


def describe_group(path: StorePath) -> tuple[str, StoreInfo, bool] | None:
    """A group's kind, the store of its residues, and whether it is complete; None if there is no group."""
    location = locate(path)
    attribute, _ = group_attribute(location)
    if attribute is None or not isinstance(attribute.get("kind"), str):
        return None
    residues, complete = load(location.child(RESIDUES))
    return attribute["kind"], residues, complete and attribute.get("complete") is True


def is_group(location: Location) -> bool:
    """Whether there is a group of rnsdask's, of whatever kind and state."""
    return group_attribute(location)[0] is not None


def attribute_of(kind: str, complete: bool) -> dict[str, Any]:
    """What a group of rnsdask's says of itself before it has chunks."""
    return {"format": FORMAT, "kind": kind, "complete": complete}


def attribute_digest(attribute: Mapping[str, Any]) -> str:
    """Digest of all else that a group says of itself."""
    return json_hash({name: value for name, value in attribute.items() if name != "digest"})


def group_attribute(location: Location) -> tuple[dict[str, Any] | None, bytes]:
    """The attribute in a group's metadata document, None if there is no such thing, and the document."""
    metadata = b""
    try:
        metadata = location.read_metadata()
        document = parse_document(metadata)
        attribute = document["attributes"][ATTRIBUTE] if document["node_type"] == "group" else None
    except StoreAccessError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return None, metadata
    return (attribute if isinstance(attribute, dict) else None), metadata


def _check_tied(
    path: str, attribute: Mapping[str, Any], residues: StoreInfo, documents: Mapping[str, bytes]
) -> None:
    """Check that all parts are of the same group, and that its own metadata are as they were written."""
    names = {RESIDUES: residues.group}
    for name, metadata in documents.items():
        own = attributes_in(parse_document(metadata)).get(ATTRIBUTE)
        names[name] = own.get("group") if isinstance(own, dict) else None
    group = attribute.get("group")
    for name, found in names.items():
        if found != group:
            raise StoreError(f"{path}: its array {name!r} is not of this group, but of another")
    if group is not None and attribute.get("digest") != attribute_digest(attribute):
        raise StoreError(f"{path}: its {METADATA_KEY} is damaged: it does not match its digest")


def part_document(dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """The metadata document of an array beside the residues."""
    names = axis_names(len(residues.shape))
    return make_strict_document(residues.shape, residues.chunks, dtype, dimension_names=names)


def _part_metadata(location: Location, name: str, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """Read the metadata document of an array beside the residues: it must be one as is written for it."""
    path = location.path
    try:
        metadata = location.child(name).read_metadata()
        ChunkCodecs.of(array_document(metadata))
        found = _facts(parse_document(metadata))
    except StoreError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{path}: its array {name!r} cannot be read: it has no {METADATA_KEY}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path}: its array {name!r} cannot be read: {error}") from error
    wanted = _facts(parse_document(part_document(dtype, residues)))
    for fact, value in wanted.items():
        if found[fact] != value:
            raise StoreError(
                f"{path}: the {fact} of its array {name!r} must be {value}, got {brief(found[fact])}"
            )
    return metadata


def _facts(document: dict[str, Any]) -> dict[str, Any]:
    """All in a metadata document that makes values of bytes."""
    codecs = [{"configuration": {}, **codec} for codec in document["codecs"]]
    names = ("node_type", "data_type", "shape", "chunk_grid", "chunk_key_encoding")
    facts = {name: document[name] for name in names}
    return {**facts, "codecs": codecs, "storage_transformers": document.get("storage_transformers") or []}


def hash_of_chunks(location: Location, residues: StoreInfo, parts: Iterable[str]) -> str:
    """Hash of the checksums of all chunks of all parts."""
    keys = {name: map(chunk_key, residues.indices()) for name in sorted(parts)}
    hashes = {name: content_of(location.child(name), of_part) for name, of_part in keys.items()}
    hashes[RESIDUES] = content_of(residues.location, map(residues.chunk_key, residues.indices()))
    return json_hash(hashes)


def part_chunk_name(location: Location, name: str, index: Sequence[int]) -> str:
    """What messages call a chunk of one array."""
    return f"{location.path}: chunk {name}/{chunk_key(index)}"
