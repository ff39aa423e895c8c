"""Methods that give the numbers as Python ints, NumPy's arrays and Dask's; :class:`.NumberArray` has them."""

import operator
from typing import Any

import numpy as np
from dask.base import compute
from numpy.typing import DTypeLike, NDArray

from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import brief, with_article
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy import casting as casting_of
from rnsdask.lazy import convert, doubles
from rnsdask.lazy.lazy_ints import LazyInts

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def to_ints(x: Any) -> NDArray[np.object_]:
    """All numbers as a NumPy object array of Python ints, of the same shape. Computes a lazy array."""
    ints = convert.to_ints(x)
    if x._is_lazy:
        with checked_workers():
            ints = ints.compute()
    return np.asarray(ints)


def tolist(x: Any) -> list[Any]:
    """All numbers as nested lists of Python ints; computes a lazy array."""
    found: list[Any] = to_ints(x).tolist()
    return found


def item(x: Any, *args: Any) -> int:
    """One number as a Python int, as ``ndarray.item``; computes a lazy array's.

    Parameters
    ----------
    *args
        Nothing, of an array of one number; or a flat (C order) index; or an index of each axis.

    Raises
    ------
    ValueError
        If the array has more numbers than one, or the number of indices is not that of axes.
    IndexError
        If an index is out of bounds.
    """
    x._find_lengths()
    if not args and x.size != 1:
        raise ValueError(f"item() takes an array of one number, got shape {x.shape}; name an index")
    index = args[0] if len(args) == 1 else args or (0,) * x.ndim
    if isinstance(index, tuple):
        if len(index) != x.ndim:
            raise ValueError(f"item() takes an index of each of {x.ndim} axes, got {brief(index)}")
        return int(x[tuple(map(operator.index, index))])
    flat = operator.index(index)
    if not -x.size <= flat < x.size:
        raise IndexError(f"index {flat} is out of bounds for size {x.size}")
    return int(x[np.unravel_index(flat % x.size, x.shape)])


def only_item(ints: NDArray[np.object_]) -> ScalarInt:
    """Return the item of a chunk of one integer."""
    return ScalarInt(ints[0])


def astype(
    x: Any,
    dtype: DTypeLike,
    copy: bool = True,
    *,
    casting: str = "safe",
) -> Any:
    """The numbers in another type: exactly, or as floats where `casting` says that they may be rounded.

    Parameters
    ----------
    dtype
        object for Python ints; a type of integers; bool, which is whether a number is not 0; or, with
        ``casting="unsafe"``, float32 or float64.
    copy : bool
        With False an array in memory whose type is to be its own, object, is returned as it is: so xarray
        pads numbers, and not objects. Otherwise the result is a new array.
    casting : {"safe", "unsafe", "no", "equiv", "same_kind"}
        With ``"unsafe"`` floats are taken too: each number is rounded to the nearest, halfway to the even
        one, as Python's ``float`` does. Integers never wrap, and with all others nothing is rounded.

    Returns
    -------
    array of `dtype`, of the same shape
        NumPy, or CuPy for other types than object if the words are; lazy on Dask.

    Raises
    ------
    TypeError
        If it is another type, or a type of floats without ``casting="unsafe"``, or elements of fields are
        to be rounded.
    ValueError
        If `casting` is not one of these words.
    OverflowError
        If a number does not fit, or is beyond the greatest float, where NumPy would give an infinity. It
        names the number's flat index, the first in its chunk; for a lazy array when it is computed.
    """
    if casting not in _CASTINGS:
        raise ValueError(f"casting must be one of {', '.join(map(repr, _CASTINGS))}, got {brief(casting)}")
    wanted = np.dtype(dtype)
    if wanted.kind == "O":
        if not copy and not x._is_lazy:
            return x
        return lazy_ints(x) if x._is_lazy else to_ints(x)
    if wanted.kind == "b":
        return x != 0
    if wanted.kind == "f" and casting == "unsafe":
        return doubles.to_floats(x, wanted)
    return casting_of.to_machine_integers(x, wanted)


def to_numpy(x: Any, dtype: DTypeLike | None = None, *, casting: str = "safe") -> NDArray[Any]:
    """The numbers as a NumPy array of int64, or of uint64 where that holds them and int64 does not.

    Matplotlib calls it, as in ``plt.plot(x)`` and ``plt.hist(x)``. Computes a lazy array.

    Parameters
    ----------
    dtype, casting
        Another type, as :meth:`astype` takes it: ``x.to_numpy(float, casting="unsafe")`` rounds.

    Raises
    ------
    TypeError, ValueError
        As :meth:`astype`.
    OverflowError
        If the type, or neither of the two, holds all numbers; it names what takes such numbers.
    """
    if dtype is not None:
        (found,) = compute(x.astype(dtype, casting=casting))
        return np.asarray(to_backend(found, "cpu"))
    for kind in (np.int64, np.uint64):
        try:
            (found,) = compute(casting_of.to_machine_integers(x, np.dtype(kind)))
        except OverflowError:
            continue
        return np.asarray(to_backend(found, "cpu"))
    raise OverflowError(
        "the numbers do not fit into 64 bits: x.plot.hist() and x.plot.line() draw them, rd.histogram(x) "
        "counts them, x.log2() gives float64 and x.to_ints() Python ints"
    )


def to_dask_array(x: Any) -> LazyInts:
    """The numbers as a Dask array of Python ints, which is what ``da.asarray(x)`` gives.

    Dask's own functions, such as ``da.concatenate``, calculate with such; NumPy's and this package's stay
    with residues. docs/numpy.md lists all of Dask's.
    """
    return lazy_ints(x)


def lazy_ints(x: Any) -> LazyInts:
    """Return the numbers of any array, of fields too, as a Dask array of Python ints."""
    return LazyInts.of_ints(convert.to_ints(x if x._is_lazy else x.rechunk()))


def as_array(x: Any, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
    """Convert to a NumPy array of Python ints, so that no bit is lost."""
    name = with_article(type(x))
    if dtype is not None and np.dtype(dtype) != object:
        raise TypeError(
            f"{name} converts to dtype object only, got {np.dtype(dtype)}; x.astype(dtype) converts what "
            'fits, x.astype(float, casting="unsafe") rounds, and x.to_zarr(path) stores the numbers, '
            "which xarray does not"
        )
    if copy is False:
        raise ValueError(f"{name} cannot be converted to an array of numbers without a copy")
    return to_ints(x)
