"""The Dask collection of an array of numbers: its chunks are arrays of numbers in memory, not words.

Dask's functions that read a collection's keys, such as ``da.histogram``, thus receive numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from rnsdask.backend import Array, empty_like_chunks
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Grid, Place
from rnsdask.lazy.map import array_of_tasks, keys_of, name_option

Make = Callable[..., Any]
"""Constructor of a number system's array class, called with words and the system."""


def numbers_of(words: da.Array, make: Make, system: NumberSystem) -> da.Array:
    """Convert an array's words to a Dask array whose chunks are arrays of numbers."""
    axes = tuple(range(words.ndim))
    name = f"rns-numbers-{tokenize(words.name, system)}"
    call = partial(_number_chunk, make=make, system=system)
    meta = np.empty((0,) * (words.ndim - 1), dtype=object)
    numbers: da.Array = da.blockwise(
        call, axes[1:], words, axes, dtype=object, meta=meta, **name_option(name)
    )
    return numbers


def _number_chunk(rows: list[Array], *, make: Make, system: NumberSystem) -> Any:
    """Make an array of numbers from the one chunk along the axis of words."""
    (words,) = rows
    return make(words, system)


def words_of(
    numbers: da.Array, system: NumberSystem, like: Array, words_in: Callable[..., Array]
) -> da.Array:
    """Return the words of a Dask array whose chunks are arrays of numbers, as from :func:`numbers_of`.

    `like` is an array of the library that holds the words. `words_in` is called with a chunk and ``place=``,
    its :class:`.Place`, and returns the chunk's words.
    """
    grid = Grid.of(numbers.chunks)
    tasks = {
        (0, *index): (partial(words_in, place=grid.place(index)), key)
        for index, key in zip(np.ndindex(numbers.numblocks), keys_of(numbers), strict=True)
    }
    name = f"rns-words-{tokenize(numbers.name, words_in)}"
    meta = empty_like_chunks(like, numbers.ndim + 1, system.word_dtype)
    return array_of_tasks(name, tasks, ((system.rows,), *numbers.chunks), meta, numbers)


def words_in_chunk(chunk: Any, *, place: Place) -> Array:  # noqa: ARG001  (`words_of` passes it)
    """Return the words of a chunk that is an array of numbers."""
    words: Array = chunk.words
    return words


def join_chunks(results: Any, finish_words: Any, make: Make, system: NumberSystem) -> Any:
    """Join the computed chunks, in nested lists as from Dask, to one array of numbers."""
    finish, arguments = finish_words
    return make(finish([_nested_words(results)], *arguments), system)


def join_single(results: Any, *arguments: Any) -> Any:
    """Join the computed chunks of an array that is a single expression."""
    (chunks,) = results
    return join_chunks(chunks, *arguments)


def _nested_words(results: Any) -> Any:
    return list(map(_nested_words, results)) if isinstance(results, list | tuple) else results.words


def rebuild_array(
    graph: Any, rebuild_numbers: Any, make: Make, system: NumberSystem, like: Array, **options: Any
) -> Any:
    """Make an array of numbers from the graph of its chunks, as Dask does after ``persist``."""
    rebuild, arguments = rebuild_numbers
    return make(words_of(rebuild(graph, *arguments, **options), system, like, words_in_chunk), system)
