"""Summary of an array's integers in one pass: count, least, greatest, sum, and lengths in bits."""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import zip_longest
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, to_backend
from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy.map import reduce_chunks
from rnsdask.lazy.operands import Numbers
from rnsdask.lazy.tree import combine_tree, move_to_reduce, put_in_box, reduce_words


@dataclass(frozen=True)
class Summary:
    """Exact statistics of some integers; the least and the greatest are None without numbers.

    `lengths[b]` counts the magnitudes of b bits.
    """

    count: int
    minimum: int | None
    maximum: int | None
    total: int
    lengths: tuple[int, ...]

    @property
    def mean(self) -> Fraction | None:
        """Arithmetic mean; None without numbers."""
        return Fraction(self.total, self.count) if self.count else None


_NOTHING = Summary(0, None, None, 0, ())


def summarize(x: Numbers, *, backend: str = "auto") -> da.Array:
    """Summarize a lazy array of integers, each chunk in one task: a lazy :class:`Summary`."""
    partials = reduce_chunks(_summary_block, x.words, system=x.system, backend=backend)
    return combine_tree(partials, _combine_blocks, tuple(range(x.words.ndim)), "rns-summary")


def combine(a: Summary, b: Summary) -> Summary:
    """Combine the summaries of two parts of an array."""
    lows, highs = (
        [end for end in ends if end is not None] for ends in ((a.minimum, b.minimum), (a.maximum, b.maximum))
    )
    lengths = tuple(map(sum, zip_longest(a.lengths, b.lengths, fillvalue=0)))
    total, count = a.total + b.total, a.count + b.count
    return Summary(count, min(lows, default=None), max(highs, default=None), total, lengths)


def _summary_block(block: Array, *, system: NumberSystem, backend: str) -> NDArray[np.object_]:
    block = move_to_reduce(block, system, backend)
    found = _NOTHING
    if 0 not in block.shape:
        lowest, highest, total = (reduce_words(name, block, system) for name in ("min", "max", "sum"))
        lengths = to_backend(np.bincount(system.apply(rows.bit_length, block).ravel()), "cpu")
        found = Summary(
            total.count, lowest.value, highest.value, total.value, tuple(map(int, lengths.tolist()))
        )
    return put_in_box(found, block.ndim)


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool) -> Any:  # noqa: ARG001  (combine_tree passes both)
    return put_in_box(reduce(combine, blocks.flat, _NOTHING), blocks.ndim)
