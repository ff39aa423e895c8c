"""Searching sorted numbers, and membership: `searchsorted` and `isin`, exact."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex, overload

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, to_backend
from rnsdask.core import rows
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy import indexing, shape
from rnsdask.lazy.chunks import as_lazy
from rnsdask.lazy.elementwise import check_one_kind, entry_of
from rnsdask.lazy.functions import relate
from rnsdask.lazy.integer_operands import meta_of
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import (
    N,
    find_lengths,
    integer_of,
    is_lazy_integer,
    is_number_array,
    make_alike,
)
from rnsdask.lazy.ranks import places
from rnsdask.lazy.sort import sort_along
from rnsdask.rns.convert import flat_values
from rnsdask.rns.sort import taken
from rnsdask.typing import Integer, Integers, PlainArray

# Values of the row after the words of a wanted number.
_INSIDE, _BELOW, _ABOVE = 0, 1, 2


@overload
def searchsorted(  # type: ignore[overload-overlap]  # one integer is not several
    a: N, v: SupportsIndex, side: Literal["left", "right"] = "left", sorter: Integers | None = None
) -> Integer: ...
@overload
def searchsorted(
    a: N, v: N | Integers, side: Literal["left", "right"] = "left", sorter: Integers | None = None
) -> PlainArray[np.int64]: ...
def searchsorted(
    a: N, v: N | Integers, side: Literal["left", "right"] = "left", sorter: Integers | None = None
) -> Integer | PlainArray[np.int64]:
    """Positions at which numbers keep a sorted array sorted, as ``numpy.searchsorted``.

    Parameters
    ----------
    a : RNSArray or IntervalRNSArray
        Sorted numbers along one axis.
    v : array of numbers, int, or integers
        Values to insert: an array of the same kind, moduli and range, or integers of any size: one, which may
        be lazy, or nested lists or a NumPy array of them.
    side : {"left", "right"}
        Whether positions are before or after equal numbers.
    sorter : array of integers, shape (len(a),), optional
        Indices that sort `a`, as from :func:`.argsort`.

    Returns
    -------
    int, or array of int64 in the shape of `v`
        An int for one integer. Lazy if an argument is.

    Raises
    ------
    TypeError
        If `a` is not an array of numbers, or `v` is of another type.
    ValueError
        If `a` has several axes, `side` is unknown, `sorter` has another shape, or moduli or ranges differ.
    """
    entry_of(rows.ordering, a, name="searchsorted")
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', got {side!r:.40}")
    if a.words.ndim != 2:
        raise ValueError(f"searchsorted takes sorted numbers along one axis, got shape {a.words.shape[1:]}")
    if sorter is not None:
        find_lengths(a)
    if is_number_array(v):
        check_one_kind(a, v, row=rows.ordering)
        a, v = make_alike(a, v)
    words = a.words if sorter is None else _reorder(a.words, sorter)
    wanted, lengths, system = _encode_wanted(v, a)
    places = _search_chunks(words, wanted, system, side)
    if lengths is None:
        places = places[0] if isinstance(places, da.Array) else int(places[0])
    found: Integer | PlainArray[np.int64] = places if lengths is None else reshape_values(places, lengths)
    return found


def isin(x: N, values: N | Integers, *, invert: bool = False) -> PlainArray[np.bool_]:
    """Mark the numbers that are among some values, as ``numpy.isin``.

    Parameters
    ----------
    x : RNSArray or IntervalRNSArray
        The numbers.
    values : array of numbers, int, or integers
        As :func:`searchsorted` takes them.
    invert : bool
        Mark the numbers that are not among them instead.

    Returns
    -------
    Boolean array in the shape of `x`
        Lazy if an argument is.

    Raises
    ------
    TypeError, ValueError
        As :func:`searchsorted`.
    """
    found: PlainArray[np.bool_]
    entry_of(rows.ordering, x, name="isin")
    if is_number_array(values):
        find_lengths(values)
        check_one_kind(x, values, row=rows.ordering)
        x, values = make_alike(x, values)
    looked_for, *_ = _encode_wanted(x, x)
    wanted, shape_of_values, system = _encode_wanted(values, x)
    if shape_of_values is None:  # one integer, which may be lazy
        found = relate(x, "!=" if invert else "==", values)
        return found
    if not is_number_array(values):
        wanted = wanted[:, wanted[-1] == _INSIDE]  # integers out of range equal no number of the array
    ordered = sort_along(wanted[:-1], system, 0)
    found = reshape_values(_search_chunks(ordered, looked_for, system, "both"), x.words.shape[1:])
    found = ~found if invert else found
    return found


def reshape_values(flat: Any, lengths: tuple[Any, ...]) -> Any:
    """Reshape plain values along one axis to the numbers' shape; the length may be unknown."""
    return shape.reshape(flat[None], lengths)[0] if len(lengths) > 1 else flat


