"""Elementary functions of arrays of numbers, with NumPy's names and rules."""

from typing import Any, SupportsIndex

import numpy as np

from rnsdask.arrays.elementary_array import ElementaryArray
from rnsdask.arrays.joining import concatenate, pad
from rnsdask.arrays.ring_array import Axis, RingArray
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.overflow import chosen_mode
from rnsdask.lazy import functions
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.integer_operands import are_integers, with_arrays
from rnsdask.lazy.operands import Operand, is_number_array
from rnsdask.lazy.shape import along


def count_nonzero(x: Any, axis: Axis | None = None, *, keepdims: bool = False) -> Any:
    """How many numbers are not 0, of all or along axes, as ``numpy.count_nonzero``.

    Parameters
    ----------
    x : array of numbers
        Of any number system.
    axis : int or tuple of int, optional
        The axes to reduce; all without it.
    keepdims : bool
        Keep the axes reduced, with length 1.

    Returns
    -------
    int, or array of int64
        Of all numbers an int; along axes, or with `keepdims`, a NumPy or CuPy array; lazy on Dask.

    Raises
    ------
    TypeError
        If `x` is no array of numbers.
    ValueError
        If an axis is wrong.
    """
    x = _checked("count_nonzero", x, RingArray)
    axes, is_nonzero = x._axes(axis), x != 0
    if not axes:
        return is_nonzero.astype(np.int64)
    found = is_nonzero.sum(axis=axes, dtype=np.int64, keepdims=keepdims)
    return found if found.ndim or x._is_lazy else int(found)


def diff(
    x: Any,
    n: SupportsIndex = 1,
    axis: int = -1,
    prepend: Operand | None = None,
    append: Operand | None = None,
    *,
    overflow: str | None = None,
) -> Any:
    """Differences of neighbours along an axis, each number minus the one before it, as ``numpy.diff``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The array.
    n : int
        How often differences are taken; with 0 the result is `x`. Those in between must be in range too.
    axis : int
        The axis, which is shorter by `n` in the result.
    prepend, append : array like `x`, or int, optional
        Numbers before and after `x` along the axis, of which differences are taken too; an integer stands for
        one number at each place.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to differences out of range, as in :func:`.subtract`; ``"flag"`` goes with ``n=1``.

    Returns
    -------
    RNSArray or IntervalRNSArray
        Lazy if `x` is. With ``"flag"`` a pair, as of :func:`.subtract`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a difference is out of range, as it is for a number of an unsigned array that is
        less than the one before it; on Dask when it is computed.
    TypeError, ValueError
        If the arguments are none of these, or do not fit one another, or a length is unknown; AxisError,
        which is a ValueError, if there is no such axis.
    """
    x = _checked("diff", x, RingArray)
    times, mode = as_integer(n, "n"), chosen_mode(overflow, x.system)
    if times < 0:
        raise ValueError(f"n must not be negative, got {abbreviate(times)}")
    if times != 1 and mode == "flag" and not of_fields(x):
        raise ValueError(f'diff with overflow="flag" takes n=1, got {abbreviate(times)}: apply it n times')
    axis = axis_index(axis, x.ndim)
    if times == 0:
        return x
    x = _joined(x, axis, prepend, append)
    x._find_lengths()
    for _ in range(min(times, max(x.shape[axis], 1))):
        later, earlier = (x[along(axis, part)[1:]] for part in (slice(1, None), slice(-1)))
        x = functions.subtract(later, earlier, overflow=overflow)
    return x


def _joined(x: RingArray, axis: int, prepend: Any, append: Any) -> Any:
    """The array with an array, or one integer at each place, before and after it along an axis."""
    for value, side in ((prepend, 0), (append, 1)):
        if is_number_array(value) or are_integers(value):
            x = concatenate((value, x) if side == 0 else (x, value), axis)
        elif value is not None:
            width = (1 - side, side)
            x = pad(x, [width if k == axis else (0, 0) for k in range(x.ndim)], constant_values=value)
    return x


def ptp(x: Any, axis: Axis | None = None, *, keepdims: bool = False) -> Any:
    """Maximum minus minimum of all numbers or along axes, as ``numpy.ptp``.

    Parameters
    ----------
    x : array of numbers
        Of any number system that has an order.
    axis : int or tuple of int, optional
        The axes to reduce; all without it.
    keepdims : bool
        Keep the axes reduced, with length 1.

    Returns
    -------
    int, or array like `x`
        Of all numbers an int of any size; on Dask a lazy 0-d array that computes to one. Along axes a
        difference as :func:`.subtract` gives it, lazy if `x` is.

    Raises
    ------
    RNSOverflowError
        If a difference along axes is out of range, as can be if `x` is signed.
    TypeError
        If `x` is no array of numbers.
    ValueError
        If an axis is wrong, or there are no numbers to choose from.
    """
    x = _checked("ptp", x)
    options = {"keepdims": True} if keepdims else {}
    return x.max(axis, **options) - x.min(axis, **options)


def outer(a: Any, b: Any, *, overflow: str | None = None) -> Any:
    """Product of each number of `a` with each one of `b`, as ``numpy.outer``.

    Parameters
    ----------
    a, b : RNSArray or IntervalRNSArray
        Both of one kind, of any shapes; otherwise as :func:`.multiply` takes them.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        As of :func:`.multiply`.

    Returns
    -------
    array like `a`, shape (a.size, b.size)
        Lazy if an operand is. With ``"flag"`` a pair, as of :func:`.multiply`.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if a product is out of range; on Dask when it is computed.
    TypeError, ValueError
        If an operand is no array, they do not fit one another, or a length is unknown.
    """
    a, b = (_checked("outer", operand, RingArray).ravel() for operand in with_arrays(a, b))
    return functions.multiply(a[:, None], b[None], overflow=overflow)


def _checked(function: str, x: Any, kind: type[RingArray] = ElementaryArray) -> Any:
    if not isinstance(x, kind):
        raise TypeError(f"{function} takes an array of numbers, got {type(x).__name__}")
    return x
