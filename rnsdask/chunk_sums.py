"""The sum of some chunks of a Dask array, without a Dask object for each: jobs may have 100,000 of them."""

from collections.abc import Iterable
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import List, Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

_FAN_IN = 64


def sum_chunks(counts: da.Array, indices: Iterable[tuple[int, ...]]) -> da.Array:
    """Add up the chunks of one value each at the given indices of the grid; the others are not computed.

    Delayed objects would do the same, but take milliseconds a chunk and keep their tasks from being fused
    with those they need.

    Returns
    -------
    dask.array.Array, shape (), dtype object
        Lazy; computes to an int, 0 if there are no indices.
    """
    level: list[Any] = [(counts.name, *index) for index in indices]
    name = f"rns-sum-chunks-{tokenize(counts.name, level)}"
    layer: dict[Any, Task] = {}
    depth = 0
    while depth == 0 or len(level) > 1:
        groups = [level[i : i + _FAN_IN] for i in range(0, len(level), _FAN_IN)] or [[]]
        keys = [(name,)] if len(groups) == 1 else [(f"{name}-{depth}", i) for i in range(len(groups))]
        for key, group in zip(keys, groups, strict=True):
            layer[key] = Task(key, _sum, List(*map(TaskRef, group)))
        level, depth = keys, depth + 1
    dependencies: Any = [counts]
    graph = HighLevelGraph.from_collections(name, layer, dependencies=dependencies)
    return da.Array(graph, name, chunks=(), meta=np.empty((), dtype=object))


def _sum(values: list[Any]) -> int:
    return sum(int(np.asarray(value).item()) for value in values)
