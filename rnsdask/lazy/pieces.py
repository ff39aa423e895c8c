"""Pieces of a long computation that a job may compute first, and keep, before it combines them.

A function of lazy arrays declares its pieces by :func:`kept_blocks` or :func:`kept_calls`. They have no
effect, unless it runs in the context :func:`keeping`, whose function computes the pieces.
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
"""Function that computes pieces as NumPy arrays, in order, given a text that describes the partition."""

_keep: ContextVar[Keep | None] = ContextVar("keep", default=None)


@contextmanager
def keeping(keep: Keep) -> Iterator[None]:
    """Pass the pieces of functions called in the context to a function first."""
    token = _keep.set(keep)
    try:
        yield
    finally:
        _keep.reset(token)


def kept_calls(calls: list[Delayed], cut: Any) -> list[Any]:
    """Return calls, or their results. The text `cut` distinguishes them from others of the computation."""
    keep = _keep.get()
    return calls if keep is None else keep(calls, str(cut))


def kept_blocks(array: Any, cut: Any = None) -> Any:
    """Make every chunk of an array a piece; return the array if it is not lazy.

    `cut` distinguishes the pieces from others with the same chunks.
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
    """Join integers' parts from different primes, as :func:`.combine_tree` calls it."""
    return join_parts(blocks)
