"""Chunks of arrays of numbers converted to machine integers, or passed to a user's function."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, overload

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import is_dask_collection, tokenize
from dask.utils import funcname
from numpy.typing import DTypeLike, NDArray

from rnsdask.backend import Array, empty_like_chunks
from rnsdask.core import rows
from rnsdask.core.errors import abbreviate
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import get_overflow, use_overflow
from rnsdask.core.place import Place
from rnsdask.lazy.call import nameable
from rnsdask.lazy.elementwise import has
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.lazy.number_chunks import numbers_of, words_of
from rnsdask.lazy.operands import N, Numbers, is_number_array
from rnsdask.lazy.promotion import convert_to_grown
from rnsdask.typing import PlainArray


def to_machine_integers(x: Numbers, dtype: np.dtype[Any]) -> Any:
    """Convert the numbers to an integer type of NumPy; lazy if the array is.

    OverflowError if a number does not fit. It names the number's flat index; for a lazy array when it is
    computed.
    """
    if dtype.kind == "f":
        raise TypeError(
            f"astype of exact integers takes object, bool or a type of integers, got {dtype}; "
            'astype(float, casting="unsafe") rounds them'
        )
    if dtype.kind not in "iu":
        raise TypeError(
            f"astype of exact integers takes object, bool or a type of integers, got {dtype}; "
            f"x.to_ints().astype({str(dtype)!r}) writes them otherwise"
        )
    return map_chunks(_cast_block, x.words, dtype=dtype, located=True, system=x.system, kind=dtype)


def _cast_block(block: Array, *, system: NumberSystem, kind: np.dtype[Any], place: Place) -> Array:
    ints: NDArray[np.object_] = system.decode(block)
    ends = np.iinfo(kind)
    try:
        return np.asarray(ints.astype(kind)[None], like=block)
    except OverflowError:
        flat = ints.reshape(-1).tolist()
        index = next(i for i, value in enumerate(flat) if not ends.min <= value <= ends.max)
        raise OverflowError(
            f"the number at flat index {place.flat_index(index)} is {abbreviate(flat[index])}, outside of "
            f"{kind}: {ends.min} to {ends.max}"
        ) from None


def drop_bound(system: Any) -> Any:
    """Return the system without a bound."""
    return system.with_bound(None)


@overload
def map_blocks(
    x: N,
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    token: str | None = None,
    dtype: None = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    enforce_ndim: bool = False,
    meta: None = None,
    **options: Any,
) -> N: ...
@overload
def map_blocks(
    x: Numbers,
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    token: str | None = None,
    dtype: DTypeLike | None = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    enforce_ndim: bool = False,
    meta: Any = None,
    **options: Any,
) -> PlainArray[Any]: ...
def map_blocks(
    x: N,
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    token: str | None = None,
    dtype: DTypeLike | None = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    enforce_ndim: bool = False,
    meta: Any = None,
    **options: Any,
) -> N | PlainArray[Any]:
    """Apply a function to each chunk by Dask's ``map_blocks``, or to an array in memory as a whole.

    Parameters
    ----------
    function : callable
        Called with an array in memory like this one, `args` and `options`, and with ``block_id=`` and
        ``block_info=`` if it has parameters of these names. It returns an array of the same moduli set and
        range, or with `dtype` a NumPy or CuPy array.
    *args
        Lazy arrays, passed chunk by chunk, and other values, passed unchanged.
    dtype : optional
        Type of the returned array, if it is not an array of numbers. With object, returned arrays of integers
        become Python ints.
    chunks, drop_axis, new_axis, enforce_ndim
        As in Dask: they describe the shape of what the function returns, if it is not the chunk's shape.
    name, token, meta
        As in Dask. `meta` implies `dtype`.

    Returns
    -------
    array like this one, or of `dtype`
        Lazy if this array or one of `args` is. It has no bound.

    Raises
    ------
    TypeError, ValueError
        If the function returns anything else; for a lazy array when it is computed.
    """
    if is_number_array(meta):
        raise TypeError(
            f"meta must be an empty NumPy or CuPy array, got {type(meta).__name__}; without meta and dtype "
            "the result is an array of numbers"
        )
    if dtype is None and meta is not None:
        dtype = meta.dtype
    kind = None if dtype is None else np.dtype(dtype)
    numbers: Any = x
    lazy = x if isinstance(x.words, da.Array) else numbers.rechunk(-1)
    make, system, like = type(numbers), x.system, meta_from_array(lazy.words)
    arrays = [_chunks_of(other) for other in (lazy, *args)]
    collections = {key: value for key, value in options.items() if is_dask_collection(value)}
    plain = {key: value for key, value in options.items() if key not in collections}
    applied = Applied(function, plain, get_overflow(), kind)  # the mode of now, not of when it is computed
    dasks = {"chunks": chunks, "drop_axis": drop_axis, "new_axis": new_axis, "enforce_ndim": enforce_ndim}
    if name is None:
        parts = applied, arrays, nameable(dasks), collections
        name = f"{token or funcname(function)}-{tokenize(*parts)}"
    kept = np.empty(0, object) if kind is None or kind.hasobject else empty_like_chunks(like, 1, kind)
    made = arrays[0].map_blocks(
        applied,
        *arrays[1:],
        name=name,
        dtype=kept.dtype,
        meta=kept if meta is None else meta,
        **dasks,
        **collections,
    )
    if kind is None:
        made = words_of(made, system, like, partial(_like_words, make=make, system=system))
    else:
        made = map_values(_of_its_shape, made, dtype=kind, located=True, like=meta_from_array(made))
    if lazy is not x and not any(isinstance(array, da.Array) for array in arrays[1:]):
        made = made.compute(scheduler="sync")
    found: N | PlainArray[Any] = made if kind is not None else make(made, drop_bound(system))
    return found


def _chunks_of(value: Any) -> Any:
    """Return an array whose chunks are the function's arguments, as arrays of numbers where it has such."""
    if is_number_array(value) and isinstance(value.words, da.Array):
        return numbers_of(value.words, type(value), value.system)
    return value


