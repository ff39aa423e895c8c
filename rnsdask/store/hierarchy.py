"""Zarr hierarchies: stores and groups by their path within a Zarr group."""

from rnsdask.core.errors import StoreError
from rnsdask.store.attributes import ATTRIBUTE
from rnsdask.store.documents import attributes_in, document_of, new_group
from rnsdask.store.location import METADATA_KEY, Location


def component_of(root: Location, component: str | None) -> Location:
    """The place of an array by its path within a Zarr group, such as ``"a/b"``; without one, the root itself.

    Raises
    ------
    TypeError, ValueError
        If it is no such path.
    """
    location = root
    for name in _names(component):
        location = location.child(name)
    return location


def create_parents(root: Location, component: str | None) -> None:
    """Make Zarr groups of the root, and of what lies between it and an array, where nothing is yet.

    Raises
    ------
    StoreError
        If something else than a Zarr group is there.
    """
    location = root
    for name in _names(component):
        _create_group(location)
        location = location.child(name)


def _names(component: str | None) -> list[str]:
    if component is None:
        return []
    if not isinstance(component, str):
        raise TypeError(f"component must be a string such as 'a/b', got {type(component).__name__}")
    names = component.strip("/").split("/")
    if any(name in ("", ".", "..", METADATA_KEY) or name.startswith(("__", ".")) for name in names):
        raise ValueError(f"component must be names with / between them, such as 'a/b', got {component!r:.80}")
    return names


def _create_group(location: Location) -> None:
    document = document_of(location)
    if document is not None:
        own = attributes_in(document).get(ATTRIBUTE)
        if document["node_type"] != "group" or (isinstance(own, dict) and "kind" in own):
            raise StoreError(f"{location.path}: it is an array, which holds no others")
        return
    for name in (METADATA_KEY, ".zarray", ".zgroup"):
        if location.exists(name):
            raise StoreError(f"{location.path}: it is not a Zarr group of format 3: it has a file {name}")
    if not location.create(METADATA_KEY, new_group({}), f"{location.path}: it"):
        _create_group(location)  # another job has made something by now
