"""Chunks of arrays of numbers as other things: machine integers, and what a user's function makes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rnsdask.backend import Array
from rnsdask.core.errors import abbreviate
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.overflow import errstate, overflow_mode
from rnsdask.core.place import Place
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, is_number_array
from rnsdask.rns.system import RNS


def to_machine_integers(x: Numbers, dtype: np.dtype[Any]) -> Any:
    """The numbers as integers of a type of NumPy's; lazy if the array is.

    Raises
    ------
    TypeError
        If it is no type of integers.
    OverflowError
        If a number does not fit, naming its flat index; for a lazy array when it is computed.
    """
    if dtype.kind not in "iu":
        raise TypeError(
            f"astype of exact integers takes object, bool or a type of integers, got {dtype}; "
            f"x.to_ints().astype({str(dtype)!r}) rounds them or writes them otherwise"
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


def without_bound(system: Any) -> Any:
    """The same system of numbers of which nothing is known."""
    return system.with_bound(None) if isinstance(system, RNS) else system


def map_blocks(
    array_type: Callable[..., Any],
    x: Numbers,
    function: Callable[..., Any],
    dtype: DTypeLike | None,
    options: dict[str, Any],
) -> Any:
    """Words, or an array of `dtype`, that a function makes of chunks as arrays of numbers.

    Raises
    ------
    TypeError, ValueError
        If it makes something else; for a lazy array when it is computed.
    """
    how: dict[str, Any] = {"array_type": array_type, "system": x.system, "applied": function}
    how["overflow"] = overflow_mode()  # as of now, not of when a chunk is computed
    if dtype is None:
        return map_chunks(_numbers_block, x.words, rows=x.system.rows, options=options, **how)
    kind = np.dtype(dtype)
    return map_chunks(_values_block, x.words, dtype=kind, kind=kind, options=options, **how)


def _numbers_block(
    block: Array,
    *,
    array_type: Callable[..., Any],
    system: NumberSystem,
    applied: Callable[..., Any],
    options: dict[str, Any],
    overflow: str,
) -> Array:
    with errstate(overflow=overflow):
        made = applied(array_type(block, system), **options)
    if not is_number_array(made) or type(made.system) is not type(system):
        raise TypeError(
            f"map_blocks takes a function from {_name(array_type)} to {_name(array_type)}, or any array with "
            f"dtype=; it returned an object of type {type(made).__name__}"
        )
    if not system.same_numbers(made.system):
        raise ValueError(f"map_blocks must keep the system {system!r}; it returned {made.system!r}")
    _check_shape(made.words.shape[1:], block)
    return made.words


def _values_block(
    block: Array,
    *,
    array_type: Callable[..., Any],
    system: NumberSystem,
    applied: Callable[..., Any],
    options: dict[str, Any],
    overflow: str,
    kind: np.dtype[Any],
) -> Array:
    with errstate(overflow=overflow):
        made = applied(array_type(block, system), **options)
    if getattr(made, "dtype", None) != kind or is_number_array(made):
        found = getattr(made, "dtype", type(made).__name__)
        raise TypeError(f"map_blocks was told dtype {kind}, but its function returned {found}")
    _check_shape(made.shape, block)
    return made[None]


def _check_shape(shape: tuple[int, ...], block: Array) -> None:
    if tuple(shape) != tuple(block.shape[1:]):
        raise ValueError(f"map_blocks must keep the shape of a chunk, {block.shape[1:]}; it returned {shape}")


def _name(array_type: Any) -> str:
    return f"{array_type.__name__}s"
