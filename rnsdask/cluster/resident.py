"""Chunks that GPUs of a cluster hold in their memory: which of them are on the same worker."""

import sys
from typing import Any

import dask.array as da
from dask.core import flatten

from rnsdask.cluster.scheduler import ask
from rnsdask.core.errors import SchedulerLostError


def chunks_by_worker(words: da.Array) -> list[list[int]] | None:
    """Group the chunks of an array, numbered in C order, by the workers whose GPUs hold them.

    None if that says nothing: if chunks are not computed yet, or not in a GPU's memory, or no two of them are
    on one worker.
    """
    futures = _futures_of(words)
    if len(futures) < 2 or not on_gpus(futures):
        return None
    client = futures[0].client
    if client is None or client.asynchronous:  # of its event loop, which cannot wait
        return None
    keys = [future.key for future in futures]
    try:
        holders = ask(client, "who_has", keys=keys)
    except SchedulerLostError:  # whoever computes the array is told
        return None
    groups: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        if not holders.get(key):
            return None
        worker = min(holders[key], key=lambda address: len(groups.get(address, ())))
        groups.setdefault(worker, []).append(number)
    return list(groups.values()) if len(groups) < len(keys) else None


def _futures_of(words: da.Array) -> list[Any]:
    """The futures that an array's chunks are, as after ``persist``, in C order; empty if they are others."""
    if "distributed" not in sys.modules:
        return []
    from distributed import Future

    layer = getattr(words.dask, "layers", {}).get(words.name, {})
    chunks = [layer.get(key) for key in flatten(words.__dask_keys__())]
    return chunks if all(isinstance(chunk, Future) for chunk in chunks) else []


def on_gpus(futures: list[Any]) -> bool:
    """Whether all of some futures are known to be in the memory of workers' GPUs."""
    return not any(map(_is_elsewhere, futures))


def _is_elsewhere(future: Any) -> bool:
    """Whether a chunk is not, or not known to be, in the memory of a worker's GPU."""
    kind = future.type  # of the result, None until it is there
    return future.status != "finished" or getattr(kind, "__module__", "").partition(".")[0] != "cupy"
