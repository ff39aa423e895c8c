"""Axes that arguments name, as NumPy counts them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer


def axis_index(axis: object, ndim: int, name: str = "axis") -> int:
    """One axis, counted from the first; AxisError if an array of that number of axes does not have it."""
    return int(normalize_axis_index(_checked(axis, ndim, name), ndim))


def axis_indices(axes: Any, ndim: int, *, allow_duplicate: bool = False) -> tuple[int, ...]:
    """One axis or several, as :func:`axis_index`; ValueError if one is named twice and may not be."""
    # An array of numbers is no list of axes, which would compute it.
    several = np.iterable(axes) and (isinstance(axes, np.ndarray) or not hasattr(axes, "ndim"))
    given: Iterable[Any] = axes if several else (axes,)
    integers = tuple(_checked(axis, ndim, "axis") for axis in given)
    return normalize_axis_tuple(integers, ndim, allow_duplicate=allow_duplicate)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the `axes` of length 1."""
    return tuple(1 if axis in axes else length for axis, length in enumerate(shape))


def _checked(axis: object, ndim: int, name: str) -> int:
    """One axis as an integer that NumPy's functions take, which overflow for those beyond C's."""
    integer = as_integer(axis, name)
    if not -ndim <= integer < ndim:
        raise AxisError(f"axis {abbreviate(integer)} is out of bounds for array of dimension {ndim}")
    return integer
