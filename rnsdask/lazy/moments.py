"""Means and variances, exact as fractions, lazy on Dask (:mod:`rnsdask.rns.axis`)."""

from fractions import Fraction
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import to_backend
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.map import map_chunks, map_values, reduce_chunks
from rnsdask.lazy.operands import Numbers
from rnsdask.lazy.tree import check_sizes, combine_tree
from rnsdask.lazy.widening import by_table


def mean(total: Any, count: int) -> Any:
    """Mean of `count` numbers by their sum: an int, an object array of ints, or a Dask array of either."""
    if isinstance(total, da.Array):
        return LazyInts.of(map_values(_quotients, total, count=count, dtype=object))
    return _quotients(total, count)


@by_table("moments")
def variance(x: Numbers, axes: tuple[int, ...], count: int, ddof: int, split_every: int | None) -> Any:
    """Variance along axes, which keep length 1, of `count` numbers each: an object array of fractions."""
    words, system = x.words, x.system
    if not isinstance(words, da.Array):
        return _variances(system.apply("moments", words, axes=axes), count=count, ddof=ddof)[0]
    check_sizes(words)
    partials = reduce_chunks(_moments_block, words, axes, rows=2, system=system, axes=axes)
    totals = combine_tree(partials, np.sum, tuple(a + 1 for a in axes), "rns-moments", split_every)
    return LazyInts.of(map_chunks(_variances, totals, dtype=object, count=count, ddof=ddof))


def _quotients(totals: Any, count: int) -> Any:
    if not isinstance(totals, np.ndarray):
        return Fraction(int(totals), count)
    return _fractions(totals, count)


def _fractions(numerators: NDArray[np.object_], denominator: int) -> NDArray[np.object_]:
    """An object array of the quotients of Python ints."""
    result = np.empty(numerators.shape, dtype=object)
    result.ravel()[:] = [Fraction(int(value), denominator) for value in numerators.ravel()]
    return result


def _moments_block(block: Any, *, system: NumberSystem, axes: tuple[int, ...]) -> Any:
    return system.apply("moments", to_backend(block, "auto"), axes=axes)


def _variances(totals: NDArray[np.object_], *, count: int, ddof: int) -> NDArray[np.object_]:
    """Variances (1, *reduced) by sums of numbers and of squares (2, *reduced)."""
    numbers, squares = totals
    return _fractions(count * squares - numbers**2, count * (count - ddof))[None]
