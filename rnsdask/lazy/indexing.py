"""Indices of arrays of numbers: checked as NumPy does, and applied after the axis of the words.

The words of an array of numbers are (rows, *shape); an index refers to `shape`. NumPy itself reports errors
of an index, and so counts the user's axes. Dask's rules differ from NumPy's (bounds of slices, small
integers, several arrays, axes that move), so that an index is first converted to a form that both read alike.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.typing import NDArray

from rnsdask.backend import backend_beside, backend_name, empty_like_chunks, to_backend
from rnsdask.core.errors import abbreviate, with_article
from rnsdask.core.moduli import as_integer
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import as_lazy, by_tasks
from rnsdask.lazy.map import map_values
from rnsdask.lazy.operands import compute_lengths, is_number_array

_WHOLE = slice(None)

# Greater than the length of any axis.
_BEYOND = 2**62


class UnknownLengthError(ValueError):
    """An index that needs the length of an axis of unknown length, as after selecting by a condition."""


def select(words: Any, key: Any) -> Any:
    """Select the words (rows, *selected) of the numbers that NumPy's indexing by `key` would select.

    A key is as in NumPy, or a Dask array of integers or Booleans. The result is lazy if the words or the key
    are, and a view if NumPy's would be. Errors are as in NumPy; for a Dask index some are raised when the
    result is computed. UnknownLengthError for a slice of an axis of unknown length.
    """
    items = [_item(k) for k in (key if isinstance(key, tuple) else (key,))]
    is_lazy = any(isinstance(item, da.Array) for item in items)
    if isinstance(words, da.Array) or is_lazy:
        lazy = as_lazy(words)
        return _select_lazily(lazy, _expand(items, lazy.shape[1:]))
    return _select_now(words, items)


def _item(k: Any) -> Any:
    """Normalize a part of an index: an integer to int, any sequence to an array."""
    if k is None or k is Ellipsis or isinstance(k, bool | np.bool_ | str):
        return k
    if isinstance(k, slice):
        _check_ends(k)
        return k
    if isinstance(k, da.Array):
        return as_declared(k)
    if is_number_array(k):
        raise IndexError(f"{with_article(type(k))} is no index; to_ints() gives integers that are")
    if getattr(k, "ndim", 0):  # CuPy arrays stay on their GPU
        _check_unsigned(k)
        return as_declared(k)
    try:
        place = operator.index(k)  # accepts arrays without axes too
    except TypeError:
        pass
    else:
        _check_length(place)
        return place
    if hasattr(k, "dtype") or not isinstance(k, Sequence):
        return k
    array = np.asarray(k)
    _check_unsigned(array)
    return array if array.size else array.astype(np.intp)


def _check_ends(item: slice) -> None:
    """Raise TypeError for a slice with a float, as ``dask.array.repeat`` makes."""
    for end in (item.start, item.stop, item.step):
        if isinstance(end, float | np.floating):
            raise TypeError(f"a slice of an array of numbers takes integers, got {end} of type float")


def _check_unsigned(array: Any) -> None:
    """Raise IndexError for an index of 2**63 or more, which NumPy would count from the end."""
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.intp).max:
        _check_length(int(array.max()))


def _check_length(place: int) -> None:
    """Raise IndexError for an index beyond any axis: NumPy overflows beyond 64 bits."""
    if not -(2**63) <= place < 2**63:
        raise IndexError(f"index {abbreviate(place)} is out of bounds: arrays are shorter than 2**63")


def _is_place(item: Any) -> bool:
    """Whether a part of an index counts as NumPy's advanced indexing if another part is an array."""
    return not (item is None or item is Ellipsis or isinstance(item, slice))


def _are_adjacent(items: Sequence[Any]) -> bool:
    places = [k for k, item in enumerate(items) if _is_place(item)]
    return not places or places[-1] - places[0] == len(places) - 1


# ---- NumPy and CuPy ---------------------------------------------------------------------------------------


