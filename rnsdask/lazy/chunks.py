"""Chunks of arrays in memory, given in any way that Dask takes them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeAlias

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
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import must

Lengths: TypeAlias = tuple[tuple[int, ...], ...]
"""The lengths of all chunks along each axis."""


def as_lazy(array: Any, chunks: Sequence[Any] | int = -1) -> da.Array:
    """Make a Dask array of a copy of a NumPy or CuPy array, in one chunk by default; keep a Dask array."""
    if isinstance(array, da.Array):
        return array
    lazy: da.Array = da.from_array(array, chunks=chunks, asarray=False)
    return lazy


def rechunked(words: da.Array, chunks: Any) -> da.Array:
    """Give words other chunks, as Dask's ``rechunk``; what GPUs may hold goes by tasks (:func:`by_tasks`)."""
    result: da.Array = words.rechunk(chunks, method="tasks" if may_be_on_gpus(words) else None)
    return result


def may_be_on_gpus(array: Any) -> bool:
    """Whether chunks of a Dask array, or what objects in them hold, may be in the memory of GPUs."""
    if not isinstance(array, da.Array):
        return False
    meta = meta_from_array(array)
    return isinstance(meta, WorkersArray) or backend_name(meta) == "cuda" or bool(meta.dtype.hasobject)


_setting = RLock()
"""Held while Dask's setting is another one, so that no thread puts back what another has set."""


@contextmanager
def by_tasks(*arrays: Any) -> Iterator[None]:
    """Let Dask's functions that rechunk exchange parts of these arrays by tasks, if GPUs may hold chunks.

    Its other way, P2P, which it prefers for many chunks where a client is current, takes NumPy's arrays only.
    """
    if not any(map(may_be_on_gpus, arrays)):
        yield
        return
    with _setting, dask.config.set({"array.rechunk.method": "tasks"}):
        yield


def normalize_chunks(chunks: Any, shape: Sequence[int], rows: int, current: Lengths | None = None) -> Lengths:
    """The lengths of all chunks along each axis of the numbers, by the rules of Dask.

    `chunks` are what `dask.array.core.normalize_chunks` and `rechunk` take: one length for all axes, or one
    for each, where -1 stands for the whole axis and None for what it is; the lengths of all chunks along an
    axis; ``"auto"``, or a size in bytes such as ``"64MiB"``; a mapping from some of the axes to these.
    ``"auto"`` of all axes is this package's (:func:`.layout.normalize_chunks`), of some of them Dask's, which
    its setting ``array.chunk-size`` limits; of an array without numbers the whole axis. Sizes are in the
    bytes of numbers of so many `rows`. Without the `current` chunks, axes that are not given are in one
    chunk.

    ValueError also if the length of an axis that gets other chunks is unknown; JobError if there are more
    chunks than this process has memory for.
    """
    if not any(map(math.isnan, shape)):
        layout.check_shape(shape)
    wanted = _by_axis(chunks, len(shape), current)
    for axis, (item, length) in enumerate(zip(wanted, shape, strict=True)):
        if current is None or item is not current[axis]:
            _check(item, length, axis)
    # Dask refuses a length beyond machine integers.
    wanted = [-1 if isinstance(item, int) and item > 2**62 else item for item in wanted]
    if 0 in shape:
        wanted = [-1 if isinstance(item, str) else item for item in wanted]
    if all(isinstance(item, str) and item == "auto" for item in wanted):
        wanted = list(layout.normalize_chunks("auto", shape, rows))
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
    """A chunk's length along each axis in a store whose chunks are given as `normalize_chunks` takes them.

    A length that is given is kept, though the axis is shorter. Chunks that differ along an axis are a
    ValueError.
    """
    lengths = normalize_chunks(chunks, shape, rows, current)
    if not layout.are_regular(lengths):
        raise ValueError(
            "the chunks of a store are of one length along each axis, but for a shorter last one; "
            f"got {brief(chunks)}"
        )
    regular = layout.storable_chunks(lengths, shape, rows)
    wanted = _by_axis(chunks, len(shape), current)
    return tuple(
        item if isinstance(item, int) and item > 0 else length
        for item, length in zip(wanted, regular, strict=True)
    )


def _by_axis(chunks: Any, ndim: int, current: Lengths | None) -> list[Any]:
    """Chunks wanted along each axis, spread as Dask's `rechunk` does."""
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
        before if item is None else _as_written(item, axis)
        for axis, (item, before) in enumerate(zip(wanted, kept, strict=True))
    ]


def _as_written(item: Any, axis: int) -> Any:
    """One axis' chunks, with all numbers as Python's."""
    if isinstance(item, str):
        return item
    if isinstance(item, list | tuple | np.ndarray):
        return tuple(as_integer(length, f"chunk length of axis {axis}") for length in item)
    return as_integer(item, f"chunk length of axis {axis}")


def _check(item: Any, length: float, axis: int) -> None:
    """Raise ValueError unless these can be the chunks of an axis."""
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
    """Raise ValueError unless it is "auto", or a number of bytes."""
    try:
        is_right = text == "auto" or (bool(text.strip()) and parse_bytes(text) > 0)  # Dask: "" is 1 byte
    except ValueError:
        is_right = False
    if not is_right:
        raise ValueError(
            must("chunks", f"be 'auto', a size such as '64MiB', or integers for lengths, got {text!r:.40}")
        )


def _least_count(item: Any, length: float) -> int:
    """How many chunks an axis has, or where that is not known yet 1."""
    if isinstance(item, tuple):
        return len(item)
    return -(-int(length) // item) if isinstance(item, int) and item > 0 else 1


def without_empty_chunks(array: da.Array) -> da.Array:
    """Leave out chunks without numbers, which have no extremum; unknown sizes stay.

    Beside such a chunk, Dask takes the only number of an axis for one that is repeated.
    """
    if any(map(math.isnan, array.shape)):
        return array
    chunks = tuple(tuple(c for c in axis if c) or (0,) for axis in array.chunks)
    return array if chunks == array.chunks else rechunked(array, chunks)
