"""Dask graphs of the operations whose chunks need one another: the k greatest, reduction of an axis, scan."""

from collections.abc import Callable, Sequence
from functools import partial
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
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.core.scalar_int import as_scalars
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.tree import Starts, boxed, check_sizes, chunk_starts, combine_tree, start_of
from rnsdask.rns import axis as axis_reductions
from rnsdask.rns import scan, topk
from rnsdask.rns.reduce import REDUCTIONS, reduce_chunk


def _map_blocks(function: Any, residues: da.Array, chunks: Any, dtype: Any, **options: Any) -> da.Array:
    """Map chunks of residues to chunks of the given lengths along all axes."""
    # Objects live on the host; other chunks stay where those of the residues are.
    like = np.empty(0) if dtype is object else residues._meta
    meta = np.empty_like(like, shape=(0,) * residues.ndim, dtype=dtype)
    mapped: da.Array = da.map_blocks(function, residues, chunks=chunks, dtype=dtype, meta=meta, **options)
    return mapped


# ---- the k greatest ---------------------------------------------------------------------------------------


def select_lazily(
    residues: da.Array, moduli: ModuliSet, k: int, signed: bool, bound: int | None, backend: str
) -> da.Array:
    """The selections of all chunks of a 1-D array combined: a lazy (1, 1) array of a `topk.Selection`."""
    check_backend(backend)
    check_sizes(residues)
    options: dict[str, Any] = {"moduli": moduli, "k": k, "signed": signed, "bound": to_text(bound)}
    options.update(backend=backend, starts=chunk_starts(residues.chunks[1]))
    partials = _map_blocks(_select_block, residues, ((1,), (1,) * residues.numblocks[1]), object, **options)
    return combine_tree(partials, partial(_combine_selections, k=k), (1,), "rns-topk")