def _select_now(words: Any, items: list[Any]) -> Any:
    if backend_name(words) == "cuda":
        if any(map(_is_lenient_in_cupy, items)):
            _check(items, words.shape[1:])
        items = [_for_cupy(item, words) for item in items]
    try:
        if _are_adjacent(items) or all(type(item) is int or not _is_place(item) for item in items):
            return words[(_WHOLE, *items)]
        # If arrays are separated, NumPy puts their axes first: move the words last meanwhile.
        _check(items, words.shape[1:])
        rest = () if any(item is Ellipsis for item in items) else (Ellipsis,)
        last = np.moveaxis(words, 0, -1)[(*items, *rest, _WHOLE)]
        return np.moveaxis(last, -1, 0)
    except (IndexError, TypeError, ValueError):
        _check(items, words.shape[1:])
        raise


def _is_lenient_in_cupy(item: Any) -> bool:
    """Whether CuPy may take a part that NumPy refuses: places out of bounds, which it wraps, and floats."""
    if (dtype := getattr(item, "dtype", None)) is not None:
        return bool(dtype.kind != "b")
    return _is_place(item) and not isinstance(item, int)


def _for_cupy(item: Any, words: Any) -> Any:
    """Convert a part of an index for CuPy: to its arrays, and to slices whose ends are machine integers."""
    if isinstance(item, np.ndarray):
        return np.asarray(item, like=words)
    if not isinstance(item, slice):
        return item
    ends = (item.start, item.stop, item.step)
    return slice(*(end if end is None else max(-_BEYOND, min(operator.index(end), _BEYOND)) for end in ends))


def _check(items: Sequence[Any], shape: tuple[int, ...]) -> None:
    """Raise NumPy's errors for an index of an array of this shape."""
    on_host = [item.get() if hasattr(item, "get") else item for item in items]
    np.broadcast_to(np.int8(0), shape)[tuple(on_host)]


# ---- Dask -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Part of an index, and the axes that it consumes."""

    item: Any
    axes: tuple[int, ...]


def _expand(items: list[Any], shape: tuple[int, ...]) -> list[_Part]:
    """Return the parts of an index, at least one for each axis, checked as far as sizes are known."""
    consumed = sum(map(_consumes, items))
    ellipses = sum(item is Ellipsis for item in items)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if consumed > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {consumed} were indexed"
        )
    whole = [_WHOLE] * (len(shape) - consumed)
    where = next((k for k, item in enumerate(items) if item is Ellipsis), len(items))
    # An Ellipsis without axes separates arrays too, as in NumPy, so it stays a part.
    middle = [*whole, Ellipsis] if ellipses else whole
    parts, axis = [], 0
    for item in (*items[:where], *middle, *items[where + ellipses :]):
        count = _consumes(item)
        axes = tuple(range(axis, axis + count))
        if _is_lazy_mask(item) and not any(np.isnan(shape[k]) for k in axes):
            item = compute_lengths(item)
        parts.append(_Part(item, axes))
        axis += count
    for part in parts:
        _check_known(part, shape)
    _check_small(parts, shape)
    return parts


def _consumes(item: Any) -> int:
    """Return the number of axes that a part of an index consumes."""
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    is_mask = getattr(item, "dtype", None) == np.bool_
    return int(item.ndim) if is_mask else 1


def _check_known(part: _Part, shape: tuple[int, ...]) -> None:
    """Raise UnknownLengthError for a slice of an axis of unknown length."""
    item = part.item
    # The axes of a mask of several axes become one, in the order of the whole array.
    is_like = _is_lazy_mask(item) and item.ndim == 1 and bool(np.isnan(item.shape[0]))
    is_blockwise = item == _WHOLE if isinstance(item, slice) else is_like
    if not is_blockwise and any(np.isnan(shape[axis]) for axis in part.axes):
        raise UnknownLengthError(
            "the array's length is unknown, as after selecting by a condition; "
            "call compute_chunk_sizes() before indexing it"
        )


def _check_small(parts: list[_Part], shape: tuple[int, ...]) -> None:
    """Let NumPy check all but Dask arrays, with slices cut to one number at most."""
    small: list[Any] = []
    for part in parts:
        if isinstance(part.item, slice):
            if part.item != _WHOLE:
                part.item.indices(int(shape[part.axes[0]]))
            small.append(slice(0, 1))
        elif isinstance(part.item, da.Array):
            _check_lazy(part, shape)
            small += [slice(0, 1)] * len(part.axes)
        elif part.item is not Ellipsis:
            small.append(part.item)
    lengths = tuple(1 if np.isnan(length) else int(length) for length in shape)
    _check(small, lengths)


