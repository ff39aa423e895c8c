"""Groups: an array of residues, which is a store of its own, and further arrays of facts about its numbers.

The arrays of a group have the same shape and chunks. Every chunk is on disk and has a checksum, as in a store
of residues, and a group is complete or cannot be read. It is one whole: all parts name the hash of the chunks
of all, and none of them is replaced alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.errors import ChangedStoreError, IncompleteStoreError, StoreAccessError, StoreError
from rnsdask.core.layout import Chunks, chunk_slices
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS
from rnsdask.store.attributes import ATTRIBUTE, FORMAT, check_job_identity, json_hash
from rnsdask.store.chunk_files import write_chunk_file
from rnsdask.store.codecs import ChunkCodecs
from rnsdask.store.documents import (
    array_document,
    axis_names,
    make_strict_document,
    new_group,
    parse_document,
    with_attributes,
)
from rnsdask.store.location import METADATA_KEY, STAGED, Location, chunk_key
from rnsdask.store.metadata import Opened, StoreInfo, load, open_info
from rnsdask.store.ownership import Owner, is_left_behind
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.reading import (
    belonging,
    codecs_of,
    content_of,
    decode_chunk,
    fingerprint,
    read_chunk,
    versions_of,
)
from rnsdask.store.replacing import Replacement, attributes_in, clear, document_of, state
from rnsdask.store.writing import StoreWriter, create, encode_chunk

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


def create_group(
    path: StorePath,
    kind: str,
    system: RNS,
    shape: Sequence[int],
    parts: Parts,
    *,
    chunks: Chunks = "auto",
    overwrite: bool = False,
    with_room: bool = False,
    job_identity: str | None = None,
) -> "GroupWriter":
    """Create a group without chunks; it is incomplete until its writer has finished.

    Parameters
    ----------
    path
        Anything that `rnsdask.store.locate` takes.
    kind
        What the group holds: the value that :func:`open_group` looks for.
    parts
        Names and types of the arrays beside the residues.
    overwrite
        Whether to replace a group of this kind that `path` holds already. Nothing else is ever replaced. One
        that is whole stays until the new one is.
    chunks, with_room
        As `rnsdask.store.create` takes them.
    job_identity
        As `rnsdask.store.create` takes it, for :func:`resume_group`.

    Raises
    ------
    StoreError
        If `path` is taken, or cannot be written.
    """
    location, names = locate(path).check_writable(), {RESIDUES, *parts}
    replacement = None
    if _is_in_the_way(location, kind, names, overwrite):
        replacement = Replacement(location)
        location = replacement.staged
        left = location.names() if location.kind() == "folder" else set()
        # Without metadata it is what is left of one that was replaced.
        if not left <= names and _is_in_the_way(location, kind, names, overwrite=True):
            raise StoreError(
                f"{location.path}: it exists; what is to replace {replacement.location.path} is written there"
            )
    begun = new_group({ATTRIBUTE: {**_attribute(kind, complete=False), "recipe": job_identity}})
    # First what says whose it is: from then on its writer adds nothing.
    location.child(RESIDUES).remove(METADATA_KEY)
    location.write(METADATA_KEY, begun, f"{location.path}: it")
    clear(location, keep=(METADATA_KEY,), parts=names)
    writer = create(location.child(RESIDUES), system, shape, chunks=chunks, group=kind, with_room=with_room)
    info = writer.info
    documents = {name: _create_part(location.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(location, kind, writer, documents, replacement)


def resume_group(
    path: StorePath,
    kind: str,
    parts: Parts,
    check: Callable[[StoreInfo], object] = lambda _: None,
    *,
    job_identity: str | None = None,
) -> "GroupWriter":
    """Open an incomplete group, to write the chunks that it still lacks; as `rnsdask.store.resume`.

    Parameters
    ----------
    path, kind, parts, job_identity
        As :func:`create_group` takes them.
    check
        Called with the store of the residues before anything changes; it may raise.

    Raises
    ------
    StoreError
        If there is no such group, or it is complete, or was created by another job, or cannot be written.
    """
    location = locate(path).check_writable()
    replacement = Replacement.begun(location)
    if replacement is not None:
        location = replacement.staged
    attribute, _ = _group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{location.path}: it cannot be resumed: it is no group of kind {kind!r}")
    if attribute.get("complete") is not False:
        raise StoreError(f"{location.path}: the group is complete: there is nothing to resume")
    info, _ = load(location.child(RESIDUES))
    check(info)
    check_job_identity(location, job_identity)
    writer = StoreWriter(info, Owner(info.location))
    writer.take_over(None, group=kind)
    # Anew, for the job may have ended before it wrote them.
    documents = {name: _create_part(location.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(location, kind, writer, documents, replacement)


def _attribute(kind: str, complete: bool) -> dict[str, Any]:
    return {"format": FORMAT, "kind": kind, "complete": complete}


def _create_part(location: Location, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """Create one of the other arrays; return its metadata document."""
    metadata = _part_document(dtype, residues)
    location.write(METADATA_KEY, metadata, f"{location.path}: it")
    return metadata


def _part_document(dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """The metadata document of an array beside the residues."""
    names = axis_names(len(residues.shape))
    return make_strict_document(residues.shape, residues.chunks, dtype, dimension_names=names)


class GroupWriter:
    """Writes the chunks of a group, in any order, from any process; then `finish` is called once."""

    def __init__(
        self,
        location: Location,
        kind: str,
        residues: StoreWriter,
        parts: Mapping[str, bytes],
        replacement: Replacement | None = None,
    ) -> None:
        self._location, self._kind = location, kind
        self._residues, self._parts = residues, parts
        self._replacement = replacement

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.GroupWriter", self._location.path, *self._residues.__dask_tokenize__()

    @property
    def replaces(self) -> bool:
        """Whether the group replaces another one when it is finished."""
        return self._replacement is not None

    def take_from(self, old: Location, indices: Iterable[Sequence[int]]) -> None:
        """Take over some chunks of the group that this one replaces, and all attributes of others' keys."""
        kept = list(indices)
        keys = [f"{RESIDUES}/{self._residues.info.chunk_key(index)}" for index in kept]
        keys += [f"{name}/{chunk_key(index)}" for name in self._parts for index in kept]
        self._residues.owner.share_chunks(self._location, old, keys)
        for path in ("", RESIDUES, *self._parts):
            before, after = (place.child(path) if path else place for place in (old, self._location))
            others = {k: v for k, v in attributes_in(document_of(before)).items() if k != ATTRIBUTE}
            if others:
                after.write(METADATA_KEY, with_attributes(after, others), f"{after.path}: it")

    @property
    def owner(self) -> Owner:
        """The right of this writer to the group."""
        return self._residues.owner

    @property
    def moduli(self) -> ModuliSet:
        """The moduli set of the residues."""
        return self._residues.info.moduli

    def chunk_name(self, index: Sequence[int]) -> str:
        """Return what messages call a chunk of all arrays."""
        return f"{self._location.path}: chunk {tuple(index)}"

    def indices(self) -> Iterable[tuple[int, ...]]:
        """Return the indices of all chunks, in C order."""
        return self._residues.info.indices()

    def write_chunk(self, index: Sequence[int], residues: Array, parts: Mapping[str, NDArray[Any]]) -> None:
        """Write a whole chunk of every array, each so that it appears at once or not at all.

        Residues may be a GPU's; the other arrays are NumPy's.

        Raises
        ------
        IndexError, TypeError, ValueError
            As :meth:`.StoreWriter.write_chunk` does.
        StoreError
            If a chunk cannot be written.
        """
        self._residues.write_chunk(index, residues)
        for name, metadata in self._parts.items():
            self._write_part(name, metadata, index, parts[name])

    def _write_part(self, name: str, metadata: bytes, index: Sequence[int], values: NDArray[Any]) -> None:
        info, owner = self._residues.info, self._residues.owner
        location, key = self._location.child(name), chunk_key(index)
        label = _chunk_name(self._location, name, index)
        selection = chunk_slices(index, info.shape, info.chunks)
        if not info.has_chunk_files:
            owner.put_chunk(location, key, encode_chunk(metadata, key, selection, values), label)
            return
        # The same file without Zarr, which takes milliseconds a chunk: bytes as they are, then their CRC-32C.
        expected = tuple(s.stop - s.start for s in selection)
        if values.shape != expected:
            raise ValueError(f"{label} has shape {expected}, got values of shape {values.shape}")
        values = values.astype(codecs_of(metadata).dtype, copy=False)
        write_chunk_file(Path(location.path, key), values, info.chunks, label, owner.check, owner.place)

    def read_chunk(self, index: Sequence[int]) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
        """Read a chunk of every array that is written, and check it, as :func:`read_group_chunk`."""
        return _read_parts(self._location, self._residues.info, self._parts.items(), index)

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks of which an array is not written yet, in C order."""
        sizes, missing = self._location.sizes(), set(self._residues.missing_chunks())
        missing.update(
            index
            for index in self.indices()
            if any(f"{name}/{chunk_key(index)}" not in sizes for name in self._parts)
        )
        return sorted(missing)

    def finish(self) -> None:
        """Declare the group complete; if it is to replace another one, it does so now.

        Raises
        ------
        StoreError
            If a chunk is not written, or another writer has begun to write the group.
        """
        location, info = self._location, self._residues.info
        path, sizes = location.path, location.sizes()
        for name in self._parts:
            for index in info.indices():
                key = f"{name}/{chunk_key(index)}"
                if key not in sizes:
                    raise StoreError(f"{path}: it cannot be completed: {key} is not written")
        group = hash_of_chunks(location, info, self._parts)
        for name in self._parts:
            part = location.child(name)
            metadata = with_attributes(part, {ATTRIBUTE: {"group": group}})
            part.write(METADATA_KEY, metadata, f"{part.path}: it")
        self._residues.finish(group=group)
        attribute = {**_attribute(self._kind, complete=True), "group": group}
        attribute["digest"] = _digest(attribute)
        metadata = with_attributes(location, {ATTRIBUTE: attribute})

        def write(metadata: bytes) -> None:
            location.write(METADATA_KEY, metadata, f"{path}: it")

        if self._replacement is None:
            write(metadata)
        else:
            self._replacement.put_in_place(metadata, write)


def _digest(attribute: Mapping[str, Any]) -> str:
    return json_hash({name: value for name, value in attribute.items() if name != "digest"})


def hash_of_chunks(location: Location, residues: StoreInfo, parts: Iterable[str]) -> str:
    """Hash of the checksums of all chunks of all parts."""
    keys = {name: map(chunk_key, residues.indices()) for name in sorted(parts)}
    hashes = {name: content_of(location.child(name), of_part) for name, of_part in keys.items()}
    hashes[RESIDUES] = content_of(residues.location, map(residues.chunk_key, residues.indices()))
    return json_hash(hashes)


def _chunk_name(location: Location, name: str, index: Sequence[int]) -> str:
    return f"{location.path}: chunk {name}/{chunk_key(index)}"


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
    path = location.path
    attribute, metadata = _group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it is not a group of kind {kind!r} that rnsdask wrote")
    if attribute.get("format") != FORMAT:
        raise StoreError(f"{path}: it is of format {attribute.get('format')!r:.40}; this is {FORMAT}")
    if attribute.get("complete") is not True:
        raise IncompleteStoreError(f"{path}: the group is incomplete, because its writing did not finish")
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
    attribute, _ = _group_attribute(location)
    if attribute is None or not isinstance(attribute.get("kind"), str):
        return None
    residues, complete = load(location.child(RESIDUES))
    return attribute["kind"], residues, complete and attribute.get("complete") is True


def is_group(location: Location) -> bool:
    """Whether there is a group of rnsdask's, of whatever kind and state."""
    return _group_attribute(location)[0] is not None


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
    if group is not None and attribute.get("digest") != _digest(attribute):
        raise StoreError(f"{path}: its {METADATA_KEY} is damaged: it does not match its digest")


