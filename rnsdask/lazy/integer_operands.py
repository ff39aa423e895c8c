"""Conversion of integer operands, such as lists, plain arrays and small integers, to arrays of numbers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from rnsdask.backend import Array, backend_beside, backend_name, to_backend
from rnsdask.core.errors import NumberError
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.core.ways import Message, with_ways
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, Operand, is_number_array, make_like
from rnsdask.lazy.plan import with_integers
from rnsdask.rns.convert import as_python_ints, flat_values
from rnsdask.rns.system import least_system
from rnsdask.rns.values import system_that_holds


def are_integers(operand: Operand) -> bool:
    """Whether an operand is a list, or a plain array of NumPy, CuPy or Dask with axes."""
    if isinstance(operand, list | tuple):
        return True
    is_plain = isinstance(operand, np.ndarray | da.Array) or type(operand).__module__.startswith("cupy")
    return is_plain and getattr(operand, "ndim", 0) > 0


def with_arrays(*operands: Operand) -> tuple[Any, ...]:
    """Convert lists and plain arrays to arrays of numbers if one of the operands is an array of numbers.

    Raises
    ------
    TypeError, ValueError
        As :func:`as_numbers`.
    """
    if all(map(is_number_array, operands)):
        return operands
    like = next(filter(is_number_array, operands), None)
    if like is None:
        return operands
    return tuple([as_numbers(value, like) if are_integers(value) else value for value in operands])


def as_numbers(values: Any, like: Numbers) -> Any:
    """Convert a list or a plain array to an array of numbers like the other operand.

    Values are nested lists, or an array of NumPy, CuPy or Dask, which is encoded chunk by chunk. `like` has
    the number system, which is extended for the values if it grows, and the processor, unless values are on a
    GPU. If `like` is lazy, the result has its chunks along axes of equal length.

    TypeError if a value is not an integer, such as a float or a Boolean. ValueError if a value is out of the
    system's range (it names the position; for a Dask array when it is computed), if lists are ragged, or if
    values are masked.
    """
    system, meta = like.system, meta_of(like.words)
    _check_kind(values)
    if isinstance(values, da.Array):
        if values.dtype.kind in "iu":
            ends = np.iinfo(values.dtype)
            system = system.for_range(ends.min, ends.max)
        options: dict[str, Any] = {"rows": system.rows, "like": meta, "backend": backend_beside(meta)}
        words = map_chunks(_encoded_block, as_declared(values)[None], system=system, **options)
        return make_like((like,), words, system.with_bound(None), "raise")
    system = with_integers(system, partial(_integers, values))
    words = np.asarray(_encode(values, system), like=values if backend_name(values) == "cuda" else meta)
    if isinstance(like.words, da.Array) and words.size > system.rows:
        if isinstance(words, np.ndarray):
            words.flags.writeable = False  # so that it is not copied
        words = as_lazy(words, (system.rows, *_chunks_like(words.shape[1:], like.words)))
    return make_like((like,), words, system, "raise")


def growing_numbers(values: Any, beside: Any) -> Any:
    """Convert an integer, a list or a plain array to residues whose range grows; an integer to shape (1,).

    They are on the processor of the array `beside`. TypeError for other values and for lazy integers, whose
    range is not known.
    """
    if isinstance(values, da.Array):
        if values.dtype.kind not in "iu":
            raise TypeError(
                f"an operand beside a condition must have a known range, got a Dask array of {values.dtype}; "
                "rd.from_ints(values, moduli) gives one"
            )
        ends = np.iinfo(values.dtype)
        system = least_system(int(ends.min), int(ends.max), False)
        flat = values if values.ndim else values[None]
        words = map_chunks(_encode_block, flat[None], rows=system.rows, located=True, system=system)
        return system.array_type(words, system.with_bound(max(-int(ends.min), int(ends.max))))
    if not are_integers(values):
        values = [as_integer(values, "an operand beside a condition")]
    _check_kind(values)
    flat, shape = flat_values(values)
    system = system_that_holds(flat, shape, None)
    like = meta_of(beside)
    words = np.asarray(system.encode(values), like=np.empty(0) if isinstance(like, np.generic) else like)
    return system.array_type(words, system.with_bound(system.bound_of(flat)))


def sides_of(values: Any, x: Numbers) -> tuple[Any, Any] | None:
    """Split values into those within the range of an array's system, and the sides of the others.

    The former is an object array, with 0 for values out of range. The latter is an int8 array on the array's
    processor: -1 for values below the range, 1 for values above, else 0. None if all values are in range.
    """
    if isinstance(values, da.Array):
        return None
    _check_kind(values)
    flat, shape = flat_values(values)
    integers = as_python_ints(flat if isinstance(flat, list) else flat.tolist(), shape)
    if not integers:
        return None
    lowest, highest = x.system.for_range(min(integers), max(integers)).value_range
    if lowest <= min(integers) and max(integers) <= highest:
        return None
    sides = np.array([(value > highest) - (value < lowest) for value in integers], dtype=np.int8)
    inside = np.array(integers, dtype=object)
    inside[sides != 0] = 0
    return inside.reshape(shape), np.asarray(sides.reshape(shape), like=meta_of(x.words))


def _check_kind(values: Any) -> None:
    """Raise TypeError unless values are a list or array of integers; it says what is allowed."""
    what, kind = "an operand beside an array of numbers", type(values).__name__
    if isinstance(values, np.matrix):
        raise TypeError(
            f"{what} must be an array whose * is element-wise, got a NumPy matrix; np.asarray makes one"
        )
    if getattr(values, "dtype", None) == np.bool_:
        raise TypeError(f"{what} must be integers, got Booleans; rd.where(mask, x, 0) chooses numbers")
    if isinstance(values, da.Array) and values.dtype.kind not in "iuO":
        raise TypeError(f"{what} must be integers, got a Dask array of {values.dtype}")
    if isinstance(values, list | tuple) and values and is_number_array(values[0]):
        raise TypeError(
            f"{what} must be one array, got a {kind} of {len(values)}, the first {type(values[0]).__name__}; "
            'rd.stack makes one array, and of a pair that overflow="flag" gave, the first item is the array'
        )


def meta_of(words: Any) -> Any:
    """Return an empty array of the library of lazy words; words in memory unchanged."""
    return meta_from_array(words) if isinstance(words, da.Array) else words


def _integers(values: Any) -> Any:
    """Return the integers of a list or an array for :func:`.greatest_magnitude`."""
    flat, shape = flat_values(values)
    return as_python_ints(flat, shape) if isinstance(flat, list) else flat


def _encode(values: Any, system: NumberSystem) -> Any:
    """Encode a list or an array; errors of values out of range name the way out."""
    try:
        return system.encode(values)
    except NumberError as error:
        raise NumberError(
            with_ways(Message("an operand beside an array of numbers: ", error), system.wider)
        ) from None


def _encoded_block(block: Any, *, system: NumberSystem, backend: str) -> Array:
    return to_backend(_encode(block[0], system), backend)


def _chunks_like(shape: Sequence[int], words: da.Array) -> list[Any]:
    """Chunks for axes of numbers: an array's chunks along axes of equal length, else one chunk."""
    ends = words.chunks[1:][-len(shape) :] if len(shape) < words.ndim else words.chunks[1:]
    ends = ((),) * (len(shape) - len(ends)) + tuple(ends)
    return [along if sum(along) == length else (length,) for length, along in zip(shape, ends, strict=True)]


def numbers_of(small: Any, like: Numbers) -> Any:
    """Convert an array of an integer dtype to an array of numbers, with the bound that the dtype implies.

    It has the kind, moduli set and range of `like`; a growing range gets moduli and a sign for the dtype.
    RNSOverflowError if an integer is out of range; for a Dask array when it is computed.
    """
    ends = np.iinfo(small.dtype)
    system = like.system.for_range(int(ends.min), int(ends.max), signed=False)
    words = map_chunks(_encode_block, small[None], rows=system.rows, located=True, system=system)
    bound = max(-int(ends.min), int(ends.max))
    return make_like((like,), words, system.with_bound(bound), "raise")


def _encode_block(block: Array, *, system: NumberSystem, place: Place) -> Array:
    host = to_backend(block[0], "cpu")
    ends, (lowest, highest) = np.iinfo(host.dtype), system.value_range
    outside = (host < max(lowest, int(ends.min))) | (host > min(highest, int(ends.max)))
    if outside.any():
        first = int(outside.reshape(-1).argmax())
        raise system.overflow_error(int(host.reshape(-1)[first]), place.flat_index(first))
    return to_backend(system.encode(host), backend_name(block))
