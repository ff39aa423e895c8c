"""The stores that a Dask graph reads, so that none of them is overwritten by what is computed from it.

They are found by what its tasks hold, not by the names of its layers: whatever Dask has made of the graph, a
task that reads a store has its description among the options of its function.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rnsdask.lazy.map import Call
from rnsdask.store import Location, StoreInfo


def reads(graph: Mapping[Any, Any], target: Location) -> bool:
    """Whether a Dask graph reads the store at a place, or one in it, or one that it is in."""
    places = {location.path: location for location in stores_read(graph)}
    return any(location.overlaps(target) for location in places.values())


def stores_read(graph: Mapping[Any, Any]) -> Iterator[Location]:
    """The places of the stores whose descriptions the tasks of a graph hold."""
    for layer in getattr(graph, "layers", {None: graph}).values():
        # A blockwise layer has one task for all chunks.
        yield from _held(getattr(layer, "task", None) or list(layer.values()))


def _held(value: Any) -> Iterator[Location]:
    """The places of stores in a task, or in the tasks that Dask has fused into it."""
    if isinstance(value, StoreInfo):
        yield value.location
    elif isinstance(value, Call):
        yield from _held(value.options)
    elif isinstance(value, partial):
        yield from _held([value.func, *value.args, value.keywords])
    elif isinstance(value, dict):
        yield from _held(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _held(item)
    elif all(hasattr(value, name) for name in ("func", "args", "kwargs")):  # a task
        yield from _held([value.func, value.args, value.kwargs])
