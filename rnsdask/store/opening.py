"""Opening stores to read them: the arrays of this version, and the groups of older ones."""

from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import Message, Way, with_ways
from rnsdask.fields.system import FiniteFields
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.positional.system import Positional
from rnsdask.rns.system import RNS
from rnsdask.store.attributes import incomplete_error, read_job_identity
from rnsdask.store.location import Location
from rnsdask.store.metadata import StoreInfo, load
from rnsdask.store.old_groups import is_group, load_group
from rnsdask.store.paths import StorePath, locate

ALL_SYSTEMS: tuple[type[NumberSystem], ...] = (RNS, IntervalRNS, Positional, FiniteFields)
"""The number systems of all stores."""


def open_info(path: StorePath, systems: tuple[type[NumberSystem], ...] = (RNS,)) -> StoreInfo:
    """Read and check what a complete store of one of some number systems says about itself.

    IncompleteStoreError if the store is still being written, or its writing was interrupted; StoreError if
    there is none, or it breaks a rule of the format: the message names the rule and the value.
    """
    info, complete = load_any(locate(path))
    if not complete:
        raise incomplete_error(info.path, "store", {"recipe": read_job_identity(info.location)})
    if not isinstance(info.system, systems):
        what = f"{info.path}: it holds {_elements_of(info.system)}, which this does not take"
        raise StoreError(with_ways(what, _way_out(info.system)))
    return info


def load_any(location: Location) -> tuple[StoreInfo, bool]:
    """Read and check the metadata of a store or of an old group, and tell whether it is complete."""
    try:
        return load(location)
    except StoreError as error:
        # Asked only here: what an array is takes one read of metadata, and each may be a request.
        if isinstance(error, StoreAccessError) or not is_group(location):
            raise
    return load_group(location)


def _elements_of(system: NumberSystem) -> str:
    return f"{'elements' if isinstance(system, FiniteFields) else 'numbers'} of {system!r}"


def _way_out(system: NumberSystem) -> Message:
    if isinstance(system, FiniteFields):
        return Message(Way.INTEGERS_OF_STORE, " makes integers")
    return Message(Way.RESIDUES, " makes residues of them")