def _check_lazy(part: _Part, shape: tuple[int, ...]) -> None:
    index = part.item
    if index.dtype == np.bool_:
        for axis, length in zip(part.axes, index.shape, strict=True):
            if length != shape[axis] and not np.isnan(length) and not np.isnan(shape[axis]):
                raise IndexError(
                    f"boolean index did not match indexed array along axis {axis}; size of axis is "
                    f"{shape[axis]} but size of corresponding boolean axis is {length}"
                )
    elif index.dtype.kind not in "iu" and not (index.ndim == 0 and index.dtype == object):
        raise IndexError(f"arrays used as indices must be of integer (or boolean) type, got {index.dtype}")


def _is_lazy_mask(item: Any) -> bool:
    return isinstance(item, da.Array) and item.dtype == np.bool_


def _select_lazily(words: da.Array, parts: list[_Part]) -> da.Array:
    """Apply slices, new axes and integers first, then all arrays together."""
    shape = words.shape[1:]
    lazy = [part for part in parts if isinstance(part.item, da.Array)]
    arrays = [part for part in parts if _is_array(part.item)]
    are_numbers = bool(lazy) and all(_is_number(part.item) for part in arrays)
    basic, axes, position = _basic_index(parts, shape)
    words = words[basic]
    if are_numbers:
        for part, axis in zip(reversed(arrays), reversed(axes), strict=True):
            words, _ = _take_lazily(words, part, [axis])
        return words
    if not arrays:
        return words
    if not _are_adjacent([part.item for part in parts]):
        position = 1
    if not lazy:
        taken, ndim = _take(words, arrays, axes, shape)
    elif len(arrays) > 1:
        taken, ndim = _take_jointly(words, arrays, axes, shape)
    else:
        taken, ndim = _take_lazily(words, lazy[0], axes)
    # New axes come after the axis of the words.
    placed: da.Array = da.moveaxis(taken, list(range(1, 1 + ndim)), list(range(position, position + ndim)))
    return placed


def _basic_index(parts: list[_Part], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[int], int]:
    """Return an index of the words that keeps the axes of arrays whole: slices, integers and None.

    Return also the positions after it of the axes that arrays select from, and the axis of the first integer
    or array, where NumPy puts the axes of an array's shape.
    """
    index: list[Any] = [_WHOLE]
    axes: list[int] = []
    kept, position = 1, None
    for part in parts:
        item = part.item
        if position is None and _is_place(item):
            position = kept
        if type(item) is int:
            index.append(item + shape[part.axes[0]] if item < 0 else item)
        elif isinstance(item, slice) or item is None:
            index.append(None if item is None else _normal_slice(item, shape[part.axes[0]]))
            kept += 1
        elif item is not Ellipsis:
            index += [_WHOLE] * len(part.axes)
            axes += range(kept, kept + len(part.axes))
            kept += len(part.axes)
    return tuple(index), axes, position or 1


def _is_array(item: Any) -> bool:
    return _is_place(item) and type(item) is not int


def _is_number(item: Any) -> bool:
    """Whether an array is one integer."""
    return getattr(item, "ndim", 1) == 0 and item.dtype != np.bool_


def _normal_slice(item: slice, length: int) -> slice:
    """Return a slice with bounds from 0 to the length, which Dask reads correctly."""
    if item == _WHOLE:
        return item
    start, stop, step = item.indices(int(length))
    chosen = range(start, stop, step)
    if not chosen:
        return slice(0, 0)
    last = chosen[-1]
    if step > 0:
        return slice(start, last + 1, step)
    return slice(start, last - 1 if last else None, step)


