"""Shapes of arrays of numbers: NumPy's functions of shape, applied after the axis of the words.

Words are (rows, *shape), of NumPy, CuPy or Dask; all arguments refer to an array of `shape`. NumPy itself
checks them, on a model of that shape without memory, and so counts the user's axes. In memory, results are
views if NumPy's are.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, SupportsIndex

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.typing import NDArray

from rnsdask.backend import backend_beside, to_backend
from rnsdask.cluster.limits import check_bytes, check_graph
from rnsdask.core import layout
from rnsdask.core.axes import axis_index, axis_indices
from rnsdask.core.errors import brief
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import must
from rnsdask.lazy import indexing
from rnsdask.lazy.chunks import as_lazy, by_tasks
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import bring_to_one_processor, with_axes

_WHOLE = slice(None)


def model(shape: tuple[Any, ...]) -> NDArray[np.int8]:
    """Make an array of a shape for NumPy to check arguments on; an unknown length counts as not 1."""
    return np.broadcast_to(np.int8(0), tuple(2 if np.isnan(length) else int(length) for length in shape))


def reshape(words: Any, shape: Any) -> Any:
    """Change the shape in C order, as ``numpy.reshape``; ValueError if the sizes differ."""
    if any(abs(as_integer(length, "shape")) >= 2**63 for length in np.ravel(np.array(shape, dtype=object))):
        raise ValueError(f"numbers of shape {words.shape[1:]} do not fill the shape {brief(shape)}")
    new = (words.shape[0], *model(words.shape[1:]).reshape(shape).shape)
    if isinstance(words, da.Array) and not words.size:
        return da.zeros_like(words, shape=new, chunks=new)
    with by_tasks(words):
        try:
            return words.reshape(new)
        except NotImplementedError:  # Dask merges and splits axes, but not both on the same axes
            return words.reshape((new[0], -1)).reshape(new)


def transpose(words: Any, axes: tuple[Any, ...]) -> Any:
    """Permute axes, as ``ndarray.transpose(*axes)``: no axes, all of them, or a tuple of all."""
    ndim = words.ndim - 1
    model(words.shape[1:]).transpose(*axes)
    given = axes[0] if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])) else axes or None
    order = range(ndim)[::-1] if given is None else axis_indices(given, ndim)
    return words.transpose((0, *(axis + 1 for axis in order)))


def swapaxes(words: Any, axis1: SupportsIndex, axis2: SupportsIndex) -> Any:
    """Swap two axes, as ``numpy.swapaxes``."""
    order = list(range(words.ndim - 1))
    first = axis_index(axis1, len(order), "axis1")
    second = axis_index(axis2, len(order), "axis2")
    order[first], order[second] = second, first
    return transpose(words, tuple(order))


def squeeze(words: Any, axis: Any) -> Any:
    """Remove axes of length 1, as ``numpy.squeeze``; only the axis of words is left if all have length 1."""
    lengths = words.shape[1:]
    if axis is None:
        axes = tuple(k for k, length in enumerate(lengths) if length == 1)
    else:
        axes = axis_indices(axis, len(lengths))
        model(lengths).squeeze(axes)
    return words[(_WHOLE, *(0 if k in axes else _WHOLE for k in range(len(lengths))))]


def expand_dims(words: Any, axis: Any) -> Any:
    """Insert axes of length 1, as ``numpy.expand_dims``."""
    count = words.ndim - 1 + (len(axis) if isinstance(axis, tuple | list) else 1)
    axes = axis_indices(axis, count)
    return words[(_WHOLE, *(None if k in axes else _WHOLE for k in range(count)))]


def join(parts: Sequence[Any], axis: int) -> Any:
    """Join words along an axis of the numbers; lazy if some are."""
    if any(isinstance(words, da.Array) for words in parts):
        parts = bring_to_one_processor([as_lazy(words) for words in parts])
        with by_tasks(*parts):
            return da.concatenate(parts, axis + 1)
    return np.concatenate(parts, axis + 1)


def index_along(axis: int, part: Any) -> tuple[Any, ...]:
    """Return an index of words that selects a part of one axis of the numbers."""
    return (*(_WHOLE,) * (axis + 1), part)


def flip(words: Any, axis: Any) -> Any:
    """Reverse the order along axes, as ``numpy.flip``."""
    ndim = words.ndim - 1
    axes = range(ndim) if axis is None else axis_indices(axis, ndim)
    return words[(_WHOLE, *(slice(None, None, -1 if k in axes else None) for k in range(ndim)))]


def roll(words: Any, shift: Any, axis: Any) -> Any:
    """Shift numbers cyclically, as ``numpy.roll``; TypeError if a shift is not an integer."""
    if axis is None:
        return reshape(roll(reshape(words, -1), shift, 0), words.shape[1:])
    axes = axis_indices(axis, words.ndim - 1, allow_duplicate=True)
    pairs = np.broadcast(np.asarray(shift, dtype=object), axes)
    if pairs.ndim > 1:
        raise ValueError("shift and axis must be integers or sequences of them")
    shifts = dict.fromkeys(axes, 0)
    for one, k in pairs:
        shifts[int(k)] += as_integer(one, "shift")
    function = da.roll if isinstance(words, da.Array) else np.roll
    return function(words, tuple(shifts.values()), tuple(k + 1 for k in shifts))


def take(words: Any, indices: Any, axis: SupportsIndex | None) -> Any:
    """Take numbers by indices, as ``numpy.take``; Booleans count as 0 and 1."""
    words, axis = (reshape(words, -1), 0) if axis is None else (words, axis)
    axis = axis_index(axis, words.ndim - 1)
    array = indices if hasattr(indices, "dtype") else np.asarray(indices)
    is_lazy_integer = isinstance(array, da.Array) and not array.ndim
    if array.dtype.kind not in "biu" and not is_lazy_integer:
        raise TypeError(f"indices must be integers, got {array.dtype}")
    array = array.astype(np.intp) if array.dtype.kind == "b" else array
    return indexing.select(words, (*(_WHOLE,) * axis, array))


def repeat(words: Any, repeats: Any, axis: SupportsIndex | None) -> Any:
    """Repeat numbers, as ``numpy.repeat``; TypeError if a count is not an integer."""
    words, axis = (reshape(words, -1), 0) if axis is None else (words, axis)
    axis = axis_index(axis, words.ndim - 1)
    length, counts = words.shape[axis + 1], np.asarray(repeats)
    if counts.dtype.kind == "f":  # NumPy makes floats of Python ints of different lengths
        counts = np.array(repeats, dtype=object)
    if counts.size and counts.dtype.kind not in "biuO":
        raise TypeError(f"repeats must be integers, got {counts.dtype}")
    if counts.dtype == object:  # Python ints too long for machine integers
        counts = np.vectorize(lambda count: as_integer(count, "repeats"), otypes=[object])(counts)
    if length and counts.size and counts.min() < 0:
        raise ValueError(f"repeats must not be negative, got {brief(repeats)}")
    # On Dask a single count makes each chunk longer; several become an index in memory.
    total = int(counts.sum(dtype=object)) * (length if counts.size == 1 else 1)
    if not isinstance(words, da.Array):
        need = words.nbytes // max(length, 1) * total
    elif counts.size == 1:
        need = words.dtype.itemsize * math.prod(map(max, words.chunks)) * int(counts.item())
    else:
        need = 8 * total
    check_bytes(need, f"an array with repeats {brief(repeats)}")
    if isinstance(words, np.ndarray):
        return np.repeat(words, repeats, axis + 1)
    if isinstance(words, da.Array) and counts.size == 1 and length:
        np.repeat(np.empty(0), counts)  # raises NumPy's errors
        return da.repeat(words, int(counts.item()), axis + 1)
    return take(words, np.repeat(np.arange(length), repeats), axis)


def broadcast_to(words: Any, shape: Any) -> Any:
    """Broadcast to a shape, as ``numpy.broadcast_to``; on Dask, chunks of new axes stay below 64 MiB."""
    lengths = [as_integer(length, "shape") for length in (shape if np.iterable(shape) else (shape,))]
    size = math.prod(lengths) * (1 if isinstance(words, da.Array) else words.dtype.itemsize * len(words))
    if size >= 2**63:
        raise ValueError(must("shape", f"be of fewer than 2**63 numbers and bytes, got {brief(shape)}"))
    new = np.broadcast_to(model(words.shape[1:]), lengths).shape
    words = with_axes(words, len(new))
    target = (words.shape[0], *new)
    if not isinstance(words, da.Array):
        return np.broadcast_to(words, target)
    chunks = list(words.chunks)
    room = int(layout.DEFAULT_CHUNK_BYTES // (words.dtype.itemsize * math.prod(map(max, words.chunks)) or 1))
    for axis in reversed(range(1, words.ndim)):
        if target[axis] != words.shape[axis]:
            chunks[axis] = _chunks_of(target[axis], max(room, 1))
            room //= max(chunks[axis][0], 1)
    _check_count(chunks)
    with by_tasks(words):
        return da.broadcast_to(words, target, chunks=tuple(chunks))


def _chunks_of(length: int, most: int) -> tuple[int, ...]:
    check_graph(-(-length // most) if length else 1, f"an axis of length {length}")
    return (most,) * (length // most) + ((length % most,) if length % most or not length else ())


def _check_count(chunks: Sequence[tuple[int, ...]]) -> None:
    """Raise JobError if Dask's graph of these chunks would not fit into memory."""
    check_graph(math.prod(map(len, chunks)), f"an array of shape {tuple(map(sum, chunks[1:]))}")


