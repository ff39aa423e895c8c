"""Opening stores to read them: the arrays of this version, and the groups of older ones."""

from collections.abc import Callable
from typing import TypeAlias

from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.number_system import RESIDUES, NumberSystem
from rnsdask.core.ways import with_ways
from rnsdask.store.attributes import incomplete_error, read_job
from rnsdask.store.location import Location
from rnsdask.store.metadata import StoreInfo, load
from rnsdask.store.paths import StorePath, locate

Kind: TypeAlias = Callable[[NumberSystem], bool]
"""Predicate: whether a job accepts numbers of a system."""


def all_systems(_: NumberSystem) -> bool:
    """Accept the numbers of all stores."""
    return True


def of_residues(system: NumberSystem) -> bool:
    """Accept only integers as residues."""
    return system.stored_as == RESIDUES


def open_info(path: StorePath, kind: Kind = of_residues) -> StoreInfo:
    """Read and check the metadata of a complete store of numbers of some kind.

    IncompleteStoreError if the store is still being written, or was interrupted; StoreError if it is missing,
    or breaks a rule of the format: the message names the rule and the value.
    """
    info, complete = load_any(locate(path))
    if not complete:
        raise incomplete_error(info.path, "store", {"recipe": read_job(info.location)})
    system = info.system
    if not kind(system):
        what = f"{info.path}: it holds {system.number_is}s of {system!r}, which this does not take"
        raise StoreError(with_ways(what, system.way_to_residues))
    return info


def load_any(location: Location) -> tuple[StoreInfo, bool]:
    """Read and check the metadata of a store or an old group; also return whether it is complete."""
    try:
        return load(location)
    except StoreError as error:
        from rnsdask.store.old_groups import is_group, load_group  # late: few stores are such groups

        # Checked only here, because a store needs one read of metadata, and each read may be a request.
        if isinstance(error, StoreAccessError) or not is_group(location):
            raise
    return load_group(location)
