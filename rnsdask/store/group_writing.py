"""Groups that are written: begun, resumed, and completed by the hash of all their chunks."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.errors import StoreError
from rnsdask.core.layout import Chunks
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS
from rnsdask.store.attributes import ATTRIBUTE, begun_attribute, check_job_identity, read_job_identity
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
from rnsdask.store.location import JOB_KEY, METADATA_KEY, Location, chunk_key
from rnsdask.store.metadata import StoreInfo, load
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.target import Target, is_left_behind, remove, settle, state_at, swap
from rnsdask.store.writing import StoreWriter, create, load_own, write_values


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
    settle(location, overwrite)
    for place in {location.path: location, location.staged.path: location.staged}.values():
        _what_is_there(place, kind, names, overwrite)
    staged = location.staged
    _remove_group(staged, names)
    begun = new_group({ATTRIBUTE: {**attribute_of(kind, complete=False), "recipe": job_identity}})
    staged.write(METADATA_KEY, begun, f"{location.path}: it")
    writer = create(staged.child(RESIDUES), system, shape, chunks=chunks, group=kind, with_room=with_room)
    info = writer.info
    documents = {name: _create_part(staged.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(location, staged, kind, writer, documents)


def _remove_group(location: Location, names: set[str]) -> None:
    for name in (METADATA_KEY, JOB_KEY, *names, *(f"{name}.partial" for name in names), ".partial"):
        location.remove(name)


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
    return state_at(location)


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
    place = locate(path).check_writable()
    settle(place)
    location = place.staged if state_at(place.staged) == "incomplete" else place
    attribute, _ = group_attribute(location)
    if attribute is None or attribute.get("kind") != kind:
        raise StoreError(f"{location.path}: it cannot be resumed: it is no group of kind {kind!r}")
    if attribute.get("complete") is not False:
        raise StoreError(
            f"{location.path}: the group is complete: there is nothing to resume; "
            "replace it with overwrite=True"
        )
    residues = location.child(RESIDUES)
    info, _ = load(residues)
    check(info)
    check_job_identity(location, job_identity)
    target = Target(residues, residues, replaces=True)
    target.take_over(begun_attribute(info.system, target.token, None, kind))
    writer = StoreWriter(load_own(target), target)
    # Anew, for the job may have ended before it wrote them.
    documents = {name: _create_part(location.child(name), dtype, info) for name, dtype in parts.items()}
    return GroupWriter(place, location, kind, writer, documents)


def _create_part(location: Location, dtype: np.dtype[Any], residues: StoreInfo) -> bytes:
    """Create one of the other arrays; return its metadata document."""
    metadata = part_document(dtype, residues)
    location.write(METADATA_KEY, metadata, f"{location.path}: it")
    return metadata


class GroupWriter:
    """Writes the chunks of a group, in any order, from any process; then `finish` is called once."""

    def __init__(
        self,
        place: Location,
        location: Location,
        kind: str,
        residues: StoreWriter,
        parts: Mapping[str, bytes],
    ) -> None:
        self._place, self._location, self._kind = place, location, kind
        self._residues, self._parts = residues, parts

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return "rnsdask.GroupWriter", self._location.path, *self._residues.__dask_tokenize__()

    def remove(self) -> None:
        """Remove all arrays of the group."""
        _remove_group(self._location, {RESIDUES, *self._parts})
        remove(self._location)

    @property
    def target(self) -> Target:
        """The right of this writer to the group."""
        return self._residues.target

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
        target, shape = self._residues.target, self._residues.info.shape
        for name, metadata in self._parts.items():
            label = part_chunk_name(self._location, name, index)
            place = self._location.child(name)
            write_values(target, place, metadata, shape, index, parts[name], label)

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
        self.target.check()
        if lacking is not None:
            raise StoreError(f"{path}: it cannot be completed: {lacking} is not written")
        group = hash_of_chunks(location, info, self._parts)
        for name in self._parts:
            part = location.child(name)
            metadata = with_attributes(part, {ATTRIBUTE: {"group": group}})
            self.target.publish(part, METADATA_KEY, metadata, f"{part.path}: it")
        attribute = {**attribute_of(self._kind, complete=True), "group": group}
        attribute["digest"] = attribute_digest(attribute)
        job, metadata = read_job_identity(location), with_attributes(location, {ATTRIBUTE: attribute})
        if job is not None:
            record = {"job": job, "metadata": hashlib.sha256(metadata).hexdigest(), "content": group}
            location.write(JOB_KEY, json.dumps(record).encode(), f"{path}: it")
        self._residues.finish(group=group)
        location.write(METADATA_KEY, metadata, f"{path}: it")
        if location != self._place:
            swap(self._place, metadata)

    def _lacking(self) -> Iterator[str]:
        """Names of the chunks of the arrays beside the residues that are not written."""
        indices = self._residues.info.indices
        for name in self._parts:
            found = self._location.child(name).found(map(chunk_key, indices()))
            yield from (f"{name}/{key}" for key in map(chunk_key, indices()) if key not in found)
