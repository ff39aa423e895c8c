"""Running results of an array along an axis, on Dask in two passes (:mod:`rnsdask.rns.scan`)."""

import math
from functools import partial
from itertools import chain
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import check_backend, to_backend
from rnsdask.core import rows
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.place import ALONE, Place
from rnsdask.core.rows import Row
from rnsdask.core.scan import Scan
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.growing import extend_operands, range_of_powers, range_of_sums
from rnsdask.lazy.map import map_chunks, reduce_chunks
from rnsdask.lazy.operands import Numbers, make_like
from rnsdask.lazy.recompute import recompute
from rnsdask.lazy.tree import check_sizes, combine_tree, put_in_box
from rnsdask.lazy.widening import by_table


@by_table(rows.cumsum)
def running_sums(x: Numbers, axis: int, backend: str) -> Any:
    """Add all numbers up to each one along an axis, as :meth:`.IntegerArray.cumsum`."""
    terms = x.words.shape[1 + axis]
    if not math.isnan(terms):
        (x,), _ = extend_operands(lambda known: range_of_sums(known, int(terms)), None, x)
    bound = None if x.system.bound is None else x.system.bound * x.words.shape[1 + axis]
    return _scan(x, rows.cumsum, axis, backend, bound)


@by_table(rows.cumprod)
def running_products(x: Numbers, axis: int, overflow: str | None, backend: str) -> Any:
    """Multiply all numbers up to each one along an axis, as :meth:`.IntegerArray.cumprod`."""
    terms = x.words.shape[1 + axis]
    (x,), overflow = extend_operands(lambda known: range_of_powers(known, int(terms)), overflow, x)
    system, mode = x.system, overflow_mode(overflow, x.system)
    bound = system.bound_of_products(x.words.shape[1 + axis])
    needed = "wrap" if bound is not None and mode == "raise" else mode
    how = system.apply(rows.cumprod, axis=axis, mode=needed)
    return make_like((x,), scan(x.words, how, backend), system.with_bound(bound), mode)


def running_extrema(x: Numbers, axis: int, minimum: bool, backend: str) -> Any:
    """Maxima or minima of all numbers up to each one along an axis."""
    return _EXTREMA[bool(minimum)](x, axis, backend)


def _extrema(x: Numbers, axis: int, backend: str, row: Row[..., Any]) -> Any:
    return _scan(x, row, axis, backend, x.system.bound)


_EXTREMA = {
    minimum: by_table(row)(partial(_extrema, row=row))
    for minimum, row in ((False, rows.cummax), (True, rows.cummin))
}


def _scan(x: Numbers, row: Row[..., Any], axis: int, backend: str, bound: int | None) -> Any:
    how = x.system.apply(row, axis=axis, line=x.words.ndim == 2)
    return make_like((x,), scan(x.words, how, backend), x.system.with_bound(bound), "raise")


def scan(words: Any, how: Scan[Any], backend: str = "auto") -> Any:
    """Compute running results of an array of residues (n, *shape), with the same chunks on Dask.

    On Dask, a first pass reduces every chunk, on the processor that `backend` names, and a second one
    computes results, where the chunks are. If the axis has one chunk, the second pass suffices. The scan's
    mode ``"flag"`` adds a row.
    """
    check_backend(backend)
    if not isinstance(words, da.Array):
        return how.results(words, None, ALONE)
    check_sizes(words)
    layout: dict[str, Any] = {"rows": how.rows, "dtype": how.system.word_dtype}
    if words.numblocks[how.axis + 1] == 1:
        return map_chunks(_scan_lone_block, words, located=True, **layout, how=how)
    name = type(how).__name__
    totals = reduce_chunks(_total_block, words, backend=backend, how=how)
    # In a tree: if one task had all totals, Dask would run reads of overlapping chunks in a poor order.
    joined = combine_tree(totals, _join_totals, (how.axis + 1,), f"rns-{name}-totals")
    chunks = tuple((n,) if k == how.axis else (1,) * n for k, n in enumerate(words.numblocks[1:]))
    prefixes = map_chunks(_prefixes, joined, rows=1, chunks=chunks, dtype=object, how=how)
    pairs = (recompute(words), rechunk(prefixes, {how.axis + 1: 1}))
    return map_chunks(_scan_block, *pairs, located=True, matched=True, **layout, how=how)


def _total_block(block: Any, *, how: Scan[Any], backend: str) -> np.ndarray[Any, Any]:
    """Put a tuple of a chunk's total, or None if it is empty, into a box."""
    total = how.total(to_backend(block, backend)) if block.size else None
    return put_in_box((total,), block.ndim)


def _join_totals(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    if blocks.size == 0:  # Dask tries functions on an empty array to learn the type of results
        return blocks
    return put_in_box(tuple(chain.from_iterable(blocks.flat)), blocks.ndim)


def _prefixes(totals: np.ndarray[Any, Any], *, how: Scan[Any]) -> np.ndarray[Any, Any]:
    """Return boxes of the total of all chunks before each one along the axis, or None for the first."""
    found = totals.item()
    before = np.empty(len(found), dtype=object)
    result = None
    for i, total in enumerate(found):
        before[i] = result
        if total is not None:
            result = total if result is None else how.join(result, total)
    return before.reshape([len(found) if k == how.axis + 1 else 1 for k in range(totals.ndim)])


def _scan_lone_block(block: Any, *, how: Scan[Any], place: Place) -> Any:
    return how.results(block, None, place)


def _scan_block(block: Any, before: np.ndarray[Any, Any], *, how: Scan[Any], place: Place) -> Any:
    return how.results(block, before.item(), place)
