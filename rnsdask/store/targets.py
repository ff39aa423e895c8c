"""Where an array is written: in its place, or beside one that it is to replace."""

from typing import Any

from rnsdask.core.errors import StoreError
from rnsdask.core.messages import listed
from rnsdask.store.attributes import ATTRIBUTE, check_job_identity, read_job_identity
from rnsdask.store.documents import with_attributes
from rnsdask.store.job import write_job
from rnsdask.store.location import CHUNK_FOLDER, JOB_KEY, METADATA_KEY, Location
from rnsdask.store.metadata import load
from rnsdask.store.ownership import Owner, is_left_behind, remove_left_behind
from rnsdask.store.replacing import (
    Replacement,
    as_replaced,
    check_no_part,
    clear,
    document_of,
    is_whole,
    state,
)
from rnsdask.store.space import check_can_write


def begin(
    location: Location, overwrite: bool, attribute: str = ATTRIBUTE
) -> tuple[Owner, Replacement | None]:
    """Find where an array is written: in its place, or beside one that it is to replace; nothing changes yet.

    Raises
    ------
    StoreError
        If something else is there.
    """
    location.check_writable()
    found = _what_is_there(location, overwrite)
    if found != "whole":
        return Owner(location, attribute, is_new=found == "nothing"), None
    replacement = Replacement(location)
    staged = replacement.staged
    names = staged.names() if staged.kind() == "folder" else set()
    if state(staged) == "whole" or names != _own(names):
        raise StoreError(
            f"{staged.path}: it exists; remove it, or move it away: what is to replace {location.path} is "
            "written there"
        )
    return Owner(staged, attribute, is_new=all(map(is_left_behind, names))), replacement


def check_place(
    location: Location, *, overwrite: bool = False, resume: bool = False, job_identity: str | None = None
) -> None:
    """Raise StoreError unless an array can be begun at a place, or resumed; nothing changes.

    For what is written only at the end of a long computation.
    """
    if not resume:
        owner, _ = begin(location, overwrite)
        check_can_write(owner.location)
        return
    begun, _ = place_begun(location.check_writable())
    info, complete = load(begun)
    if complete:
        raise nothing_to_resume(info.path)
    check_job_identity(begun, job_identity)
    check_can_write(begun)


def nothing_to_resume(path: str) -> StoreError:
    """Make the error of a store that is to be resumed and is complete."""
    return StoreError(
        f"{path}: the store is complete: there is nothing to resume; replace it with overwrite=True"
    )


def take_anew(owner: Owner, metadata: bytes, replacement: Replacement | None) -> None:
    """Begin an array by its metadata document, without what is there already."""
    if owner.is_new:
        owner.take(metadata)
        clear(owner.location, keep=(METADATA_KEY, CHUNK_FOLDER))
    else:
        # Until the chunks that are there are gone nobody resumes it, who would keep them as this job's.
        may_replace = None if replacement else lambda found: not is_whole(found)
        owner.take(as_replaced(metadata), may_replace)
        owner.set_chunks_aside()
        clear(owner.location, keep=(METADATA_KEY, CHUNK_FOLDER) if owner.place else (METADATA_KEY,))
        owner.write_metadata(metadata)
    owner.check()


def place_begun(location: Location) -> tuple[Location, Replacement | None]:
    """Find where an array was begun that is to be resumed: in its place, or beside one that it is to replace.

    Raises
    ------
    StoreError
        If it is a part of a group, or lost.
    """
    check_no_part(location)
    begun = Replacement.begun(location)
    if begun is not None:
        return begun.staged, begun
    if state(location) == "replaced":
        raise StoreError(f"{location.path}: what was to replace it is lost; begin again with overwrite=True")
    return location, None


def finish(
    owner: Owner, attributes: dict[str, Any], replacement: Replacement | None, content: str
) -> Location:
    """Write the final attributes of an array, and put it in place of the one that it is to replace.

    `content` is the hash of the checksums of all chunks.

    Returns
    -------
    location : Location
        Where it is then.
    """
    remove_left_behind(owner.location)
    owner.check()
    (attribute,) = attributes
    job = read_job_identity(owner.location, attribute)
    metadata = with_attributes(owner.location, attributes)
    write_job(owner, owner.location, job, metadata, content)
    if replacement is None:
        owner.write_metadata(metadata)
        return owner.location
    replacement.put_in_place(metadata, owner.write_metadata)
    return replacement.location


def _what_is_there(location: Location, overwrite: bool) -> str:
    """``"whole"`` or ``"incomplete"``: a Zarr array that is to be replaced; ``"nothing"``; or StoreError."""
    path, kind = location.path, location.kind()
    if kind == "nothing":
        return kind
    if kind == "file":
        raise StoreError(f"{path}: it exists and is not a Zarr array")
    names = location.names()
    if all(map(is_left_behind, names)):  # metadata whose writing was interrupted, or nothing
        return "nothing"
    if METADATA_KEY not in names or not _is_array(location):
        raise StoreError(f"{path}: it exists and is not a Zarr array, but a folder with {listed(names)}")
    check_no_part(location)
    if not overwrite:
        raise StoreError(f"{path}: it exists; replace it with overwrite=True")
    if others := names - _own(names):
        raise StoreError(f"{path}: it is not replaced, because it also holds {listed(others)}")
    return "whole" if state(location) == "whole" else "incomplete"


def _own(names: set[str]) -> set[str]:
    """Those of the names in a folder that are of an array."""
    return {name for name in names if name in (METADATA_KEY, CHUNK_FOLDER, JOB_KEY) or is_left_behind(name)}


def _is_array(location: Location) -> bool:
    found = document_of(location)
    return found is not None and found["node_type"] == "array"
