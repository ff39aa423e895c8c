"""How chunks are mapped: a function of chunks of words, called at once, or lazily if an array is Dask's.

A function learns where its chunk lies by Dask's index of the chunk and a brief table of all chunks, for
Dask's own ``block_info`` makes tasks large, and takes longer to build than the rest of a task.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArrayBlockIdDep
from numpy.typing import DTypeLike

from rnsdask.backend import Array, backend_name, first_alone, uses_gpu
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Grid, Place
from rnsdask.lazy.in_memory import as_lazy
from rnsdask.lazy.layer import blockwise_graph

# Python refuses to write longer integers in decimal, as Dask does for its tokens.
_SHORT_BITS = 64


@dataclass(frozen=True, eq=False)
class _Call:
    """A function with its options, which may hold integers of any size, and the chunks' grid if it asks."""

    function: Callable[..., Any]
    options: dict[str, Any]
    grid: Grid | None

    def __call__(self, *blocks: Any) -> Any:
        options = self.options
        if self.grid is not None:
            index, blocks = blocks[0], blocks[1:]
            rows = len(index) - len(self.grid.lengths)  # the axis of words, if there is one, has no place
            options = {**options, "place": self.grid.place(index[rows:])}
        on_gpu = blocks and uses_gpu(options.get("backend", "cpu"), *blocks)
        kind = type(options.get("system")).__name__, options.get("operation")
        with first_alone(self.function, *kind) if on_gpu else nullcontext():
            return self.function(*blocks, **options)

    def __dask_tokenize__(self) -> Any:
        return tokenize(self.function, nameable(self.options), self.grid)


def nameable(value: Any) -> Any:
    """Return the same options with long integers as text, which Dask can write into a token."""
    if type(value) is int and value.bit_length() > _SHORT_BITS:
        return "int", hex(value)
    if isinstance(value, dict):
        return {key: nameable(item) for key, item in value.items()}
    return type(value)(map(nameable, value)) if type(value) in (list, tuple) else value


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
        Called with a chunk of each block, and `options`; a function of a module, for Dask sends it to
        workers. It returns an array (rows, *shape), or (1, *shape) without `rows`.
    *blocks : arrays (n, *shape)
        NumPy, CuPy or Dask, with as many axes, each of the common length or 1. A Dask array of no axes goes
        to every chunk. Without any, the result is a Dask array.
    rows : int, optional
        Rows of what the function returns. Without it, that is one value for each number, and the result has
        the shape of the numbers.
    chunks : lengths of chunks along each axis of the numbers, optional
        Those of the result, if not those of the blocks.
    dtype
        Type of what it returns; without it that of the words of the number system that is among the options,
        or uint32.
    located : bool
        Whether it is also called with ``place=``, the :class:`.Place` of its chunk of the blocks.
    matched : bool
        Whether chunks go together one by one, whatever their lengths; the result has the first block's.
    like : array, optional
        Of the library whose arrays it returns, if not the blocks'. Objects are always in NumPy.
    token, name : str, optional
        How the names of tasks begin, or the array's whole name.

    Returns
    -------
    NumPy or CuPy array, or a lazy Dask array if a block is one
    """
    if blocks and not any(isinstance(block, da.Array) for block in blocks):
        result = function(*blocks, **({"place": ALONE} if located else {}), **options)
        return result if rows is not None else result[0]
    dtype = np.dtype(_type_of_words(options) if dtype is None else dtype)
    lengths, pairs = _aligned(blocks, matched)
    ends = tuple(map(tuple, lengths[1:] if chunks is None else chunks))
    out = ((1 if rows is None else rows,), *ends)
    call = _Call(function, options, Grid.of(lengths[1:] or ends) if located else None)
    name = name or _name_of(call, token, out, dtype, pairs)
    axes = tuple(range(len(out)))
    if located:
        pairs = [(ArrayBlockIdDep(out), axes), *pairs]
    if lengths or located:
        graph = blockwise_graph(call, name, axes, pairs, concatenate=True)
    else:
        graph = _listed_graph(call, name, out, pairs)
    if like is None:
        like = np.empty(0) if dtype.hasobject else _prototype(blocks)
    meta = np.empty((0,) * len(axes), dtype=dtype, like=like)
    mapped = da.Array(graph, name, out, meta=meta)
    # Dask's own way to drop an axis copies every chunk; an axis of length 1 costs nothing.
    return mapped if rows is not None else mapped[0]


def _listed_graph(
    call: _Call, name: str, chunks: Sequence[Sequence[int]], pairs: Sequence[tuple[Any, Any]]
) -> HighLevelGraph:
    """The graph of a function of arguments without axes, whose result has some: all tasks, in a list.

    Fused with a layer along whose axes its chunk is broadcast, a blockwise layer would leave that one chunk.
    """
    arguments = [(arg.name,) if isinstance(arg, da.Array) else arg for arg, _ in pairs]
    places = product(range(1), *(range(len(lengths)) for lengths in chunks[1:]))
    sources: list[Any] = [arg for arg, _ in pairs if isinstance(arg, da.Array)]
    layer: dict[Any, Any] = {(name, *place): (call, *arguments) for place in places}
    return HighLevelGraph.from_collections(name, layer, dependencies=sources)


def _name_of(
    call: _Call, token: str | None, chunks: tuple[Any, ...], dtype: np.dtype[Any], pairs: list[Any]
) -> str:
    """The name of what a call makes of arguments, which begins with a token or the function's name."""
    named = [arg.name if isinstance(arg, da.Array) else arg for arg, _ in pairs]
    token = token or f"rns-{call.function.__name__.strip('_')}"
    return f"{token}-{tokenize(call, chunks, dtype, named)}"


