"""Shapes of arrays of numbers: NumPy's functions of shape, applied behind the axis of the words.

Words are (rows, *shape), NumPy's, CuPy's or Dask's; all arguments are those of an array of `shape`. NumPy
itself checks them, on a model of that shape which takes no memory, and so counts the user's axes. Eager
results are views where NumPy's are.
"""

from typing import Any

import dask.array as da
import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.typing import NDArray

_WHOLE = slice(None)


def model(shape: tuple[Any, ...]) -> NDArray[np.int8]:
    """An array of this shape for NumPy to check arguments on; an unknown length counts as not 1."""
    return np.broadcast_to(np.int8(0), tuple(2 if np.isnan(length) else int(length) for length in shape))


def reshape(words: Any, shape: Any) -> Any:
    """As ``numpy.reshape`` in C order; ValueError if the sizes differ."""
    new = (words.shape[0], *model(words.shape[1:]).reshape(shape).shape)
    if isinstance(words, da.Array) and not words.size:
        return da.zeros_like(words, shape=new, chunks=new)
    try:
        return words.reshape(new)
    except NotImplementedError:  # Dask merges and splits axes, but does not do both to the same ones
        return words.reshape((new[0], -1)).reshape(new)


def transpose(words: Any, axes: tuple[Any, ...]) -> Any:
    """As ``ndarray.transpose(*axes)``: no axes, all of them, or a tuple of all."""
    ndim = words.ndim - 1
    model(words.shape[1:]).transpose(*axes)
    given = axes[0] if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])) else axes or None
    order = range(ndim)[::-1] if given is None else normalize_axis_tuple(given, ndim)
    return words.transpose((0, *(axis + 1 for axis in order)))


def swapaxes(words: Any, axis1: int, axis2: int) -> Any:
    """As ``numpy.swapaxes``."""
    order = list(range(words.ndim - 1))
    first = normalize_axis_index(axis1, len(order), "axis1")
    second = normalize_axis_index(axis2, len(order), "axis2")
    order[first], order[second] = second, first
    return transpose(words, tuple(order))


def squeeze(words: Any, axis: Any) -> Any:
    """As ``numpy.squeeze``; without numbers' axes if all have length 1."""
    lengths = words.shape[1:]
    model(lengths).squeeze(axis)
    if axis is None:
        axes = tuple(k for k, length in enumerate(lengths) if length == 1)
    else:
        axes = normalize_axis_tuple(axis, len(lengths))
    return words[(_WHOLE, *(0 if k in axes else _WHOLE for k in range(len(lengths))))]


def expand_dims(words: Any, axis: Any) -> Any:
    """As ``numpy.expand_dims``."""
    count = words.ndim - 1 + (len(axis) if isinstance(axis, tuple | list) else 1)
    axes = normalize_axis_tuple(axis, count)
    return words[(_WHOLE, *(None if k in axes else _WHOLE for k in range(count)))]
