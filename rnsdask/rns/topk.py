"""The k greatest or least numbers of a chunk, and how those of chunks combine. No Dask in here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.rns.keys import complemented
from rnsdask.rns.sort import Ordering, ordering, sorted_indices
from rnsdask.rns.system import RNS

# For each of the greatest numbers: they are seldom in the same group.
_GROUPS = 64


@dataclass(frozen=True)
class Selection:
    """Numbers with their indices, the best first; equal ones by index."""

    values: tuple[int, ...]
    indices: tuple[int, ...]

    def values_array(self) -> NDArray[np.object_]:
        """The numbers as an array of Python ints."""
        array = np.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array

    def indices_array(self) -> NDArray[np.int64]:
        """The indices as an array."""
        return np.array(self.indices, dtype=np.int64)


def select(residues: Array, system: RNS, k: int, offset: int = 0) -> Selection:
    """The k greatest numbers in descending order, or for k < 0 the -k least in ascending order.

    Parameters
    ----------
    residues : array of uint32, shape (n, N)
        NumPy or CuPy.
    k : int
        Not more than N are returned.
    offset : int
        Index of the first number.
    """
    return selection_by(ordering(residues, system), residues, system, k, offset)


def selection_by(by: Ordering, words: Array, system: NumberSystem, k: int, offset: int) -> Selection:
    """Select the k best numbers of any system, words (rows, N), by their sort keys.

    Keys choose the candidates: the numbers not proved to be worse than k others. These alone are sorted, and
    the best of them alone become Python ints, so the cost beside one pass is that of about k numbers, and
    that of sorting all numbers if the keys cannot tell them apart.
    """
    count, minimum = min(abs(k), len(by.keys)), k < 0
    if count == 0:
        return Selection((), ())
    keys = complemented(by.keys, minimum)
    threshold = _reached(keys, count)
    slack = np.uint64(by.slack)
    (candidates,) = (keys >= np.maximum(threshold, slack) - slack).nonzero()
    gather = kernels_of(words).gather
    near = gather(by.words, candidates)
    some = Ordering(by.keys[candidates], by.slack, near, lambda places: by.digits(candidates[places]))
    best = candidates[sorted_indices(some, candidates.shape, 0, not minimum)[:count]]
    values = system.decode(gather(as_matrix(words), best))
    return Selection(tuple(values), tuple((best + offset).tolist()))


def _reached(keys: Array, count: int) -> Any:
    """A key that so many keys reach, and few others: of groups of keys the greatest ones tell it.

    These are as many as `count` keys, each of another group. To order all keys takes longer than all else.
    """
    groups = _GROUPS * count
    if len(keys) >= 2 * groups:
        # Each group has keys from everywhere, so that sorted numbers are spread over all groups too.
        keys = to_backend(keys[: len(keys) // groups * groups].reshape(-1, groups).max(axis=0), "cpu")
    return np.partition(keys, len(keys) - count)[len(keys) - count]


def combine(selections: Iterable[Selection], k: int) -> Selection:
    """The best of several selections from different parts of an array, in any order."""
    pairs = [pair for s in selections for pair in zip(s.values, s.indices, strict=True)]
    pairs.sort(key=lambda pair: (pair[0] if k < 0 else -pair[0], pair[1]))
    values, indices = zip(*pairs[: abs(k)], strict=True) if pairs else ((), ())
    return Selection(tuple(values), tuple(indices))