def tile(words: Any, reps: Any) -> Any:
    """Repeat the whole array, as ``numpy.tile``."""
    counts = [as_integer(count, "reps") for count in (reps if np.iterable(reps) else (reps,))]
    if any(count < 0 for count in counts):
        raise ValueError(f"reps must not be negative, got {brief(reps)}")
    counts = [1] * (words.ndim - 1 - len(counts)) + counts
    words = with_axes(words, len(counts))
    if not isinstance(words, da.Array):
        check_bytes(words.nbytes * math.prod(counts), f"an array tiled {brief(reps)}")
        return np.tile(words, (1, *counts))
    joins = math.prod(max(count, 1) for count in counts)
    check_graph(math.prod(words.numblocks) * joins, f"an array of shape {words.shape[1:]}, tiled {counts}")
    for axis, count in enumerate(counts):
        words = join([words] * count, axis) if count else words[index_along(axis, slice(0))]
    return words


def pad_widths(pad_width: Any, words: Any) -> list[tuple[int, int]]:
    """Return the widths before and after each axis of numbers, for an argument of ``numpy.pad``.

    JobError if the result of words in memory would not fit into memory.
    """
    if np.asarray(pad_width).dtype.kind not in "iufO":
        raise TypeError(f"pad_width must be integers, got {np.asarray(pad_width).dtype}")
    # NumPy makes floats of Python ints of different lengths, and objects of long ones.
    widths = np.array(pad_width, dtype=object)
    for index, width in np.ndenumerate(widths):
        widths[index] = as_integer(width, "pad_width")
    if any(width < 0 for width in widths.flat):
        raise ValueError(f"pad_width must not be negative, got {brief(pad_width)}")
    sides = [(before, after) for before, after in np.broadcast_to(widths, (words.ndim - 1, 2)).tolist()]
    if not isinstance(words, da.Array):
        lengths = [length + sum(side) for length, side in zip(words.shape[1:], sides, strict=True)]
        need = words.dtype.itemsize * len(words) * math.prod(lengths)
        check_bytes(need, f"an array with pad_width {brief(pad_width)}")
    return sides


