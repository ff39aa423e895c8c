"""Arrays whose chunks are computed again instead of being kept, for algorithms of several passes."""

from collections.abc import Hashable
from typing import Any

import dask.array as da
from dask.base import clone_key, tokenize
from dask.blockwise import Blockwise
from dask.core import istask
from dask.delayed import Delayed
from dask.graph_manipulation import clone
from dask.highlevelgraph import HighLevelGraph, Layer, MaterializedLayer

from rnsdask.lazy.planning import PLANS_QUERIES


def recompute(words: da.Array, time: int = 0) -> da.Array:
    """Clone an array by :func:`dask.graph_manipulation.clone`, so that its tasks have keys of their own.

    Each `time` gives different keys. Chunks in memory, including a cluster's, are shared. If Dask's arrays
    are expressions, which it cannot clone, return the array itself.
    """
    if PLANS_QUERIES:
        return words
    graph: Any = words.__dask_graph__()
    layers = {
        name: layer if isinstance(layer, Blockwise) else _Tasks(layer) for name, layer in graph.layers.items()
    }
    whole = HighLevelGraph(layers, graph.dependencies)
    shared = [name for name in layers if not graph.dependencies[name] and _is_data(layers[name])]
    if words.name in shared:
        return words
    rebuild, arguments = words.__dask_postpersist__()
    omit = [Delayed(name, whole, layer=name) for name in shared]
    copy: da.Array = clone(rebuild(whole, *arguments), omit=omit, seed=tokenize(words.name, time))
    return copy


class _Tasks(MaterializedLayer):
    """A layer that clones tasks of every kind: Dask's own does not rename keys within Task objects.

    Slicing and rechunking make such tasks, whose sources would stay in memory (Dask's issue 12455).
    """

    def clone(self, keys: set[Any], seed: Hashable, bind_to: Any = None) -> tuple[Layer, bool]:
        """Rename keys of this layer, and references to them, as :meth:`dask.highlevelgraph.Layer.clone`."""
        nodes = {
            key: value for key, value in self.items() if hasattr(value, "substitute") and _is_task(value)
        }
        others = MaterializedLayer({key: value for key, value in self.items() if key not in nodes})
        layer, bound = others.clone(keys, seed, bind_to)
        copies = dict(layer)
        for key, node in nodes.items():
            names = {name: clone_key(name, seed) for name in keys & {key, *node.dependencies}}
            copies[names.get(key, key)] = node.substitute(names, key=names.get(key, key))
        return MaterializedLayer(copies), bound


def _is_data(layer: Layer) -> bool:
    return not isinstance(layer, Blockwise) and not any(map(_is_task, layer.values()))


def _is_task(value: Any) -> bool:
    """Return whether a graph's value is a task to compute: neither a chunk in memory nor a future."""
    return istask(value) or bool(hasattr(value, "func") or getattr(value, "dependencies", ()))
