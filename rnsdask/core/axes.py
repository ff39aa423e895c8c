"""Axes that arguments name, as NumPy counts them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer


def axis_index(axis: object, ndim: int, name: str = "axis") -> int:
    """Return one axis counted from the first; AxisError if an array of `ndim` axes does not have it."""
    return int(normalize_axis_index(_as_machine_integer(axis, ndim, name), ndim))


def axis_indices(axes: Any, ndim: int, *, allow_duplicate: bool = False) -> tuple[int, ...]:
    """Return one axis or several, as :func:`axis_index`; ValueError for a repeated axis, unless allowed."""
    # An array of numbers is not a list of axes: iterating over it would compute it.
    several = np.iterable(axes) and (isinstance(axes, np.ndarray) or not hasattr(axes, "ndim"))
    given: Iterable[Any] = axes if several else (axes,)
    integers = tuple(_as_machine_integer(axis, ndim, "axis") for axis in given)
    return normalize_axis_tuple(integers, ndim, allow_duplicate=allow_duplicate)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with length 1 along the `axes`."""
    return tuple(1 if axis in axes else length for axis, length in enumerate(shape))


def _as_machine_integer(axis: object, ndim: int, name: str) -> int:
    """Convert one axis to an integer that NumPy's functions take: they overflow beyond a C long."""
    integer = as_integer(axis, name)
    if not -ndim <= integer < ndim:
        raise AxisError(f"axis {abbreviate(integer)} is out of bounds for array of dimension {ndim}")
    return integer
