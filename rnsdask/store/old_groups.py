"""Reading groups of five arrays, in which older versions stored signed integers with intervals.

One array holds the residues, and is itself a store; the others hold a value for each number. This version
writes a single array of all words, never a group.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import StoreAccessError, StoreError, brief
from rnsdask.core.ways import Message
from rnsdask.interval_rns.layout import PART_DTYPES, pack
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.store.attributes import FORMAT, json_hash
from rnsdask.store.codecs import ChunkCodecs, decode_chunk
from rnsdask.store.content import content_of
from rnsdask.store.documents import ATTRIBUTE, array_document, make_strict_document, parse_document
from rnsdask.store.location import METADATA_KEY, Location, chunk_key
from rnsdask.store.metadata import StoreInfo, load
from rnsdask.store.version import Version

_RESIDUES = "residues"
"""Name of the array of residues in a group."""

_KIND = "mpint"
"""Kind of old groups, as their attribute names it."""


@dataclass(frozen=True)
class GroupInfo(StoreInfo):
    """Metadata of an old group, presented as a store of the same numbers.

    `parts` are the names and metadata documents of its arrays, the residues first.
    """

    parts: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    def part_chunk_key(self, name: str, index: Sequence[int]) -> str:
        """Return the name of a chunk of one of the arrays within the group, such as ``sign/c/17``."""
        return f"{name}/{chunk_key((0, *index) if name == _RESIDUES else index)}"

    def chunk_keys(self) -> Iterator[str]:
        """Iterate over the names of the files of all chunks of all arrays."""
        for name, _ in self.parts:
            yield from (self.part_chunk_key(name, index) for index in self.indices())

    def holds(self, key: str) -> bool:
        """Whether a file or folder of this name belongs to one of the arrays."""
        name, _, within = key.partition("/")
        if name not in dict(self.parts):
            return False
        if name != _RESIDUES:
            within = within.replace("c/", "c/0/", 1)
        return within in ("", METADATA_KEY) or super().holds(within)

    def decode_chunk(self, index: Sequence[int]) -> NDArray[np.uint32]:
        """Read a chunk of every array, and join them to words (n + 6, ...); values are not checked."""
        selection, found = self.slices(index), {}
        for name, metadata in self.parts:
            key = self.part_chunk_key(name, index)
            within = (slice(0, len(self.moduli)), *selection) if name == _RESIDUES else selection
            found[name] = decode_chunk(self.location, metadata, key, f"{self.path}: chunk {key}", within)
        residues = np.ascontiguousarray(found.pop(_RESIDUES))
        words: NDArray[np.uint32] = pack(residues, self.moduli, **found)
        return words

    def find_content(self) -> str:
        """Hash the content of each array as it is."""
        found = {}
        for name, _ in self.parts:
            keys = (self.part_chunk_key(name, index) for index in self.indices())
            found[name] = content_of(self.location, keys)
        return json_hash(found)

    def check_appendable(self) -> None:
        """Raise StoreError: old groups are only read."""
        raise StoreError(
            f"{self.path}: it is a group, as older versions stored intervals, and nothing can be appended to "
            "it; write it to another place, x.to_zarr(path), and append there"
        )


def is_group(location: Location) -> bool:
    """Whether a group of an older version is at a place, of any kind and state."""
    return _attribute(location)[0] is not None


def load_group(location: Location) -> tuple[GroupInfo, bool]:
    """Read and check the metadata of a group at a place; also return whether it is complete."""
    path = location.path
    attribute, metadata = _attribute(location)
    if attribute is None or (attribute.get("kind"), attribute.get("format")) != (_KIND, FORMAT):
        raise StoreError(f"{path}: it is not a group of kind {_KIND!r} and format {FORMAT}")
    residues, complete = load(location.child(_RESIDUES))
    documents = {_RESIDUES: residues.location.read_metadata()}
    for name in PART_DTYPES:
        documents[name] = _part_document(location, name, residues)
    _check_tied(path, attribute, documents)
    values = {f.name: getattr(residues, f.name) for f in fields(residues)}
    values |= {
        "location": location,
        "system": IntervalRNS(residues.moduli, residues.system.source),
        "version": replace(
            Version.read(location, metadata, tells_content="group" in attribute),
            hash=json_hash([residues.version.hash, *(text.decode() for text in documents.values())]),
        ),
        "content": attribute.get("group"),
        "metadata": metadata,
    }
    return GroupInfo(**values, parts=tuple(documents.items())), complete and attribute.get("complete") is True


def _attribute(location: Location) -> tuple[dict[str, Any] | None, bytes]:
    """The attribute in a group's metadata document, or None, and the document."""
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


def _part_document(location: Location, name: str, residues: StoreInfo) -> bytes:
    """Read the metadata document of an array that accompanies the residues, and check it."""
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
        raise StoreError(Message(f"{path}: its array {name!r} cannot be read: ", error)) from error
    wanted = _facts(parse_document(make_strict_document(residues.shape, residues.chunks, PART_DTYPES[name])))
    for fact, value in wanted.items():
        if found[fact] != value:
            raise StoreError(
                f"{path}: the {fact} of its array {name!r} must be {value}, got {brief(found[fact])}"
            )
    return metadata


def _facts(document: dict[str, Any]) -> dict[str, Any]:
    """Fields of a metadata document that determine how bytes become values."""
    codecs = [{"configuration": {}, **codec} for codec in document["codecs"]]
    names = ("node_type", "data_type", "shape", "chunk_grid", "chunk_key_encoding")
    facts = {name: document[name] for name in names}
    return {**facts, "codecs": codecs, "storage_transformers": document.get("storage_transformers") or []}


def _check_tied(path: str, attribute: Mapping[str, Any], documents: Mapping[str, bytes]) -> None:
    """Check that all arrays belong to the same group, and that its metadata are unchanged."""
    group = attribute.get("group")
    for name, metadata in documents.items():
        own = (parse_document(metadata).get("attributes") or {}).get(ATTRIBUTE)
        if (own.get("group") if isinstance(own, dict) else None) != group:
            raise StoreError(f"{path}: its array {name!r} is not of this group, but of another")
    digest = json_hash({name: value for name, value in attribute.items() if name != "digest"})
    if group is not None and attribute.get("digest") != digest:
        raise StoreError(f"{path}: its {METADATA_KEY} is damaged: it does not match its digest")
