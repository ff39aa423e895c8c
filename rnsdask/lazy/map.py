"""Mapping over chunks: a function of chunks of words, called at once, or lazily if an array is of Dask."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.blockwise import broadcast_dimensions
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArrayBlockIdDep
from numpy.typing import DTypeLike

from rnsdask.backend import Array, WorkersArray, backend_name, empty_like_chunks
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Grid
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.lazy.call import Call
from rnsdask.lazy.chunks import as_lazy, rechunk
from rnsdask.lazy.planning import PLANS_QUERIES


def map_chunks(
    function: Callable[..., Any],
    *blocks: Any,
    rows: int | None = None,
    chunks: Sequence[Sequence[int]] | None = None,
    dtype: DTypeLike | None = None,
    located: bool = False,
    matched: bool = False,
    like: Any = None,
    token: str | None = None,
    name: str | None = None,
    **options: Any,
) -> Any:
    """Apply a function to the chunks of arrays, at once if none of them is lazy.

    Parameters
    ----------
    function : callable
        Called with a chunk of each block, and `options`; defined in a module, because Dask sends it to
        workers. It returns an array (rows, *shape), or (1, *shape) without `rows`.
    *blocks : arrays (n, *shape)
        NumPy, CuPy or Dask, with equal numbers of axes, each of the common length or 1. A Dask array without
        axes goes to every chunk. Without blocks the result is a Dask array.
    rows : int, optional
        Rows of the function's result. Without it, there is one value for each number, and the result has the
        shape of the numbers.
    chunks : lengths of chunks along each axis of the numbers, optional
        Chunks of the result, if they differ from those of the blocks.
    dtype
        Type of the function's result; by default the word type of the number system, or of the moduli, among
        the options, or uint32.
    located : bool
        Whether the function is also called with ``place=``, the :class:`.Place` of its chunk.
    matched : bool
        Whether chunks match one by one, whatever their lengths; the result has the first block's.
    like : array, optional
        An array of the library of the function's results, if it is not the blocks'. Objects are always in
        NumPy.
    token, name : str, optional
        Prefix of the names of tasks, or the array's whole name.

    Returns
    -------
    NumPy or CuPy array, or a lazy Dask array if a block is one
    """
    if blocks and not any(isinstance(block, da.Array) for block in blocks):
        if located:
            options["place"] = ALONE
        result = function(*blocks, **options)
        return result if rows is not None else result[0]
    dtype = np.dtype(_type_of_words(options) if dtype is None else dtype)
    lengths, pairs = _align(blocks, matched)
    ends = tuple(map(tuple, lengths[1:] if chunks is None else chunks))
    out = ((1 if rows is None else rows,), *ends)
    grid = Grid.of(lengths[1:] or ends) if located else None
    if like is None:
        like = np.empty(0) if dtype.hasobject else _prototype(blocks)
    meta = empty_like_chunks(like, len(out), dtype)
    # If all arguments lack axes, the index of the chunk alone gives the result its chunks.
    call = Call(function, options, grid, has_index=located or not lengths)
    mapped = _blockwise(call, name or _name_of(call, token, out, dtype, pairs), out, pairs, meta)
    # Dask's own way to drop an axis copies every chunk; an axis of length 1 is free.
    return mapped if rows is not None else mapped[0]


def _blockwise(
    call: Call, name: str, chunks: Sequence[Sequence[int]], pairs: Sequence[tuple[Any, Any]], meta: Any
) -> da.Array:
    """Make a Dask array of the results of a call, with the given chunks, from matching chunks."""
    axes = tuple(range(len(chunks)))
    if call.has_index:
        pairs = [(ArrayBlockIdDep(tuple(map(tuple, chunks))), axes), *pairs]
    made: da.Array = da.blockwise(
        call,
        axes,
        *chain.from_iterable(pairs),
        adjust_chunks=dict(zip(axes, map(tuple, chunks), strict=True)),
        align_arrays=False,
        concatenate=True,
        dtype=meta.dtype,
        meta=meta,
        **name_option(name),
    )
    return made


def name_option(name: str) -> dict[str, str]:
    """Return the option of ``da.blockwise`` that names the result.

    A rewritten expression must have another name, so that for expressions this is only a prefix.
    """
    return {"token": name} if PLANS_QUERIES else {"name": name}


def array_of_tasks(
    name: str,
    tasks: Mapping[Any, Any],
    chunks: Sequence[Sequence[int]],
    meta: Any,
    *sources: da.Array,
    steps: Mapping[Any, Any] = MappingProxyType({}),
) -> da.Array:
    """Make a Dask array of one task for each chunk; tasks may refer to other arrays' chunks by their keys.

    `tasks` are tuples of a function and its arguments, by the index of a chunk, in C order; `sources` are all
    arrays whose chunks they refer to. `name` identifies the array. `steps` are further tasks by their keys,
    for these tasks or for those of arrays that have this one among their sources.
    """
    if not PLANS_QUERIES:
        layer: dict[Any, Any] = {**steps, **{(name, *index): task for index, task in tasks.items()}}
        collections: list[Any] = list(sources)
        graph = HighLevelGraph.from_collections(name, layer, dependencies=collections)
        return da.Array(graph, name, tuple(map(tuple, chunks)), meta=meta)
    # An array with the same chunks provides Dask's way to make an array from a graph.
    like = _blockwise(Call(_no_chunk, {}, has_index=True), name, chunks, [], meta)
    rebuild, arguments = like.__dask_postpersist__()
    own = dict(zip(flatten(like.__dask_keys__()), tasks.values(), strict=True))
    given = {key: task for source in sources for key, task in dict(source.__dask_graph__()).items()}
    rebuilt: da.Array = rebuild({**given, **steps, **own}, *arguments)
    return rebuilt


def _no_chunk() -> None:
    raise AssertionError("a task takes its place")


def keys_of(array: da.Array) -> list[Any]:
    """Return the keys of an array's chunks in C order, as tasks of :func:`array_of_tasks` need them."""
    return list(flatten(array.__dask_keys__()))


