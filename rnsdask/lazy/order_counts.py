"""Comparison of two arrays as a whole: counts of less, equal and greater, and the first difference."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.place import Place
from rnsdask.lazy.elementwise import compare
from rnsdask.lazy.map import reduce_chunks
from rnsdask.lazy.operands import Numbers, Operand
from rnsdask.lazy.tree import combine_tree, put_in_box


@dataclass(frozen=True)
class OrderCounts:
    """Counts of the numbers of one array that are less than, equal to or greater than another's.

    `first_difference` is the flat (C order) index of the first unequal pair.
    """

    less: int
    equal: int
    greater: int
    first_difference: int | None


def count_orders(a: Numbers, b: Operand) -> da.Array:
    """Compare a lazy array with another of its shape, or with any integer: a lazy :class:`OrderCounts`.

    Each chunk's order, a byte for each number, exists within one task only.
    """
    order = compare(a, b)[None]  # with a first axis, as blocks of residues have
    partials = reduce_chunks(_count_block, order, located=True)
    return combine_tree(partials, _combine_blocks, tuple(range(order.ndim)), "rns-order-counts")


def combine(a: OrderCounts, b: OrderCounts) -> OrderCounts:
    """Add the counts of two parts of an array, in any order."""
    firsts = [t.first_difference for t in (a, b) if t.first_difference is not None]
    return OrderCounts(a.less + b.less, a.equal + b.equal, a.greater + b.greater, min(firsts, default=None))


def _count_block(order: Any, *, place: Place) -> NDArray[np.object_]:
    less, greater = int((order < 0).sum()), int((order > 0).sum())
    first = None
    if less + greater:
        first = place.flat_index(int((order != 0).argmax()))
    return put_in_box(OrderCounts(less, order.size - less - greater, greater, first), order.ndim)


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    return put_in_box(reduce(combine, blocks.flat, OrderCounts(0, 0, 0, None)), blocks.ndim)