class Applied:
    """A function of chunks with its options, and with its signature, which Dask inspects.

    Dask cannot name long integers, and so sees no options but those that it must compute.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        overflow: str | None,
        kind: np.dtype[Any] | None,
    ) -> None:
        self.__wrapped__ = function
        self._options = options
        self._overflow = overflow
        self._kind = kind

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        options = nameable(self._options)
        return "rnsdask.Applied", self.__wrapped__, options, self._overflow, str(self._kind)

    def __call__(self, *chunks: Any, **options: Any) -> Any:
        """Call the function, and check what it returns."""
        with use_overflow(self._overflow):
            made = self.__wrapped__(*chunks, **self._options, **options)
        return made if self._kind is None else _convert_result(made, self._kind)


def _convert_result(made: Any, kind: np.dtype[Any]) -> Any:
    """Convert a function's result to the type that it should have; numbers become Python ints."""
    if is_number_array(made):
        found: Any = type(made).__name__
        if kind.hasobject and has(rows.compare, made):
            return made.system.decode(made.words)
    else:
        found = getattr(made, "dtype", type(made).__name__)
        if found == kind:
            return made
    raise TypeError(
        f"map_blocks was told dtype {kind}, but its function returned {found}; without dtype it returns an "
        "array of numbers"
    )


def _like_words(made: Any, *, make: Any, system: Any, place: Place) -> Array:
    """Return the words of a chunk, which must be an array of the same number system."""
    if not is_number_array(made) or type(made.system) is not type(system):
        raise TypeError(
            f"map_blocks takes a function from {_name(make)} to {_name(make)}, or any array with "
            f"dtype=; it returned an object of type {type(made).__name__}"
        )
    made = convert_to_grown(made, system)
    if not system.same_numbers(made.system):
        raise ValueError(f"map_blocks must keep the system {system!r}; it returned {made.system!r}")
    _check_shape(made.words.shape[1:], place)
    words: Array = made.words
    return words


def _of_its_shape(made: Array, *, place: Place) -> Array:
    _check_shape(made.shape, place)
    return made


def _check_shape(shape: tuple[int, ...], place: Place) -> None:
    wanted = tuple(stop - start for start, stop in place.location)
    if len(shape) != len(wanted) or any(
        length != found for length, found in zip(wanted, shape, strict=True) if not math.isnan(length)
    ):
        raise ValueError(
            f"map_blocks must keep the shape of a chunk, {wanted} here, unless chunks=, drop_axis= or "
            f"new_axis= say another; its function returned {tuple(shape)}"
        )


def _name(array_type: Any) -> str:
    return f"{array_type.__name__}s"
