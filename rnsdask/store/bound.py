"""Writing the bound of a complete store, the only part of its metadata that may change."""

from pathlib import Path
from typing import SupportsIndex

from rnsdask.core.errors import StoreError
from rnsdask.store.attributes import complete_attribute
from rnsdask.store.chunk_files import write_file
from rnsdask.store.consolidated import remove_consolidated
from rnsdask.store.content import content_of
from rnsdask.store.documents import ATTRIBUTE, parse_document, with_attributes
from rnsdask.store.location import JOB_KEY, METADATA_KEY, Location
from rnsdask.store.metadata import StoreInfo, load
from rnsdask.store.target import settled


def check_bound_is_writable(location: Location) -> None:
    """Raise StoreError unless `write_bound` can write the bound of a store at this place."""
    if not location.is_local:
        # No service can replace an object on the condition that no other job has just begun to overwrite the
        # store.
        raise StoreError(f"{location.path}: its bound cannot be written: that is done in local stores only")


def write_bound(info: StoreInfo, bound: SupportsIndex) -> StoreInfo:
    """Replace the bound of a complete local store, at once or not at all; its chunks stay.

    Return the new metadata. Readers must reopen the store: with the old metadata, reading a chunk is a
    ChangedStoreError. A job that is appending to it fails. `info` must have been read before the numbers that
    give the bound, which is not checked.

    ValueError if the bound is not within the range of the moduli set; ChangedStoreError if the store was
    overwritten, or its metadata changed, since it was opened; StoreError if it is remote.
    """
    location = info.location
    check_bound_is_writable(location)
    system = info.system.with_exact_bound(bound)
    content = info.content or content_of(location, map(info.chunk_key, info.indices()))

    def check() -> None:
        info.version.check(location)

    # A complete store is overwritten by renaming its folder. If that happens after the check, as on a disk
    # without locks, the file that is to be renamed is in the old folder, and does not appear in the new one.
    with settled(location):
        check()
        attribute = complete_attribute(parse_document(location.read_metadata()), system, content)
        metadata = with_attributes(location, {ATTRIBUTE: attribute})
        remove_consolidated(location)
        write_file(Path(location.path, METADATA_KEY), metadata, f"{location.path}: it", check)
        location.remove(JOB_KEY)
        return load(location)[0]