def _group_attribute(location: Location) -> tuple[dict[str, Any] | None, bytes]:
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
    wanted = _facts(parse_document(_part_document(dtype, residues)))
    for fact, value in wanted.items():
        if found[fact] != value:
            raise StoreError(
                f"{path}: the {fact} of its array {name!r} must be {value}, got {found[fact]!r:.100}"
            )
    return metadata


def _facts(document: dict[str, Any]) -> dict[str, Any]:
    """All in a metadata document that makes values of bytes."""
    codecs = [{"configuration": {}, **codec} for codec in document["codecs"]]
    names = ("node_type", "data_type", "shape", "chunk_grid", "chunk_key_encoding")
    facts = {name: document[name] for name in names}
    return {**facts, "codecs": codecs, "storage_transformers": document.get("storage_transformers") or []}


def read_group_chunk(
    info: GroupInfo, index: Sequence[int], read: Callable[..., Array] = read_chunk
) -> tuple[Array, dict[str, NDArray[Any]]]:
    """Read a chunk of every array and check it.

    That of the residues is read by `read`, which is called with their store and `index`.

    Raises
    ------
    CorruptChunkError
        If a chunk is missing, truncated, or does not match its checksum.
    StoreError
        If one cannot be read.
    """
    with belonging(info.location, info.opened):
        return _read_parts(info.location, info.residues, info.parts, index, read)


