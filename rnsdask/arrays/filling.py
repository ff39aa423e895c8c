"""Arrays of one number in the shape of another array, with NumPy's names."""

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from rnsdask.arrays.number_array import NumberArray
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.operands import find_lengths
from rnsdask.rns.system import RNS


def full_like(x: Any, fill_value: SupportsIndex, dtype: DTypeLike | None = None) -> Any:
    """One number in the shape of an array, as ``numpy.full_like``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array, whose numbers are not looked at. Its length is found out if it is unknown.
    fill_value : int
        The number, in the array's range.
    dtype : optional
        Another type than object makes a plain array of it, with the same chunks.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Of the same system, on the same processor, lazy with the same chunks if `x` is. Its bound is the
        number's magnitude. In memory it is a view, which takes no memory.

    Raises
    ------
    TypeError
        If `x` is no array of numbers, or the number no integer.
    ValueError
        If the number is out of range.
    """
    if not isinstance(x, NumberArray):
        raise TypeError(f"full_like takes an array of numbers, got {type(x).__name__}")
    find_lengths(x)
    if dtype is not None and np.dtype(dtype).kind != "O":
        return np.full_like(x.words[0], fill_value, dtype=dtype)
    value = as_integer(fill_value, "fill_value")
    system: Any = x.system
    words = shapes.filled(x.words, system.column(value, x.ndim))
    return type(x)(words, system.with_bound(abs(value)) if isinstance(system, RNS) else system)


def zeros_like(x: Any, dtype: DTypeLike | None = None) -> Any:
    """Zeros in the shape of an array, as :func:`full_like`."""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: DTypeLike | None = None) -> Any:
    """Ones in the shape of an array, as :func:`full_like`."""
    return full_like(x, 1, dtype)
