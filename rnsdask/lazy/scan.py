"""Running sums, maxima and minima of an array, on Dask in two passes (:mod:`rnsdask.rns.scan`)."""

from collections.abc import Callable
from itertools import chain
from operator import add
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import DataNode, convert_legacy_graph
from dask.base import tokenize
from dask.blockwise import Blockwise
from dask.graph_manipulation import clone
from dask.highlevelgraph import HighLevelGraph

from rnsdask.backend import check_backend, to_backend
from rnsdask.core.place import Place
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.tree import boxed, check_sizes, combine_tree
from rnsdask.rns import scan as running
from rnsdask.rns.reduce import REDUCTIONS, reduce_chunk
from rnsdask.rns.system import RNS

_REDUCTION_OF = {"cumsum": "sum", "cummax": "max", "cummin": "min"}


def scan(words: Any, system: RNS, operation: str, backend: str) -> Any:
    """Running sums, maxima or minima of a 1-D array: residues (n, N), with the same chunks on Dask.

    There a pass reduces every chunk, on the processor that `backend` names, and one writes, where the chunks
    are.
    """
    if not isinstance(words, da.Array):
        return _scanned(words, None, system, operation)
    check_backend(backend)
    check_sizes(words)
    options: dict[str, Any] = {"system": system, "operation": operation}
    totals = reduce_chunks(_total_block, words, backend=backend, **options)
    # In a tree: with one task of all totals, Dask would run reads of overlapping chunks in a poor order.
    joined = combine_tree(totals, _join_totals, (1,), f"rns-{operation}-totals")
    chunks = ((words.numblocks[1],),)
    prefixes = map_chunks(_prefixes, joined, rows=1, chunks=chunks, dtype=object, operation=operation)
    pairs = (_made_again(words), prefixes.rechunk((1, 1)))
    return map_chunks(_scan_block, *pairs, rows=system.rows, located=True, matched=True, **options)


def _scanned(words: Any, before: int | None, system: RNS, operation: str, start: int = 0) -> Any:
    if operation == "cumsum":
        return running.running_sums(words, system, before or 0, start)
    return running.running_extrema(words, system, operation == "cummin", before)


def _made_again(residues: da.Array) -> da.Array:
    """The same array under other keys, so that a chunk is made twice and not kept from first use to last.

    Dask's ``clone`` (2026.8) does so where every layer is blockwise; tasks of other layers, such as slices,
    it leaves with their old keys. Then all tasks are listed here, and each gets a new key; what is in memory
    already, also on a cluster, keeps its own.
    """
    seed = tokenize(residues.name)
    if all(isinstance(layer, Blockwise) for layer in residues.dask.layers.values()):
        copy: da.Array = clone(residues, seed=seed)
        return copy
    graph = dict(residues.dask)
    nodes = convert_legacy_graph(graph)  # without futures, which are results
    tasks = {key: node for key, node in nodes.items() if not isinstance(node, DataNode)}
    kept = graph.keys() - tasks.keys()
    if any(key[0] == residues.name for key in kept):
        return residues
    keys = {key: _key_again(key, seed) for key in tasks}
    again = {keys[key]: task.substitute(keys, key=keys[key]) for key, task in tasks.items()}
    name = _key_again(residues.name, seed)
    layers, dependencies = residues.dask.layers, residues.dask.dependencies
    holders = {layer for layer in layers if not kept.isdisjoint(layers[layer].get_output_keys())}
    whole = HighLevelGraph({**layers, name: again}, {**dependencies, name: holders})
    return da.Array(whole, name, residues.chunks, meta=residues._meta)


def _key_again(key: Any, seed: str) -> Any:
    """Another key for a task or an array, the same for the same seed."""
    if isinstance(key, tuple):
        return (_key_again(key[0], seed), *key[1:])
    return f"{key}-again-{seed}"


def _total_block(block: Any, *, system: RNS, operation: str, backend: str) -> np.ndarray[Any, Any]:
    """Box of a tuple of a chunk's exact result, None if it is empty."""
    if block.shape[1] == 0:
        return boxed((None,), 2)
    found = reduce_chunk(REDUCTIONS[_REDUCTION_OF[operation]], to_backend(block, backend), system)
    return boxed((found.value,), 2)


def _join_totals(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (Dask passes both)
    return boxed(tuple(chain.from_iterable(blocks.flat)), 2)


def _prefixes(totals: np.ndarray[Any, Any], *, operation: str) -> np.ndarray[Any, Any]:
    """Result of all chunks before each one; None for the first."""
    joins: dict[str, Callable[[int, int], int]] = {"cumsum": add, "cummax": max, "cummin": min}
    join = joins[operation]
    results = totals.item()
    before = np.empty((1, len(results)), dtype=object)
    result = None
    for i, total in enumerate(results):
        before[0, i] = result
        if total is not None:
            result = total if result is None else join(result, total)
    return before


def _scan_block(
    block: Any, before: np.ndarray[Any, Any], *, system: RNS, operation: str, place: Place
) -> Any:
    return _scanned(block, before.item(), system, operation, place.location[0][0])
