"""Computing one lazy array in this process, without what Dask does for graphs that it may send elsewhere.

Dask's own ``compute`` wraps the graph into expressions, adds a task that joins the chunks, and makes a fused
task of each chunk that is in memory already. For a small array that takes longer than the tasks do.
"""

from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
from dask import local, threaded
from dask.base import get_scheduler
from dask.blockwise import Blockwise
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.system import CPU_COUNT
from dask.utils import shorten_traceback

from rnsdask.lazy.fused import optimized
from rnsdask.lazy.layer import ChunkLayer, TreeLayer

Get = Callable[..., Any]

_NO_TASKS = MaterializedLayer({})


def get_of_this_process(words: da.Array, options: dict[str, Any]) -> Get | None:
    """The scheduler's function if Dask computes an array by threads of this process, or in the calling one.

    Parameters
    ----------
    options
        Those of ``compute``. With any but ``scheduler``, the result is None, as for another scheduler.
    """
    if options.keys() - {"scheduler"}:
        return None
    get: Get = get_scheduler(scheduler=options.get("scheduler"), collections=[words])
    return get if get in (threaded.get, local.get_sync) else None


@contextmanager
def own_threads() -> Iterator[ThreadPoolExecutor]:
    """Lend as many threads as Dask takes; an error in the context waits until their tasks have ended.

    Dask raises the first error at once. On its own threads other tasks would still write while their job
    removes what it began.
    """
    pool = ThreadPoolExecutor(dask.config.get("num_workers", None) or CPU_COUNT)
    try:
        yield pool
    except Exception:
        pool.shutdown()
        raise
    finally:
        pool.shutdown(wait=False)


def compute_on_own_threads(words: da.Array) -> None:
    """Compute a lazy array, on threads of its own if Dask computes it on threads and is told no pool."""
    if get_of_this_process(words, {}) is not threaded.get or dask.config.get("pool", None) is not None:
        words.compute()
        return
    with own_threads() as pool:
        words.compute(pool=pool)


def compute_by(get: Get, words: da.Array) -> Any:
    """What ``words.compute()`` returns, by a function that :func:`get_of_this_process` gave."""
    keys, (finish, arguments) = words.__dask_keys__(), words.__dask_postcompute__()
    with shorten_traceback():
        return finish(get(_tasks(words.dask, keys), keys), *arguments)


def _tasks(graph: HighLevelGraph, keys: Any) -> dict[Any, Any]:
    """All tasks of a graph, fused as Dask does, with the chunks that are in memory apart."""
    data = {name: layer for name, layer in graph.layers.items() if _may_be_apart(graph, name)}
    if _is_fused(graph, data.keys()):
        return graph.to_dict()
    layers = {name: _NO_TASKS if name in data else layer for name, layer in graph.layers.items()}
    tasks = optimized(HighLevelGraph(layers, graph.dependencies), keys)
    for layer in data.values():
        tasks.update(layer)
    return tasks


def _may_be_apart(graph: HighLevelGraph, name: str) -> bool:
    """Whether a layer is of chunks in memory, which layers of functions of chunks alone use.

    Other tasks, such as those that join arrays, may name a chunk by its key, which Dask takes for a tuple
    where there is no such chunk.
    """
    layer = graph.layers[name]
    return (
        isinstance(layer, MaterializedLayer)
        and all(hasattr(value, "dtype") for value in layer.values())
        and all(isinstance(graph.layers[user], Blockwise) for user in graph.dependents[name])
    )


def _is_fused(graph: HighLevelGraph, data: Set[str]) -> bool:
    """Whether nothing is worth fusing: functions of chunks in memory and of trees, and trees alone."""
    trees = {name for name, layer in graph.layers.items() if isinstance(layer, TreeLayer)}
    whole = data | trees
    return all(
        isinstance(layer, ChunkLayer) and graph.dependencies[name] <= whole
        for name, layer in graph.layers.items()
        if name not in whole
    )
