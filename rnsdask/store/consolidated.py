"""Consolidated metadata of the groups above an array, which go stale when the array changes."""

import json
import warnings
from contextlib import suppress

from rnsdask.core.errors import StoreError
from rnsdask.store.documents import document_of
from rnsdask.store.location import METADATA_KEY, Location

_FIELD = "consolidated_metadata"
"""Field of a group's metadata document where Zarr keeps copies of the documents below the group."""


def remove_consolidated(location: Location) -> None:
    """Remove the consolidated metadata of all groups above an array that is about to change, with a warning.

    Zarr would go on with the stale copy: it would see the old shape of a longer array, and read zeros from a
    rechunked one. Two jobs that change two arrays of a group could lose each other's updates of the copies,
    but not their removal.
    """
    group = location.parent
    while group is not None:
        document = None
        with suppress(StoreError):  # some services deny access to missing or parent places
            document = document_of(group)
        if document is None or document["node_type"] != "group":
            return
        if document.pop(_FIELD, None):
            group.write(METADATA_KEY, json.dumps(document).encode(), f"{group.path}: it")
            warnings.warn(
                f"{group.path}: its consolidated metadata are removed, because {location.path} changes; "
                "zarr.consolidate_metadata makes them again",
                UserWarning,
                stacklevel=2,
            )
        group = group.parent
