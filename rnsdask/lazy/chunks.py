"""Chunks of arrays in memory, in any form that Dask accepts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.utils import parse_bytes

from rnsdask.backend import WorkersArray, backend_name
from rnsdask.cluster.limits import check_graph
from rnsdask.core import layout
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.layout import Lengths
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import must


def as_lazy(array: Any, chunks: Sequence[Any] | int = -1) -> da.Array:
    """Make a Dask array of a copy of a NumPy or CuPy array, in one chunk by default; keep a Dask array."""
    if isinstance(array, da.Array):
        return array
    lazy: da.Array = da.from_array(array, chunks=chunks, asarray=False)
    return lazy


def rechunk(words: da.Array, chunks: Any) -> da.Array:
    """Rechunk words as Dask does; arrays that GPUs may hold are exchanged by tasks (:func:`by_tasks`)."""
    result: da.Array = words.rechunk(chunks, method="tasks" if may_be_on_gpus(words) else None)
    return result


def may_be_on_gpus(array: Any) -> bool:
    """Whether chunks of a Dask array, or objects in them, may be in GPU memory."""
    if not isinstance(array, da.Array):
        return False
    meta = meta_from_array(array)
    return isinstance(meta, WorkersArray) or backend_name(meta) == "cuda" or bool(meta.dtype.hasobject)


_setting = RLock()
"""Held while Dask's setting is changed, so that no other thread restores another value."""


@contextmanager
def by_tasks(*arrays: Any) -> Iterator[None]:
    """Make Dask rechunk these arrays by tasks, if GPUs may hold chunks.

    P2P, which Dask prefers for many chunks if a client is current, takes only NumPy's arrays.
    """
    if not any(map(may_be_on_gpus, arrays)):
        yield
        return
    with _setting, dask.config.set({"array.rechunk.method": "tasks"}):
        yield


def normalize_chunks(chunks: Any, shape: Sequence[int], rows: int, current: Lengths | None = None) -> Lengths:
    """Return the lengths of all chunks along each axis of the numbers, by the rules of Dask.

    `chunks` are as in `dask.array.core.normalize_chunks` and `rechunk`: one length for all axes or one for
    each, where -1 is the whole axis and None keeps its chunks; the lengths of all chunks along an axis;
    ``"auto"``, or a size in bytes such as ``"64MiB"``; a mapping from some of the axes to these. ``"auto"``
    for all axes follows this package (:func:`.plan_chunks`); for some axes it follows Dask,
    within its setting ``array.chunk-size``; for an array without numbers it is the whole axis. Sizes are in
    bytes of numbers of `rows` words. Without `current` chunks, axes that are not given have one chunk.

    ValueError also if the chunks of an axis of unknown length are to change; JobError if there are more
    chunks than this process has memory for.
    """
    is_known = not any(map(math.isnan, shape))
    automatic = layout.plan_chunks("auto", shape, rows).chunks if is_known else ()  # checks the shape as well
    wanted = _by_axis(chunks, len(shape), current)
    for axis, (item, length) in enumerate(zip(wanted, shape, strict=True)):
        if current is None or item is not current[axis]:
            _check(item, length, axis)
    # Dask refuses lengths beyond machine integers.
    wanted = [-1 if isinstance(item, int) and item > 2**62 else item for item in wanted]
    if 0 in shape:
        wanted = [-1 if isinstance(item, str) else item for item in wanted]
    if all(isinstance(item, str) and item == "auto" for item in wanted):
        wanted = list(automatic)
    counts = map(_least_count, wanted, shape)
    check_graph(math.prod(counts), f"an array of shape {tuple(shape)}")
    number = np.dtype((np.void, rows * layout.RESIDUE_DTYPE.itemsize))
    normalized: Lengths = da.core.normalize_chunks(
        tuple(wanted), tuple(shape), dtype=number, previous_chunks=current
    )
    return normalized


