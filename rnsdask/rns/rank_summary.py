"""Samples of sorted numbers with bounds of their ranks, and how those of two parts of an array combine.

Source: merge and prune of M. Greenwald and S. Khanna, "Power-Conserving Computation of Order-Statistics over
Sensor Networks", PODS 2004. The rank of a number is how many of the array come before it. In words
(rows, k), the last two rows are a number's index in the array, which orders equal numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnsdask.rns.sort import Sorter


@dataclass(frozen=True, eq=False)
class RankSummary:
    """Some numbers of a part of an array, sorted.

    Attributes
    ----------
    words : array of uint32, shape (rows + 2, m)
        The numbers, in NumPy.
    least, most : arrays of int64, shape (m,)
        Bounds of how many numbers of the part come before each one.
    count : int
        How many numbers the part has.
    """

    words: NDArray[np.uint32]
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    count: int

    def pruned(self, size: int) -> "RankSummary":
        """At most so many of the numbers, at even distances of their ranks."""
        if len(self.least) <= size:
            return self
        targets = np.linspace(0, self.count - 1, size)
        kept = np.unique(np.searchsorted(self.least + self.most, 2 * targets).clip(0, len(self.least) - 1))
        return RankSummary(self.words[:, kept], self.least[kept], self.most[kept], self.count)

    def bracket(self, start: int, stop: int) -> tuple[int, int]:
        """Numbers between which those of the ranks from `start` to before `stop` are, by their places.

        All of these come not before the first, -1 where there is none, and before the second, m if there is
        none.
        """
        first = int(np.searchsorted(self.most, start, side="right")) - 1
        return first, int(np.searchsorted(self.least, stop, side="left"))


def combine(summaries: Sequence[RankSummary], size: int, sorter: Sorter) -> RankSummary:
    """The summary, of at most `size` numbers, of several parts, in the order of their indices.

    What the sorter gets are words without the rows of the index.

    Between two numbers of a part that are next to each other in its summary, any number of them may come
    before a number of another part: so the bounds add up, and pruning to `size` numbers widens them by the
    count divided by this.
    """
    words = np.concatenate([s.words for s in summaries], axis=1)
    order = sorter(words[:-2])
    sources = np.repeat(np.arange(len(summaries)), [len(s.least) for s in summaries])[order]
    least = np.zeros(len(order), dtype=np.int64)
    most = np.zeros(len(order), dtype=np.int64)
    for source, summary in enumerate(summaries):
        own = sources == source
        passed = np.cumsum(own)  # numbers of this summary up to each place
        before = np.concatenate([[0], summary.least + 1])[passed]
        least += np.where(own, before - 1, before)
        after = np.concatenate([summary.most, [summary.count]])
        most += after[np.where(own, passed - 1, passed)]
    count = sum(s.count for s in summaries)
    return RankSummary(words[:, order], least, most, count).pruned(size)