def _select_block(
    block: Any,
    *,
    moduli: ModuliSet,
    k: int,
    signed: bool,
    bound: str | None,
    backend: str,
    starts: Starts,
    block_id: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    start = start_of(block_id[1], starts)
    return boxed(topk.select(to_backend(block, backend), moduli, k, signed, from_text(bound), start), 2)


def _combine_selections(blocks: Any, axis: Any, keepdims: bool, k: int) -> Any:  # noqa: ARG001
    return boxed(topk.combine(blocks.flat, k), 2)


def selected(selection: da.Array, field: str, count: int, dtype: Any) -> da.Array:
    """One field of a lazy selection of `count` numbers, as a 1-D array."""
    options: dict[str, Any] = {"chunks": ((count,),), "dtype": dtype, "meta": np.empty(0, dtype=dtype)}
    array: da.Array = da.map_blocks(_selected, selection, field, drop_axis=0, **options)
    return LazyInts.of(array) if field == "values" else array


def _selected(box: np.ndarray[Any, Any], field: str) -> Any:
    selection = box.item()
    return as_scalars(selection.values_array()) if field == "values" else selection.indices_array()


# ---- reduction of axes ------------------------------------------------------------------------------------


def extrema_lazily(
    residues: da.Array,
    moduli: ModuliSet,
    axes: tuple[int, ...],
    minimum: bool,
    signed: bool,
    bound: int | None,
    split_every: int | None,
) -> da.Array:
    """Maximum or minimum along axes of the numbers, which keep length 1, packed in one lazy array.

    Returns
    -------
    uint32 array (n + 2, *reduced)
        The residues, and two words of the place along the axis, the lower one first. If several axes are
        reduced, the place is 0.
    """
    check_sizes(residues)
    options: dict[str, Any] = {
        "moduli": moduli,
        "axes": axes,
        "minimum": minimum,
        "signed": signed,
        "bound": to_text(bound),
    }
    chunks = ((len(moduli) + 2,), *_reduced_chunks(residues.chunks[1:], axes))
    starts = chunk_starts(residues.chunks[1 + axes[0]])
    partials = _map_blocks(_extrema_block, residues, chunks, np.uint32, starts=starts, **options)
    combine = partial(_combine_extrema, **options)
    return combine_tree(partials, combine, tuple(a + 1 for a in axes), "rns-extrema", split_every)


def _reduced_chunks(chunks: Sequence[Any], axes: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple((1,) * len(c) if axis in axes else c for axis, c in enumerate(chunks))


def _extrema_block(
    block: Any,
    *,
    moduli: ModuliSet,
    axes: tuple[int, ...],
    minimum: bool,
    signed: bool,
    bound: str | None,
    starts: Starts,
    block_id: tuple[int, ...],
) -> Any:
    found, places = axis_reductions.extrema(
        to_backend(block, "auto"), moduli, axes, minimum, signed, from_text(bound)
    )
    start = start_of(block_id[1 + axes[0]], starts)
    places = places + start if len(axes) == 1 else np.zeros_like(places)
    words = np.stack([places & 0xFFFFFFFF, places >> 32]).astype(np.uint32)
    return _like(np.concatenate([found, words]), block)


def _like(array: Any, block: Any) -> Any:
    """The array on the host if the block is there."""
    return array.get() if hasattr(array, "get") and isinstance(block, np.ndarray) else array


def _combine_extrema(
    blocks: Any,
    axis: Any,  # noqa: ARG001  (Dask passes both)
    keepdims: bool,  # noqa: ARG001
    moduli: ModuliSet,
    axes: tuple[int, ...],
    minimum: bool,
    signed: bool,
    bound: str | None,
) -> Any:
    if len(blocks) == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    n = len(moduli)
    found, places = axis_reductions.extrema(blocks[:n], moduli, axes, minimum, signed, from_text(bound))
    if len(axes) == 1:
        words = np.take_along_axis(blocks[n:], places[None], axis=1 + axes[0])
    else:
        words = np.zeros_like(blocks, shape=(2, *places.shape))
    return np.concatenate([found, words])


def places_of(packed: da.Array, n: int) -> da.Array:
    """The places (int64, *reduced) that :func:`extrema_lazily` packed beside n rows of residues."""
    chunks = ((1,), *packed.chunks[1:])
    places: da.Array = _map_blocks(_unpack_places, packed[n:], chunks, np.int64)[0]
    return places


def _unpack_places(words: Any) -> Any:
    return words[:1].astype(np.int64) + (words[1:].astype(np.int64) << 32)


def sums_lazily(
    residues: da.Array,
    moduli: ModuliSet,
    axes: tuple[int, ...],
    signed: bool,
    bound: int | None,
    split_every: int | None,
) -> da.Array:
    """Exact sums along axes of the numbers, which keep length 1: a lazy object array (*reduced)."""
    check_sizes(residues)
    options = {"moduli": moduli, "axes": axes, "signed": signed, "bound": to_text(bound)}
    chunks = ((1,), *_reduced_chunks(residues.chunks[1:], axes))
    partials = _map_blocks(_sums_block, residues, chunks, object, **options)
    sums = combine_tree(partials, np.sum, tuple(a + 1 for a in axes), "rns-sums", split_every)
    return LazyInts.of(da.map_blocks(as_scalars, sums, dtype=object, meta=sums._meta)[0])


def _sums_block(
    block: Any, *, moduli: ModuliSet, axes: tuple[int, ...], signed: bool, bound: str | None
) -> Any:
    return axis_reductions.sums(to_backend(block, "auto"), moduli, axes, signed, from_text(bound))[None]


# ---- scan -------------------------------------------------------------------------------------------------

_REDUCTION_OF = {"cumsum": "sum", "cummax": "max", "cummin": "min"}


def scan_lazily(
    residues: da.Array, moduli: ModuliSet, operation: str, signed: bool, bound: int | None, backend: str
) -> da.Array:
    """Running sums, maxima or minima of a 1-D array, with its chunks: a lazy array of residues.

    A pass reduces every chunk, on the processor that `backend` names, and one writes, where the chunks are.
    """
    check_backend(backend)
    check_sizes(residues)
    options = {"moduli": moduli, "operation": operation, "signed": signed, "bound": to_text(bound)}
    ones = ((1,), (1,) * residues.numblocks[1])
    totals = _map_blocks(_total_block, residues, ones, object, backend=backend, **options)
    # In a tree: with one task of all totals, Dask would run reads of overlapping chunks in a poor order.
    joined = combine_tree(totals, _join_totals, (1,), f"rns-{operation}-totals")
    chunks = ((1,), (residues.numblocks[1],))
    prefixes = _map_blocks(_prefixes, joined, chunks, object, operation=operation)
    scanned: da.Array = da.map_blocks(
        _scan_block,
        _made_again(residues),
        prefixes.rechunk((1, 1)),
        chunks=residues.chunks,
        dtype=np.uint32,
        meta=residues._meta,
        starts=chunk_starts(residues.chunks[1]),
        **options,
    )
    return scanned


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


def _total_block(
    block: Any, *, moduli: ModuliSet, operation: str, signed: bool, bound: str | None, backend: str
) -> np.ndarray[Any, Any]:
    """Box of a tuple of a chunk's exact result, None if it is empty."""
    if block.shape[1] == 0:
        return boxed((None,), 2)
    reduction = REDUCTIONS[_REDUCTION_OF[operation]]
    found = reduce_chunk(reduction, to_backend(block, backend), moduli, signed, from_text(bound))
    return boxed((found.value,), 2)


def _join_totals(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (Dask passes both)
    return boxed(tuple(chain.from_iterable(blocks.flat)), 2)


def _prefixes(totals: np.ndarray[Any, Any], operation: str) -> np.ndarray[Any, Any]:
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
    block: Any,
    before: np.ndarray[Any, Any],
    *,
    moduli: ModuliSet,
    operation: str,
    signed: bool,
    bound: str | None,
    starts: Starts,
    block_id: tuple[int, ...],
) -> Any:
    prefix, known = before.item(), from_text(bound)
    if operation == "cumsum":
        start = start_of(block_id[1], starts)
        return scan.running_sums(block, moduli, signed, known, prefix or 0, start)
    return scan.running_extrema(block, moduli, operation == "cummin", signed, known, prefix)