def _take(
    words: da.Array, arrays: list[_Part], axes: list[int], shape: tuple[int, ...]
) -> tuple[da.Array, int]:
    """Select by arrays in memory, which become the first axes of the numbers; return also how many."""
    indices: list[NDArray[Any]] = []
    places: list[int | None] = []
    for part in arrays:
        item = _move_to_host(part.item)
        if item.dtype == np.bool_:
            # A mask without axes adds one of length 1 or 0.
            found = item.nonzero() if item.ndim else (np.zeros(int(item), np.intp),)
            indices += found
            places += part.axes or (None,)
        else:
            indices.append(item)
            places += part.axes
    common = np.broadcast_shapes(*(index.shape for index in indices))
    flat = [
        np.broadcast_to(_make_positive(index, shape[axis]), common).reshape(-1)
        for index, axis in zip(indices, places, strict=True)
        if axis is not None
    ]
    if len(flat) == 0:
        taken = words[:, None][:, : int(np.prod(common))]
    elif len(flat) == 1:
        with by_tasks(words):
            taken = da.moveaxis(da.take(words, flat[0], axis=axes[0]), axes[0], 1)
    elif not flat[0].size:  # Dask's vindex also fails if an axis is empty
        rest = [length for axis, length in enumerate(words.shape) if axis and axis not in axes]
        taken = da.zeros_like(words, shape=(words.shape[0], 0, *rest))
    else:
        key: list[Any] = [_WHOLE] * words.ndim
        for axis, index in zip(axes, flat, strict=True):
            key[axis] = index
        with by_tasks(words):
            taken = da.moveaxis(words.vindex[tuple(key)], 0, 1)
    if len(common) != 1:
        new = (taken.shape[0], *common, *taken.shape[2:])
        taken = _reshape(taken, new)
    return taken, len(common)


def _make_positive(index: NDArray[Any], length: int) -> NDArray[np.intp]:
    """Make indices nonnegative; a type of small integers might not hold the length."""
    wide = index.astype(np.intp)
    return np.where(wide < 0, wide + int(length), wide)


def _take_lazily(words: da.Array, part: _Part, axes: list[int]) -> tuple[da.Array, int]:
    """Select numbers by a lazy array, as :func:`_take`."""
    index = part.item
    words = da.moveaxis(words, axes, list(range(1, 1 + len(axes))))
    if index.dtype == np.bool_:
        if index.ndim != 1:  # without axes, it adds one of length 1 or 0
            words = _merge_axes(words, index.size, index.ndim)
            index = _merge_axes(index[None], index.size, index.ndim)[0]
        with by_tasks(words, index):
            return words[:, index], 1
    length, axis = int(words.shape[1]), part.axes[0]
    checked = map_values(_checked_positions, index, length=length, axis=axis, dtype=np.int64)
    return _take_at(words, checked), index.ndim


def _merge_axes(words: da.Array, count: int, axes: int) -> da.Array:
    """Merge the first `count` axes of the numbers into one; for 0 insert a new one."""
    return _reshape(words, (words.shape[0], count, *words.shape[1 + axes :]))


def _reshape(words: da.Array, shape: tuple[Any, ...]) -> da.Array:
    """Reshape words; Dask's own function fails for arrays without numbers."""
    if not words.size:
        nothing: da.Array = da.zeros_like(words, shape=shape, chunks=shape)
        return nothing
    with by_tasks(words):
        made: da.Array = words.reshape(shape)
    return made


def _take_at(words: da.Array, index: da.Array) -> da.Array:
    """Select from the first axis of the numbers by a lazy array of nonnegative positions."""
    if words.shape[1] == 0 and compute_lengths(index).size:
        raise IndexError("an index is out of bounds: there are no numbers along its axis")
    if 0 in (words.shape[1], index.size):  # Dask's indexing fails here
        shape = (words.shape[0], *compute_lengths(index).shape, *words.shape[2:])
        nothing: da.Array = da.zeros_like(words, shape=shape, chunks=shape)
        return nothing
    is_line = index.ndim == 1  # its length may be unknown
    taken = _take_from_chunks(words, index if is_line else index.reshape(-1))
    if is_line:
        return taken
    with by_tasks(words):
        shaped: da.Array = taken.reshape((taken.shape[0], *index.shape, *taken.shape[2:]))
    return shaped