def store_chunks(
    chunks: Any, shape: Sequence[int], rows: int, current: Lengths | None = None
) -> tuple[int, ...]:
    """Return a stored chunk's length along each axis, for chunks in the forms of `normalize_chunks`.

    A given length is kept even if the axis is shorter. Chunks that differ along an axis are a ValueError.
    """
    lengths = normalize_chunks(chunks, shape, rows, current)
    if not layout.are_regular(lengths):
        raise ValueError(
            "the chunks of a store are of one length along each axis, but for a shorter last one; "
            f"got {brief(chunks)}"
        )
    regular = layout.storable_plan(lengths, rows).chunks
    wanted = _by_axis(chunks, len(shape), current)
    return tuple(
        item if isinstance(item, int) and item > 0 else length
        for item, length in zip(wanted, regular, strict=True)
    )


def _by_axis(chunks: Any, ndim: int, current: Lengths | None) -> list[Any]:
    """Return the chunks wanted along each axis, distributed as in Dask's `rechunk`."""
    kept: Sequence[Any] = (-1,) * ndim if current is None else current
    if isinstance(chunks, Mapping):
        given = {axis_index(axis, ndim, "axis of chunks"): chunks[axis] for axis in chunks}
        wanted = [given.get(axis) for axis in range(ndim)]
    elif isinstance(chunks, list | tuple | np.ndarray):
        wanted = list(chunks)
        if ndim == 1 and len(wanted) > 1 and not any(isinstance(item, list | tuple) for item in wanted):
            wanted = [tuple(wanted)]
    elif isinstance(chunks, str):
        wanted = [chunks] * ndim
    else:
        wanted = [as_integer(chunks, "chunks")] * ndim
    if len(wanted) != ndim:
        raise ValueError(must("chunks", f"give one length for each of the {ndim} axes, got {brief(chunks)}"))
    return [
        before if item is None else _as_python(item, axis)
        for axis, (item, before) in enumerate(zip(wanted, kept, strict=True))
    ]


def _as_python(item: Any, axis: int) -> Any:
    """Return one axis's chunks with all numbers as Python ints."""
    if isinstance(item, str):
        return item
    if isinstance(item, list | tuple | np.ndarray):
        return tuple(as_integer(length, f"chunk length of axis {axis}") for length in item)
    return as_integer(item, f"chunk length of axis {axis}")


def _check(item: Any, length: float, axis: int) -> None:
    """Raise ValueError unless the item can be the chunks of an axis."""
    if math.isnan(length):
        raise ValueError(
            f"axis {axis} is of unknown length, so its chunks cannot be changed: it was selected by a "
            "condition; call compute_chunk_sizes() first"
        )
    if isinstance(item, str):
        _check_size(item)
    elif isinstance(item, tuple):
        if not item or min(item) < 0:
            raise ValueError(f"chunks of axis {axis} must be lengths from 0 on, got {brief(item)}")
        if sum(item) != length:
            raise ValueError(
                f"chunks of axis {axis} must add up to its length {length}, got {abbreviate(sum(item))}"
            )
    elif item < 1 and item != -1 and length:
        raise ValueError(
            "a chunk's length must be at least 1, or -1 for the whole axis, "
            f"got {abbreviate(item)} on axis {axis}"
        )


def _check_size(text: str) -> None:
    """Raise ValueError unless the text is "auto" or a number of bytes."""
    try:
        is_right = text == "auto" or (bool(text.strip()) and parse_bytes(text) > 0)  # Dask reads "" as 1 byte
    except ValueError:
        is_right = False
    if not is_right:
        raise ValueError(
            must("chunks", f"be 'auto', a size such as '64MiB', or integers for lengths, got {text!r:.40}")
        )


def _least_count(item: Any, length: float) -> int:
    """Return the number of chunks of an axis, or 1 if it is not known yet."""
    if isinstance(item, tuple):
        return len(item)
    return -(-int(length) // item) if isinstance(item, int) and item > 0 else 1


def without_empty_chunks(array: da.Array) -> da.Array:
    """Remove empty chunks, which have no extremum; chunks of unknown sizes stay.

    If an axis has an empty chunk and a single number, Dask would broadcast the number.
    """
    if any(map(math.isnan, array.shape)):
        return array
    chunks = tuple(tuple(c for c in axis if c) or (0,) for axis in array.chunks)
    return array if chunks == array.chunks else rechunk(array, chunks)
