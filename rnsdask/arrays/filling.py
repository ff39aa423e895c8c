"""Arrays of one number in the shape of another array, with NumPy's names."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnsdask.arrays.number_array import NumberArray
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import shape as shapes
from rnsdask.lazy.operands import Operand, ends_of, find_lengths, is_lazy_integer, lazy_column
from rnsdask.rns.promotion import least_system
from rnsdask.rns.system import RNS


def full_like(x: Any, fill_value: Operand, dtype: DTypeLike | None = None) -> Any:
    """One number in the shape of an array, as ``numpy.full_like``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array, whose numbers are not looked at. Its length is found out if it is unknown.
    fill_value : int
        The number, in the array's range; it may be lazy, such as ``y.max()`` of a lazy array.
    dtype : optional
        Another type than object makes a plain array of it, with the same chunks.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Of the same system, on the same processor, lazy with the same chunks if `x` or the number is. Its
        bound is the number's magnitude, None of a lazy one. In memory it is a view, which takes no memory.

    Raises
    ------
    TypeError
        If `x` is no array of numbers, or the number no integer.
    ValueError
        If the number is out of range, of a lazy one when the array is computed.
    """
    if not isinstance(x, NumberArray):
        raise TypeError(f"full_like takes an array of numbers, got {type(x).__name__}")
    find_lengths(x)
    if dtype is not None and np.dtype(dtype).kind != "O":
        return np.full_like(x.words[0], fill_value, dtype=dtype)
    system: Any = x.system
    value = fill_value if is_lazy_integer(fill_value) else as_integer(fill_value, "fill_value")
    if system.grows and (ends := ends_of(value)):
        system = least_system(min(ends), max(ends), system.signed)
    bound = None
    if is_lazy_integer(value):
        words = shapes.filled(x.words, lazy_column(value, system, x.ndim))
    else:
        words, bound = shapes.filled(x.words, system.column(value, x.ndim)), abs(value)
    return type(x)(words, system.with_bound(bound) if isinstance(system, RNS) else system)


def zeros_like(x: Any, dtype: DTypeLike | None = None) -> Any:
    """Zeros in the shape of an array, as :func:`full_like`."""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: DTypeLike | None = None) -> Any:
    """Ones in the shape of an array, as :func:`full_like`."""
    return full_like(x, 1, dtype)