def _type_of_words(options: dict[str, Any]) -> np.dtype[Any]:
    system = options.get("system")
    return system.word_dtype if isinstance(system, NumberSystem) else RESIDUE_DTYPE


def map_all_chunks(function: Callable[..., Any], words: da.Array, **options: Any) -> da.Array:
    """Apply a function to all chunks of an array at once: a Dask array of no axes, of dtype object.

    The function is given the chunks as Dask gives those along axes that the result lacks: in lists in lists.
    """
    call = _Call(function, options, None)
    name = f"rns-{function.__name__.strip('_')}-{tokenize(call, words.name)}"
    graph = blockwise_graph(call, name, (), [(words, tuple(range(words.ndim)))])
    return da.Array(graph, name, (), meta=np.empty((), dtype=object))


def places_of(words: da.Array, numbers: Sequence[int]) -> tuple[Place, ...]:
    """Where chunks of an array lie, which are numbered in C order."""
    grid, numblocks = Grid.of(words.chunks[1:]), words.numblocks[1:]
    return tuple(grid.place(tuple(map(int, np.unravel_index(number, numblocks)))) for number in numbers)


def map_groups(
    function: Callable[..., Any], words: da.Array, groups: Sequence[Sequence[int]], **options: Any
) -> da.Array:
    """Apply a function to groups of chunks, which are numbered in C order: an array of a block for each.

    The function is called with the chunks of a group, and ``places=``, the :class:`.Place` of each; it gives
    a box, an object array (1,).
    """
    name = (
        f"rns-{function.__name__.strip('_')}-{tokenize(_Call(function, options, None), words.name, groups)}"
    )
    layer: dict[Any, Any] = {}
    for i, group in enumerate(groups):
        places = places_of(words, group)
        call = _Call(function, {**options, "places": places}, None)
        layer[name, i] = (call, *((words.name, 0, *place.index) for place in places))
    sources: list[Any] = [words]
    graph = HighLevelGraph.from_collections(name, layer, dependencies=sources)
    return da.Array(graph, name, ((1,) * len(groups),), meta=np.empty(0, dtype=object))


def _aligned(blocks: Sequence[Any], matched: bool) -> tuple[Sequence[Any], list[tuple[Any, Any]]]:
    """The lengths of the common chunks along all axes, and the blocks with their axes as Dask takes them."""
    ndim = max((block.ndim for block in blocks), default=0)
    axes = tuple(range(ndim))
    arrays = [_lazy_or_single(block) for block in blocks]
    words = [array for array in arrays if isinstance(array, da.Array) and array.ndim]
    lengths: Sequence[Any] = words[0].chunks if words else ()
    if len(words) > 1 and not matched:
        # Rows are never cut, and arrays may have different ones.
        named = [(array, (("rows", i), *axes[1:])) for i, array in enumerate(words)]
        found, words = da.core.unify_chunks(*(part for pair in named for part in pair))
        lengths = [words[0].chunks[0], *(found[axis] for axis in axes[1:])]
    unified = iter(words)
    pairs: list[tuple[Any, Any]] = []
    for array in arrays:
        if not isinstance(array, da.Array):
            pairs.append((array, None))
        else:
            pairs.append((next(unified), axes) if array.ndim else (array, ()))
    return lengths, pairs


def _lazy_or_single(block: Any) -> Any:
    """A Dask array; or words of one number, which go to the tasks as they are."""
    is_single = not isinstance(block, da.Array) and block.size == block.shape[0]
    return block if is_single else as_lazy(block)


def _prototype(blocks: Sequence[Any]) -> Array:
    """An array of the processor that blocks are on: a column of one number is NumPy's on each."""
    metas = [block._meta if isinstance(block, da.Array) else block for block in blocks if block.ndim]
    return next((meta for meta in metas if backend_name(meta) == "cuda"), (*metas, np.empty(0))[0])


def reduce_chunks(
    function: Callable[..., Any], words: da.Array, axes: Sequence[int] | None = None, /, **options: Any
) -> da.Array:
    """Map each chunk of words to one item along axes of the numbers, or all, by :func:`map_chunks`.

    Without other options, the function gives boxes: object arrays (1, ..., 1).
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
    **options: Any,
) -> da.Array:
    """Apply a function to each chunk of a Dask array of plain values, such as a lazy integer.

    Parameters
    ----------
    located : bool
        Whether it is also called with ``place=``, the :class:`.Place` of its chunk.
    like : array, optional
        Of the library whose arrays it returns, if that is not NumPy.
    """
    axes = tuple(range(values.ndim))
    call = _Call(function, options, Grid.of(values.chunks) if located else None)
    pairs: list[tuple[Any, Any]] = [(values, axes)]
    name = _name_of(call, None, values.chunks, np.dtype(dtype), pairs)
    if located:
        pairs.insert(0, (ArrayBlockIdDep(values.chunks), axes))
    graph = blockwise_graph(call, name, axes, pairs)
    meta = np.empty((0,) * values.ndim, dtype=dtype, like=np.empty(0) if like is None else like)
    return da.Array(graph, name, values.chunks, meta=meta)