def fingerprint_group(info: GroupInfo) -> str:
    """Hash of a group's metadata and of the state of each chunk, as `rnsdask.store.fingerprint`."""
    keys = [f"{name}/{chunk_key(index)}" for name, _ in info.parts for index in info.residues.indices()]
    metadata = [[name, document.decode()] for name, document in info.parts]
    states = repr(versions_of(info.location, keys))
    return json_hash([info.opened.digest, fingerprint(info.residues), metadata, states])


def _read_parts(
    location: Location,
    info: StoreInfo,
    parts: Iterable[tuple[str, bytes]],
    index: Sequence[int],
    read: Callable[..., Array] = read_chunk,
) -> tuple[Array, dict[str, NDArray[Any]]]:
    """Read a chunk of the residues, and of each part, given with its metadata document."""
    residues, found = read(info, index), {}
    selection, key = chunk_slices(index, info.shape, info.chunks), chunk_key(index)
    for name, metadata in parts:
        label = _chunk_name(location, name, index)
        found[name] = decode_chunk(location.child(name), metadata, key, label, selection)
    return residues, found


def verify_group(
    info: GroupInfo,
    problems_of: Callable[[NDArray[np.uint32], dict[str, NDArray[Any]]], Iterable[str]],
    *,
    map_chunks: Callable[..., Iterable[list[str]]] = map,
) -> Iterator[str]:
    """Read every chunk of a group, and describe whatever is wrong with it, as `rnsdask.store.verify` does.

    Parameters
    ----------
    problems_of
        Tells what is wrong between the residues of a chunk and its other parts.
    """
    indices = list(info.residues.indices())
    expected = {METADATA_KEY, f"{RESIDUES}/{METADATA_KEY}"}
    expected.update(f"{RESIDUES}/{info.residues.chunk_key(index)}" for index in indices)
    for name, _ in info.parts:
        expected |= {f"{name}/{METADATA_KEY}", *(f"{name}/{chunk_key(index)}" for index in indices)}
    for key in sorted(info.location.versions().keys() - expected):
        if not key.startswith(f"{STAGED}/"):
            yield f"{info.path}: file {key} does not belong to the group"
    found = False
    problems_of_chunks = map_chunks(partial(_group_chunk_problems, info, problems_of), indices)
    for _, problems in zip(indices, problems_of_chunks, strict=True):
        found |= bool(problems)
        yield from problems
    group = info.residues.group
    names = [name for name, _ in info.parts]
    if not found and group not in (None, hash_of_chunks(info.location, info.residues, names)):
        yield f"{info.path}: its chunks are whole, but not those that it was completed with"


def _group_chunk_problems(
    info: GroupInfo, problems_of: Callable[..., Iterable[str]], index: tuple[int, ...]
) -> list[str]:
    try:
        residues, parts = read_group_chunk(info, index)
    except ChangedStoreError:
        raise
    except StoreError as error:
        return [str(error)]
    name = f"{info.path}: chunk {chunk_key(index)}"
    return [f"{name}: {problem}" for problem in problems_of(residues, parts)]


def _is_in_the_way(location: Location, kind: str, names: set[str], overwrite: bool) -> bool:
    """Whether a whole group of this kind is at a place, and to be replaced; StoreError for anything else."""
    path, found = location.path, location.kind()
    present = location.names() if found == "folder" else {""}
    if found == "nothing" or all(map(is_left_behind, present)):
        return False
    attribute, _ = _group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it exists and is not a group of kind {kind!r} that rnsdask wrote")
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with overwrite=True")
    others = {name for name in present - names - {METADATA_KEY} if not is_left_behind(name)}
    if others:
        raise StoreError(f"{path}: it is not replaced, because it also holds {', '.join(sorted(others))}")
    return state(location) == "whole"