_REPEATING = ("edge", "reflect", "symmetric", "wrap")


def repeated_places(mode: str, length: int, sides: tuple[int, int]) -> Iterator[NDArray[np.int64]]:
    """Return the positions along an axis that ``numpy.pad`` repeats before and after it in a mode."""
    if mode not in _REPEATING:
        raise ValueError(
            must("mode", f"be 'constant', {', '.join(map(repr, _REPEATING))}, got {brief(mode)}")
        )
    if any(sides) and not length:
        raise ValueError(f"an empty axis has no numbers for mode {mode!r}; mode='constant' takes one")
    for places in (np.arange(-sides[0], 0), np.arange(length, length + sides[1])):
        if mode == "edge":
            yield places.clip(0, length - 1)
        elif mode == "wrap":
            yield places % max(length, 1)
        else:
            # There and back: position p equals last - p, and the mirror of "reflect" repeats neither end.
            last, period = (2 * length - 2,) * 2 if mode == "reflect" else (2 * length - 1, 2 * length)
            turned = places % max(period, 1)
            yield np.minimum(turned, last - turned)


def pad(words: Any, widths: Sequence[tuple[int, int]], column: Any) -> Any:
    """Surround the numbers by one number, a column (rows, 1, ..., 1); on Dask in chunks of their lengths."""
    for axis, sides in enumerate(widths):
        before, after = ([_fill_width(words, axis, width, column)] if width else [] for width in sides)
        words = join([*before, words, *after], axis)
    return words


