"""Pieces of a long computation that a job may compute first, and keep, before what is made of them all.

A function of lazy arrays names its pieces by :func:`kept_blocks` or :func:`kept_calls`. They stay as they
are, unless it runs in the context :func:`keeping`, whose function computes them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from rnsdask.rns.lift import join_parts

Keep = Callable[[list[Delayed], str], list[Any]]
"""Computes pieces: NumPy arrays, in their order. A text says how the computation is cut into them."""

_keep: ContextVar[Keep | None] = ContextVar("keep", default=None)


@contextmanager
def keeping(keep: Keep) -> Iterator[None]:
    """Pass the pieces of functions called in the context to another function first."""
    token = _keep.set(keep)
    try:
        yield
    finally:
        _keep.reset(token)


def kept_calls(calls: list[Delayed], cut: Any) -> list[Any]:
    """Calls, or what they return. `cut` tells them from other calls of the same computation, as text."""
    keep = _keep.get()
    return calls if keep is None else keep(calls, str(cut))


def kept_blocks(array: Any, cut: Any = None) -> Any:
    """An array with every chunk as a piece; the same array if it is not lazy.

    `cut` is what tells the pieces from others beside the chunks.
    """
    keep = _keep.get()
    if keep is None or not isinstance(array, da.Array) or 0 in array.shape:
        return array
    found = keep(list(array.to_delayed().ravel()), str((array.chunks, cut)))
    ends = [np.cumsum((0, *lengths)) for lengths in array.chunks]
    whole = np.empty(array.shape, dtype=array.dtype)
    for index, block in zip(np.ndindex(array.numblocks), found, strict=True):
        whole[tuple(slice(end[i], end[i + 1]) for end, i in zip(ends, index, strict=True))] = block
    return da.from_array(whole, chunks=array.chunks)


def join_blocks(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    """Join parts of integers from different primes, as :func:`.combine_tree` calls it."""
    return join_parts(blocks)
