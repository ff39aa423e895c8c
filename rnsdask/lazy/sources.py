"""The stores that a Dask graph reads, so that none of them is overwritten by what is computed from it.

They are found by what its tasks hold, not by the names of its layers: whatever Dask has made of the graph, a
task that reads a store has its description.
"""

import gc
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from rnsdask.core.moduli import ModuliSet
from rnsdask.store import Location, StoreInfo

# These hold no tasks.
_LEAVES = (type, ModuleType, BuiltinFunctionType, ModuliSet, str, bytes, int, float)

# Nor do objects of these packages; and some of them lead to all that the process has.
_FOREIGN = {"asyncio", "concurrent", "cupy", "distributed", "numpy", "threading", "tornado", "weakref"}


def reads(graph: Any, target: Location) -> bool:
    """Whether a Dask graph reads the store at a place, or one in it, or one that it is in."""
    places = {location.path: location for location in stores_read(graph)}
    return any(location.overlaps(target) for location in places.values())


def stores_read(graph: Any) -> Iterator[Location]:
    """The places of the stores whose descriptions the tasks of a graph hold."""
    pending: list[Any] = [graph]
    seen: dict[int, Any] = {}  # with the objects: while they live, no other one has their number
    while pending:
        found = pending.pop()
        if isinstance(found, _LEAVES) or id(found) in seen:
            continue
        seen[id(found)] = found
        if isinstance(found, StoreInfo):
            yield found.location
        elif isinstance(found, FunctionType):  # its module's names lead away from the graph
            pending += [found.__closure__, found.__defaults__, found.__kwdefaults__]
        elif type(found).__module__.partition(".")[0] not in _FOREIGN:
            pending += gc.get_referents(found)