def _fill_width(words: Any, axis: int, width: int, column: Any) -> Any:
    """Fill the words' shape, but with a width along one axis of the numbers, with one number."""
    shape = (*words.shape[: axis + 1], width, *words.shape[axis + 2 :])
    if not isinstance(words, da.Array):
        return np.broadcast_to(np.asarray(column, like=words), shape)
    own = words.chunks
    chunks = (*own[: axis + 1], _chunks_of(width, max(own[axis + 1]) or width), *own[axis + 2 :])
    _check_count(chunks)
    return fill_chunks(words, column, shape, chunks)


def fill(words: Any, column: Any) -> Any:
    """Fill the shape and chunks of words with one number, a column (rows, 1, ..., 1); in memory a view.

    On the processor of the words. Lazy if the words or the column are.
    """
    shape = (len(column), *words.shape[1:])
    if not isinstance(column, da.Array) and not isinstance(words, da.Array):
        return np.broadcast_to(np.asarray(column, like=words), shape)
    words = as_lazy(words)
    chunks = ((len(column),), *words.chunks[1:])
    return fill_chunks(words, column, shape, chunks)


def fill_chunks(words: da.Array, column: Any, shape: tuple[int, ...], chunks: Sequence[Any]) -> da.Array:
    """Fill any shape and chunks with a column of words, on the processor of other words' chunks."""
    meta = meta_from_array(words)
    options: dict[str, Any] = {"rows": len(column), "dtype": words.dtype, "like": meta}
    moved = map_chunks(to_backend, as_lazy(column), backend=backend_beside(meta), **options)
    filled: da.Array = da.broadcast_to(moved, shape, tuple(chunks))
    return filled


def split(words: Any, indices_or_sections: Any, axis: SupportsIndex) -> list[Any]:
    """Split into parts along an axis, as ``numpy.split``."""
    np.split(model(words.shape[1:]), indices_or_sections, axis)
    axis = axis_index(axis, words.ndim - 1)
    length = words.shape[axis + 1]
    if np.iterable(indices_or_sections):
        places = [0, *indices_or_sections, length]
    else:
        sections = operator.index(indices_or_sections)
        places = [length // sections * k for k in range(sections + 1)]
    # By the rules for indices of numbers: Dask reads some bounds of slices differently.
    slices = (slice(start, stop) for start, stop in pairwise(places))
    return [indexing.select(words, (*(_WHOLE,) * axis, part)) for part in slices]


def diagonal(words: Any, offset: int, axis1: int, axis2: int) -> Any:
    """Return diagonals, as ``numpy.diagonal``."""
    model(words.shape[1:]).diagonal(offset, axis1, axis2)
    first, second = (1 + axis_index(axis, words.ndim - 1) for axis in (axis1, axis2))
    function = da.diagonal if isinstance(words, da.Array) else np.diagonal
    return function(words, offset, first, second)
