"""Joining and shaping of arrays of numbers by functions, with NumPy's names and rules."""

from collections.abc import Iterable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from rnsdask.arrays.number_array import NumberArray
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.functions import check_one_kind
from rnsdask.lazy.operands import as_lazy, check_alike
from rnsdask.rns.system import RNS


def concatenate(arrays: Iterable[Any], axis: int | None = 0) -> Any:
    """Join arrays along an axis that they have, as ``numpy.concatenate``.

    Parameters
    ----------
    arrays : iterable of RNSArray, or of IntervalRNSArray
        At least one; of the same moduli set and range, on the same processor, and of the same shape but for
        the axis.
    axis : int, optional
        The axis; with None the arrays are joined as their ``ravel()``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if an array is. Its bound is the greatest of the arrays', None if one of them has none.

    Raises
    ------
    TypeError
        If something else than an array of numbers is to be joined, also an integer, or arrays of several
        kinds, or on several processors.
    ValueError
        If there is no array, or moduli sets, ranges or shapes differ, or the length of another axis is
        unknown; AxisError, which is one, if there is no such axis.
    """
    numbers = _checked("concatenate", arrays)
    if axis is None:
        numbers, axis = [x.ravel() for x in numbers], 0
    axis = normalize_axis_index(axis, numbers[0].ndim)
    # Without numbers along the axis, whose lengths may differ, nothing is allocated to check the others.
    rests = [(*x.shape[:axis], 0, *x.shape[axis + 1 :]) for x in numbers]
    if len(numbers) > 1 and any(np.isnan(length) for rest in rests for length in rest):
        raise ValueError("the length of an axis is unknown; call compute_chunk_sizes() before joining")
    np.concatenate([shapes.model(rest) for rest in rests], axis)
    return _joined(numbers, axis)


def stack(arrays: Iterable[Any], axis: int = 0) -> Any:
    """Join arrays of one shape along a new axis, as ``numpy.stack``; otherwise as :func:`concatenate`."""
    numbers = _checked("stack", arrays)
    if len({x.shape for x in numbers}) > 1:
        raise ValueError(
            f"all arrays of a stack must have the same shape, got {[x.shape for x in numbers]!r:.200}"
        )
    axis = normalize_axis_index(axis, numbers[0].ndim + 1)
    return concatenate([expand_dims(x, axis) for x in numbers], axis)


def hstack(arrays: Iterable[Any]) -> Any:
    """Join arrays along their second axis, or vectors along their only one, as ``numpy.hstack``."""
    numbers = _checked("hstack", arrays)
    return concatenate(numbers, 0 if numbers[0].ndim == 1 else 1)


def vstack(arrays: Iterable[Any]) -> Any:
    """Join arrays along their first axis, vectors as rows, as ``numpy.vstack``."""
    numbers = _checked("vstack", arrays)
    return concatenate([expand_dims(x, 0) if x.ndim == 1 else x for x in numbers])


def expand_dims(x: Any, axis: int | tuple[int, ...]) -> Any:
    """The array with new axes of length 1, which are at `axis` of the result, as ``numpy.expand_dims``.

    Raises
    ------
    TypeError
        If `x` is no array of numbers.
    ValueError
        If an axis is named twice; AxisError, which is one, if the result has no such axis.
    """
    (x,) = _checked("expand_dims", [x])
    return _like([x], shapes.expand_dims(x.words, axis))


def _checked(function: str, arrays: Iterable[Any]) -> list[NumberArray]:
    """Arrays of one system on one processor, or TypeError or ValueError."""
    numbers = list(arrays)
    for position, x in enumerate(numbers):
        if not isinstance(x, NumberArray):
            place = f" at position {position}" if len(numbers) > 1 else ""
            raise TypeError(f"{function} takes arrays of numbers, got {type(x).__name__}{place}")
    if not numbers:
        raise ValueError(f"{function} needs at least one array")
    check_one_kind(*numbers)
    check_alike(*numbers)
    return numbers


def _joined(numbers: Sequence[NumberArray], axis: int) -> Any:
    """Arrays that fit one another, joined along an axis."""
    words = [x.words for x in numbers]
    if any(isinstance(array, da.Array) for array in words):
        return _like(numbers, da.concatenate([as_lazy(array) for array in words], axis + 1))
    return _like(numbers, np.concatenate(words, axis + 1))


def _like(numbers: Sequence[NumberArray], words: Any) -> Any:
    """An array of words of numbers of these arrays, with the greatest of their bounds if all have one."""
    system = numbers[0].system
    if isinstance(system, RNS):
        bounds = [x.system.bound for x in numbers]
        system = system.with_bound(None if None in bounds else max(bounds))
    return type(numbers[0])(words, system)
