"""Exact reductions along axes, means and variances, lazy on Dask (:mod:`rnsdask.rns.axis`)."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import to_backend
from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, map_values, reduce_chunks
from rnsdask.lazy.operands import Numbers, make_like
from rnsdask.lazy.tree import check_sizes, combine_tree
from rnsdask.lazy.widening import by_table
from rnsdask.typing import SplitEvery


@by_table(rows.extrema)
def extrema(x: Numbers, axes: tuple[int, ...], minimum: bool, split_every: SplitEvery) -> tuple[Numbers, Any]:
    """Find the maximum or minimum along axes, which keep length 1, and its index along one axis.

    Indices are int64. If several axes of a lazy array are reduced, the indices have no meaning.
    """
    words, system = x.words, x.system
    if isinstance(words, da.Array):
        packed = _extrema_lazily(words, system, axes, minimum, split_every)
        places = map_chunks(_unpack_places, packed[system.rows :], dtype=np.int64)
        best = packed[: system.rows]
    else:
        best, places = system.apply(rows.extrema, words, axes=axes, minimum=minimum)
    return make_like((x,), best, system, "raise"), places


def _extrema_lazily(
    words: da.Array, system: NumberSystem, axes: tuple[int, ...], minimum: bool, split_every: SplitEvery
) -> da.Array:
    """Residues, and two words of the index along the axis, the lower word first: (n + 2, *reduced).

    If several axes are reduced, the index is 0.
    """
    check_sizes(words)
    options: dict[str, Any] = {"system": system, "axes": axes, "minimum": minimum}
    rows = {"rows": system.rows + 2, "dtype": system.word_dtype}
    partials = reduce_chunks(_extrema_block, words, axes, located=True, **rows, **options)
    combine = partial(_combine_extrema, **options)
    return combine_tree(partials, combine, tuple(a + 1 for a in axes), "rns-extrema", split_every)


def _extrema_block(
    block: Any, *, system: NumberSystem, axes: tuple[int, ...], minimum: bool, place: Place
) -> Any:
    block_there = to_backend(block, "auto")
    found, places = system.apply(rows.extrema, block_there, axes=axes, minimum=minimum)
    places = places + place.location[axes[0]][0] if len(axes) == 1 else np.zeros_like(places)
    words = np.stack([places & 0xFFFFFFFF, places >> 32]).astype(found.dtype)
    return _move_like(np.concatenate([found, words]), block)


def _move_like(array: Any, block: Any) -> Any:
    """Move an array to the host if the block is there."""
    return array.get() if hasattr(array, "get") and isinstance(block, np.ndarray) else array


def _combine_extrema(
    blocks: Any,
    axis: Any,  # noqa: ARG001  (combine_tree passes both)
    keepdims: bool,  # noqa: ARG001
    system: NumberSystem,
    axes: tuple[int, ...],
    minimum: bool,
) -> Any:
    found, places = system.apply(rows.extrema, blocks[: system.rows], axes=axes, minimum=minimum)
    if len(axes) == 1:
        words = np.take_along_axis(blocks[system.rows :], places[None], axis=1 + axes[0])
    else:
        words = np.zeros_like(blocks, shape=(2, *places.shape), order="C")
    return np.concatenate([found, words])


def _unpack_places(words: Any) -> Any:
    return words[:1].astype(np.int64) + (words[1:].astype(np.int64) << 32)


@by_table(rows.sums)
def sums(x: Numbers, axes: tuple[int, ...], split_every: SplitEvery) -> Any:
    """Exact sums along axes, which keep length 1: an object array (*reduced)."""
    words, system = x.words, x.system
    if not isinstance(words, da.Array):
        return system.apply(rows.sums, words, axes=axes)
    check_sizes(words)
    partials = reduce_chunks(_sums_block, words, axes, system=system, axes=axes)
    totals = combine_tree(partials, np.sum, tuple(a + 1 for a in axes), "rns-sums", split_every)
    return LazyInts.of_ints(totals)[0]


def _sums_block(block: Any, *, system: NumberSystem, axes: tuple[int, ...]) -> Any:
    return system.apply(rows.sums, to_backend(block, "auto"), axes=axes)[None]


def common(x: Numbers, axes: tuple[int, ...], name: Literal["gcd", "lcm"], split_every: SplitEvery) -> Any:
    """Common divisors or multiples along axes, which keep length 1: an object array of ints (*reduced)."""
    words, system = x.words, x.system
    combine = {"gcd": _divisors, "lcm": _multiples}[name]
    if not isinstance(words, da.Array):
        return _common_block(words, system=system, axes=axes, combine=combine)[0]
    check_sizes(words)
    partials = reduce_chunks(_common_block, words, axes, system=system, axes=axes, combine=combine)
    found = combine_tree(partials, combine, tuple(a + 1 for a in axes), f"rns-{name}", split_every)
    return LazyInts.of_ints(found)[0]


def _common_block(
    block: Any, *, system: NumberSystem, axes: tuple[int, ...], combine: Callable[..., Any]
) -> Any:
    # Without axes NumPy returns the numbers unchanged.
    return abs(combine(system.decode(block), axis=axes, keepdims=True))[None]


def _divisors(values: Any, **how: Any) -> Any:
    return np.gcd.reduce(values, **how)


def _multiples(values: Any, **how: Any) -> Any:
    return _LCM.reduce(values, **how)


_LCM = np.frompyfunc(math.lcm, 2, 1, identity=1)
"""The least common multiple of two Python ints; ``numpy.lcm`` divides by 0 for two zeros."""


def mean(total: Any, count: int) -> Any:
    """Divide a sum by `count`: an int, an object array of ints, or a Dask array of either."""
    if isinstance(total, da.Array):
        return LazyInts.of(map_values(_quotients, total, count=count, dtype=object))
    return _quotients(total, count)


@by_table(rows.moments)
def variance(x: Numbers, axes: tuple[int, ...], count: int, ddof: int, split_every: SplitEvery) -> Any:
    """Variances of `count` numbers each along axes, which keep length 1: an object array of fractions."""
    words, system = x.words, x.system
    if not isinstance(words, da.Array):
        return _variances(system.apply(rows.moments, words, axes=axes), count=count, ddof=ddof)[0]
    check_sizes(words)
    partials = reduce_chunks(_moments_block, words, axes, rows=2, system=system, axes=axes)
    totals = combine_tree(partials, np.sum, tuple(a + 1 for a in axes), "rns-moments", split_every)
    return LazyInts.of(map_chunks(_variances, totals, dtype=object, count=count, ddof=ddof))


def _quotients(totals: Any, count: int) -> Any:
    if not isinstance(totals, np.ndarray):
        return Fraction(int(totals), count)
    return _fractions(totals, count)


def _fractions(numerators: NDArray[np.object_], denominator: int) -> NDArray[np.object_]:
    """Return the quotients of Python ints as an object array of fractions."""
    result = np.empty(numerators.shape, dtype=object)
    result.ravel()[:] = [Fraction(int(value), denominator) for value in numerators.ravel()]
    return result


def _moments_block(block: Any, *, system: NumberSystem, axes: tuple[int, ...]) -> Any:
    return system.apply(rows.moments, to_backend(block, "auto"), axes=axes)


def _variances(totals: NDArray[np.object_], *, count: int, ddof: int) -> NDArray[np.object_]:
    """Variances (1, *reduced) from sums of numbers and of squares (2, *reduced)."""
    numbers, squares = totals
    return _fractions(count * squares - numbers**2, count * (count - ddof))[None]
