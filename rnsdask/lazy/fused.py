"""Tasks that Dask has fused into one, run without the search for their order that Dask makes in each.

For a small chunk that search takes longer than all else, and it holds Python's lock.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
from dask._task_spec import Task, _execute_subgraph
from dask.highlevelgraph import HighLevelGraph


def optimized(graph: HighLevelGraph, keys: Any) -> dict[Any, Any]:
    """All tasks that some keys of arrays need, fused as Dask does."""
    tasks = dict(da.Array.__dask_optimize__(graph, keys))
    return {key: _without_search(task) for key, task in tasks.items()}


def _without_search(task: Any) -> Any:
    if not isinstance(task, Task) or task.func is not _execute_subgraph:
        return task
    inner, *arguments = task.args
    tasks = {key: _without_search(one) for key, one in inner.items()}
    return Task(task.key, _run, tasks, *arguments, _data_producer=task.data_producer)


def _run(tasks: Mapping[Any, Any], wanted: Any, names: Sequence[Any], *values: Any) -> Any:
    """The result of one of some tasks, of which others are named; each is let go once nothing needs it."""
    results = dict(zip(names, values, strict=True))
    uses = Counter(name for task in tasks.values() for name in task.dependencies)
    pending = [wanted]
    while pending:
        key = pending[-1]
        missing = () if key in results else [name for name in tasks[key].dependencies if name not in results]
        if missing:
            pending += missing
            continue
        pending.pop()
        if key in results:
            continue
        results[key] = tasks[key](results)
        for name in tasks[key].dependencies:
            uses[name] -= 1
            if not uses[name]:
                del results[name]
    return results[wanted]
