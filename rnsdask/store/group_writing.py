"""Groups that are written: begun, resumed, and completed by the hash of all their chunks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.errors import ChangedStoreError, StoreError
from rnsdask.core.layout import Chunks
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS
from rnsdask.store.attributes import ATTRIBUTE, check_job_identity, read_job_identity
from rnsdask.store.documents import new_group, with_attributes
from rnsdask.store.group import (
    RESIDUES,
    Parts,
    attribute_digest,
    attribute_of,
    group_attribute,
    hash_of_chunks,
    part_chunk_name,
    part_document,
)
from rnsdask.store.group_reading import read_parts
from rnsdask.store.job import write_job
from rnsdask.store.location import JOB_KEY, METADATA_KEY, Location, chunk_key
from rnsdask.store.metadata import StoreInfo, load
from rnsdask.store.ownership import Owner, is_left_behind, replace_metadata, write_first_metadata
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.replacing import Replacement, attributes_in, clear, document_of, is_whole, remove, state
from rnsdask.store.writing import StoreWriter, create, write_values


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
    replacement, found = None, _what_is_there(location, kind, names, overwrite)
    is_new = found == "nothing"
    if found == "whole":
        replacement = Replacement(location)
        location = replacement.staged
        left = location.names() if location.kind() == "folder" else set()
        is_new = all(map(is_left_behind, left))
        # Without metadata it is what is left of one that was replaced.
        if not left <= names and _what_is_there(location, kind, names, overwrite=True) == "whole":
            raise StoreError(
                f"{location.path}: it exists; what is to replace {replacement.location.path} is written there"
            )
    begun = new_group({ATTRIBUTE: {**attribute_of(kind, complete=False), "recipe": job_identity}})
    if is_new:
        write_first_metadata(location, begun, is_new=True)
    else:
        _begin_in_place(location, begun, may_be_whole=replacement is not None)
    clear(location, keep=(METADATA_KEY,), parts=names)
    writer = create(location.child(RESIDUES), system, shape, chunks=chunks, group=kind, with_room=with_room)
    info = writer.info
    documents = {name: _create_part(location.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(location, kind, writer, documents, replacement)


def _begin_in_place(location: Location, begun: bytes, may_be_whole: bool) -> None:
    """Write the first metadata of a group where there is one that was found incomplete."""
    residues = location.child(RESIDUES)
    before = None
    with suppress(FileNotFoundError):
        before = residues.read_metadata()
    # First what says whose it is: from then on its writer adds nothing.
    residues.remove(METADATA_KEY)
    try:
        replace_metadata(location, begun, lambda found: may_be_whole or not is_whole(found))
    except StoreError:
        if before is not None:
            residues.write(METADATA_KEY, before, f"{residues.path}: it")
        raise


def _what_is_there(location: Location, kind: str, names: set[str], overwrite: bool) -> str:
    """``"whole"`` or ``"incomplete"``: a group that is to be replaced; ``"nothing"``; or StoreError."""
    path, found = location.path, location.kind()
    present = location.names() if found == "folder" else {""}
    if found == "nothing" or all(map(is_left_behind, present)):
        return "nothing"
    attribute, _ = group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{path}: it exists and is not a group of kind {kind!r} that rnsdask wrote")
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with overwrite=True")
    others = {name for name in present - names - {METADATA_KEY, JOB_KEY} if not is_left_behind(name)}
    if others:
        raise StoreError(f"{path}: it is not replaced, because it also holds {', '.join(sorted(others))}")
    return "whole" if state(location) == "whole" else "incomplete"


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
    attribute, _ = group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{location.path}: it cannot be resumed: it is no group of kind {kind!r}")
    if attribute.get("complete") is not False:
        raise StoreError(
            f"{location.path}: the group is complete: there is nothing to resume; "
            "replace it with overwrite=True"
        )
    info, _ = load(location.child(RESIDUES))
    check(info)
    check_job_identity(location, job_identity)
    writer = StoreWriter(info, Owner(info.location))
    writer.take_over(None, group=kind)
    # Anew, for the job may have ended before it wrote them.
    documents = {name: _create_part(location.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(location, kind, writer, documents, replacement)


def _create_part(location: Location, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """Create one of the other arrays; return its metadata document."""
    metadata = part_document(dtype, residues)
    location.write(METADATA_KEY, metadata, f"{location.path}: it")
    return metadata


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

    def remove(self) -> None:
        """Remove all arrays of the group."""
        remove(self._location, parts={RESIDUES, *self._parts})

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
        owner, shape = self._residues.owner, self._residues.info.shape
        for name, metadata in self._parts.items():
            label = part_chunk_name(self._location, name, index)
            place = self._location.child(name)
            write_values(owner, place, metadata, shape, index, parts[name], label)

    def read_chunk(self, index: Sequence[int]) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
        """Read a chunk of every array that is written, and check it, as :func:`read_group_chunk`."""
        return read_parts(self._location, self._residues.info, self._parts.items(), index)

    def missing_chunks(self) -> list[tuple[int, ...]]:
        """List the indices of the chunks of which an array is not written yet, in C order."""
        missing = set(self._residues.missing_chunks())
        for name in self._parts:
            found = self._location.child(name).found(map(chunk_key, self.indices()))
            missing.update(index for index in self.indices() if chunk_key(index) not in found)
        return sorted(missing)

    def finish(self) -> None:
        """Declare the group complete; if it is to replace another one, it does so now.

        Raises
        ------
        StoreError
            If a chunk is not written, or another writer has begun to write the group.
        """
        location, info = self._location, self._residues.info
        path = location.path
        lacking = next(self._lacking(), None)
        self.owner.check()  # last: who takes the group over may have removed them
        if lacking is not None:
            raise StoreError(f"{path}: it cannot be completed: {lacking} is not written")
        with self.owner.watching():
            group = hash_of_chunks(location, info, self._parts)
        parts = {}
        for name in self._parts:
            part = location.child(name)
            parts[name] = with_attributes(part, {ATTRIBUTE: {"group": group}})
            self.owner.put_chunk(part, METADATA_KEY, parts[name], f"{part.path}: it")
        attribute = {**attribute_of(self._kind, complete=True), "group": group}
        attribute["digest"] = attribute_digest(attribute)
        job, metadata = read_job_identity(location), with_attributes(location, {ATTRIBUTE: attribute})
        write_job(self.owner, location, job, metadata, group)
        self._residues.finish(group=group)

        def write(metadata: bytes) -> None:
            location.write(METADATA_KEY, metadata, f"{path}: it")

        if self._replacement is None:
            if not self._is_own(group, parts, location):  # its arrays name no writer any more
                raise StoreError(f"{path}: another job has begun to write it")
            write(metadata)
        else:
            self._replacement.put_in_place(metadata, write, partial(self._is_own, group, parts))

    def _lacking(self) -> Iterator[str]:
        """Names of the chunks of the arrays beside the residues that are not written."""
        indices = self._residues.info.indices
        for name in self._parts:
            found = self._location.child(name).found(map(chunk_key, indices()))
            yield from (f"{name}/{key}" for key in map(chunk_key, indices()) if key not in found)

    def _is_own(self, group: str, parts: Mapping[str, bytes], place: Location) -> bool:
        """Whether all arrays at a place are those of this group, and not of who has begun it anew."""
        residues = self._residues.info
        try:
            residues.opened.check(place.child(RESIDUES))
            are_own = all(place.child(name).read_metadata() == own for name, own in parts.items())
        except (FileNotFoundError, ChangedStoreError):
            return False
        return are_own and residues.group == group
