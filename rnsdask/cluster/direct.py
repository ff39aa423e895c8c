"""A few tasks over what workers hold already, which they are asked for directly.

Dask takes eight messages for a task and its result, 6 to 8 ms, and more where a client's calls follow one
another. To ask who holds the chunks, and then these workers, is four or five messages.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
from dask import local
from dask._task_spec import DataNode, convert_legacy_graph
from dask.core import flatten
from dask.highlevelgraph import MaterializedLayer

from rnsdask.cluster.resident import on_gpus
from rnsdask.cluster.scheduler import ask, within_limit

_MOST_TASKS = 64

_REDUCTIONS = ("rns-reduce_all-", "rns-reduce_group-", "rns-reduce_block-")
"""How the names of tasks begin that reduce chunks to a few numbers (:mod:`rnsdask.lazy.tree`)."""

_Tasks = Sequence[tuple[Any, Any, Mapping[Any, Any]]]
"""Of each task its key, itself, and the names by which workers know what it takes."""


def computed_where_held(array: da.Array, client: Any) -> Any:
    """What an array of no axes computes to, by workers whose GPUs hold all chunks that it is reduced from.

    None if that cannot be: if there is anything else to do than to reduce them, or anything fails, also a
    worker to answer in time. Then Dask is to compute it, and to say what is wrong.
    """
    from distributed.worker import thread_state  # type: ignore[attr-defined]

    held, tasks = _taken_apart(array)
    futures = list(held.values())
    if not (futures and on_gpus(futures) and _reduces(tasks, held)):
        return None
    # Of a task the worker has taken a thread, and to wait for another could be for ever.
    if any(future.client is not client for future in futures) or getattr(thread_state, "key", False):
        return None
    found: dict[Any, Any] = {}
    try:
        holders = ask(client, "who_has", keys=[future.key for future in futures])
        chosen = _assigned(tasks, held, holders)
        if chosen is None:
            return None
        answers = within_limit(client, client.run, _compute_here, chosen, workers=list(chosen))
    except Exception:  # of any type: workers' own are sent along
        return None
    for answer in answers.values():
        if answer is None:
            return None
        found.update((done, DataNode(done, result)) for done, result in answer.items())
    (key,) = flatten(array.__dask_keys__())
    return local.get_sync({**tasks, **found}, key)


def _reduces(tasks: Mapping[Any, Any], held: Mapping[Any, Any]) -> bool:
    """Whether tasks are reductions of what is held, and others that take the results of tasks alone."""
    for key, task in tasks.items():
        taken = task.dependencies
        if taken & held.keys():
            if not (taken <= held.keys() and key[0].startswith(_REDUCTIONS)):
                return False
        elif not (taken or isinstance(task, DataNode)):
            return False
    return True


def _taken_apart(array: da.Array) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The futures in an array's graph by their keys, and its tasks; none of a graph with much or none."""
    from distributed import Future

    layers = array.dask.layers.values()
    if any(len(layer) > _MOST_TASKS for layer in layers):
        return {}, {}
    listed = [layer for layer in layers if isinstance(layer, MaterializedLayer)]
    held = {key: value for layer in listed for key, value in layer.items() if isinstance(value, Future)}
    if not held:
        return {}, {}
    tasks = {key: task for layer in layers for key, task in layer.items() if key not in held}
    return held, convert_legacy_graph(tasks, all_keys={*tasks, *held})


def _assigned(
    tasks: Mapping[Any, Any], held: Mapping[Any, Any], holders: Mapping[Any, Sequence[str]]
) -> dict[str, list[Any]] | None:
    """By worker, the tasks whose chunks it holds; None if no worker has all that one takes."""
    chosen: dict[str, list[Any]] = {}
    for key, task in tasks.items():
        if not task.dependencies & held.keys():
            continue
        names = {name: held[name].key for name in task.dependencies}
        workers = set.intersection(*[set(holders.get(name, ())) for name in names.values()])
        if not workers:
            return None
        worker = min(workers, key=lambda address: (len(chosen.get(address, ())), address))
        chosen.setdefault(worker, []).append((key, task, names))
    return chosen


async def _compute_here(chosen: Mapping[str, _Tasks], dask_worker: Any) -> dict[Any, Any] | None:
    """On a worker: the results of its tasks by their keys; None if it does not hold what they take."""
    own = chosen[dask_worker.address]
    data = dask_worker.data
    if any(name not in data for _, _, names in own for name in names.values()):
        return None
    taken = [{key: data[name] for key, name in names.items()} for _, _, names in own]

    def compute() -> dict[Any, Any] | None:
        try:
            return {key: task(values) for (key, task, _), values in zip(own, taken, strict=True)}
        except Exception:  # of any type; Dask meets it again
            return None

    # As a task of Dask's: the worker answers meanwhile.
    return await asyncio.get_running_loop().run_in_executor(dask_worker.executors["default"], compute)