def _name_of(
    call: Call, token: str | None, chunks: tuple[Any, ...], dtype: np.dtype[Any], pairs: list[Any]
) -> str:
    """Name the result of a call by its arguments, with a token or the function's name as the prefix."""
    named = [arg.name if isinstance(arg, da.Array) else arg for arg, _ in pairs]
    system, operation = call.options.get("system"), call.options.get("operation")
    if token is None and isinstance(system, NumberSystem) and operation is not None:
        token = f"{type(system).__name__.lower()}-{operation}"
    token = token or f"rns-{call.function.__name__.strip('_')}"
    return f"{token}-{tokenize(call, chunks, dtype, named)}"


def _type_of_words(options: dict[str, Any]) -> np.dtype[Any]:
    system = options.get("system", options.get("fields"))
    if isinstance(system, NumberSystem):
        return system.word_dtype
    return np.dtype(np.uint64) if isinstance(options.get("moduli"), WideModuli) else RESIDUE_DTYPE


def _align(blocks: Sequence[Any], matched: bool) -> tuple[Sequence[Any], list[tuple[Any, Any]]]:
    """Return the lengths of the common chunks along all axes, and the blocks with their axes for Dask."""
    ndim = max((block.ndim for block in blocks), default=0)
    axes = tuple(range(ndim))
    arrays = [_lazy_or_single(block) for block in blocks]
    words = [array for array in arrays if isinstance(array, da.Array) and array.ndim]
    lengths: Sequence[Any] = words[0].chunks if words else ()
    if len(words) > 1 and not matched:
        # Rows are never cut, and may differ between arrays.
        words, found = unify_chunks(words, [(("rows", i), *axes[1:]) for i in range(len(words))])
        lengths = [words[0].chunks[0], *(found[axis] for axis in axes[1:])]
    remaining = iter(words)
    pairs: list[tuple[Any, Any]] = []
    for array in arrays:
        if not isinstance(array, da.Array):
            pairs.append((array, None))
        else:
            pairs.append((next(remaining), axes) if array.ndim else (array, ()))
    return lengths, pairs


def unify_chunks(
    arrays: Sequence[da.Array], labels: Sequence[Sequence[Any]]
) -> tuple[list[da.Array], dict[Any, tuple[int, ...]]]:
    """Give arrays common chunks along axes of the same label; return these chunks by label too."""
    given = {i: array.chunks for i, array in enumerate(arrays)}
    common: dict[Any, tuple[int, ...]] = broadcast_dimensions(
        list(enumerate(labels)), given, consolidate=da.core.common_blockdim
    )
    made = []
    for array, along in zip(arrays, labels, strict=True):
        axes = zip(along, array.shape, array.chunks, strict=True)
        chunks = tuple([own if n == 1 or math.isnan(sum(own)) else common[label] for label, n, own in axes])
        made.append(array if chunks == array.chunks else rechunk(array, chunks))
    return made, common


def _lazy_or_single(block: Any) -> Any:
    """Return a Dask array, or the words of one number, which are passed to the tasks unchanged."""
    is_single = not isinstance(block, da.Array) and block.size == block.shape[0]
    return block if is_single else as_lazy(block)


def _prototype(blocks: Sequence[Any]) -> Array:
    """Return an empty array of the blocks' processor: a single number is a NumPy array on either one."""
    metas = [meta_from_array(block) for block in blocks if block.ndim]
    on_gpus = [meta for meta in metas if backend_name(meta) == "cuda"]
    of_workers = [meta for meta in metas if isinstance(meta, WorkersArray)]
    return (*on_gpus, *of_workers, *metas, np.empty(0))[0]


def reduce_chunks(
    function: Callable[..., Any], words: da.Array, axes: Sequence[int] | None = None, /, **options: Any
) -> da.Array:
    """Reduce each chunk of words to one item along some or all axes of the numbers, by :func:`map_chunks`.

    By default the function returns boxes: object arrays (1, ..., 1).
    """
    chunks = [(1,) * len(c) if axes is None or axis in axes else c for axis, c in enumerate(words.chunks[1:])]
    mapped: da.Array = map_chunks(
        function, words, **{"rows": 1, "dtype": object, "chunks": chunks, **options}
    )
    return mapped


def map_values(
    function: Callable[..., Any],
    values: da.Array,
    *,
    dtype: DTypeLike,
    located: bool = False,
    like: Any = None,
    chunks: Sequence[Sequence[int]] | None = None,
    **options: Any,
) -> da.Array:
    """Apply a function to each chunk of a Dask array of plain values, such as a lazy integer.

    Otherwise as :func:`map_chunks`, but without `like` results are of NumPy.
    """
    call = Call(function, options, Grid.of(values.chunks) if located else None, has_index=located)
    pairs: list[tuple[Any, Any]] = [(values, tuple(range(values.ndim)))]
    meta = empty_like_chunks(np.empty(0) if like is None else like, values.ndim, dtype)
    lengths: tuple[Any, ...] = values.chunks if chunks is None else tuple(chunks)
    return _blockwise(call, _name_of(call, None, lengths, meta.dtype, pairs), lengths, pairs, meta)