def _take_from_chunks(words: da.Array, index: da.Array) -> da.Array:
    """Select from the first axis of the numbers by positions of NumPy, along one axis.

    Dask's own function subtracts NumPy's offsets from CuPy positions if its ``meta`` does not say that chunks
    are CuPy's. Axes: r of words, i of chunks to select from, j of positions.
    """
    lengths = words.chunks[1]
    r, i, j, *others = 0, 1, -1, *range(2, words.ndim)
    starts = da.from_array(np.cumsum((0, *lengths[:-1])), chunks=1)
    how: dict[str, Any] = {"dtype": words.dtype, "align_arrays": False}
    chosen = da.blockwise(
        _take_of_chunk,
        (r, i, j, *others),
        *(words, (r, i, *others)),
        *(index, (j,)),
        *(starts, (i,)),
        adjust_chunks={i: lambda length: math.nan, j: lambda length: 1},  # noqa: ARG005
        meta=empty_like_chunks(meta_from_array(words), words.ndim + 1, words.dtype),
        **how,
    )
    taken: da.Array = da.blockwise(
        _restore_order,
        (r, j, *others),
        *(index, (j,)),  # first, because the result has its lengths
        *(chosen, (r, i, j, *others)),
        ends=np.cumsum(lengths),
        concatenate=True,
        meta=meta_from_array(words),
        **how,
    )
    return taken


def _take_of_chunk(words: Any, index: NDArray[np.int64], start: NDArray[np.int64]) -> Any:
    """Return the words (rows, k, 1, ...) at the positions within a chunk, in their order."""
    places = index - start
    return words[:, places[(places >= 0) & (places < words.shape[1])]][:, :, None]


def _restore_order(index: NDArray[np.int64], chosen: Any, *, ends: NDArray[np.int64]) -> Any:
    """Reorder words (rows, positions, ...) that were selected chunk by chunk."""
    places = np.empty_like(index)
    places[ends.searchsorted(index, side="right").argsort(kind="stable")] = np.arange(len(index))
    return chosen[:, :, 0][:, places]


def _take_jointly(
    words: da.Array, arrays: list[_Part], axes: list[int], shape: tuple[int, ...]
) -> tuple[da.Array, int]:
    """Select by several arrays together, some of them lazy, as :func:`_take`.

    Their axes are merged into one, to which the positions then refer. Unknown lengths of lazy arrays, such as
    masks, are computed.
    """
    positions: list[tuple[da.Array, int | None]] = []
    for part in arrays:
        item = part.item if isinstance(part.item, da.Array) else da.asarray(_move_to_host(part.item))
        places = part.axes or (None,)
        if item.dtype == np.bool_:
            found = nonzero(item if item.ndim else item.reshape(1))
            positions += zip(map(compute_lengths, found), places, strict=True)
        else:
            positions.append((compute_lengths(item), *places))
    try:
        common = np.broadcast_shapes(*(index.shape for index, _ in positions))
    except ValueError:
        shapes = " ".join(str(index.shape) for index, _ in positions)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    words = da.moveaxis(words, axes, list(range(1, 1 + len(axes))))
    count = math.prod(words.shape[1 : 1 + len(axes)])
    flat = da.zeros(common, dtype=np.int64)
    for index, axis in positions:
        if axis is not None:
            length = int(shape[axis])
            checked = map_values(_checked_positions, index, length=length, axis=axis, dtype=np.int64)
            flat = flat * length + checked
    words = _merge_axes(words, count, len(axes))
    return _take_at(words, flat), len(common)


def nonzero(mask: Any) -> tuple[Any, ...]:
    """Return the indices where a mask holds, one array for each axis; a lazy mask's are NumPy's."""
    if isinstance(mask, da.Array) and backend_beside(meta_from_array(mask)) != "cpu":
        mask = map_values(_move_to_host, mask, dtype=np.bool_)  # Dask would index NumPy's by it
    if isinstance(mask, da.Array) and not mask.size:  # Dask's nonzero fails here
        return tuple(da.zeros(0, dtype=np.int64) for _ in range(mask.ndim))
    found: tuple[Any, ...] = mask.nonzero()
    return found


def _move_to_host(array: Any) -> NDArray[Any]:
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _checked_positions(index: Any, length: int, axis: int) -> NDArray[np.int64]:
    values = np.asarray(to_backend(index, "cpu"))
    if values.dtype.kind not in "iu":  # one lazy integer has dtype object
        values = np.asarray(as_integer(values.item(), "an index"))
    outside = values[(values < -length) | (values >= length)]
    if outside.size:
        first = abbreviate(int(outside.reshape(-1)[0]))
        raise IndexError(f"index {first} is out of bounds for axis {axis} with size {length}")
    return _make_positive(values, length)