def _reorder(words: Any, sorter: Any) -> Any:
    """Reorder the numbers by indices."""
    indices = sorter if hasattr(sorter, "dtype") else np.asarray(sorter)
    if indices.shape != words.shape[1:]:
        raise ValueError(f"sorter must have shape {words.shape[1:]}, as the array, got {indices.shape}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"sorter must be integers, got {indices.dtype}")
    return indexing.select(words, indices)


# ---- wanted numbers ----------------------------------------------------------------------------------------


def _encode_wanted(v: Any, a: Any) -> tuple[Any, tuple[Any, ...] | None, NumberSystem]:
    """Return the values to search in an array, their shape, and their system.

    Values are words (rows + 1, m); the last row is `_INSIDE` or the side of the range. The shape of a single
    integer is None.
    """
    system = a.system
    if is_number_array(v):
        system = system.holding(system.known_range, v.system.known_range)
        if v.words.ndim > 2:
            find_lengths(v)
        flat = shape.reshape(v.words, -1) if v.words.ndim > 2 else v.words
        return map_chunks(_inside_block, flat, rows=system.rows + 1), v.words.shape[1:], system
    if is_lazy_integer(v):
        options: dict[str, Any] = {"rows": system.rows + 1, "chunks": ((1,),), "system": system}
        return map_chunks(_integer_block, v, like=meta_of(a.words), **options), None, system
    if isinstance(v, da.Array):
        raise TypeError(
            f"a Dask array of integers is no array of numbers: rd.from_ints makes one, got {v!r:.80}"
        )
    if hasattr(v, "__index__") and not getattr(v, "ndim", 0):
        values, lengths = [as_integer(v, "v")], None
    else:
        flat, lengths = flat_values(v)
        values = [as_integer(value, f"v, at flat index {i},") for i, value in enumerate(flat)]
    return np.asarray(_columns(values, system), like=meta_of(a.words)), lengths, system


def _inside_block(words: Array) -> Array:
    return np.concatenate([words, np.full_like(words[:1], _INSIDE)])


def _integer_block(integer: Any, *, system: NumberSystem) -> Array:
    return _columns([integer_of(integer)], system)


def _columns(values: list[int], system: NumberSystem) -> NDArray[np.uint32]:
    """Encode integers of any size as words (rows + 1, m); those out of range become 0."""
    lowest, highest = system.known_range
    sides = [_BELOW if value < lowest else _ABOVE if value > highest else _INSIDE for value in values]
    inside = [0 if side else value for value, side in zip(values, sides, strict=True)]
    words = system.encode(inside).reshape(system.rows, -1)
    return np.concatenate([words, np.array([sides], dtype=np.uint32).reshape(1, -1)])


# ---- chunk by chunk ----------------------------------------------------------------------------------------


def _search_chunks(words: Any, wanted: Any, system: NumberSystem, side: str) -> Any:
    """Find the positions (m,) of wanted numbers in sorted words (rows, N), for ``"both"`` if they occur."""
    if not isinstance(words, da.Array) and not isinstance(wanted, da.Array):
        return _search_block(words, wanted, system, side)
    dtype = np.bool_ if side == "both" else np.int64
    found = da.blockwise(
        _search_blocks,
        "ij",
        as_lazy(words),
        "ri",
        as_lazy(wanted),
        "sj",
        system=system,
        side=side,
        concatenate=False,
        align_arrays=False,
        adjust_chunks={"i": 1},
        dtype=dtype,
        meta=np.empty_like(meta_of(words), shape=(0, 0), dtype=dtype, order="C"),
        token="rns-search",
    )
    # A number's position is the sum of its positions in all chunks.
    return found.any(axis=0) if side == "both" else found.sum(axis=0, dtype=np.int64)


def _search_blocks(words: list[Any], wanted: list[Any], *, system: NumberSystem, side: str) -> Any:
    return _search_block(words[0], wanted[0], system, side)[None]


def _search_block(words: Any, wanted: Any, system: NumberSystem, side: str) -> Any:
    # Wanted integers may be NumPy's while chunks are CuPy's.
    if "cuda" in (backend_name(words), backend_name(wanted)):
        words, wanted = to_backend(words, "cuda"), to_backend(wanted, "cuda")
    numbers = wanted[:-1]
    if side != "both":
        beyond = np.where(wanted[-1] == _ABOVE, words.shape[1], 0)
        return np.where(wanted[-1] == _INSIDE, places(words, numbers, system, side), beyond)
    found = places(words, numbers, system, "left")
    is_before = found < words.shape[1]
    (candidates,) = is_before.nonzero()
    differing = system.identifying_words(words), system.identifying_words(numbers)
    pair = taken(differing[0], found[candidates]), taken(differing[1], candidates)
    is_before[candidates] = (pair[0] == pair[1]).all(axis=0)
    return is_before
